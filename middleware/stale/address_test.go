package stale

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
)

func TestAddressesAreToldApart(t *testing.T) {
	cache := mustNew(t, Config{})
	fill(t, cache, ask("/a", ""), 200, "mine", fields())
	change := func(change func(*Query)) *Query {
		q := ask("/a", "")
		change(q)
		return q
	}
	for name, q := range map[string]*Query{
		"path":       ask("/b", ""),
		"identity":   ask("/a", "u1"),
		"authorized": ask("/a", "", "Authorization", "Bearer x"),
		"query":      change(func(q *Query) { q.RawQuery = "x=1" }),
		"host":       change(func(q *Query) { q.Host = "other.example" }),
		"port":       change(func(q *Query) { q.Host = "shop.example:1337" }),
		"tls":        change(func(q *Query) { q.TLS = true }),
		"scope":      change(func(q *Query) { q.Scope = t }),
		"verb":       change(func(q *Query) { q.Method = http.MethodPost }),
		"body":       change(func(q *Query) { q.ContentLength = 5 }),
		"chunks":     change(func(q *Query) { q.ContentLength = -1 }),
		"websocket":  ask("/a", "", "Upgrade", "websocket"),
		"proxy":      ask("/a", "", "X-Forwarded-Host", "evil.example"),
		"override":   ask("/a", "", "X-Http-Method-Override", "DELETE"),
		"method _":   ask("/a", "", "X_http_method_override", "DELETE"), // as net/http spells X_HTTP_METHOD_OVERRIDE
		"method":     ask("/a", "", "X-Http-Method", "DELETE"),
		"forwarded":  ask("/a", "", "Forwarded", `for=192.0.2.1;Host="evil.example"`),
		"hidden":     ask("/a", "", "Forwarded", `for="192.0.2.1;host=evil.example"`),
		"spaced":     ask("/a", "", "Forwarded", `for=192.0.2.1 proto=http`),
		"scheme":     ask("/a", "", "X-Forwarded-Ssl", "on"),
		"user":       ask("/a", "", "X-Forwarded-User", "alice"),
		"front":      ask("/a", "", "Front-End-Https", "on"),
		"underscore": ask("/a", "", "X_forwarded_host", "evil.example"),
	} {
		if got := kept(cache, q); got != "" {
			t.Errorf("with another %s: %q", name, got)
		}
	}
	if got := kept(cache, change(func(q *Query) { q.Host = "SHOP.example" })); got != "mine" {
		t.Errorf("the host in capitals: %q", got)
	}
	for name, fields := range map[string][]string{
		"another client": {"Forwarded", "for=192.0.2.1", "Cookie", "x=y"}, "other proxies": {"X-Forwarded-For", "192.0.2.1", "Via", "1.1 p"},
	} {
		if got := kept(cache, ask("/a", "", fields...)); got != "mine" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A proxy that says of each request whom it is for must not make each of them one of its own.
func TestForwardedForIsNoAddress(t *testing.T) {
	cache := mustNew(t, Config{})
	fill(t, cache, ask("/", "", "Forwarded", "for=192.0.2.1;host=shop.example;proto=https"), 200, "mine", fields())
	for text, want := range map[string]string{
		`for=192.0.2.2;host=shop.example;proto=https`:                "mine",
		`for=192.0.2.2; host=shop.example; proto=https`:              "mine",
		`for=192.0.2.2;host=shop.example;proto=https;by=192.0.2.9`:   "mine",
		`for=192.0.2.2, for=192.0.2.3;host=shop.example;proto=https`: "mine",
		`for=192.0.2.2;host=shop.example;proto=http`:                 "",
		`for=192.0.2.2;host=shop.example`:                            "",
		`for=192.0.2.2;host=a.example, host=shop.example`:            "",
	} {
		if got := kept(cache, ask("/", "", "Forwarded", text)); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// What the service is told of an address that it is to believe is not what it is told when the front takes that away.
func TestBelievedAndNot(t *testing.T) {
	cache := mustNew(t, Config{})
	claim := func(believed bool) *Query {
		q := ask("/", "", "X-Forwarded-Proto", "https")
		q.Believed = believed
		return q
	}
	fill(t, cache, claim(false), 200, "http links", fields())
	if got := kept(cache, claim(true)); got != "" {
		t.Errorf("a claim of anybody is kept for those who are believed: %q", got)
	}
	plain := ask("/plain", "")
	fill(t, cache, plain, 200, "mine", fields())
	plain.Believed = true
	if kept(cache, plain) != "mine" {
		t.Error("who claims nothing is told apart")
	}
}

func TestCertificatesAreIdentities(t *testing.T) {
	cache := mustNew(t, Config{})
	alice, bob := ask("/", "ip=192.0.2.1"), ask("/", "ip=192.0.2.1")
	alice.Certificate, bob.Certificate = "alice", "bob"
	fill(t, cache, alice, 200, "of alice", fields())
	if kept(cache, alice) != "of alice" || kept(cache, bob) != "" {
		t.Error("two certificates are one client")
	}
}

// What a client writes into an address takes no memory once the request is over.
func TestKeysAreOfOneSize(t *testing.T) {
	cache := mustNew(t, Config{})
	q := ask("/"+strings.Repeat("x", 60_000), "")
	if size := reflect.TypeOf(q.key()).Size(); size > 64 {
		t.Errorf("a key has %d bytes", size)
	}
	fill(t, cache, q, 200, "hello", fields())
	if s := cache.Stats(); s.Bytes > 2*overhead {
		t.Errorf("%d bytes for a short answer", s.Bytes)
	}
}

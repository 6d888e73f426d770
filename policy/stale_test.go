package policy

import (
	"net/netip"
	"testing"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// TestStaleIdentity: two requests share an answer only if nothing in them can tell who asks.
func TestStaleIdentity(t *testing.T) {
	e := mustEngine(t, preamble+`
  claim: {cookie: c}
rules: [{name: own, key: [user | ip], limits: [fixed_window 100/1h], on_deny: {action: stale}}]
`, newMemory(t), EngineConfig{})
	stranger := func(r *httpverdict.Request) *httpverdict.Request {
		r.Peer = netip.MustParseAddr("192.0.2.99")
		return r
	}
	for _, c := range []struct {
		name string
		a, b *httpverdict.Request
		same bool
	}{
		{"the same", request("GET /"), request("GET /"), true},
		{"HEAD", request("GET /"), request("HEAD /"), true},
		{"another agent and language", request("GET /", "User-Agent", "a", "Accept-Language", "de"), request("GET /", "User-Agent", "b", "Accept-Language", "zh"), true},
		{"another way through the same proxies", from("192.0.2.1", "GET /", "Via", "a"), from("192.0.2.1, 10.0.0.7", "GET /", "Via", "b"), true},
		{"another order of headers", request("GET /", "X-A", "1", "X-B", "2"), request("GET /", "X-B", "2", "X-A", "1"), true},
		{"another user", request("GET /", "X-User-Id", "a"), request("GET /", "X-User-Id", "b"), false},
		{"another address", from("192.0.2.1", "GET /"), from("192.0.2.2", "GET /"), false},
		{"another address of the same /64", from("2001:db8::1", "GET /"), from("2001:db8::2", "GET /"), false},
		{"another session", request("GET /", "Cookie", "s=1"), request("GET /", "Cookie", "s=2"), false},
		{"a session or none", request("GET /", "Cookie", "s=1"), request("GET /"), false},
		{"another token", request("GET /", "Authorization", "Bearer a"), request("GET /", "Authorization", "Bearer b"), false},
		{"what a proxy says of the client's certificate", request("GET /", "X-Forwarded-Client-Cert", "a"), request("GET /", "X-Forwarded-Client-Cert", "b"), false},
		{"another host behind a proxy", request("GET /", "X-Forwarded-Host", "a"), request("GET /", "X-Forwarded-Host", "b"), false},
		{"values of one header or of two", request("GET /", "X-A", "1", "X-A", "2"), request("GET /", "X-A", "1", "2", "x"), false},
		// Not believed here, but perhaps by the service.
		{"what a stranger says of its address", stranger(from("192.0.2.1", "GET /")), stranger(from("192.0.2.2", "GET /")), false},
		{"the same in Forwarded", stranger(request("GET /", "Forwarded", "for=192.0.2.1")), stranger(request("GET /", "Forwarded", "for=192.0.2.2")), false},
	} {
		a, b := e.At(noon).Decide(t.Context(), c.a).Stale, e.At(noon).Decide(t.Context(), c.b).Stale
		if a == nil || b == nil || a.Identity == "" || (a.Identity == b.Identity) != c.same {
			t.Errorf("%s: %+v, %+v", c.name, a, b)
		}
	}
}

// TestPublicOnlyIfAllSaySo: a rule whose answers are somebody's own counts also where it does not apply to the request.
func TestPublicOnlyIfAllSaySo(t *testing.T) {
	const public = "  - {name: public, limits: [fixed_window 100/1h], on_deny: {action: stale, public: true}}\n"
	for _, c := range []struct {
		name, rules string
		public      bool
	}{
		{"one", public, true},
		{"two", public + "  - {name: r, limits: [fixed_window 100/1h], on_deny: {action: stale, public: true}}\n", true},
		{"another action", public + "  - {name: r, limits: [fixed_window 100/1h], on_deny: {action: wait}}\n", true},
		{"own", public + "  - {name: r, limits: [fixed_window 100/1h], on_deny: {action: stale}}\n", false},
		{"on_error", public + "  - {name: r, limits: [fixed_window 100/1h], on_error: stale}\n", false},
		{"skipped", public + "  - {name: r, skip: [all], limits: [fixed_window 100/1h], on_deny: {action: stale}}\n", false},
		{"not when", public + "  - {name: r, when: 'false', limits: [fixed_window 100/1h], on_deny: {action: stale}}\n", false},
		{"without its dimension", public + "  - {name: r, key: [user], missing: skip, limits: [fixed_window 100/1h], on_deny: {action: stale}}\n", false},
		{"no match", public + "  - {name: r, match: {paths: [/x]}, limits: [fixed_window 100/1h], on_deny: {action: stale}}\n", true},
		{"shadow", public + "  - {name: r, mode: shadow, limits: [fixed_window 100/1h], on_deny: {action: stale}}\n", true},
	} {
		e := mustEngine(t, preamble+"lists: {all: {cidrs: [0.0.0.0/0]}}\nrules:\n"+c.rules, newMemory(t), EngineConfig{})
		if s := e.At(noon).Decide(t.Context(), request("GET /x")).Stale; s == nil || c.name == "no match" && s.Identity == "" {
			t.Errorf("%s, elsewhere: got %+v", c.name, s)
		}
		s := e.At(noon).Decide(t.Context(), request("GET /")).Stale // most likely with the memory of the one before
		if s == nil || (s.Identity == "") != c.public {
			t.Errorf("%s: got %+v", c.name, s)
		}
	}
}

// TestNothingStaleForBodies: an answer that may depend on the body of a GET is for nobody else.
func TestNothingStaleForBodies(t *testing.T) {
	e := mustEngine(t, preamble+"rules: [{name: r, limits: [fixed_window 100/1h], on_deny: {action: stale, public: true}}]", newMemory(t), EngineConfig{})
	for length, want := range map[int64]bool{0: true, 5: false, -1: false} {
		r := request("GET /")
		r.ContentLength = length
		if s := e.At(noon).Decide(t.Context(), r).Stale; (s != nil) != want {
			t.Errorf("%d bytes: got %+v", length, s)
		}
	}
}

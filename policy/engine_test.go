package policy

import (
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

func TestKeys(t *testing.T) {
	store := &recorder{}
	e := mustEngine(t, preamble+`
rules:
  - {name: site, limits: [token_bucket 1/s, token_bucket 2/s]}
  - {name: ip, key: [ip], limits: [token_bucket 1/s]}
  - {name: wide, key: [ip/48], limits: [token_bucket 1/s]}
  - {name: who, key: [user | app | ip, route], match: {paths: ['/a/{x}', '/**']}, limits: [token_bucket 1/s]}
  - {name: rest, key: [method, host, path], limits: [token_bucket 1/s]}
  - {name: phone, key: [phone, device], limits: [token_bucket 1/s]}
`, store, EngineConfig{})
	long := strings.Repeat("u", 200)
	for _, c := range []struct {
		r    *httpverdict.Request
		want []string
	}{
		{from("203.0.113.7", "HEAD /a/b"), []string{"site/0 ", "site/1 ", "ip/0 ip=11:203.0.113.7", "wide/0 ip/48=11:203.0.113.7",
			"who/0 ip=11:203.0.113.7,route=6:/a/{x}", "rest/0 method=3:GET,host=16:shop.example.com,path=4:/a/b", "phone/0 phone!,device!"}},
		{from("2001:db8:1:2:3::4", "GET /?phone=%2B49&x=1", "Cookie", "a=b; did=\"d,1\"; c", "X-User-Id", " u-1 "),
			[]string{"site/0 ", "site/1 ", "ip/0 ip=14:2001:db8:1:2::", "wide/0 ip/48=12:2001:db8:1::", "who/0 user=3:u-1,route=3:/**",
				"rest/0 method=3:GET,host=16:shop.example.com,path=1:/", "phone/0 phone=3:+49,device=3:d,1"}},
		{from("::ffff:203.0.113.7", "GET /", "X-User-Id", "", "X-App", long), []string{"site/0 ", "site/1 ", "ip/0 ip=11:203.0.113.7",
			"wide/0 ip/48=11:203.0.113.7", "who/0 app#e7cbc3dbcfa2d7ff1a2ebe0b8b9f4dbe,route=3:/**",
			"rest/0 method=3:GET,host=16:shop.example.com,path=1:/", "phone/0 phone!,device!"}},
	} {
		if v := e.Decide(t.Context(), c.r); !v.Allowed() {
			t.Fatalf("%+v", v)
		}
		got := store.keys()
		for i := range got {
			if strings.Contains(c.want[i], "#") { // which hash is not the point: that it is one is
				got[i], c.want[i] = hashed(t, got[i]), hashed(t, c.want[i])
			}
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", c.r.Path, got, c.want)
		}
	}
}

func hashed(t *testing.T, key string) string {
	before, rest, ok := strings.Cut(key, "#")
	if !ok || len(rest) < 32 || strings.Trim(rest[:32], "0123456789abcdef") != "" {
		t.Errorf("no hash in %q", key)
		return key
	}
	return before + "#" + rest[32:]
}

func TestValuesThatAreNotThere(t *testing.T) {
	store := &recorder{}
	e := mustEngine(t, preamble+"rules: [{name: r, key: [user, app, device, phone], limits: [token_bucket 1/s]}]", store, EngineConfig{})
	untrusted := request("GET /", "X-User-Id", "u-1")
	untrusted.Peer = netip.MustParseAddr("192.0.2.1")
	for _, c := range []struct {
		name string
		r    *httpverdict.Request
		want string
	}{
		{"a trusted header from anybody", untrusted, "user!,app!,device!,phone!"},
		{"a trusted header twice", request("GET /", "X-User-Id", "u-1", "X-User-Id", "u-2"), "user!,app!,device!,phone!"},
		{"a header twice", request("GET /", "X-App", "a", "X-App", "a"), "user!,app!,device!,phone!"},
		{"a cookie twice", request("GET /", "Cookie", "did=1; did=2"), "user!,app!,device!,phone!"},
		{"a cookie in two lines", request("GET /", "Cookie", "did=1", "Cookie", "did=1"), "user!,app!,device!,phone!"},
		{"empty values", request("GET /?phone=", "Cookie", "did=", "X-App", "  "), "user!,app!,device!,phone!"},
		{"a query twice", request("GET /?phone=1&phone=2"), "user!,app!,device!,phone!"},
		{"a query twice, once encoded", request("GET /?phone=1&%70hone=2"), "user!,app!,device!,phone!"},
		{"a query with a bad escape", request("GET /?phone=%zz"), "user!,app!,device!,phone!"},
		{"a query with an encoded name", request("GET /?%70hone=1+2"), "user!,app!,device!,phone=3:1 2"},
		{"a cookie of another case", request("GET /", "Cookie", "DID=1"), "user!,app!,device!,phone!"},
		{"a cookie among broken ones", request("GET /", "Cookie", ";;x;=;did=1;"), "user!,app!,device=1:1,phone!"},
	} {
		e.Decide(t.Context(), c.r)
		if got := store.keys()[0]; got != "r/0 "+c.want {
			t.Errorf("%s: got %q", c.name, got)
		}
	}
}

func TestKeysDoNotCollide(t *testing.T) {
	store := &recorder{}
	e := mustEngine(t, preamble+"rules: [{name: r, key: [app, device | phone], limits: [token_bucket 1/s]}]", store, EngineConfig{})
	values := []string{"", "1", "1:", ",", "1,device=1:1", "1:1,device=1:1", "device!", "!", "#", "=1:1", strings.Repeat("x", 129), "x#y"}
	seen := make(map[string]string)
	for _, app := range values {
		for _, device := range values {
			for _, phone := range values[:4] {
				e.Decide(t.Context(), &httpverdict.Request{Method: "GET", Path: "/", Peer: netip.MustParseAddr("192.0.2.1"),
					Dimensions: map[string]string{"app": app, "device": device, "phone": phone}})
				who := app + "\x00" + device
				if device == "" {
					who = app + "\x00\x00" + phone
				}
				key := store.keys()[0]
				if before, taken := seen[key]; taken && before != who {
					t.Fatalf("%q and %q have the key %q", before, who, key)
				}
				seen[key] = who
			}
		}
	}
}

func TestListsComeFirst(t *testing.T) {
	store := &recorder{}
	e := mustEngine(t, preamble+`
lists:
  office: {cidrs: [203.0.113.0/24]}
  staff: {dimension: user, values: [u-1]}
  scanners: {cidrs: [198.51.100.0/24, 203.0.113.66]}
  tools: {dimension: app, values: [curl]}
  health: {dimension: path, values: [/healthz]}
allow: [office, health, staff]
deny: [scanners, tools]
rules:
  - {name: all, limits: [token_bucket 1/s]}
`, store, EngineConfig{})
	spoofed := request("GET /", "X-User-Id", "u-1")
	spoofed.Peer = netip.MustParseAddr("192.0.2.1")
	for _, c := range []struct {
		name  string
		r     *httpverdict.Request
		kind  httpverdict.Kind
		rule  string
		code  string
		takes int
	}{
		{"allowed by address", from("203.0.113.5", "GET /"), httpverdict.Allow, "list:office", "list_allowed", 0},
		{"denied beats allowed", from("203.0.113.66", "GET /"), httpverdict.Forbidden, "list:scanners", "list_denied", 0},
		{"denied by a header", from("192.0.2.1", "GET /", "X-App", "curl"), httpverdict.Forbidden, "list:tools", "list_denied", 0},
		{"allowed by path", from("192.0.2.1", "GET /healthz"), httpverdict.Allow, "list:health", "list_allowed", 0},
		{"allowed by user", from("192.0.2.1", "GET /", "X-User-Id", "u-1"), httpverdict.Allow, "list:staff", "list_allowed", 0},
		{"not by a user who says so himself", spoofed, httpverdict.Allow, "all", "", 1},
		{"nobody in particular", from("192.0.2.1", "GET /"), httpverdict.Allow, "all", "", 1},
	} {
		store.charges = nil
		v := e.Decide(t.Context(), c.r)
		if v.Kind != c.kind || v.Rule != c.rule || v.Code != c.code || len(store.charges) != c.takes || v.Done != nil {
			t.Errorf("%s: got %+v after %d takes", c.name, v, len(store.charges))
		}
	}
}

func TestWhichRulesCharge(t *testing.T) {
	store := &recorder{}
	e := mustEngine(t, preamble+`
lists: {staff: {dimension: user, values: [u-1]}}
rules:
  - {name: site, limits: [token_bucket 1/s]}
  - {name: get, match: {methods: [GET]}, key: [ip], limits: [token_bucket 1/s]}
  - {name: post, match: {methods: [POST, OPTIONS]}, key: [ip], skip: [staff], limits: [token_bucket 1/s]}
  - {name: device, key: [device], missing: skip, limits: [token_bucket 1/s]}
  - {name: off, key: [ip], mode: off, limits: [token_bucket 1/s]}
  - {name: shadow, mode: shadow, limits: [token_bucket 1/s]}
`, store, EngineConfig{})
	for _, c := range []struct {
		r    *httpverdict.Request
		want string
	}{
		{request("GET /"), "site/0 get/0 shadow/0"},
		{request("HEAD /"), "site/0 get/0 shadow/0"},
		{request("POST /"), "site/0 post/0 shadow/0"},
		{request("POST /", "X-User-Id", "u-1"), "site/0 shadow/0"},
		{request("POST /", "Cookie", "did=1"), "site/0 post/0 device/0 shadow/0"},
		{request("BREW /"), "site/0 shadow/0"},
		{request("OPTIONS /"), "site/0 post/0 shadow/0"},
		{request("OPTIONS *"), "site/0 post/0 shadow/0"},
		{request("OPTIONS /", "Origin", "https://a.example"), "site/0 post/0 shadow/0"},
		{request("OPTIONS /", "Origin", "https://a.example", "Access-Control-Request-Method", "POST", "Cookie", "did=1"), "site/0 shadow/0"},
	} {
		v := e.Decide(t.Context(), c.r)
		var got []string
		for _, charge := range store.charges[len(store.charges)-1] {
			got = append(got, charge.Slot)
			if charge.Cost != 1 || (charge.Mode == headgate.Shadow) != (charge.Slot == "shadow/0") {
				t.Errorf("charge %+v", charge)
			}
		}
		if strings.Join(got, " ") != c.want || !v.Allowed() || len(v.Limits) != len(got)-1 {
			t.Errorf("%s %s: got %v, %+v", c.r.Method, c.r.Path, got, v)
		}
	}
}

func TestMissingDimension(t *testing.T) {
	store := &recorder{}
	e := mustEngine(t, preamble+`
rules:
  - {name: trial, match: {paths: [/pay]}, key: [user], missing: deny, mode: shadow, limits: [token_bucket 1/s]}
  - {name: pay, match: {paths: [/pay], methods: [POST]}, key: [user], missing: deny, limits: [token_bucket 1/s]}
  - {name: login, match: {paths: [/login]}, key: [device], limits: [sliding_log 5/5m], lockout: {for: 1m}}
`, store, EngineConfig{})
	v := e.Decide(t.Context(), request("POST /pay"))
	if v.Kind != httpverdict.Forbidden || v.Rule != "pay" || v.Code != "dimension_missing" || len(store.charges) != 0 {
		t.Errorf("got %+v", v)
	}
	v = e.Decide(t.Context(), request("GET /pay"))
	if !v.Allowed() || !reflect.DeepEqual(v.Shadow, []string{"trial"}) || len(store.charges) != 0 {
		t.Errorf("got %+v", v)
	}
	e.Decide(t.Context(), request("GET /login"))
	if c := store.charges[0][0]; c.Key != "device!" || c.Lockout != nil {
		t.Errorf("the shared bucket can be shut: %+v", c)
	}
	e.Decide(t.Context(), request("GET /login", "Cookie", "did=1"))
	if c := store.charges[1][0]; c.Key != "device=1:1" || c.Lockout == nil || c.Lockout.For != time.Minute || c.Lockout.After != 1 {
		t.Errorf("got %+v", c)
	}
}

func TestDenial(t *testing.T) {
	store := newMemory(t)
	e := mustEngine(t, preamble+`
rules:
  - {name: trial, key: [ip], mode: shadow, limits: [sliding_log 1/1h, sliding_log 2/1h]}
  - {name: login, match: {paths: [/login]}, key: [ip], limits: [sliding_log 100/1m, token_bucket 2/1m burst=2]}
  - {name: all, limits: [token_bucket 100/s]}
response: {style: envelope, retry_jitter: 10%}
`, store, EngineConfig{})
	at := func(d time.Duration) *httpverdict.Verdict {
		return e.At(noon.Add(d)).Decide(t.Context(), from("203.0.113.7", "POST /login"))
	}
	v := at(0)
	if !v.Allowed() || v.Rule != "login" || v.Binding != 1 || len(v.Limits) != 3 || v.Shadow != nil || v.ClientIP.String() != "203.0.113.7" || v.ID == "" {
		t.Errorf("first: %+v", v)
	}
	if v = at(time.Second); !v.Allowed() || !reflect.DeepEqual(v.Shadow, []string{"trial"}) {
		t.Errorf("second: %+v", v)
	}
	v = at(2 * time.Second)
	if v.Kind != httpverdict.Limited || v.Rule != "login" || v.Code != "limited" || v.RetryAfter.String() != "28s" || v.Binding != 1 ||
		v.Limits[1].Name != "login/1" || v.Limits[0].Outcome.Remaining != 98 || v.Limits[0].Policy != `"login";q=100;w=60` ||
		v.Response.Style != "envelope" || v.Response.RetryJitter != 0.1 {
		t.Errorf("third: %+v", v)
	}
	if v = at(30 * time.Second); !v.Allowed() {
		t.Errorf("after the wait: %+v", v)
	}
	if again := at(30 * time.Second); again.ID == v.ID {
		t.Error("two verdicts have one id")
	}
}

func TestLockoutShutsTheKey(t *testing.T) {
	e := mustEngine(t, preamble+`
rules: [{name: login, key: [ip], limits: [sliding_log 1/1m], lockout: {after: 2, within: 10m, for: 30m}}]
`, newMemory(t), EngineConfig{})
	var got []string
	for _, d := range []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second, 20 * time.Minute, 31 * time.Minute} {
		v := e.At(noon.Add(d)).Decide(t.Context(), from("203.0.113.7", "POST /login"))
		got = append(got, v.Kind.String()+" "+v.RetryAfter.String())
	}
	want := []string{"allow 0s", "limited 59s", "locked_out 30m0s", "locked_out 29m59s", "locked_out 10m2s", "allow 0s"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestNeverAndWait(t *testing.T) {
	e := mustEngine(t, preamble+`
rules:
  - {name: shut, match: {paths: [/shut]}, limits: [token_bucket 0/s]}
  - {name: queue, match: {paths: [/queue]}, limits: [leaky_bucket 1/s max_wait=5s, leaky_bucket 1/2s max_wait=5s]}
`, newMemory(t), EngineConfig{})
	d := e.At(noon)
	v := d.Decide(t.Context(), request("GET /shut"))
	if v.Kind != httpverdict.Limited || v.RetryAfter.State != headgate.RetryNever || v.Code != "cost_exceeds_limit" {
		t.Errorf("got %+v", v)
	}
	for _, want := range []time.Duration{0, 2 * time.Second, 4 * time.Second} {
		if v := d.Decide(t.Context(), request("GET /queue")); !v.Allowed() || v.Wait != want || v.Binding != -1 {
			t.Errorf("want a wait of %s, got %+v", want, v)
		}
	}
	if v := d.Decide(t.Context(), request("GET /queue")); v.Kind != httpverdict.Limited || v.Wait != 0 || v.RetryAfter.After != time.Second {
		t.Errorf("got %+v", v)
	}
}

func TestNothingMatches(t *testing.T) {
	e := mustEngine(t, "version: 1", &recorder{err: errors.New("never asked")}, EngineConfig{})
	if v := e.Decide(t.Context(), request("GET /")); !v.Allowed() || v.Rule != "" || v.Binding != -1 || len(v.Limits) != 0 || v.ID == "" {
		t.Errorf("got %+v", v)
	}
}

func TestAtOfAStoreWithoutTime(t *testing.T) {
	doc := preamble + "rules: [{name: r, limits: [token_bucket 1/s]}]"
	for _, e := range []*Engine{
		mustEngine(t, doc, &recorder{}, EngineConfig{}),
		mustEngine(t, doc, newMemory(t), EngineConfig{Fallback: &recorder{}}),
	} {
		if v := e.At(noon).Decide(t.Context(), request("GET /")); v.Kind != httpverdict.Unavailable || v.Code != "unsupported" {
			t.Errorf("got %+v", v)
		}
	}
}

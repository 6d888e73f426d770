package policy

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// count asks n times at a time and returns how many passed.
func count(t testing.TB, e *Engine, at time.Time, n int, r *httpverdict.Request) int {
	t.Helper()
	passed := 0
	for range n {
		v := e.At(at).Decide(t.Context(), r)
		if v.Allowed() {
			passed++
		}
		v.Finish(t.Context(), httpverdict.Result{Status: 200})
	}
	return passed
}

func TestOverrides(t *testing.T) {
	const head = preamble + `
lists: {partners: {dimension: user, values: [u-17]}, office: {cidrs: [203.0.113.0/24]}}
rules:
  - name: r
    key: [user | ip]
    limits: [fixed_window 2/1m]
    overrides:
`
	one := head + "      user: {u-1: [fixed_window 5/1m], u-17: [fixed_window 7/1m]}\n      list: {partners: [fixed_window 4/1m], office: [fixed_window 6/1m]}\n"
	other := head + "      list: {office: [fixed_window 6/1m], partners: [fixed_window 4/1m]}\n      user: {u-17: [fixed_window 7/1m], u-1: [fixed_window 5/1m]}\n"
	for _, doc := range []string{one, other} {
		e := mustEngine(t, doc, newMemory(t), EngineConfig{})
		for _, c := range []struct {
			user, ip string
			want     int
		}{{"u-0", "192.0.2.1", 2}, {"u-1", "192.0.2.1", 5}, {"u-17", "192.0.2.1", 4}, {"u-2", "203.0.113.1", 6}, {"u-17", "203.0.113.1", 0}} {
			if got := count(t, e, noon, 9, from(c.ip, "GET /", "X-User-Id", c.user)); got != c.want {
				t.Errorf("%s from %s: %d passed, want %d", c.user, c.ip, got, c.want)
			}
		}
	}
}

func TestForgeableOverridesAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"device: {d-1: [token_bucket 5/s]}":                               "a client can forge dimension device, and so choose its own limits; only limits of count 0 may stand here",
		"list: {mine: [token_bucket 0/s, fixed_window 1/1m]}":             "a client can forge list mine",
		"device: {d-1: [token_bucket 0/s, fixed_window 0/1m]}":            "",
		"list: {mine: [concurrency 0 ttl=1s]}":                            "",
		"phone: {'138': [sliding_log 0/1m, leaky_bucket 0/s capacity=1]}": "",
	} {
		_, err := Parse("p", []byte(preamble+"lists: {mine: {dimension: device, values: [x]}}\nrules: [{name: r, limits: [token_bucket 1/s], overrides: {"+text+"}}]"), ParseConfig{})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestSchedule(t *testing.T) {
	e := mustEngine(t, preamble+`
rules:
  - name: r
    key: [ip]
    limits: [fixed_window 2/1s]
    schedule:
      - {daily: '12:00-13:00', limits: [fixed_window 12/1s], ramp: 10s}
      - {from: 2026-11-11T00:00:00+08:00, to: 2026-11-11T02:00:00+08:00, limits: [fixed_window 1/1s]}
    overrides: {user: {u-1: [fixed_window 3/1s]}}
`, newMemory(t), EngineConfig{})
	for i, c := range []struct {
		at   time.Time
		user string
		want int
	}{
		{noon.Add(-time.Second), "", 2}, {noon, "", 2}, {noon.Add(5 * time.Second), "", 7}, {noon.Add(10 * time.Second), "", 12},
		{noon.Add(time.Hour - time.Second), "", 12}, {noon.Add(time.Hour), "", 2}, {noon.Add(24*time.Hour + time.Minute), "", 12},
		{time.Date(2026, 11, 10, 15, 59, 59, 0, time.UTC), "", 2}, {time.Date(2026, 11, 10, 16, 0, 0, 0, time.UTC), "", 1},
		{noon.Add(time.Minute), "u-1", 3},
	} {
		r := from(fmt.Sprintf("192.0.2.%d", i), "GET /")
		if c.user != "" {
			r = from("192.0.2.200", "GET /", "X-User-Id", c.user)
		}
		if got := count(t, e, c.at, 20, r); got != c.want {
			t.Errorf("%s: %d passed, want %d", c.at, got, c.want)
		}
	}
}

func TestWarmupBeginsWithTheRule(t *testing.T) {
	const doc = "version: 1\nrules: [{name: r, key: [ip], limits: [fixed_window 100/1s], warmup: {from: 10%, over: 100s}}]"
	store := newMemory(t)
	for i, c := range []struct {
		after time.Duration
		want  int
	}{{0, 10}, {50 * time.Second, 55}, {100 * time.Second, 100}, {time.Hour, 100}} {
		// Every engine is new, as after a start of the process; the policy is the same.
		e := mustEngine(t, doc, store, EngineConfig{})
		r := &httpverdict.Request{Method: "GET", Path: "/", Dimensions: map[string]string{"ip": fmt.Sprintf("192.0.2.%d", i)}}
		if got := count(t, e, noon.Add(c.after), 120, r); got != c.want {
			t.Errorf("after %s: %d passed, want %d", c.after, got, c.want)
		}
	}
	// What is changed elsewhere in the document does not begin it anew; what is changed in the rule does.
	for i, c := range []struct {
		doc  string
		want int
	}{
		{strings.Replace(doc, "rules: [", "rules: [{name: other, limits: [token_bucket 1000/s]}, ", 1), 100},
		{strings.Replace(doc, "100/1s", "200/1s", 1), 20},
		{strings.Replace(doc, "over: 100s", "over: 200s", 1), 10},
		{strings.Replace(doc, "name: r", "name: r2", 1), 10},
	} {
		r := &httpverdict.Request{Method: "GET", Path: "/", Dimensions: map[string]string{"ip": fmt.Sprintf("198.51.100.%d", i)}}
		if got := count(t, mustEngine(t, c.doc, store, EngineConfig{}), noon.Add(time.Hour), 120, r); got != c.want {
			t.Errorf("change %d: %d passed, want %d", i, got, c.want)
		}
	}
}

func TestWarmupNeedsTheStore(t *testing.T) {
	e := mustEngine(t, "version: 1\nrules: [{name: r, limits: [fixed_window 100/1s], warmup: {from: 10%, over: 100s}}]",
		&recorder{err: errors.New("lost")}, EngineConfig{Fallback: newMemory(t)})
	if got := count(t, e, noon, 120, request("GET /")); got != 0 { // a recorder has no time to pass in
		t.Errorf("%d passed", got)
	}
	passed := 0
	for range 120 {
		if e.Decide(t.Context(), request("GET /")).Allowed() {
			passed++
		}
	}
	if passed < 100 {
		t.Errorf("%d passed: a store that is lost must not throttle", passed)
	}
}

func TestCosts(t *testing.T) {
	e := mustEngine(t, preamble+`
rules:
  - name: pay
    match: {paths: [/pay]}
    key: [user]
    cost: int(request.headers["x-amount"])
    min_cost: 5
    limits: [fixed_window 1000/1h]
  - {name: upload, match: {paths: [/upload]}, key: [user], cost: request.bytes, limits: [fixed_window 1000/1h]}
  - {name: tokens, match: {paths: [/chat]}, key: [user], cost: 'int(response.headers["x-tokens"])', min_cost: 10, limits: [fixed_window 100/1h]}
  - {name: bytes, match: {paths: [/file]}, key: [user], cost: response.bytes, limits: [fixed_window 1000/1h]}
`, newMemory(t), EngineConfig{})
	ask := func(r *httpverdict.Request, res httpverdict.Result) string {
		v := e.At(noon).Decide(t.Context(), r)
		v.Finish(t.Context(), res)
		if v.Allowed() {
			return fmt.Sprint("allow ", v.Limits[0].Outcome.Remaining)
		}
		return fmt.Sprint(v.Code, " ", v.Rule)
	}
	user := func(path string, header ...string) *httpverdict.Request {
		return request("POST "+path, append(header, "X-User-Id", "u")...)
	}
	upload := func(n int64) *httpverdict.Request {
		r := user("/upload")
		r.ContentLength = n
		return r
	}
	for _, c := range []struct {
		name string
		r    *httpverdict.Request
		res  httpverdict.Result
		want string
	}{
		{"cost", user("/pay", "X-Amount", "700"), httpverdict.Result{}, "allow 300"},
		{"too much", user("/pay", "X-Amount", "301"), httpverdict.Result{}, "limited pay"},
		{"never", user("/pay", "X-Amount", "1001"), httpverdict.Result{}, "cost_exceeds_limit pay"},
		{"below the least", user("/pay", "X-Amount", "4"), httpverdict.Result{}, "invalid_cost pay"},
		{"negative", user("/pay", "X-Amount", "-4"), httpverdict.Result{}, "invalid_cost pay"},
		{"no number", user("/pay", "X-Amount", "x"), httpverdict.Result{}, "invalid_cost pay"},
		{"missing", user("/pay"), httpverdict.Result{}, "invalid_cost pay"},
		{"beyond every bound", user("/pay", "X-Amount", "9999999999999"), httpverdict.Result{}, "invalid_cost pay"},
		{"the rest", user("/pay", "X-Amount", "300"), httpverdict.Result{}, "allow 0"},
		{"bytes", upload(600), httpverdict.Result{Status: 200}, "allow 400"},
		{"unknown length", upload(-1), httpverdict.Result{Status: 200, RequestBytes: 250}, "allow 400"},
		{"after it", upload(150), httpverdict.Result{Status: 200}, "allow 0"},
		{"empty", upload(0), httpverdict.Result{Status: 200}, "limited upload"},
		{"tokens", user("/chat"), httpverdict.Result{Status: 200, Header: http.Header{"X-Tokens": {"60"}}}, "allow 100"},
		{"no tokens", user("/chat"), httpverdict.Result{Status: 200}, "allow 40"},
		{"more than is left", user("/chat"), httpverdict.Result{Status: 200, Header: http.Header{"X-Tokens": {"500"}}}, "allow 30"},
		{"spent", user("/chat"), httpverdict.Result{Status: 200}, "limited tokens"},
		{"answer", user("/file"), httpverdict.Result{Status: 200, Bytes: 999}, "allow 1000"},
		{"last", user("/file"), httpverdict.Result{Status: 200, Bytes: 999}, "allow 1"},
		{"over", user("/file"), httpverdict.Result{Status: 200, Bytes: 1}, "limited bytes"},
	} {
		if got := ask(c.r, c.res); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// TestCountWhen: what is charged only after the answer admits at most the limit and what is in flight.
func TestCountWhen(t *testing.T) {
	e := mustEngine(t, preamble+`
rules: [{name: login, key: [ip], limits: [sliding_log 3/5m], count_when: response.status == 401, lockout: {for: 30m}}]
`, newMemory(t), EngineConfig{})
	at := func(d time.Duration) *httpverdict.Verdict {
		return e.At(noon.Add(d)).Decide(t.Context(), request("POST /login"))
	}
	for range 10 {
		v := at(0)
		if !v.Allowed() {
			t.Fatalf("a good answer counts: %+v", v)
		}
		v.Finish(t.Context(), httpverdict.Result{Status: 200})
	}
	var flight []*httpverdict.Verdict
	for range 7 {
		flight = append(flight, at(time.Second))
	}
	for _, v := range flight {
		if !v.Allowed() {
			t.Fatalf("in flight: %+v", v)
		}
		v.Finish(t.Context(), httpverdict.Result{Status: 401})
	}
	if v := at(2 * time.Second); v.Kind != httpverdict.LockedOut || v.RetryAfter.After != 30*time.Minute {
		t.Errorf("over: %+v", v)
	}
	if v := at(6 * time.Minute); v.Kind != httpverdict.LockedOut {
		t.Errorf("shut: %+v", v)
	}
	if v := at(31 * time.Minute); !v.Allowed() {
		t.Errorf("open again: %+v", v)
	}
}

func TestMark(t *testing.T) {
	key := []byte("sixteen bytes ok")
	store := newMemory(t)
	const doc = preamble + `
rules:
  - {name: site, limits: [fixed_window 9/1h]}
  - {name: amount, key: [user], limits: [fixed_window 2/1h], on_deny: {action: mark}}
  - {name: speed, key: [user], limits: [fixed_window 3/1h], on_deny: {action: mark}}
`
	if _, err := NewEngine(mustParse(t, doc), store, EngineConfig{}); err == nil || !strings.Contains(err.Error(), `rule "amount" marks requests`) {
		t.Errorf("without a key: %v", err)
	}
	e := mustEngine(t, doc, store, EngineConfig{MarkKey: key})
	var got []string
	for range 10 {
		r := request("POST /pay", "X-User-Id", "u")
		v := e.At(noon).Decide(t.Context(), r)
		if !v.Allowed() {
			got = append(got, v.Code+" "+v.Rule)
			continue
		}
		if v.Over == "" {
			got = append(got, "plain")
			continue
		}
		r.Header.Set(httpverdict.HeaderOver, v.Over)
		m, err := httpverdict.VerifyOver(key, r, noon, time.Minute)
		if err != nil || m.ID != v.ID {
			t.Fatalf("%+v, %v", m, err)
		}
		got = append(got, strings.Join(m.Rules, "+"))
	}
	want := []string{"plain", "plain", "amount", "amount+speed", "amount+speed", "amount+speed", "amount+speed", "amount+speed", "amount+speed", "limited site"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestFallbackAnswer(t *testing.T) {
	e := mustEngine(t, preamble+`
rules:
  - {name: list, match: {paths: [/list]}, limits: [fixed_window 1/1h], on_deny: {action: fallback, status: 200, content_type: application/json, body: '[]'}}
  - {name: strict, match: {methods: [POST], paths: [/list]}, limits: [fixed_window 1/1h]}
`, newMemory(t), EngineConfig{})
	count(t, e, noon, 1, request("POST /list"))
	v := e.At(noon).Decide(t.Context(), request("GET /list"))
	if v.Allowed() || v.Fallback == nil || v.Fallback.Status != 200 || v.Fallback.ContentType != "application/json" || string(v.Fallback.Body) != "[]" {
		t.Errorf("got %+v", v)
	}
	if v := e.At(noon).Decide(t.Context(), request("POST /list")); v.Allowed() || v.Fallback != nil {
		t.Errorf("reject beats all: got %+v", v)
	}
}

func TestStale(t *testing.T) {
	e := mustEngine(t, preamble+`
rules:
  - {name: own, match: {paths: ['/own/**']}, key: [user], limits: [fixed_window 1/1h], on_deny: {action: stale, max_age: 30s}}
  - {name: page, match: {paths: ['/**']}, limits: [fixed_window 100/1h], on_deny: {action: stale, public: true}}
`, newMemory(t), EngineConfig{})
	ask := func(text string, header ...string) *httpverdict.Stale {
		return e.At(noon).Decide(t.Context(), request(text, header...)).Stale
	}
	if s := ask("GET /x"); s == nil || s.Identity != "" || s.MaxAge != time.Minute {
		t.Errorf("public: %+v", s)
	}
	if s := ask("POST /x"); s != nil {
		t.Errorf("a POST: %+v", s)
	}
	a, b := ask("GET /own/1", "X-User-Id", "a"), ask("GET /own/1", "X-User-Id", "b")
	again := ask("GET /own/1", "X-User-Id", "a", "Accept", "*/*") // over the limit now
	if a == nil || b == nil || a.Identity == "" || a.Identity == b.Identity || a.MaxAge != 30*time.Second || !reflect.DeepEqual(a, again) {
		t.Errorf("own: %+v, %+v, %+v", a, b, again)
	}
	for _, h := range []string{"Cookie", "Authorization", "X-Api-Key", "X-Anything"} {
		if s := ask("GET /own/1", "X-User-Id", "a", h, "1"); s.Identity == a.Identity {
			t.Errorf("%s does not tell clients apart", h)
		}
	}
}

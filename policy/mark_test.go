package policy

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// marked says what became of a request: the rules it is over, or why it is denied.
func marked(v *httpverdict.Verdict) string {
	_, over, _ := strings.Cut(v.Over, ";over=")
	over, _, _ = strings.Cut(over, ";")
	switch {
	case !v.Allowed() && v.Fallback != nil:
		return "fallback:" + v.Rule
	case !v.Allowed():
		return v.Code + ":" + v.Rule
	case over != "":
		return over
	}
	return "plain"
}

func TestMarkLeavesOtherRulesInForce(t *testing.T) {
	const head = preamble + "rules:\n" +
		"  - {name: gate, match: {paths: [/gate]}, limits: [fixed_window 100/1h]}\n" +
		"  - {name: mark, key: [user], limits: [fixed_window 1/1d], on_deny: {action: mark}}\n"
	for _, c := range []struct {
		name, rules string
		want        string
	}{
		{"nothing else", "", "plain mark mark mark"},
		{"reject", "  - {name: other, limits: [fixed_window 2/1h]}\n", "plain mark limited:other limited:other"},
		// The rule that marks asks for the longest wait, so it binds; the other one must not be passed by for it.
		{"fallback", "  - {name: other, limits: [fixed_window 2/1h], on_deny: {action: fallback, body: x}}\n", "plain mark fallback:other fallback:other"},
		{"stale", "  - {name: other, limits: [fixed_window 2/1h], on_deny: {action: stale}}\n", "plain mark limited:other limited:other"},
		{"wait in vain", "  - {name: other, limits: [fixed_window 2/1h], on_deny: {action: wait}}\n", "plain mark wait_timeout:other wait_timeout:other"},
		{"shadow", "  - {name: other, mode: shadow, limits: [fixed_window 2/1h]}\n", "plain mark mark mark"},
		{"two that mark", "  - {name: other, limits: [fixed_window 2/1h], on_deny: {action: mark}}\n", "plain mark mark,other mark,other"},
		{"two limits", "  - {name: other, limits: [fixed_window 2/1h, fixed_window 3/1d], on_deny: {action: mark}}\n", "plain mark mark,other mark,other"},
		{"in another store", "  - {name: other, store: local, limits: [fixed_window 2/1h], on_deny: {action: mark}}\n", "plain mark other,mark other,mark"},
		{"rejected in another store", "  - {name: other, store: local, limits: [fixed_window 2/1h]}\n", "plain mark limited:other limited:other"},
	} {
		e := mustEngine(t, head+c.rules, newMemory(t), EngineConfig{Local: newMemory(t), MarkKey: []byte("sixteen bytes ok")})
		var got []string
		for range 4 {
			got = append(got, marked(e.At(noon).Decide(t.Context(), request("GET /", "X-User-Id", "u"))))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: got %s, want %s", c.name, text, c.want)
		}
	}
}

// TestMarkChargesOnce: what a marked request costs the other rules, and what is left of its own.
func TestMarkChargesOnce(t *testing.T) {
	e := mustEngine(t, preamble+`
rules:
  - {name: site, store: local, limits: [fixed_window 100/1h]}
  - {name: mark, key: [user], cost: 'int(request.headers["x-cost"])', limits: [fixed_window 10/1h], on_deny: {action: mark}}
  - {name: log, key: [user], limits: [sliding_log 100/1h]}
`, newMemory(t), EngineConfig{Local: newMemory(t), MarkKey: []byte("sixteen bytes ok")})
	for i, c := range []struct {
		cost string
		want string
	}{{"6", "[99 4 99]"}, {"6", "[98 0 98]"}, {"6", "[97 0 97]"}, {"11", "[96 0 96]"}} {
		v := e.At(noon).Decide(t.Context(), request("GET /", "X-User-Id", "u", "X-Cost", c.cost))
		var left []int64
		for _, l := range v.Limits {
			left = append(left, l.Outcome.Remaining)
		}
		if fmt.Sprint(left) != c.want || !v.Allowed() || (v.Over != "") != (i > 0) {
			t.Errorf("%d: got %v, %+v", i, left, v)
		}
	}
}

func TestMarkOfRulesThatAreSettled(t *testing.T) {
	e := mustEngine(t, preamble+`
rules: [{name: r, key: [user], limits: [fixed_window 10/1h], cost: response.bytes, on_deny: {action: mark}}]
`, newMemory(t), EngineConfig{MarkKey: []byte("sixteen bytes ok")})
	var got []string
	for range 4 {
		v := e.At(noon).Decide(t.Context(), request("GET /", "X-User-Id", "u"))
		got = append(got, fmt.Sprint(marked(v), v.Limits[0].Outcome.Remaining))
		v.Finish(t.Context(), httpverdict.Result{Status: 200, Bytes: 6})
	}
	if text := strings.Join(got, " "); text != "plain10 plain4 r0 r0" {
		t.Errorf("got %s", text)
	}
}

// TestMarkWhileShut: a lockout of a rule that marks shuts nobody out; it makes the mark last.
func TestMarkWhileShut(t *testing.T) {
	e := mustEngine(t, preamble+`
rules: [{name: r, key: [user], limits: [fixed_window 1/1s], lockout: {for: 1h}, on_deny: {action: mark}}]
`, newMemory(t), EngineConfig{MarkKey: []byte("sixteen bytes ok")})
	var got []string
	for _, after := range []time.Duration{0, 1, time.Minute, time.Hour + time.Second} {
		got = append(got, marked(e.At(noon.Add(after)).Decide(t.Context(), request("GET /", "X-User-Id", "u"))))
	}
	if text := strings.Join(got, " "); text != "plain r r plain" {
		t.Errorf("got %s", text)
	}
}

// TestMarkAndWait: one rule lets pass, the other one holds; the mark is of the time at which the request goes on.
func TestMarkAndWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Config{})
		defer store.Close()
		key := []byte("sixteen bytes ok")
		e := mustEngine(t, preamble+`
rules:
  - {name: mark, key: [user], limits: [fixed_window 1/1d], on_deny: {action: mark}}
  - {name: wait, limits: [token_bucket 1/20s burst=1], on_deny: {action: wait, max_wait: 1m}, schedule: [{daily: '00:00-24:00', limits: [token_bucket 1/20s burst=1]}]}
`, store, EngineConfig{MarkKey: key})
		ask := func() *httpverdict.Verdict { return e.Decide(t.Context(), request("GET /", "X-User-Id", "u")) }
		start := time.Now()
		if v := ask(); marked(v) != "plain" {
			t.Fatalf("got %+v", v)
		}
		v := ask()
		if marked(v) != "mark" || time.Since(start) != 20*time.Second {
			t.Errorf("after %s: %+v", time.Since(start), v)
		}
		r := request("GET /", httpverdict.HeaderOver, v.Over)
		if _, err := httpverdict.VerifyOver(key, r, time.Now(), time.Second); err != nil {
			t.Errorf("the mark is of another time: %v", err)
		}
	})
}

// TestMarkedAnswersAreNotKept: what the service says to a request that is over a limit is no answer for others.
func TestMarkedAnswersAreNotKept(t *testing.T) {
	e := mustEngine(t, preamble+`
rules:
  - {name: mark, key: [user], limits: [fixed_window 1/1h], on_deny: {action: mark}}
  - {name: page, limits: [fixed_window 9/1h], on_deny: {action: stale, public: true}}
`, newMemory(t), EngineConfig{MarkKey: []byte("sixteen bytes ok")})
	for i := range 3 {
		v := e.At(noon).Decide(t.Context(), request("GET /", "X-User-Id", "u"))
		if marked := i > 0; !v.Allowed() || (v.Over != "") != marked || (v.Stale == nil) != marked {
			t.Errorf("%d: got %+v", i, v)
		}
	}
}

package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// TestLaterDenialsGiveBack: what one store has charged is as if never charged when another one denies or fails, whatever
// the algorithm.
func TestLaterDenialsGiveBack(t *testing.T) {
	for _, limit := range []string{"token_bucket 2/100d burst=2", "fixed_window 2/100d", "sliding_log 2/100d", "sliding_window 2/100d cells=4",
		"leaky_bucket 1/100d capacity=2", "concurrency 2 ttl=100d"} {
		strict, local := &counting{Store: newMemory(t)}, newMemory(t)
		e := mustEngine(t, preamble+`
rules:
  - {name: near, store: local, limits: [`+limit+`]}
  - {name: trial, mode: shadow, store: local, limits: [`+limit+`]}
  - {name: far, key: [user], on_error: closed, limits: [fixed_window 1/100d]}
`, strict, EngineConfig{Local: local})
		ask := func(user string) *httpverdict.Verdict {
			return e.Decide(t.Context(), request("GET /", "X-User-Id", user))
		}
		var held []*httpverdict.Verdict
		if v := ask("a"); !v.Allowed() {
			t.Fatalf("%s: %+v", limit, v)
		} else {
			held = append(held, v)
		}
		for range 5 {
			if v := ask("a"); v.Allowed() || v.Rule != "far" || v.Done != nil {
				t.Errorf("%s: %+v", limit, v)
			}
		}
		strict.err = &headgate.Error{Code: headgate.CodeUnavailable}
		for range 5 {
			if v := ask("b"); v.Kind != httpverdict.Unavailable || v.Done != nil {
				t.Errorf("%s: %+v", limit, v)
			}
		}
		strict.err = nil
		if v := ask("c"); !v.Allowed() || len(v.Shadow) > 0 {
			t.Errorf("%s: what was charged is not given back: %+v", limit, v)
		} else {
			held = append(held, v)
		}
		if v := ask("d"); v.Allowed() || v.Rule != "near" || len(v.Shadow) != 1 {
			t.Errorf("%s: more was given back than charged: %+v", limit, v)
		}
		for _, v := range held {
			v.Finish(t.Context(), httpverdict.Result{Status: 200})
		}
	}
}

// flaky fails its first takes.
type flaky struct {
	*memstore.Store
	failures int
}

func (f *flaky) Take(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	if f.failures > 0 {
		f.failures--
		d.Reset(0)
		return &headgate.Error{Code: headgate.CodeUnavailable}
	}
	return f.Store.Take(ctx, charges, d)
}

// TestStoreComesBackWhileWaiting: a rule that has dropped out while its store was away is in force, reported and settled
// again when the request that has waited asks the store anew.
func TestStoreComesBackWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, fallback := &flaky{Store: memstore.New(memstore.Config{}), failures: 2}, memstore.New(memstore.Config{})
		defer store.Close()
		defer fallback.Close()
		e := mustEngine(t, preamble+`
rules:
  - {name: wait, limits: [token_bucket 1/s burst=1], on_deny: {action: wait}}
  - {name: open, on_error: open, limits: [fixed_window 2/1d], count_when: "true"}
`, store, EngineConfig{Fallback: fallback})
		var got []string
		for range 4 {
			v := e.Decide(t.Context(), request("GET /"))
			v.Finish(t.Context(), httpverdict.Result{Status: 200})
			word := v.Kind.String()
			for _, l := range v.Limits {
				word += " " + l.Name
			}
			got = append(got, word)
		}
		want := "allow wait|allow wait open|allow wait open|limited wait open"
		if text := strings.Join(got, "|"); text != want {
			t.Errorf("got  %s\nwant %s", text, want)
		}
	})
}

// silent denies without saying which charge has denied.
type silent struct{}

func (silent) Take(_ context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	d.Reset(len(charges))
	for i := range d.Outcomes {
		d.Outcomes[i] = headgate.Outcome{Allowed: true, HasRemaining: true}
	}
	d.Allowed = false
	return nil
}

func (silent) Refund(context.Context, []headgate.Charge, *headgate.Decision) error { return nil }

func TestADenialWithoutAReasonDenies(t *testing.T) {
	for _, action := range []string{"reject", "wait", "mark", "stale", "challenge"} {
		for _, store := range []string{"strict", "local"} {
			e := mustEngine(t, preamble+"rules:\n  - {name: a, limits: [fixed_window 1/1h], on_deny: {action: "+action+"}}\n  - {name: b, store: "+store+", limits: [fixed_window 1/1h], on_deny: {action: "+action+"}}\n",
				silent{}, EngineConfig{MarkKey: []byte("sixteen bytes ok")})
			if v := e.Decide(t.Context(), request("GET /")); v.Kind != httpverdict.Limited {
				t.Errorf("%s, %s: got %+v", action, store, v)
			}
		}
	}
}

// TestRejectTellsItsOwnWait: where one rule rejects and another, which would have done otherwise, asks for a longer wait.
func TestRejectTellsItsOwnWait(t *testing.T) {
	for _, action := range []string{"{action: wait, max_wait: 1ms}", "{action: mark}", "{action: stale}", "{action: fallback, body: x}"} {
		e := mustEngine(t, preamble+`
rules:
  - {name: long, limits: [fixed_window 1/1d], on_deny: `+action+`}
  - {name: reject, limits: [fixed_window 1/1m, fixed_window 1/1h]}
  - {name: short, limits: [fixed_window 1/1s], on_deny: `+action+`}
`, newMemory(t), EngineConfig{MarkKey: []byte("sixteen bytes ok")})
		e.At(noon).Decide(t.Context(), request("GET /"))
		v := e.At(noon).Decide(t.Context(), request("GET /"))
		if v.Kind != httpverdict.Limited || v.Rule != "reject" || v.RetryAfter.After != time.Hour || v.Limits[v.Binding].Name != "reject/1" || v.Fallback != nil || v.Over != "" {
			t.Errorf("%s: got %+v", action, v)
		}
	}
}

// TestRouteIsThatOfTheRule: a condition and a cost see the route of their own rule.
func TestRouteIsThatOfTheRule(t *testing.T) {
	store := &recorder{}
	e := mustEngine(t, preamble+`
rules:
  - {name: wide, match: {paths: ['/**']}, when: dim.route == "/**", limits: [token_bucket 1/s]}
  - {name: narrow, match: {paths: ['/a/{x}']}, when: 'dim.route == "/a/{x}"', limits: [token_bucket 1/s], cost: 'size(dim.route)'}
  - {name: settled, match: {paths: ['/a/**']}, limits: [token_bucket 1/s], count_when: dim.route == "/a/**"}
  - {name: none, when: 'dim.route == "/a/{x}"', key: [route], limits: [token_bucket 1/s]}
`, store, EngineConfig{})
	v := e.Decide(t.Context(), request("GET /a/b"))
	if got := strings.Join(store.keys(), "|"); got != "wide/0 |narrow/0 |settled/0 |none/0 route=6:/a/{x}" || store.charges[0][1].Cost != 6 {
		t.Errorf("got %s", got)
	}
	v.Finish(t.Context(), httpverdict.Result{Status: 200})
	if got := store.settled(); got != "settled/0 settle +" {
		t.Errorf("settled %s", got)
	}
}

// counting counts the takes of a store.
type counting struct {
	*memstore.Store
	takes int
	err   error
}

func (c *counting) Take(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	c.takes++
	if c.err != nil {
		d.Reset(0)
		return c.err
	}
	return c.Store.Take(ctx, charges, d)
}

const twoStores = preamble + `
rules:
  - {name: strict, key: [user], limits: [fixed_window 3/100d]}
  - {name: near, store: local, key: [ip], limits: [fixed_window 5/100d]}
`

func TestStoresAreAskedInOrder(t *testing.T) {
	strict, local := &counting{Store: newMemory(t)}, &counting{Store: newMemory(t)}
	e := mustEngine(t, twoStores, strict, EngineConfig{Local: local})
	ask := func(user, ip string) *httpverdict.Verdict {
		return e.Decide(t.Context(), from(ip, "GET /", "X-User-Id", user))
	}
	for range 3 {
		if v := ask("a", "192.0.2.1"); !v.Allowed() || len(v.Limits) != 2 || v.Limits[0].Name != "near" {
			t.Fatalf("got %+v", v)
		}
	}
	for range 4 { // what was charged locally is given back
		if v := ask("a", "192.0.2.1"); v.Allowed() || v.Rule != "strict" {
			t.Fatalf("got %+v", v)
		}
	}
	for range 2 {
		if v := ask("b", "192.0.2.1"); !v.Allowed() {
			t.Fatalf("got %+v", v)
		}
	}
	before := strict.takes
	if v := ask("c", "192.0.2.1"); v.Allowed() || v.Rule != "near" || len(v.Limits) != 1 {
		t.Fatalf("got %+v", v)
	}
	if strict.takes != before {
		t.Error("a local denial costs a call of the store")
	}
	strict.err = errors.New("lost") // and after a failure too
	for range 9 {
		if v := ask("d", "192.0.2.2"); v.Kind != httpverdict.Unavailable {
			t.Fatalf("got %+v", v)
		}
	}
	strict.err = nil
	for i := range 5 {
		if v := ask(fmt.Sprint("e", i), "192.0.2.2"); !v.Allowed() {
			t.Fatalf("%d: got %+v", i, v)
		}
	}
}

func TestOnError(t *testing.T) {
	lost := &headgate.Error{Code: headgate.CodeUnavailable}
	rule := func(name, onError string) string {
		return "  - {name: " + name + ", limits: [fixed_window 1/100d], on_error: " + onError + "}\n"
	}
	for _, c := range []struct {
		rules string
		want  string // of three requests
	}{
		{rule("a", "local"), "allow limited limited"},
		{rule("a", "open"), "allow allow allow"},
		{rule("a", "closed"), "unavailable unavailable unavailable"},
		{rule("a", "stale"), "unavailable+stale unavailable+stale unavailable+stale"},
		{rule("a", "open") + rule("b", "local"), "allow limited limited"},
		{rule("a", "open") + rule("b", "local") + rule("c", "closed"), "unavailable unavailable unavailable"},
		{rule("a", "local") + rule("b", "stale"), "unavailable+stale unavailable+stale unavailable+stale"},
	} {
		e := mustEngine(t, preamble+"rules:\n"+c.rules, &recorder{err: lost}, EngineConfig{Fallback: newMemory(t)})
		var got []string
		for range 3 {
			v := e.Decide(t.Context(), request("GET /"))
			word := v.Kind.String()
			if v.Stale != nil && !v.Allowed() {
				word += "+stale"
			}
			got = append(got, word)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%sgot  %q\nwant %s", c.rules, got, c.want)
		}
	}
}

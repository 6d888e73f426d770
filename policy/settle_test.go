package policy

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// settled returns what the latest take charged: "slot mode cost" of each charge.
func (r *recorder) settled() string {
	var out []string
	for _, c := range r.charges[len(r.charges)-1] {
		out = append(out, c.Slot+" "+c.Mode.String()+" "+strings.Repeat("+", int(c.Cost)))
	}
	return strings.Join(out, ", ")
}

const settledRules = preamble + `
rules:
  - {name: plain, limits: [fixed_window 9/1h]}
  - {name: wrong, key: [ip], limits: [fixed_window 9/1h, fixed_window 99/1d], count_when: response.status == 401}
  - {name: sized, key: [user], limits: [fixed_window 9/1h], cost: response.bytes}
  - {name: trial, mode: shadow, limits: [fixed_window 9/1h], count_when: response.status == 401}
`

func TestOneTakeSettlesAStore(t *testing.T) {
	store := &recorder{}
	e := mustEngine(t, settledRules, store, EngineConfig{})
	for _, c := range []struct {
		res  httpverdict.Result
		want string
	}{
		{httpverdict.Result{Status: 401, Bytes: 3}, "wrong/0 settle +, wrong/1 settle +, sized/0 settle +++, trial/0 settle +"},
		{httpverdict.Result{Status: 200, Bytes: 2}, "sized/0 settle ++"},
		{httpverdict.Result{}, "sized/0 settle +"},
	} {
		store.charges = nil
		v := e.Decide(t.Context(), from("192.0.2.1", "GET /", "X-User-Id", "u"))
		v.Finish(t.Context(), c.res)
		if got := store.settled(); got != c.want || len(store.charges) != 2 {
			t.Errorf("%+v: got %s in %d takes, want %s", c.res, got, len(store.charges), c.want)
		}
	}
}

func TestDoneSettlesOnce(t *testing.T) {
	store := &recorder{}
	e := mustEngine(t, settledRules, store, EngineConfig{})
	v := e.Decide(t.Context(), request("GET /"))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { v.Done(context.Background(), httpverdict.Result{Status: 401}) })
	}
	wg.Wait()
	if len(store.charges) != 2 {
		t.Errorf("%d takes", len(store.charges))
	}
}

// TestWhoHangsUpIsCharged: a client that goes away as soon as it has the answer pays for it, and frees its slot.
func TestWhoHangsUpIsCharged(t *testing.T) {
	store := newMemory(t)
	e := mustEngine(t, preamble+`
rules:
  - {name: login, key: [ip], limits: [sliding_log 3/5m], count_when: response.status == 401}
  - {name: slots, key: [ip], limits: [concurrency 1 ttl=1h]}
`, impatientSlots{store}, EngineConfig{})
	gone, leave := context.WithCancel(t.Context())
	leave()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for i, ctx := range []context.Context{gone, late, t.Context()} {
		v := e.Decide(t.Context(), request("POST /login"))
		if !v.Allowed() {
			t.Fatalf("%d: %+v", i, v)
		}
		v.Done(ctx, httpverdict.Result{Status: 401})
	}
	if v := e.Decide(t.Context(), request("POST /login")); v.Allowed() {
		t.Errorf("nothing was charged: %+v", v)
	}
}

// impatientSlots refuses whoever has no time any more, as a store on a network does.
type impatientSlots struct{ *memstore.Store }

func (s impatientSlots) Take(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.Store.Take(ctx, charges, d)
}

func (s impatientSlots) Release(ctx context.Context, c *headgate.Charge) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.Store.Release(ctx, c)
}

// TestSettlesWhatWasJudged: who handles the request may change its header meanwhile.
func TestSettlesWhatWasJudged(t *testing.T) {
	store := &recorder{}
	e := mustEngine(t, preamble+`
rules:
  - {name: r, key: [user], limits: [fixed_window 9/1h], cost: 'int(request.headers["x-cost"])', count_when: dim.user == "u" && request.ip == "192.0.2.1"}
`, store, EngineConfig{})
	r := from("192.0.2.1", "GET /", "X-User-Id", "u", "X-Cost", "4")
	v := e.Decide(t.Context(), r)
	r.Header = http.Header{"X-User-Id": {"other"}, "X-Cost": {"1"}}
	v.Finish(t.Context(), httpverdict.Result{Status: 200})
	if got := store.settled(); got != "r/0 settle ++++" {
		t.Errorf("got %s", got)
	}
}

// TestCountsWhatFails: a condition that fails counts, and a cost that fails or is negative costs the least.
func TestCountsWhatFails(t *testing.T) {
	store := &recorder{}
	e := mustEngine(t, preamble+`
rules:
  - {name: when, limits: [fixed_window 9/1h], count_when: 'int(response.headers["x-n"]) > 3'}
  - {name: cost, limits: [fixed_window 9/1h], cost: 'int(response.headers["x-n"])', min_cost: 2}
`, store, EngineConfig{})
	for n, want := range map[string]string{
		"": "when/0 settle +, cost/0 settle ++", "x": "when/0 settle +, cost/0 settle ++", "-7": "cost/0 settle ++",
		"4": "when/0 settle +, cost/0 settle ++++", "99999999999999999999": "when/0 settle +, cost/0 settle ++",
	} {
		v := e.Decide(t.Context(), request("GET /"))
		v.Finish(t.Context(), httpverdict.Result{Status: 200, Header: http.Header{"X-N": {n}}})
		if got := store.settled(); got != want {
			t.Errorf("%q: got %s, want %s", n, got, want)
		}
	}
	v := e.Decide(t.Context(), request("GET /"))
	v.Finish(t.Context(), httpverdict.Result{Status: 200, Header: http.Header{"X-N": {"9000000000000000000"}}})
	if last := store.charges[len(store.charges)-1]; last[1].Cost != headgate.MaxCount {
		t.Errorf("got a cost of %d", last[1].Cost)
	}
}

// TestSettlesWhereItWasChecked: in each store what it has checked, in the fallback what that has decided, and nothing of a
// rule that has dropped out.
func TestSettlesWhereItWasChecked(t *testing.T) {
	const doc = preamble + `
rules:
  - {name: near, store: local, limits: [fixed_window 9/1h], count_when: "true"}
  - {name: far, limits: [fixed_window 9/1h], count_when: "true"}
  - {name: open, limits: [fixed_window 9/1h], count_when: "true", on_error: open}
`
	lost := &headgate.Error{Code: headgate.CodeUnavailable}
	for _, c := range []struct {
		err  error
		want []string // of the local store, the store and the fallback
	}{
		{nil, []string{"near/0 settle +", "far/0 settle +, open/0 settle +", ""}},
		{lost, []string{"near/0 settle +", "far/0 check +, open/0 check +", "far/0 settle +"}},
	} {
		local, store, fallback := &refunding{}, &refunding{}, &refunding{}
		store.err = c.err
		e := mustEngine(t, doc, store, EngineConfig{Local: local, Fallback: fallback})
		v := e.Decide(t.Context(), request("GET /"))
		v.Finish(t.Context(), httpverdict.Result{Status: 200})
		var got []string
		for _, r := range []*refunding{local, store, fallback} {
			if len(r.charges) == 0 {
				got = append(got, "")
				continue
			}
			got = append(got, r.settled())
		}
		if !v.Allowed() || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: got %q of %+v", c.err, got, v)
		}
	}
}

// refunding is a recorder that can be asked to give back.
type refunding struct {
	recorder
	refunds int
}

func (r *refunding) Refund(_ context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	r.refunds++
	return nil
}

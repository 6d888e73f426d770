package policy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// arrival is a request of a trace.
type arrival struct {
	after time.Duration
	user  string
	cost  string
}

func randomArrivals(rnd *rand.Rand, n int, within time.Duration) []arrival {
	arrivals := make([]arrival, n)
	for i := range arrivals {
		arrivals[i] = arrival{
			// Odd times, so that nothing happens at the same instant as something else.
			after: time.Duration(rnd.Int64N(int64(within/time.Microsecond)))*time.Microsecond/2*2 + time.Microsecond,
			user:  fmt.Sprint("u", rnd.IntN(2)), cost: fmt.Sprint(1 + rnd.IntN(2)),
		}
	}
	slices.SortFunc(arrivals, func(a, b arrival) int { return int(a.after - b.after) })
	for i := 1; i < n; i++ {
		arrivals[i].after = max(arrivals[i].after, arrivals[i-1].after+7*time.Microsecond)
	}
	return arrivals
}

func (a arrival) request() *httpverdict.Request {
	return request("GET /", "X-User-Id", a.user, "X-Cost", a.cost)
}

// TestWaitIsTheSameInVirtualTime holds random requests for their turn once on the clock and once with the times passed in:
// each has the same answer, after the same time.
func TestWaitIsTheSameInVirtualTime(t *testing.T) {
	for _, limit := range []string{"token_bucket 2/s burst=2", "token_bucket 3/s burst=4", "fixed_window 3/1s", "sliding_log 4/1s",
		"sliding_window 4/1s cells=2", "leaky_bucket 3/s capacity=3", "leaky_bucket 4/s max_wait=500ms"} {
		for seed := range uint64(6) {
			doc := preamble + "rules:\n  - {name: r, key: [user], cost: 'int(request.headers[\"x-cost\"])', limits: [" + limit + "], on_deny: {action: wait, max_wait: 1300ms}}\n"
			synctest.Test(t, func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(seed, 1))
				arrivals := randomArrivals(rnd, 60, 8*time.Second)
				stores := [2]*memstore.Store{memstore.New(memstore.Config{}), memstore.New(memstore.Config{})}
				defer stores[0].Close()
				defer stores[1].Close()
				start := time.Now()
				want := onTheClock(t, mustEngine(t, doc, stores[0], EngineConfig{}), arrivals)
				e := mustEngine(t, doc, stores[1], EngineConfig{})
				for i, a := range arrivals {
					v := e.At(start.Add(a.after)).Decide(t.Context(), a.request())
					if got := said(v, v.Wait); got != want[i] {
						t.Fatalf("%s, seed %d: request %d at %s of %s costing %s: %s in virtual time, %s on the clock", limit, seed, i, a.after, a.user, a.cost, got, want[i])
					}
				}
			})
		}
	}
}

func said(v *httpverdict.Verdict, wait time.Duration) string {
	if !v.Allowed() {
		return v.Kind.String() + " " + v.Code
	}
	return fmt.Sprint("allow after ", wait)
}

// onTheClock sends requests at their times and returns what became of each.
func onTheClock(t *testing.T, e *Engine, arrivals []arrival) []string {
	start := time.Now()
	out := make([]string, len(arrivals))
	var wg sync.WaitGroup
	for i, a := range arrivals {
		wg.Go(func() {
			time.Sleep(time.Until(start.Add(a.after)))
			v := e.Decide(t.Context(), a.request())
			out[i] = said(v, time.Since(start)-a.after+v.Wait)
		})
	}
	wg.Wait()
	if e.Waiting() != 0 || len(e.lines.lines) != 0 {
		t.Errorf("%d still wait", e.Waiting())
	}
	return out
}

// TestWaitForALimitOfOnesOwn: who waits for a limit of its own keeps nobody back who waits for the limit of all, and is held
// for no longer than either rule allows.
func TestWaitForALimitOfOnesOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Config{})
		defer store.Close()
		e := mustEngine(t, preamble+`
rules:
  - {name: all, limits: [token_bucket 2/s burst=1], on_deny: {action: wait, max_wait: 20s}}
  - {name: own, key: [user], limits: [token_bucket 1/10s burst=1], on_deny: {action: wait, max_wait: 11s}}
`, store, EngineConfig{})
		ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
		got := onTheClock(t, e, []arrival{
			{user: "a", after: ms(1)}, {user: "greedy", after: ms(2)}, {user: "greedy", after: ms(3)}, {user: "b", after: ms(4)},
			{user: "greedy", after: ms(5)}, {user: "c", after: ms(6)}, {user: "greedy", after: ms(600)},
		})
		// All stand in the line for all. When it is its turn, the second of the greedy goes over to the line of its own limit, and
		// so does the third, whose time is up before its turn comes there.
		want := "0s|499ms|10.498s|997ms|overloaded wait_timeout|1.495s|overloaded wait_timeout"
		if text := strings.ReplaceAll(strings.Join(got, "|"), "allow after ", ""); text != want {
			t.Errorf("got  %s\nwant %s", text, want)
		}
	})
}

// stubborn denies, with no time to wait, until it has been asked often enough.
type stubborn struct {
	asked, most int
}

func (s *stubborn) Take(_ context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	s.asked++
	d.Reset(len(charges))
	for i := range d.Outcomes {
		if d.Outcomes[i].Allowed = s.asked > s.most; !d.Outcomes[i].Allowed {
			d.Outcomes[i].Reason = headgate.ReasonLimited
		}
	}
	d.Conclude(charges)
	return nil
}

func (s *stubborn) At(time.Time) headgate.Limiter { return s }

// TestWaitNeverSpins: a store that says "now" and denies again is asked a bounded number of times.
func TestWaitNeverSpins(t *testing.T) {
	const doc = preamble + "rules: [{name: r, limits: [token_bucket 1/s], on_deny: {action: wait, max_wait: 100ms}}]"
	synctest.Test(t, func(t *testing.T) {
		for _, most := range []int{0, 3, 1 << 30} {
			for name, ask := range map[string]func(e *Engine) *httpverdict.Verdict{
				"on the clock": func(e *Engine) *httpverdict.Verdict { return e.Decide(t.Context(), request("GET /")) },
				"virtual":      func(e *Engine) *httpverdict.Verdict { return e.At(noon).Decide(t.Context(), request("GET /")) },
			} {
				store := &stubborn{most: most}
				v := ask(mustEngine(t, doc, store, EngineConfig{}))
				if v.Allowed() != (most < 100) || store.asked > 102 {
					t.Errorf("%s, %d: asked %d times, %+v", name, most, store.asked, v)
				}
			}
		}
	})
}

// TestWaitForASlot: who waits for a slot has it soon after it is free, and asks less and less often.
func TestWaitForASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := memstore.New(memstore.Config{})
		defer memory.Close()
		store := &counting{Store: memory}
		e := mustEngine(t, preamble+"rules: [{name: r, limits: [concurrency 1 ttl=1h], on_deny: {action: wait, max_wait: 1m}}]", store, EngineConfig{})
		first := e.Decide(t.Context(), request("GET /"))
		ends := make(chan time.Duration)
		start := time.Now()
		go func() {
			v := e.Decide(t.Context(), request("GET /"))
			if !v.Allowed() {
				t.Errorf("got %+v", v)
			}
			v.Finish(t.Context(), httpverdict.Result{})
			ends <- time.Since(start)
		}()
		time.Sleep(30 * time.Second)
		first.Finish(t.Context(), httpverdict.Result{})
		if at := <-ends; at > 30*time.Second+maxPollSlots {
			t.Errorf("it got the slot after %s", at)
		}
		if store.takes > 220 {
			t.Errorf("it asked %d times", store.takes)
		}
		v := e.Decide(t.Context(), request("GET /"))
		if !v.Allowed() {
			t.Errorf("the slot is held: %+v", v)
		}
		v.Finish(t.Context(), httpverdict.Result{})
	})
}

// TestWaitUnderStress: however requests come, wait and leave, no more wait than may, no line is left behind, and no more pass
// than the limit lets.
func TestWaitUnderStress(t *testing.T) {
	store := newMemory(t)
	e := mustEngine(t, preamble+`
rules:
  - {name: all, limits: [token_bucket 2000/s burst=10], on_deny: {action: wait, max_wait: 20ms}}
  - {name: own, key: [user], limits: [token_bucket 500/s burst=5], on_deny: {action: wait, max_wait: 30ms}}
`, store, EngineConfig{MaxWaiting: 20})
	var passed, most atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for worker := range 32 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(worker), 7))
			for range 60 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rnd.IntN(25))*time.Millisecond)
				if e.Decide(ctx, request("GET /", "X-User-Id", fmt.Sprint(rnd.IntN(4)))).Allowed() {
					passed.Add(1)
				}
				cancel()
				most.Store(max(most.Load(), int64(e.Waiting())))
			}
		})
	}
	wg.Wait()
	if allowed := 10 + 2000*time.Since(start).Seconds(); float64(passed.Load()) > allowed+1 {
		t.Errorf("%d passed, of at most %.0f", passed.Load(), allowed)
	}
	if e.Waiting() != 0 || len(e.lines.lines) != 0 || most.Load() > 20 || passed.Load() == 0 {
		t.Errorf("%d wait in %d lines, %d waited at a time, %d passed", e.Waiting(), len(e.lines.lines), most.Load(), passed.Load())
	}
}

// TestWaitKeepsOrder holds requests for their turn: in order, for as long as they may, no more than may.
func TestWaitKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Config{})
		defer store.Close()
		e := mustEngine(t, preamble+"rules: [{name: r, limits: [token_bucket 1/s burst=1], on_deny: {action: wait, max_wait: 3s}}]",
			store, EngineConfig{MaxWaiting: 4})
		start := time.Now()
		type end struct {
			n    int
			at   time.Duration
			said string
		}
		ends := make(chan end, 16)
		ask := func(ctx context.Context, n int) {
			v := e.Decide(ctx, request("GET /", "X-User-Id", "u"))
			ends <- end{n, time.Since(start).Round(time.Millisecond), strings.TrimSpace(v.Kind.String() + " " + v.Code)}
		}
		leaving, leave := context.WithCancel(t.Context())
		for n := range 6 {
			ctx := t.Context()
			if n == 2 {
				ctx = leaving
			}
			go ask(ctx, n)
			synctest.Wait()
		}
		time.Sleep(1500 * time.Millisecond)
		leave() // its place is taken by the one behind
		synctest.Wait()
		var got []end
		for range 6 {
			got = append(got, <-ends)
		}
		want := []end{{0, 0, "allow"}, {5, 0, "overloaded overloaded"}, {1, time.Second, "allow"}, {2, 1500 * time.Millisecond, "overloaded wait_timeout"},
			{3, 2 * time.Second, "allow"}, {4, 3 * time.Second, "allow"}}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		if e.Waiting() != 0 || len(e.lines.lines) != 0 {
			t.Errorf("%d still wait", e.Waiting())
		}
	})
}

func TestWaitInVirtualTime(t *testing.T) {
	e := mustEngine(t, preamble+"rules: [{name: r, key: [user], limits: [token_bucket 1/s burst=1], on_deny: {action: wait, max_wait: 3s}}]", newMemory(t), EngineConfig{})
	var got []string
	for _, at := range []time.Duration{0, 0, 100 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond, 4 * time.Second} {
		v := e.At(noon.Add(at)).Decide(t.Context(), request("GET /", "X-User-Id", "u"))
		got = append(got, strings.TrimSpace(fmt.Sprint(v.Kind, " ", v.Wait, " ", v.Code)))
	}
	want := []string{"allow 0s", "allow 1s", "allow 1.9s", "allow 2.8s", "overloaded 0s wait_timeout", "allow 0s"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestWaitLeavesRoomForOthers: the requests of one key cannot take all places.
func TestWaitLeavesRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Config{})
		defer store.Close()
		e := mustEngine(t, preamble+"rules: [{name: r, key: [phone], limits: [token_bucket 1/s burst=1], on_deny: {action: wait, max_wait: 5s}}]",
			store, EngineConfig{MaxWaiting: 16})
		said := make(chan string, 32)
		ask := func(user string) {
			v := e.Decide(t.Context(), request("GET /?phone="+user))
			said <- user + " " + v.Kind.String()
		}
		for range 8 {
			go ask("greedy%00")
			synctest.Wait()
		}
		if e.Waiting() != 2 {
			t.Errorf("%d of one key wait, want 2 of 16 places", e.Waiting())
		}
		for range 2 {
			go ask("other")
			synctest.Wait()
		}
		got := make(map[string]int)
		for range 10 {
			got[<-said]++
		}
		want := map[string]int{"greedy%00 allow": 3, "greedy%00 overloaded": 5, "other allow": 2}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

package resilience

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/limitertest"
	"github.com/headgate-io/headgate/memstore"
)

// TestLimiterConformance: over a store that works it is that store.
func TestLimiterConformance(t *testing.T) {
	limitertest.Run(t, limitertest.Config{New: func(tb testing.TB) headgate.Limiter { return openPair(tb, LimiterConfig{}).Limiter }})
}

func TestLimiterFallsBack(t *testing.T) {
	t.Parallel()
	p := openPair(t, LimiterConfig{Live: func() int { return 4 }})
	c := headgate.One("s", "k", headgate.MustParseLimit("fixed_window 100/day"))
	for i, code := range []headgate.Code{headgate.CodeUnavailable, headgate.CodeTimeout, headgate.CodeIndeterminate, headgate.CodeInternal, headgate.CodeOverloaded, headgate.CodeClosed} {
		p.store.fail(failure(code))
		d, err := headgate.Take(t.Context(), p, c)
		if err != nil || !d.Allowed || d.Outcomes[0].Remaining != int64(24-i) {
			t.Errorf("%s: %+v %v, want a fourth of the limit", code, d, err)
		}
		if n := p.fell.count(string(code)); n != 1 {
			t.Errorf("%s was observed %d times", code, n)
		}
	}
	p.store.fail(errors.New("plain"))
	if _, err := headgate.Take(t.Context(), p, c); err != nil || p.fell.count("internal") != 2 {
		t.Errorf("an error without a code: %v", err)
	}
	p.store.fail(nil)
	if d, err := headgate.Take(t.Context(), p, c); err != nil || d.Outcomes[0].Remaining != 98 {
		t.Errorf("the store is back: %+v %v", d, err) // the indeterminate take was charged there too
	}
}

func TestLimiterReturnsOwnFaults(t *testing.T) {
	t.Parallel()
	p := openPair(t, LimiterConfig{})
	limit := headgate.MustParseLimit("fixed_window 100/day")
	for code, c := range map[headgate.Code]headgate.Charge{
		headgate.CodeInvalidCost: {Slot: "s", Limit: limit, Cost: -1}, headgate.CodeInvalidLimit: {Slot: "s", Cost: 1},
		headgate.CodeInvalidCharge: {Slot: "s", Limit: headgate.MustParseLimit("concurrency 1 ttl=1s"), Cost: 1},
	} {
		if d, err := headgate.Take(t.Context(), p, c); headgate.CodeOf(err) != code || d.Allowed {
			t.Errorf("%s: %+v %v", code, d, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, lost := range []bool{false, true} {
		for i := 0; lost && !p.Lost(); i++ {
			p.store.fail(failure(headgate.CodeUnavailable))
			_, _ = headgate.Take(t.Context(), p, headgate.One("other", "k", limit))
		}
		if d, err := headgate.Take(ctx, p, headgate.One("s", "k", limit)); headgate.CodeOf(err) != headgate.CodeTimeout || d.Allowed {
			t.Errorf("cancelled, lost %t: %+v %v", lost, d, err)
		}
	}
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if d, err := headgate.Take(late, p, headgate.One("s", "k", limit)); err != nil || !d.Allowed {
		t.Errorf("a deadline that has passed: %+v %v", d, err)
	}
	if used(t, p.store.Store, "s") != 0 || used(t, p.local, "s") != 1 {
		t.Error("something was charged for what was refused")
	}
}

// TestLimiterBreaker: when the store fails it is not asked any more, and when it is back it is asked again, without anybody's doing.
func TestLimiterBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := openPair(t, LimiterConfig{})
		c := headgate.One("s", "k", headgate.MustParseLimit("token_bucket 1000000/s"))
		take := func() {
			if d, err := headgate.Take(t.Context(), p, c); err != nil || !d.Allowed {
				t.Fatalf("%+v %v", d, err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		for range 300 {
			take()
		}
		p.store.fail(failure(headgate.CodeUnavailable))
		for i := 0; !p.Lost(); i++ {
			if take(); i > 200 {
				t.Fatal("the breaker stays closed")
			}
		}
		before := p.store.calls.Load()
		for range 1000 { // 10 s
			take()
		}
		if n := p.store.calls.Load() - before; n > 60 {
			t.Errorf("the store was asked %d times in 10 s with the breaker open", n)
		}
		p.store.fail(nil)
		time.Sleep(10 * time.Second)
		before = p.store.calls.Load()
		if take(); p.Lost() || p.store.calls.Load() != before+1 {
			t.Error("the store is back, and not asked")
		}
	})
}

func TestLimiterRefundsWhereItWasDecided(t *testing.T) {
	t.Parallel()
	charges := []headgate.Charge{
		{Slot: "w", Key: "k", Limit: headgate.MustParseLimit("fixed_window 10/day"), Cost: 3},
		{Slot: "t", Key: "k", Limit: headgate.MustParseLimit("token_bucket 10/1d"), Cost: 2},
		{Slot: "c", Key: "k", Limit: headgate.MustParseLimit("concurrency 10 ttl=1h"), Cost: 1, Holder: "h"},
	}
	for _, local := range []bool{false, true} {
		p := openPair(t, LimiterConfig{})
		decide := func(locally bool) (d headgate.Decision) {
			if p.store.fail(nil); locally {
				p.store.fail(failure(headgate.CodeUnavailable))
			}
			if err := p.Take(t.Context(), charges, &d); err != nil || !d.Allowed {
				t.Fatalf("%+v %v", d, err)
			}
			return d
		}
		first, other := decide(local), decide(!local)
		p.store.fail(nil)
		for range 2 { // nothing is given back twice
			if err := p.Refund(t.Context(), charges, &first); err != nil {
				t.Fatal(err)
			}
		}
		for slot, want := range map[string]int64{"w": 3, "t": 2, "c": 1} {
			inStore, inMemory := want, int64(0)
			if !local {
				inStore, inMemory = 0, want
			}
			if s, m := used(t, p.store.Store, slot), used(t, p.local, slot); s != inStore || m != inMemory {
				t.Errorf("local %t, %s: %d left in the store and %d in memory, want %d and %d", local, slot, s, m, inStore, inMemory)
			}
		}
		if err := p.Refund(t.Context(), charges, &other); err != nil {
			t.Fatal(err)
		}
		if s, m := used(t, p.store.Store, "w"), used(t, p.local, "w"); s != 0 || m != 0 {
			t.Errorf("after both: %d in the store, %d in memory", s, m)
		}
	}
}

// TestLimiterRefundsOverflow: receipts of states that keys share tell apart as well.
func TestLimiterRefundsOverflow(t *testing.T) {
	t.Parallel()
	newStore := func() *memstore.Store {
		s := memstore.New(memstore.Config{MaxKeysPerSlot: 1})
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	store, local := &fallible{Store: newStore()}, newStore()
	l := NewLimiter(store, local, LimiterConfig{})
	defer l.Close()
	var charges []headgate.Charge
	for i := range headgate.MaxCharges {
		charges = append(charges, headgate.One("s", string(rune('a'+i)), headgate.MustParseLimit("fixed_window 1000/day")))
	}
	var inStore, inMemory headgate.Decision
	if err := l.Take(t.Context(), charges, &inStore); err != nil || !inStore.Allowed {
		t.Fatal(inStore, err)
	}
	store.fail(failure(headgate.CodeUnavailable))
	if err := l.Take(t.Context(), charges, &inMemory); err != nil || !inMemory.Allowed {
		t.Fatal(inMemory, err)
	}
	store.fail(nil)
	for i := range charges {
		if isLocal(inStore.Outcomes[i].Receipt) || !isLocal(inMemory.Outcomes[i].Receipt) {
			t.Fatalf("charge %d: %+v and %+v cannot be told apart", i, inStore.Outcomes[i].Receipt, inMemory.Outcomes[i].Receipt)
		}
	}
	for _, d := range []*headgate.Decision{&inStore, &inMemory} {
		if err := l.Refund(t.Context(), charges, d); err != nil {
			t.Fatal(err)
		}
		for i := range d.Outcomes {
			if d.Outcomes[i].Receipt.Charged != 0 {
				t.Fatalf("charge %d was not given back", i)
			}
		}
	}
}

func TestLimiterSlots(t *testing.T) {
	t.Parallel()
	limit := headgate.MustParseLimit("concurrency 2 ttl=1m")
	holder := func(name string) headgate.Charge {
		return headgate.Charge{Slot: "c", Key: "k", Limit: limit, Cost: 1, Holder: name}
	}
	p := openPair(t, LimiterConfig{})
	acquire := func(c headgate.Charge) bool {
		d, err := headgate.Take(t.Context(), p, c)
		if err != nil {
			t.Fatal(err)
		}
		return d.Allowed
	}
	holds := func(want ...int64) {
		t.Helper()
		if s, m := used(t, p.store.Store, "c"), used(t, p.local, "c"); s != want[0] || m != want[1] {
			t.Errorf("%d held in the store and %d in memory, want %v", s, m, want)
		}
	}
	before, during := holder("before"), holder("during")
	acquire(before)
	p.store.fail(failure(headgate.CodeUnavailable))
	acquire(during)
	holds(1, 1)
	if alive, err := p.Renew(t.Context(), &during); err != nil || !alive {
		t.Errorf("a local slot while the store is lost: %t %v", alive, err)
	}
	if _, err := p.Renew(t.Context(), &before); headgate.CodeOf(err) != headgate.CodeUnavailable {
		t.Errorf("a slot of the store that is lost: %v", err)
	}
	if err := p.Release(t.Context(), &before); headgate.CodeOf(err) != headgate.CodeUnavailable {
		t.Errorf("a slot of the store that is lost: %v", err)
	}
	p.store.fail(nil)
	if alive, err := p.Renew(t.Context(), &during); err != nil || !alive {
		t.Errorf("a local slot when the store is back: %t %v", alive, err)
	}
	if err := errors.Join(p.Release(t.Context(), &during), p.Release(t.Context(), &before)); err != nil {
		t.Error(err)
	}
	holds(0, 0)
	// Neither has left a tombstone, so the same names may come again, on both sides.
	if !acquire(during) || !acquire(before) {
		t.Error("a name that was released is shut out")
	}
	p.store.fail(failure(headgate.CodeIndeterminate)) // both have it
	acquire(during)
	p.store.fail(nil)
	holds(2, 1)
	if err := p.Release(t.Context(), &during); err != nil {
		t.Error(err)
	}
	holds(1, 0)
}

func TestLimiterResetsBoth(t *testing.T) {
	t.Parallel()
	p := openPair(t, LimiterConfig{})
	c := headgate.One("s", "k", headgate.MustParseLimit("fixed_window 10/day"))
	for _, err := range []error{nil, failure(headgate.CodeUnavailable)} {
		p.store.fail(err)
		if _, err := headgate.Take(t.Context(), p, c); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Reset(t.Context(), "s", "k"); headgate.CodeOf(err) != headgate.CodeUnavailable {
		t.Errorf("the store has not forgotten, and that is not said: %v", err)
	}
	p.store.fail(nil)
	if err := p.Reset(t.Context(), "s", "k"); err != nil || used(t, p.store.Store, "s")+used(t, p.local, "s") != 0 {
		t.Errorf("not forgotten: %v", err)
	}
}

func TestLimiterOverLess(t *testing.T) {
	t.Parallel()
	l := NewLimiter(bare{}, bare{}, LimiterConfig{})
	defer l.Close()
	c := headgate.One("s", "k", headgate.MustParseLimit("token_bucket 1/s"))
	_, renew := l.Renew(t.Context(), &c)
	_, inspect := l.Inspect(t.Context(), "s", "k")
	for name, err := range map[string]error{
		"refund": l.Refund(t.Context(), nil, &headgate.Decision{}), "renew": renew, "release": l.Release(t.Context(), &c),
		"reset": l.Reset(t.Context(), "s", "k"), "inspect": inspect, "at": l.At(time.Now()).Take(t.Context(), nil, &headgate.Decision{}),
	} {
		if headgate.CodeOf(err) != headgate.CodeUnsupported {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLimiterRace: takes, refunds and slots while the store comes and goes.
func TestLimiterRace(t *testing.T) {
	t.Parallel()
	p := openPair(t, LimiterConfig{Live: func() int { return 2 }})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			var d headgate.Decision
			charges := []headgate.Charge{
				headgate.One("t", "k", headgate.MustParseLimit("token_bucket 1000/s burst=1000")),
				{Slot: "c", Key: "k", Limit: headgate.MustParseLimit("concurrency 100 ttl=1m"), Cost: 1, Holder: string(rune('a' + g))},
			}
			for range 500 {
				if err := p.Take(t.Context(), charges, &d); err != nil {
					t.Error(err)
				}
				if d.Allowed {
					_ = p.Refund(t.Context(), charges, &d)
					_ = p.Release(t.Context(), &charges[1])
				}
			}
		})
	}
	for range 50 {
		p.store.fail(failure(headgate.CodeUnavailable))
		_, _ = headgate.Take(t.Context(), p, headgate.One("x", "k", headgate.MustParseLimit("token_bucket 1/s")))
		p.store.fail(nil)
	}
	wg.Wait()
}

func BenchmarkLimiterLost(b *testing.B) {
	limit := headgate.MustParseLimit("token_bucket 1000000000/s burst=1000000000")
	p := openPair(b, LimiterConfig{Live: func() int { return 3 }})
	charges := []headgate.Charge{headgate.One("s", "k", limit)}
	var d headgate.Decision
	run := func(l headgate.Limiter) func(b *testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := l.Take(context.Background(), charges, &d); err != nil || !d.Allowed {
					b.Fatal(d, err)
				}
			}
		}
	}
	p.store.fail(failure(headgate.CodeUnavailable))
	p.cfg.Observer = nil
	for !p.Lost() {
		_ = p.Take(context.Background(), charges, &d)
	}
	b.Run("memory", run(openMemory(b)))
	b.Run("lost", run(p))
}

package chaos

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/demo"
	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/policy"
)

// lender is an instance that lets one request too many through.
type lender struct {
	httpverdict.Decider
	lends int
}

func (l *lender) Decide(ctx context.Context, r *httpverdict.Request) *httpverdict.Verdict {
	v := l.Decider.Decide(ctx, r)
	if !v.Allowed() && l.lends > 0 {
		l.lends--
		v.Kind = httpverdict.Allow
	}
	return v
}

// fickle is a store that can be lost.
type fickle struct {
	*memstore.Store
	lost bool
}

func (f *fickle) Take(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	if f.lost {
		d.Reset(0)
		return &headgate.Error{Code: headgate.CodeUnavailable, Charge: -1, Err: errors.New("lost")}
	}
	return f.Store.Take(ctx, charges, d)
}

// bench is a judge with one instance on a store and a memory of the test's own.
type bench struct {
	*judge
	store *fickle
	cheat *lender
}

func newBench(t *testing.T) *bench {
	t.Helper()
	p, err := demo.Policy()
	if err != nil {
		t.Fatal(err)
	}
	rules, err := newRulebook(p)
	if err != nil {
		t.Fatal(err)
	}
	store, local := memstore.New(memstore.Config{}), memstore.New(memstore.Config{})
	t.Cleanup(func() {
		if err := errors.Join(store.Close(), local.Close()); err != nil {
			t.Error(err)
		}
	})
	b := &bench{store: &fickle{Store: store}}
	engine, err := policy.NewEngine(p, tap{b.store}, policy.EngineConfig{Fallback: local})
	if err != nil {
		t.Fatal(err)
	}
	b.cheat = &lender{Decider: engine}
	b.judge = &judge{instances: []httpverdict.Decider{b.cheat}, rules: rules, seen: newObserver(1)}
	return b
}

// login lets n requests of one device come, each from an address of its own, and returns how many went through.
func (b *bench) login(t *testing.T, from, n int) (through int) {
	t.Helper()
	for i := range n {
		r := request("POST", "/login", "", fmt.Sprintf("198.18.0.%d", from+i), "", "farm-1")
		if b.Decide(t.Context(), r).Allowed() {
			through++
		}
	}
	return through
}

func (b *bench) count(t *testing.T) *tally {
	t.Helper()
	entries, err := b.book.Entries()
	if err != nil {
		t.Fatal(err)
	}
	found, err := count(entries, 1, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestJudge: the shop's 10 sign-ins of a device in an hour, through the whole chain: by the limit nothing is over, and one
// that slips through is found, whoever let it.
func TestJudge(t *testing.T) {
	t.Parallel()
	t.Run("honest", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) { // the store's clock and this one's are the same to the microsecond
			b := newBench(t)
			if n := b.login(t, 10, 15); n != 10 {
				t.Fatalf("%d went through", n)
			}
			if got := b.count(t); got.withData != (demo.WithData{Admitted: 10}) || got.without.Admitted != 0 || b.undated.Load() != 0 {
				t.Errorf("got %+v, %d undated", got, b.undated.Load())
			}
		})
	})
	t.Run("one too many", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.cheat.lends = 1
		if n := b.login(t, 10, 15); n != 11 {
			t.Fatalf("%d went through", n)
		}
		if got := b.count(t); got.withData != (demo.WithData{Admitted: 11, Over: 1}) {
			t.Errorf("got %+v", got.withData)
		}
	})
	t.Run("without the store", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.login(t, 10, 15)
		b.store.lost = true
		if n := b.login(t, 30, 15); n != 10 {
			t.Fatalf("%d went through", n)
		}
		got := b.count(t)
		if got.withData.Over != 0 || got.without.Admitted != 10 || got.without.Over != 10 || !got.without.BoundKept || got.without.Bound != 21 {
			t.Errorf("got %+v, %+v", got.withData, got.without)
		}
		b.cheat.lends = 2 // the limit and one for the instance, and one more
		b.login(t, 50, 2)
		if got := b.count(t); got.without.BoundKept || got.withData.Over != 0 {
			t.Errorf("got %+v, %+v", got.withData, got.without)
		}
	})
}

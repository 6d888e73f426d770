package leasestore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/leasestore"
	"github.com/headgate-io/headgate/memstore"
)

// TestDenyAnswersThatComeLate: a denial is not remembered if, since its take was sent, something began that may have made the
// key free.
func TestDenyAnswersThatComeLate(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := denyCharge("s", "fixed_window 1/1h")
	for name, event := range map[string]func(r *denyRig, d *headgate.Decision){
		"reset":     func(r *denyRig, _ *headgate.Decision) { _ = r.cache.Reset(ctx, "s", "k") },
		"refund":    func(r *denyRig, d *headgate.Decision) { _ = r.cache.Refund(ctx, []headgate.Charge{c}, d) },
		"forget":    func(r *denyRig, _ *headgate.Decision) { _ = r.store.Reset(ctx, "s", "k"); r.cache.Forget("s", "k") },
		"forgetall": func(r *denyRig, _ *headgate.Decision) { _ = r.store.Reset(ctx, "s", "k"); r.cache.ForgetAll() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newDenyRig(t, leasestore.DenyConfig{})
			d := r.spend(c)
			r.up.afterTake = func() { event(r, &d) } // the denial is on its way back
			r.upstream(c)
			r.spend(c)
		})
	}
}

// TestDenyWhileGivingBack: nothing that is known from before a reset or refund is used once it has begun, and nothing that was
// learned while it ran is used once it is over.
func TestDenyWhileGivingBack(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := denyCharge("s", "fixed_window 1/1h")
	t.Run("done, but has not said so", func(t *testing.T) {
		t.Parallel()
		r := newDenyRig(t, leasestore.DenyConfig{})
		d := r.spend(c)
		r.upstream(c)
		r.local(c)
		r.up.afterRefund = func() { r.spend(c) }
		_ = r.cache.Refund(ctx, []headgate.Charge{c}, &d)
		r.upstream(c)
		r.local(c)
		r.up.afterReset = func() { r.spend(c) }
		_ = r.cache.Reset(ctx, "s", "k")
	})
	t.Run("reset", func(t *testing.T) {
		t.Parallel()
		r := newDenyRig(t, leasestore.DenyConfig{})
		r.spend(c)
		r.up.beforeReset = func() { r.upstream(c) }
		_ = r.cache.Reset(ctx, "s", "k")
		r.spend(c)
	})
	t.Run("refund", func(t *testing.T) {
		t.Parallel()
		r := newDenyRig(t, leasestore.DenyConfig{})
		d := r.spend(c)
		r.up.beforeRefund = func() { r.upstream(c) }
		_ = r.cache.Refund(ctx, []headgate.Charge{c}, &d)
		r.spend(c)
	})
}

// TestDenyFromManyGoroutines: exactly the limit is admitted, whoever asks, and what is reset is free at once.
func TestDenyFromManyGoroutines(t *testing.T) {
	t.Parallel()
	const keys, workers, takes, limit = 64, 8, 4000, 10
	store := memstore.New(memstore.Config{})
	defer store.Close()
	cache := leasestore.NewDenyCache(store, leasestore.DenyConfig{MaxKeys: 48}) // too few, so that they push each other out
	charge := headgate.One("s", "", headgate.MustParseLimit(fmt.Sprintf("token_bucket %d/1000h burst=%d", limit, limit)))
	var allowed [keys]atomic.Int64
	run := func(times int, more func(i int, key string)) {
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				var d headgate.Decision
				for i := range times {
					n := rand.IntN(keys)
					c := charge
					c.Key = fmt.Sprint(n)
					if err := cache.Take(context.Background(), []headgate.Charge{c}, &d); err != nil {
						t.Error(err)
						return
					}
					if d.Allowed {
						allowed[n].Add(1)
					}
					more(i, c.Key)
				}
			})
		}
		wg.Wait()
	}
	run(takes, func(int, string) {})
	for i := range allowed {
		if n := allowed[i].Load(); n != limit {
			t.Errorf("key %d: %d were admitted", i, n)
		}
	}
	if s := cache.Stats(); s.Hits == 0 || s.Evictions == 0 || s.Keys > 48 {
		t.Errorf("the cache was not at work: %+v", s)
	}
	run(takes/4, func(i int, key string) {
		switch i % 40 {
		case 0:
			if err := cache.Reset(context.Background(), "s", key); err != nil {
				t.Error(err)
			}
		case 1:
			cache.ForgetAll()
		}
	})
	for i := range keys { // when all is quiet, what is reset is free
		c := charge
		c.Key = fmt.Sprint(i)
		if err := cache.Reset(context.Background(), "s", c.Key); err != nil {
			t.Fatal(err)
		}
		if d, err := headgate.Take(context.Background(), cache, withCost(c, limit)); err != nil || !d.Allowed {
			t.Fatalf("key %d after its reset: %+v, %v", i, d, err)
		}
	}
}

// TestDenyOverTime is the cache with its own clock.
func TestDenyOverTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Config{SweepInterval: -1})
		defer store.Close()
		cache := leasestore.NewDenyCache(store, leasestore.DenyConfig{})
		take := func(want bool, misses uint64) {
			t.Helper()
			d, err := headgate.Take(context.Background(), cache, denyCharge("s", "token_bucket 1/10s burst=1"))
			if err != nil || d.Allowed != want || cache.Stats().Misses != misses {
				t.Fatalf("got %+v, %v, %+v", d, err, cache.Stats())
			}
		}
		take(true, 1)
		take(false, 2)
		time.Sleep(9 * time.Second)
		take(false, 2)
		time.Sleep(time.Second)
		take(true, 3)
	})
}

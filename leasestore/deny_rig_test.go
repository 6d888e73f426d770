package leasestore_test

import (
	"context"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/leasestore"
	"github.com/headgate-io/headgate/memstore"
)

// denyRig is a deny cache over a store, in virtual time.
type denyRig struct {
	t     testing.TB
	now   time.Time
	store *memstore.Store
	up    *witness
	cache *leasestore.DenyCache
}

func newDenyRig(t testing.TB, cfg leasestore.DenyConfig) *denyRig {
	t.Helper()
	r := &denyRig{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return r.now }
	r.store = memstore.New(memstore.Config{Now: clock, SweepInterval: -1})
	t.Cleanup(func() { _ = r.store.Close() })
	r.up = &witness{Store: r.store}
	cfg.Now = clock
	r.cache = leasestore.NewDenyCache(r.up, cfg)
	return r
}

// witness is a store that counts what reaches it. Its hooks run before and after a call, and are called once.
type witness struct {
	*memstore.Store
	calls int

	beforeTake, afterTake, beforeReset, afterReset, beforeRefund, afterRefund func()
}

func once(hook *func()) {
	if h := *hook; h != nil {
		*hook = nil
		h()
	}
}

func (w *witness) Take(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	w.calls++
	once(&w.beforeTake)
	err := w.Store.Take(ctx, charges, d)
	once(&w.afterTake)
	return err
}

func (w *witness) Refund(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	once(&w.beforeRefund)
	err := w.Store.Refund(ctx, charges, d)
	once(&w.afterRefund)
	return err
}

func (w *witness) Reset(ctx context.Context, slot, key string) error {
	once(&w.beforeReset)
	err := w.Store.Reset(ctx, slot, key)
	once(&w.afterReset)
	return err
}

// at sets the clock to so long after the start.
func (r *denyRig) at(offset time.Duration) {
	r.now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(offset)
}

// take takes and tells whether the store was asked.
func (r *denyRig) take(charges ...headgate.Charge) (d headgate.Decision, asked bool) {
	r.t.Helper()
	before := r.up.calls
	d, err := headgate.Take(context.Background(), r.cache, charges...)
	if err != nil {
		r.t.Fatalf("take: %v", err)
	}
	return d, r.up.calls > before
}

// spend takes through the cache and expects the store to allow it.
func (r *denyRig) spend(charges ...headgate.Charge) headgate.Decision {
	r.t.Helper()
	d, asked := r.take(charges...)
	if !d.Allowed || !asked {
		r.t.Fatalf("want the store to allow, got %+v, asked: %v", d, asked)
	}
	return d
}

// upstream expects a denial by the store.
func (r *denyRig) upstream(charges ...headgate.Charge) headgate.Decision {
	r.t.Helper()
	d, asked := r.take(charges...)
	if d.Allowed || !asked {
		r.t.Fatalf("want a denial by the store, got %+v, asked: %v", d, asked)
	}
	return d
}

// local expects a denial by the cache.
func (r *denyRig) local(charges ...headgate.Charge) headgate.Decision {
	r.t.Helper()
	d, asked := r.take(charges...)
	if d.Allowed || asked {
		r.t.Fatalf("want a denial without a call, got %+v, asked: %v", d, asked)
	}
	return d
}

func denyCharge(slot, limit string) headgate.Charge {
	return headgate.One(slot, "k", headgate.MustParseLimit(limit))
}

func withCost(c headgate.Charge, cost int64) headgate.Charge {
	c.Cost = cost
	return c
}

func withMode(c headgate.Charge, m headgate.Mode) headgate.Charge {
	c.Mode = m
	return c
}

func withLockout(c headgate.Charge, l headgate.Lockout) headgate.Charge {
	c.Lockout = &l
	return c
}

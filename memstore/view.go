package memstore

import (
	"context"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// view is the store at a time that was passed in.
type view struct {
	s   *Store
	now time.Time
}

var (
	_ abilities = (*Store)(nil)
	_ abilities = (*view)(nil)
)

// abilities is all that a store and its views can do.
type abilities interface {
	headgate.Limiter
	headgate.Refunder
	headgate.Slots
	headgate.Resetter
	headgate.Inspector
	headgate.Timed
}

func (v *view) Take(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	return v.s.take(ctx, v, charges, d)
}

func (v *view) Refund(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	return v.s.refund(ctx, v, charges, d)
}

func (v *view) Renew(ctx context.Context, c *headgate.Charge) (alive bool, err error) {
	return v.s.renew(ctx, v, c)
}

func (v *view) Release(ctx context.Context, c *headgate.Charge) error { return v.s.release(ctx, v, c) }

func (v *view) Reset(ctx context.Context, slot, key string) error {
	return v.s.reset(ctx, v, slot, key)
}

func (v *view) Inspect(ctx context.Context, slot, key string) (headgate.Inspection, error) {
	return v.s.inspect(ctx, v, slot, key)
}

func (v *view) At(now time.Time) headgate.Limiter { return v.s.At(now) }

// lease tells how long an entry must stay: the second of the store's life before which it is not forgotten, shifted left by
// one, and in the lowest bit whether it was last used at a time that was passed in, so that its own times tell nothing
// about when it is idle.
type lease uint32

const (
	// gone is the lease of an entry that is no longer in the store.
	gone = ^lease(0)
	// stay is how many seconds at least an entry stays that was used at a time that was passed in.
	stay = 3600
	// longest is the last second that a lease can tell, 68 years on.
	longest = int64(gone>>1) - 1
)

func newLease(second int64) lease { return lease(min(second, longest))<<1 | 1 }

func (l lease) second() int64 { return int64(l >> 1) }

// timeless tells whether the entry's times are not those of the store's clock.
func (l lease) timeless() bool { return l&1 != 0 }

// touch notes by which clock a key was used; v is nil for the store's own. The caller holds the entry's lock.
func (v *view) touch(e *entry, now int64) {
	switch {
	case v != nil:
		rest := (e.cell.IdleAt() - now) / time.Second.Microseconds()
		e.keep = max(e.keep, newLease(v.s.age()+max(stay, rest)+1))
	case e.keep.timeless():
		e.keep &^= 1
	}
}

// age is how many whole seconds the store has lived.
func (s *Store) age() int64 { return int64(time.Since(s.born) / time.Second) }

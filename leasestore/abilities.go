package leasestore

import (
	"context"
	"time"

	headgate "github.com/headgate-io/headgate"
)

var _ interface {
	headgate.Limiter
	headgate.Refunder
	headgate.Slots
	headgate.Resetter
	headgate.Inspector
	headgate.Timed
} = (*Store)(nil)

// Refund implements [headgate.Refunder]. Units go back into the lease that they were spent from, or into one of the same
// window or cell, if it is still spent from; if not, to the upstream.
func (s *Store) Refund(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	if err := s.admit(ctx); err != nil {
		return err
	}
	if err := headgate.Validate(charges); err != nil {
		return err
	}
	if len(d.Outcomes) != len(charges) {
		return newError(headgate.CodeInvalidCharge, nil, "the decision is not that of these charges")
	}
	a, _ := s.asks.Get().(*ask)
	defer s.asks.Put(a)
	defer a.reset()
	here, more := false, false
	for i := range charges {
		c, r := charges[i], &d.Outcomes[i].Receipt
		back := s.restore(&c, r)
		c.Cost -= back
		r.Charged -= back
		here = here || back > 0
		more = more || c.Cost > 0 && (r.Charged > 0 || !CanLease(c.Limit))
		a.charges = append(a.charges, c)
	}
	if here && !more {
		return nil
	}
	refunder, ok := s.upstream.(headgate.Refunder)
	if !ok {
		return unsupported("refund")
	}
	err := refunder.Refund(ctx, a.charges, d)
	for i := range charges {
		if h := s.lookup(charges[i].Slot, charges[i].Key); h != nil {
			s.cameBack(h)
		}
	}
	return err
}

// restore puts what a charge would be given back into the leases that it may have been spent from.
func (s *Store) restore(c *headgate.Charge, r *headgate.Receipt) (back int64) {
	n := min(c.Cost, r.Charged)
	if n <= 0 || !CanLease(c.Limit) {
		return 0
	}
	h := s.lookup(c.Slot, c.Key)
	if h == nil {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := s.now()
	s.tidy(h, now)
	for _, l := range h.leases {
		if l.mark == r.Mark {
			back += l.restore(n - back)
		}
	}
	if back > 0 {
		h.pick(1)
	}
	return back
}

// Renew implements [headgate.Slots].
func (s *Store) Renew(ctx context.Context, c *headgate.Charge) (alive bool, err error) {
	if slots, ok := s.upstream.(headgate.Slots); ok {
		return slots.Renew(ctx, c)
	}
	return false, unsupported("renew")
}

// Release implements [headgate.Slots].
func (s *Store) Release(ctx context.Context, c *headgate.Charge) error {
	if slots, ok := s.upstream.(headgate.Slots); ok {
		return slots.Release(ctx, c)
	}
	return unsupported("release")
}

// Reset implements [headgate.Resetter]. Leases of the key are dropped here; other instances may spend theirs until they die.
func (s *Store) Reset(ctx context.Context, slot, key string) error {
	resetter, ok := s.upstream.(headgate.Resetter)
	if !ok {
		return unsupported("reset")
	}
	s.drop(slot, key)
	err := resetter.Reset(ctx, slot, key)
	s.drop(slot, key) // and what has come meanwhile
	return err
}

// Forget drops what was charged ahead for a slot's key, and what is known of its denials, since it was reset elsewhere: none of
// it is spent or given back. It is what a Reset does before it asks the upstream.
func (s *Store) Forget(slot, key string) { s.drop(slot, key) }

// drop forgets all that is held of a key, and gives nothing back.
func (s *Store) drop(slot, key string) {
	h := s.lookup(slot, key)
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.resets++
	for _, l := range h.drop(func(*lease) bool { return true }) {
		unspent := l.retire()
		h.spent += l.granted - unspent
		s.lose(h, unspent)
	}
	h.more.Store(false)
	h.deny(nil)
	h.askAt, h.empty, h.endAt = 0, 0, 0
}

// Inspect implements [headgate.Inspector]. What is held in leases counts as used.
func (s *Store) Inspect(ctx context.Context, slot, key string) (headgate.Inspection, error) {
	if inspector, ok := s.upstream.(headgate.Inspector); ok {
		return inspector.Inspect(ctx, slot, key)
	}
	return headgate.Inspection{}, unsupported("inspect")
}

// At implements [headgate.Timed]. The view is the upstream's own: it leases nothing, so that what it answers is exact.
func (s *Store) At(now time.Time) headgate.Limiter {
	if timed, ok := s.upstream.(headgate.Timed); ok {
		return timed.At(now)
	}
	return unable{}
}

func unsupported(what string) error {
	return newError(headgate.CodeUnsupported, nil, "the store behind it cannot "+what)
}

// unable is a limiter that can do nothing.
type unable struct{}

func (unable) Take(_ context.Context, _ []headgate.Charge, d *headgate.Decision) error {
	d.Reset(0)
	return unsupported("decide this")
}

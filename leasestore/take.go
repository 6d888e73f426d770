package leasestore

import (
	"context"

	headgate "github.com/headgate-io/headgate"
)

// Take implements [headgate.Limiter]. A take of one charge that a lease can pay, or that is known to be denied, takes no lock
// and allocates nothing.
func (s *Store) Take(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	if len(charges) == 1 && ctx.Err() == nil && s.takeOne(&charges[0], d) {
		return nil
	}
	err := s.takeAll(ctx, charges, d)
	if err != nil {
		d.Reset(0)
	}
	return err
}

// takeOne is the common take, of one charge that pays. It reports false, and has done nothing, if it takes more than a look
// at what is in hand. What is in hand was valid once, so a charge that fits it is.
func (s *Store) takeOne(c *headgate.Charge, d *headgate.Decision) bool {
	if c.Mode != headgate.Pay || c.Cost <= 0 || c.Lockout != nil || c.Holder != "" {
		return false
	}
	h := s.front.find(c.Slot, c.Key)
	if h == nil {
		if h = s.lookup(c.Slot, c.Key); h == nil {
			return false
		}
		s.front.keep(h)
	}
	l := h.current.Load()
	if l == nil || l.limit != c.Limit {
		return s.refuse(h, nil, c, d)
	}
	left, ok := l.take(c.Cost)
	if !ok {
		return s.refuse(h, l, c, d)
	}
	// The clock is read after the units are taken, so what counts is a moment at which they were in hand.
	now := s.now()
	if now >= l.deadline {
		l.restore(c.Cost)
		return false
	}
	one(d).Binding = 0
	d.Allowed = true
	l.outcome(c.Cost, left, now, &d.Outcomes[0])
	if low := l.low.Load(); left < low && l.low.CompareAndSwap(low, -1) {
		s.refill(h)
	}
	return true
}

// refuse denies the charge if that is known to be right without a call. l is the current lease, nil if it is none for this
// charge.
func (s *Store) refuse(h *holding, l *lease, c *headgate.Charge, d *headgate.Decision) bool {
	r := h.refusal.Load()
	if r == nil || h.more.Load() {
		return false
	}
	now, held := s.now(), int64(0)
	if l != nil && now < l.deadline {
		held = l.held()
	}
	if held >= c.Cost || !r.denies(c.Limit, c.Cost, held, now) {
		return false
	}
	r.denied.Add(c.Cost)
	one(d).Binding = 0
	r.outcome(c.Cost, held, now, &d.Outcomes[0])
	return true
}

// one makes room for one outcome, which is written whole, and returns the decision.
func one(d *headgate.Decision) *headgate.Decision {
	d.Allowed = false
	if cap(d.Outcomes) == 0 {
		d.Outcomes = make([]headgate.Outcome, 1)
	}
	d.Outcomes = d.Outcomes[:1]
	return d
}

// outcome writes the allowance of a cost that was spent.
func (l *lease) outcome(cost, left, now int64, o *headgate.Outcome) {
	*o = headgate.Outcome{
		Allowed: true, HasRemaining: true, Remaining: left + l.beyond, ResetAfter: wholeMicros(l.resetAt - now),
		Receipt: headgate.Receipt{Charged: cost, Mark: l.mark},
	}
}

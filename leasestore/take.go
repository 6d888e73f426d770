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
	if c.Mode != headgate.Pay || c.Cost <= 0 || c.Lockout != nil || len(c.Holder) > headgate.MaxHolder {
		return false
	}
	h := s.find(c.Slot, c.Key)
	if h == nil {
		return false
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
	l.outcome(c.Cost, left+l.beyond.Load(), now, &d.Outcomes[0])
	if low := l.low.Load(); left < low && l.low.CompareAndSwap(low, -1) {
		s.refill(h)
	}
	return true
}

// few is the number of charges up to which a take works on the stack.
const few = 8

// takeFew is takeOne for several charges, which are valid.
func (s *Store) takeFew(charges []headgate.Charge, d *headgate.Decision) bool {
	if len(charges) > few {
		return false
	}
	var room [few]spending
	spent := room[:0]
	for i := range charges {
		c := &charges[i]
		one, ok := s.spend(c)
		if !ok {
			putAllBack(charges, spent)
			return false
		}
		spent = append(spent, one)
	}
	now := s.now()
	for i := range spent {
		if now >= spent[i].from.deadline {
			putAllBack(charges, spent)
			return false
		}
	}
	d.Reset(len(charges))
	for i := range spent {
		l := spent[i].from
		l.outcome(charges[i].Cost, spent[i].left+l.beyond.Load(), now, &d.Outcomes[i])
		if low := l.low.Load(); spent[i].left < low && l.low.CompareAndSwap(low, -1) {
			s.refill(spent[i].of)
		}
	}
	d.Conclude(charges)
	return true
}

// spending is what a charge has taken from a current lease.
type spending struct {
	of   *holding
	from *lease
	left int64
}

// spend takes what a charge costs from the current lease of its key, if that has it; whether it is dead is still to be seen.
func (s *Store) spend(c *headgate.Charge) (one spending, ok bool) {
	if c.Mode != headgate.Pay || c.Cost <= 0 || c.Lockout != nil {
		return one, false
	}
	if one.of = s.find(c.Slot, c.Key); one.of == nil {
		return one, false
	}
	if one.from = one.of.current.Load(); one.from == nil || one.from.limit != c.Limit {
		return one, false
	}
	one.left, ok = one.from.take(c.Cost)
	return one, ok
}

// putAllBack puts back what was taken a moment ago. What finds its lease retired is lost.
func putAllBack(charges []headgate.Charge, spent []spending) {
	for i := range spent {
		spent[i].from.restore(charges[i].Cost)
		spent[i].of.more.Store(true) // it may be the current one no longer
	}
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
	if !r.denies(c.Limit, c.Cost, held, now) {
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

// outcome writes the allowance of a cost that was spent. Field by field: a whole value is made elsewhere and copied, and the copy waits
// for the last of the fields.
func (l *lease) outcome(cost, remaining, now int64, o *headgate.Outcome) {
	*o = headgate.Outcome{}
	o.Allowed, o.HasRemaining, o.Remaining = true, true, remaining
	o.ResetAfter = wholeMicros(l.resetAt - now)
	o.Receipt.Charged, o.Receipt.Mark = cost, l.mark
}

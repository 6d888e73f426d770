package algo

import (
	"time"

	headgate "github.com/headgate-io/headgate"
)

// step is one charge of a take while it is worked on.
type step struct {
	state  state // normalised; becomes the cell's if it is written
	rules  rules
	judged judgement
	dirty  bool // normalising changed what is stored
	locked bool // denied by the lockout, before the limit was asked
	lock   lock // the lockout after the take, if lockWritten
	// lockWritten: the take changed the lockout
	lockWritten bool
}

// manyCharges is the number of charges up to which a take works on the stack.
const manyCharges = 4

// Take decides a take at a time and writes the cells, one for each charge. The charges have passed headgate.Validate.
// d is overwritten.
func Take(z *Zones, now int64, charges []headgate.Charge, cells []*Cell, d *headgate.Decision) {
	var few [manyCharges]step
	steps := few[:]
	if len(charges) > manyCharges {
		steps = make([]step, len(charges))
	}
	steps = steps[:len(charges)]
	d.Reset(len(charges))
	pass, shadowPass := true, true
	for i := range charges {
		steps[i].judge(&env{limit: charges[i].Limit, now: now, holder: charges[i].Holder, zones: z}, &charges[i], cells[i])
		switch charges[i].Mode {
		case headgate.Pay, headgate.Check:
			pass = pass && steps[i].judged.ok
		case headgate.Shadow:
			shadowPass = shadowPass && steps[i].judged.ok
		}
	}
	for i := range charges {
		paid := pass && (charges[i].Mode != headgate.Shadow || shadowPass)
		e := env{limit: charges[i].Limit, now: now, holder: charges[i].Holder, zones: z}
		steps[i].finish(&e, &charges[i], cells[i], paid, &d.Outcomes[i])
	}
	d.Conclude(charges)
}

// judge fills in the step; it changes nothing that the cell has.
func (s *step) judge(e *env, c *headgate.Charge, cell *Cell) {
	s.state, s.rules = cell.state, rulesOf(e.limit)
	s.dirty = s.rules.normalise(&s.state, e)
	if c.Mode == headgate.Settle {
		s.judged = passes
		return
	}
	if c.Lockout == nil {
		s.judged = s.rules.judge(&s.state, e, c.Cost)
		return
	}
	if cell.lock != nil {
		s.lock = *cell.lock
	}
	if left, healed := s.lock.shut(c.Lockout, e.now); left > 0 {
		s.judged, s.locked = lockedOut(left), true
		s.lockWritten = healed && c.Cost > 0
		return
	}
	s.judged = s.rules.judge(&s.state, e, c.Cost)
	if !s.judged.ok {
		s.lockWritten = true
		if length := s.lock.deny(c.Lockout, e.now); length > 0 {
			s.judged = lockedOut(length)
		}
	}
}

func lockedOut(us int64) judgement {
	return judgement{reason: headgate.ReasonLockedOut, retry: headgate.Retry{After: micros(us)}}
}

// finish writes the cell and the outcome. paid tells whether this charge's part of the take passed.
func (s *step) finish(e *env, c *headgate.Charge, cell *Cell, paid bool, o *headgate.Outcome) {
	o.Allowed, o.Reason, o.RetryAfter = s.judged.ok, s.judged.reason, s.judged.retry
	amount := int64(0)
	if paid && s.judged.ok {
		switch c.Mode {
		case headgate.Pay, headgate.Shadow:
			amount = c.Cost
		case headgate.Settle:
			amount = s.rules.left(&s.state, e, c.Cost)
		}
		o.Wait = time.Duration(s.judged.wait) * time.Microsecond
	}
	switch {
	case amount > 0:
		o.Receipt = headgate.Receipt{Charged: amount, Mark: s.rules.pay(&s.state, e, amount)}
		cell.state = s.state
	case s.dirty && c.Cost > 0 && (c.Mode == headgate.Pay || c.Mode == headgate.Settle):
		cell.state = s.state
	}
	if s.lockWritten {
		k := s.lock
		cell.lock = &k
	}
	s.rules.report(&s.state, e, o)
}

// Refund gives back, for each charge, up to its cost of what its receipt says was charged, and brings the receipts up to
// date: what cannot be given back any more is gone for good.
func Refund(z *Zones, now int64, charges []headgate.Charge, cells []*Cell, d *headgate.Decision) {
	for i := range charges {
		c, r := &charges[i], &d.Outcomes[i].Receipt
		n := min(c.Cost, r.Charged)
		if n <= 0 {
			continue
		}
		e := env{limit: c.Limit, now: now, holder: c.Holder, zones: z}
		rules := rulesOf(c.Limit)
		rules.normalise(&cells[i].state, &e)
		rules.refund(&cells[i].state, &e, n, r.Mark)
		r.Charged -= n
	}
}

// LockedUntil returns the end of the lockout in force at the time, in microseconds; false if there is none.
func (c *Cell) LockedUntil(now int64) (until int64, ok bool) {
	if c.lock == nil || c.lock.length == 0 || c.lock.until <= now {
		return 0, false
	}
	return c.lock.until, true
}

// Algorithm returns the algorithm that judged the cell last; false for a cell never charged.
func (c *Cell) Algorithm() (headgate.Algorithm, bool) {
	if c.state.by == nil {
		return 0, false
	}
	return c.state.by.Algorithm(), true
}

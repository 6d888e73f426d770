package algo

import (
	"time"

	headgate "github.com/headgate-io/headgate"
)

// step is one charge of a take while it is worked on.
type step struct {
	env
	state  state // normalised; becomes the cell's if it is written
	judged judgement
	dirty  bool // normalising changed what is stored
	// lock is the lockout after the take, if lockWritten.
	lock        lock
	lockWritten bool
}

// manyCharges is the number of charges up to which a take works on the stack.
const manyCharges = 8

// Take decides a take at a time and writes the cells, one for each charge, all different. The charges have passed
// headgate.Validate. d is overwritten.
func Take(z *Zones, now int64, charges []headgate.Charge, cells []*Cell, d *headgate.Decision) {
	if len(charges) == 1 {
		TakeOne(z, now, charges, cells[0], d)
		return
	}
	takeMany(z, now, charges, cells, d)
}

// TakeOne is Take for a list of one charge.
func TakeOne(z *Zones, now int64, charges []headgate.Charge, cell *Cell, d *headgate.Decision) {
	if takePlain(now, &charges[0], cell, d) {
		return
	}
	d.Reset(1)
	var s step
	s.judge(z, now, &charges[0], cell)
	s.finish(&charges[0], cell, s.judged.ok, &d.Outcomes[0])
	d.Conclude(charges)
}

func takeMany(z *Zones, now int64, charges []headgate.Charge, cells []*Cell, d *headgate.Decision) {
	d.Reset(len(charges))
	var few [manyCharges]step
	steps := few[:]
	if len(charges) > manyCharges {
		steps = make([]step, len(charges))
	}
	pass, shadowPass := true, true
	for i := range charges {
		steps[i].judge(z, now, &charges[i], cells[i])
		switch charges[i].Mode {
		case headgate.Pay, headgate.Check:
			pass = pass && steps[i].judged.ok
		case headgate.Shadow:
			shadowPass = shadowPass && steps[i].judged.ok
		}
	}
	for i := range charges {
		through := pass && (charges[i].Mode != headgate.Shadow || shadowPass)
		steps[i].finish(&charges[i], cells[i], through, &d.Outcomes[i])
	}
	d.Conclude(charges)
}

// load takes up the state of a cell and normalises it.
func (s *step) load(z *Zones, now int64, c *headgate.Charge, cell *Cell) change {
	s.limit, s.now, s.holder, s.zones = c.Limit, now, c.Holder, z
	s.same = cell.by == c.Limit
	s.prepare()
	s.state = cell.state()
	did := s.rules.normalise(&s.state, cell.by, &s.env)
	s.dirty = did == altered || (did == fresh && cell.by != nil)
	return did
}

// judge fills in the step; it changes nothing that the cell has.
func (s *step) judge(z *Zones, now int64, c *headgate.Charge, cell *Cell) {
	s.load(z, now, c, cell)
	if c.Lockout == nil || c.Mode == headgate.Settle {
		s.judged = s.judgeLimit(c)
		return
	}
	if k := cell.lock(); k != nil {
		s.lock = *k
	}
	if left, healed := s.lock.shut(c.Lockout, now); left > 0 {
		s.judged = lockedOut(left)
		s.lockWritten = healed && c.Cost > 0
		return
	}
	s.judged = s.judgeLimit(c)
	if !s.judged.ok {
		s.lockWritten = true
		if length := s.lock.deny(c.Lockout, now); length > 0 {
			s.judged = lockedOut(length)
		}
	}
}

func (s *step) judgeLimit(c *headgate.Charge) judgement {
	if c.Cost == 0 || c.Mode == headgate.Settle {
		return passes
	}
	return s.rules.judge(&s.state, &s.env, c.Cost)
}

func lockedOut(us int64) judgement {
	return judgement{reason: headgate.ReasonLockedOut, retry: headgate.Retry{After: micros(us)}}
}

// finish writes the cell and the outcome. through tells whether this charge's part of the take passed.
func (s *step) finish(c *headgate.Charge, cell *Cell, through bool, o *headgate.Outcome) {
	o.Allowed, o.Reason, o.RetryAfter = s.judged.ok, s.judged.reason, s.judged.retry
	amount := int64(0)
	if through {
		o.Wait = s.hold(&s.state)
		switch c.Mode {
		case headgate.Pay, headgate.Shadow:
			amount = c.Cost
		case headgate.Settle:
			amount = s.rules.room(&s.state, &s.env, c.Cost)
		}
	}
	switch {
	case amount > 0:
		o.Receipt = headgate.Receipt{Charged: amount, Mark: s.rules.pay(&s.state, &s.env, amount)}
		cell.put(&s.state, &s.env)
	case s.dirty && c.Cost > 0 && (c.Mode == headgate.Pay || c.Mode == headgate.Settle):
		cell.put(&s.state, &s.env)
	}
	if s.lockWritten {
		cell.putLock(s.lock)
	}
	s.report(&s.state, o)
}

// hold is how long a charge that is let in at this state is held.
func (e *env) hold(s *state) time.Duration {
	if e.rules == ruleLeakyBucket {
		return micros(s.ahead(e.now).ceil())
	}
	return 0
}

// report fills in what is left and when it is all back.
func (e *env) report(s *state, o *headgate.Outcome) {
	o.Remaining, o.HasRemaining = e.rules.left(s, e)
	o.ResetAfter = micros(e.rules.resetAfter(s, e))
}

// Refund gives back, for each charge, up to its cost of what its receipt says was charged, and brings the receipts up to
// date: what is past giving back is gone for good.
func Refund(z *Zones, now int64, charges []headgate.Charge, cells []*Cell, d *headgate.Decision) {
	for i := range charges {
		c, r := &charges[i], &d.Outcomes[i].Receipt
		n := min(c.Cost, r.Charged)
		if n <= 0 {
			continue
		}
		var s step
		if did := s.load(z, now, c, cells[i]); did == fresh || !s.rules.refund(&s.state, &s.env, n, r.Mark) {
			r.Charged = 0
			continue
		}
		r.Charged -= n
		cells[i].put(&s.state, &s.env)
	}
}

func micros(us int64) time.Duration { return time.Duration(min(us, maxTold)) * time.Microsecond }

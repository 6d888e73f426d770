package oracle

import (
	"time"

	headgate "github.com/headgate-io/headgate"
)

// state is what the store keeps of one key under one algorithm. It is never changed in place.
type state interface {
	algorithm() headgate.Algorithm
	// inspect returns what is used at a time and when it will be as if never used.
	inspect(now int64) (used, idleAt int64)
}

// model is a normalised copy of a state at one time under one limit.
type model interface {
	// judge answers for a cost ≥ 1.
	judge(cost int64, holder string) answer
	// room is how much of a cost a settling charge takes.
	room(cost int64, holder string) int64
	// charge takes and returns the mark of its receipt.
	charge(cost int64, holder string) (mark int64)
	// refund gives back, or reports false if the receipt is too late.
	refund(amount, mark int64, holder string) bool
	// left returns what remains; ok is false if that cannot be said.
	left() (units int64, ok bool)
	// wait is how long a charge let in now would be held.
	wait() int64
	// reset is the time until as if never used.
	reset() int64
	// stored is the state to keep, nil if it is as if never used.
	stored() state
}

// answer is a judgement.
type answer struct {
	allowed bool
	reason  headgate.Reason
	retry   headgate.Retry
}

var pass = answer{allowed: true}

func never() answer {
	return answer{reason: headgate.ReasonCostExceedsLimit, retry: headgate.Retry{State: headgate.RetryNever}}
}

func after(reason headgate.Reason, us int64) answer {
	return answer{reason: reason, retry: headgate.Retry{After: micros(us)}}
}

// micros is a time as it is told.
func micros(us int64) time.Duration {
	return time.Duration(min(us, inMicros(headgate.MaxTold))) * time.Microsecond
}

func inMicros(d time.Duration) int64 { return int64(d / time.Microsecond) }

// change says what normalising did to a stored state.
type change int

const (
	kept    change = iota // nothing to write
	changed               // healed or converted
	fresh                 // the state belongs to another kind of limit, or there was none
)

// plan is one charge of a take, judged and not yet written.
type plan struct {
	id     identity
	charge *headgate.Charge
	entry  entry
	model  model
	change change
	answer answer
}

func (s *store) plan(now int64, c *headgate.Charge) *plan {
	p := &plan{id: identity{c.Slot, c.Key}, charge: c}
	p.entry = s.entries[p.id]
	p.model, p.change = s.normalise(p.entry.state, c.Limit, now)
	p.answer = p.judge(now)
	return p
}

func (p *plan) judge(now int64) answer {
	c := p.charge
	if c.Mode == headgate.Settle {
		return pass
	}
	if c.Lockout == nil {
		return p.judgeLimit()
	}
	l := p.entry.lock.at(now, c.Lockout)
	if l.until > now {
		if c.Cost > 0 {
			p.entry.lock = &l
		}
		return after(headgate.ReasonLockedOut, l.until-now)
	}
	a := p.judgeLimit()
	if a.allowed {
		return a
	}
	if length := l.deny(now, c.Lockout); length > 0 {
		a = after(headgate.ReasonLockedOut, length)
	}
	p.entry.lock = &l
	return a
}

func (p *plan) judgeLimit() answer {
	if p.charge.Cost == 0 {
		return pass
	}
	return p.model.judge(p.charge.Cost, p.charge.Holder)
}

// settleUp writes what one charge of a decided take leaves and returns its outcome. through tells whether the charge's
// part of the take passed.
func (s *store) settleUp(p *plan, through bool) headgate.Outcome {
	c, a := p.charge, p.answer
	o := headgate.Outcome{Allowed: a.allowed, Reason: a.reason, RetryAfter: a.retry}
	if through && a.allowed {
		o.Wait = micros(p.model.wait())
	}
	writes := c.Cost > 0 && (c.Mode == headgate.Pay || c.Mode == headgate.Settle)
	if through && c.Mode != headgate.Check && c.Cost > 0 {
		amount := c.Cost
		if c.Mode == headgate.Settle {
			amount = p.model.room(c.Cost, c.Holder)
		}
		if amount > 0 {
			o.Receipt = headgate.Receipt{Charged: amount, Mark: p.model.charge(amount, c.Holder)}
			p.change, writes = changed, true
		}
	}
	if p.change == fresh && p.entry.state == nil {
		p.change = kept // nothing was there to be replaced
	}
	if writes && p.change != kept {
		p.entry.state = p.model.stored()
	}
	s.put(p.id, p.entry)
	o.Remaining, o.HasRemaining = p.model.left()
	o.ResetAfter = micros(p.model.reset())
	return o
}

// normalise returns the model of a stored state under a limit: healed first, then converted.
func (s *store) normalise(old state, limit headgate.Limit, now int64) (model, change) {
	switch l := limit.(type) {
	case headgate.TokenBucket:
		return newToken(old, l, now)
	case headgate.LeakyBucket:
		return newLeaky(old, l, now)
	case headgate.FixedWindow:
		return newWindow(old, l, s.location(l), now)
	case headgate.SlidingLog:
		return newLog(old, l, now)
	case headgate.SlidingWindow:
		return newCells(old, l, now)
	case headgate.Concurrency:
		return newSlots(old, l, now)
	}
	return nothing{}, fresh
}

// nothing is the model of every limit of count 0.
type nothing struct{}

func (nothing) judge(int64, string) answer       { return never() }
func (nothing) room(int64, string) int64         { return 0 }
func (nothing) charge(int64, string) int64       { return 0 }
func (nothing) refund(int64, int64, string) bool { return false }
func (nothing) left() (int64, bool)              { return 0, true }
func (nothing) wait() int64                      { return 0 }
func (nothing) reset() int64                     { return 0 }
func (nothing) stored() state                    { return nil }

package redisstore

import (
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/algo"
)

// The script decides and writes; what it answers is the state before the charge, and whether it charged. What is left,
// how long to wait and when all is back again are worked out here, by algo where the state is in numbers: the script saves
// the time, and both must come to the same verdict.

// answerer works out the outcomes of one take.
type answerer struct {
	zones   *algo.Zones
	now     int64 // of the store, µs
	charges []headgate.Charge
	parts   []part
	paid    bool // every paying and checking charge passed
	shadow  bool // every shadow charge passed
}

// judge finds out which parts of the take are let through.
func (a *answerer) judge() {
	a.paid, a.shadow = true, true
	for i := range a.charges {
		if a.parts[i].flags&replyPasses != 0 {
			continue
		}
		switch a.charges[i].Mode {
		case headgate.Pay, headgate.Check:
			a.paid = false
		case headgate.Shadow:
			a.shadow = false
		}
	}
}

func (a *answerer) through(i int) bool {
	return a.paid && (a.charges[i].Mode != headgate.Shadow || a.shadow)
}

// charged is how much the script took for a charge.
func (a *answerer) charged(i int) int64 {
	switch p := &a.parts[i]; {
	case p.flags&replyCharged == 0:
		return 0
	case p.flags&replyAmount != 0:
		return p.amount
	}
	return a.charges[i].Cost
}

// outcome writes the outcome of charge i, of which amount was taken for good.
func (a *answerer) outcome(i int, amount int64, o *headgate.Outcome) *headgate.Error {
	c, p := &a.charges[i], &a.parts[i]
	*o = headgate.Outcome{}
	var ok bool
	switch kindOf(c.Limit) {
	case kindLog:
		ok = a.logOutcome(i, amount, o)
	case kindHolders:
		ok = a.slotOutcome(i, amount, o)
	default:
		ok = a.plainOutcome(i, amount, o)
	}
	if c.Mode == headgate.Settle {
		o.Allowed, o.Reason, o.RetryAfter = true, headgate.ReasonNone, headgate.Retry{}
	}
	if p.flags&replyShut != 0 {
		o.Allowed, o.Reason = false, headgate.ReasonLockedOut
		o.RetryAfter = headgate.Retry{After: micros(p.shut)}
	}
	if !o.Allowed || !a.through(i) {
		o.Wait = 0
	}
	if !ok || o.Allowed != (p.flags&replyPasses != 0) {
		return badReply()
	}
	return nil
}

func micros(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

func (a *answerer) plainOutcome(i int, amount int64, o *headgate.Outcome) bool {
	c, p := &a.charges[i], &a.parts[i]
	var stored *algo.Stored
	if p.state != "" {
		stored = new(algo.Stored)
		if !readStored(c.Limit, p.state, stored) {
			return false
		}
	}
	seen := algo.See(a.zones, c.Limit, a.now, stored)
	if c.Mode != headgate.Settle {
		seen.Judge(c.Cost, o)
	}
	if c.Limit.Algorithm() == headgate.AlgLeakyBucket {
		seen.Report(o)
		o.Wait = o.ResetAfter // the queue before this charge
	}
	if amount > 0 {
		o.Receipt = seen.Pay(amount)
	}
	seen.Report(o)
	return true
}

func (a *answerer) logOutcome(i int, amount int64, o *headgate.Outcome) bool {
	c, p := &a.charges[i], &a.parts[i]
	l := c.Limit.(headgate.SlidingLog)
	period := l.Period().Microseconds()
	var live, newest, due int64
	if p.state != "" {
		if p.state[0] != formatLog {
			return false
		}
		live, newest, due = getUint(p.state[1:], 2), getInt(p.state[3:]), getInt(p.state[10:])
	}
	switch {
	case c.Cost == 0 || live+c.Cost <= l.Count():
		o.Allowed = true
	case c.Cost > l.Count():
		o.Reason, o.RetryAfter.State = headgate.ReasonCostExceedsLimit, headgate.RetryNever
	default:
		o.Reason, o.RetryAfter.After = headgate.ReasonLimited, micros(due+period-a.now)
	}
	if amount > 0 {
		if live == 0 {
			newest = a.now
		}
		newest = max(newest, a.now)
		live += amount
		o.Receipt = headgate.Receipt{Charged: amount, Mark: newest}
	}
	o.HasRemaining, o.Remaining = true, max(0, l.Count()-live)
	if live > 0 {
		o.ResetAfter = micros(newest + period - a.now)
	}
	return true
}

// What the script says of a holder.
const (
	holderHasSlot = 1
	holderGone    = 2
)

func (a *answerer) slotOutcome(i int, amount int64, o *headgate.Outcome) bool {
	c, p := &a.charges[i], &a.parts[i]
	l := c.Limit.(headgate.Concurrency)
	var live, latest, facts int64
	if p.state != "" {
		if p.state[0] != formatHolders {
			return false
		}
		live, latest, facts = getUint(p.state[1:], 6), getInt(p.state[7:]), int64(p.state[14])
	}
	switch {
	case c.Cost == 0 || (facts&holderGone == 0 && (facts&holderHasSlot != 0 || live < l.Count())):
		o.Allowed = true
	case facts&holderGone != 0:
		o.Reason, o.RetryAfter.State = headgate.ReasonGone, headgate.RetryUnknown
	default:
		o.Reason, o.RetryAfter.State = headgate.ReasonLimited, headgate.RetryUnknown
	}
	if amount > 0 {
		if facts&holderHasSlot == 0 {
			if live == 0 {
				latest = a.now
			}
			live, latest = live+1, max(latest, a.now+l.TTL().Microseconds())
		}
		o.Receipt = headgate.Receipt{Charged: amount, Mark: a.now}
	}
	o.HasRemaining, o.Remaining = true, max(0, l.Count()-live)
	if live > 0 && latest > a.now {
		o.ResetAfter = micros(latest - a.now)
	}
	return true
}

package algo

import (
	"time"

	headgate "github.com/headgate-io/headgate"
)

// takePlain is a shortcut for the most common takes: one paying charge, without a lockout, on a state that needs no
// normalising, of a limit that needs no fractions. It reports false, and has done nothing, if it is not one of them.
// It decides as the long way does; a property test holds the two together.
func takePlain(now int64, c *headgate.Charge, cell *Cell, d *headgate.Decision) bool {
	if c.Mode != headgate.Pay || c.Lockout != nil || c.Cost == 0 || cell.by != c.Limit {
		return false
	}
	switch l := c.Limit.(type) {
	case headgate.TokenBucket:
		pace, rem, _ := l.Pace()
		if rem != 0 || pace == 0 || cell.extra != 0 || c.Cost > l.Burst() {
			return false
		}
		return plainTokenBucket(now, c.Cost, pace, l.Burst()*pace, cell, d)
	case headgate.FixedWindow:
		if cell.count == 0 || now < cell.at || now >= cell.extra || c.Cost > l.Count() {
			return false
		}
		plainFixedWindow(now, c.Cost, l.Count(), cell, d)
		return true
	}
	return false
}

// plainTokenBucket takes of a bucket whose pace and fill time are whole microseconds.
func plainTokenBucket(now, cost, pace, most int64, cell *Cell, d *headgate.Decision) bool {
	ahead := max(cell.at-now, 0)
	if ahead > most {
		return false // the clock went back
	}
	o := one(d)
	want := ahead + cost*pace
	if want > most {
		*o = headgate.Outcome{Reason: headgate.ReasonLimited, RetryAfter: headgate.Retry{After: micros(want - most)}}
		want = ahead
	} else {
		*o = headgate.Outcome{Allowed: true, Receipt: headgate.Receipt{Charged: cost, Mark: now + want}}
		cell.at = now + want
	}
	o.HasRemaining, o.Remaining, o.ResetAfter = true, (most-want)/pace, micros(want)
	d.Allowed = o.Allowed
	return true
}

// plainFixedWindow takes of the window in force.
func plainFixedWindow(now, cost, count int64, cell *Cell, d *headgate.Decision) {
	o := one(d)
	rest := time.Duration(cell.extra-now) * time.Microsecond
	if cell.count+cost > count {
		*o = headgate.Outcome{Reason: headgate.ReasonLimited, RetryAfter: headgate.Retry{After: rest}}
	} else {
		*o = headgate.Outcome{Allowed: true, Receipt: headgate.Receipt{Charged: cost, Mark: cell.at}}
		cell.count += cost
	}
	o.HasRemaining, o.Remaining, o.ResetAfter = true, max(0, count-cell.count), rest
	d.Allowed = o.Allowed
}

// one makes a decision of one outcome, that of the binding charge, which the caller overwrites.
func one(d *headgate.Decision) *headgate.Outcome {
	if cap(d.Outcomes) == 0 {
		d.Outcomes = make([]headgate.Outcome, 1)
	}
	d.Binding, d.Outcomes = 0, d.Outcomes[:1]
	return &d.Outcomes[0]
}

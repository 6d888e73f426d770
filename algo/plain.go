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
		return plainBucket{pace, l.Burst() * pace}.take(now, c.Cost, cell, d)
	case headgate.FixedWindow:
		if cell.count == 0 || now < cell.at || now >= cell.extra || c.Cost > l.Count() {
			return false
		}
		plainFixedWindow(now, c.Cost, l.Count(), cell, d)
		return true
	}
	return false
}

// plainBucket is a token bucket whose pace and time to full are whole microseconds.
type plainBucket struct{ pace, most int64 }

func (b plainBucket) take(now, cost int64, cell *Cell, d *headgate.Decision) bool {
	ahead := max(cell.at-now, 0)
	if ahead > b.most {
		return false // the clock went back
	}
	o := one(d)
	if want := ahead + cost*b.pace; want <= b.most {
		ahead = want
		cell.at = now + want
		allowed(o, d, cost, cell.at)
	} else {
		limited(o, d, micros(want-b.most))
	}
	o.Remaining, o.ResetAfter = (b.most-ahead)/b.pace, micros(ahead)
	return true
}

// plainFixedWindow takes of the window in force.
func plainFixedWindow(now, cost, count int64, cell *Cell, d *headgate.Decision) {
	o := one(d)
	rest := micros(cell.extra - now)
	if cell.count+cost <= count {
		cell.count += cost
		allowed(o, d, cost, cell.at)
	} else {
		limited(o, d, rest)
	}
	o.Remaining, o.ResetAfter = max(0, count-cell.count), rest
}

// one makes a decision of one outcome, that of the binding charge. The caller overwrites all of its fields.
func one(d *headgate.Decision) *headgate.Outcome {
	if cap(d.Outcomes) == 0 {
		d.Outcomes = make([]headgate.Outcome, 1)
	}
	d.Binding, d.Outcomes = 0, d.Outcomes[:1]
	return &d.Outcomes[0]
}

// allowed and limited overwrite an outcome but for what is left and when it is all back.
func allowed(o *headgate.Outcome, d *headgate.Decision, cost, mark int64) {
	d.Allowed = true
	o.Allowed, o.Reason, o.HasRemaining, o.Wait = true, headgate.ReasonNone, true, 0
	o.RetryAfter.State, o.RetryAfter.After = headgate.RetryAfter, 0
	o.Receipt.Charged, o.Receipt.Mark = cost, mark
}

func limited(o *headgate.Outcome, d *headgate.Decision, wait time.Duration) {
	d.Allowed = false
	o.Allowed, o.Reason, o.HasRemaining, o.Wait = false, headgate.ReasonLimited, true, 0
	o.RetryAfter.State, o.RetryAfter.After = headgate.RetryAfter, wait
	o.Receipt.Charged, o.Receipt.Mark = 0, 0
}

package headgate

import (
	"math"
	"math/bits"
	"time"
)

// Decision is the answer of a take: a denial is a value, never an error. Pass the same Decision to many takes to reuse
// its memory; it must not be used by two goroutines at a time. After an error it is empty and denies.
type Decision struct {
	// Allowed tells whether every paying and checking charge passed. Nothing was charged if not.
	Allowed bool
	// Binding is the index of the charge that decided: of a denial, the one that asks for the longest wait (never before
	// all, unknown after all); of an allowance, the one with the least left in proportion to its cost. -1 if there is none.
	Binding int
	// Outcomes has the answer for each charge, in the order of the charges.
	Outcomes []Outcome
}

// Reason tells why a charge was denied.
type Reason uint8

const (
	// ReasonNone: the charge passed.
	ReasonNone Reason = iota
	// ReasonLimited: the limit has too little left; it may have more later.
	ReasonLimited
	// ReasonCostExceedsLimit: the cost can never fit.
	ReasonCostExceedsLimit
	// ReasonLockedOut: the key is shut.
	ReasonLockedOut
	// ReasonGone: this holder's slot was released before it was acquired.
	ReasonGone
)

var reasonNames = [...]string{"", "limited", "cost_exceeds_limit", "locked_out", "gone"}

// String returns the reason as it is shown in logs and answers, "" for ReasonNone.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "reason(?)"
}

// Outcome is the part of a decision for one charge. In a denied take every charge still has the outcome that it would
// have had alone, and none was charged.
type Outcome struct {
	// Allowed tells whether this charge passed.
	Allowed bool
	// Reason tells why not.
	Reason Reason
	// HasRemaining is false where nothing can be said of what is left: a leaky bucket without a capacity.
	HasRemaining bool
	// Remaining is how many whole units the key has left after the take.
	Remaining int64
	// RetryAfter is the time after which the same charge would pass if nothing else came. Zero if it passed.
	RetryAfter Retry
	// ResetAfter is the time after which the key is as if it had never been used, if nothing else comes.
	ResetAfter time.Duration
	// Wait is how long an allowed charge of a leaky bucket must be held before it goes on.
	Wait time.Duration
	// Receipt is what a refund of this charge needs.
	Receipt Receipt
}

// Receipt records what one charge took. Its fields belong to the store that made it.
type Receipt struct {
	// Charged is how many units were taken and not given back since.
	Charged int64
	// Mark places them in time, in microseconds since the Unix epoch: when the bucket that this take left would be full
	// (the queue empty), rounded up; the start of the window or cell; the time of the log entry.
	Mark int64
}

// RetryState tells what a Retry says.
type RetryState uint8

const (
	// RetryAfter: after the time given.
	RetryAfter RetryState = iota
	// RetryNever: the cost can never fit.
	RetryNever
	// RetryUnknown: it depends on when others release.
	RetryUnknown
)

// Retry is a time to wait, never, or unknown.
type Retry struct {
	State RetryState
	// After is valid if State is RetryAfter; microsecond precision.
	After time.Duration
}

// String returns "never", "unknown" or the duration.
func (r Retry) String() string {
	switch r.State {
	case RetryNever:
		return "never"
	case RetryUnknown:
		return "unknown"
	}
	return r.After.String()
}

// rank orders waits: unknown below every time, never above.
func (r Retry) rank() int64 {
	switch r.State {
	case RetryNever:
		return math.MaxInt64
	case RetryUnknown:
		return -1
	}
	return int64(r.After)
}

// Reset empties the decision and gives it n outcomes of value zero, reusing its memory. It is for stores.
func (d *Decision) Reset(n int) {
	d.Allowed, d.Binding = false, -1
	if cap(d.Outcomes) < n {
		d.Outcomes = make([]Outcome, n)
		return
	}
	d.Outcomes = d.Outcomes[:n]
	clear(d.Outcomes)
}

// Conclude sets Allowed and Binding from the outcomes of the charges. It is for stores: all bind by the same rule.
func (d *Decision) Conclude(charges []Charge) {
	d.Allowed, d.Binding = true, -1
	var worst int64
	for i := range charges {
		o := &d.Outcomes[i]
		if o.Allowed || !charges[i].Mode.denies() {
			continue
		}
		if rank := o.RetryAfter.rank(); d.Allowed || rank > worst {
			d.Allowed, d.Binding, worst = false, i, rank
		}
	}
	if !d.Allowed {
		return
	}
	for i := range charges {
		if !charges[i].Mode.denies() || !d.Outcomes[i].HasRemaining {
			continue
		}
		if d.Binding < 0 || scarcer(&d.Outcomes[i], &charges[i], &d.Outcomes[d.Binding], &charges[d.Binding]) {
			d.Binding = i
		}
	}
}

// denies tells whether a charge of this mode can deny a take.
func (m Mode) denies() bool { return m == Pay || m == Check }

// scarcer tells whether a/its cost < b/its cost, exactly; a peek counts as a cost of 1.
func scarcer(a *Outcome, ac *Charge, b *Outcome, bc *Charge) bool {
	ahi, alo := bits.Mul64(uint64(a.Remaining), uint64(max(bc.Cost, 1)))
	bhi, blo := bits.Mul64(uint64(b.Remaining), uint64(max(ac.Cost, 1)))
	return ahi < bhi || (ahi == bhi && alo < blo)
}

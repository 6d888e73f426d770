package referee

import (
	"fmt"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// Admission is a charge that was let through.
type Admission struct {
	// At is when it was decided, in microseconds since the Unix epoch; see [Moment].
	At int64
	// Until is when what it holds was given back, for a concurrency limit; 0 if it was not, and ends with its time to live.
	Until int64
	// Units is its cost; one of 0 asks for nothing and is never over.
	Units int64
	// By is for the caller, who may want to judge apart what was decided in different places.
	By int
}

// Terms are what is granted beyond the limit itself. The zero Terms grant nothing.
type Terms struct {
	// Extra is added to what the limit admits at a time: the burst, the count of a window, the capacity.
	Extra int64
	// Early is how long before its admission a token may have been charged, as that of a lease; it matters to token buckets.
	// Whoever spends ahead of this can spend, in any interval, what the limit grants in an interval that is longer by it.
	Early time.Duration
}

// Judge follows one limit on one key. What it finds over the limit it does not charge: it counts as few as possible as over,
// so that one too many is one. It is not safe for concurrent use.
type Judge struct {
	law   law
	began bool
	last  int64
	sum   Sum
}

// Sum is what a [Judge] has seen.
type Sum struct {
	// Admitted and Over count units; Over is the part of Admitted that the limit had no room for.
	Admitted, Over int64
	// Peak is the most that counted at a time, rounded up to whole units.
	Peak int64
}

// law is the text of a limit. Times never go back.
type law interface {
	// fits tells whether there is room for units at a time.
	fits(at, units int64) bool
	// charge takes the room.
	charge(a Admission)
	// used returns how many units count at a time, rounded up.
	used(at int64) int64
	// most returns the most units that can be admitted from the first charge to the last in the best case.
	most() int64
}

// New returns a judge of a limit under terms.
func New(limit headgate.Limit, terms Terms) (*Judge, error) {
	switch l := limit.(type) {
	case headgate.TokenBucket:
		return &Judge{law: newBucket(l, terms)}, nil
	case headgate.LeakyBucket:
		return &Judge{law: newQueue(l, terms)}, nil
	case headgate.FixedWindow:
		w, err := newWindow(l, terms)
		if err != nil {
			return nil, err
		}
		return &Judge{law: w}, nil
	case headgate.SlidingLog:
		return &Judge{law: &rollingLog{count: l.Count() + terms.Extra, period: l.Period().Microseconds()}}, nil
	case headgate.SlidingWindow:
		return &Judge{law: newCells(l, terms)}, nil
	case headgate.Concurrency:
		return &Judge{law: &inFlight{count: l.Count() + terms.Extra, ttl: l.TTL().Microseconds()}}, nil
	}
	return nil, fmt.Errorf("referee: there is no law for the limit %v", limit)
}

// Admit is told of the next admission, in the order of time; one that lies before the last counts as at its time. It tells
// whether the limit had no room for it.
func (j *Judge) Admit(a Admission) (over bool) {
	if j.began {
		a.At = max(a.At, j.last)
	}
	j.began, j.last = true, a.At
	j.sum.Admitted += a.Units
	if a.Units == 0 {
		return false
	}
	if !j.law.fits(a.At, a.Units) {
		j.sum.Over += a.Units
		return true
	}
	j.law.charge(a)
	j.sum.Peak = max(j.sum.Peak, j.law.used(a.At))
	return false
}

// Used returns how many units count against the limit at a time not before the last admission, rounded up. What was over is
// not among them.
func (j *Judge) Used(at int64) int64 {
	if !j.began {
		return 0
	}
	return j.law.used(max(at, j.last))
}

// Most returns how many units the limit grants at most to somebody who comes when this judge's first admission came, with
// nothing spent, and goes with the last: what was admitted is more only if something was over. A concurrency limit grants any
// number, one after the other, and this returns the number at a time.
func (j *Judge) Most() int64 {
	if !j.began {
		return 0
	}
	return j.law.most()
}

// Sum returns what was seen so far.
func (j *Judge) Sum() Sum { return j.sum }

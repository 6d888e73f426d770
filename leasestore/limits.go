package leasestore

import (
	"math/bits"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// shortest is the shortest window or cell that is worth a lease. Within a shorter one the charges would hardly be back
// before they are dead.
const shortest = 20 * time.Millisecond

// CanLease tells whether units of the limit can be charged ahead: whether what was charged a moment ago is as good as what
// is charged now. It is so for token_bucket, fixed_window and sliding_window. It is not for a log, whose entries have their
// own time, nor for a queue, whose waits have, nor for holders, who have names.
func CanLease(l headgate.Limit) bool {
	switch l.(type) {
	case headgate.TokenBucket, headgate.FixedWindow, headgate.SlidingWindow:
		return true
	}
	return false
}

// maxText is the longest slot and key together that is kept. What clients make longer than any key is meant to be goes to the upstream as
// it is, so that MaxKeys of them bound the memory.
const maxText = 512

// leasable tells whether a charge can be served from a lease or, where it is none that pays, be judged by one.
func leasable(c *headgate.Charge) bool {
	if c.Lockout != nil || c.Cost == 0 || c.Mode == headgate.Shadow || len(c.Slot)+len(c.Key) > maxText {
		return false
	}
	if size := sizeOf(c.Limit); size == 0 || c.Cost > size && c.Mode != headgate.Settle {
		return false
	}
	l := lengthOf(c.Limit)
	return CanLease(c.Limit) && (l == 0 || l >= shortest)
}

// sizeOf is the largest cost that the limit ever admits, 0 if it is not known here.
func sizeOf(l headgate.Limit) int64 {
	switch l := l.(type) {
	case headgate.TokenBucket:
		if _, _, den := l.Pace(); den == 0 {
			return 0 // a count of zero denies whatever the burst
		}
		return l.Burst()
	case headgate.FixedWindow:
		return l.Count()
	case headgate.SlidingWindow:
		return l.Count()
	}
	return 0
}

// lengthOf is the length of the window or cell with whose end a lease dies; 0 if there is none, or if it is one of the calendar,
// which lasts an hour at least.
func lengthOf(l headgate.Limit) time.Duration {
	switch l := l.(type) {
	case headgate.FixedWindow:
		return l.Period()
	case headgate.SlidingWindow:
		return l.Period() / time.Duration(l.Cells())
	}
	return 0
}

// ends tells after what time, counted from when the store judged, the window or cell that was charged is over; ok is false
// for a bucket, which has no end.
func ends(l headgate.Limit, o *headgate.Outcome) (after time.Duration, ok bool) {
	switch l := l.(type) {
	case headgate.FixedWindow:
		return o.ResetAfter, true
	case headgate.SlidingWindow:
		// The reset is when the cell has left the period, which is k cells after its own end.
		return o.ResetAfter - l.Period(), true
	}
	return 0, false
}

// foretells tells whether the wait of a denial follows from what is left and the reset alone, so that no store need be asked
// for it: it does for a bucket, which fills evenly, and for a window, which ends. That of a sliding window hangs on its cells.
func foretells(l headgate.Limit) bool { return l.Algorithm() != headgate.AlgSlidingWindow }

// waitFor is how long after the reset's moment minus resetAfter, that is from when the reset was told, n units are there, to
// the microsecond or one more. It is for limits that foretell.
func waitFor(l headgate.Limit, resetAfter time.Duration, n int64) time.Duration {
	b, ok := l.(headgate.TokenBucket)
	if !ok {
		return resetAfter
	}
	// The bucket has n units as long before it is full as the other units take.
	return max(0, resetAfter-fills(b, b.Burst()-n))
}

// fills is the time in which a bucket gains n units, rounded down to the microsecond.
func fills(b headgate.TokenBucket, n int64) time.Duration {
	whole, rem, den := b.Pace()
	hi, lo := bits.Mul64(uint64(max(n, 0)), uint64(rem))
	part, _ := bits.Div64(hi, lo, uint64(den)) // rem < den, so hi < den for every n below 2^63
	return time.Duration(max(n, 0)*whole+int64(part)) * time.Microsecond
}

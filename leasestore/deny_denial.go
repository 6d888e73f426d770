package leasestore

import (
	"sync/atomic"
	"time"
	"unsafe"

	headgate "github.com/headgate-io/headgate"
)

// grain is how finely the stores tell the time. A store that rounds down may let a charge pass this much before the time that is
// reckoned here.
const grain = time.Microsecond

// denial is what is known of one key: that charges of this limit, at this cost or more, are denied until a time. It is never
// changed but for used. Times are since the cache was made. What finds it stands first, in one cache line, and its size with a
// short text is one of Go's size classes, 192 bytes.
type denial struct {
	hash      uint64
	slot, key string
	limit     headgate.Limit

	reason              headgate.Reason
	hasRemaining, never bool
	used                atomic.Bool // since the clock hand has passed

	// cost is the least that is denied: 0 of a key that is shut.
	cost int64
	// until is how long this is believed; retry and reset are when the retry-after and the reset-after end that were answered.
	until, retry, reset time.Duration
	remaining           int64
	// lockout is that of a key that is shut, nil of a charge without one.
	lockout *headgate.Lockout

	text [80]byte
}

// newDenial returns what is to be remembered of the outcome of a charge, nil if nothing is. The take was sent and answered at
// these times.
func newDenial(c *headgate.Charge, o *headgate.Outcome, sent, answered, most time.Duration) *denial {
	if o.Allowed || !teaches(c, o.Reason) {
		return nil
	}
	e := &denial{limit: c.Limit, cost: c.Cost, reason: o.Reason, hasRemaining: o.HasRemaining, remaining: o.Remaining, reset: answered + o.ResetAfter}
	if o.Reason == headgate.ReasonLockedOut {
		e.cost = 0
		if c.Lockout != nil {
			l := *c.Lockout
			e.lockout = &l
		}
	}
	switch o.RetryAfter.State {
	case headgate.RetryNever:
		e.never, e.until = true, sent+most
	case headgate.RetryAfter:
		e.until, e.retry = sent+min(o.RetryAfter.After-grain, most), answered+o.RetryAfter.After
	default: // nobody knows until when
		return nil
	}
	if e.until <= answered {
		return nil
	}
	return e
}

// teaches tells whether a denial of this charge holds for others like it. One that counts towards a lockout does not: the next
// must reach the store, which counts. While the key is shut nothing is counted.
func teaches(c *headgate.Charge, r headgate.Reason) bool {
	switch r {
	case headgate.ReasonLockedOut:
		return c.Mode != headgate.Settle
	case headgate.ReasonLimited, headgate.ReasonCostExceedsLimit:
		return c.Lockout == nil && binds(c)
	}
	return false
}

// binds tells whether a charge can deny its take.
func binds(c *headgate.Charge) bool { return c.Mode == headgate.Pay || c.Mode == headgate.Check }

// denies tells whether a charge on this key is denied, as long as the denial holds.
func (e *denial) denies(c *headgate.Charge) bool {
	return c.Cost >= e.cost && c.Mode != headgate.Settle && e.shutBy(c.Lockout) && c.Limit == e.limit
}

func (e *denial) shutBy(l *headgate.Lockout) bool {
	if l == nil || e.lockout == nil {
		return l == nil && e.lockout == nil
	}
	return *l == *e.lockout
}

// name copies the texts, so that nothing of a caller's memory is held: where they are short to the room in the denial itself, whose
// bytes are never written again.
func (e *denial) name(hash uint64, slot, key string) {
	e.hash = hash
	text := ""
	if n := len(slot) + len(key); n > len(e.text) {
		text = slot + key
	} else if n > 0 {
		copy(e.text[copy(e.text[:], slot):], key)
		text = unsafe.String(&e.text[0], n)
	}
	e.slot, e.key = text[:len(slot)], text[len(slot):]
}

func (e *denial) is(hash uint64, slot, key string) bool {
	return e.hash == hash && e.key == key && e.slot == slot
}

// covers tells whether, at a time, whatever the other denial of the key denies this one denies too.
func (e *denial) covers(other *denial, now time.Duration) bool {
	return now < e.until && e.cost < other.cost && e.limit == other.limit
}

// tell writes the outcome of a charge that is denied at a time.
func (e *denial) tell(now time.Duration, o *headgate.Outcome) {
	o.Reason, o.HasRemaining, o.Remaining = e.reason, e.hasRemaining, e.remaining
	o.ResetAfter = roundUp(max(0, e.reset-now))
	if e.never {
		o.RetryAfter.State = headgate.RetryNever
		return
	}
	o.RetryAfter.After = roundUp(e.retry - now)
}

// roundUp returns whole microseconds.
func roundUp(d time.Duration) time.Duration { return (d + grain - 1).Truncate(grain) }

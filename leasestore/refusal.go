package leasestore

import (
	"sync/atomic"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// refusal is what is known of a key that has nothing left: by it requests are denied without a call.
type refusal struct {
	limit headgate.Limit
	// need is the least number of units, beyond those in hand, that it denies, at least 1; most is the largest cost: of a larger one the limit
	// says that it never fits.
	need, most int64
	// until is the time of the next call: from then on it denies nothing.
	until int64
	// remaining is what is left at the upstream.
	remaining int64
	// told is when it was learnt, resetAt when the state will be as if never used.
	told, resetAt int64
	// retryAt is when the least need has room. Greater ones have later times, where the limit foretells them.
	retryAt int64
	// denied counts the units that it has denied: they are demand as well.
	denied atomic.Int64
}

// denies tells whether it denies a cost to one who has so many units in hand.
func (r *refusal) denies(l headgate.Limit, cost, held, now int64) bool {
	return now < r.until && cost-held >= r.need && cost <= r.most && r.limit == l
}

// newRefusal is one that denies what needs so many units, of the state that an answer tells of. It is to be given an end.
func newRefusal(limit headgate.Limit, need int64, a *answer) *refusal {
	return &refusal{limit: limit, need: need, most: sizeOf(limit), remaining: a.Remaining, told: a.got, resetAt: a.resetAt()}
}

// ending is the same refusal with another end.
func (r *refusal) ending(until int64) *refusal {
	return &refusal{
		limit: r.limit, need: r.need, most: r.most, until: until, remaining: r.remaining, told: r.told, resetAt: r.resetAt, retryAt: r.retryAt,
	}
}

// outcome writes the denial of a cost to one who has so many units in hand.
func (r *refusal) outcome(cost, held, now int64, o *headgate.Outcome) {
	at := r.retryAt
	if cost-held != r.need && foretells(r.limit) {
		at = r.told + int64(waitFor(r.limit, time.Duration(r.resetAt-r.told), cost-held))
	}
	*o = headgate.Outcome{}
	o.Reason, o.HasRemaining, o.Remaining = headgate.ReasonLimited, true, r.remaining+held
	o.RetryAfter.After = wholeMicros(max(at, r.until) - now)
	o.ResetAfter = wholeMicros(r.resetAt - now)
}

// wholeMicros is a number of nanoseconds as a duration of whole microseconds, at least 0.
func wholeMicros(nanos int64) time.Duration {
	if nanos <= 0 {
		return 0
	}
	return time.Duration((nanos + 999) / 1000 * 1000)
}

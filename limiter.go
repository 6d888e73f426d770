package headgate

import (
	"context"
	"time"
)

// Limiter decides takes. Implementations are safe for concurrent use.
type Limiter interface {
	// Take asks to pay a list of charges, all or nothing, and writes the answer to d. A denial is an answer; an error, always
	// an [*Error], means that there is none, and leaves d empty. An empty list is allowed. The charges are not kept.
	Take(ctx context.Context, charges []Charge, d *Decision) error
}

// Refunder is a Limiter that can give back what a take charged.
type Refunder interface {
	// Refund gives back, for each charge, the smaller of its Cost and what the outcome's Receipt says was taken and not yet
	// given back. charges and d are those of one take, whose Receipts are brought up to date, so that nothing is given
	// back twice. Quota that has come back by itself is not given again: nothing of a closed window, a dead log entry, a
	// passed cell, or a bucket that has had the time to fill up. Concurrency slots are released.
	Refund(ctx context.Context, charges []Charge, d *Decision) error
}

// Slots is a Limiter that knows [Concurrency] limits. A take with a Holder acquires; acquiring again is idempotent and
// does not prolong the slot's life.
type Slots interface {
	// Renew gives the slot of c.Holder a new life of the limit's ttl and reports whether it was still there.
	Renew(ctx context.Context, c *Charge) (alive bool, err error)
	// Release frees the slot of c.Holder. If there was none, an acquire of that holder that comes late, within the ttl, is
	// denied with [ReasonGone].
	Release(ctx context.Context, c *Charge) error
}

// Resetter is a Limiter whose states can be erased.
type Resetter interface {
	// Reset forgets the state of a slot's key, its lockout and its holders.
	Reset(ctx context.Context, slot, key string) error
}

// Inspector is a Limiter whose states can be looked at without a limit to judge them by.
type Inspector interface {
	// Inspect returns the state of a slot's key; Found is false if there is none.
	Inspect(ctx context.Context, slot, key string) (Inspection, error)
}

// Inspection is the state of one key as it is stored.
type Inspection struct {
	Found     bool
	Algorithm Algorithm
	// Used is what is charged: whole tokens missing or requests waiting (rounded up), units in the window, entries in the
	// log, holders.
	Used int64
	// IdleAt is when the state will be as if never used.
	IdleAt time.Time
	// LockedUntil is when a lockout ends; zero if the key is not shut.
	LockedUntil time.Time
}

// Timed is a Limiter whose time can be passed in, for tests and replays.
type Timed interface {
	// At returns a view of the limiter to which it is always now. The view shares all state and has the same abilities as
	// the limiter itself. Times outside the years 1850 to 2095 are refused with CodeInvalidTime.
	At(now time.Time) Limiter
}

// Take asks to pay charges and returns the answer. On a hot path call the method with a Decision that is reused.
func Take(ctx context.Context, l Limiter, charges ...Charge) (Decision, error) {
	var d Decision
	err := l.Take(ctx, charges, &d)
	return d, err
}

// Allow charges 1 to a limit on a key and reports whether it passed. The limit's text is its slot, so two places in a
// program that use the same limit on the same key share its state; where they must not, use [One] and [Take].
func Allow(ctx context.Context, l Limiter, limit Limit, key string) (bool, error) {
	if limit == nil {
		return false, newError(CodeInvalidLimit, "the limit is nil")
	}
	d, err := Take(ctx, l, One(limit.String(), key, limit))
	return d.Allowed, err
}

// Bounds of the time, in microseconds since the Unix epoch. With the longest period on top they stay below 2^53, which
// Lua's numbers hold exactly.
const (
	MinTime int64 = -3_786_825_600_000_000 // 1850-01-01
	MaxTime int64 = 3_976_214_400_000_000  // 2096-01-01
)

// Micros returns a time as the store counts it, in whole microseconds since the Unix epoch, rounded down.
func Micros(t time.Time) (int64, error) {
	us := t.UnixMicro()
	if y := t.UTC().Year(); y < 1850 || y > 2095 { // years first: UnixMicro is undefined for far times
		return 0, newError(CodeInvalidTime, "the time %s is outside the years 1850 to 2095", t.UTC().Format(time.RFC3339))
	}
	return us, nil
}

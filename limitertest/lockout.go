package limitertest

import (
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
)

const sec = time.Second

func (s *suite) lockout(t *testing.T) {
	c := s.clinic(t)
	t.Run("shuts", func(t *testing.T) { c.in(t).shuts() })
	t.Run("counts", func(t *testing.T) { c.in(t).counts() })
	t.Run("ladder", func(t *testing.T) { c.in(t).ladder() })
	t.Run("clock steps", func(t *testing.T) { c.in(t).lockedClock() })
	t.Run("modes", func(t *testing.T) { c.in(t).lockedModes() })
}

func shutFor(c headgate.Charge, l headgate.Lockout) headgate.Charge {
	c.Lockout = &l
	return c
}

// locked expects a denial by a lockout.
func (c *clinic) locked(offset time.Duration, charge headgate.Charge, after time.Duration) {
	c.t.Helper()
	o := c.deny(offset, these(charge)).Outcomes[0]
	if o.Reason != headgate.ReasonLockedOut || o.RetryAfter != retry(after) {
		c.t.Errorf("at %s: want locked out for %s, got %s for %s", offset, after, o.Reason, o.RetryAfter)
	}
}

// limited expects a denial by the limit.
func (c *clinic) limited(offset time.Duration, charge headgate.Charge) {
	c.t.Helper()
	if o := c.deny(offset, these(charge)).Outcomes[0]; o.Reason != headgate.ReasonLimited {
		c.t.Errorf("at %s: want limited, got %s for %s", offset, o.Reason, o.RetryAfter)
	}
}

// shuts: the denial that shuts, denials and peeks while shut, the limit that is reported, the reopening.
func (c *clinic) shuts() {
	charge := shutFor(c.on("k", "fixed_window 1/10s"), headgate.Lockout{After: 1, For: 30 * sec})
	plain := charge
	plain.Lockout = nil
	c.allow(0, these(charge), 0)
	c.locked(1*sec, charge, 30*sec)
	c.locked(11*sec, charge, 20*sec)
	c.locked(11*sec, cost(charge, 0), 20*sec)
	d := c.take(11*sec, charge)
	c.same("shut", d.Outcomes[0], headgate.Outcome{Reason: headgate.ReasonLockedOut, HasRemaining: true, Remaining: 1, RetryAfter: retry(20 * sec)})
	c.allow(11*sec, these(cost(plain, 0)), 1)
	c.locked(31*sec-time.Microsecond, charge, time.Microsecond)
	c.allow(31*sec, these(charge), 0)
	other := charge
	other.Key += "other"
	c.allow(1*sec, these(other), 0)
}

// counts: After denials within Within of the first of them; a denial by another limit does not count.
func (c *clinic) counts() {
	charge := shutFor(c.on("k", "fixed_window 1/1h"), headgate.Lockout{After: 3, Within: 10 * sec, For: 60 * sec})
	c.allow(0, these(charge), 0)
	c.limited(1*sec, charge)
	c.limited(2*sec, charge)
	c.limited(12*sec, charge) // over 10 s after the first: begins again
	c.limited(13*sec, charge)
	c.locked(22*sec, charge, 60*sec)
	c.limited(82*sec, charge) // open again, and the count began again
	c.limited(82*sec, charge)
	c.locked(82*sec, charge, 60*sec)

	fine := shutFor(c.on("fine", "fixed_window 9/1h"), headgate.Lockout{After: 1, For: 60 * sec})
	for range 3 {
		c.deny(0, these(c.on("zero", "fixed_window 0/1h"), fine))
	}
	c.allow(0, these(fine), 8)
	c.locked(0, cost(fine, 10), 60*sec) // never counts too
}

// ladder: doubled when shut again within For of reopening, the same up to Max, forgotten later, never above Max.
func (c *clinic) ladder() {
	charge := shutFor(c.on("k", "fixed_window 0/1h"), headgate.Lockout{After: 1, For: 10 * sec, Max: 45 * sec})
	c.locked(0, charge, 10*sec)
	c.locked(10*sec, charge, 20*sec)
	c.locked(40*sec, charge, 40*sec)  // reopened at 30 s: 10 s ago
	c.locked(80*sec, charge, 45*sec)  // not 80
	c.locked(140*sec, charge, 45*sec) // reopened at 125 s: 15 s ago, so the same
	c.locked(230*sec, charge, 45*sec) // reopened at 185 s: 45 s ago
	c.locked(321*sec, charge, 10*sec) // reopened at 275 s: over 45 s ago
	flat := shutFor(c.on("flat", "fixed_window 0/1h"), headgate.Lockout{After: 1, For: 10 * sec})
	c.locked(0, flat, 10*sec)
	c.locked(10*sec, flat, 10*sec)
	c.locked(20*sec, flat, 10*sec)
}

// lockedClock: a clock that steps back cannot shut a key for longer than Max.
func (c *clinic) lockedClock() {
	charge := shutFor(c.on("k", "fixed_window 0/1h"), headgate.Lockout{After: 1, For: 10 * sec, Max: 15 * sec})
	c.locked(1000*sec, charge, 10*sec)
	c.locked(997*sec, charge, 13*sec)
	c.locked(500*sec, cost(charge, 0), 15*sec) // a peek heals nothing
	c.locked(995*sec, charge, 15*sec)
	c.locked(500*sec, charge, 15*sec) // a take does
	c.locked(514*sec, charge, 1*sec)
}

// lockedModes: every mode but settle is stopped, and check and shadow count.
func (c *clinic) lockedModes() {
	by := headgate.Lockout{After: 2, Within: 60 * sec, For: 60 * sec}
	charge := shutFor(c.on("k", "fixed_window 1/1h"), by)
	c.allow(0, these(charge), 0)
	c.limited(0, mode(charge, headgate.Check))
	d := c.allow(0, these(mode(charge, headgate.Shadow)), 0)
	if o := d.Outcomes[0]; o.Reason != headgate.ReasonLockedOut || o.RetryAfter != retry(60*sec) {
		c.t.Errorf("want the shadow's denial to shut the key, got %+v", o)
	}
	c.locked(0, mode(charge, headgate.Check), 60*sec)
	c.locked(0, charge, 60*sec)
	d = c.allow(0, these(mode(charge, headgate.Settle)), 0)
	if o := d.Outcomes[0]; !o.Allowed || o.Receipt.Charged != 0 {
		c.t.Errorf("want a settling charge to pass a lockout, got %+v", o)
	}
	settling := shutFor(c.on("settling", "fixed_window 1/1h"), headgate.Lockout{After: 1, For: 60 * sec})
	for range 3 {
		c.allow(0, these(mode(cost(settling, 5), headgate.Settle)), 0)
	}
	c.allow(0, these(cost(settling, 0)), 0) // settling denies nothing, so nothing is counted
}

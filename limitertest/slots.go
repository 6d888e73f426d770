package limitertest

import (
	"context"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
)

func (s *suite) slots(t *testing.T) {
	c := s.clinic(t)
	if _, ok := c.l.(headgate.Slots); !ok {
		t.Skip("the limiter is not headgate.Slots: renew and release are skipped")
	}
	t.Run("outcomes", func(t *testing.T) { c.in(t).slotOutcomes() })
	t.Run("life", func(t *testing.T) { c.in(t).slotLife() })
	t.Run("gone", func(t *testing.T) { c.in(t).slotGone() })
	t.Run("gone again", func(t *testing.T) { c.in(t).slotGoneAgain() })
	t.Run("errors", func(t *testing.T) { c.in(t).slotErrors() })
}

func (c *clinic) renew(offset time.Duration, charge headgate.Charge, alive bool) {
	c.t.Helper()
	got, err := c.at(offset).(headgate.Slots).Renew(context.Background(), &charge)
	if err != nil || got != alive {
		c.t.Errorf("at %s renew %s: want alive=%t, got %t, error %v", offset, charge.Holder, alive, got, err)
	}
}

func (c *clinic) release(offset time.Duration, charge headgate.Charge) {
	c.t.Helper()
	if err := c.at(offset).(headgate.Slots).Release(context.Background(), &charge); err != nil {
		c.t.Errorf("at %s release %s: %v", offset, charge.Holder, err)
	}
}

func (c *clinic) slotOutcomes() {
	slot := c.on("c", "concurrency 2 ttl=60s")
	a, b, third := held(slot, "A"), held(slot, "B"), held(slot, "C")
	d := c.take(0, a)
	c.same("acquired", d.Outcomes[0], headgate.Outcome{Allowed: true, HasRemaining: true, Remaining: 1, ResetAfter: 60 * sec, Receipt: headgate.Receipt{Charged: 1}})
	d = c.take(1*sec, a)
	c.same("acquired again", d.Outcomes[0], headgate.Outcome{Allowed: true, HasRemaining: true, Remaining: 1, ResetAfter: 59 * sec, Receipt: headgate.Receipt{Charged: 1}})
	c.allow(2*sec, these(b), 0)
	d = c.take(3*sec, third)
	c.same("full", d.Outcomes[0], headgate.Outcome{Reason: headgate.ReasonLimited, HasRemaining: true, RetryAfter: unknown(), ResetAfter: 59 * sec})
	c.allow(3*sec, these(mode(a, headgate.Check)), 0)
	c.deny(3*sec, these(mode(third, headgate.Check)), 0)
	d = c.take(3*sec, mode(third, headgate.Settle))
	c.same("settled without room", d.Outcomes[0], headgate.Outcome{Allowed: true, HasRemaining: true, ResetAfter: 59 * sec})
}

func (c *clinic) slotLife() {
	slot := c.on("c", "concurrency 1 ttl=10s")
	a, b := held(slot, "A"), held(slot, "B")
	c.allow(0, these(a))
	c.allow(5*sec, these(a)) // idempotent: prolongs nothing
	c.deny(10*sec-time.Microsecond, these(b))
	c.renew(9*sec, a, true)
	c.deny(18*sec, these(b))
	c.renew(19*sec, a, false)
	c.allow(19*sec, these(b))
	c.renew(19*sec, a, false)
	c.release(20*sec, held(slot, "other")) // frees nobody else's
	c.deny(20*sec, these(a))
	c.release(20*sec, b)
	c.renew(20*sec, b, false)
	c.allow(20*sec, these(a))
}

func (c *clinic) slotGone() {
	slot := c.on("c", "concurrency 5 ttl=10s")
	a := held(slot, "A")
	c.release(0, a)
	d := c.take(10*sec-time.Microsecond, a)
	c.same("released before", d.Outcomes[0], headgate.Outcome{Reason: headgate.ReasonGone, HasRemaining: true, Remaining: 5, RetryAfter: unknown()})
	d = c.take(0, mode(a, headgate.Settle))
	c.same("settled when released before", d.Outcomes[0], headgate.Outcome{Allowed: true, HasRemaining: true, Remaining: 5})
	c.allow(0, these(held(slot, "B")), 4)
	c.allow(10*sec, these(a), 4)
	c.release(11*sec, a)
	c.allow(11*sec, these(a), 4) // a release that found its slot leaves nothing behind
}

// slotGoneAgain: a later release is the one that counts, also where the clock went back between the two.
func (c *clinic) slotGoneAgain() {
	l, ok := c.at(0).(headgate.Inspector)
	if !ok {
		c.t.Skip("the limiter is not headgate.Inspector")
	}
	a := held(c.on("c", "concurrency 5 ttl=10s"), "A")
	c.release(1*sec, a)
	c.release(0, a)
	in, err := l.Inspect(context.Background(), a.Slot, a.Key)
	if want := epoch().Add(10 * sec); err != nil || !in.IdleAt.Equal(want) {
		c.t.Errorf("want idle at %s, got %+v, error %v", want, in, err)
	}
	c.allow(10*sec, these(a), 4)
}

func (c *clinic) slotErrors() {
	l := c.at(0).(headgate.Slots)
	for _, tt := range []struct {
		name   string
		charge headgate.Charge
		want   headgate.Code
	}{
		{"no holder", c.on("c", "concurrency 5 ttl=10s"), headgate.CodeInvalidCharge},
		{"another algorithm", held(c.on("t", "token_bucket 1/s"), "A"), headgate.CodeInvalidLimit},
		{"no limit", headgate.Charge{Slot: "n", Holder: "A"}, headgate.CodeInvalidLimit},
	} {
		if _, err := l.Renew(context.Background(), &tt.charge); headgate.CodeOf(err) != tt.want {
			c.t.Errorf("renew with %s: want %s, got %v", tt.name, tt.want, err)
		}
		if err := l.Release(context.Background(), &tt.charge); headgate.CodeOf(err) != tt.want {
			c.t.Errorf("release with %s: want %s, got %v", tt.name, tt.want, err)
		}
	}
}

package limitertest

import (
	"context"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// clinic is a limiter at virtual times, for tests that are written out.
type clinic struct {
	t *testing.T
	s *suite
	l headgate.Timed
}

func (s *suite) clinic(t *testing.T) *clinic {
	t.Helper()
	return &clinic{t, s, s.timed(t)}
}

func (c *clinic) in(t *testing.T) *clinic { return &clinic{t, c.s, c.l} }

// epoch is when the tests that are written out begin.
func epoch() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

func (c *clinic) at(offset time.Duration) headgate.Limiter { return c.l.At(epoch().Add(offset)) }

// on returns a charge of cost 1 of a limit on a key of this test; the slot has the test's name for the limit.
func (c *clinic) on(name, limit string) headgate.Charge {
	c.t.Helper()
	l, err := headgate.ParseLimit(limit)
	if err != nil {
		c.t.Fatal(err)
	}
	return headgate.One(name, c.s.key(c.t, name), l)
}

func cost(c headgate.Charge, n int64) headgate.Charge {
	c.Cost = n
	return c
}

func mode(c headgate.Charge, m headgate.Mode) headgate.Charge {
	c.Mode = m
	return c
}

func held(c headgate.Charge, holder string) headgate.Charge {
	c.Holder = holder
	return c
}

func (c *clinic) take(offset time.Duration, charges ...headgate.Charge) headgate.Decision {
	c.t.Helper()
	d, err := headgate.Take(context.Background(), c.at(offset), charges...)
	if err != nil {
		c.t.Fatalf("at %s take%s: %v", offset, showCharges(charges), err)
	}
	return d
}

// allow takes and expects what is left of each charge.
func (c *clinic) allow(offset time.Duration, charges []headgate.Charge, remaining ...int64) headgate.Decision {
	c.t.Helper()
	return c.expect(offset, true, charges, remaining)
}

// deny takes and expects what is left of each charge.
func (c *clinic) deny(offset time.Duration, charges []headgate.Charge, remaining ...int64) headgate.Decision {
	c.t.Helper()
	return c.expect(offset, false, charges, remaining)
}

func (c *clinic) expect(offset time.Duration, allowed bool, charges []headgate.Charge, remaining []int64) headgate.Decision {
	c.t.Helper()
	d := c.take(offset, charges...)
	if d.Allowed != allowed {
		c.t.Fatalf("at %s take%s: want allowed=%t, got %s", offset, showCharges(charges), allowed, showDecision(&d, nil))
	}
	if len(remaining) == 0 {
		return d
	}
	for i := range d.Outcomes {
		if d.Outcomes[i].Remaining != remaining[i] {
			c.t.Errorf("at %s take%s: want remaining %v, got %s", offset, showCharges(charges), remaining, showDecision(&d, nil))
			return d
		}
	}
	return d
}

// same fails unless the outcome is the one expected in every field but the receipt's mark.
func (c *clinic) same(what string, got, want headgate.Outcome) {
	c.t.Helper()
	got.Receipt.Mark, want.Receipt.Mark = 0, 0
	if got != want {
		c.t.Errorf("%s:\nwant %+v\ngot  %+v", what, want, got)
	}
}

func these(charges ...headgate.Charge) []headgate.Charge { return charges }

func retry(d time.Duration) headgate.Retry { return headgate.Retry{After: d} }

func never() headgate.Retry { return headgate.Retry{State: headgate.RetryNever} }

func unknown() headgate.Retry { return headgate.Retry{State: headgate.RetryUnknown} }

// peek expects what is left of a charge's key.
func (c *clinic) peek(offset time.Duration, charge headgate.Charge, remaining int64) {
	c.t.Helper()
	charge.Mode, charge.Lockout = headgate.Pay, nil
	c.allow(offset, these(cost(charge, 0)), remaining)
}

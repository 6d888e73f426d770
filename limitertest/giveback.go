package limitertest

import (
	"context"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
)

func (s *suite) refund(t *testing.T) {
	c := s.clinic(t)
	if _, ok := c.l.(headgate.Refunder); !ok {
		t.Skip("the limiter is not headgate.Refunder: refunds are skipped")
	}
	t.Run("part and whole", func(t *testing.T) { c.in(t).refundParts() })
	t.Run("late", func(t *testing.T) { c.in(t).refundLate() })
	t.Run("several", func(t *testing.T) { c.in(t).refundSeveral() })
	t.Run("nothing", func(t *testing.T) { c.in(t).refundNothing() })
	t.Run("slot", func(t *testing.T) { c.in(t).refundSlot() })
}

// give refunds and expects what is left to give back.
func (c *clinic) give(offset time.Duration, d *headgate.Decision, charges []headgate.Charge, left ...int64) {
	c.t.Helper()
	if err := c.at(offset).(headgate.Refunder).Refund(context.Background(), charges, d); err != nil {
		c.t.Errorf("at %s refund%s: %v", offset, showCharges(charges), err)
	}
	for i := range left {
		if got := d.Outcomes[i].Receipt.Charged; got != left[i] {
			c.t.Errorf("at %s refund%s: want %d left to give back, got %d", offset, showCharges(charges), left[i], got)
		}
	}
}

func refundable() []string {
	return []string{"token_bucket 10/1h", "fixed_window 10/1h", "sliding_log 10/1h", "sliding_window 10/1h cells=2", "leaky_bucket 10/1h capacity=10"}
}

// refundParts: parts add up to what was charged and never to more.
func (c *clinic) refundParts() {
	for _, limit := range refundable() {
		charge := c.on(limit, limit)
		c.allow(0, these(cost(charge, 3)), 7)
		d := c.allow(0, these(cost(charge, 5)), 2)
		c.give(0, &d, these(cost(charge, 0)), 5)
		c.give(0, &d, these(cost(charge, 2)), 3)
		c.peek(0, charge, 4)
		c.give(0, &d, these(cost(charge, 50)), 0)
		c.peek(0, charge, 7)
		c.give(0, &d, these(cost(charge, 5)), 0)
		c.peek(0, charge, 7)
	}
}

// refundLate: what has come back by itself is not given again.
func (c *clinic) refundLate() {
	for _, tt := range []struct {
		limit string
		late  time.Duration // the first time at which it is too late
	}{
		{"token_bucket 10/10s", 5 * sec},
		{"leaky_bucket 10/10s capacity=10", 5 * sec},
		{"fixed_window 10/10s", 10 * sec},
		{"sliding_log 10/10s", 10 * sec},
		{"sliding_window 10/10s cells=2", 15 * sec},
	} {
		for _, late := range []bool{false, true} {
			name, at := tt.limit, tt.late-time.Microsecond
			if late {
				name, at = name+" late", tt.late
			}
			charge := c.on(name, tt.limit)
			d := c.allow(0, these(cost(charge, 5)), 5)
			// What others took meanwhile is not given back to this one.
			other := c.take(at, cost(charge, 4))
			before := other.Outcomes[0].Remaining
			if late {
				c.give(at, &d, these(cost(charge, 2)), 0)
				c.peek(at, charge, before)
				continue
			}
			c.give(at, &d, these(cost(charge, 2)), 3)
			if after := c.take(at, cost(charge, 0)).Outcomes[0].Remaining; after < before || after > before+2 {
				c.t.Errorf("%s: %d left before and %d after a refund of 2", name, before, after)
			}
		}
	}
}

// refundSeveral: each charge gets its own back.
func (c *clinic) refundSeveral() {
	var charges []headgate.Charge
	for _, limit := range refundable() {
		charges = append(charges, cost(c.on(limit, limit), 4))
	}
	d := c.allow(0, charges, 6, 6, 6, 6, 6)
	parts := make([]headgate.Charge, len(charges))
	for i := range charges {
		parts[i] = cost(charges[i], int64(i))
	}
	c.give(0, &d, parts, 4, 3, 2, 1, 0)
	for i := range charges {
		c.peek(0, charges[i], 6+int64(i))
	}
	c.give(0, &d, charges, 0, 0, 0, 0, 0)
	for i := range charges {
		c.peek(0, charges[i], 10)
	}
}

// refundNothing: nothing charged, nothing given back; bad input is refused.
func (c *clinic) refundNothing() {
	a, b := c.on("a", "fixed_window 2/1h"), c.on("b", "fixed_window 5/1h")
	c.allow(0, these(cost(a, 2), b), 0, 4)
	d := c.deny(0, these(a, b), 0, 4)
	c.give(0, &d, these(a, b), 0, 0)
	c.peek(0, a, 0)
	c.peek(0, b, 4)
	check := mode(cost(b, 3), headgate.Check)
	d = c.allow(0, these(check), 4)
	c.give(0, &d, these(check), 0)
	c.peek(0, b, 4)
	for name, tt := range map[string]struct {
		charges []headgate.Charge
		want    headgate.Code
	}{
		"another number of charges": {these(a, b), headgate.CodeInvalidCharge},
		"a negative cost":           {these(cost(a, -1)), headgate.CodeInvalidCost},
		"no limit":                  {these(headgate.Charge{Cost: 1}), headgate.CodeInvalidLimit},
	} {
		err := c.at(0).(headgate.Refunder).Refund(context.Background(), tt.charges, &d)
		if headgate.CodeOf(err) != tt.want {
			c.t.Errorf("%s: want %s, got %v", name, tt.want, err)
		}
	}
}

// refundSlot: a refund of an acquire releases the slot of its holder and leaves no tombstone.
func (c *clinic) refundSlot() {
	slot := c.on("c", "concurrency 1 ttl=10s")
	a, b := held(slot, "A"), held(slot, "B")
	d := c.allow(0, these(a), 0)
	c.deny(0, these(b), 0)
	c.give(1*sec, &d, these(a), 0)
	c.allow(1*sec, these(b), 0)
	c.give(1*sec, &d, these(a), 0)
	c.deny(1*sec, these(a), 0)
	late := c.allow(20*sec, these(a), 0)
	c.give(30*sec, &late, these(a), 0)
	c.allow(30*sec, these(a), 0)
}

func (s *suite) reset(t *testing.T) {
	c := s.clinic(t)
	if _, ok := c.l.(headgate.Resetter); !ok {
		t.Skip("the limiter is not headgate.Resetter: resets are skipped")
	}
	forget := func(charge headgate.Charge) {
		t.Helper()
		if err := c.at(0).(headgate.Resetter).Reset(context.Background(), charge.Slot, charge.Key); err != nil {
			t.Errorf("reset: %v", err)
		}
	}
	for _, limit := range refundable() {
		charge := c.on(limit, limit)
		other := charge
		other.Key += "other"
		c.allow(0, these(cost(charge, 10), cost(other, 9)), 0, 1)
		forget(charge)
		c.peek(0, charge, 10)
		c.peek(0, other, 1)
		forget(charge) // again, with nothing there
	}
	shut := shutFor(c.on("shut", "fixed_window 1/1h"), headgate.Lockout{After: 1, For: 60 * sec})
	c.allow(0, these(shut))
	c.locked(0, shut, 60*sec)
	forget(shut)
	c.allow(0, these(shut))
	slot := c.on("slot", "concurrency 1 ttl=60s")
	c.allow(0, these(held(slot, "A")))
	forget(slot)
	c.allow(0, these(held(slot, "B")))
}

func (s *suite) inspect(t *testing.T) {
	c := s.clinic(t)
	if _, ok := c.l.(headgate.Inspector); !ok {
		t.Skip("the limiter is not headgate.Inspector: inspections are skipped")
	}
	look := func(charge headgate.Charge) headgate.Inspection {
		t.Helper()
		in, err := c.at(0).(headgate.Inspector).Inspect(context.Background(), charge.Slot, charge.Key)
		if err != nil {
			t.Errorf("inspect: %v", err)
		}
		return in
	}
	for _, tt := range []struct {
		limit string
		idle  time.Duration
	}{
		{"token_bucket 10/10s", 3 * sec}, {"fixed_window 10/10s", 10 * sec}, {"sliding_log 10/10s", 10 * sec},
		{"sliding_window 10/10s", 20 * sec}, {"leaky_bucket 10/10s capacity=10", 3 * sec}, {"leaky_bucket 10/10s max_wait=5s", 3 * sec},
	} {
		charge := c.on(tt.limit, tt.limit)
		if in := look(charge); in.Found {
			t.Errorf("%s: want nothing found before the first take, got %+v", tt.limit, in)
		}
		c.allow(0, these(cost(charge, 3)))
		in := look(charge)
		if !in.Found || in.Algorithm != charge.Limit.Algorithm() || in.Used != 3 || !in.IdleAt.Equal(epoch().Add(tt.idle)) || !in.LockedUntil.IsZero() {
			t.Errorf("%s: want 3 used, idle at %s; got %+v", tt.limit, epoch().Add(tt.idle), in)
		}
	}
	slot := c.on("slot", "concurrency 5 ttl=60s")
	c.allow(0, these(held(slot, "A")))
	c.allow(0, these(held(slot, "B")))
	if in := look(slot); in.Used != 2 || in.Algorithm != headgate.AlgConcurrency || !in.IdleAt.Equal(epoch().Add(60*sec)) {
		t.Errorf("two holders: got %+v", in)
	}
	shut := shutFor(c.on("shut", "fixed_window 0/1h"), headgate.Lockout{After: 1, For: 60 * sec})
	c.locked(0, shut, 60*sec)
	if in := look(shut); !in.Found || !in.LockedUntil.Equal(epoch().Add(60*sec)) {
		t.Errorf("a shut key: want it shut until %s, got %+v", epoch().Add(60*sec), in)
	}
}

package limitertest

import (
	"fmt"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
)

func (s *suite) modes(t *testing.T) {
	c := s.clinic(t)
	t.Run("check", func(t *testing.T) { c.in(t).checks() })
	t.Run("settle", func(t *testing.T) { c.in(t).settles() })
	t.Run("settle without a capacity", func(t *testing.T) { c.in(t).settlesUnbounded() })
	t.Run("shadow", func(t *testing.T) { c.in(t).shadows() })
	t.Run("peek", func(t *testing.T) { c.in(t).peeks() })
}

// checks: a check is judged at its cost and charges nothing.
func (c *clinic) checks() {
	for _, limit := range []string{"token_bucket 3/1m", "fixed_window 3/1m", "sliding_log 3/1m", "sliding_window 3/1m", "leaky_bucket 3/1m capacity=3"} {
		charge, other := c.on(limit, limit), c.on(limit+" other", "fixed_window 9/1m")
		check := mode(cost(charge, 3), headgate.Check)
		for range 2 {
			d := c.allow(0, these(check), 3)
			if got := d.Outcomes[0].Receipt.Charged; got != 0 {
				c.t.Errorf("%s: a check charged %d", limit, got)
			}
		}
		c.allow(0, these(charge), 2)
		if d := c.deny(0, these(other, check), 9, 2); d.Binding != 1 {
			c.t.Errorf("%s: want the check to bind, got %d", limit, d.Binding)
		}
		c.peek(0, other, 9)
	}
}

// settles: a settling charge never denies and takes what is left at most.
func (c *clinic) settles() {
	for _, limit := range []string{"token_bucket 3/1m", "fixed_window 3/1m", "sliding_log 3/1m", "sliding_window 3/1m", "leaky_bucket 3/1m capacity=3"} {
		charge := c.on(limit, limit)
		for _, want := range []struct{ cost, charged, left int64 }{{2, 2, 1}, {5, 1, 0}, {1, 0, 0}} {
			d := c.allow(0, these(mode(cost(charge, want.cost), headgate.Settle)), want.left)
			if o := d.Outcomes[0]; o.Receipt.Charged != want.charged || !o.Allowed || o.Reason != headgate.ReasonNone || o.RetryAfter != retry(0) {
				c.t.Errorf("%s settle %d: want %d charged, got %+v", limit, want.cost, want.charged, o)
			}
		}
		denied := c.on(limit+" denied", "fixed_window 0/1m")
		other := mode(c.on(limit+" other", limit), headgate.Settle)
		d := c.deny(0, these(denied, other), 0, 3)
		if o := d.Outcomes[1]; !o.Allowed || o.Receipt.Charged != 0 {
			c.t.Errorf("%s: want a settling charge of a denied take to charge nothing, got %+v", limit, o)
		}
		c.peek(0, other, 3)
	}
}

// settlesUnbounded: without a capacity a settling charge is bounded by what lasts 36500 days, at rates of every size.
func (c *clinic) settlesUnbounded() {
	for _, tt := range []struct {
		limit         string
		cost, charged int64
	}{
		{"leaky_bucket 1/s max_wait=1s", 7, 7},
		{"leaky_bucket 1/s max_wait=1s", headgate.MaxCount, 3_153_600_000},
		{"leaky_bucket 1/36500d max_wait=0s", 9, 1},
		{"leaky_bucket 0.743299670193/1h max_wait=36500d", headgate.MaxCount, 651_130},
		{"leaky_bucket 0.00006/13s max_wait=1us", headgate.MaxCount, 14_555},
		{"leaky_bucket 999999999999.999/7us max_wait=1us", headgate.MaxCount, headgate.MaxCount},
		{"leaky_bucket 0.999999999999/1d max_wait=1us", headgate.MaxCount, 36_499},
	} {
		charge := mode(c.on(fmt.Sprint(tt.limit, tt.cost), tt.limit), headgate.Settle)
		watch := watched(stuck, func() string { return "settle on " + tt.limit })
		if got := c.allow(0, these(cost(charge, 0))).Outcomes[0].Receipt.Charged; got != 0 {
			c.t.Errorf("%s: a settling charge of nothing charged %d", tt.limit, got)
		}
		if got := c.allow(0, these(cost(charge, tt.cost))).Outcomes[0].Receipt.Charged; got != tt.charged {
			c.t.Errorf("%s settle %d: want %d charged, got %d", tt.limit, tt.cost, tt.charged, got)
		}
		watch.Stop()
	}
}

// shadows: shadow charges are a group of their own, paid if all of it and the take pass, and never deny.
func (c *clinic) shadows() {
	pay := c.on("pay", "fixed_window 2/1h")
	a, b := mode(c.on("a", "fixed_window 2/1h"), headgate.Shadow), mode(c.on("b", "token_bucket 1/1h"), headgate.Shadow)
	d := c.allow(0, these(a, pay, b), 1, 1, 0)
	for i := range d.Outcomes {
		if d.Outcomes[i].Receipt.Charged != 1 {
			c.t.Errorf("want all charged, got %s", showDecision(&d, nil))
		}
	}
	d = c.allow(0, these(a, pay, b), 1, 0, 0)
	c.same("a shadow that would pass in a group that would not", d.Outcomes[0],
		headgate.Outcome{Allowed: true, HasRemaining: true, Remaining: 1, ResetAfter: time.Hour})
	c.same("a shadow that would deny", d.Outcomes[2],
		headgate.Outcome{Reason: headgate.ReasonLimited, HasRemaining: true, RetryAfter: retry(time.Hour), ResetAfter: time.Hour})
	d = c.deny(0, these(a, pay), 1, 0)
	if d.Binding != 1 || !d.Outcomes[0].Allowed {
		c.t.Errorf("want the paying charge alone to deny, got %s", showDecision(&d, nil))
	}
	c.peek(0, a, 1)
	if d = c.allow(0, these(b), 0); d.Binding != -1 {
		c.t.Errorf("want nothing to bind where only shadows are, got %d", d.Binding)
	}
}

// peeks: a cost of 0 is allowed and changes nothing, whatever the mode.
func (c *clinic) peeks() {
	for _, limit := range []string{"token_bucket 1/1m", "fixed_window 1/1m", "sliding_log 1/1m", "sliding_window 1/1m", "leaky_bucket 1/1m capacity=1"} {
		charge := c.on(limit, limit)
		for _, left := range []int64{1, 0} {
			for _, m := range []headgate.Mode{headgate.Pay, headgate.Check, headgate.Settle, headgate.Shadow} {
				d := c.allow(0, these(mode(cost(charge, 0), m)), left)
				if o := d.Outcomes[0]; !o.Allowed || o.Receipt.Charged != 0 || o.Reason != headgate.ReasonNone {
					c.t.Errorf("%s: peek as %s: got %+v", limit, m, o)
				}
			}
			c.take(0, charge)
		}
	}
}

func (s *suite) binding(t *testing.T) {
	c := s.clinic(t)
	short, long := c.on("short", "fixed_window 1/1m"), c.on("long", "fixed_window 1/1h")
	twin := c.on("twin", "fixed_window 1/1h")
	slot := c.on("slot", "concurrency 1 ttl=1h")
	tokens := c.on("tokens", "token_bucket 10/1h")
	c.allow(0, these(short, long, twin, held(slot, "A")))
	slot = held(slot, "B")
	for _, tt := range []struct {
		name    string
		charges []headgate.Charge
		want    int
	}{
		{"the longest wait", these(short, long, tokens), 1},
		{"never before any wait", these(long, cost(tokens, 11), short), 1},
		{"unknown after any wait", these(slot, short), 1},
		{"unknown alone", these(tokens, slot), 1},
		{"the first of two alike", these(short, twin, long), 1},
		{"only those that deny", these(mode(long, headgate.Shadow), mode(twin, headgate.Settle), mode(short, headgate.Check)), 2},
	} {
		if d := c.deny(0, tt.charges); d.Binding != tt.want {
			t.Errorf("%s: want %d to bind, got %s, binding %d", tt.name, tt.want, showDecision(&d, nil), d.Binding)
		}
	}
	many, queue := c.on("many", "fixed_window 1000/1h"), c.on("queue", "leaky_bucket 1/1h max_wait=9h")
	d := c.allow(0, these(queue, many, cost(tokens, 4), mode(short, headgate.Settle)))
	if d.Binding != 2 { // 999/1, 6/4
		t.Errorf("the least in proportion to its cost: want 2, got %d", d.Binding)
	}
	if d = c.allow(0, these(queue)); d.Binding != -1 {
		t.Errorf("nothing is known of what is left: want -1, got %d", d.Binding)
	}
}

package limitertest

import (
	"context"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// bounds tests what testdata/bounds.test cannot say: what is charged, given back and looked at where numbers are at their ends.
func (s *suite) bounds(t *testing.T) {
	c := s.clinic(t)
	t.Run("settle", func(t *testing.T) { c.in(t).settlesAtBounds() })
	t.Run("refund", func(t *testing.T) { c.in(t).refundsAtBounds() })
	t.Run("crossing", func(t *testing.T) { c.in(t).refundsByAnother() })
	t.Run("inspect", func(t *testing.T) { c.in(t).inspectsAtBounds() })
	t.Run("clock", func(t *testing.T) { c.in(t).clockToAndFro() })
}

const (
	longest = headgate.MaxPeriod
	us      = time.Microsecond
)

// settlesAtBounds: a settling charge takes what is left, of queues without a capacity what lasts 36500 days.
func (c *clinic) settlesAtBounds() {
	for _, tt := range []struct {
		limit   string
		charged []int64 // of 10^12 each time
		reset   time.Duration
	}{
		{"token_bucket 1000000000000/1us", []int64{headgate.MaxCount, 0}, us},
		{"token_bucket 1/36500d", []int64{1, 0}, longest},
		{"token_bucket 0.999999999999999/20ms burst=157679999999", []int64{157_679_999_999, 0}, 3_153_599_999_980_004 * us},
		{"fixed_window 1000000000000/36500d", []int64{headgate.MaxCount, 0}, 16_046 * day}, // 2026 lies in a window that ends in 2069
		{"sliding_log 1000/36500d", []int64{1000, 0}, longest},
		{"sliding_window 1000000000000/1us", []int64{headgate.MaxCount, 0}, 2 * us},
		{"leaky_bucket 1/36500d max_wait=36500d", []int64{1, 1, 0}, 2 * longest},
		{"leaky_bucket 1/36500d capacity=1 max_wait=36500d", []int64{1, 0}, longest},
		{"leaky_bucket 1000000000000/36500d max_wait=36500d", []int64{headgate.MaxCount, headgate.MaxCount, 0}, 2 * longest},
		{"leaky_bucket 1000000000000/1us max_wait=1us", []int64{headgate.MaxCount, headgate.MaxCount, 0}, 2 * us},
		{"leaky_bucket 0.999999999999999/20ms max_wait=36500d", []int64{157_679_999_999, 157_679_999_999, 0}, 6_307_199_999_960_007 * us},
	} {
		charge := mode(cost(c.on(tt.limit, tt.limit), headgate.MaxCount), headgate.Settle)
		var o headgate.Outcome
		for i, want := range tt.charged {
			if o = c.take(0, charge).Outcomes[0]; o.Receipt.Charged != want || !o.Allowed {
				c.t.Errorf("%s: settling time %d: want %d charged, got %+v", tt.limit, i+1, want, o)
			}
		}
		if o.ResetAfter != tt.reset {
			c.t.Errorf("%s: want a reset after %s, got %s", tt.limit, tt.reset, o.ResetAfter)
		}
	}
}

// refundsAtBounds: what was charged comes back to the last bit, in part and whole.
func (c *clinic) refundsAtBounds() {
	for _, tt := range []struct {
		limit                string
		charged, back        int64
		after, backAndAnswer time.Duration // the reset after the charge, and after the refund
	}{
		{"token_bucket 1000000000000/36500d burst=1000000000000", headgate.MaxCount, headgate.MaxCount - 5, longest, 15768 * us},
		{"token_bucket 1/36500d", 1, 1, longest, 0},
		{"token_bucket 1000000000000/1us", headgate.MaxCount, headgate.MaxCount - 1, us, us},
		{"fixed_window 1000000000000/1us", headgate.MaxCount, headgate.MaxCount, us, 0},
		{"sliding_log 1000/36500d", 1000, 1000, longest, 0},
		{"sliding_window 1000000000000/1us", headgate.MaxCount, headgate.MaxCount, 2 * us, 0},
		{"leaky_bucket 1000000000000/36500d max_wait=0s", headgate.MaxCount, 1, longest, longest - 3153*us},
		{"leaky_bucket 1000000000000/36500d capacity=1000000000000", headgate.MaxCount, headgate.MaxCount - 1, longest, 3154 * us},
		{"leaky_bucket 0.999999999999999/20ms max_wait=36500d", 157_679_999_999, 157_679_999_998, 3_153_599_999_980_004 * us, 20_001 * us},
	} {
		charge := c.on(tt.limit, tt.limit)
		d := c.take(0, cost(charge, tt.charged))
		if got := d.Outcomes[0].ResetAfter; got != tt.after {
			c.t.Errorf("%s take %d: want a reset after %s, got %s", tt.limit, tt.charged, tt.after, got)
		}
		c.give(0, &d, these(cost(charge, tt.back)), tt.charged-tt.back)
		c.resets(charge, tt.backAndAnswer)
	}
}

// resets expects when all is back.
func (c *clinic) resets(charge headgate.Charge, want time.Duration) {
	c.t.Helper()
	if got := c.take(0, cost(charge, 0)).Outcomes[0].ResetAfter; got != want {
		c.t.Errorf("%s: want a reset after %s, got %s", charge.Limit, want, got)
	}
}

// refundsByAnother: units are given back at the pace of the limit that the refund names, however long they are at it.
func (c *clinic) refundsByAnother() {
	for _, tt := range []struct {
		name   string
		first  string
		units  int64
		second string
		more   int64 // charged by the second limit before the refund
		back   int64 // of units
		reset  time.Duration
	}{
		{"twice the longest period", "leaky_bucket 3/s capacity=3", 2, "leaky_bucket 1/36500d max_wait=2s", 1, 2, 0},
		{"half of it", "leaky_bucket 3/s capacity=3", 2, "leaky_bucket 1/36500d max_wait=2s", 1, 1, 2 * time.Second},
		{"40000 of 56500 days", "leaky_bucket 3/36500d max_wait=36500d", 3, "leaky_bucket 1/20000d max_wait=36500d", 1, 2, 16500 * day},
		{"20000 of 56500 days", "leaky_bucket 3/36500d max_wait=36500d", 3, "leaky_bucket 1/20000d max_wait=36500d", 1, 1, 36500 * day},
		{"60000 of 56500 days", "leaky_bucket 3/36500d max_wait=36500d", 3, "leaky_bucket 1/20000d max_wait=36500d", 1, 3, 0},
		{"thirds", "leaky_bucket 7/36500d capacity=7", 7, "leaky_bucket 3/36500d max_wait=36500d", 3, 4, 584_000 * time.Hour},
		{"fractions of 10^15", "leaky_bucket 1000000000000/1s capacity=1000000000000", headgate.MaxCount, "leaky_bucket 0.999999999999999/20ms max_wait=36500d",
			157_679_999_999, 200_000_000_000, 2_307_199_999_980_000 * us},
		{"10^12 units of 36500 days", "leaky_bucket 1000000000000/1us max_wait=36500d", headgate.MaxCount, "leaky_bucket 1/36500d max_wait=36500d", 1, headgate.MaxCount, 0},
		{"into a capacity", "leaky_bucket 1000000000000/1us max_wait=36500d", headgate.MaxCount, "leaky_bucket 1/36500d capacity=1", 0, headgate.MaxCount, 0},
		{"into a bucket", "token_bucket 1000000000000/1us", headgate.MaxCount, "token_bucket 1/36500d", 0, headgate.MaxCount, 0},
		{"into a bucket with fractions", "token_bucket 5/s", 5, "token_bucket 7/36500d", 0, 3, 1_802_057_142_857_143 * us},
	} {
		c.t.Run(tt.name, func(t *testing.T) {
			c := c.in(t)
			charge := c.on("crossing", tt.first)
			d := c.take(0, cost(charge, tt.units))
			charge.Limit = headgate.MustParseLimit(tt.second)
			if more := c.take(0, cost(charge, tt.more)); !more.Allowed {
				t.Fatalf("%d by %s is denied", tt.more, charge.Limit)
			}
			c.give(0, &d, these(cost(charge, tt.back)), tt.units-tt.back)
			c.resets(charge, tt.reset)
		})
	}
}

// inspectsAtBounds: what waits is counted to the last unit, also above 10^12 and over 36500 days.
func (c *clinic) inspectsAtBounds() {
	if _, ok := c.l.(headgate.Inspector); !ok {
		c.t.Skip("the limiter is not headgate.Inspector: inspections are skipped")
	}
	for _, tt := range []struct {
		limit       string
		cost, times int64
		idle        time.Duration
	}{
		{"token_bucket 1000000000000/1us", headgate.MaxCount, 1, us},
		{"leaky_bucket 1/36500d max_wait=36500d", 1, 2, 2 * longest},
		{"leaky_bucket 1000000000000/1us max_wait=36500d", headgate.MaxCount, 3, 3 * us},
		{"leaky_bucket 1000000000000/36500d max_wait=36500d", headgate.MaxCount, 2, 2 * longest},
		{"leaky_bucket 0.999999999999999/20ms max_wait=36500d", 157_679_999_999, 2, 6_307_199_999_960_007 * us},
	} {
		charge := cost(c.on(tt.limit, tt.limit), tt.cost)
		for range tt.times {
			c.take(0, charge)
		}
		in, err := c.at(0).(headgate.Inspector).Inspect(context.Background(), charge.Slot, charge.Key)
		idle := epoch().UnixMicro() + tt.idle.Microseconds()
		if err != nil || in.Used != tt.cost*tt.times || in.IdleAt.UnixMicro() != idle {
			c.t.Errorf("%s: want %d used, idle at %s; got %+v, error %v", tt.limit, tt.cost*tt.times, time.UnixMicro(idle).UTC(), in, err)
		}
	}
}

// clockToAndFro: a clock that goes back far again and again moves ever more into one cell of a window, which never runs over.
func (c *clinic) clockToAndFro() {
	charge := c.on("cells", "sliding_window 1000000000000/1s")
	settle := mode(cost(charge, headgate.MaxCount), headgate.Settle)
	c.take(0, settle)
	for hop := range 300 {
		at := -time.Duration(hop) * 10 * time.Second
		c.take(at+2*time.Second-us, settle) // nearly as much again, where what was before has nearly left
		for _, n := range []int64{1, 0} {   // first what is moved, then what was stored of it
			if d := c.take(at-10*time.Second, cost(charge, n)); d.Allowed != (n == 0) || d.Outcomes[0].Remaining != 0 {
				c.t.Fatalf("after %d hops of the clock: want nothing left, got %s", hop+1, showDecision(&d, nil))
			}
		}
	}
}

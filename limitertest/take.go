package limitertest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
)

func (s *suite) take(t *testing.T) {
	c := s.clinic(t)
	t.Run("outcomes", func(t *testing.T) { c.in(t).outcomes() })
	t.Run("all or nothing", func(t *testing.T) { c.in(t).allOrNothing() })
	t.Run("nothing to take", func(t *testing.T) { c.in(t).nothingToTake() })
	t.Run("as many as may be", func(t *testing.T) { c.in(t).asManyAsMayBe() })
	t.Run("reused decision", func(t *testing.T) { c.in(t).reusedDecision() })
	t.Run("hostile keys", func(t *testing.T) { c.in(t).hostileKeys() })
	t.Run("count 0", func(t *testing.T) { c.in(t).countZero() })
	t.Run("own clock", func(t *testing.T) { s.ownClock(t) })
}

// outcomes checks every field of the first allowed and the first denied take of each algorithm.
func (c *clinic) outcomes() {
	limited := headgate.ReasonLimited
	for _, tt := range []struct {
		limit string
		first headgate.Outcome // of 2
		full  headgate.Outcome // of 2 more, at 1s
		over  headgate.Outcome // of 4, at 1s
	}{
		{"token_bucket 3/3s burst=3",
			headgate.Outcome{Allowed: true, HasRemaining: true, Remaining: 1, ResetAfter: 2 * time.Second, Receipt: headgate.Receipt{Charged: 2}},
			headgate.Outcome{Allowed: true, HasRemaining: true, Remaining: 0, ResetAfter: 3 * time.Second, Receipt: headgate.Receipt{Charged: 2}},
			headgate.Outcome{Reason: headgate.ReasonCostExceedsLimit, HasRemaining: true, RetryAfter: never(), ResetAfter: 3 * time.Second}},
		{"fixed_window 3/1m",
			headgate.Outcome{Allowed: true, HasRemaining: true, Remaining: 1, ResetAfter: time.Minute, Receipt: headgate.Receipt{Charged: 2}},
			headgate.Outcome{Reason: limited, HasRemaining: true, Remaining: 1, RetryAfter: retry(59 * time.Second), ResetAfter: 59 * time.Second},
			headgate.Outcome{Reason: headgate.ReasonCostExceedsLimit, HasRemaining: true, Remaining: 1, RetryAfter: never(), ResetAfter: 59 * time.Second}},
		{"sliding_log 3/10s",
			headgate.Outcome{Allowed: true, HasRemaining: true, Remaining: 1, ResetAfter: 10 * time.Second, Receipt: headgate.Receipt{Charged: 2}},
			headgate.Outcome{Reason: limited, HasRemaining: true, Remaining: 1, RetryAfter: retry(9 * time.Second), ResetAfter: 9 * time.Second},
			headgate.Outcome{Reason: headgate.ReasonCostExceedsLimit, HasRemaining: true, Remaining: 1, RetryAfter: never(), ResetAfter: 9 * time.Second}},
		{"sliding_window 3/10s cells=5",
			headgate.Outcome{Allowed: true, HasRemaining: true, Remaining: 1, ResetAfter: 12 * time.Second, Receipt: headgate.Receipt{Charged: 2}},
			headgate.Outcome{Reason: limited, HasRemaining: true, Remaining: 1, RetryAfter: retry(10 * time.Second), ResetAfter: 11 * time.Second},
			headgate.Outcome{Reason: headgate.ReasonCostExceedsLimit, HasRemaining: true, Remaining: 1, RetryAfter: never(), ResetAfter: 11 * time.Second}},
		{"leaky_bucket 1/s capacity=3",
			headgate.Outcome{Allowed: true, HasRemaining: true, Remaining: 1, ResetAfter: 2 * time.Second, Receipt: headgate.Receipt{Charged: 2}},
			headgate.Outcome{Allowed: true, HasRemaining: true, Remaining: 0, ResetAfter: 3 * time.Second, Wait: time.Second, Receipt: headgate.Receipt{Charged: 2}},
			headgate.Outcome{Reason: headgate.ReasonCostExceedsLimit, HasRemaining: true, RetryAfter: never(), ResetAfter: 3 * time.Second}},
		{"leaky_bucket 1/s max_wait=1500ms",
			headgate.Outcome{Allowed: true, ResetAfter: 2 * time.Second, Receipt: headgate.Receipt{Charged: 2}},
			headgate.Outcome{Allowed: true, ResetAfter: 3 * time.Second, Wait: time.Second, Receipt: headgate.Receipt{Charged: 2}},
			headgate.Outcome{Reason: limited, RetryAfter: retry(1500 * time.Millisecond), ResetAfter: 3 * time.Second}},
	} {
		charge := c.on(tt.limit, tt.limit)
		first := c.take(0, cost(charge, 2))
		c.same(tt.limit+", the first", first.Outcomes[0], tt.first)
		full := c.take(time.Second, cost(charge, 2))
		c.same(tt.limit+", 2 more", full.Outcomes[0], tt.full)
		over := c.take(time.Second, cost(charge, 4))
		c.same(tt.limit+", 4 more", over.Outcomes[0], tt.over)
	}
}

// allOrNothing checks that a take denied by one limit charges none, whichever denies.
func (c *clinic) allOrNothing() {
	limits := []string{"token_bucket 5/1m", "fixed_window 5/1m", "sliding_log 5/1m", "sliding_window 5/1m cells=3", "leaky_bucket 5/1m capacity=5", "concurrency 5 ttl=1m"}
	for i, narrow := range limits {
		charges := make([]headgate.Charge, len(limits))
		for j, limit := range limits {
			if i == j {
				limit = strings.Replace(narrow, "5", "1", 1)
				limit = strings.Replace(limit, "capacity=5", "capacity=1", 1)
			}
			charges[j] = c.on(fmt.Sprintf("%d-%d", i, j), limit)
			charges[j].Holder = "A"
		}
		c.allow(0, charges)
		for j := range charges {
			charges[j].Holder = "B"
		}
		before := make([]int64, len(charges))
		for j := range charges {
			before[j] = 4
		}
		before[i] = 0
		for range 3 {
			d := c.deny(0, charges, before...)
			if d.Binding != i {
				c.t.Errorf("%s: want binding %d, got %d", narrow, i, d.Binding)
			}
		}
		for j := range charges {
			c.peek(0, charges[j], before[j])
		}
	}
}

func (c *clinic) nothingToTake() {
	d := c.take(0)
	if !d.Allowed || d.Binding != -1 || len(d.Outcomes) != 0 {
		c.t.Errorf("a take of nothing: want an allowance without outcomes, got %+v", d)
	}
}

func (c *clinic) asManyAsMayBe() {
	charges := make([]headgate.Charge, headgate.MaxCharges)
	left := make([]int64, len(charges))
	for i := range charges {
		charges[i] = c.on(fmt.Sprint(i), "fixed_window 2/1h")
		left[i] = 1
	}
	c.allow(0, charges, left...)
	charges[77] = cost(charges[77], 2)
	c.deny(0, charges, left...)
}

// reusedDecision checks that nothing of an earlier answer shows in a later one.
func (c *clinic) reusedDecision() {
	a, b := c.on("a", "token_bucket 1/1m"), c.on("b", "leaky_bucket 1/1m capacity=3")
	var d headgate.Decision
	for _, step := range []struct {
		charges []headgate.Charge
		allowed bool
	}{{these(a, b), true}, {these(a), false}, {these(b), true}, {these(cost(a, 0)), true}, {nil, true}, {these(b, cost(a, 0)), true}} {
		if err := c.at(0).Take(context.Background(), step.charges, &d); err != nil {
			c.t.Fatal(err)
		}
		fresh := headgate.Decision{Allowed: step.allowed, Binding: d.Binding, Outcomes: d.Outcomes}
		if d.Allowed != step.allowed || len(d.Outcomes) != len(step.charges) {
			c.t.Fatalf("take%s into a used decision: want %+v, got %+v", showCharges(step.charges), fresh, d)
		}
	}
	c.same("the last peek", d.Outcomes[1], headgate.Outcome{Allowed: true, HasRemaining: true, ResetAfter: time.Minute})
	if err := c.at(0).Take(context.Background(), these(cost(a, -1)), &d); err == nil || d.Allowed || len(d.Outcomes) != 0 {
		c.t.Errorf("after an error the decision is to be empty and deny: got %+v, error %v", d, err)
	}
}

// hostileKeys checks that keys and slots of any bytes and sizes are apart from each other.
func (c *clinic) hostileKeys() {
	long := strings.Repeat("x", 100_000)
	limit := headgate.MustParseLimit("fixed_window 1/1h")
	names := []string{"", "a", "b", "ab", "a:b", ":", "{a}", "{}", "}{", "a\x00", "\x00a", "a\r\n", "*", "\xff\xfe", "a/b", "1:a", "💧", long, long + "y", " ", `"`, "%", "a|b", "|"}
	own := c.s.key(c.t, "")
	for round, allowed := range []bool{true, false} {
		for _, name := range names {
			for _, charge := range []headgate.Charge{
				headgate.One("s", own+name, limit), headgate.One("s", name+own, limit),
				headgate.One("s"+name[:min(len(name), 40)], own, limit),
			} {
				if charge.Key == own && charge.Slot == "s" {
					continue // the same for every empty name
				}
				if charge.Slot != "s" && len(name) > 40 {
					continue
				}
				if d := c.take(0, charge); d.Allowed != allowed {
					c.t.Errorf("round %d: slot %.20q key %.60q: want allowed=%t", round, charge.Slot, charge.Key, allowed)
				}
			}
		}
	}
}

// countZero checks that the zero value of each limit, and a count of zero, deny whatever costs something.
func (c *clinic) countZero() {
	zeros := []headgate.Limit{headgate.TokenBucket{}, headgate.FixedWindow{}, headgate.SlidingLog{}, headgate.SlidingWindow{}, headgate.LeakyBucket{}, headgate.Concurrency{}}
	for _, text := range []string{"token_bucket 0/s burst=9", "leaky_bucket 0/s max_wait=1s", "leaky_bucket 0/s capacity=3", "fixed_window 0/day",
		"sliding_log 0/1s", "sliding_window 0/1s", "concurrency 0 ttl=1s"} {
		zeros = append(zeros, headgate.MustParseLimit(text))
	}
	denied := headgate.Outcome{Reason: headgate.ReasonCostExceedsLimit, HasRemaining: true, RetryAfter: never()}
	for i, limit := range zeros {
		charge := held(headgate.One(fmt.Sprint(i), c.s.key(c.t, "k"), limit), "A")
		for range 2 {
			d := c.take(0, charge)
			c.same(fmt.Sprintf("%#v", limit), d.Outcomes[0], denied)
		}
		d := c.take(0, cost(charge, 0))
		c.same(fmt.Sprintf("peek at %#v", limit), d.Outcomes[0], headgate.Outcome{Allowed: true, HasRemaining: true})
	}
}

// ownClock checks takes without a time passed in.
func (s *suite) ownClock(t *testing.T) {
	l := s.New(t)
	charge := headgate.One("own", s.key(t, "k"), headgate.MustParseLimit("token_bucket 2/2h"))
	for i, allowed := range []bool{true, true, false} {
		d, err := headgate.Take(context.Background(), l, charge)
		if err != nil || d.Allowed != allowed {
			t.Fatalf("take %d: want allowed=%t, got %+v, error %v", i+1, allowed, d, err)
		}
		if after := d.Outcomes[0].RetryAfter.After; !allowed && (after <= 50*time.Minute || after > time.Hour) {
			t.Errorf("want a retry within the hour, got %s", after)
		}
	}
}

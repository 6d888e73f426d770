package algo

import (
	"math/big"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	headgate "github.com/headgate-io/headgate"
)

// limits are of every algorithm but concurrency, small enough to be exhausted and odd enough to have fractions, some
// at the ends of what is allowed.
var limits = rapid.Custom(func(t *rapid.T) headgate.Limit {
	return headgate.MustParseLimit(rapid.SampledFrom([]string{
		"token_bucket 3/1s", "token_bucket 7/1s burst=4", "token_bucket 0.3/s burst=3", "token_bucket 999.999/7ms burst=9", "token_bucket 1/1us burst=5",
		"leaky_bucket 3/1s capacity=4", "leaky_bucket 7/1s capacity=5 max_wait=333ms", "leaky_bucket 5/1s max_wait=700ms",
		"fixed_window 5/1s", "fixed_window 5/700ms", "fixed_window 9/hour zone=Australia/Lord_Howe", "fixed_window 9/day zone=America/Havana",
		"sliding_log 4/1s", "sliding_log 1/1us", "sliding_window 6/1s", "sliding_window 9/1s cells=5", "sliding_window 11/1400ms cells=7",
		"token_bucket 1/36500d", "token_bucket 5/36500d burst=4", "token_bucket 1/1us burst=1000000000000", "leaky_bucket 1/36500d max_wait=36500d",
		"leaky_bucket 3/36500d capacity=3", "fixed_window 5/36500d", "fixed_window 3/1us", "sliding_log 3/36500d", "sliding_window 9/36500d cells=2",
	}).Draw(t, "limit"))
})

// pauses go on by anything from nothing to days; steps also go back.
var (
	pauses = rapid.SampledFrom([]int64{0, 0, 1, 2, 999, 77_777, 142_857, 333_333, 500_000, 1_000_000, 3_000_001, 90_000_000_000})
	steps  = rapid.OneOf(pauses, rapid.SampledFrom([]int64{-1, -2, -50_000, -333_333, -1_000_000, -2_500_000, -90_000_000_000}))
	starts = rapid.SampledFrom([]int64{0, -1, -7_777_777, 1_772_955_000_123_456, headgate.MinTime + 200_000_000_000, headgate.MaxTime - 40_000_000_000_000})
)

func pay(l headgate.Limit, cost int64) headgate.Charge { return headgate.Charge{Limit: l, Cost: cost} }

// A denied charge passes at its retry-after and not a microsecond before.
func TestRetryAfterIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, now := limits.Draw(t, "limit"), starts.Draw(t, "start")
		var k key
		for range rapid.IntRange(1, 12).Draw(t, "takes") {
			now += steps.Draw(t, "step")
			c := pay(l, rapid.Int64Range(1, 7).Draw(t, "cost"))
			o := k.take(t, now, c)
			if o.Allowed || o.RetryAfter.State != headgate.RetryAfter {
				continue
			}
			wait := o.RetryAfter.After.Microseconds()
			if wait < 1 {
				t.Fatalf("denied with retry_after %s", o.RetryAfter)
			}
			early, right := key{cell: k.cell.Clone()}, key{cell: k.cell.Clone()}
			if o := early.take(t, now+wait-1, c); o.Allowed {
				t.Fatalf("%s: %d passes 1 µs before its retry_after of %d µs", l, c.Cost, wait)
			}
			if o := right.take(t, now+wait, c); !o.Allowed {
				t.Fatalf("%s: %d is denied at its retry_after of %d µs: %s", l, c.Cost, wait, show(o))
			}
		}
	})
}

// remaining is the largest cost that passes.
func TestRemainingIsTheLargestCostThatPasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, now := limits.Draw(t, "limit"), starts.Draw(t, "start")
		var k key
		for range rapid.IntRange(1, 12).Draw(t, "takes") {
			now += steps.Draw(t, "step")
			k.take(t, now, pay(l, rapid.Int64Range(1, 7).Draw(t, "cost")))
			o := k.take(t, now, pay(l, 0))
			if !o.HasRemaining {
				continue
			}
			fits, over := key{cell: k.cell.Clone()}, key{cell: k.cell.Clone()}
			if queue, ok := l.(headgate.LeakyBucket); ok {
				if _, waits := queue.MaxWait(); waits {
					continue // what is left of the capacity alone
				}
			}
			if o.Remaining > 0 && !fits.take(t, now, pay(l, o.Remaining)).Allowed {
				t.Fatalf("%s: the remaining %d do not pass", l, o.Remaining)
			}
			if over.take(t, now, pay(l, o.Remaining+1)).Allowed {
				t.Fatalf("%s: one more than the remaining %d passes", l, o.Remaining)
			}
		}
	})
}

// At reset_after a key is as if it had never been used.
func TestResetAfterIsTheIdleTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, now := limits.Draw(t, "limit"), starts.Draw(t, "start")
		var k key
		for range rapid.IntRange(1, 8).Draw(t, "takes") {
			now += pauses.Draw(t, "pause")
			o := k.take(t, now, pay(l, rapid.Int64Range(1, 7).Draw(t, "cost")))
			idle := now + o.ResetAfter.Microseconds()
			if o.ResetAfter > 0 && k.cell.IdleAt() != idle {
				t.Fatalf("%s: idle at %d, reset_after says %d", l, k.cell.IdleAt(), idle)
			}
			var unused key
			used := key{cell: k.cell.Clone()}
			if got, want := show(used.take(t, idle, pay(l, 0))), show(unused.take(t, idle, pay(l, 0))); got != want {
				t.Fatalf("%s at its reset: %s, never used: %s", l, got, want)
			}
		}
	})
}

// A bucket never gives more than its burst and what its rate yields in the time that passes, however the clock steps.
func TestBucketsNeverGiveMoreThanBurstAndRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		num, period := rapid.Int64Range(1, 5000).Draw(t, "num"), rapid.Int64Range(1, 9_000_000).Draw(t, "period")
		l, err := headgate.NewTokenBucket(headgate.PerFraction(num, 1000, time.Duration(period)*time.Microsecond), rapid.Int64Range(1, 20).Draw(t, "burst"))
		if err != nil {
			t.Skip(err)
		}
		var k key
		now, passed, given := starts.Draw(t, "start"), int64(0), int64(0)
		for range 40 {
			step := steps.Draw(t, "step")
			now, passed = now+step, passed+max(step, 0)
			if c := pay(l, rapid.Int64Range(1, 20).Draw(t, "cost")); k.take(t, now, c).Allowed {
				given += c.Cost
			}
			yield := big.NewRat(num, 1000*period)
			yield.Mul(yield, big.NewRat(passed, 1)).Add(yield, big.NewRat(l.Burst(), 1))
			if big.NewRat(given, 1).Cmp(yield) > 0 {
				t.Fatalf("%s gave %d in %d µs", l, given, passed)
			}
		}
	})
}

// A step of the clock backwards gives nothing: what remains after it is at most what remained before.
func TestStepsBackYieldNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, now := limits.Draw(t, "limit"), starts.Draw(t, "start")
		var k key
		for range rapid.IntRange(1, 10).Draw(t, "takes") {
			now += pauses.Draw(t, "pause")
			k.take(t, now, pay(l, rapid.Int64Range(1, 5).Draw(t, "cost")))
			before := k.take(t, now, pay(l, 0))
			now -= rapid.SampledFrom([]int64{1, 100_000, 1_500_000, 90_000_000_000}).Draw(t, "back")
			if after := k.take(t, now, pay(l, 0)); after.Remaining > before.Remaining {
				t.Fatalf("%s: %d remained, after a step back %d", l, before.Remaining, after.Remaining)
			}
		}
	})
}

// A refund gives back at most what its take charged, once.
func TestRefundGivesBackAtMostWhatWasTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, now := limits.Draw(t, "limit"), starts.Draw(t, "start")
		var k, unused key
		var d headgate.Decision
		charges, cells := []headgate.Charge{pay(l, rapid.Int64Range(1, 4).Draw(t, "first"))}, []*Cell{&k.cell}
		Take(&k.zones, now, charges, cells, &d)
		charged := d.Outcomes[0].Receipt.Charged
		for range rapid.IntRange(0, 5).Draw(t, "others") {
			now += steps.Draw(t, "step")
			k.take(t, now, pay(l, rapid.Int64Range(1, 3).Draw(t, "cost")))
		}
		now += steps.Draw(t, "step")
		before := k.take(t, now, pay(l, 0)).Remaining
		for range 2 {
			Refund(&k.zones, now, charges, cells, &d)
			if d.Outcomes[0].Receipt.Charged != 0 {
				t.Fatalf("%s: the receipt still says %d", l, d.Outcomes[0].Receipt.Charged)
			}
			after := k.take(t, now, pay(l, 0)).Remaining
			if after > before+charged {
				t.Fatalf("%s: %d remained, %d after a refund of %d", l, before, after, charged)
			}
			if most := unused.take(t, now, pay(l, 0)).Remaining; after > most {
				t.Fatalf("%s: %d remain after a refund, %d of a key never used", l, after, most)
			}
			before, charged = after, 0
		}
	})
}

// Changing limits to and fro yields nothing beyond what the larger one would have given.
func TestChangingLimitsMintsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small, large := headgate.MustParseLimit("token_bucket 2/1s burst=3"), headgate.MustParseLimit("token_bucket 7/1s burst=9")
		var k key
		now, passed, given := int64(0), int64(0), int64(0)
		for range 60 {
			step := rapid.SampledFrom([]int64{0, 0, 1, 1000, 140_000}).Draw(t, "step")
			now, passed = now+step, passed+step
			l := small
			if rapid.Bool().Draw(t, "large") {
				l = large
			}
			if k.take(t, now, pay(l, 1)).Allowed {
				given++
			}
			if most := 9 + passed*7/1_000_000; given > most {
				t.Fatalf("%d given in %d µs", given, passed)
			}
		}
	})
}

// The shortcut for plain takes decides and leaves what the long way does.
func TestPlainTakesAreAsTheLongWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := starts.Draw(t, "start")
		var long, short key
		narrow := []headgate.Limit{limits.Draw(t, "one"), limits.Draw(t, "other")}
		for range 30 {
			now += steps.Draw(t, "step")
			c := pay(rapid.SampledFrom(narrow).Draw(t, "limit"), rapid.Int64Range(0, 6).Draw(t, "cost"))
			c.Mode = rapid.SampledFrom([]headgate.Mode{headgate.Pay, headgate.Pay, headgate.Check}).Draw(t, "mode")
			var a, b headgate.Decision
			b.Outcomes = []headgate.Outcome{{Reason: headgate.ReasonGone, Wait: 9, RetryAfter: headgate.Retry{State: headgate.RetryNever, After: 9}, Receipt: headgate.Receipt{Charged: 9, Mark: 9}}}
			charges := []headgate.Charge{c}
			takeMany(&long.zones, now, charges, []*Cell{&long.cell}, &a)
			TakeOne(&short.zones, now, charges, &short.cell, &b)
			if !reflect.DeepEqual(a, b) {
				t.Fatalf("%s at %d, cost %d: %+v, by the long way %+v", c.Limit, now, c.Cost, b, a)
			}
			if long.cell.IdleAt() != short.cell.IdleAt() || long.cell.Used(now) != short.cell.Used(now) {
				t.Fatalf("%s at %d, cost %d: the cells differ", c.Limit, now, c.Cost)
			}
		}
	})
}

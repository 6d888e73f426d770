package algo

import (
	"testing"

	"pgregory.net/rapid"

	headgate "github.com/headgate-io/headgate"
)

// What is seen of a stored state is what a take of the same state answers.
func TestSeenIsWhatATakeAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, now := limits.Draw(t, "limit"), starts.Draw(t, "start")
		if l.Algorithm() == headgate.AlgSlidingLog {
			t.Skip("its state is not in numbers")
		}
		var k key
		for range rapid.IntRange(1, 10).Draw(t, "takes") {
			now += steps.Draw(t, "step")
			cost := rapid.Int64Range(0, 6).Draw(t, "cost")
			seen := See(&k.zones, l, now, stored(&k.cell))
			var got headgate.Outcome
			if seen.Judge(cost, &got); got.Allowed && cost > 0 {
				got.Receipt = seen.Pay(cost)
			}
			seen.Report(&got)
			if want := k.take(t, now, pay(l, cost)); got != want {
				t.Fatalf("%s, %d at %d: seen %+v, taken %+v", l, cost, now, got, want)
			}
			left := See(&k.zones, l, now, stored(&k.cell))
			settle := pay(l, 1_000_000)
			settle.Mode = headgate.Settle
			if want := k.take(t, now, settle).Receipt.Charged; left.Left(settle.Cost) != want {
				t.Fatalf("%s: %d left, a settling charge takes %d", l, left.Left(settle.Cost), want)
			}
		}
	})
}

func stored(c *Cell) *Stored {
	if c.by == nil {
		return nil
	}
	s := c.Clone()
	return &Stored{At: s.at, Extra: s.extra, Count: s.count, Series: s.state().series}
}

func TestIncrementAndUnits(t *testing.T) {
	seventh := headgate.MustParseLimit("token_bucket 7/s")
	if us, frac, ok := Increment(seventh, 10); us != 1_428_571 || frac != 3 || !ok {
		t.Errorf("ten sevenths of a second: %d + %d/7 µs, %t", us, frac, ok)
	}
	if _, _, ok := Increment(headgate.MustParseLimit("leaky_bucket 1/1d max_wait=1s"), 36501); ok {
		t.Error("36501 days fit")
	}
	for text, want := range map[string]int64{"token_bucket 1/1d": 36500, "leaky_bucket 0.999999999999/1m max_wait=2s": 52_559_999, "token_bucket 1000000000000/1us": 1_000_000_000_000} {
		if got := Longest(headgate.MustParseLimit(text)); got != want {
			t.Errorf("%s: %d units last 36500 days, want %d", text, got, want)
		}
	}
	for _, c := range []struct{ whole, rem, den, us, frac, want int64 }{
		{142_857, 1, 7, 0, 0, 0},
		{142_857, 1, 7, 0, 1, 1},
		{142_857, 1, 7, 142_857, 1, 1},
		{142_857, 1, 7, 142_857, 2, 2},
		{10_000, 0, 1, 20_001, 0, 3},
	} {
		if got := Units(c.whole, c.rem, c.den, c.us, c.frac); got != c.want {
			t.Errorf("%+v: %d units", c, got)
		}
	}
}

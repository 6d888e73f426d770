package algo

import (
	"math"
	"math/big"
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
		{maxSpan, 0, 1, 2 * maxSpan, 0, 2},
		{maxSpan, 0, 1, 2*maxSpan - 1, 0, 2},
		{maxSpan, 0, 1, 4 * maxSpan, 0, 2},
		{0, 1, 1_000_000_000_000, 3, 0, 3_000_000_000_000},
		{0, 1, 1_000_000_000_000, 3, 1, 3_000_000_000_001},
		{0, 1, 1_000_000_000_000, 2 * maxSpan, 0, math.MaxInt64},
		{20_000, 20_000, 999_999_999_999_999, 6_307_199_999_960_006, 307_199_999_960_006, 315_359_999_998},
		{20_000, 20_000, 999_999_999_999_999, 6_307_199_999_960_006, 307_199_999_960_007, 315_359_999_999},
		{20_000, 20_000, 999_999_999_999_999, 2 * maxSpan, 0, 315_360_000_000},
		{20_000, 20_000, 999_999_999_999_999, 4 * maxSpan, 0, 315_360_000_000},
	} {
		if got := Units(c.whole, c.rem, c.den, c.us, c.frac); got != c.want {
			t.Errorf("%+v: %d units", c, got)
		}
	}
}

// A drain is the exact time of any number of units up to the longest backlog, and above that longer than it.
func TestDrain(t *testing.T) {
	for _, c := range []struct {
		limit    string
		units    int64
		us, frac int64
	}{
		{"leaky_bucket 1/36500d max_wait=1s", 0, 0, 0},
		{"leaky_bucket 1/36500d max_wait=1s", 1, maxSpan, 0},
		{"leaky_bucket 1/36500d max_wait=1s", 2, maxBacklog, 0},
		{"leaky_bucket 1/36500d max_wait=1s", 3, maxBacklog + 1, 0},
		{"leaky_bucket 1/36500d max_wait=1s", headgate.MaxCount, maxBacklog + 1, 0},
		{"leaky_bucket 3/36500d max_wait=1s", 5, 5_256_000_000_000_000, 0},
		{"leaky_bucket 7/36500d max_wait=1s", 13, 5_856_685_714_285_714, 2},
		{"leaky_bucket 7/36500d max_wait=1s", 14, maxBacklog, 0},
		{"leaky_bucket 7/36500d max_wait=1s", 15, maxBacklog + 1, 0},
		{"leaky_bucket 1000000000000/1us max_wait=1s", headgate.MaxCount, 1, 0},
		{"leaky_bucket 1000000000000/1us max_wait=1s", headgate.MaxCount - 1, 0, 999_999_999_999},
		{"token_bucket 1000000000000/36500d", headgate.MaxCount, maxSpan, 0},
	} {
		l := headgate.MustParseLimit(c.limit)
		if us, frac := Drain(l, c.units); us != c.us || frac != c.frac {
			t.Errorf("%s: %d units last %d µs and %d parts, want %d and %d", c.limit, c.units, us, frac, c.us, c.frac)
		}
	}
}

// times and units are what rational numbers say, over all paces, and each is the inverse of the other.
func TestTimesAndUnitsAreExact(t *testing.T) {
	edges := func(most int64) *rapid.Generator[int64] {
		return rapid.OneOf(rapid.Int64Range(0, most), rapid.SampledFrom([]int64{0, min(1, most), most / 2, (most + 1) / 2, max(most-1, 0), most}))
	}
	rapid.Check(t, func(t *rapid.T) {
		den := rapid.OneOf(rapid.Int64Range(1, 1_000_000_000_000_000), rapid.SampledFrom([]int64{1, 2, 7, 999_999_999_999_999, 1_000_000_000_000_000})).Draw(t, "den")
		p := pace{edges(maxSpan-1).Draw(t, "whole"), edges(den-1).Draw(t, "rem"), den}
		switch {
		case p.rem == 0:
			p.whole, p.den = p.whole+1, 1
		case p.whole > 0 && rapid.Bool().Draw(t, "quick"):
			p.whole %= 100_000
		}
		exact := new(big.Rat).Add(big.NewRat(p.whole, 1), big.NewRat(p.rem, p.den))
		n := edges(headgate.MaxCount).Draw(t, "n")
		want := new(big.Rat).Mul(big.NewRat(n, 1), exact)
		s, ok := p.times(n)
		if fits := want.Cmp(big.NewRat(maxBacklog, 1)) <= 0; fits != ok {
			t.Fatalf("%d·%v within the longest backlog: %t, want %t", n, p, ok, fits)
		}
		if got := new(big.Rat).Add(big.NewRat(s.us, 1), big.NewRat(s.frac, p.den)); ok && got.Cmp(want) != 0 {
			t.Fatalf("%d·%v is %v, want %v", n, p, got, want)
		}
		span := span{us: edges(maxBacklog-1).Draw(t, "us"), frac: edges(p.den-1).Draw(t, "frac")}
		units := new(big.Rat).Quo(new(big.Rat).Add(big.NewRat(span.us, 1), big.NewRat(span.frac, p.den)), exact)
		down := new(big.Int).Quo(units.Num(), units.Denom())
		up := new(big.Int).Set(down)
		if !units.IsInt() {
			up.Add(up, big.NewInt(1))
		}
		most := edges(headgate.MaxCount).Draw(t, "most")
		if got := p.units(span, most); big.NewInt(got).Cmp(least(down, most)) != 0 {
			t.Fatalf("%v has %d units of %v, want %v, at most %d", span, got, p, down, most)
		}
		if got := p.unitsUp(span); big.NewInt(got).Cmp(least(up, math.MaxInt64)) != 0 {
			t.Fatalf("%v has %d units of %v rounded up, want %v", span, got, p, up)
		}
	})
}

func least(n *big.Int, most int64) *big.Int {
	if m := big.NewInt(most); n.Cmp(m) > 0 {
		return m
	}
	return n
}

package schedule

import (
	"math/big"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"pgregory.net/rapid"
)

func limit(text string) headgate.Limit { return headgate.MustParseLimit(text) }

// TestSteps: each step of a ramp, as a limit expression.
func TestSteps(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		from, to string
		k, n     int64
		want     string
	}{
		{"token_bucket 1/s burst=5", "token_bucket 4/s burst=5", 1, 600, "token_bucket 1.005/s burst=5"},
		{"token_bucket 1/s burst=5", "token_bucket 4/s burst=5", 300, 600, "token_bucket 2.5/s burst=5"},
		{"token_bucket 1/s burst=5", "token_bucket 2/s burst=6", 1, 7, "token_bucket 8/7s burst=5"},
		{"token_bucket 1/s burst=5", "token_bucket 2/s burst=6", 4, 7, "token_bucket 11/7s burst=6"},
		{"token_bucket 60/m burst=5", "token_bucket 4/s burst=5", 1, 3, "token_bucket 2/s burst=5"},
		{"token_bucket 4/s burst=5", "token_bucket 60/m burst=5", 1, 3, "token_bucket 180/1m burst=5"},
		{"token_bucket 1/h burst=1", "token_bucket 1/7d burst=1", 1, 2, "token_bucket 84.5/7d burst=1"},
		{"token_bucket 1/h burst=1", "token_bucket 1/7d burst=1", 1, 3, "token_bucket 337/21d burst=1"},
		{"token_bucket 0/s", "token_bucket 9/s burst=20", 1, 9, "token_bucket 1/s burst=3"},
		{"token_bucket 9/s burst=20", "token_bucket 0/s burst=20", 8, 9, "token_bucket 1/s burst=20"},
		{"token_bucket 0/s burst=7", "token_bucket 0/h burst=1", 1, 2, "token_bucket 0/1h burst=4"},
		// The unit of time changes where 7 times the period is too long.
		{"token_bucket 1/36500d burst=1", "token_bucket 3/36500d burst=1", 1, 7, "token_bucket 1/681333h20m burst=1"},
		// A burst that would take longer than 36500 days to fill is lowered, and too slow a rate is none.
		{"token_bucket 0/s burst=1000000", "token_bucket 1/d burst=36500", 1, 2, "token_bucket 0.5/1d burst=18250"},
		{"token_bucket 0/s burst=1", "token_bucket 7/36500d burst=1", 1, 3, "token_bucket 1.75/657000h burst=1"},
		{"token_bucket 0/s burst=1", "token_bucket 1/36500d burst=1", 1, 2, "token_bucket 0/36500d burst=1"},
		// A burst that would be full within less than a microsecond is raised.
		{"token_bucket 1000000/s burst=1", "token_bucket 2000000/s burst=2", 1, 4, "token_bucket 1250000/s burst=2"},
		// Units that are far apart.
		{"token_bucket 1/1us burst=1", "token_bucket 1/36500d burst=1", 1, 2, "token_bucket 157680000000/87h36m burst=1"},
		// More than 15 digits are rounded.
		{"token_bucket 999999999999/s burst=1000000", "token_bucket 1000000000000/s burst=1000000", 1, 3, "token_bucket 749999999999.5/750ms burst=1000000"},
		{"token_bucket 999999999999.998/s burst=1000000", "token_bucket 1000000000000/s burst=1000000", 1, 3, "token_bucket 937499999999.99875/937.5ms burst=1000000"},
		{"token_bucket 123456789.123457/s burst=1000", "token_bucket 123456789.123459/s burst=1000", 299, 700, "token_bucket 123456789.123458/s burst=1000"},
		{"leaky_bucket 1/s capacity=10", "leaky_bucket 2/s capacity=21", 1, 2, "leaky_bucket 1.5/s capacity=16"},
		{"leaky_bucket 1/s max_wait=1s", "leaky_bucket 2/s max_wait=2s", 1, 3, "leaky_bucket 4/3s max_wait=1.333333s"},
		{"leaky_bucket 1/s capacity=1 max_wait=0s", "leaky_bucket 2/s capacity=3 max_wait=4s", 3, 4, "leaky_bucket 1.75/s capacity=3 max_wait=3s"},
		{"leaky_bucket 0/s capacity=10", "leaky_bucket 1/36500d capacity=1", 1, 2, "leaky_bucket 0/36500d capacity=6"},
		{"leaky_bucket 0/s max_wait=10s", "leaky_bucket 1/36500d max_wait=10s", 1, 2, "leaky_bucket 0/36500d max_wait=10s"},
		{"leaky_bucket 1000000/s max_wait=1s", "leaky_bucket 1000000000000/s max_wait=1s", 1, 2, "leaky_bucket 500000500000/s max_wait=1s"},
		{"fixed_window 10/1m", "fixed_window 20/1m", 1, 4, "fixed_window 13/1m"},
		{"fixed_window 20/1m", "fixed_window 10/1m", 1, 4, "fixed_window 18/1m"},
		{"fixed_window 0/1m", "fixed_window 1000000000000/1m", 1, 3, "fixed_window 333333333333/1m"},
		{"fixed_window 10/day zone=Asia/Shanghai", "fixed_window 20/day zone=Asia/Shanghai", 1, 2, "fixed_window 15/day zone=Asia/Shanghai"},
		{"sliding_log 1000/1h", "sliding_log 0/1h", 999, 1000, "sliding_log 1/1h"},
		{"sliding_window 600/1m cells=6", "sliding_window 0/1m cells=6", 1, 2, "sliding_window 300/1m cells=6"},
		{"concurrency 50 ttl=60s", "concurrency 100 ttl=30s", 1, 2, "concurrency 75 ttl=45s"},
		// As long as a ramp can be.
		{"fixed_window 0/1m", "fixed_window 1000000000000/1m", 3153599999, 3153600000, "fixed_window 999999999683/1m"},
		{"leaky_bucket 1/s max_wait=0s", "leaky_bucket 1/s max_wait=36500d", 9223372035, 9223372036, "leaky_bucket 1/s max_wait=875999h59m59.658086s"},
	} {
		from, to := limit(tc.from), limit(tc.to)
		if why := noWay(from, to); why != "" {
			t.Errorf("%s to %s: %s", from, to, why)
			continue
		}
		if got := (step{tc.k, tc.n}).limits([]headgate.Limit{from}, []headgate.Limit{to})[0]; got != limit(tc.want) {
			t.Errorf("%s to %s, %d of %d: got %s, want %s", from, to, tc.k, tc.n, got, tc.want)
		}
	}
}

func TestNoWay(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ from, to, want string }{
		{"token_bucket 1/s", "fixed_window 1/s", "the algorithm changes"},
		{"fixed_window 1/1m", "fixed_window 1/2m", "the period changes"},
		{"fixed_window 1/1d", "fixed_window 1/day", "the period changes"},
		{"fixed_window 1/day", "fixed_window 1/week", "the period changes"},
		{"fixed_window 1/day", "fixed_window 1/day zone=Asia/Shanghai", "the zone changes"},
		{"sliding_log 1/1m", "sliding_log 1/2m", "the period changes"},
		{"sliding_window 1/1m", "sliding_window 1/2m", "the period changes"},
		{"sliding_window 1/1m", "sliding_window 1/1m cells=2", "the number of cells changes"},
		{"leaky_bucket 1/s capacity=1", "leaky_bucket 1/s max_wait=1s", "only one of them has a capacity"},
		{"leaky_bucket 1/s capacity=1", "leaky_bucket 1/s capacity=1 max_wait=1s", "only one of them has a max_wait"},
		{"token_bucket 1/s", "token_bucket 1/h", ""},
		{"concurrency 1 ttl=1s", "concurrency 1 ttl=2s", ""},
	} {
		for _, pair := range [][2]string{{tc.from, tc.to}, {tc.to, tc.from}} {
			if got := noWay(limit(pair[0]), limit(pair[1])); got != tc.want {
				t.Errorf("%s to %s: got %q, want %q", pair[0], pair[1], got, tc.want)
			}
		}
	}
}

// genRate draws a rate within the bounds; 0 as well.
func genRate(t *rapid.T, name string) headgate.Rate {
	periods := []time.Duration{time.Microsecond, 7 * time.Microsecond, time.Second, time.Minute, 13 * time.Hour, 24 * time.Hour, headgate.MaxPeriod}
	period := rapid.SampledFrom(periods).Draw(t, name+" period")
	den := pow10(rapid.IntRange(0, 18).Draw(t, name+" places"))
	num := rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, maxNumerator)).Draw(t, name+" numerator")
	return headgate.PerFraction(num, den, period)
}

func genTokenBucket(t *rapid.T, name string) headgate.TokenBucket {
	return rapid.Custom(func(t *rapid.T) headgate.TokenBucket {
		burst := rapid.OneOf(rapid.Int64Range(1, 100), rapid.Int64Range(1, headgate.MaxCount)).Draw(t, name+" burst")
		l, err := headgate.NewTokenBucket(genRate(t, name), burst)
		if err != nil {
			t.Skip(err)
		}
		return l
	}).Draw(t, name)
}

// TestStepsAreExact: a rate is the exact one or, if that has no form within the bounds, off by less than 5 in 10^15;
// a burst is the nearest one.
func TestStepsAreExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		from, to := genTokenBucket(t, "from"), genTokenBucket(t, "to")
		n := rapid.Int64Range(2, 100_000).Draw(t, "n")
		k := rapid.Int64Range(1, n-1).Draw(t, "k")
		got, _ := step{k, n}.limit(from, to).(headgate.TokenBucket)
		if from == to && got != to {
			t.Fatalf("%s between equal limits", got)
		}
		share := big.NewRat(k, n)
		checkRate(t, got.Rate(), between(perMicro(from.Rate()), perMicro(to.Rate()), share))
		burst, _ := between(new(big.Rat).SetInt64(from.Burst()), new(big.Rat).SetInt64(to.Burst()), share).Float64()
		if d := float64(got.Burst()) - burst; (d < -0.51 || d > 0.51) && !clamped(got) {
			t.Fatalf("burst %d, %f expected", got.Burst(), burst)
		}
	})
}

func between(a, b, share *big.Rat) *big.Rat {
	x := new(big.Rat).Sub(b, a)
	return x.Add(x.Mul(x, share), a)
}

func checkRate(t *rapid.T, got headgate.Rate, want *big.Rat) {
	x := perMicro(got)
	if want.Cmp(big.NewRat(1, maxMicros)) < 0 {
		if x.Sign() != 0 {
			t.Fatalf("a rate of %s, and less than one in 36500 days expected", x)
		}
		return
	}
	off := new(big.Rat).Sub(x, want)
	if off.Abs(off).Sign() != 0 && off.Cmp(new(big.Rat).Mul(want, big.NewRat(5, maxNumerator))) > 0 {
		t.Fatalf("a rate of %s per µs, %s expected", x.FloatString(30), want.FloatString(30))
	}
	if off.Sign() != 0 && want.Denom().Cmp(big.NewInt(maxMicros)) <= 0 && want.Num().Cmp(big.NewInt(headgate.MaxCount)) <= 0 {
		t.Fatalf("%s has an exact form and became %s", want, x)
	}
}

// clamped tells that the burst is the least or the most that the rate allows.
func clamped(l headgate.TokenBucket) bool {
	_, below := headgate.NewTokenBucket(l.Rate(), max(l.Burst()-1, 1))
	_, above := headgate.NewTokenBucket(l.Rate(), min(l.Burst()+1, headgate.MaxCount))
	return below != nil || above != nil
}

// TestRampsAreMonotone: what rises over a ramp never falls within it; a rate that is rounded, by no more than its rounding.
func TestRampsAreMonotone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		from, to := genTokenBucket(t, "from"), genTokenBucket(t, "to")
		n := rapid.Int64Range(1, 60).Draw(t, "n")
		slack := big.NewRat(maxNumerator+10, maxNumerator)
		up := perMicro(from.Rate()).Cmp(perMicro(to.Rate())) <= 0
		last := from
		for k := range n + 1 {
			at, _ := step{k, n}.limits([]headgate.Limit{from}, []headgate.Limit{to})[0].(headgate.TokenBucket)
			less, more := perMicro(last.Rate()), perMicro(at.Rate())
			if !up {
				less, more = more, less
			}
			if less.Cmp(more.Mul(more, slack)) > 0 {
				t.Fatalf("from %s to %s: %s is followed by %s", from, to, last, at)
			}
			last = at
		}
		if last != to {
			t.Fatalf("the end is %s, not %s", last, to)
		}
	})
}

// TestWholeIsMonotone: whole numbers between two never leave them, never turn back, and are the nearest.
func TestWholeIsMonotone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		from, to := rapid.Int64Range(0, maxMicros).Draw(t, "from"), rapid.Int64Range(0, maxMicros).Draw(t, "to")
		n := rapid.Int64Range(1, maxMicros/second).Draw(t, "n")
		k := rapid.Int64Range(0, n-1).Draw(t, "k")
		at, next := step{k, n}.whole(from, to), step{k + 1, n}.whole(from, to)
		begin, end := step{0, n}.whole(from, to), step{n, n}.whole(from, to)
		if (from <= to) != (at <= next) && at != next || begin != from || end != to {
			t.Fatalf("%d to %d: %d at %d of %d, then %d", from, to, at, k, n, next)
		}
		exact := between(new(big.Rat).SetInt64(from), new(big.Rat).SetInt64(to), big.NewRat(k, n))
		off := new(big.Rat).Sub(new(big.Rat).SetInt64(at), exact)
		if off.Abs(off).Cmp(big.NewRat(1, 2)) > 0 {
			t.Fatalf("%d at %d of %d from %d to %d", at, k, n, from, to)
		}
	})
}

// TestZeroLimits: the zero values of the limits go through a ramp and a warm-up without a panic.
func TestZeroLimits(t *testing.T) {
	t.Parallel()
	for _, zero := range []headgate.Limit{
		headgate.TokenBucket{}, headgate.FixedWindow{}, headgate.SlidingLog{}, headgate.SlidingWindow{}, headgate.LeakyBucket{}, headgate.Concurrency{},
	} {
		for _, other := range []headgate.Limit{
			limit("token_bucket 1/s"), limit("fixed_window 1/s"), limit("sliding_log 1/s"), limit("leaky_bucket 1/s capacity=1"), limit("concurrency 5 ttl=1s"), zero,
		} {
			if noWay(zero, other) == "" {
				step{1, 2}.limit(zero, other)
				step{1, 2}.limit(other, zero)
			}
			if got := scaled(zero, big.NewRat(1, 2)); got != zero {
				t.Errorf("half of %#v is %#v", zero, got)
			}
		}
	}
}

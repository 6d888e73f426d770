package lint

import (
	"context"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/memstore"
)

func parsed(t testing.TB, text string) headgate.Limit {
	t.Helper()
	l, err := headgate.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestMost(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		limit string
		d     time.Duration
		want  int64 // -1: no bound
	}{
		{"token_bucket 10/s burst=20", 0, 20},
		{"token_bucket 10/s burst=20", time.Second, 30},
		{"token_bucket 0.5/s burst=1", 3 * time.Second, 2},
		{"token_bucket 0/s burst=20", time.Hour, 0},
		{"leaky_bucket 10/s capacity=5", time.Second, 15},
		{"leaky_bucket 10/s max_wait=1s", time.Second, -1},
		{"fixed_window 100/1m", 0, 100},
		{"fixed_window 100/1m", time.Microsecond, 200},
		{"fixed_window 100/1m", time.Minute, 200},
		{"fixed_window 100/1m", time.Minute + time.Microsecond, 300},
		{"fixed_window 100/day zone=Asia/Shanghai", time.Hour, 200},
		{"sliding_log 5/1m", time.Minute - time.Microsecond, 5},
		{"sliding_log 5/1m", time.Minute, 10},
		{"sliding_window 60/1m", time.Microsecond, 120},
		{"sliding_window 60/1m cells=6", time.Second, 60},
		{"sliding_window 60/1m cells=6", 50 * time.Second, 60},
		{"sliding_window 60/1m cells=6", 50*time.Second + time.Microsecond, 120},
		{"sliding_window 60/1m cells=6", time.Minute, 120},
		{"fixed_window 100/36500d", 2 * headgate.MaxPeriod, 300},
		{"concurrency 5 ttl=1m", time.Second, -1},
		{"concurrency 0 ttl=1m", time.Second, 0},
	} {
		got := most(parsed(t, tc.limit), tc.d)
		if got == nil && tc.want != -1 || got != nil && got.Cmp(big.NewInt(tc.want)) != 0 {
			t.Errorf("%s in %s: got %v, want %d", tc.limit, tc.d, got, tc.want)
		}
	}
}

func TestTolerates(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		b, a string
		want bool
	}{
		{"token_bucket 10/s burst=20", "token_bucket 10/s burst=20", true},
		{"token_bucket 10/s burst=20", "token_bucket 5/s burst=20", true},
		{"token_bucket 10/s burst=20", "token_bucket 600/1m burst=20", true},
		{"token_bucket 10/s burst=20", "token_bucket 601/1m burst=20", false},
		{"token_bucket 10/s burst=20", "token_bucket 5/s burst=21", false},
		{"token_bucket 10/s burst=20", "sliding_log 20/2s", true},
		{"token_bucket 10/s burst=20", "sliding_log 20/1s", false},
		{"token_bucket 10/s burst=20", "sliding_log 21/1h", false},
		{"token_bucket 10/s burst=20", "fixed_window 10/1s", true},
		{"token_bucket 10/s burst=20", "fixed_window 11/1h", false},
		{"token_bucket 10/s burst=20", "leaky_bucket 10/s capacity=20", true},
		{"token_bucket 10/s burst=20", "leaky_bucket 1/s max_wait=1s", false},
		{"token_bucket 10/s burst=20", "concurrency 1 ttl=1m", false},
		{"token_bucket 10/s burst=20", "token_bucket 0/s burst=100", true},
		{"token_bucket 0/s burst=20", "token_bucket 1/1h burst=1", false},
		{"fixed_window 100/1m", "fixed_window 100/1m", true},
		{"fixed_window 100/1m", "fixed_window 101/1m", false},
		{"fixed_window 300/1h", "fixed_window 5/1m", true},
		{"fixed_window 299/1h", "fixed_window 5/1m", false},
		{"fixed_window 300/1h", "fixed_window 10/7m", true}, // at most ten windows touch an hour
		{"fixed_window 100/1m", "sliding_log 100/1m", true},
		{"fixed_window 100/1m", "sliding_log 100/59s", false},
		{"fixed_window 100/1m", "token_bucket 1/s burst=41", true},
		{"fixed_window 100/1m", "token_bucket 1/s burst=42", false},
		{"fixed_window 70/week zone=UTC", "fixed_window 10/day zone=UTC", true},
		{"fixed_window 69/week zone=UTC", "fixed_window 10/day zone=UTC", false},
		{"fixed_window 310/month zone=Asia/Shanghai", "fixed_window 10/day zone=Asia/Shanghai", true},
		{"fixed_window 10/day zone=UTC", "fixed_window 10/day zone=Asia/Shanghai", false},
		{"fixed_window 20/day zone=UTC", "fixed_window 10/day zone=Asia/Shanghai", false},
		{"fixed_window 30/day zone=UTC", "fixed_window 10/day zone=Asia/Shanghai", true},
		{"sliding_log 5/1m", "sliding_log 5/1m", true},
		{"sliding_log 5/1m", "sliding_log 4/1m", true},
		{"sliding_log 5/1m", "sliding_log 5/2m", true},
		{"sliding_log 10/2m", "sliding_log 5/1m", true},
		{"sliding_log 9/2m", "sliding_log 5/1m", false},
		{"sliding_log 5/1m", "fixed_window 5/1m", false},
		{"sliding_log 10/1m", "fixed_window 5/1m", true},
		{"sliding_window 60/1m cells=6", "sliding_window 60/1m cells=6", true},
		{"sliding_window 60/1m cells=6", "sliding_window 60/1m cells=3", false},
		{"sliding_window 60/1m cells=6", "sliding_log 60/70s", true},
		{"sliding_window 60/1m cells=6", "sliding_log 60/69s", false},
		{"leaky_bucket 10/s capacity=20", "leaky_bucket 10/s capacity=20", true},
		{"leaky_bucket 10/s capacity=20", "leaky_bucket 11/s capacity=20", false},
		{"leaky_bucket 10/s capacity=20", "leaky_bucket 10/s max_wait=1s", false},
		{"leaky_bucket 10/s max_wait=2s", "leaky_bucket 10/s capacity=20", true},
		{"leaky_bucket 10/s max_wait=2s", "leaky_bucket 10/s capacity=21", false},
		{"leaky_bucket 10/s max_wait=2s", "leaky_bucket 5/s max_wait=4s", true},
		{"leaky_bucket 10/s max_wait=2s", "leaky_bucket 5/s max_wait=5s", false},
		{"leaky_bucket 10/s capacity=20", "token_bucket 1/s burst=1", false}, // it also makes wait
		{"concurrency 5 ttl=1m", "concurrency 5 ttl=1m", true},
		{"concurrency 5 ttl=1m", "concurrency 5 ttl=30s", false},
		{"concurrency 5 ttl=1m", "concurrency 6 ttl=1m", false},
	} {
		if got := tolerates(parsed(t, tc.b), parsed(t, tc.a)); got != tc.want {
			t.Errorf("%s after %s: got %v", tc.b, tc.a, got)
		}
	}
}

// drawLimit makes a limit with small numbers, so that random traffic fills it.
func drawLimit(t testing.TB, r *rand.Rand) headgate.Limit {
	t.Helper()
	n := func(most int) int64 { return 1 + r.Int64N(int64(most)) }
	d := time.Duration(n(6)) * time.Second
	var l headgate.Limit
	var err error
	switch r.IntN(6) {
	case 0:
		l, err = headgate.NewTokenBucket(headgate.Per(n(6), d), n(12))
	case 1:
		l, err = headgate.NewFixedWindow(n(12), d)
	case 2:
		l, err = headgate.NewSlidingLog(n(12), d)
	case 3:
		l, err = headgate.NewSlidingWindow(n(12), d, n(4))
		if err != nil { // the cells do not divide the period
			l, err = headgate.NewSlidingWindow(n(12), d, 1)
		}
	case 4:
		l, err = headgate.NewLeakyBucket(headgate.Per(n(6), d), headgate.Capacity(n(12)))
	case 5:
		l, err = headgate.NewLeakyBucket(headgate.Per(n(6), d), headgate.MaxWait(time.Duration(n(6))*time.Second), headgate.Capacity(n(12)))
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// traffic is a store at a time of its own.
type traffic struct {
	store *memstore.Store
	now   time.Time
	r     *rand.Rand
}

func newTraffic(r *rand.Rand) *traffic {
	return &traffic{store: memstore.New(memstore.Config{SweepInterval: -1}), r: r, now: time.Unix(1_800_000_000, 0)}
}

// rest lets time pass: often none, and often up to just before or just after the edge of a second.
func (f *traffic) rest() {
	switch f.r.IntN(6) {
	case 0:
		f.now = f.now.Add(time.Duration(f.r.Int64N(3_000_000)) * time.Microsecond)
	case 1:
		f.now = f.now.Truncate(time.Second).Add(time.Second - time.Microsecond)
	case 2:
		f.now = f.now.Truncate(time.Second).Add(time.Second)
	}
}

func (f *traffic) take(t testing.TB, charges ...headgate.Charge) headgate.Decision {
	t.Helper()
	d, err := headgate.Take(context.Background(), f.store.At(f.now), charges...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestToleratesHolds tries what is claimed of two limits on the store itself: b denies nothing that a allows.
func TestToleratesHolds(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	claimed := 0
	for claimed < 150 {
		b, a := drawLimit(t, r), drawLimit(t, r)
		if !tolerates(b, a) {
			continue
		}
		claimed++
		f := newTraffic(r)
		for range 150 {
			f.rest()
			cost := 1 + r.Int64N(2)
			narrow := headgate.Charge{Slot: "b", Limit: b, Cost: cost}
			wide := headgate.Charge{Slot: "a", Limit: a, Cost: cost}
			if r.IntN(5) == 0 { // what b does not see
				f.take(t, wide)
			}
			if d := f.take(t, narrow, wide); !d.Outcomes[0].Allowed && d.Outcomes[1].Allowed {
				t.Fatalf("%s denies a cost of %d at %s, which %s allows", b, cost, f.now, a)
			}
		}
		if err := f.store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMostHolds fills limits as far as they go, and looks at every stretch of time.
func TestMostHolds(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		l := drawLimit(t, r)
		f := newTraffic(r)
		var at []time.Time
		for range 150 {
			f.rest()
			if f.take(t, headgate.One("l", "", l)).Allowed {
				at = append(at, f.now)
			}
		}
		for i := range at {
			for j := i; j < len(at); j++ {
				bound := most(l, at[j].Sub(at[i]))
				if bound != nil && bound.Cmp(big.NewInt(int64(j-i+1))) < 0 {
					t.Fatalf("%s let %d through within %s, %s at most were claimed", l, j-i+1, at[j].Sub(at[i]), bound)
				}
				if burst, rate, ok := line(l); ok && above(burst, rate, at[j].Sub(at[i]), j-i+1) {
					t.Fatalf("%s let %d through within %s, above its line", l, j-i+1, at[j].Sub(at[i]))
				}
			}
		}
		if err := f.store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func above(burst, rate *big.Rat, d time.Duration, n int) bool {
	units := new(big.Rat).Mul(rate, big.NewRat(d.Microseconds(), 1))
	return units.Add(units, burst).Cmp(big.NewRat(int64(n), 1)) < 0
}

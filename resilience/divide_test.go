package resilience

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"pgregory.net/rapid"
)

func TestDivide(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit string
		n     int
		want  string
	}{
		{"token_bucket 100/s burst=200", 4, "token_bucket 25/s burst=50"},
		{"token_bucket 100/s burst=200", 3, "token_bucket 100/3s burst=66"},
		{"token_bucket 10/s burst=2", 4, "token_bucket 5/2s burst=1"},
		{"token_bucket 0.2/s burst=1", 7, "token_bucket 0.2/7s burst=1"},
		{"token_bucket 1000000000000/1us burst=1000000000000", 7, "token_bucket 142857142857/1us burst=142857142857"},
		{"token_bucket 0/s burst=5", 3, "token_bucket 0/s burst=5"},
		// 36500 days times 4 is no period, but 2.5 in 36500 days is a rate, and so is a third rounded down.
		{"token_bucket 10/36500d burst=10", 4, "token_bucket 2.5/36500d burst=2"},
		{"token_bucket 10/36500d burst=10", 3, "token_bucket 3.33333333333333/36500d burst=3"},
		// A whole token would take longer than 36500 days.
		{"token_bucket 1/36500d burst=1", 2, "token_bucket 0/36500d burst=1"},
		// Half of the burst would be full within less than a microsecond.
		{"token_bucket 3/1us burst=3", 2, "token_bucket 1/1us burst=1"},
		{"leaky_bucket 10/s capacity=20 max_wait=2s", 3, "leaky_bucket 10/3s capacity=6 max_wait=2s"},
		{"leaky_bucket 10/s max_wait=2s", 5, "leaky_bucket 2/s max_wait=2s"},
		{"leaky_bucket 10/s max_wait=0s", 5, "leaky_bucket 2/s max_wait=0s"},
		{"leaky_bucket 1/36500d max_wait=2s", 5, "leaky_bucket 0/36500d max_wait=2s"},
		{"fixed_window 1000/1m", 3, "fixed_window 333/1m"},
		{"fixed_window 2/1m", 3, "fixed_window 1/1m"},
		{"fixed_window 0/1m", 3, "fixed_window 0/1m"},
		{"fixed_window 20000/day zone=Asia/Shanghai", 4, "fixed_window 5000/day zone=Asia/Shanghai"},
		{"sliding_log 5/5m", 2, "sliding_log 2/5m"},
		{"sliding_window 600/1m cells=6", 5, "sliding_window 120/1m cells=6"},
		{"concurrency 50 ttl=60s", 3, "concurrency 16 ttl=60s"},
		{"concurrency 50 ttl=60s", 1, "concurrency 50 ttl=60s"},
		{"concurrency 50 ttl=60s", -1, "concurrency 50 ttl=60s"},
	} {
		got := Divide(headgate.MustParseLimit(c.limit), c.n)
		if want := headgate.MustParseLimit(c.want); got != want {
			t.Errorf("%s by %d: %s, want %s", c.limit, c.n, got, want)
		}
	}
}

func TestDivideNothing(t *testing.T) {
	t.Parallel()
	for _, l := range []headgate.Limit{nil, headgate.TokenBucket{}, headgate.FixedWindow{}, headgate.SlidingLog{}, headgate.SlidingWindow{},
		headgate.LeakyBucket{}, headgate.Concurrency{}} {
		if got := Divide(l, 3); got != l {
			t.Errorf("%#v becomes %#v", l, got)
		}
	}
}

// drawLimit draws a limit of any algorithm, with numbers anywhere in their bounds.
func drawLimit(t *rapid.T) headgate.Limit {
	period := time.Duration(rapid.Int64Range(1, int64(headgate.MaxPeriod/time.Microsecond)).Draw(t, "µs")) * time.Microsecond
	if rapid.Bool().Draw(t, "short") {
		period = time.Duration(rapid.Int64Range(1, 1000).Draw(t, "few µs")) * time.Microsecond
	}
	count, burst := rapid.Int64Range(0, headgate.MaxCount).Draw(t, "count"), rapid.Int64Range(1, headgate.MaxCount).Draw(t, "burst")
	if rapid.Bool().Draw(t, "small") {
		count, burst = rapid.Int64Range(0, 20).Draw(t, "few"), rapid.Int64Range(1, 20).Draw(t, "small burst")
	}
	rate := headgate.PerFraction(count, rapid.SampledFrom([]int64{1, 5, 8, 1000, 1_000_000_000_000_000_000}).Draw(t, "den"), period)
	var l headgate.Limit
	var err error
	switch rapid.IntRange(0, 6).Draw(t, "algorithm") {
	case 0:
		l, err = headgate.NewTokenBucket(rate, burst)
	case 1:
		l, err = headgate.NewLeakyBucket(rate, headgate.Capacity(burst), headgate.MaxWait(period))
	case 2:
		l, err = headgate.NewFixedWindow(count, period)
	case 3:
		l, err = headgate.NewSlidingLog(count%1000, period)
	case 4:
		l, err = headgate.NewConcurrency(count, period)
	case 5:
		l, err = headgate.NewSlidingWindow(count, 60*period, rapid.SampledFrom([]int64{1, 6, 60}).Draw(t, "cells"))
	case 6:
		l, err = headgate.NewCalendarWindow(count, headgate.Day, "Asia/Shanghai")
	}
	if err != nil {
		t.Skip(err)
	}
	return l
}

// TestDivideIsBounded: whatever is divided by whatever, the part is a valid limit, and n of it are at most the whole and n more.
func TestDivideIsBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		whole, n := drawLimit(t), rapid.SampledFrom([]int{2, 3, 7, 10, 100, 9973, 10_000, 1 << 20, 1 << 60}).Draw(t, "n")
		part := Divide(whole, n)
		again, err := headgate.ParseLimit(part.String())
		if err != nil || again != part {
			t.Fatalf("%s by %d: %s is not valid: %v", whole, n, part, err)
		}
		wholeRate, wholeUnits := numbers(whole)
		partRate, partUnits := numbers(part)
		times := new(big.Rat).SetInt64(int64(n))
		if sum := new(big.Rat).Mul(partRate, times); sum.Cmp(wholeRate) > 0 {
			t.Fatalf("%s by %d: %s is faster than its part", whole, n, part)
		}
		sum := new(big.Int).Mul(big.NewInt(partUnits), big.NewInt(int64(n)))
		if most := new(big.Int).Add(big.NewInt(wholeUnits), big.NewInt(int64(n))); sum.Cmp(most) > 0 {
			t.Fatalf("%s by %d: %s is %s together", whole, n, part, sum)
		}
		least, exact := max(min(wholeUnits, 1), wholeUnits/int64(n)), new(big.Rat).Quo(wholeRate, times)
		if valid := fits(exact, least); partUnits < least && (wholeRate.Sign() == 0 || valid) {
			t.Fatalf("%s by %d: %s has less than its part", whole, n, part)
		} else if valid && partRate.Cmp(new(big.Rat).Mul(exact, big.NewRat(99, 100))) < 0 {
			t.Fatalf("%s by %d: %s is slower than it need be", whole, n, part)
		}
		if shape(whole) != shape(part) {
			t.Fatalf("%s by %d: %s is another kind", whole, n, part)
		}
	})
}

// fits tells whether so many units are full at a rate within the bounds of a limit.
func fits(perNanosecond *big.Rat, units int64) bool {
	if perNanosecond.Sign() == 0 || units == 0 {
		return false
	}
	full := new(big.Rat).Quo(new(big.Rat).SetInt64(units), perNanosecond)
	return full.Cmp(big.NewRat(int64(time.Microsecond), 1)) >= 0 && full.Cmp(big.NewRat(int64(headgate.MaxPeriod), 1)) <= 0
}

// shape is what dividing leaves as it is.
func shape(l headgate.Limit) string {
	switch l := l.(type) {
	case headgate.FixedWindow:
		unit, zone := l.Calendar()
		return fmt.Sprintf("%T %s %s %s", l, l.Period(), unit, zone)
	case headgate.SlidingLog:
		return fmt.Sprintf("%T %s", l, l.Period())
	case headgate.SlidingWindow:
		return fmt.Sprintf("%T %s %d", l, l.Period(), l.Cells())
	case headgate.LeakyBucket:
		_, bounded := l.Capacity()
		wait, waits := l.MaxWait()
		return fmt.Sprintf("%T %v %s %v", l, bounded, wait, waits)
	case headgate.Concurrency:
		return fmt.Sprintf("%T %s", l, l.TTL())
	}
	return fmt.Sprintf("%T", l)
}

// numbers are the rate in units per nanosecond, 0 if there is none, and the count or burst. What has a rate of 0 admits nothing.
func numbers(l headgate.Limit) (*big.Rat, int64) {
	switch l := l.(type) {
	case headgate.TokenBucket:
		return speed(l.Rate()), l.Burst() * int64(speed(l.Rate()).Sign())
	case headgate.LeakyBucket:
		units, _ := l.Capacity()
		return speed(l.Rate()), units * int64(speed(l.Rate()).Sign())
	case headgate.FixedWindow:
		return new(big.Rat), l.Count()
	case headgate.SlidingLog:
		return new(big.Rat), l.Count()
	case headgate.SlidingWindow:
		return new(big.Rat), l.Count()
	case headgate.Concurrency:
		return new(big.Rat), l.Count()
	}
	return new(big.Rat), 0
}

// TestShareAdmits: three instances that take all they can get admit together what the limit does, and at most three more.
func TestShareAdmits(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for limit, whole := range map[string]int{
		"token_bucket 100/s burst=50": 150, "fixed_window 100/1s": 200, "sliding_log 100/1s": 200, "sliding_window 100/1s cells=10": 100,
		"leaky_bucket 100/s max_wait=500ms": 151, "leaky_bucket 100/s capacity=10": 110,
	} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			const n = 3
			admitted := 0
			for range n {
				share := NewShare(openMemory(t), func() int { return n })
				for ms := range 1001 {
					admitted += takeAll(t, share.At(start.Add(time.Duration(ms)*time.Millisecond)), headgate.One("s", "k", headgate.MustParseLimit(limit)))
				}
			}
			if admitted > whole+n || admitted < whole-n {
				t.Errorf("%d admitted by %d instances, the limit admits %d", admitted, n, whole)
			}
		})
	}
}

func takeAll(t *testing.T, l headgate.Limiter, c headgate.Charge) (admitted int) {
	t.Helper()
	for {
		d, err := headgate.Take(t.Context(), l, c)
		if err != nil {
			t.Fatal(err)
		}
		if !d.Allowed {
			return admitted
		}
		admitted++
	}
}

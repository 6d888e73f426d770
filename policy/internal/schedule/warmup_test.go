package schedule

import (
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"pgregory.net/rapid"
)

func TestScaled(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		whole    string
		num, den int64
		want     string
	}{
		{"token_bucket 100/s burst=200", 1, 10, "token_bucket 10/s burst=20"},
		{"token_bucket 1/s burst=5", 1, 10, "token_bucket 0.1/s burst=1"},
		{"token_bucket 1/s burst=5", 1, 3, "token_bucket 1/3s burst=1"},
		{"token_bucket 1/s burst=5", 299, 300, "token_bucket 2.99/3s burst=4"},
		{"token_bucket 0/s burst=5", 1, 10, "token_bucket 0/s burst=5"},
		{"token_bucket 0.1/d burst=3650", 1, 2, "token_bucket 0.05/1d burst=1825"},
		{"token_bucket 1/36500d burst=1", 1, 2, "token_bucket 0/36500d burst=1"},
		{"leaky_bucket 10/s capacity=20 max_wait=2s", 1, 4, "leaky_bucket 2.5/s capacity=5 max_wait=2s"},
		{"leaky_bucket 10/s capacity=20", 1, 100, "leaky_bucket 0.1/s capacity=1"},
		{"leaky_bucket 10/s max_wait=0s", 1, 4, "leaky_bucket 2.5/s max_wait=0s"},
		{"leaky_bucket 0/s max_wait=2s", 1, 4, "leaky_bucket 0/s max_wait=2s"},
		{"fixed_window 1000/1m", 1, 3, "fixed_window 333/1m"},
		{"fixed_window 3/day zone=Asia/Shanghai", 1, 4, "fixed_window 1/day zone=Asia/Shanghai"},
		{"fixed_window 0/1m", 1, 3, "fixed_window 0/1m"},
		{"sliding_log 5/5m", 1, 10, "sliding_log 1/5m"},
		{"sliding_window 600/1m cells=6", 999, 1000, "sliding_window 599/1m cells=6"},
		{"concurrency 50 ttl=60s", 1, 7, "concurrency 7 ttl=60s"},
	} {
		if got := scaled(limit(tc.whole), big.NewRat(tc.num, tc.den)); got != limit(tc.want) {
			t.Errorf("%d/%d of %s: got %s, want %s", tc.num, tc.den, tc.whole, got, tc.want)
		}
	}
}

// TestScaledIsExact: a part of a rate is the exact part, to 15 digits at least.
func TestScaledIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		whole := genTokenBucket(t, "whole")
		w, err := newWarmup(&Warmup{From: rapid.Float64Range(leastFrom, 1).Draw(t, "from"), Over: 100 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		f := w.factor(step{rapid.Int64Range(0, 99).Draw(t, "k"), 100})
		got, _ := scaled(whole, f).(headgate.TokenBucket)
		checkRate(t, got.Rate(), new(big.Rat).Mul(perMicro(whole.Rate()), f))
		if got.Burst() > whole.Burst() && !clamped(got) || got.Burst() < 1 {
			t.Fatalf("a part of %s is %s", whole, got)
		}
	})
}

func TestWarmup(t *testing.T) {
	t.Parallel()
	base := []headgate.Limit{limit("token_bucket 100/s burst=200"), limit("fixed_window 0/1m")}
	p, err := New(base, nil, &Warmup{From: 0.1, Over: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	begin := mustTime(t, "2026-01-01T00:00:00.25Z")
	for _, tc := range []struct {
		after       time.Duration
		want        string
		from, until time.Duration // after begin
	}{
		{-time.Hour, "token_bucket 10/s burst=20", timeOf(past).Sub(begin), time.Second},
		{0, "token_bucket 10/s burst=20", timeOf(past).Sub(begin), time.Second},
		{time.Second, "token_bucket 10.3/s burst=20", time.Second, 2 * time.Second},
		{2*time.Second + time.Second/2, "token_bucket 10.6/s burst=21", 2 * time.Second, 3 * time.Second},
		{150 * time.Second, "token_bucket 55/s burst=110", 150 * time.Second, 151 * time.Second},
		{5*time.Minute - time.Microsecond, "token_bucket 99.7/s burst=199", 299 * time.Second, 300 * time.Second},
		{5 * time.Minute, "token_bucket 100/s burst=200", 5 * time.Minute, timeOf(future).Sub(begin)},
	} {
		got, from, until := p.At(begin.Add(tc.after), begin)
		if got[0] != limit(tc.want) || got[1] != base[1] || from.Sub(begin) != tc.from || until.Sub(begin) != tc.until {
			t.Errorf("after %s: got %v from %s until %s, want %s from %s until %s", tc.after, got, from.Sub(begin), until.Sub(begin), tc.want, tc.from, tc.until)
		}
	}
	if got, from, until := p.At(begin, time.Time{}); got[0] != base[0] || !from.IsZero() || !until.Equal(timeOf(future)) {
		t.Errorf("without a begin: %v from %s until %s", got, from, until)
	}
}

func TestWarmupErrors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		w    Warmup
		want string
	}{
		{Warmup{0, time.Second}, "from 0 is outside 0.0001% to 100%"},
		{Warmup{-0.5, time.Second}, "is outside"},
		{Warmup{1.0000001, time.Second}, "is outside"},
		{Warmup{1e-300, time.Second}, "is outside"},
		{Warmup{math.NaN(), time.Second}, "is outside"},
		{Warmup{math.Inf(1), time.Second}, "is outside"},
		{Warmup{0.5, 0}, "over 0s must be above 0"},
		{Warmup{0.5, -time.Second}, "over -1s must be above 0"},
	} {
		if p, err := New([]headgate.Limit{limit("token_bucket 1/s")}, nil, &tc.w); p != nil || err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: got %v", tc.w, err)
		}
	}
	for _, w := range []Warmup{{1, time.Nanosecond}, {leastFrom, math.MaxInt64}} {
		p, err := New([]headgate.Limit{limit("token_bucket 1/s")}, nil, &w)
		if err != nil {
			t.Errorf("%v: %v", w, err)
			continue
		}
		p.At(time.Unix(0, 0), time.Unix(0, 0))
	}
}

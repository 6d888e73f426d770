package limitertest

import (
	"time"

	headgate "github.com/headgate-io/headgate"
	"pgregory.net/rapid"
)

const day = 24 * time.Hour

// pick draws one of some values.
func pick[V any](t *rapid.T, label string, values ...V) V {
	return rapid.SampledFrom(values).Draw(t, label)
}

// count draws a whole number from 0 to most, edges and round numbers first.
func count(t *rapid.T, label string, most int64) int64 {
	n := pick[int64](t, label, 3, 1, 2, 5, 10, 60, 999, 65535, 1_000_000, 999_999_999_999, headgate.MaxCount, 0, -1)
	if n < 0 || n > most {
		return rapid.Int64Range(0, most).Draw(t, label)
	}
	return n
}

func period(t *rapid.T) time.Duration {
	p := pick(t, "period", time.Second, time.Minute, time.Microsecond, 7*time.Microsecond, time.Millisecond, 13*time.Second,
		time.Hour, day, 7*day, headgate.MaxPeriod, 0)
	if p == 0 {
		p = time.Duration(rapid.Int64Range(1, int64(headgate.MaxPeriod/time.Microsecond)).Draw(t, "period")) * time.Microsecond
	}
	return p
}

// rate draws counts with and without a fraction.
func rate(t *rapid.T) headgate.Rate {
	den := pick[int64](t, "den", 1, 1, 1, 5, 2, 10, 1000, 3125, 1_000_000, 1_000_000_000_000)
	num := count(t, "num", headgate.MaxCount)
	if den > 1 && pick(t, "long", false, true) {
		num = rapid.Int64Range(1, 999_999_999_999_999).Draw(t, "num")
	}
	return headgate.PerFraction(num, den, period(t))
}

// tokenBucket draws until the bounds hold; each draw that fails is replaced by a smaller one.
func tokenBucket(t *rapid.T) headgate.Limit {
	for range 4 {
		r, burst := rate(t), count(t, "burst", headgate.MaxCount)
		for _, b := range []int64{burst, 0, 1} {
			if l, err := headgate.NewTokenBucket(r, b); err == nil {
				return l
			}
		}
	}
	return parsed(t, "token_bucket 10/13s burst=1", "token_bucket 1/36500d burst=1", "token_bucket 0.000001/1s burst=3",
		"token_bucket 1000000000000/1s burst=1000000000000", "token_bucket 999999999999.999/7us burst=999999999999", "token_bucket 3/s burst=1")
}

func leakyBucket(t *rapid.T) headgate.Limit {
	for range 4 {
		r, capacity := rate(t), max(1, count(t, "capacity", headgate.MaxCount))
		wait := headgate.MaxWait(pick(t, "max_wait", 2*time.Second, 0, 333333*time.Microsecond, time.Microsecond, time.Hour, headgate.MaxPeriod))
		bounds := [][]headgate.LeakyOption{{headgate.Capacity(capacity)}, {wait}, {headgate.Capacity(capacity), wait}}
		for i := range bounds {
			bound := bounds[(i+rapid.IntRange(0, 2).Draw(t, "bounds"))%3]
			if l, err := headgate.NewLeakyBucket(r, bound...); err == nil {
				return l
			}
		}
	}
	return parsed(t, "leaky_bucket 4000/s max_wait=1s", "leaky_bucket 3/s capacity=7", "leaky_bucket 1/36500d capacity=1",
		"leaky_bucket 0.3/s capacity=20 max_wait=10s", "leaky_bucket 1/36500d max_wait=36500d", "leaky_bucket 7/1us capacity=1000000000000")
}

func parsed(t *rapid.T, texts ...string) headgate.Limit {
	l, err := headgate.ParseLimit(pick(t, "limit", texts...))
	if err != nil {
		t.Fatalf("limitertest: %v", err)
	}
	return l
}

// made is for limits whose numbers are within bounds by the way they are drawn.
func made[L headgate.Limit](t *rapid.T, l L, err error) headgate.Limit {
	if err != nil {
		t.Fatalf("limitertest: %v", err)
	}
	return l
}

func fixedWindow(t *rapid.T) headgate.Limit {
	l, err := headgate.NewFixedWindow(count(t, "count", headgate.MaxCount), period(t))
	return made(t, l, err)
}

// zones whose clocks do something odd.
func zones() []string {
	return []string{"UTC", "America/New_York", "Europe/Dublin", "Australia/Lord_Howe", "Pacific/Apia", "America/Sao_Paulo",
		"America/St_Johns", "Asia/Kathmandu", "Antarctica/Troll", "Africa/Casablanca", "Asia/Gaza", "Africa/Monrovia", "America/Caracas",
		"Pacific/Kwajalein", "Asia/Shanghai", "Europe/Amsterdam"}
}

func calendarWindow(t *rapid.T) headgate.Limit {
	unit := pick(t, "unit", headgate.Day, headgate.Hour, headgate.Week, headgate.Month)
	l, err := headgate.NewCalendarWindow(count(t, "count", headgate.MaxCount), unit, rapid.SampledFrom(zones()).Draw(t, "zone"))
	return made(t, l, err)
}

func slidingLog(t *rapid.T) headgate.Limit {
	n := pick[int64](t, "count", 3, 1, 2, 5, 60, headgate.MaxLogCount, 0)
	l, err := headgate.NewSlidingLog(n, period(t))
	return made(t, l, err)
}

func slidingWindow(t *rapid.T) headgate.Limit {
	cells := pick[int64](t, "cells", 1, 2, 3, 6, 7, 60)
	micros := max(period(t).Microseconds()/cells, 1) * cells
	l, err := headgate.NewSlidingWindow(count(t, "count", headgate.MaxCount), time.Duration(micros)*time.Microsecond, cells)
	return made(t, l, err)
}

func concurrency(t *rapid.T) headgate.Limit {
	n := pick[int64](t, "count", 2, 1, 3, headgate.MaxCount, 0)
	l, err := headgate.NewConcurrency(n, period(t))
	return made(t, l, err)
}

func anyLimit(t *rapid.T) headgate.Limit {
	return pick(t, "algorithm", boundedTokenBucket, boundedFixedWindow, boundedSlidingLog, boundedSlidingWindow, boundedLeakyBucket, boundedConcurrency,
		calendarWindow)(t)
}

// smallLimit draws limits that a few takes exhaust within seconds.
func smallLimit(t *rapid.T) headgate.Limit {
	return parsed(t, "token_bucket 1/s burst=2", "token_bucket 3/s burst=1", "token_bucket 0.7/s burst=3", "fixed_window 2/1s", "fixed_window 3/1s",
		"sliding_log 2/1s", "sliding_log 3/2s", "sliding_window 2/1s", "sliding_window 5/2s cells=2", "sliding_window 4/3s cells=3",
		"leaky_bucket 1/s capacity=2", "leaky_bucket 2/s max_wait=1s", "leaky_bucket 3/s capacity=3 max_wait=500ms", "concurrency 1 ttl=2s",
		"concurrency 2 ttl=1s", "token_bucket 0/s", "fixed_window 0/1s")
}

func drawLockout(t *rapid.T) *headgate.Lockout {
	shut := pick(t, "for", time.Second, 2*time.Second, time.Microsecond, headgate.MaxPeriod)
	l := &headgate.Lockout{
		After:  pick[int64](t, "after", 1, 2, 3),
		Within: pick(t, "within", time.Second, 3*time.Second, time.Microsecond, headgate.MaxPeriod),
		For:    shut,
	}
	if l.After == 1 && pick(t, "without", false, true) {
		l.Within = 0
	}
	if times := pick[int64](t, "max", 0, 4, 1, 3); times > 0 {
		l.Max = max(shut, min(shut, headgate.MaxPeriod/4)*time.Duration(times))
	}
	return l
}

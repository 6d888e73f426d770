package limitertest

import (
	headgate "github.com/headgate-io/headgate"
	"pgregory.net/rapid"
)

// drawAtBounds returns a draw that gives, about as often as what the other draws, one of the limits whose numbers are at their
// ends: periods of 1 µs and of 36500 days, counts of 10^12, spans that just fit, waits that are none or the longest.
func drawAtBounds(other func(*rapid.T) headgate.Limit, texts ...string) func(*rapid.T) headgate.Limit {
	return func(t *rapid.T) headgate.Limit {
		if pick(t, "at bounds", false, true) {
			return parsed(t, texts...)
		}
		return other(t)
	}
}

func boundedTokenBucket(t *rapid.T) headgate.Limit {
	return drawAtBounds(tokenBucket, "token_bucket 1/36500d burst=1", "token_bucket 7/36500d burst=7", "token_bucket 1/1us burst=1",
		"token_bucket 1/1us burst=1000000000000", "token_bucket 1000000000000/1us burst=1000000000000",
		"token_bucket 1000000000000/36500d burst=1000000000000", "token_bucket 999999999999.999/36500d burst=999999999999",
		"token_bucket 0.999999999999999/20ms burst=157679999999")(t)
}

func boundedLeakyBucket(t *rapid.T) headgate.Limit {
	return drawAtBounds(leakyBucket, "leaky_bucket 1/36500d max_wait=36500d", "leaky_bucket 1/36500d max_wait=0s", "leaky_bucket 1/36500d max_wait=2s",
		"leaky_bucket 3/36500d max_wait=36500d", "leaky_bucket 1/20000d max_wait=36500d", "leaky_bucket 1/1us max_wait=36500d",
		"leaky_bucket 1000000000000/1us max_wait=36500d", "leaky_bucket 1000000000000/1us capacity=1000000000000 max_wait=1us",
		"leaky_bucket 1000000000000/36500d max_wait=36500d", "leaky_bucket 1000000000000/36500d capacity=1000000000000",
		"leaky_bucket 7/36500d capacity=7 max_wait=36500d", "leaky_bucket 1/36500d capacity=1 max_wait=1us",
		"leaky_bucket 0.999999999999999/20ms max_wait=36500d", "leaky_bucket 0.999999999999999/20ms capacity=157679999999")(t)
}

func boundedFixedWindow(t *rapid.T) headgate.Limit {
	return drawAtBounds(fixedWindow, "fixed_window 1/36500d", "fixed_window 1000000000000/36500d", "fixed_window 1/1us", "fixed_window 1000000000000/1us")(t)
}

func boundedSlidingLog(t *rapid.T) headgate.Limit {
	return drawAtBounds(slidingLog, "sliding_log 1/36500d", "sliding_log 1000/36500d", "sliding_log 1/1us", "sliding_log 1000/1us")(t)
}

func boundedSlidingWindow(t *rapid.T) headgate.Limit {
	return drawAtBounds(slidingWindow, "sliding_window 1/36500d", "sliding_window 1000000000000/36500d", "sliding_window 1000000000000/36500d cells=2",
		"sliding_window 1000000000000/36500d cells=60", "sliding_window 1/1us", "sliding_window 1000000000000/1us", "sliding_window 999999999999/60us cells=60")(t)
}

func boundedConcurrency(t *rapid.T) headgate.Limit {
	return drawAtBounds(concurrency, "concurrency 1 ttl=36500d", "concurrency 2 ttl=1us", "concurrency 1000000000000 ttl=36500d")(t)
}

// roomOf is the largest cost that a limit ever admits.
func roomOf(limit headgate.Limit) int64 {
	switch l := limit.(type) {
	case headgate.TokenBucket:
		return l.Burst()
	case headgate.LeakyBucket:
		if capacity, ok := l.Capacity(); ok {
			return capacity
		}
		return lasting(l.Pace())
	case headgate.FixedWindow:
		return l.Count()
	case headgate.SlidingLog:
		return l.Count()
	case headgate.SlidingWindow:
		return l.Count()
	}
	return 1
}

// lasting is how many units last at most the longest period.
func lasting(whole, rem, den int64) int64 {
	if den == 0 {
		return 0
	}
	low, high := int64(0), int64(headgate.MaxCount) // low lasts no longer; what is above high does
	if whole > 0 {
		high = min(high, headgate.MaxPeriod.Microseconds()/whole)
	}
	for low < high {
		if mid := high - (high-low)/2; fill(mid, whole, rem, den) <= headgate.MaxPeriod.Microseconds() {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}

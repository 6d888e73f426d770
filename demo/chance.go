package demo

import (
	"context"
	"math"
	"math/rand/v2"
	"time"
)

// chance draws what one visitor does. It belongs to one goroutine.
type chance struct{ r *rand.Rand }

// newChance returns the stream of random numbers of one visitor: the same for the same seed, another for another one.
func newChance(seed, stream uint64) chance {
	return chance{rand.New(rand.NewPCG(seed, stream))}
}

// lognormal draws a time around a median; most are near it, some several times as long. It is at most longest.
func (c chance) lognormal(median time.Duration, sigma float64, longest time.Duration) time.Duration {
	return atMost(float64(median)*math.Exp(sigma*c.r.NormFloat64()), longest)
}

// pareto draws a time from least up, with a tail that thins out slowly: the smaller alpha, the heavier. It is at most
// longest.
func (c chance) pareto(least time.Duration, alpha float64, longest time.Duration) time.Duration {
	return atMost(float64(least)/math.Pow(1-c.r.Float64(), 1/alpha), longest)
}

// between draws evenly from a range.
func (c chance) between(from, to time.Duration) time.Duration {
	return from + time.Duration(c.r.Float64()*float64(to-from))
}

// exponential draws the gap between events that come at random, one every mean.
func (c chance) exponential(mean, longest time.Duration) time.Duration {
	return atMost(float64(mean)*c.r.ExpFloat64(), longest)
}

func (c chance) happens(probability float64) bool { return c.r.Float64() < probability }

// atMost compares as numbers, so that a draw beyond the range of a Duration cannot wrap around.
func atMost(nanos float64, longest time.Duration) time.Duration {
	if nanos >= float64(longest) {
		return longest
	}
	return time.Duration(nanos)
}

// pause waits and reports whether the time passed before ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

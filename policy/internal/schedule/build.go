package schedule

import (
	"math/big"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// made returns what a constructor returns, or another limit if it refused. The numbers here lie between those of limits
// that exist, or are made to fit, so that none is refused; the tests hold that.
func made[L headgate.Limit](otherwise L) func(L, error) headgate.Limit {
	return func(l L, err error) headgate.Limit {
		if err != nil {
			return otherwise
		}
		return l
	}
}

// withCount returns the limit with another count, which is at most as large as that of a limit that exists.
func withCount(l headgate.Limit, count int64) headgate.Limit {
	switch l := l.(type) {
	case headgate.FixedWindow:
		if unit, zone := l.Calendar(); unit != headgate.NotCalendar {
			return made(l)(headgate.NewCalendarWindow(count, unit, zone))
		}
		return made(l)(headgate.NewFixedWindow(count, l.Period()))
	case headgate.SlidingLog:
		return made(l)(headgate.NewSlidingLog(count, l.Period()))
	case headgate.SlidingWindow:
		return made(l)(headgate.NewSlidingWindow(count, l.Period(), l.Cells()))
	case headgate.Concurrency:
		return made(l)(headgate.NewConcurrency(count, l.TTL()))
	}
	return l
}

// tokenBucket returns the bucket of a pace, with the burst nearest to the one given that fills in 1 µs to MaxPeriod. Between
// the limits of a ramp only a count near 0 has too slow a pace for its burst; where not even one token fills in time, the
// count is 0.
func tokenBucket(p pace, burst int64, otherwise headgate.TokenBucket) headgate.Limit {
	rate := p.rate()
	l, err := headgate.NewTokenBucket(rate, burst)
	if err != nil {
		rate, burst = fit(rate, burst)
		l, err = headgate.NewTokenBucket(rate, burst)
	}
	return made(otherwise)(l, err)
}

// queue has the numbers of a leaky bucket.
type queue struct {
	rate     pace
	capacity int64 // 0: none
	maxWait  time.Duration
	hasWait  bool
}

// limit returns the leaky bucket, its capacity fitted like the burst of a token bucket.
func (q queue) limit(otherwise headgate.LeakyBucket) headgate.Limit {
	rate := q.rate.rate()
	l, err := headgate.NewLeakyBucket(rate, q.bounds()...)
	if err != nil {
		fitted, capacity := fit(rate, max(q.capacity, 1))
		if rate = fitted; q.capacity > 0 {
			q.capacity = capacity
		}
		l, err = headgate.NewLeakyBucket(rate, q.bounds()...)
	}
	return made(otherwise)(l, err)
}

func (q queue) bounds() (bounds []headgate.LeakyOption) {
	if q.capacity > 0 {
		bounds = append(bounds, headgate.Capacity(q.capacity))
	}
	if q.hasWait {
		bounds = append(bounds, headgate.MaxWait(q.maxWait))
	}
	return bounds
}

// fit returns the number of units nearest to the one given that the rate makes in 1 µs to MaxPeriod, or a count of 0 if
// it makes none in MaxPeriod.
func fit(r headgate.Rate, units int64) (headgate.Rate, int64) {
	x := perMicro(r)
	least := ceil(x)
	most := floor(x.Mul(x, big.NewRat(maxMicros, 1)))
	if most < 1 {
		return headgate.Per(0, r.Period()), units
	}
	return r, min(max(units, least), most)
}

// floor and ceil round a number of 0 or more to a whole one, at most MaxCount.
func floor(x *big.Rat) int64 {
	q := new(big.Int).Quo(x.Num(), x.Denom())
	if !q.IsInt64() || q.Int64() > headgate.MaxCount {
		return headgate.MaxCount
	}
	return q.Int64()
}

func ceil(x *big.Rat) int64 {
	n := floor(x)
	if n < headgate.MaxCount && new(big.Rat).SetInt64(n).Cmp(x) < 0 {
		n++
	}
	return n
}

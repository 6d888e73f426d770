package schedule

import (
	"math/big"
	"math/bits"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// noWay says why there is nothing between two limits, "" if there is. A change of what it names starts the states of a
// limit afresh, and a ramp would do so every second.
func noWay(from, to headgate.Limit) string {
	if from.Algorithm() != to.Algorithm() {
		return "the algorithm changes"
	}
	switch from := from.(type) {
	case headgate.FixedWindow:
		to := to.(headgate.FixedWindow)
		fromUnit, fromZone := from.Calendar()
		toUnit, toZone := to.Calendar()
		if from.Period() != to.Period() || fromUnit != toUnit {
			return "the period changes"
		}
		if fromZone != toZone {
			return "the zone changes"
		}
	case headgate.SlidingLog:
		if from.Period() != to.(headgate.SlidingLog).Period() {
			return "the period changes"
		}
	case headgate.SlidingWindow:
		to := to.(headgate.SlidingWindow)
		if from.Period() != to.Period() {
			return "the period changes"
		}
		if from.Cells() != to.Cells() {
			return "the number of cells changes"
		}
	case headgate.LeakyBucket:
		return noWayBetweenQueues(from, to.(headgate.LeakyBucket))
	}
	return ""
}

func noWayBetweenQueues(from, to headgate.LeakyBucket) string {
	_, a := from.Capacity()
	_, b := to.Capacity()
	if a != b {
		return "only one of them has a capacity"
	}
	_, a = from.MaxWait()
	_, b = to.MaxWait()
	if a != b {
		return "only one of them has a max_wait"
	}
	return ""
}

// step is k of n equal steps from one thing to another, 0 ≤ k ≤ n, n ≥ 1.
type step struct{ k, n int64 }

// stepAt returns the step of one second that a time since the begin falls into, and how long it lasts, counted from the
// begin; the last one has no end.
func stepAt(since, n int64) (s step, lasts span) {
	k := min(max(since/second, 0), n)
	lasts = span{k * second, (k + 1) * second}
	if k == 0 {
		lasts.from = past
	}
	if k == n {
		lasts.until = future
	}
	return step{k, n}, lasts
}

// steps returns how many steps of one second a duration has, rounded up.
func steps(d time.Duration) int64 {
	n := int64(d / time.Second)
	if d%time.Second > 0 {
		n++
	}
	return n
}

// limits returns the limits at a step between two lists with a way between them.
func (s step) limits(from, to []headgate.Limit) []headgate.Limit {
	switch s.k {
	case 0:
		return from
	case s.n:
		return to
	}
	between := make([]headgate.Limit, len(from))
	for i := range from {
		between[i] = s.limit(from[i], to[i])
	}
	return between
}

func (s step) limit(from, to headgate.Limit) headgate.Limit {
	if from == to {
		return to
	}
	switch to := to.(type) {
	case headgate.TokenBucket:
		from := from.(headgate.TokenBucket)
		return tokenBucket(s.rate(from.Rate(), to.Rate()), s.whole(from.Burst(), to.Burst()), to)
	case headgate.LeakyBucket:
		return s.leakyBucket(from.(headgate.LeakyBucket), to)
	case headgate.FixedWindow:
		return withCount(to, s.whole(from.(headgate.FixedWindow).Count(), to.Count()))
	case headgate.SlidingLog:
		return withCount(to, s.whole(from.(headgate.SlidingLog).Count(), to.Count()))
	case headgate.SlidingWindow:
		return withCount(to, s.whole(from.(headgate.SlidingWindow).Count(), to.Count()))
	case headgate.Concurrency:
		from := from.(headgate.Concurrency)
		ttl := s.duration(from.TTL(), to.TTL())
		return made(to)(headgate.NewConcurrency(s.whole(from.Count(), to.Count()), ttl))
	}
	return to
}

func (s step) leakyBucket(from, to headgate.LeakyBucket) headgate.Limit {
	q := queue{rate: s.rate(from.Rate(), to.Rate())}
	if end, ok := to.Capacity(); ok {
		begin, _ := from.Capacity()
		q.capacity = s.whole(begin, end)
	}
	if end, ok := to.MaxWait(); ok {
		begin, _ := from.MaxWait()
		q.maxWait, q.hasWait = s.duration(begin, end), true
	}
	return q.limit(to)
}

// rate returns from + (to - from)·k/n in units per microsecond, and the period in which it is best said.
func (s step) rate(from, to headgate.Rate) (r pace) {
	a, b := perMicro(from), perMicro(to)
	r.units = b.Sub(b, a)
	r.units.Mul(r.units, big.NewRat(s.k, s.n))
	r.units.Add(r.units, a)
	if r.period = to.Period(); r.period <= 0 { // the zero limit
		r.period = time.Second
	}
	return r
}

// whole returns from + (to - from)·k/n, rounded to the nearest whole number, halves up. The products stay in 128 bits and the
// quotient in 63: a number is at most 10^12, or 3.2·10^15 µs, and a step at most 3.2·10^9.
func (s step) whole(from, to int64) int64 {
	hi, lo := bits.Mul64(uint64(from), uint64(s.n-s.k))
	hi2, lo2 := bits.Mul64(uint64(to), uint64(s.k))
	lo, carry := bits.Add64(lo, lo2, 0)
	hi += hi2 + carry
	lo, carry = bits.Add64(lo, uint64(s.n)/2, 0)
	hi += carry
	q, _ := bits.Div64(hi, lo, uint64(s.n))
	return int64(q)
}

func (s step) duration(from, to time.Duration) time.Duration {
	return time.Duration(s.whole(from.Microseconds(), to.Microseconds())) * time.Microsecond
}

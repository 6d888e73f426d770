package resilience

import (
	"math/big"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// Divide returns the n-th part of a limit: what each of n instances may admit by itself, so that together they admit the limit,
// and at most n more in any window or burst.
//
// A rate becomes exactly N/n. Counts, bursts, capacities and holders become max(1, ⌊N/n⌋), so that no key is shut on every
// instance; a count of 0 stays 0. Periods of windows, zones, cells, max_wait and ttl stay. Where the exact part is out of the
// bounds of a limit, it is rounded down to what is within them, in the extreme to a rate of 0: a part is never too large.
//
// An n of 1 or less, and a limit that is nil or zero, are returned as they are. Divide allocates; see [Share].
func Divide(l headgate.Limit, n int) headgate.Limit {
	if n <= 1 {
		return l
	}
	switch l := l.(type) {
	case headgate.TokenBucket:
		if num, _ := l.Rate().Count(); num == 0 {
			return l
		}
		return divideTokens(l, int64(n))
	case headgate.LeakyBucket:
		if num, _ := l.Rate().Count(); num == 0 {
			return l
		}
		return divideQueue(l, int64(n))
	case headgate.FixedWindow:
		count := part(l.Count(), int64(n))
		if unit, zone := l.Calendar(); unit != headgate.NotCalendar {
			return valid(l)(headgate.NewCalendarWindow(count, unit, zone))
		}
		return valid(l)(headgate.NewFixedWindow(count, l.Period()))
	case headgate.SlidingLog:
		return valid(l)(headgate.NewSlidingLog(part(l.Count(), int64(n)), l.Period()))
	case headgate.SlidingWindow:
		return valid(l)(headgate.NewSlidingWindow(part(l.Count(), int64(n)), l.Period(), l.Cells()))
	case headgate.Concurrency:
		return valid(l)(headgate.NewConcurrency(part(l.Count(), int64(n)), l.TTL()))
	}
	return l
}

// valid takes the answer of a constructor. One that refuses can only have been given the zero value of its type, which denies.
func valid[L headgate.Limit](given L) func(L, error) headgate.Limit {
	return func(divided L, err error) headgate.Limit {
		if err != nil {
			return given
		}
		return divided
	}
}

// part is the n-th part of a count.
func part(count, n int64) int64 {
	if count == 0 {
		return 0
	}
	return max(1, count/n)
}

func divideTokens(l headgate.TokenBucket, n int64) headgate.Limit {
	burst := part(l.Burst(), n)
	return slower(l.Rate(), n, burst, func(r headgate.Rate) (headgate.Limit, error) {
		return headgate.NewTokenBucket(r, burst)
	})
}

func divideQueue(l headgate.LeakyBucket, n int64) headgate.Limit {
	bounds, units := make([]headgate.LeakyOption, 0, 2), int64(1)
	if capacity, ok := l.Capacity(); ok {
		units = part(capacity, n)
		bounds = append(bounds, headgate.Capacity(units))
	}
	if wait, ok := l.MaxWait(); ok {
		bounds = append(bounds, headgate.MaxWait(wait))
	}
	return slower(l.Rate(), n, units, func(r headgate.Rate) (headgate.Limit, error) {
		return headgate.NewLeakyBucket(r, bounds...)
	})
}

// slower makes a limit of the n-th part of a rate: exactly, or of the nearest lower rate that is valid with so many units of
// burst or capacity.
func slower(r headgate.Rate, n, units int64, build func(headgate.Rate) (headgate.Limit, error)) headgate.Limit {
	candidates := [...]headgate.Rate{
		exactly(r, n),
		decimally(r, n),
		headgate.Per(units, time.Microsecond), // all else is full in less than that
		headgate.Per(0, r.Period()),
	}
	for i, rate := range candidates {
		if i > 0 && faster(rate, r, n) {
			continue
		}
		if l, err := build(rate); err == nil {
			return l
		}
	}
	return headgate.TokenBucket{} // cannot be: a rate of 0 is always valid. It denies
}

// exactly is the n-th part of a rate, by the count where that divides, else by the period too. It may be out of bounds.
func exactly(r headgate.Rate, n int64) headgate.Rate {
	num, den := r.Count()
	g := gcd(num, n)
	num, n = num/g, n/g
	if n > int64(headgate.MaxPeriod/r.Period()) {
		return headgate.Rate{} // no constructor takes it
	}
	return headgate.PerFraction(num, den, r.Period()*time.Duration(n))
}

// decimally is the n-th part of a rate in as many decimals as a limit may have, rounded down.
func decimally(r headgate.Rate, n int64) headgate.Rate {
	const places, mostNumerator = 18, 1_000_000_000_000_000
	num, den := r.Count()
	exact := new(big.Rat).SetFrac64(num, den)
	exact.Quo(exact, new(big.Rat).SetInt64(n))
	for scale, i := int64(1_000_000_000_000_000_000), places; i >= 0; scale, i = scale/10, i-1 {
		q := new(big.Int).Mul(exact.Num(), big.NewInt(scale))
		if q.Quo(q, exact.Denom()); q.IsInt64() && q.Int64() <= mostNumerator {
			return headgate.PerFraction(q.Int64(), scale, r.Period())
		}
	}
	return headgate.Per(0, r.Period())
}

// faster tells whether a rate is above the n-th part of another.
func faster(a, of headgate.Rate, n int64) bool {
	return speed(a).Cmp(new(big.Rat).Quo(speed(of), new(big.Rat).SetInt64(n))) > 0
}

// speed is a rate in units per nanosecond.
func speed(r headgate.Rate) *big.Rat {
	num, den := r.Count()
	s := new(big.Rat).SetFrac64(num, max(den, 1))
	return s.Quo(s, new(big.Rat).SetInt64(max(int64(r.Period()), 1)))
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, 1)
}

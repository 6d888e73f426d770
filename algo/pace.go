package algo

import (
	"math"
	"math/bits"
	"time"

	headgate "github.com/headgate-io/headgate"
)

const (
	maxSpan = int64(headgate.MaxPeriod / time.Microsecond)
	// maxBacklog is the longest that a meter's time lies ahead of now: a queue without a capacity whose longest wait and whose
	// last charge are both of maxSpan. What a limit has by itself is within maxSpan; what was charged under another may not be.
	maxBacklog = 2 * maxSpan
	maxTold    = int64(headgate.MaxTold / time.Microsecond)
)

// span is a length of time, us + frac/den microseconds with 0 ≤ frac < den; den is that of the pace at hand.
type span struct{ us, frac int64 }

// pace is the exact time of one unit: whole + rem/den microseconds. den is 0 for a count of zero.
type pace struct{ whole, rem, den int64 }

// times returns n·p for n ≥ 0; ok is false if it is longer than maxBacklog, and the span then of no use.
func (p pace) times(n int64) (s span, ok bool) {
	hi, lo := bits.Mul64(uint64(n), uint64(p.whole))
	if hi != 0 || lo > uint64(maxBacklog) {
		return span{}, false
	}
	us := lo
	if p.rem != 0 {
		hi, lo = bits.Mul64(uint64(n), uint64(p.rem))
		q, r := bits.Div64(hi, lo, uint64(p.den)) // hi < den since n < 2^64 and rem < den
		us += q                                   // below 2^64: q < n < 2^63
		s.frac = int64(r)
	}
	s.us = int64(us)
	return s, us < uint64(maxBacklog) || (us == uint64(maxBacklog) && s.frac == 0)
}

// mustTimes is times for what is known to be short enough: within the bounds of the limit, or not longer than a backlog.
func (p pace) mustTimes(n int64) span {
	s, ok := p.times(n)
	if !ok {
		return span{us: maxBacklog}
	}
	return s
}

// unitsUp returns how many units take a time, the last of them perhaps in part; at most math.MaxInt64.
func (p pace) unitsUp(s span) int64 {
	n := p.units(s, math.MaxInt64)
	if n < math.MaxInt64 && p.mustTimes(n) != s {
		n++
	}
	return n
}

// units returns the largest n with n·p ≤ s, at most a number, for an s up to maxBacklog.
func (p pace) units(s span, most int64) int64 {
	if p.rem == 0 { // den is 1, whole at least 1
		return min(s.us/p.whole, most)
	}
	// numerators over den: floor((us·den + frac) / (whole·den + rem))
	nhi, nlo := bits.Mul64(uint64(s.us), uint64(p.den))
	nlo, carry := bits.Add64(nlo, uint64(s.frac), 0)
	nhi += carry
	dhi, dlo := bits.Mul64(uint64(p.whole), uint64(p.den))
	dlo, carry = bits.Add64(dlo, uint64(p.rem), 0)
	dhi += carry
	if dhi == 0 {
		if nhi >= dlo {
			return most
		}
		q, _ := bits.Div64(nhi, nlo, dlo)
		return int64(min(q, uint64(most)))
	}
	// A divisor above 64 bits: a unit takes over 18 ms, so there are fewer than 2^39, and the estimate in doubles is off by one
	// at most.
	n := int64((float64(s.us) + float64(s.frac)/float64(p.den)) / p.float())
	for n > 0 && !p.fits(n, s) {
		n--
	}
	for p.fits(n+1, s) {
		n++
	}
	return min(n, most)
}

// fits tells whether n·p ≤ s.
func (p pace) fits(n int64, s span) bool {
	t, ok := p.times(n)
	return ok && !s.less(t)
}

// float is the pace as a double: the first step of a conversion, the same in Lua.
func (p pace) float() float64 {
	if p.den == 0 {
		return math.Inf(1)
	}
	return float64(p.whole) + float64(p.rem)/float64(p.den)
}

func (s span) less(t span) bool { return s.us < t.us || (s.us == t.us && s.frac < t.frac) }

func (s span) ceil() int64 {
	if s.frac > 0 {
		return s.us + 1
	}
	return s.us
}

// plus adds two spans of one denominator.
func (p pace) plus(s, t span) span {
	s.us += t.us
	if s.frac += t.frac; s.frac >= p.den {
		s.frac -= p.den
		s.us++
	}
	return s
}

// minus subtracts a shorter or equal span of the same denominator.
func (p pace) minus(s, t span) span {
	s.us -= t.us
	if s.frac -= t.frac; s.frac < 0 {
		s.frac += p.den
		s.us--
	}
	return s
}

package algo

import (
	"math"
	"math/bits"
	"time"

	headgate "github.com/headgate-io/headgate"
)

const maxSpan = int64(headgate.MaxPeriod / time.Microsecond)

// span is a length of time, us + frac/den microseconds with 0 ≤ frac < den; den is that of the pace at hand.
type span struct{ us, frac int64 }

// pace is the exact time of one unit: whole + rem/den microseconds. den is 0 for a count of zero.
type pace struct{ whole, rem, den int64 }

// times returns n·p for n ≥ 0; ok is false if it is longer than maxSpan.
func (p pace) times(n int64) (s span, ok bool) {
	hi, lo := bits.Mul64(uint64(n), uint64(p.whole))
	if hi != 0 || lo > uint64(maxSpan) {
		return span{}, false
	}
	s.us = int64(lo)
	if p.rem != 0 {
		hi, lo = bits.Mul64(uint64(n), uint64(p.rem))
		q, r := bits.Div64(hi, lo, uint64(p.den)) // n·rem ≤ 10^27, and hi < den since n < 2^64
		s.us += int64(q)
		s.frac = int64(r)
	}
	return s, s.us < maxSpan || (s.us == maxSpan && s.frac == 0)
}

// mustTimes is times for what the bounds of the limit have shown to be short enough.
func (p pace) mustTimes(n int64) span {
	s, ok := p.times(n)
	if !ok {
		return span{us: maxSpan}
	}
	return s
}

// units returns the largest n with n·p ≤ s, at most headgate.MaxCount.
func (p pace) units(s span) int64 {
	if p.rem == 0 { // den is 1, whole at least 1
		return min(s.us/p.whole, headgate.MaxCount)
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
			return headgate.MaxCount
		}
		q, _ := bits.Div64(nhi, nlo, dlo)
		return int64(min(q, headgate.MaxCount))
	}
	// A divisor above 64 bits: the estimate in doubles is off by at most one unit in 2^50, and is corrected exactly.
	n := int64(min((float64(s.us)+float64(s.frac)/float64(p.den))/p.float(), headgate.MaxCount))
	for n > 0 && !p.fits(n, s) {
		n--
	}
	for n < headgate.MaxCount && p.fits(n+1, s) {
		n++
	}
	return n
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

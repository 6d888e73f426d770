package schedule

import (
	"math/big"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// The bounds of a rate's count in the root package: the numerator in lowest terms, and the decimal places.
const (
	maxNumerator = 1_000_000_000_000_000
	maxPlaces    = 18
	maxMicros    = int64(headgate.MaxPeriod / time.Microsecond)
)

// pace is an exact rate: units per microsecond, and the period in which it is best said.
type pace struct {
	units  *big.Rat
	period time.Duration
}

func paceOf(r headgate.Rate) pace { return pace{perMicro(r), r.Period()} }

func perMicro(r headgate.Rate) *big.Rat {
	num, den := r.Count()
	if num == 0 {
		return new(big.Rat)
	}
	x := big.NewRat(num, den)
	return x.Quo(x, big.NewRat(r.Period().Microseconds(), 1))
}

// rate says the pace as COUNT/PERIOD: exactly, where the bounds of a rate leave a way to, in the period, in a multiple of
// it or in any; else rounded to the nearest count of 15 digits.
func (p pace) rate() headgate.Rate {
	if p.units.Sign() == 0 {
		return headgate.Per(0, p.period)
	}
	micros := p.period.Microseconds()
	count := new(big.Rat).Mul(p.units, big.NewRat(micros, 1))
	if r, ok := exactRate(count, micros); ok {
		return r
	}
	// A count such as 8/7 is no decimal; 8 in seven times the period is the same rate.
	if m := withoutTens(count.Denom()); m.IsInt64() && m.Int64() <= maxMicros/micros {
		if r, ok := exactRate(new(big.Rat).Mul(count, new(big.Rat).SetInt(m)), micros*m.Int64()); ok {
			return r
		}
	}
	if r, ok := p.inAnyPeriod(); ok {
		return r
	}
	return p.rounded()
}

// exactRate returns the rate of a count per period if it is a decimal within the bounds.
func exactRate(count *big.Rat, micros int64) (headgate.Rate, bool) {
	num, den := count.Num(), count.Denom()
	if !num.IsInt64() || num.Int64() > maxNumerator || !den.IsInt64() || pow10(maxPlaces)%den.Int64() != 0 {
		return headgate.Rate{}, false
	}
	if n, d := num.Int64(), den.Int64(); n/d > headgate.MaxCount || n/d == headgate.MaxCount && n%d != 0 {
		return headgate.Rate{}, false
	}
	return headgate.PerFraction(num.Int64(), den.Int64(), time.Duration(micros)*time.Microsecond), true
}

// inAnyPeriod says the pace, a fraction in lowest terms, as a count over some factors of 2 and 5 of its denominator, as few
// as will do, per what is left of that.
func (p pace) inAnyPeriod() (headgate.Rate, bool) {
	num, den := p.units.Num(), p.units.Denom()
	if !num.IsInt64() || num.Int64() > maxNumerator || !den.IsInt64() {
		return headgate.Rate{}, false
	}
	n, micros := num.Int64(), den.Int64()
	for five := int64(1); five < pow10(13) && micros%five == 0; five *= 5 {
		for d := five; d <= pow10(maxPlaces) && micros%d == 0; d *= 2 {
			if micros/d > maxMicros {
				continue
			}
			if r, ok := exactRate(big.NewRat(n, d), micros/d); ok {
				return r, true
			}
		}
	}
	return headgate.Rate{}, false
}

// rounded rounds the count to the nearest decimal of 15 digits. A count below 1 has the fewer digits the smaller it is, so
// its period is taken longer first, as far as it goes; a count above MaxCount gets a shorter one.
func (p pace) rounded() headgate.Rate {
	micros := p.period.Microseconds()
	count := func() *big.Rat { return new(big.Rat).Mul(p.units, big.NewRat(micros, 1)) }
	for micros <= maxMicros/10 && count().Cmp(big.NewRat(1, 1)) < 0 {
		micros *= 10
	}
	for micros > 1 && count().Cmp(big.NewRat(headgate.MaxCount, 1)) > 0 {
		micros = max(micros/10, 1)
	}
	for places := maxPlaces; places > 0; places-- {
		if n := nearest(count(), pow10(places)); n.IsInt64() && n.Int64() <= maxNumerator {
			return headgate.PerFraction(n.Int64(), pow10(places), time.Duration(micros)*time.Microsecond)
		}
	}
	return headgate.Per(nearest(count(), 1).Int64(), time.Duration(micros)*time.Microsecond)
}

// nearest returns x·by, rounded to the nearest whole number, halves up.
func nearest(x *big.Rat, by int64) *big.Int {
	n := new(big.Int).Mul(x.Num(), big.NewInt(2*by))
	n.Add(n, x.Denom())
	return n.Quo(n, new(big.Int).Lsh(x.Denom(), 1))
}

// withoutTens returns what is left of a number without its factors of 2 and 5.
func withoutTens(n *big.Int) *big.Int {
	n = new(big.Int).Rsh(n, n.TrailingZeroBits())
	five, rest := big.NewInt(5), new(big.Int)
	for {
		q, _ := new(big.Int).QuoRem(n, five, rest)
		if rest.Sign() != 0 {
			return n
		}
		n = q
	}
}

func pow10(n int) int64 {
	p := int64(1)
	for range n {
		p *= 10
	}
	return p
}

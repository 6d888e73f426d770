package oracle

import (
	"math"
	"math/big"

	headgate "github.com/headgate-io/headgate"
)

func whole(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func add(a, b *big.Rat) *big.Rat { return new(big.Rat).Add(a, b) }

func sub(a, b *big.Rat) *big.Rat { return new(big.Rat).Sub(a, b) }

func mul(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) }

func div(a, b *big.Rat) *big.Rat { return new(big.Rat).Quo(a, b) }

func less(a, b *big.Rat) bool { return a.Cmp(b) < 0 }

func smaller(a, b *big.Rat) *big.Rat {
	if less(b, a) {
		return b
	}
	return a
}

func larger(a, b *big.Rat) *big.Rat {
	if less(a, b) {
		return b
	}
	return a
}

func floor(r *big.Rat) int64 {
	// Div of math/big is Euclidean: with the positive denominator of a Rat that is floor.
	return new(big.Int).Div(r.Num(), r.Denom()).Int64()
}

func ceil(r *big.Rat) int64 { return -floor(new(big.Rat).Neg(r)) }

// floorTo returns the largest multiple of step that is at most t.
func floorTo(t, step int64) int64 {
	q := t / step
	if t%step < 0 {
		q--
	}
	return q * step
}

// paceOf returns the exact time of one unit in µs, nil if the rate is zero.
func paceOf(r headgate.Rate) *big.Rat {
	num, den := r.Count()
	if num == 0 {
		return nil
	}
	return mul(whole(inMicros(r.Period())), big.NewRat(den, num))
}

// parts splits a pace as the conversion in doubles sees it: whole + rem/den. den is the numerator of the rate in lowest
// terms, which a Rat keeps as its denominator.
func parts(pace *big.Rat) (w, rem, den int64) {
	w = floor(pace)
	den = pace.Denom().Int64()
	rem = mul(sub(pace, whole(w)), whole(den)).Num().Int64()
	return w, rem, den
}

// double is a pace in the order of operations that the stores follow.
func double(pace *big.Rat) float64 {
	w, rem, den := parts(pace)
	fraction := float64(rem) / float64(den)
	return float64(w) + fraction
}

// unitsUntil is the time from now until t in units of a pace, in doubles.
func unitsUntil(t *big.Rat, now int64, pace *big.Rat) float64 {
	_, _, den := parts(pace)
	at := floor(t)
	numerator := mul(sub(t, whole(at)), whole(den)).Num().Int64()
	fraction := float64(numerator) / float64(den)
	ahead := float64(at-now) + fraction
	return ahead / double(pace)
}

// unitsIn is how many units a span has, the last of them perhaps in part; none before 0, and at most what an int64 holds.
func unitsIn(span, pace *big.Rat) int64 {
	units := div(span, pace)
	if less(whole(math.MaxInt64), units) {
		return math.MaxInt64
	}
	return ceil(larger(new(big.Rat), units))
}

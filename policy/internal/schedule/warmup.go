package schedule

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// Warmup makes limits begin small: at a fraction of what they are, which grows linearly to the whole.
type Warmup struct {
	// From is the fraction at the begin, from 10^-6 to 1; it counts to 12 decimal places.
	From float64
	// Over is how long it takes to the whole; above 0.
	Over time.Duration
}

const (
	leastFrom  = 1e-6
	fromPlaces = 12
)

// warmup is a checked Warmup; nil is none.
type warmup struct {
	from *big.Rat
	n    int64
}

func newWarmup(w *Warmup) (*warmup, error) {
	switch {
	case w == nil:
		return nil, nil
	case !(w.From >= leastFrom && w.From <= 1): // also NaN
		return nil, fmt.Errorf("warmup: from %v is outside 0.0001%% to 100%%", w.From)
	case w.Over <= 0:
		return nil, fmt.Errorf("warmup: over %s must be above 0; leave the warm-up out for none", w.Over)
	}
	from, ok := new(big.Rat).SetString(strconv.FormatFloat(w.From, 'f', fromPlaces, 64))
	if !ok {
		return nil, errors.New("warmup: from is not a number")
	}
	return &warmup{from, steps(w.Over)}, nil
}

// limits returns the limits as they are a time after the begin, and cuts hold to the time that they stay so. begin is when
// the policy came into force.
func (w *warmup) limits(whole []headgate.Limit, t, begin int64, hold *span) []headgate.Limit {
	s, lasts := stepAt(t-begin, w.n)
	hold.cut(lasts.after(begin))
	f := w.factor(s)
	if f.Cmp(big.NewRat(1, 1)) == 0 {
		return whole
	}
	some := make([]headgate.Limit, len(whole))
	for i, l := range whole {
		some[i] = scaled(l, f)
	}
	return some
}

// factor returns from + (1 - from)·k/n.
func (w *warmup) factor(s step) *big.Rat {
	f := big.NewRat(1, 1)
	f.Sub(f, w.from)
	f.Mul(f, big.NewRat(s.k, s.n))
	return f.Add(f, w.from)
}

// scaled returns a part of a limit: its rate exactly, its whole numbers rounded down to at least 1. A count of 0 is as
// small as it gets.
func scaled(whole headgate.Limit, f *big.Rat) headgate.Limit {
	switch l := whole.(type) {
	case headgate.TokenBucket:
		if num, _ := l.Rate().Count(); num == 0 {
			return l
		}
		return tokenBucket(scaledRate(l.Rate(), f), scaledWhole(l.Burst(), f), l)
	case headgate.LeakyBucket:
		if num, _ := l.Rate().Count(); num == 0 {
			return l
		}
		q := queue{rate: scaledRate(l.Rate(), f)}
		if capacity, ok := l.Capacity(); ok {
			q.capacity = scaledWhole(capacity, f)
		}
		q.maxWait, q.hasWait = l.MaxWait()
		return q.limit(l)
	case interface{ Count() int64 }:
		return withCount(whole, scaledWhole(l.Count(), f))
	}
	return whole
}

func scaledRate(r headgate.Rate, f *big.Rat) pace {
	p := paceOf(r)
	p.units.Mul(p.units, f)
	return p
}

func scaledWhole(n int64, f *big.Rat) int64 {
	if n == 0 {
		return 0
	}
	return max(1, floor(new(big.Rat).Mul(f, new(big.Rat).SetInt64(n))))
}

package headgate

import (
	"math/bits"
	"time"
)

// checkCount refuses a whole count outside 0 to most.
func checkCount(alg Algorithm, count, most int64) error {
	if count < 0 || count > most {
		return limitErrorf(alg, "count %d is outside 0 to %d; nearest is %d", count, most, min(max(count, 0), most))
	}
	return nil
}

// checkPeriod refuses a duration outside 1 µs to MaxPeriod, or one that is no whole number of microseconds. what names
// the option.
func checkPeriod(alg Algorithm, what string, d time.Duration) error {
	switch {
	case d < time.Microsecond:
		return limitErrorf(alg, "%s %s is outside 1us to 36500d; nearest is 1us", what, d)
	case d > MaxPeriod:
		return limitErrorf(alg, "%s %s is outside 1us to 36500d; nearest is 36500d", what, formatPeriod(d))
	case d%time.Microsecond != 0:
		return limitErrorf(alg, "%s %s is no whole number of microseconds; nearest is %s", what, d, formatPeriod(d.Round(time.Microsecond)))
	}
	return nil
}

func checkWindow(alg Algorithm, count, most int64, period time.Duration) error {
	if err := checkCount(alg, count, most); err != nil {
		return err
	}
	return checkPeriod(alg, "period", period)
}

func checkZone(zone string) error {
	if zone == "Local" {
		return limitErrorf(AlgFixedWindow, "zone=Local means another zone on every machine; name one such as zone=Europe/Berlin")
	}
	if _, err := time.LoadLocation(zone); err != nil {
		return limitErrorf(AlgFixedWindow, "zone=%s is not in the time zone database; write a name such as zone=UTC or zone=Asia/Shanghai", zone)
	}
	return nil
}

// checkRate validates a rate and returns the exact time that one unit takes.
func checkRate(alg Algorithm, r Rate) (pace, error) {
	if err := checkPeriod(alg, "period", r.period); err != nil {
		return pace{}, err
	}
	switch {
	case r.den < 1 || !isDecimal(r.den):
		return pace{}, limitErrorf(alg, "count %d/%d is no decimal of at most 18 places; write one such as 0.2", r.num, r.den)
	case r.num < 0:
		return pace{}, limitErrorf(alg, "count %s is negative; nearest is 0", formatCount(r.num, r.den))
	case r.num/r.den > MaxCount || (r.num/r.den == MaxCount && r.num%r.den != 0):
		return pace{}, limitErrorf(alg, "count %s is outside 0 to %d; nearest is %d", formatCount(r.num, r.den), int64(MaxCount), int64(MaxCount))
	case r.num > maxNumerator:
		return pace{}, limitErrorf(alg, "count %s has more than 15 significant digits (its numerator in lowest terms is over 10^15); round it", formatCount(r.num, r.den))
	case r.num == 0:
		return pace{}, nil
	}
	p, ok := newPace(r)
	if !ok {
		return pace{}, limitErrorf(alg, "rate %s: one unit takes longer than 36500d; raise the count or shorten the period", formatRate(r))
	}
	return p, nil
}

// newPace divides period·den by num exactly. It reports false if one unit takes longer than MaxPeriod.
func newPace(r Rate) (pace, bool) {
	micros := int64(r.period / time.Microsecond)
	num, den := r.num, r.den
	if g := gcd(num, micros); g > 1 {
		num, micros = num/g, micros/g
	}
	// num/den was in lowest terms already, so num/(den·micros) is now.
	hi, lo := bits.Mul64(uint64(micros), uint64(den))
	if hi >= uint64(num) {
		return pace{}, false
	}
	whole, rem := bits.Div64(hi, lo, uint64(num))
	if whole > uint64(maxMicros) || (whole == uint64(maxMicros) && rem > 0) {
		return pace{}, false
	}
	return pace{whole: int64(whole), rem: int64(rem), den: num}, true
}

// checkSpan refuses a number of units whose time at the rate lies outside 1 µs to MaxPeriod. option names the number.
func checkSpan(alg Algorithm, option string, units int64, r Rate, p pace) error {
	if option != "" && (units < 1 || units > MaxCount) {
		return limitErrorf(alg, "%s=%d is outside 1 to %d; nearest is %s=%d", option, units, int64(MaxCount), option, min(max(units, 1), MaxCount))
	}
	if p.den == 0 {
		return nil // a count of zero never fills
	}
	short, long := p.spanOutside(units)
	switch {
	case option == "" && short:
		return nil // a queue that drains faster than the clock ticks is bounded by its wait alone
	case short:
		return limitErrorf(alg, "%s=%d at %s is full within less than 1us; nearest is %s=%d", option, units, formatRate(r), option, p.unitsIn(1, true))
	case long && option == "":
		return limitErrorf(alg, "rate %s: one unit takes longer than 36500d; raise the count or shorten the period", formatRate(r))
	case long:
		return limitErrorf(alg, "%s=%d at %s takes longer than 36500d to fill; nearest is %s=%d", option, units, formatRate(r), option, p.unitsIn(maxMicros, false))
	}
	return nil
}

// spanOutside tells whether units·pace is below 1 µs or above MaxPeriod.
func (p pace) spanOutside(units int64) (short, long bool) {
	hi, lo := bits.Mul64(uint64(units), uint64(p.rem))
	carry, rem := bits.Div64(hi, lo, uint64(p.den)) // hi < den: units ≤ 10^12 and rem < den ≤ 10^15
	hi, lo = bits.Mul64(uint64(units), uint64(p.whole))
	if hi > 0 || lo > uint64(maxMicros) {
		return false, true
	}
	whole := lo + carry
	return whole < 1, whole > uint64(maxMicros) || (whole == uint64(maxMicros) && rem > 0)
}

// unitsIn returns how many units fit into a time, or, rounding up, how many fill it: for the hint of an error only.
func (p pace) unitsIn(micros int64, up bool) int64 {
	n := int64(float64(micros) / (float64(p.whole) + float64(p.rem)/float64(p.den)))
	n = min(max(n, 1), MaxCount)
	for up {
		if short, _ := p.spanOutside(n); !short {
			return n
		}
		n++
	}
	for n > 1 {
		if _, long := p.spanOutside(n); !long {
			return n
		}
		n--
	}
	return n
}

func defaultBurst(r Rate) int64 {
	if r.den < 1 || r.num < 1 {
		return 1
	}
	return max(1, r.num/r.den+min(r.num%r.den, 1))
}

// isDecimal tells whether 1/den is a decimal of at most 18 places.
func isDecimal(den int64) bool { return 1_000_000_000_000_000_000%den == 0 }

func nearestDivisor(period, cells int64) int64 {
	for d := int64(1); d < MaxCells; d++ {
		if c := cells - d; c >= 1 && period%c == 0 {
			return c
		}
		if c := cells + d; c <= MaxCells && period%c == 0 {
			return c
		}
	}
	return 1
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	if a < 0 {
		return -a
	}
	return a
}

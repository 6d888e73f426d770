package lint

import (
	"math/big"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// What a limit lets through is a curve: the most units in any stretch of time of a given length. One limit makes another
// useless if its curve lies below what the other allows; see tolerates.

// most returns the largest number of units that a limit admits at times t to t+d, both included, for any t and whatever
// came before. nil stands for no bound.
func most(l headgate.Limit, d time.Duration) *big.Int {
	if deniesAll(l) {
		return new(big.Int)
	}
	switch l := l.(type) {
	case headgate.TokenBucket:
		return add(l.Burst(), flow(l.Rate(), d))
	case headgate.LeakyBucket:
		if capacity, ok := l.Capacity(); ok {
			return add(capacity, flow(l.Rate(), d))
		}
	case headgate.FixedWindow:
		return times(l.Count(), 1+ceilDiv(d, shortest(l)))
	case headgate.SlidingLog:
		return times(l.Count(), 1+int64(d/l.Period()))
	case headgate.SlidingWindow:
		// Any k whole cells in a row hold at most the count, and the stretch touches this many cells.
		cells := 1 + ceilDiv(d, cell(l))
		return times(l.Count(), (cells+l.Cells()-1)/l.Cells())
	}
	return nil
}

// line is a straight line above the curve of a limit: at most burst + rate·d units in a stretch of d microseconds. ok is
// false if there is none.
func line(l headgate.Limit) (burst, rate *big.Rat, ok bool) {
	switch l := l.(type) {
	case headgate.TokenBucket:
		return big.NewRat(l.Burst(), 1), perMicro(l.Rate()), true
	case headgate.LeakyBucket:
		capacity, ok := l.Capacity()
		return big.NewRat(capacity, 1), perMicro(l.Rate()), ok
	case headgate.FixedWindow:
		return new(big.Rat).SetInt(times(l.Count(), 2)), big.NewRat(l.Count(), shortest(l).Microseconds()), true
	case headgate.SlidingLog:
		return big.NewRat(l.Count(), 1), big.NewRat(l.Count(), l.Period().Microseconds()), true
	case headgate.SlidingWindow:
		burst = big.NewRat(l.Cells()+1, l.Cells())
		return burst.Mul(burst, big.NewRat(l.Count(), 1)), big.NewRat(l.Count(), l.Period().Microseconds()), true
	}
	return nil, nil, false
}

// tolerates tells whether b never denies what a allows, if everything that b is charged a is charged too, at the same
// time. It is false where that cannot be shown.
func tolerates(b, a headgate.Limit) bool {
	switch {
	case deniesAll(a):
		return true
	case deniesAll(b):
		return false
	case sameKind(b, a):
		return true
	}
	switch b := b.(type) {
	case headgate.FixedWindow:
		return within(a, longest(b)-time.Microsecond, b.Count())
	case headgate.SlidingLog:
		return within(a, b.Period()-time.Microsecond, b.Count())
	case headgate.SlidingWindow: // what it weighs lies in its cells and the one before them
		return within(a, b.Period()+cell(b)-time.Microsecond, b.Count())
	case headgate.TokenBucket:
		burst, rate, ok := line(a)
		return ok && burst.Cmp(big.NewRat(b.Burst(), 1)) <= 0 && rate.Cmp(perMicro(b.Rate())) <= 0
	}
	return false // a queue also makes wait, and a number of holders follows from no rate
}

func within(a headgate.Limit, d time.Duration, count int64) bool {
	units := most(a, d)
	return units != nil && units.Cmp(big.NewInt(count)) <= 0
}

// sameKind is tolerates for limits whose states move together, where more can be shown than by their curves.
func sameKind(b, a headgate.Limit) bool {
	switch b := b.(type) {
	case headgate.FixedWindow:
		a, ok := a.(headgate.FixedWindow)
		n := windowsIn(b, a)
		return ok && n > 0 && times(a.Count(), n).Cmp(big.NewInt(b.Count())) <= 0
	case headgate.SlidingWindow:
		a, ok := a.(headgate.SlidingWindow)
		return ok && a.Period() == b.Period() && a.Cells() == b.Cells() && a.Count() <= b.Count()
	case headgate.LeakyBucket:
		a, ok := a.(headgate.LeakyBucket)
		return ok && shorterQueue(b, a)
	case headgate.Concurrency:
		a, ok := a.(headgate.Concurrency)
		return ok && a.Count() <= b.Count() && a.TTL() >= b.TTL()
	}
	return false
}

// windowsIn returns how many windows of a lie in one of b at most, if none of a crosses an edge of b; 0 if some may.
func windowsIn(b, a headgate.FixedWindow) int64 {
	unitA, zoneA := a.Calendar()
	unitB, zoneB := b.Calendar()
	switch {
	case unitA == headgate.NotCalendar && unitB == headgate.NotCalendar:
		if a.Period() > 0 && b.Period()%a.Period() == 0 {
			return int64(b.Period() / a.Period())
		}
	case zoneA != zoneB:
	case unitA == unitB:
		return 1
	case unitA == headgate.Day && unitB == headgate.Week:
		return 7
	case unitA == headgate.Day && unitB == headgate.Month:
		return 31
	}
	return 0
}

// shorterQueue tells whether the queue a is full whenever the queue b is, a's backlog being the longer.
func shorterQueue(b, a headgate.LeakyBucket) bool {
	if perMicro(a.Rate()).Cmp(perMicro(b.Rate())) > 0 {
		return false
	}
	capacityA, boundedA := a.Capacity()
	if capacityB, ok := b.Capacity(); ok && (!boundedA || capacityA > capacityB) {
		return false
	}
	waitB, ok := b.MaxWait()
	if !ok {
		return true
	}
	room := drained(b.Rate(), waitB)
	if waitA, ok := a.MaxWait(); ok && drained(a.Rate(), waitA).Cmp(room) <= 0 {
		return true
	}
	return boundedA && big.NewRat(capacityA, 1).Cmp(room) <= 0
}

// deniesAll tells whether a limit has a count of zero, and so denies every cost.
func deniesAll(l headgate.Limit) bool {
	switch l := l.(type) {
	case headgate.TokenBucket:
		return perMicro(l.Rate()).Sign() == 0
	case headgate.LeakyBucket:
		return perMicro(l.Rate()).Sign() == 0
	case interface{ Count() int64 }:
		return l.Count() == 0
	}
	return false
}

// The length of calendar windows differs: clocks change, now and then by more than an hour.
const (
	leastHour, mostHour   = 30 * time.Minute, 2 * time.Hour
	leastDay, mostDay     = 20 * time.Hour, 28 * time.Hour
	leastWeek, mostWeek   = 6 * 24 * time.Hour, 8 * 24 * time.Hour
	leastMonth, mostMonth = 27 * 24 * time.Hour, 32 * 24 * time.Hour
)

func shortest(l headgate.FixedWindow) time.Duration {
	unit, _ := l.Calendar()
	return [...]time.Duration{l.Period(), leastHour, leastDay, leastWeek, leastMonth}[unit]
}

func longest(l headgate.FixedWindow) time.Duration {
	unit, _ := l.Calendar()
	return [...]time.Duration{l.Period(), mostHour, mostDay, mostWeek, mostMonth}[unit]
}

func cell(l headgate.SlidingWindow) time.Duration { return l.Period() / time.Duration(l.Cells()) }

// perMicro returns a rate in units per microsecond.
func perMicro(r headgate.Rate) *big.Rat {
	num, den := r.Count()
	if micros := r.Period().Microseconds(); den > 0 && micros > 0 {
		rate := big.NewRat(num, den)
		return rate.Quo(rate, big.NewRat(micros, 1))
	}
	return new(big.Rat)
}

// drained returns what a rate makes of a time, exactly.
func drained(r headgate.Rate, d time.Duration) *big.Rat {
	rate := perMicro(r)
	return rate.Mul(rate, big.NewRat(d.Microseconds(), 1))
}

// flow is drained in whole units.
func flow(r headgate.Rate, d time.Duration) *big.Int {
	units := drained(r, d)
	return new(big.Int).Quo(units.Num(), units.Denom())
}

func add(a int64, b *big.Int) *big.Int { return new(big.Int).Add(big.NewInt(a), b) }

func times(a, b int64) *big.Int { return new(big.Int).Mul(big.NewInt(a), big.NewInt(b)) }

// ceilDiv rounds up, and adds nothing to times that are near the largest there is.
func ceilDiv(d, unit time.Duration) int64 { return int64(d/unit) + min(int64(d%unit), 1) }

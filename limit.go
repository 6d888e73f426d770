package headgate

import (
	"fmt"
	"time"
)

// Bounds of the numbers in a limit and in a charge. ParseLimit and the constructors refuse what lies outside.
const (
	// MaxCount is the largest count of a limit, the largest burst or capacity, and the largest cost of a charge.
	MaxCount = 1_000_000_000_000
	// MaxLogCount is the largest count of a sliding log, whose memory grows with it.
	MaxLogCount = 1000
	// MaxCells is the largest number of cells of a sliding window.
	MaxCells = 60
	// MaxPeriod is the longest period, wait, time to live and time to full.
	MaxPeriod = 36500 * 24 * time.Hour
	// MaxTold is the longest time that an outcome tells. What is further off is told as this, which only a sliding window of
	// one cell and over 66 years can be, after a step of the clock; to add it to a time of today overflows nothing.
	MaxTold = 2 * MaxPeriod
	// maxNumerator bounds the numerator of a fractional count in lowest terms.
	maxNumerator = 1_000_000_000_000_000
	maxMicros    = int64(MaxPeriod / time.Microsecond)
)

// Algorithm names the way a limit counts. Its text is the first word of a limit expression.
type Algorithm uint8

// The algorithms. The zero value names none.
const (
	AlgTokenBucket Algorithm = iota + 1
	AlgFixedWindow
	AlgSlidingLog
	AlgSlidingWindow
	AlgLeakyBucket
	AlgConcurrency
)

var algorithmNames = [...]string{"", "token_bucket", "fixed_window", "sliding_log", "sliding_window", "leaky_bucket", "concurrency"}

// String returns the name used in limit expressions, such as "token_bucket".
func (a Algorithm) String() string {
	if int(a) < len(algorithmNames) && a != 0 {
		return algorithmNames[a]
	}
	return fmt.Sprintf("algorithm(%d)", uint8(a))
}

// Limit is an algorithm with its numbers: one of [TokenBucket], [FixedWindow], [SlidingLog], [SlidingWindow],
// [LeakyBucket] and [Concurrency]. A Limit is immutable, comparable with ==, and safe for concurrent use. Make one with
// [ParseLimit] or with the constructor of its type; the zero value of each type denies every cost of 1 or more.
//
// String returns the limit expression; parsing it again gives an equal Limit.
type Limit interface {
	fmt.Stringer
	Algorithm() Algorithm
	// limit seals the interface: a store must know every algorithm it is asked for.
	limit()
}

// Rate is COUNT per PERIOD, with an exact rational count. Make it with [Per] or [PerFraction]; what is out of bounds is
// reported by the constructor of the limit that uses it.
type Rate struct {
	num, den int64 // the count in lowest terms; den is 0 only in the zero Rate
	period   time.Duration
}

// Per returns the rate of count per period.
func Per(count int64, period time.Duration) Rate { return Rate{num: count, den: 1, period: period} }

// PerFraction returns the rate of num/den per period: PerFraction(1, 5, time.Second) is 0.2/s. A fraction that is no decimal
// of at most 18 places, and so has no exact text, is refused by the constructor that uses it.
func PerFraction(num, den int64, period time.Duration) Rate {
	if g := gcd(num, den); g > 1 {
		num, den = num/g, den/g
	}
	return Rate{num: num, den: den, period: period}
}

// Count returns the count as a fraction in lowest terms.
func (r Rate) Count() (num, den int64) { return r.num, r.den }

// Period returns the period.
func (r Rate) Period() time.Duration { return r.period }

// pace is the exact time that one unit takes: whole + rem/den microseconds, where den/(whole·den+rem) is count/period in
// lowest terms. All zero for a count of zero.
type pace struct{ whole, rem, den int64 }

// TokenBucket refills at a rate and holds at most its burst; it starts full. It is the meter also known as GCRA.
type TokenBucket struct {
	rate  Rate
	burst int64
	pace  pace
}

// NewTokenBucket returns a token bucket. A burst of 0 stands for the default: the count rounded up, at least 1.
func NewTokenBucket(rate Rate, burst int64) (TokenBucket, error) {
	b := TokenBucket{rate: rate, burst: burst}
	if burst == 0 {
		b.burst = defaultBurst(rate)
	}
	var err error
	if b.pace, err = checkRate(AlgTokenBucket, rate); err != nil {
		return TokenBucket{}, err
	}
	if err := checkSpan(AlgTokenBucket, "burst", b.burst, b.rate, b.pace); err != nil {
		return TokenBucket{}, err
	}
	return b, nil
}

// Algorithm returns AlgTokenBucket.
func (TokenBucket) Algorithm() Algorithm { return AlgTokenBucket }

// Rate returns the rate of refill.
func (l TokenBucket) Rate() Rate { return l.rate }

// Burst returns the most tokens the bucket holds.
func (l TokenBucket) Burst() int64 { return l.burst }

// Pace returns the exact time in which one token refills: whole + rem/den microseconds, 0 ≤ rem < den ≤ 10^15, in lowest
// terms. A count of zero has den 0.
func (l TokenBucket) Pace() (whole, rem, den int64) { return l.pace.whole, l.pace.rem, l.pace.den }

func (TokenBucket) limit() {}

// CalendarUnit is the length of a calendar window.
type CalendarUnit uint8

// The calendar units. The zero value stands for windows of a fixed period, aligned to the Unix epoch.
const (
	NotCalendar CalendarUnit = iota
	Hour
	Day
	Week // begins on Monday
	Month
)

var calendarNames = [...]string{"", "hour", "day", "week", "month"}

// String returns the word used in limit expressions, such as "day"; the empty string for NotCalendar.
func (u CalendarUnit) String() string {
	if int(u) < len(calendarNames) {
		return calendarNames[u]
	}
	return fmt.Sprintf("unit(%d)", uint8(u))
}

// FixedWindow counts in windows that follow each other: of a fixed period, aligned to the Unix epoch, or of a calendar
// unit in a time zone, whose days have 23 or 25 hours when the clocks change.
type FixedWindow struct {
	count  int64
	period time.Duration
	unit   CalendarUnit
	zone   string
}

// NewFixedWindow returns a window of the period, aligned to the Unix epoch.
func NewFixedWindow(count int64, period time.Duration) (FixedWindow, error) {
	if err := checkWindow(AlgFixedWindow, count, MaxCount, period); err != nil {
		return FixedWindow{}, err
	}
	return FixedWindow{count: count, period: period}, nil
}

// NewCalendarWindow returns a window of a calendar unit in a zone of the IANA database ("" stands for UTC).
func NewCalendarWindow(count int64, unit CalendarUnit, zone string) (FixedWindow, error) {
	if err := checkCount(AlgFixedWindow, count, MaxCount); err != nil {
		return FixedWindow{}, err
	}
	if unit < Hour || unit > Month {
		return FixedWindow{}, limitErrorf(AlgFixedWindow, "unit %q is not a calendar unit; write hour, day, week or month", unit)
	}
	if zone == "" {
		zone = "UTC"
	}
	if err := checkZone(zone); err != nil {
		return FixedWindow{}, err
	}
	return FixedWindow{count: count, unit: unit, zone: zone}, nil
}

// Algorithm returns AlgFixedWindow.
func (FixedWindow) Algorithm() Algorithm { return AlgFixedWindow }

// Count returns the most that one window admits.
func (l FixedWindow) Count() int64 { return l.count }

// Period returns the length of a window, 0 if it is a calendar window.
func (l FixedWindow) Period() time.Duration { return l.period }

// Calendar returns the unit and the zone of a calendar window; NotCalendar and "" otherwise.
func (l FixedWindow) Calendar() (unit CalendarUnit, zone string) { return l.unit, l.zone }

func (FixedWindow) limit() {}

// SlidingLog remembers the time of every admitted unit and counts those of the last period, exactly.
type SlidingLog struct {
	count  int64
	period time.Duration
}

// NewSlidingLog returns a sliding log of at most MaxLogCount per period.
func NewSlidingLog(count int64, period time.Duration) (SlidingLog, error) {
	if err := checkWindow(AlgSlidingLog, count, MaxLogCount, period); err != nil {
		return SlidingLog{}, err
	}
	return SlidingLog{count: count, period: period}, nil
}

// Algorithm returns AlgSlidingLog.
func (SlidingLog) Algorithm() Algorithm { return AlgSlidingLog }

// Count returns the most admitted in any period.
func (l SlidingLog) Count() int64 { return l.count }

// Period returns the period.
func (l SlidingLog) Period() time.Duration { return l.period }

func (SlidingLog) limit() {}

// SlidingWindow counts in cells and weights the oldest by the part of it that is still inside the period: constant
// memory, and an error bounded by one cell.
type SlidingWindow struct {
	count  int64
	period time.Duration
	cells  int64
}

// NewSlidingWindow returns a sliding window of 1 to MaxCells cells, which must divide the period into whole
// microseconds. 0 cells stand for the default of 1.
func NewSlidingWindow(count int64, period time.Duration, cells int64) (SlidingWindow, error) {
	if err := checkWindow(AlgSlidingWindow, count, MaxCount, period); err != nil {
		return SlidingWindow{}, err
	}
	if cells == 0 {
		cells = 1
	}
	if cells < 1 || cells > MaxCells {
		return SlidingWindow{}, limitErrorf(AlgSlidingWindow, "cells=%d is outside 1 to %d; nearest is cells=%d",
			cells, MaxCells, min(max(cells, 1), MaxCells))
	}
	if micros := int64(period / time.Microsecond); micros%cells != 0 {
		return SlidingWindow{}, limitErrorf(AlgSlidingWindow, "cells=%d does not divide the period %s into whole microseconds; nearest is cells=%d",
			cells, formatPeriod(period), nearestDivisor(micros, cells))
	}
	return SlidingWindow{count: count, period: period, cells: cells}, nil
}

// Algorithm returns AlgSlidingWindow.
func (SlidingWindow) Algorithm() Algorithm { return AlgSlidingWindow }

// Count returns the most that a period admits.
func (l SlidingWindow) Count() int64 { return l.count }

// Period returns the period.
func (l SlidingWindow) Period() time.Duration { return l.period }

// Cells returns the number of cells in a period.
func (l SlidingWindow) Cells() int64 { return l.cells }

func (SlidingWindow) limit() {}

// LeakyBucket is a queue that one request leaves every period/count. An allowed take carries the wait until its turn.
type LeakyBucket struct {
	rate     Rate
	capacity int64         // 0: none
	maxWait  time.Duration // valid if hasWait
	hasWait  bool
	pace     pace
}

// LeakyOption bounds the queue of a leaky bucket.
type LeakyOption func(*LeakyBucket)

// Capacity bounds the backlog, in units, to at least 1.
func Capacity(units int64) LeakyOption {
	// 0 stands for "none" inside, so an explicit 0 is kept apart to be refused.
	return func(l *LeakyBucket) {
		if l.capacity = units; units == 0 {
			l.capacity = -1
		}
	}
}

// MaxWait bounds the wait of an allowed take. 0 admits only into an empty queue.
func MaxWait(d time.Duration) LeakyOption {
	return func(l *LeakyBucket) { l.maxWait, l.hasWait = d, true }
}

// NewLeakyBucket returns a leaky bucket; at least one of Capacity and MaxWait must bound it.
func NewLeakyBucket(rate Rate, bounds ...LeakyOption) (LeakyBucket, error) {
	l := LeakyBucket{rate: rate}
	for _, bound := range bounds {
		bound(&l)
	}
	var err error
	if l.pace, err = checkRate(AlgLeakyBucket, rate); err != nil {
		return LeakyBucket{}, err
	}
	switch {
	case l.capacity == 0 && !l.hasWait:
		return LeakyBucket{}, limitErrorf(AlgLeakyBucket, "the queue has no bound; add capacity=N, max_wait=D or both")
	case l.capacity < 0:
		return LeakyBucket{}, limitErrorf(AlgLeakyBucket, "capacity must be at least 1; nearest is capacity=1")
	case l.hasWait && l.maxWait != 0:
		if err := checkPeriod(AlgLeakyBucket, "max_wait", l.maxWait); err != nil {
			return LeakyBucket{}, err
		}
	}
	if l.capacity > 0 {
		err = checkSpan(AlgLeakyBucket, "capacity", l.capacity, rate, l.pace)
	} else if l.pace.den != 0 {
		err = checkSpan(AlgLeakyBucket, "", 1, rate, l.pace)
	}
	if err != nil {
		return LeakyBucket{}, err
	}
	return l, nil
}

// Algorithm returns AlgLeakyBucket.
func (LeakyBucket) Algorithm() Algorithm { return AlgLeakyBucket }

// Rate returns the rate at which requests leave.
func (l LeakyBucket) Rate() Rate { return l.rate }

// Capacity returns the bound of the backlog; ok is false if there is none.
func (l LeakyBucket) Capacity() (units int64, ok bool) { return l.capacity, l.capacity > 0 }

// MaxWait returns the bound of the wait; ok is false if there is none.
func (l LeakyBucket) MaxWait() (d time.Duration, ok bool) { return l.maxWait, l.hasWait }

// Pace returns the exact time in which one request leaves: whole + rem/den microseconds, 0 ≤ rem < den ≤ 10^15, in lowest
// terms. A count of zero has den 0.
func (l LeakyBucket) Pace() (whole, rem, den int64) { return l.pace.whole, l.pace.rem, l.pace.den }

func (LeakyBucket) limit() {}

// Concurrency bounds what is in flight: a charge names its holder, and the holder's slot lives until it is released or
// its time to live has passed since it was acquired or last renewed.
type Concurrency struct {
	count int64
	ttl   time.Duration
}

// NewConcurrency returns a bound of count holders, whose slots die at their ttl.
func NewConcurrency(count int64, ttl time.Duration) (Concurrency, error) {
	if err := checkCount(AlgConcurrency, count, MaxCount); err != nil {
		return Concurrency{}, err
	}
	if err := checkPeriod(AlgConcurrency, "ttl", ttl); err != nil {
		return Concurrency{}, err
	}
	return Concurrency{count: count, ttl: ttl}, nil
}

// Algorithm returns AlgConcurrency.
func (Concurrency) Algorithm() Algorithm { return AlgConcurrency }

// Count returns the most holders at a time.
func (l Concurrency) Count() int64 { return l.count }

// TTL returns the life of a slot that is neither released nor renewed.
func (l Concurrency) TTL() time.Duration { return l.ttl }

func (Concurrency) limit() {}

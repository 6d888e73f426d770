package headgate

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// String returns the limit expression.
func (l TokenBucket) String() string {
	s := "token_bucket " + formatRate(l.rate)
	if l.burst != defaultBurst(l.rate) {
		s += " burst=" + strconv.FormatInt(l.burst, 10)
	}
	return s
}

// String returns the limit expression.
func (l FixedWindow) String() string {
	if l.unit == NotCalendar {
		return "fixed_window " + formatWindow(l.count, l.period)
	}
	return fmt.Sprintf("fixed_window %d/%s zone=%s", l.count, l.unit, l.zone)
}

// String returns the limit expression.
func (l SlidingLog) String() string { return "sliding_log " + formatWindow(l.count, l.period) }

// String returns the limit expression.
func (l SlidingWindow) String() string {
	s := "sliding_window " + formatWindow(l.count, l.period)
	if l.cells > 1 {
		s += " cells=" + strconv.FormatInt(l.cells, 10)
	}
	return s
}

// String returns the limit expression.
func (l LeakyBucket) String() string {
	s := "leaky_bucket " + formatRate(l.rate)
	if l.capacity > 0 {
		s += " capacity=" + strconv.FormatInt(l.capacity, 10)
	}
	if l.hasWait {
		s += " max_wait=" + formatPeriod(l.maxWait)
	}
	return s
}

// String returns the limit expression.
func (l Concurrency) String() string {
	return fmt.Sprintf("concurrency %d ttl=%s", l.count, formatPeriod(l.ttl))
}

func formatWindow(count int64, period time.Duration) string {
	return strconv.FormatInt(count, 10) + "/" + formatPeriod(period)
}

func formatRate(r Rate) string {
	if r.period == time.Second {
		return formatCount(r.num, r.den) + "/s"
	}
	return formatCount(r.num, r.den) + "/" + formatPeriod(r.period)
}

// formatCount writes num/den, whose den has no prime factors but 2 and 5, as an exact decimal.
func formatCount(num, den int64) string {
	if den <= 1 {
		return strconv.FormatInt(num, 10)
	}
	whole, rem := num/den, uint64(num%den)
	var b strings.Builder
	b.WriteString(strconv.FormatInt(whole, 10))
	b.WriteByte('.')
	// rem < den ≤ 10^18, so ten times it fits in 64 unsigned bits; the places are bounded for a den that does not divide.
	for places := 0; rem > 0 && places < 64; places++ {
		rem *= 10
		b.WriteByte('0' + byte(rem/uint64(den)))
		rem %= uint64(den)
	}
	return b.String()
}

// formatPeriod writes a duration in the shortest text that ParseLimit reads: whole days as 7d, else Go's form without
// its zero parts.
func formatPeriod(d time.Duration) string {
	const day = 24 * time.Hour
	if d > 0 && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	s := strings.ReplaceAll(d.String(), "µ", "u")
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

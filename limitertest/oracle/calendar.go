package oracle

import (
	"time"

	headgate "github.com/headgate-io/headgate"
)

const second = int64(1_000_000)

// offsetAt returns the seconds that local time is ahead of UTC.
func offsetAt(us int64, loc *time.Location) int64 {
	_, offset := time.UnixMicro(us).In(loc).Zone()
	return int64(offset)
}

// hourAround floors in local wall time and cuts the hour where the offset changes.
func hourAround(now int64, loc *time.Location) (start, end int64) {
	offset := offsetAt(now, loc)
	start = floorTo(now+offset*second, 3600*second) - offset*second
	end = start + 3600*second
	if offsetAt(start, loc) != offset {
		start = lastChange(start, now, loc)
	}
	if offsetAt(end-1, loc) != offset {
		end = firstChange(now, end-1, loc)
	}
	return start, end
}

// lastChange returns the first second from which on the offset is that of b: the offset changes once between a and b.
func lastChange(a, b int64, loc *time.Location) int64 {
	return boundary(a, b, func(t int64) bool { return offsetAt(t, loc) == offsetAt(b, loc) })
}

// firstChange returns the first second at which the offset is no longer that of a.
func firstChange(a, b int64, loc *time.Location) int64 {
	return boundary(a, b, func(t int64) bool { return offsetAt(t, loc) != offsetAt(a, loc) })
}

// boundary returns the first whole second in (a, b] from which on a condition holds that holds at b and not at a.
func boundary(a, b int64, holds func(int64) bool) int64 {
	low, high := floorTo(a, second)/second, -floorTo(-b, second)/second
	for high-low > 1 {
		if mid := low + (high-low)/2; holds(mid * second) {
			high = mid
		} else {
			low = mid
		}
	}
	return high * second
}

// dateWindow returns the day, week or month of a time. A window runs from the first instant of its first date to the
// first instant of the next one's, so windows meet whatever the clocks do.
func dateWindow(now int64, unit headgate.CalendarUnit, loc *time.Location) (start, end int64) {
	date := firstDate(time.UnixMicro(now).In(loc), unit)
	for firstInstant(date, loc) > now {
		date = step(date, unit, -1)
	}
	for {
		next := step(date, unit, 1)
		// A date that does not exist begins where the next one does: take the later of the two.
		if at := firstInstant(next, loc); at > now {
			return firstInstant(date, loc), at
		}
		date = next
	}
}

// civil is a date without a zone, at midnight UTC.
type civil struct{ time.Time }

func firstDate(local time.Time, unit headgate.CalendarUnit) civil {
	y, m, d := local.Date()
	switch unit {
	case headgate.Week:
		d -= (int(local.Weekday()) + 6) % 7
	case headgate.Month:
		d = 1
	}
	return civil{time.Date(y, m, d, 0, 0, 0, 0, time.UTC)}
}

func step(c civil, unit headgate.CalendarUnit, n int) civil {
	switch unit {
	case headgate.Week:
		return civil{c.AddDate(0, 0, 7*n)}
	case headgate.Month:
		return civil{c.AddDate(0, n, 0)}
	}
	return civil{c.AddDate(0, 0, n)}
}

// firstInstant returns the first instant whose local date is at or after a date, in µs. It looks at offsets alone: on the
// last day of leap years after 2037 time.ZoneBounds (Go 1.26) names an end that is past.
func firstInstant(c civil, loc *time.Location) int64 {
	const hour = 3600 * second
	midnight := c.UnixMicro()
	// No zone is ever further than two days from UTC, the skipped dates of the date line included.
	for from := midnight - 48*hour; from < midnight+72*hour; from += hour {
		for at := from; at < from+hour; {
			end := from + hour
			if offsetAt(end, loc) != offsetAt(at, loc) {
				end = firstChange(at, end, loc)
			}
			if first := max(at, midnight-offsetAt(at, loc)*second); first < end {
				return first
			}
			at = end
		}
	}
	return midnight
}

package algo

import (
	"sync"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// Zones finds the windows of calendar limits. It remembers the time zones it has loaded, of which there are some hundreds
// in all. The zero Zones is ready; it is safe for concurrent use and must not be copied.
type Zones struct{ loaded sync.Map } // name → *time.Location

func (z *Zones) location(name string) *time.Location {
	if loc, ok := z.loaded.Load(name); ok {
		return loc.(*time.Location)
	}
	loc, err := time.LoadLocation(name)
	if err != nil { // the limit's constructor has loaded it; a database that went away since must not open the limit
		loc = time.UTC
	}
	z.loaded.Store(name, loc)
	return loc
}

// Window returns the window of the limit that holds the time: start ≤ now < end.
func (z *Zones) Window(l headgate.FixedWindow, now int64) (start, end int64) {
	unit, zone := l.Calendar()
	if unit == headgate.NotCalendar {
		period := l.Period().Microseconds()
		start = floorTo(now, period)
		return start, start + period
	}
	t := time.UnixMicro(now).In(z.location(zone))
	if unit == headgate.Hour {
		return hourOf(t)
	}
	y, m, d := t.Date()
	switch unit {
	case headgate.Week:
		d -= (int(t.Weekday()) + 6) % 7 // Monday
	case headgate.Month:
		d = 1
	}
	start, end = firstInstant(y, m, d, t.Location()), nextStart(unit, y, m, d, t.Location())
	// Where the clock went back over midnight, the evening before is shown again after the day has begun.
	for step := 1; now >= end && step < 4; step++ {
		if unit == headgate.Month {
			m++
		} else {
			d += daysOf(unit)
		}
		start, end = end, nextStart(unit, y, m, d, t.Location())
	}
	return start, end
}

func daysOf(unit headgate.CalendarUnit) int {
	if unit == headgate.Week {
		return 7
	}
	return 1
}

func nextStart(unit headgate.CalendarUnit, y int, m time.Month, d int, loc *time.Location) int64 {
	if unit == headgate.Month {
		return firstInstant(y, m+1, 1, loc)
	}
	return firstInstant(y, m, d+daysOf(unit), loc)
}

// firstInstant returns the first instant whose local date is the given one or, where that date was skipped, a later one.
// time.Date is no help here: it may pick either of two midnights, and moves one that does not exist.
func firstInstant(y int, m time.Month, d int, loc *time.Location) int64 {
	midnight := time.Date(y, m, d, 0, 0, 0, 0, time.UTC).UnixMicro() // as if the offset were zero
	for t := midnight - 26*hour; ; {
		at := time.UnixMicro(t).In(loc)
		begin, end := at.ZoneBounds()
		_, offset := at.Zone()
		first := midnight - int64(offset)*second
		if !begin.IsZero() {
			first = max(first, begin.UnixMicro())
		}
		until := end.UnixMicro()
		if until <= t { // on the last day of a leap year after 2037 the bounds that Go computes end before the day
			until = t + 24*hour
		}
		if end.IsZero() || first < until {
			return first
		}
		t = until
	}
}

const (
	second = int64(time.Second / time.Microsecond)
	hour   = 3600 * second
)

// hourOf returns the hour of the local clock, cut where the offset changes.
func hourOf(t time.Time) (start, end int64) {
	now := t.UnixMicro()
	_, seconds := t.Zone()
	offset := int64(seconds) * second
	start = floorTo(now+offset, hour) - offset
	end = start + hour
	begin, until := t.ZoneBounds()
	if !begin.IsZero() && begin.UnixMicro() > start && offsetAt(t, begin.UnixMicro()-1) != seconds {
		start = begin.UnixMicro()
	}
	if !until.IsZero() && until.UnixMicro() < end && offsetAt(t, until.UnixMicro()) != seconds {
		end = until.UnixMicro()
	}
	return start, end
}

func offsetAt(t time.Time, us int64) int {
	_, offset := time.UnixMicro(us).In(t.Location()).Zone()
	return offset
}

// floorTo rounds down to a multiple, also before 1970.
func floorTo(t, unit int64) int64 { return t - floorMod(t, unit) }

func floorMod(t, unit int64) int64 {
	r := t % unit
	if r < 0 {
		r += unit
	}
	return r
}

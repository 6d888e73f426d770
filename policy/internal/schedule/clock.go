package schedule

import (
	"iter"
	"math"
	"time"
)

// Times are microseconds since the Unix epoch, as everywhere in the algorithms.
const (
	second = int64(time.Second / time.Microsecond)
	day    = 24 * 3600 * second

	past   = -62_135_596_800 * second // the zero time.Time
	future = 253_402_214_400 * second // 9999-12-31
)

// micros returns a time in microseconds, rounded down, within the bounds.
func micros(t time.Time) int64 {
	switch {
	case t.Before(timeOf(past)):
		return past
	case t.After(timeOf(future)):
		return future
	}
	return t.UnixMicro()
}

func timeOf(us int64) time.Time { return time.UnixMicro(us).UTC() }

// span is a half-open piece of time.
type span struct{ from, until int64 }

func always() span { return span{past, future} }

// cut makes the span no longer than another that shares a time with it.
func (s *span) cut(by span) {
	s.from, s.until = max(s.from, by.from), min(s.until, by.until)
}

// after returns the span moved to begin at a time instead of 0; an open side stays open.
func (s span) after(begin int64) span {
	if s.from != past {
		s.from += begin
	}
	if s.until != future {
		s.until += begin
	}
	return s
}

func (s span) holds(t int64) bool { return s.from <= t && t < s.until }

// stretch is a piece of time in which the offset of a zone from UTC is the same: the local clock shows t + offset.
type stretch struct {
	span
	offset int64
}

// stretches returns those of a zone that cover a piece of time, cut to it.
func stretches(loc *time.Location, over span) []stretch {
	var all []stretch
	for t := over.from; t < over.until; {
		at := time.UnixMicro(t).In(loc)
		_, seconds := at.Zone()
		s := stretch{span{t, min(offsetEnd(at), over.until)}, int64(seconds) * second}
		if n := len(all); n > 0 && all[n-1].offset == s.offset {
			all[n-1].until = s.until
		} else {
			all = append(all, s)
		}
		t = s.until
	}
	return all
}

// offsetEnd returns a later time until which the offset of the zone stays what it is.
func offsetEnd(at time.Time) int64 {
	_, end := at.ZoneBounds()
	if end.IsZero() {
		return math.MaxInt64
	}
	if t := at.UnixMicro(); end.UnixMicro() <= t {
		// From rules without end ZoneBounds (Go 1.26) computes bounds that are cut to the year, and takes every year to have
		// 365 days: on the last day of a leap year, in UTC, it names the begin of that day.
		return midnight(t) + day
	}
	return end.UnixMicro()
}

// part returns, out of the stretches that cover more, those that cover a piece of time, cut to it.
func part(all []stretch, over span) iter.Seq[stretch] {
	return func(yield func(stretch) bool) {
		for _, s := range all[firstAfter(all, over.from):] {
			if s.from >= over.until {
				return
			}
			if s.cut(over); !yield(s) {
				return
			}
		}
	}
}

// firstAfter returns the index of the first stretch that ends after a time.
func firstAfter(all []stretch, t int64) int {
	low, high := 0, len(all)
	for low < high {
		if mid := int(uint(low+high) >> 1); all[mid].until > t {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}

// local returns what the local clock shows at a time.
func local(clock []stretch, t int64) int64 {
	return t + clock[min(firstAfter(clock, t), len(clock)-1)].offset
}

// first returns the first time at which the local clock shows a date and time of day, or a later one, within the
// stretches; their end if it never does.
func first(clock []stretch, shown int64) int64 {
	for _, s := range clock {
		if t := max(shown-s.offset, s.from); t < s.until {
			return t
		}
	}
	return clock[len(clock)-1].until
}

// midnight rounds down to a whole day, also before 1970.
func midnight(t int64) int64 {
	r := t % day
	if r < 0 {
		r += day
	}
	return t - r
}

package main

import "time"

// clock shows times as clocks in a zone do; in UTC where the zone is not known here.
type clock struct {
	zone *time.Location
	// name is that of the zone.
	name string
}

func clockIn(zone string) clock {
	location, err := time.LoadLocation(zone)
	if err != nil || zone == "" {
		location = time.UTC
	}
	return clock{location, location.String()}
}

// at shows a time to the second. Where clocks show it twice, when they are put back, its offset says which one it is.
func (c clock) at(at time.Time) string { return c.in("2006-01-02 15:04:05", at) }

// minute is at, without the seconds where there are none.
func (c clock) minute(at time.Time) string {
	if at.Second() != 0 {
		return c.at(at)
	}
	return c.in("2006-01-02 15:04", at)
}

// after shows a time that stands beside an earlier one: without the day, if that is the same.
func (c clock) after(earlier, at time.Time) string {
	if y, m, d := at.In(c.zone).Date(); time.Date(y, m, d, 0, 0, 0, 0, c.zone).After(earlier) {
		return c.at(at)
	}
	return c.in("15:04:05", at)
}

// named is at, with the zone.
func (c clock) named(at time.Time) string { return c.at(at) + " " + c.name }

// offset is the zone with how far it is from UTC at these times, if that is the same at all of them.
func (c clock) offset(times ...time.Time) string {
	if c.zone == time.UTC {
		return c.name
	}
	offset := times[0].In(c.zone).Format("-07:00")
	for _, at := range times[1:] {
		if at.In(c.zone).Format("-07:00") != offset {
			return c.name
		}
	}
	return c.name + " (" + offset + ")"
}

func (c clock) in(layout string, at time.Time) string {
	at = at.In(c.zone)
	if shownTwice(at) {
		layout += " -07:00"
	}
	return at.Format(layout)
}

// shownTwice reports whether clocks show a time twice: it is in the part of an hour that they are put back by, before or after that.
func shownTwice(at time.Time) bool {
	start, end := at.ZoneBounds()
	return !start.IsZero() && at.Before(start.Add(putBack(start))) || !end.IsZero() && !at.Before(end.Add(-putBack(end)))
}

// putBack is by how much clocks are put back at a moment, 0 or less if they are not.
func putBack(at time.Time) time.Duration {
	_, before := at.Add(-1).Zone()
	_, after := at.Zone()
	return max(0, time.Duration(before-after)*time.Second)
}

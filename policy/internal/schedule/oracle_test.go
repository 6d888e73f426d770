package schedule

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// slowClock is a zone's clock, told by looking at every tick: the latest that it has shown so far, per tick from a start. It
// knows nothing of stretches and changes.
type slowClock struct {
	from, tick int64
	shown      []int64 // since midnight
}

func newSlowClock(zone string, over span, tick int64) *slowClock {
	loc, err := time.LoadLocation(zone)
	if err != nil {
		panic(err)
	}
	c := &slowClock{from: over.from, tick: tick, shown: make([]int64, 0, (over.until-over.from)/tick)}
	latest := past
	for t := over.from - 3*day; t < over.until; t += tick {
		_, offset := time.UnixMicro(t).In(loc).Zone()
		latest = max(latest, t+int64(offset)*second)
		if t >= over.from {
			c.shown = append(c.shown, latest-midnight(latest))
		}
	}
	return c
}

// on tells whether a daily entry is on at a tick.
func (c *slowClock) on(d *Daily, i int) bool {
	inDay := c.shown[i]
	return d.start <= inDay && inDay < d.end || d.start <= inDay+day && inDay+day < d.end
}

// clockZones are zones with changes of many kinds, and times around which they have them.
func clockZones() map[string][]string {
	return map[string][]string{
		"America/New_York":    {"2026-03-08T07:00:00Z", "2026-11-01T06:00:00Z", "2040-03-11T07:00:00Z", "2040-12-31T12:00:00Z", "2064-12-31T23:00:00Z"},
		"Europe/Berlin":       {"2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z", "1947-05-11T01:00:00Z"},
		"Australia/Lord_Howe": {"2026-04-04T15:00:00Z", "2026-10-03T15:30:00Z", "2052-12-31T13:00:00Z"},
		"Asia/Shanghai":       {"1986-05-03T18:00:00Z", "1988-09-10T17:00:00Z", "1991-09-14T17:00:00Z", "2026-06-01T00:00:00Z"},
		"Pacific/Apia":        {"2011-12-30T10:00:00Z", "2021-04-03T14:00:00Z"},
		"Pacific/Kwajalein":   {"1993-08-21T12:00:00Z", "1969-09-30T13:00:00Z"},
		"America/Havana":      {"2026-03-08T05:00:00Z", "2026-11-01T05:00:00Z"},
		"Africa/Casablanca":   {"2026-02-15T02:00:00Z", "2026-03-22T02:00:00Z"},
		"Antarctica/Troll":    {"2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"},
		"America/Juneau":      {"1867-10-19T15:33:00Z"},
		"UTC":                 {"2026-06-01T00:00:00Z", "1970-01-01T00:00:00Z"},
	}
}

// genDaily draws a time of day, whole minutes more often than not.
func genDaily(t *rapid.T, zone string) *Daily {
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	unit := rapid.SampledFrom([]int64{1800, 60, 1}).Draw(t, "unit") * second
	d := &Daily{text: "drawn", loc: loc}
	d.start = rapid.Int64Range(0, day/unit-1).Draw(t, "start") * unit
	d.end = d.start + rapid.OneOf(rapid.Int64Range(1, 4*3600*second/unit), rapid.Int64Range(1, day/unit)).Draw(t, "length")*unit
	return d
}

// TestPlaceIsTheSlowClock compares occurrences with a clock that is looked at every second, for days around changes.
func TestPlaceIsTheSlowClock(t *testing.T) {
	t.Parallel()
	for zone, times := range clockZones() {
		var clocks []*slowClock
		for _, at := range times {
			change := micros(mustTime(t, at))
			clocks = append(clocks, newSlowClock(zone, span{change - day/2, change + day}, second))
		}
		t.Run(zone, rapid.MakeCheck(func(t *rapid.T) {
			comparePlaces(t, genDaily(t, zone), rapid.SampledFrom(clocks).Draw(t, "clock"))
		}))
	}
}

func comparePlaces(t *rapid.T, d *Daily, clock *slowClock) {
	var s span
	var on bool
	for i := range clock.shown {
		now := clock.from + int64(i)*second
		if i == 0 || now >= s.until {
			last := s
			s, on = d.place(now, stretches(d.loc, around(now)))
			if !s.holds(now) || i > 0 && s.from != last.until {
				t.Fatalf("%v: at %s the piece is %s to %s", d, timeOf(now), timeOf(s.from), timeOf(s.until))
			}
			back, was := d.place(s.until-1, stretches(d.loc, around(s.until-1)))
			if back != s || was != on {
				t.Fatalf("%v: the piece from %s to %s is %s to %s when seen from its end", d, timeOf(s.from), timeOf(s.until), timeOf(back.from), timeOf(back.until))
			}
		}
		if on != clock.on(d, i) {
			t.Fatalf("%v to %v in %s: on at %s is %v", time.Duration(d.start*1000), time.Duration(d.end*1000), d.Zone(), timeOf(now), on)
		}
	}
}

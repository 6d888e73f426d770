package oracle

import (
	"context"
	"math/big"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"pgregory.net/rapid"
)

// span49 is 2^-49 of a time.
func span49(us *big.Rat) *big.Rat { return mul(us, big.NewRat(1, 1<<49)) }

func drawRate(t *rapid.T, label string) *big.Rat {
	for {
		num := rapid.OneOf(rapid.Int64Range(1, 1000), rapid.Int64Range(1, 1_000_000_000_000_000)).Draw(t, label+" num")
		den := rapid.SampledFrom([]int64{1, 10, 1000, 1_000_000_000}).Draw(t, label+" den")
		period := rapid.OneOf(rapid.Int64Range(1, 100), rapid.Int64Range(1, inMicros(headgate.MaxPeriod))).Draw(t, label+" period")
		pace := paceOf(headgate.PerFraction(num, den, micros(period)))
		if less(pace, whole(inMicros(headgate.MaxPeriod))) {
			return pace
		}
	}
}

// drawBurst draws a burst that fills within the bounds.
func drawBurst(t *rapid.T, label string, pace *big.Rat) int64 {
	most := floor(smaller(whole(headgate.MaxCount), div(whole(inMicros(headgate.MaxPeriod)), pace)))
	return rapid.OneOf(rapid.Int64Range(1, min(most, 10)), rapid.Int64Range(1, most)).Draw(t, label)
}

// TestConversion: a bucket's change in doubles is as near to the exact one as is promised.
func TestConversion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const now = 1_767_225_600_000_000
		old, to := tokenState{pace: drawRate(t, "old")}, tokenState{pace: drawRate(t, "new")}
		old.burst, to.burst = drawBurst(t, "old burst", old.pace), drawBurst(t, "new burst", to.pace)
		parts := rapid.Int64Range(1, 1_000_000).Draw(t, "missing")
		missing := mul(whole(old.burst), big.NewRat(parts, 1_000_000))
		// The time until full, in the fractions that a state can hold.
		grain := new(big.Rat).SetFrac(big.NewInt(1), old.pace.Denom())
		old.full = add(whole(now), mul(grain, whole(floor(div(mul(missing, old.pace), grain)))))
		if old.full.Cmp(whole(now)) <= 0 {
			return
		}
		level := smaller(sub(whole(old.burst), div(sub(old.full, whole(now)), old.pace)), whole(to.burst))
		exact := add(whole(now), mul(sub(whole(to.burst), level), to.pace))
		got := convertToken(old, to, now)
		off := sub(got, exact)
		// What doubles lose is relative to the larger of the two buckets, in the time of the new one.
		slack := span49(mul(larger(whole(to.burst), whole(old.burst)), to.pace))
		if less(off, new(big.Rat).Neg(slack)) || less(add(whole(1), slack), off) {
			t.Fatalf("off by %s µs, slack %s", off.FloatString(6), slack.FloatString(6))
		}
	})
}

// TestFirstFit compares the search for a retry with the definition, microsecond by microsecond.
func TestFirstFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &cellModel{
			cellState: cellState{
				length: rapid.Int64Range(1, 12).Draw(t, "length"),
				cells:  rapid.Int64Range(1, 4).Draw(t, "cells"),
				counts: map[int64]int64{},
			},
			limit: rapid.Int64Range(1, 9).Draw(t, "limit"),
			now:   rapid.Int64Range(-20, 20).Draw(t, "now"),
		}
		m.eff = m.now
		for back := range m.cells + 1 {
			if n := rapid.Int64Range(0, 9).Draw(t, "count"); n > 0 {
				m.counts[m.cell(back)] = n
			}
		}
		cost := rapid.Int64Range(1, m.limit).Draw(t, "cost")
		a := m.judge(cost, "")
		at := m.now
		for !m.fits(cost, at) {
			at++
		}
		if a.allowed != (at == m.now) || inMicros(a.retry.After) != at-m.now {
			t.Fatalf("fits after %d, got %+v", at-m.now, a)
		}
	})
}

// TestCalendar checks windows around changes of the clocks; every text is in UTC.
func TestCalendar(t *testing.T) {
	for _, tt := range []struct {
		name, zone      string
		unit            headgate.CalendarUnit
		now, start, end string
	}{
		{"a day of 23 hours", "America/New_York", headgate.Day, "2026-03-08T12:00:00Z", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"},
		{"a day of 25 hours", "America/New_York", headgate.Day, "2026-11-01T12:00:00Z", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"},
		{"no midnight", "America/Sao_Paulo", headgate.Day, "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"},
		{"no such date", "Pacific/Apia", headgate.Day, "2011-12-30T09:59:59Z", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},
		{"after no such date", "Pacific/Apia", headgate.Day, "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"},
		{"the evening again after midnight", "America/St_Johns", headgate.Day, "2010-11-07T03:00:00Z", "2010-11-07T02:30:00Z", "2010-11-08T03:30:00Z"},
		{"a week", "Europe/Berlin", headgate.Week, "2026-03-29T10:00:00Z", "2026-03-22T23:00:00Z", "2026-03-29T22:00:00Z"},
		{"a month", "Europe/Berlin", headgate.Month, "2026-03-29T10:00:00Z", "2026-02-28T23:00:00Z", "2026-03-31T22:00:00Z"},
		{"february of a leap year", "UTC", headgate.Month, "2028-02-29T23:59:59.999999Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"},
		{"before the epoch", "UTC", headgate.Day, "1969-12-31T23:59:59.999999Z", "1969-12-31T00:00:00Z", "1970-01-01T00:00:00Z"},
		{"an hour of a zone of 45 minutes", "Asia/Kathmandu", headgate.Hour, "2026-01-01T00:00:00Z", "2025-12-31T23:15:00Z", "2026-01-01T00:15:00Z"},
		{"an hour cut at its end", "Australia/Lord_Howe", headgate.Hour, "2026-04-04T14:50:00Z", "2026-04-04T14:00:00Z", "2026-04-04T15:00:00Z"},
		{"an hour cut at its start", "Australia/Lord_Howe", headgate.Hour, "2026-04-04T15:10:00Z", "2026-04-04T15:00:00Z", "2026-04-04T15:30:00Z"},
		{"an hour of local mean time", "America/New_York", headgate.Hour, "1880-01-01T00:00:00Z", "1879-12-31T23:56:02Z", "1880-01-01T00:56:02Z"},
	} {
		loc, err := time.LoadLocation(tt.zone)
		if err != nil {
			t.Fatal(err)
		}
		start, end := windowKind{unit: tt.unit, zone: tt.zone}.around(at(t, tt.now), loc)
		if start != at(t, tt.start) || end != at(t, tt.end) {
			t.Errorf("%s: want %s to %s, got %s to %s", tt.name, tt.start, tt.end, time.UnixMicro(start).UTC(), time.UnixMicro(end).UTC())
		}
	}
}

func at(t *testing.T, text string) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMicro()
}

// TestCalendarMeets: whatever the clocks do, windows follow each other without a gap and each holds its own times.
func TestCalendarMeets(t *testing.T) {
	zones := []string{"America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "America/St_Johns", "Africa/Casablanca", "Antarctica/Troll", "Asia/Gaza"}
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom(zones).Draw(t, "zone")
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		kind := windowKind{unit: rapid.SampledFrom([]headgate.CalendarUnit{headgate.Hour, headgate.Day, headgate.Week, headgate.Month}).Draw(t, "unit"), zone: zone}
		now := rapid.Int64Range(headgate.MinTime, headgate.MaxTime-1).Draw(t, "now")
		if _, change := time.UnixMicro(now).In(loc).ZoneBounds(); !change.IsZero() && rapid.Bool().Draw(t, "near") {
			now = change.UnixMicro() + rapid.Int64Range(-100*3600*second, 100*3600*second).Draw(t, "off")
		}
		start, end := kind.around(now, loc)
		if start > now || end <= now {
			t.Fatalf("%s lies outside %s to %s", time.UnixMicro(now), time.UnixMicro(start), time.UnixMicro(end))
		}
		for _, same := range []int64{start, end - 1} {
			if s, e := kind.around(same, loc); s != start || e != end {
				t.Fatalf("another window at %s: %s to %s", time.UnixMicro(same), time.UnixMicro(s), time.UnixMicro(e))
			}
		}
		if s, _ := kind.around(end, loc); s != end {
			t.Fatalf("a gap at %s: the next begins at %s", time.UnixMicro(end), time.UnixMicro(s))
		}
	})
}

// TestClock: without a time of its own a take reads the clock that was passed in.
func TestClock(t *testing.T) {
	now := time.Unix(0, 0)
	o := New(Config{Now: func() time.Time { return now }})
	limit := headgate.MustParseLimit("fixed_window 1/1s")
	for _, tt := range []struct {
		at      time.Duration
		allowed bool
	}{{0, true}, {999 * time.Millisecond, false}, {time.Second, true}} {
		now = time.Unix(0, 0).Add(tt.at)
		if ok, err := headgate.Allow(context.Background(), o, limit, "k"); err != nil || ok != tt.allowed {
			t.Errorf("at %s: want %t, got %t, %v", tt.at, tt.allowed, ok, err)
		}
	}
}

// TestCalendarEveryHour walks through some years hour by hour: windows meet, and none is longer than its unit can be.
func TestCalendarEveryHour(t *testing.T) {
	longest := map[headgate.CalendarUnit]int64{headgate.Hour: 1, headgate.Day: 25, headgate.Week: 7*24 + 1, headgate.Month: 31*24 + 1}
	for _, zone := range []string{"America/New_York", "Europe/Dublin", "Australia/Lord_Howe"} {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		for unit, hours := range longest {
			now := at(t, "2040-12-01T00:00:00Z")
			start, end := windowKind{unit: unit, zone: zone}.around(now, loc)
			for end < at(t, "2041-04-20T00:00:00Z") {
				if end-start > hours*3600*second {
					t.Fatalf("%s in %s: %s to %s", unit, zone, time.UnixMicro(start).UTC(), time.UnixMicro(end).UTC())
				}
				s, e := windowKind{unit: unit, zone: zone}.around(end, loc)
				if s != end {
					t.Fatalf("%s in %s: a gap from %s to %s", unit, zone, time.UnixMicro(end).UTC(), time.UnixMicro(s).UTC())
				}
				start, end = s, e
			}
		}
	}
}

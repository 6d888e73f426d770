package schedule

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"pgregory.net/rapid"
)

func TestOverlapMessages(t *testing.T) {
	t.Parallel()
	daily := func(text, zone string) Entry { return Entry{Daily: mustDaily(t, text, zone)} }
	once := func(from, to string) Entry { return Entry{From: mustTime(t, from), To: mustTime(t, to)} }
	for _, tc := range []struct {
		name    string
		a, b    Entry
		instant string // "" if they do not overlap
	}{
		{"once meet", once("2026-11-11T00:00:00+08:00", "2026-11-11T02:00:00+08:00"), once("2026-11-10T18:00:00Z", "2026-11-10T19:00:00Z"), ""},
		{"once", once("2026-11-11T00:00:00+08:00", "2026-11-11T02:00:00.000001+08:00"), once("2026-11-10T18:00:00Z", "2026-11-10T19:00:00Z"), "2026-11-10T18:00:00Z"},
		{"once inside", once("2026-11-11T00:00:00Z", "2026-11-12T00:00:00Z"), once("2026-11-11T10:00:00Z", "2026-11-11T11:00:00Z"), "2026-11-11T10:00:00Z"},
		{"daily meet", daily("19:00-20:00", "Europe/Berlin"), daily("20:00-19:00", "Europe/Berlin"), ""},
		{"daily meet where clocks change", daily("00:00-02:30", "Europe/Berlin"), daily("02:30-03:00", "Europe/Berlin"), ""},
		{"daily", daily("19:50-21:00", "Asia/Shanghai"), daily("20:59:59-22:00", "Asia/Shanghai"), "2026-01-01T20:59:59+08:00"},
		{"daily over midnight", daily("22:00-02:00", "Asia/Shanghai"), daily("01:00-02:00", "Asia/Shanghai"), "2026-01-02T01:00:00+08:00"},
		{"whole day", daily("00:00-24:00", ""), daily("23:59-00:00", ""), "2026-01-01T23:59:00Z"},
		{"the same zone by another name", daily("19:00-20:00", "Asia/Shanghai"), daily("19:59-21:00", "PRC"), "2026-01-01T19:59:00+08:00"},
		{"zones apart", daily("09:00-10:00", "Europe/Berlin"), daily("08:00-09:00", "Europe/Berlin"), ""},
		// 6 hours apart, but 5 from the second Sunday of March to the last, and for a week in autumn.
		{"New York and Berlin", daily("10:00-11:00", "America/New_York"), daily("15:00-16:00", "Europe/Berlin"), "2026-03-08T15:00:00+01:00"},
		{"New York and Berlin, never", daily("10:00-11:00", "America/New_York"), daily("17:00-18:00", "Europe/Berlin"), ""},
		// 00:30 to 01:00 in summer, 01:30 to 02:00 in winter, and all of it in the night between.
		{"one night a year", daily("02:30-03:00", "Europe/Berlin"), daily("01:00-01:30", ""), "2026-10-25T01:00:00Z"},
		{"no night of any year", daily("02:30-03:00", "Europe/Berlin"), daily("02:00-00:30", ""), ""},
		{"in winter only", daily("01:30-02:00", "America/New_York"), daily("06:59-07:00", ""), "2026-01-01T06:59:00Z"},
		{"in Ramadan only", daily("23:30-02:00", "Africa/Casablanca"), daily("01:59-02:00", ""), "2026-02-16T01:59:00Z"},
		{"not even in Ramadan", daily("23:30-02:00", "Africa/Casablanca"), daily("02:00-02:01", ""), ""},
		{"half an hour", daily("01:00-02:00", "Australia/Lord_Howe"), daily("15:10-15:20", ""), "2026-04-04T15:10:00Z"},
		// When the clock is set back over 01:30, the entry is not on for a second time; from the next day on it is.
		{"not before the day after", daily("01:30-01:59", "Australia/Lord_Howe"), daily("17:00-17:20", "Europe/Berlin"), "2026-04-05T15:00:00Z"},
		{"a sale in the evening", daily("19:50-21:00", "Asia/Shanghai"), once("2026-11-11T20:00:00+08:00", "2026-11-11T20:30:00+08:00"), "2026-11-11T20:00:00+08:00"},
		{"a sale before the evening", daily("19:50-21:00", "Asia/Shanghai"), once("2026-11-11T19:00:00+08:00", "2026-11-11T19:50:00+08:00"), ""},
		{"a sale into the evening", daily("19:50-21:00", "Asia/Shanghai"), once("2026-11-11T19:00:00+08:00", "2026-11-11T19:50:00.000001+08:00"), "2026-11-11T19:50:00+08:00"},
		{"a sale after the evening", daily("19:50-21:00", "Asia/Shanghai"), once("2026-11-11T21:00:00+08:00", "2026-11-12T19:50:00+08:00"), ""},
		{"a sale of years", daily("19:50-21:00", "Asia/Shanghai"), once("2026-11-11T21:00:00+08:00", "2046-11-12T19:50:00+08:00"), "2026-11-12T19:50:00+08:00"},
		{"a sale on the day without the hour", daily("02:15-02:45", "Europe/Berlin"), once("2026-03-28T12:00:00+01:00", "2026-03-29T12:00:00+02:00"), ""},
		{"a sale on the day that is none", daily("10:00-12:00", "Pacific/Apia"), once("2011-12-29T12:00:00-10:00", "2011-12-31T10:00:00+14:00"), ""},
		{"a sale in the second hour", daily("01:00-01:59", "America/New_York"), once("2026-11-01T01:00:00-05:00", "2026-11-01T01:30:00-05:00"), ""},
		{"a sale before this era", daily("10:00-12:00", "Asia/Shanghai"), once("1850-01-01T00:00:00Z", "1850-01-02T00:00:00Z"), "1850-01-01T10:00:00+08:05"},
	} {
		for i, pair := range [][]Entry{{tc.a, tc.b}, {tc.b, tc.a}} {
			_, err := New(nil, pair, nil)
			var wrong *EntryError
			switch {
			case tc.instant == "" && err == nil:
				continue
			case tc.instant == "" || !errors.As(err, &wrong) || wrong.Entry != 1 || wrong.Other != 0:
				t.Errorf("%s (%d): got %v, want an overlap at %q", tc.name, i, err, tc.instant)
				continue
			}
			if want := fmt.Sprintf("%q overlaps %q, entry 1: both are on at ", pair[1].String(), pair[0].String()); !strings.HasPrefix(wrong.Message, want) {
				t.Errorf("%s (%d): got %s, want %s", tc.name, i, wrong.Message, want)
			}
			if _, at, _ := strings.Cut(wrong.Message, " are on at "); !mustTime(t, tc.instant).Equal(parseAny(t, at)) {
				t.Errorf("%s (%d): at %s, want %s", tc.name, i, at, tc.instant)
			}
		}
	}
}

func parseAny(t *testing.T, text string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestOverlapIsTheSlowClock compares what New says of two zones with their clocks, looked at every minute of some years.
func TestOverlapIsTheSlowClock(t *testing.T) {
	t.Parallel()
	zones := []string{"America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca", "America/Havana", "Asia/Shanghai"}
	spans := []span{
		{micros(mustTime(t, "2026-01-01T00:00:00Z")), micros(mustTime(t, "2027-01-01T00:00:00Z"))},
		{micros(mustTime(t, "2040-12-01T00:00:00Z")), micros(mustTime(t, "2041-12-01T00:00:00Z"))},
	}
	clocks := map[string][]*slowClock{}
	for _, zone := range zones {
		for _, s := range spans {
			clocks[zone] = append(clocks[zone], newSlowClock(zone, s, 60*second))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := genMinutes(t, rapid.SampledFrom(zones).Draw(t, "a")), genMinutes(t, rapid.SampledFrom(zones).Draw(t, "b"))
		p := &Plan{}
		p.add(&Entry{Daily: a})
		p.add(&Entry{Daily: b})
		o, found := p.overlap()
		if found {
			for _, d := range []*Daily{a, b} {
				if _, on := d.place(o.at, stretches(d.loc, around(o.at))); !on {
					t.Fatalf("%v is not on at %s", d, timeOf(o.at))
				}
			}
			return
		}
		for i := range spans {
			ca, cb := clocks[a.Zone()][i], clocks[b.Zone()][i]
			for j := range ca.shown {
				if ca.on(a, j) && cb.on(b, j) {
					t.Fatalf("%v and %v are both on at %s", a, b, timeOf(ca.from+int64(j)*ca.tick))
				}
			}
		}
	})
}

// genMinutes draws a short daily time of whole minutes, so that two of them often miss each other by little.
func genMinutes(t *rapid.T, zone string) *Daily {
	minutes := rapid.SampledFrom([]int64{1, 15, 30}).Draw(t, "unit")
	start := rapid.Int64Range(0, 24*60/minutes-1).Draw(t, "start") * minutes
	end := (start + rapid.Int64Range(1, 4).Draw(t, "length")*minutes) % (24 * 60)
	return mustDaily(t, fmt.Sprintf("%02d:%02d-%02d:%02d", start/60, start%60, end/60, end%60), zone)
}

// TestHostileSchedule: as many entries as there can be, of every kind, cost little to check and to ask.
func TestHostileSchedule(t *testing.T) {
	t.Parallel()
	base := []headgate.Limit{limit("token_bucket 1/s")}
	var entries []Entry
	for i, name := range strings.Fields(zoneNames)[:MaxEntries/2] {
		// A second of the day each, in zones of whole quarters of an hour: none meets another.
		d := mustDaily(t, fmt.Sprintf("10:%02d:%02d-10:%02d:%02d", i*2/60, i*2%60, i*2/60, i*2%60+1), name)
		entries = append(entries, Entry{Daily: d, Limits: base, Ramp: time.Second})
		at := time.Date(2030, 1, i+1, 4, 59, i%60, 0, time.UTC)
		entries = append(entries, Entry{From: at, To: at.Add(time.Millisecond), Limits: base})
	}
	begin := time.Now()
	p := mustPlan(t, base, entries, nil)
	took := time.Since(begin)
	for tries := 5; tries > 0 && took > 5*time.Second; tries-- { // a busy machine may hold it up
		begin = time.Now()
		p = mustPlan(t, base, entries, nil)
		took = min(took, time.Since(begin))
	}
	if took > 5*time.Second {
		t.Errorf("New took %s", took)
	}
	if _, from, until := p.At(mustTime(t, "2026-03-08T07:00:00Z"), time.Time{}); !from.Before(until) {
		t.Errorf("from %s until %s", from, until)
	}
	t.Logf("New took %s", took)
}

package algo

import (
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// calendar makes a limit of one unit in one zone.
func calendar(t testing.TB, unit headgate.CalendarUnit, zone string) headgate.FixedWindow {
	t.Helper()
	l, err := headgate.NewCalendarWindow(1, unit, zone)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func at(t testing.TB, text string) int64 {
	t.Helper()
	x, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return x.UnixMicro()
}

func TestCalendarWindows(t *testing.T) {
	for _, c := range []struct {
		name       string
		unit       headgate.CalendarUnit
		zone       string
		now        string
		start, end string
	}{
		{"a plain day", headgate.Day, "UTC", "2026-05-05T13:00:00Z", "2026-05-05T00:00:00Z", "2026-05-06T00:00:00Z"},
		{"a day of 23 hours", headgate.Day, "America/New_York", "2026-03-08T12:00:00-04:00", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"},
		{"a day of 25 hours", headgate.Day, "America/New_York", "2026-11-01T12:00:00-05:00", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"},
		{"half an hour of summer time", headgate.Day, "Australia/Lord_Howe", "2026-04-05T06:00:00+10:30", "2026-04-04T13:00:00Z", "2026-04-05T13:30:00Z"},
		{"a midnight that does not exist", headgate.Day, "America/Sao_Paulo", "2018-11-04T12:00:00-02:00", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"},
		{"the evening shown twice, before", headgate.Day, "America/Sao_Paulo", "2018-02-17T23:30:00-02:00", "2018-02-17T02:00:00Z", "2018-02-18T03:00:00Z"},
		{"the evening shown twice, after", headgate.Day, "America/Sao_Paulo", "2018-02-17T23:30:00-03:00", "2018-02-17T02:00:00Z", "2018-02-18T03:00:00Z"},
		{"midnight shown twice, first", headgate.Day, "America/Havana", "2026-11-01T00:30:00-04:00", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"},
		{"midnight shown twice, second", headgate.Day, "America/Havana", "2026-11-01T00:30:00-05:00", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"},
		{"midnight skipped to one", headgate.Day, "America/Havana", "2026-03-08T09:00:00-04:00", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"},
		{"the day before one that was skipped", headgate.Day, "Pacific/Apia", "2011-12-29T12:00:00-10:00", "2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z"},
		{"the day after one that was skipped", headgate.Day, "Pacific/Apia", "2011-12-31T12:00:00+14:00", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"},
		{"a week with a skipped day", headgate.Week, "Pacific/Apia", "2011-12-31T12:00:00+14:00", "2011-12-26T10:00:00Z", "2012-01-01T10:00:00Z"},
		{"local mean time with odd seconds", headgate.Day, "Africa/Monrovia", "1880-06-01T12:00:00Z", "1880-06-01T00:43:08Z", "1880-06-02T00:43:08Z"},
		{"Monrovia leaves its odd 44:30", headgate.Day, "Africa/Monrovia", "1972-01-07T03:00:00Z", "1972-01-07T00:44:30Z", "1972-01-08T00:00:00Z"},
		{"a week begins on Monday", headgate.Week, "Europe/Berlin", "2026-03-29T12:00:00+02:00", "2026-03-22T23:00:00Z", "2026-03-29T22:00:00Z"},
		{"February", headgate.Month, "Asia/Shanghai", "2028-02-29T23:59:59+08:00", "2028-01-31T16:00:00Z", "2028-02-29T16:00:00Z"},
		{"December", headgate.Month, "UTC", "2026-12-31T23:59:59Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"before 1970", headgate.Day, "Asia/Kolkata", "1969-12-31T12:00:00+05:30", "1969-12-30T18:30:00Z", "1969-12-31T18:30:00Z"},
		{"the last day of a leap year after 2037", headgate.Day, "America/New_York", "2040-12-31T12:00:00-05:00", "2040-12-31T05:00:00Z", "2041-01-01T05:00:00Z"},
		{"the hour before the clock goes on", headgate.Hour, "America/New_York", "2026-03-08T01:59:00-05:00", "2026-03-08T06:00:00Z", "2026-03-08T07:00:00Z"},
		{"the first of two same hours", headgate.Hour, "America/New_York", "2026-11-01T01:30:00-04:00", "2026-11-01T05:00:00Z", "2026-11-01T06:00:00Z"},
		{"the second of two same hours", headgate.Hour, "America/New_York", "2026-11-01T01:30:00-05:00", "2026-11-01T06:00:00Z", "2026-11-01T07:00:00Z"},
		{"an hour cut at half past", headgate.Hour, "Australia/Lord_Howe", "2026-04-05T01:45:00+11:00", "2026-04-04T14:00:00Z", "2026-04-04T15:00:00Z"},
		{"the half hour that comes again", headgate.Hour, "Australia/Lord_Howe", "2026-04-05T01:45:00+10:30", "2026-04-04T15:00:00Z", "2026-04-04T15:30:00Z"},
		{"an hour begun at half past", headgate.Hour, "Australia/Lord_Howe", "2026-10-04T02:45:00+11:00", "2026-10-03T15:30:00Z", "2026-10-03T16:00:00Z"},
		{"an hour at an offset of 45 minutes", headgate.Hour, "Asia/Kathmandu", "2026-01-01T10:20:00+05:45", "2026-01-01T04:15:00Z", "2026-01-01T05:15:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var z Zones
			start, end := z.Window(calendar(t, c.unit, c.zone), at(t, c.now))
			if want := at(t, c.start); start != want {
				t.Errorf("starts %s, want %s", time.UnixMicro(start).UTC(), c.start)
			}
			if want := at(t, c.end); end != want {
				t.Errorf("ends %s, want %s", time.UnixMicro(end).UTC(), c.end)
			}
		})
	}
}

// Windows follow each other without a gap or an overlap, and each holds the times that lead to it.
func TestCalendarWindowsMeet(t *testing.T) {
	zones := []string{"UTC", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "America/Havana", "Pacific/Apia", "Africa/Monrovia", "Asia/Manila", "America/Juneau", "Africa/Casablanca", "Europe/Dublin"}
	spans := []struct{ from, to string }{{"1880-01-01T00:00:00Z", "1884-01-01T00:00:00Z"}, {"1969-01-01T00:00:00Z", "1973-01-01T00:00:00Z"}, {"2011-06-01T00:00:00Z", "2012-06-01T00:00:00Z"}, {"2039-06-01T00:00:00Z", "2041-06-01T00:00:00Z"}}
	for _, zone := range zones {
		var z Zones
		for _, unit := range []headgate.CalendarUnit{headgate.Day, headgate.Week, headgate.Month} {
			l := calendar(t, unit, zone)
			for _, s := range spans {
				for now := at(t, s.from); now < at(t, s.to); {
					start, end := z.Window(l, now)
					if start > now || end <= now {
						t.Fatalf("%s in %s: the window of %d is %d to %d", unit, zone, now, start, end)
					}
					for _, inside := range []int64{start, end - 1} {
						if s, e := z.Window(l, inside); s != start || e != end {
							t.Fatalf("%s in %s: the window of %d is %d to %d, that of %d inside it %d to %d", unit, zone, now, start, end, inside, s, e)
						}
					}
					now = end
				}
			}
		}
	}
}

package schedule

import (
	"strings"
	"testing"
	"time"
)

func mustDaily(t interface{ Fatal(...any) }, text, zone string) *Daily {
	d, err := ParseDaily(text, zone)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestParseDaily(t *testing.T) {
	t.Parallel()
	const minute = 60 * second
	for _, tc := range []struct {
		text       string
		start, end int64
	}{
		{"19:50-21:00", 1190 * minute, 1260 * minute},
		{"19:50:30-21:00", 1190*minute + 30*second, 1260 * minute},
		{" 19:50 - 21:00:59 ", 1190 * minute, 1260*minute + 59*second},
		{"00:00-24:00", 0, day},
		{"00:00:00-24:00:00", 0, day},
		{"10:00-24:00", 600 * minute, day},
		{"22:00-02:00", 1320 * minute, day + 120*minute},
		{"22:00-00:00", 1320 * minute, day},
		{"00:01-00:00", minute, day},
		{"23:59:59-23:59:58", day - second, 2*day - 2*second},
	} {
		d, err := ParseDaily(tc.text, "Asia/Shanghai")
		if err != nil {
			t.Errorf("%q: %v", tc.text, err)
			continue
		}
		if d.start != tc.start || d.end != tc.end || d.Zone() != "Asia/Shanghai" || d.String() != tc.text+" Asia/Shanghai" {
			t.Errorf("%q: %d to %d in %s, %q", tc.text, d.start, d.end, d.Zone(), d)
		}
	}
	if d := mustDaily(t, "22:00-02:00", ""); d.Zone() != "UTC" || d.Length() != 4*time.Hour {
		t.Errorf("the zone is %s, the length %s", d.Zone(), d.Length())
	}
}

func TestParseDailyErrors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ text, zone, want string }{
		{"", "", `"": it is not a start and an end; write it like 19:50-21:00`},
		{"19:50", "", `"19:50": it is not a start and an end; write it like 19:50-21:00`},
		{"19:50–21:00", "", `"19:50–21:00": it is not a start and an end; write it like 19:50-21:00`},
		{"19-21", "", `"19-21": "19" is not a time of day; write it like 19:50 or 19:50:30`},
		{"9:50-21:00", "", `"9:50-21:00": "9:50" is not a time of day; write two digits each, like 09:05`},
		{"+9:50-21:00", "", `"+9:50" is not a time of day; write two digits each, like 09:05`},
		{"19:50-21:00-22:00", "", `"21:00-22:00" is not a time of day; write two digits each, like 09:05`},
		{"19:50pm-21:00", "", `"19:50pm" is not a time of day; write two digits each, like 09:05`},
		{"25:00-26:00", "", `"25:00": the hour 25 is outside 0 to 24`},
		{"10:60-11:00", "", `"10:60": the minute 60 is outside 0 to 59`},
		{"10:00:60-11:00", "", `"10:00:60": the second 60 is outside 0 to 59`},
		{"10:00-24:01", "", `"24:01" is past the end of the day; nearest is 24:00`},
		{"24:00-02:00", "", `24:00 can only be an end; nearest is 00:00`},
		{"10:00-10:00", "", `it ends where it begins; the whole day is 00:00-24:00`},
		{"00:00-00:00", "", `it ends where it begins; the whole day is 00:00-24:00`},
		{strings.Repeat("1", 1000), "", `1000 bytes are too long`},
		{"10:00-11:00", "Local", "zone Local means another zone on every machine; name one such as Europe/Berlin"},
		{"10:00-11:00", "Asia/Shangai", `zone "Asia/Shangai" is not in the time zone database; nearest is Asia/Shanghai`},
		{"10:00-11:00", "asia/shanghai/", `nearest is Asia/Shanghai`},
		{"10:00-11:00", "new york", `nearest is America/New_York`},
		{"10:00-11:00", "Asia/Beijing", `nearest is Asia/Shanghai`},
		{"10:00-11:00", "Shanghai", `nearest is Asia/Shanghai`},
		{"10:00-11:00", "UTC+8", `write a name such as UTC or Asia/Shanghai`},
		{"10:00-11:00", " ", `write a name such as UTC or Asia/Shanghai`},
		{"10:00-11:00", "../../../etc/passwd", `is not in the time zone database; nearest is`},
		{"10:00-11:00", "/etc/localtime", `is not in the time zone database; nearest is`},
		{"10:00-11:00", strings.Repeat("é", 100000), `is not in the time zone database; nearest is`},
	} {
		d, err := ParseDaily(tc.text, tc.zone)
		if err == nil || !strings.Contains(err.Error(), tc.want) || d != nil {
			t.Errorf("%q in %q: got %v, want %s", clip(tc.text), clip(tc.zone), err, tc.want)
		} else if len(err.Error()) > 400 {
			t.Errorf("%q: a message of %d bytes", clip(tc.text), len(err.Error()))
		}
	}
}

func TestParseTime(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Time{
		"2026-11-11T00:00:00+08:00":        time.Date(2026, 11, 10, 16, 0, 0, 0, time.UTC),
		"2026-11-11T00:00:00Z":             time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC),
		"2026-11-11T00:00:00.000001-03:30": time.Date(2026, 11, 11, 3, 30, 0, 1000, time.UTC),
		"1969-12-31T23:59:59Z":             time.Unix(-1, 0),
	} {
		if got, err := ParseTime(text); err != nil || !got.Equal(want) {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":                               `"" is not a date and time with an offset; write it like 2026-11-11T00:00:00+08:00`,
		"2026-11-11T00:00:00":            "has no offset from UTC; write one such as 2026-11-11T00:00:00+08:00",
		"2026-11-11 20:00":               "has no offset from UTC; write one such as 2026-11-11T20:00:00+08:00",
		"2026-11-11":                     "has no offset from UTC; write one such as 2026-11-11T00:00:00+08:00",
		"2026-02-29T00:00:00Z":           "is not a date and time with an offset",
		"2026-11-11T24:00:00Z":           "is not a date and time with an offset",
		"2026-11-11T00:00:00.0000001Z":   "is finer than a microsecond; nearest is 2026-11-11T00:00:00Z",
		"0000-01-01T00:00:00Z":           "is outside the years 1 to 9999",
		"9999-12-31T00:00:00.000001Z":    "is outside the years 1 to 9999",
		strings.Repeat("2026-", 1000000): "is not a date and time with an offset",
	} {
		if got, err := ParseTime(text); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 300 {
			t.Errorf("%s: got %v, %v, want %s", clip(text), got, err, want)
		}
	}
}

func TestZoneNamesExist(t *testing.T) {
	t.Parallel()
	n := 0
	for name := range strings.FieldsSeq(zoneNames) {
		n++
		if _, err := loadZone(name); err != nil {
			t.Error(err)
		}
	}
	if n < 400 {
		t.Errorf("%d names", n)
	}
}

func FuzzParseDaily(f *testing.F) {
	f.Add("19:50-21:00", "Asia/Shanghai")
	f.Add("22:00:01-24:00", "Europe/Berlin")
	f.Fuzz(func(t *testing.T, text, zone string) {
		d, err := ParseDaily(text, zone)
		if err != nil {
			return
		}
		if d.start < 0 || d.start >= day || d.end <= d.start || d.end > d.start+day {
			t.Fatalf("%q: %d to %d", text, d.start, d.end)
		}
		again, err := ParseDaily(d.text, d.Zone())
		if err != nil || again.start != d.start || again.end != d.end {
			t.Fatalf("%q: again %v, %v", text, again, err)
		}
	})
}

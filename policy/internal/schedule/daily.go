package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Daily is a time of the day in a zone, from a start to an end, that comes every day. Make it with [ParseDaily]. It is
// immutable.
type Daily struct {
	text       string
	start, end int64 // since local midnight; the end is up to a day after the start
	loc        *time.Location
}

// maxText bounds the text of a time.
const maxText = 64

// ParseDaily reads START-END in hours and minutes, or hours, minutes and seconds, of a day of 24 hours: "19:50-21:00" or
// "19:50:30-21:00". An end before the start is on the next day ("22:00-02:00"), and "00:00-24:00" is the whole day. The
// zone is a name of the IANA database, "" for UTC.
func ParseDaily(text, zone string) (*Daily, error) {
	d := &Daily{text: text}
	var err error
	if d.start, d.end, err = parseTimes(text); err != nil {
		return nil, fmt.Errorf("%q: %w", clip(text), err)
	}
	if d.loc, err = loadZone(zone); err != nil {
		return nil, err
	}
	return d, nil
}

// String returns the text that it was read from, and the zone.
func (d *Daily) String() string { return d.text + " " + d.Zone() }

// Zone returns the name of the zone.
func (d *Daily) Zone() string {
	if d.loc == nil {
		return "UTC"
	}
	return d.loc.String()
}

// Length returns how long it lasts on a day on which the clocks do not change: at most 24 hours.
func (d *Daily) Length() time.Duration { return time.Duration(d.end-d.start) * time.Microsecond }

func parseTimes(text string) (start, end int64, err error) {
	if len(text) > maxText {
		return 0, 0, fmt.Errorf("%d bytes are too long; write it like 19:50-21:00", len(text))
	}
	from, to, ok := strings.Cut(text, "-")
	if !ok {
		return 0, 0, errors.New("it is not a start and an end; write it like 19:50-21:00")
	}
	if start, err = parseClock(strings.TrimSpace(from)); err != nil {
		return 0, 0, err
	}
	if end, err = parseClock(strings.TrimSpace(to)); err != nil {
		return 0, 0, err
	}
	switch {
	case start == day:
		return 0, 0, errors.New("24:00 can only be an end; nearest is 00:00")
	case start == end:
		return 0, 0, errors.New("it ends where it begins; the whole day is 00:00-24:00")
	case end < start:
		end += day
	}
	return start, end, nil
}

// parseClock reads a time of day: two digits each, 24:00 included.
func parseClock(text string) (int64, error) {
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return 0, fmt.Errorf("%q is not a time of day; write it like 19:50 or 19:50:30", text)
	}
	seconds := 0
	for i, p := range parts {
		if len(p) != 2 || p[0] < '0' || p[0] > '9' || p[1] < '0' || p[1] > '9' {
			return 0, fmt.Errorf("%q is not a time of day; write two digits each, like 09:05", text)
		}
		n, most := int(p[0]-'0')*10+int(p[1]-'0'), [...]int{24, 59, 59}[i]
		if n > most {
			return 0, fmt.Errorf("%q: the %s %d is outside 0 to %d", text, [...]string{"hour", "minute", "second"}[i], n, most)
		}
		seconds = seconds*60 + n
	}
	if len(parts) == 2 {
		seconds *= 60
	}
	if int64(seconds)*second > day {
		return 0, fmt.Errorf("%q is past the end of the day; nearest is 24:00", text)
	}
	return int64(seconds) * second, nil
}

// ParseTime reads a time such as 2026-11-11T00:00:00+08:00: the form of RFC 3339, in which the offset is not optional, to the
// microsecond.
func ParseTime(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	switch {
	case err == nil && t.Nanosecond()%1000 != 0:
		return time.Time{}, fmt.Errorf("%q is finer than a microsecond; nearest is %s", clip(text), t.Truncate(time.Microsecond).Format(time.RFC3339Nano))
	case err == nil && (t.Before(timeOf(past)) || t.After(timeOf(future))):
		return time.Time{}, fmt.Errorf("%q is outside the years 1 to 9999", clip(text))
	case err == nil:
		return t, nil
	}
	if t, ok := withoutOffset(text); ok {
		return time.Time{}, fmt.Errorf("%q has no offset from UTC; write one such as %s", clip(text), t.Format(time.RFC3339Nano))
	}
	return time.Time{}, fmt.Errorf("%q is not a date and time with an offset; write it like 2026-11-11T00:00:00+08:00", clip(text))
}

// withoutOffset reads the forms in which people forget the offset.
func withoutOffset(text string) (time.Time, bool) {
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, time.FixedZone("", 8*3600)); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// clip shortens a text for a message.
func clip(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText-3], "") + "..."
}

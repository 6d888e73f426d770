package replay

import (
	"math"
	"strconv"
	"strings"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// commonLayout is how Apache and nginx write a time within brackets.
const commonLayout = "02/Jan/2006:15:04:05 -0700"

// clockReader reads times. Most lines of a log have the text of the one before, so the last one is kept.
type clockReader struct {
	text string
	at   int64
}

// common reads a time as nginx and Apache write it.
func (c *clockReader) common(text string) (int64, problem) {
	if text == c.text && text != "" {
		return c.at, fine
	}
	t, err := time.Parse(commonLayout, text)
	if err != nil {
		return 0, badTime
	}
	at, err := headgate.Micros(t)
	if err != nil {
		return 0, timeRange
	}
	c.text, c.at = strings.Clone(text), at // the line must not stay for its time
	return at, fine
}

// any reads a time as logs in JSON write it: RFC 3339, with a blank for the T or without a zone (UTC), a count since the
// epoch in seconds, milliseconds, microseconds or nanoseconds, or that of nginx and Apache.
func (c *clockReader) any(text string) (int64, problem) {
	if text == c.text && text != "" {
		return c.at, fine
	}
	if len(text) < 20 || isNumber(text) {
		if at, what := epochTime(text); what != badTime {
			return at, what
		}
	}
	if len(text) > 2 && text[2] == '/' {
		return c.common(text)
	}
	for _, layout := range [...]string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999-0700",
		"2006-01-02 15:04:05.999999999 -0700", "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999"} {
		t, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		at, err := headgate.Micros(t)
		if err != nil {
			return 0, timeRange
		}
		c.text, c.at = strings.Clone(text), at
		return at, fine
	}
	return 0, badTime
}

func isNumber(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < '0' || c > '9') && c != '.' && c != '-' && c != 'e' && c != 'E' && c != '+' {
			return false
		}
	}
	return text != ""
}

// epochTime reads a count since the epoch. Its size tells the unit: today is about 1.8e9 seconds.
func epochTime(text string) (int64, problem) {
	if whole, fraction, ok := strings.Cut(text, "."); ok && len(whole) <= 11 && len(fraction) <= 9 {
		// Digits, not a float64, so that no microsecond is lost.
		seconds, err1 := strconv.ParseInt(whole, 10, 64)
		nanos, err2 := strconv.ParseUint((fraction + "000000000")[:9], 10, 32)
		if err1 == nil && err2 == nil && seconds >= 0 {
			return inRange(float64(seconds), seconds*1e6+int64(nanos)/1000)
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return 0, badTime
	}
	scale := 1e6
	for _, unit := range [...]float64{1e11, 1e14, 1e17} { // milliseconds, microseconds, nanoseconds from here on
		if math.Abs(n) >= unit {
			scale /= 1e3
		}
	}
	if whole, err := strconv.ParseInt(text, 10, 64); err == nil && scale >= 1 {
		return inRange(n*scale/1e6, whole*int64(scale))
	}
	return inRange(n*scale/1e6, int64(min(max(n*scale, -1e18), 1e18)))
}

func inRange(seconds float64, micros int64) (int64, problem) {
	if seconds < float64(headgate.MinTime)/1e6 || seconds >= float64(headgate.MaxTime)/1e6 {
		return 0, timeRange
	}
	return micros, fine
}

// tookMicros reads how long a request took: "12ms", seconds with a fraction, or whole nanoseconds. -1 if it is none of these.
func tookMicros(text string, seconds bool) int64 {
	if d, err := time.ParseDuration(text); err == nil && text != "0" && d >= 0 {
		return d.Microseconds()
	}
	if whole, err := strconv.ParseInt(text, 10, 64); err == nil && !seconds {
		return max(whole/1000, -1)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f >= 0 && f < 1e9) {
		return -1
	}
	return int64(f * 1e6)
}

// timeOf is the time of a count of microseconds.
func timeOf(us int64) time.Time { return time.UnixMicro(us).UTC() }

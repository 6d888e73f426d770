package demo

import (
	"testing"
	"time"
)

// TestPlan: a person has time to pay, and what nobody pays for comes back, from the bank too, while it can still be sold.
func TestPlan(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 6, 18, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct{ d, opens, closes, hold time.Duration }{
		{time.Second, 400 * time.Millisecond, 800 * time.Millisecond, time.Second}, // too short for a story
		{5 * time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second / 3},
		{30 * time.Second, 12 * time.Second, 24 * time.Second, 8 * time.Second},
		{time.Minute, 24 * time.Second, 48 * time.Second, 16 * time.Second},
		{10 * time.Minute, 30 * time.Second, 8 * time.Minute, 2 * time.Minute},
		{time.Hour, 30 * time.Second, 56 * time.Minute, 2 * time.Minute},
	} {
		p := newPlan(start, c.d)
		if opens, closes := p.opens.Sub(start), p.closes.Sub(start); opens != c.opens || closes != c.closes || p.hold != c.hold || p.payTime != c.hold {
			t.Errorf("%s: opens after %s and closes after %s, with %s to begin to pay and %s to do so; want %+v", c.d, opens, closes, p.hold, p.payTime, c)
		}
		if back := p.opens.Add(p.hold + p.grace + p.sweep); c.d > time.Second && !back.Before(p.closes) {
			t.Errorf("%s: what is held when it opens comes back when it has closed", c.d)
		}
	}
}

package resilience

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// watched notes what a BreakerObserver is told.
type watched struct{ told []string }

func (w *watched) BreakerChanged(node string, open bool, why string) {
	w.told = append(w.told, fmt.Sprint(node, " ", open, " ", why))
}

// TestShare: half of ten calls within a second open, less or fewer do not.
func TestShare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		good, bad    int
		code         string
		every, after time.Duration // between calls, and before those that fail
		open         bool
	}{
		{"5 of 10", 5, 5, "unavailable", 0, 0, true},
		{"4 of 10", 6, 4, "unavailable", 0, 0, false},
		{"9 of 9", 0, 9, "unavailable", 0, 0, false},
		{"10 of 10", 0, 10, "unavailable", 0, 0, true},
		{"49 of 100", 51, 49, "unavailable", 0, 0, false},
		{"499 of 1000, which is half in whole percents", 501, 499, "unavailable", 0, 0, false},
		{"500 of 1000", 500, 500, "unavailable", 0, 0, true},
		{"10 of 10 over a second", 0, 10, "unavailable", 99 * time.Millisecond, 0, true},
		{"10 of 10 over more than a second", 0, 10, "unavailable", 112 * time.Millisecond, 0, false},
		{"what was good a second ago does not count", 1000, 10, "unavailable", 0, time.Second, true},
		{"what was good less long ago does", 1000, 10, "unavailable", 0, 900 * time.Millisecond, false},
		{"unreadable answers", 0, 10, "internal", 0, 0, true},
		{"faults of the caller", 0, 100, "invalid_cost", 0, 0, false},
		{"a store that was closed", 0, 100, "closed", 0, 0, false},
		{"no answers, all of one stall", 0, 1000, "indeterminate", 0, 0, false},
		{"no answers for longer", 0, 10, "indeterminate", 40 * time.Millisecond, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &watched{}
				b := NewBreakers(BreakersConfig{Observer: w, Probe: func(context.Context, string) error { return errors.New("still away") }})
				defer b.Close()
				for range c.good {
					b.Called("n", time.Millisecond, "")
				}
				time.Sleep(c.after)
				for i := range c.bad {
					if i > 0 {
						time.Sleep(c.every)
					}
					if i == c.bad-1 && b.Open("n") {
						t.Errorf("open before the last call")
					}
					b.Called("n", time.Millisecond, c.code)
				}
				if got := b.Open("n"); got != c.open || b.Lost() != c.open || len(w.told) > 1 || (len(w.told) == 1) != c.open {
					t.Errorf("open %v, want %v; told %q", got, c.open, w.told)
				}
				if b.Open("other") {
					t.Error("another node is open")
				}
			})
		})
	}
}

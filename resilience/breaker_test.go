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
func TestFailedShare(t *testing.T) {
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

// opened returns breakers of which the node "n" has just been opened.
func opened(t *testing.T, cfg BreakersConfig) *Breakers {
	t.Helper()
	b := NewBreakers(cfg)
	fail(b)
	if !b.Open("n") {
		t.Fatal("not open")
	}
	return b
}

// fail has the node refuse ten calls.
func fail(b *Breakers) {
	for range 10 {
		b.Called("n", 0, "unavailable")
	}
}

// TestSilence: two seconds without a success open, if at least two calls have failed in them, none of them succeeded, and no long
// time lies between them.
func TestSilence(t *testing.T) {
	t.Parallel()
	const took = 200 * time.Millisecond
	for _, c := range []struct {
		name string
		// calls end these times after a success at 0; a negative one is of a success.
		calls []time.Duration
		open  bool
	}{
		{"one call", []time.Duration{5 * time.Second}, false},
		{"two within two seconds", []time.Duration{took, 1900 * time.Millisecond}, false},
		{"two, two seconds from the begin of the first to the end of the last", []time.Duration{took, 2 * time.Second}, true},
		{"a caller after the other", []time.Duration{1 * took, 2 * took, 3 * took, 4 * took, 5 * took, 6 * took, 7 * took, 8 * took, 9 * took, 10 * took}, true},
		{"nine of them", []time.Duration{1 * took, 2 * took, 3 * took, 4 * took, 5 * took, 6 * took, 7 * took, 8 * took, 9 * took}, false},
		{"a success between", []time.Duration{took, -time.Second, 2 * time.Second, 2900 * time.Millisecond}, false},
		{"and another silence after it", []time.Duration{took, -time.Second, 2 * time.Second, 3800 * time.Millisecond}, true},
		{"a call every nine seconds", []time.Duration{9 * time.Second, 18 * time.Second}, true},
		{"a call every hour", []time.Duration{time.Hour, 2 * time.Hour, 3 * time.Hour}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := NewBreakers(BreakersConfig{Probe: never})
				defer b.Close()
				start := time.Now()
				b.Called("n", time.Millisecond, "")
				for _, at := range c.calls {
					time.Sleep(time.Until(start.Add(max(at, -at))))
					if b.Lost() {
						t.Errorf("open before the last call, at %s", at)
					}
					if at < 0 {
						b.Called("n", took, "")
					} else {
						b.Called("n", took, "indeterminate")
					}
				}
				if b.Lost() != c.open {
					t.Errorf("open %v, want %v: %+v", b.Lost(), c.open, b.States())
				}
			})
		})
	}
}

// TestTinyWindow: a window that cannot be cut into steps is the shortest that can.
func TestTinyWindow(t *testing.T) {
	t.Parallel()
	b := opened(t, BreakersConfig{Window: 1, MinCalls: 1, Probe: never})
	_ = b.Close()
}

// TestOneLongCall: one call that fails is no silence, however long it took.
func TestOneLongCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBreakers(BreakersConfig{Probe: never})
		defer b.Close()
		for _, lost := range []bool{false, true} {
			b.Called("n", 10*time.Second, "indeterminate")
			if b.Lost() != lost {
				t.Errorf("open %t, want %t", b.Lost(), lost)
			}
		}
	})
}

func never(context.Context, string) error { return errors.New("still away") }

// TestStall: a node that stands still for 250 ms opens nothing, whatever the load, whether it has gone on for long or begins with the
// stall, and how long a call waits; one that stands still for good is open within 1.1 s, unless there are too few calls.
func TestStallOpensNothing(t *testing.T) {
	t.Parallel()
	for _, timeout := range []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond} {
		for _, perSecond := range []int{10, 100, 10_000} {
			for _, before := range []time.Duration{0, 5 * time.Second} {
				t.Run(fmt.Sprintf("%s %d/s after %s", timeout, perSecond, before), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						n := &stalling{b: NewBreakers(BreakersConfig{Probe: never}), from: before, until: before + 250*time.Millisecond, timeout: timeout}
						defer n.b.Close()
						n.run(before+3*time.Second, time.Second/time.Duration(perSecond))
						if n.b.Lost() || n.failed == 0 {
							t.Errorf("%d calls failed: %+v", n.failed, n.b.States())
						}
					})
					synctest.Test(t, func(t *testing.T) {
						n := &stalling{b: NewBreakers(BreakersConfig{Probe: never}), from: before, until: time.Hour, timeout: timeout}
						defer n.b.Close()
						n.run(before+3*time.Second, time.Second/time.Duration(perSecond))
						most := 1100 * time.Millisecond
						if perSecond == 10 { // 10 in a second are the least, and the time-out comes on top
							most = 2 * time.Second
						}
						if s := n.b.States()[0]; !s.Open || s.Since.Sub(n.start) > before+most {
							t.Errorf("open %v, %s after it stopped: %s", s.Open, s.Since.Sub(n.start)-before, s.Why)
						}
					})
				})
			}
		}
	}
}

// stalling is a node that stands still for a time, and breakers that are told of its calls.
type stalling struct {
	b                    *Breakers
	start                time.Time
	from, until, timeout time.Duration
	failed               int
}

// run makes calls at a pace, without a bound on how many are in flight, and tells of each when it ends.
func (s *stalling) run(length, every time.Duration) {
	s.start = time.Now()
	var waiting []time.Duration // when the calls that have no answer began
	tell := func(now time.Duration) {
		for len(waiting) > 0 && (waiting[0]+s.timeout <= now || s.until <= now) {
			began := waiting[0]
			waiting = waiting[1:]
			if end := began + s.timeout; end <= s.until {
				s.failed++
				time.Sleep(time.Until(s.start.Add(end)))
				s.b.Called("n", s.timeout, "indeterminate")
			} else {
				time.Sleep(time.Until(s.start.Add(s.until)))
				s.b.Called("n", s.until-began, "")
			}
		}
	}
	for at := time.Duration(0); at < length; at += every {
		tell(at)
		time.Sleep(time.Until(s.start.Add(at)))
		if at < s.from || at >= s.until {
			s.b.Called("n", 0, "")
		} else {
			waiting = append(waiting, at)
		}
	}
}

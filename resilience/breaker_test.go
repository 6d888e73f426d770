package resilience

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
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
		b.Called("n", time.Millisecond, "unavailable")
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

// TestReturn: a node is probed every 200 ms and let back after two probes in a row that succeed, without anybody's doing.
func TestReturn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var probes []time.Duration
		w := &watched{}
		var b *Breakers
		b = NewBreakers(BreakersConfig{Observer: w, Probe: func(_ context.Context, node string) error {
			probes = append(probes, time.Since(start))
			if node != "n" || !b.Open(node) || !b.Lost() {
				t.Errorf("probed %q, open %v", node, b.Open(node))
			}
			if len(probes) == 1 || len(probes) == 3 {
				return errors.New("LOADING")
			}
			return nil
		}})
		defer b.Close()
		fail(b)
		b.Called("n", 0, "") // what was under way does not count
		time.Sleep(900 * time.Millisecond)
		synctest.Wait()
		if s := b.States(); len(s) != 1 || !s[0].Open || s[0].Probes != 4 || s[0].LastError != "LOADING" || s[0].Why != "10 of 10 calls failed within 1s" || !s[0].Since.Equal(start) || s[0].Opened != 1 {
			t.Errorf("after 4 probes: %+v", s)
		}
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		ms := time.Millisecond
		if fmt.Sprint(probes) != fmt.Sprint([]time.Duration{200 * ms, 400 * ms, 600 * ms, 800 * ms, 1000 * ms}) {
			t.Errorf("probed at %v", probes)
		}
		if b.Open("n") || b.Lost() {
			t.Error("still open")
		}
		if s := b.States()[0]; s.Open || !s.Since.Equal(start.Add(time.Second)) || s.Why != "2 probes in a row succeeded" {
			t.Errorf("%+v", s)
		}
		want := []string{"n true 10 of 10 calls failed within 1s", "n false 2 probes in a row succeeded"}
		if fmt.Sprintf("%q", w.told) != fmt.Sprintf("%q", want) {
			t.Errorf("told %q, want %q", w.told, want)
		}
		for range 9 {
			b.Called("n", 0, "unavailable")
		}
		if b.Open("n") {
			t.Error("what was counted before it was open still counts")
		}
	})
}

// TestBackOff: the longer a node is away the less it is probed, down to once a second; it is back within 1.2 s all the same.
func TestBackOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start, back := time.Now(), time.Minute
		var probes []time.Duration
		b := opened(t, BreakersConfig{Probe: func(context.Context, string) error {
			probes = append(probes, time.Since(start))
			if time.Since(start) < back {
				return errors.New("away")
			}
			return nil
		}})
		defer b.Close()
		time.Sleep(back + 1200*time.Millisecond)
		synctest.Wait()
		if b.Lost() {
			t.Error("not back")
		}
		for i := 1; i < len(probes)-1; i++ {
			gap := probes[i] - probes[i-1]
			if want := min(max(200*time.Millisecond, probes[i-1]/10), time.Second); gap != want {
				t.Errorf("probe %d came %s after the one before, at %s; want %s", i, gap, probes[i-1], want)
			}
		}
	})
}

// TestFlapping: a node that is opened again soon needs more probes each time, up to ten; once it has stayed closed for a while, two again.
func TestFlapping(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBreakers(BreakersConfig{Probe: func(context.Context, string) error { return nil }})
		defer b.Close()
		for i, c := range []struct {
			after  time.Duration
			probes int
		}{{0, 2}, {9 * time.Second, 4}, {0, 8}, {time.Second, 10}, {time.Second, 10}, {10 * time.Second, 2}, {0, 4}} {
			time.Sleep(c.after)
			fail(b)
			time.Sleep(time.Duration(c.probes)*200*time.Millisecond - 1)
			synctest.Wait()
			if !b.Open("n") {
				t.Errorf("opening %d: closed before %d probes: %+v", i, c.probes, b.States())
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if s := b.States()[0]; s.Open || s.Probes != c.probes || s.Opened != i+1 {
				t.Errorf("opening %d, want %d probes: %+v", i, c.probes, s)
			}
		}
	})
}

// TestHangingProbe: a probe that does not come back, though its context has ended, is not joined by another, and when it does the
// node is probed again.
func TestHangingProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hang, begun := make(chan struct{}), 0
		b := opened(t, BreakersConfig{Probe: func(ctx context.Context, _ string) error {
			if begun++; begun > 1 {
				return nil
			}
			<-hang
			return ctx.Err()
		}})
		defer b.Close()
		time.Sleep(time.Second)
		synctest.Wait()
		if s := b.States()[0]; !s.Open || begun != 1 || s.LastError != errHangs.Error() {
			t.Errorf("%d probes, %+v", begun, s)
		}
		close(hang)
		time.Sleep(time.Second)
		synctest.Wait()
		if b.Lost() {
			t.Errorf("not back: %+v", b.States())
		}
	})
}

// TestBoundedProbe: a probe has half a second.
func TestBoundedProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lasted []time.Duration
		b := opened(t, BreakersConfig{Probe: func(ctx context.Context, _ string) error {
			start := time.Now()
			<-ctx.Done()
			lasted = append(lasted, time.Since(start))
			return ctx.Err()
		}})
		time.Sleep(2 * time.Second)
		b.Close()
		if len(lasted) < 2 || lasted[0] != 500*time.Millisecond || lasted[1] != 500*time.Millisecond {
			t.Errorf("probes lasted %v", lasted)
		}
	})
}

// TestCloseEnds: closing ends what probes, at once; the bubble fails if a goroutine is left. Nothing opens after it.
func TestCloseEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		b := opened(t, BreakersConfig{Probe: func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }})
		time.Sleep(300 * time.Millisecond) // in the middle of a probe
		for range 2 {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(start); took != 300*time.Millisecond {
			t.Errorf("closing waited until %s", took)
		}
		for range 20 {
			b.Called("m", 0, "unavailable")
		}
		if b.Open("m") || !b.Open("n") {
			t.Errorf("after the close: %+v", b.States())
		}
	})
}

// serves is an error that says whether a node still serves anything.
type serves bool

func (s serves) Error() string { return "serves: " + fmt.Sprint(bool(s)) }
func (s serves) Gone() bool    { return !bool(s) }

// TestGone: a node that serves nothing any more is forgotten, at its first probe.
func TestGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, serving := &watched{}, atomic.Bool{}
		serving.Store(true)
		b := opened(t, BreakersConfig{Observer: w, Probe: func(context.Context, string) error { return fmt.Errorf("wrapped: %w", serves(serving.Load())) }})
		defer b.Close()
		time.Sleep(300 * time.Millisecond)
		synctest.Wait()
		if !b.Lost() {
			t.Error("an error that does not say so counts as gone")
		}
		serving.Store(false)
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if b.Lost() || b.Open("n") || len(b.States()) != 0 || w.told[len(w.told)-1] != "n false the node serves nothing any more" {
			t.Errorf("%+v, told %q", b.States(), w.told)
		}
		fail(b) // it is back, and a new one
		if s := b.States(); !b.Open("n") || s[0].Opened != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// TestNodesBound: beyond the bound the closed node that is unused the longest makes room; if all are open, none does.
func TestNodesBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := NewBreakers(BreakersConfig{MaxNodes: 3, Probe: never})
		defer b.Close()
		names := func() (s []string) {
			for _, n := range b.States() {
				s = append(s, n.Node)
			}
			return s
		}
		see := func(want ...string) {
			t.Helper()
			if fmt.Sprint(names()) != fmt.Sprint(want) {
				t.Errorf("nodes %q, want %q", names(), want)
			}
		}
		for _, node := range []string{"", "a", "b", "", "c"} { // "", not known, is a node like another
			time.Sleep(time.Second)
			b.Called(node, 0, "")
		}
		see("", "b", "c")
		for _, node := range []string{"", "b", "c", "d"} {
			for range 10 {
				b.Called(node, 0, "unavailable")
			}
		}
		see("", "b", "c")
		if !b.Open("") || !b.Open("b") || !b.Open("c") || b.Open("d") {
			t.Errorf("%+v", b.States())
		}
	})
}

// TestNoProbe: without a probe a node is let back after a while.
func TestNoProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := opened(t, BreakersConfig{ProbeEvery: time.Second, Probes: 3})
		defer b.Close()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if b.Lost() {
			t.Error("still open")
		}
	})
}

// TestConcurrent has many goroutines tell of calls and ask, while nodes open and close: for the race detector, and each change is told
// once and in order.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	open, changes := map[string]bool{}, 0
	w := observed(func(node string, now bool) {
		mu.Lock()
		defer mu.Unlock()
		if open[node] == now {
			t.Errorf("told twice that open is %v", now)
		}
		open[node], changes = now, changes+1
	})
	b := NewBreakers(BreakersConfig{Observer: w, ProbeEvery: time.Microsecond, Probes: 1, MaxProbes: 1, MinCalls: 1, MaxNodes: 4})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 2000 {
				node := string(rune('a' + (i+j)%6))
				b.Called(node, 0, []string{"", "unavailable"}[j%2])
				_ = b.Open(node)
				_ = b.Lost()
				if j%100 == 0 {
					_ = b.States()
				}
			}
		})
	}
	wg.Wait()
	_ = b.Close()
	still := 0
	for _, s := range b.States() {
		if s.Open {
			still++
		}
	}
	if int64(still) != b.open.Load() || changes == 0 {
		t.Errorf("%d are open, %d counted; %d changes", still, b.open.Load(), changes)
	}
}

// observed is a BreakerObserver as a function.
type observed func(node string, open bool)

func (o observed) BreakerChanged(node string, open bool, _ string) { o(node, open) }

// BenchmarkOpen is what is asked before each call of a node.
func BenchmarkOpen(b *testing.B) {
	one := func(others int) func(b *testing.B) {
		return func(b *testing.B) {
			s := NewBreakers(BreakersConfig{Probe: never})
			defer s.Close()
			for i := range 6 {
				node := fmt.Sprint("192.0.2.", i, ":6379")
				s.Called(node, 0, "")
				for range 20 * min(max(others-i, 0), 1) {
					s.Called(node, 0, "unavailable")
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				_ = s.Open("192.0.2.0:6379")
			}
		}
	}
	b.Run("nothing is open", one(0))
	b.Run("this one is open", one(1))
	b.Run("called", func(b *testing.B) {
		s := NewBreakers(BreakersConfig{})
		defer s.Close()
		b.ReportAllocs()
		for b.Loop() {
			s.Called("192.0.2.0:6379", time.Millisecond, "")
		}
	})
}

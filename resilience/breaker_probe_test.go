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

// TestLateFailures: calls that have hung since before a node was let back do not open it again when they end; its own failures do.
func TestLateFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := opened(t, BreakersConfig{Probe: func(context.Context, string) error { return nil }})
		defer b.Close()
		time.Sleep(5 * time.Second) // it was let back after 400 ms
		synctest.Wait()
		for _, code := range []string{"indeterminate", "unavailable"} {
			for range 20 {
				b.Called("n", 4700*time.Millisecond, code)
			}
		}
		if b.Open("n") {
			t.Errorf("opened by calls of before: %+v", b.States())
		}
		for range 2 {
			b.Called("n", 4500*time.Millisecond, "indeterminate")
		}
		if !b.Open("n") {
			t.Errorf("not opened by calls that began after: %+v", b.States())
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
		synctest.Wait() // Close does not wait for a probe that is under way
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

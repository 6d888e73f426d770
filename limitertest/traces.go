package limitertest

import (
	"flag"
	"fmt"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/limitertest/oracle"
	"pgregory.net/rapid"
)

// family is a kind of random trace.
type family struct {
	name string
	// limits draws a limit.
	limits func(*rapid.T) headgate.Limit
	// slots is how many slots a trace has at most; a take names up to as many charges.
	slots int
	// lockouts tells whether charges carry lockouts.
	lockouts bool
	// calendar begins traces near changes of the clocks.
	calendar bool
}

func families() []family {
	return []family{
		{name: "token_bucket", limits: boundedTokenBucket, slots: 1},
		{name: "leaky_bucket", limits: boundedLeakyBucket, slots: 1},
		{name: "fixed_window", limits: boundedFixedWindow, slots: 1},
		{name: "calendar", limits: calendarWindow, slots: 1, calendar: true},
		{name: "sliding_log", limits: boundedSlidingLog, slots: 1},
		{name: "sliding_window", limits: boundedSlidingWindow, slots: 1},
		{name: "concurrency", limits: boundedConcurrency, slots: 1},
		{name: "several", limits: anyLimit, slots: 4},
		{name: "small", limits: smallLimit, slots: 3},
		{name: "lockout", limits: smallLimit, slots: 2, lockouts: true},
	}
}

// traces compares the limiter with the oracle, step by step, over random traces of every family.
func (s *suite) traces(t *testing.T) {
	subject := s.timed(t)
	for _, f := range families() {
		t.Run(f.name, func(t *testing.T) {
			b := &budget{traces: s.Traces, timeout: s.timeout}
			b.spend(t, func(rt *rapid.T) { s.trace(rt, subject, f, b.spent) })
		})
	}
}

const (
	// maxOps is how many steps a trace has at most.
	maxOps = 30
	// stuck is after what time a step that does not return ends the process, with the trace that led there.
	stuck = 2 * time.Minute
)

func (s *suite) trace(t *rapid.T, subject headgate.Timed, f family, number int) {
	w := newWorld(t, f, subject, oracle.New(oracle.Config{}))
	w.prefix = fmt.Sprintf("%s|%s|%d|", s.run, f.name, number)
	w.forward = s.Sharded && f.slots > 1
	for range rapid.IntRange(1, maxOps).Draw(t, "steps") {
		op := rapid.Custom(w.draw).Draw(t, "step")
		watch := watched(stuck, func() string { return op.String() + " after\n" + w.script() })
		wrong := op.apply(w)
		watch.Stop()
		if wrong != "" {
			t.Fatalf("the limiter differs from the oracle in the last line: %s\n%s", wrong, w.script())
		}
	}
}

// watched ends the process if it is not stopped in time: a step that loops could not be told apart from a slow one.
func watched(most time.Duration, what func() string) *time.Timer {
	return time.AfterFunc(most, func() {
		panic(fmt.Sprintf("limitertest: no answer for %s to %s", most, what())) //nolint:forbidigo // the goroutine that loops cannot be ended otherwise
	})
}

// budget bounds the traces of one family by number and time. A trace over it is empty, but for one that is repeated
// because a trace has failed.
type budget struct {
	traces  int
	timeout time.Duration
	begun   time.Time
	spent   int
	failed  bool
}

func (b *budget) left() bool {
	return b.spent < b.traces && (b.timeout == 0 || time.Since(b.begun) < b.timeout)
}

func (b *budget) spend(t *testing.T, trace func(*rapid.T)) {
	b.begun = time.Now()
	for b.left() {
		rapid.Check(t, func(rt *rapid.T) {
			if !b.failed && !b.left() {
				return
			}
			b.spent++
			passed := false
			defer func() { b.failed = b.failed || !passed }()
			trace(rt)
			passed = true
		})
		if repeats() {
			break // the same traces would come again
		}
	}
	t.Logf("%d traces in %s", b.spent, time.Since(b.begun).Round(time.Millisecond))
}

// repeats tells whether rapid was told to repeat certain traces.
func repeats() bool {
	for _, name := range []string{"rapid.seed", "rapid.failfile"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != f.DefValue {
			return true
		}
	}
	return false
}

// Package limitertest is the conformance suite that every [headgate.Limiter] passes:
//
//	func TestConformance(t *testing.T) {
//		limitertest.Run(t, limitertest.Config{New: func(t testing.TB) headgate.Limiter {
//			return memstore.New(memstore.Config{})
//		}})
//	}
//
// It runs tables of cases, the .test files in its testdata folder, takes from many goroutines, and random traces that are
// compared step by step with package oracle. docs/testing.md says how to run more traces and how to repeat one.
package limitertest

import (
	"crypto/rand"
	"os"
	"strconv"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// TracesVariable is the environment variable that sets [Config.Traces].
const TracesVariable = "HEADGATE_TEST_TRACES"

const (
	defaultTraces = 100
	defaultTime   = 3 * time.Second
)

// Config says what is tested.
type Config struct {
	// New returns a limiter that works; it is called about a dozen times, and registers with t.Cleanup what must be closed.
	// The limiters may share one store, also with other runs: the suite uses keys of its own.
	New func(t testing.TB) headgate.Limiter
	// Sharded says that charges of one take may lie on several nodes. Then a take that is denied may hold quota while it
	// runs, so takes that cross may both be denied, and what a denied take gave back is not what was there to the bit when the
	// clock steps back later; and a shadow charge whose node lets it pass takes a changed limit over, also if the take is denied
	// elsewhere. Never is more admitted than the limit, and that is still tested.
	Sharded bool
	// Traces is how many random traces run of each kind; 0 stands for HEADGATE_TEST_TRACES, or for 100 and at most 3 s of each
	// kind if that is not set.
	Traces int
}

// suite is one run of the tests.
type suite struct {
	Config
	// run is random, so that keys do not meet those of other runs on a shared store.
	run     string
	timeout time.Duration // of the traces of one kind; 0: none
}

// Run tests a limiter in subtests. Abilities that the limiter lacks ([headgate.Refunder], [headgate.Slots] and so on) are
// skipped, and the log says so. Most tests need [headgate.Timed].
func Run(t *testing.T, cfg Config) {
	t.Helper()
	if cfg.New == nil {
		t.Fatal("limitertest: Config.New is missing; it returns the limiter to test")
	}
	s := &suite{Config: cfg, run: rand.Text()[:10]}
	s.budget(t)
	t.Run("take", s.take)
	t.Run("modes", s.modes)
	t.Run("binding", s.binding)
	t.Run("lockout", s.lockout)
	t.Run("slots", s.slots)
	t.Run("refund", s.refund)
	t.Run("bounds", s.bounds)
	t.Run("reset", s.reset)
	t.Run("inspect", s.inspect)
	t.Run("invalid", s.invalid)
	t.Run("files", s.files)
	t.Run("concurrent", s.concurrent)
	t.Run("traces", s.traces)
}

func (s *suite) budget(t *testing.T) {
	text, given := os.LookupEnv(TracesVariable)
	switch {
	case s.Traces > 0:
	case given:
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			t.Fatalf("limitertest: %s=%q is not a number of traces; write one such as 1000", TracesVariable, text)
		}
		s.Traces = n
	default:
		s.Traces, s.timeout = defaultTraces, defaultTime
	}
}

// timed returns a new limiter as Timed, or skips the test.
func (s *suite) timed(t *testing.T) headgate.Timed {
	t.Helper()
	l, ok := s.New(t).(headgate.Timed)
	if !ok {
		t.Skip("the limiter is not headgate.Timed: what needs virtual time is skipped")
	}
	return l
}

// key returns a key of this run and test.
func (s *suite) key(t testing.TB, name string) string { return s.run + "|" + t.Name() + "|" + name }

package model

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// setting reads a number from the environment.
func setting(t *testing.T, name string, fallback uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%q: give a number", name, text)
	}
	return n
}

// Default amounts: what CI runs, without the race detector, which makes a database in Go twenty times as slow, and without -short.
const (
	defaultSteps = 75
	defaultRuns  = 1500
	fewRuns      = 40
	enough       = 3 // failures, after which no run begins any more
)

// TestModel runs drawn interleavings of everything against the simple model. Two thirds of the seeds are the same in every run of the
// test, the others new.
func TestModel(t *testing.T) {
	steps := int(setting(t, "HEADGATE_MODEL_STEPS", defaultSteps))
	if seed := setting(t, "HEADGATE_MODEL_SEED", 0); seed != 0 {
		o := play(t, planOf(seed, steps), drawn)
		o.check(t, again(seed, steps))
		t.Logf("%d steps, and all that happened has the hash %x\n%s", o.steps, o.hash, o.tally)
		return
	}
	fallback := uint64(defaultRuns)
	if underRace || testing.Short() {
		fallback = fewRuns
	}
	runs, sum, same := setting(t, "HEADGATE_MODEL_RUNS", fallback), newTally(), newTally()
	var made, failed atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		fresh := rand.Uint64N(1 << 48)
		for i := range runs {
			seed, isNew := i+1, i%3 == 2
			if isNew {
				seed = fresh + i
			}
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				if failed.Load() >= enough {
					t.Skip("enough runs have failed")
				}
				o := play(t, planOf(seed, steps), drawn)
				if o.finding.Failed() {
					failed.Add(1)
				}
				o.check(t, again(seed, steps))
				made.Add(int64(o.steps))
				sum.sum(o.tally)
				if !isNew {
					same.sum(o.tally)
				}
			})
		}
	})
	t.Logf("%d runs of %d steps in all", runs, made.Load())
	if runs >= defaultRuns && steps >= defaultSteps { // fewer need not meet the rarest
		// Of the same seeds each time: what the new ones meet by chance would make it fail by chance as well.
		everythingHappened(t, same)
	}
	t.Logf("\n%s", sum)
}

// again is how to see a seed once more.
func again(seed uint64, steps int) string {
	return fmt.Sprintf("HEADGATE_MODEL_SEED=%d HEADGATE_MODEL_STEPS=%d go test ./flashsale/saletest/model -run TestModel -v", seed, steps)
}

// TestSeedsReplay runs some seeds twice each: what happens is the same, to the last call.
func TestSeedsReplay(t *testing.T) {
	seeds := uint64(8)
	if underRace || testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			first, second := play(t, planOf(seed, 200), drawn), play(t, planOf(seed, 200), drawn)
			if first.hash != second.hash || first.steps != second.steps {
				t.Errorf("the seed %d has two histories, of %d and %d steps", seed, first.steps, second.steps)
				diff(t, first.world.trace.lines, second.world.trace.lines)
			}
		})
	}
}

// diff shows where two histories part.
func diff(t *testing.T, a, b []string) {
	t.Helper()
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Logf("they part at line %d:\n%s\nand\n%s\nafter\n%s", i, a[i], b[i], strings.Join(a[max(0, i-60):i], "\n"))
			return
		}
	}
}

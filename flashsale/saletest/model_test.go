package saletest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
)

var (
	seedFlag  = flag.Uint64("sale.seed", 0, "run the model test with this seed alone")
	runsFlag  = flag.Int("sale.runs", 40, "how many runs of the model test, each with a seed of its own")
	stepsFlag = flag.Int("sale.steps", 600, "how many steps each run has before it is let heal")
)

// TestModel runs drawn interleavings of everything against the simple model. A failure tells its seed: -sale.seed SEED runs it again.
func TestModel(t *testing.T) {
	if *seedFlag != 0 {
		run(t, *seedFlag)
		return
	}
	runs := *runsFlag
	if testing.Short() {
		runs = min(runs, 20)
	}
	first := rand.Uint64N(1 << 48)
	for i := range runs {
		seed := first + uint64(i)
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			run(t, seed)
		})
	}
}

func run(t *testing.T, seed uint64) {
	t.Helper()
	w := newWorld(t, seed)
	defer w.close()
	losses := seed%3 != 0 // a third of the runs has a Stock that loses nothing: there I3 must hold at every step
	w.fail = w.rng.IntN(30)
	for w.steps < *stepsFlag {
		if len(w.ready) < 1+w.rng.IntN(6) {
			w.move()
		}
		w.fate(losses)
		w.step()
		w.always()
	}
	w.heal()
	w.settled()
	t.Log(w.summary())
	w.sellOut()
	w.heal()
	w.settled()
	w.flushed()
}

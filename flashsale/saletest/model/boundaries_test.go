package model

import (
	"fmt"
	"os"
	"testing"
)

// places counts the calls of a story without faults, and sees that everything happens in it.
func places(t *testing.T) int {
	t.Helper()
	calls := 0
	o := play(t, storyPlan(), func(w *world) {
		s := &story{world: w}
		s.tell()
		calls = s.calls
		recovers(w)
	})
	o.check(t, "it is the same in every run")
	for _, what := range happens() {
		if o.tally.get(what) == 0 {
			t.Errorf("this does not happen in the story: %s\n%s", what, o.tally)
		}
	}
	return calls
}

// recovers is what must be so after any fault, once the faults are over.
func recovers(w *world) {
	w.heal()
	w.settled()
	w.flushed()
	w.always()
}

// everyPlace reports whether all places are to be tried.
func everyPlace() bool { return os.Getenv("HEADGATE_MODEL_EVERY") != "" }

// stride is how far the places are apart that are tried.
func stride() int {
	switch {
	case everyPlace():
		return 1
	case underRace:
		return 29
	case testing.Short():
		return 11
	}
	return 1
}

// TestI13ACrashAtEveryStep ends the process that acts before every call of a port in a story in which everything happens: what
// another one finds and goes on from keeps every promise. A crash after a call is the same as one before the next: nothing of what the
// process knew is left.
func TestI13ACrashAtEveryStep(t *testing.T) {
	n := places(t)
	t.Logf("%d places, %d apart", n, stride())
	for at := 1; at <= n; at += stride() {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			o := play(t, storyPlan(), func(w *world) {
				s := &story{world: w, at: at}
				s.fault = func(c *call) verdict {
					c.actor.life.dead.Store(true)
					return crashBefore
				}
				s.tell()
				recovers(w)
			})
			o.check(t, "it is the same in every run")
			if o.tally.like("fault crashes before") != 1 {
				t.Error("there was no crash")
			}
		})
	}
}

// TestI14ALossAtEveryStep has the Stock lose its last writes before every call of a port in that story, as a replica does that takes over:
// whatever it is that was lost, and whether a rebuild is under way or not, no unit is sold twice, nobody has more than they may, and all
// money is where it belongs. By default one number of writes is tried at each place, in turn.
func TestI14ALossAtEveryStep(t *testing.T) {
	n := places(t)
	sizes := []int{1, 2, 3, 5, 8, 13, 1 << 30}
	t.Logf("%d places, %d apart, %d losses", n, stride(), len(sizes))
	for at := 1; at <= n; at += stride() {
		tried := sizes
		if !everyPlace() {
			tried = sizes[at%len(sizes):][:1]
		}
		for _, lost := range tried {
			t.Run(fmt.Sprintf("%d of %d", lost, at), func(t *testing.T) {
				t.Parallel()
				o := play(t, storyPlan(), func(w *world) {
					s := &story{world: w, at: at}
					s.fault = func(*call) verdict {
						w.lose(min(lost, len(w.stock.writes)))
						return goOn
					}
					s.tell()
					recovers(w)
				})
				o.check(t, "it is the same in every run")
				if o.tally.get("fault loss") != 1 {
					t.Error("there was no loss")
				}
			})
		}
	}
}

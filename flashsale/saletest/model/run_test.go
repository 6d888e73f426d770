package model

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// stuckAfter is how long, in real time, a run may make no step before it counts as stuck.
const stuckAfter = 2 * time.Minute

// outcomeOf is what came of a run.
type outcomeOf struct {
	finding *finding
	tally   *tally
	hash    uint64 // of all that has happened
	steps   int
	world   *world
}

// play runs a plan in a bubble, under a watchdog: what makes no step any more is a finding too, with everything there is to find out why.
func play(t *testing.T, p *plan, story func(w *world)) *outcomeOf {
	t.Helper()
	p.tally, p.beats = newTally(), &atomic.Int64{}
	o := &outcomeOf{finding: &finding{}, tally: p.tally}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if r := recover(); r != nil { // a bubble in which nobody can go on
				o.finding.Errorf("the bubble: %v", r)
			}
		}()
		synctest.Test(t, func(*testing.T) { o.run(p, story) })
	}()
	watch := time.NewTicker(stuckAfter)
	defer watch.Stop()
	for last := int64(-1); ; {
		select {
		case <-done:
			return o
		case <-watch.C:
		}
		beat := p.beats.Load()
		if beat == last {
			stuck := &outcomeOf{finding: &finding{}, tally: newTally()}
			stuck.finding.Errorf("stuck: no step for %s\n%s", stuckAfter, stacks())
			stuck.world = o.world
			return stuck
		}
		last = beat
	}
}

// run is what happens in the bubble.
func (o *outcomeOf) run(p *plan, story func(w *world)) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w := newWorld(o.finding, p)
		o.world = w
		defer func() {
			o.steps, o.hash = w.steps, w.trace.hash
			w.close()
		}()
		story(w)
	}()
	<-ended
}

// check fails the test if anything was found, and says how to see it again.
func (o *outcomeOf) check(t *testing.T, again string) {
	t.Helper()
	if !o.finding.Failed() {
		return
	}
	t.Errorf("%s\nrun it again: %s", o.finding, again)
	if o.world != nil {
		t.Log(o.world.history())
	}
}

func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

// drawn is a run of drawn steps, its healing, and what must hold then.
func drawn(w *world) {
	all := moves()
	w.chances = chances{fail: w.rng.IntN(15), lose: w.rng.IntN(15), twice: w.rng.IntN(15)}
	most := 1 + w.rng.IntN(6)
	w.calm = 1 + w.rng.IntN(4)
	for w.steps < w.plan.steps {
		w.mu.Lock()
		alive := w.alive
		w.mu.Unlock()
		if alive-w.slowOnes() < 1+w.rng.IntN(most) {
			w.move(all)
		}
		w.fate()
		w.step()
		w.always()
	}
	w.heal()
	w.settled()
	if w.plan.selling {
		w.sellOut()
		w.heal()
		w.settled()
		w.capturesAnyway() // of which no unit is left
		w.heal()
		w.settled()
	}
	if w.plan.closing {
		w.closes()
	}
	w.flushed()
	w.always()
}

// planOf is what a seed is run as: some lose nothing, so that I3 must hold at every step; some are drained and closed, or sold out, or
// begin as drafts; and one in ten is four times as long.
func planOf(seed uint64, steps int) *plan {
	p := &plan{seed: seed, steps: steps, losses: seed%3 != 0, closing: seed%5 == 0, selling: seed%5 == 1, draft: seed%7 == 0}
	if seed%10 == 9 {
		p.steps *= 4
	}
	return p
}

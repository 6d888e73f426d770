package chaos

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/headgate-io/headgate/demo"
	"github.com/headgate-io/headgate/redisstore"
)

// observer sees the faults from outside: when they were noticed, what decided meanwhile, and when the store was back.
type observer struct {
	mu        sync.Mutex
	start     time.Time
	events    []demo.Event
	open      []bool // by instance: its last call was not made, since a breaker was open
	faults    []*fault
	dead      time.Time // when the store whose data was lost had ended; zero before
	fell      int64
	unasked   int64
	longest   time.Duration
	announced bool // that local limits are in force everywhere
}

// fault is a step of the script, and what was seen of it.
type fault struct {
	step
	began, ended           time.Time // zero: not yet
	noticed, opened, whole time.Time
	back                   []bool // by instance: the store has decided since the end
	fell                   int64
	longest                time.Duration
}

func newObserver(instances int) *observer {
	return &observer{start: time.Now(), open: make([]bool, instances)}
}

// say adds an event. mu is held.
func (o *observer) say(e demo.Event, at time.Time) {
	e.At = at.Sub(o.start)
	e.AtS = e.At.Round(time.Millisecond).Seconds()
	o.events = append(o.events, e)
}

// begins implements [stageHand].
func (o *observer) begins(s step) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	o.faults = append(o.faults, &fault{step: s, began: now, back: make([]bool, len(o.open))})
	o.announced = false
	o.say(s.said(true), now)
}

// down implements [stageHand].
func (o *observer) down(s step) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.kind == killAndWipe {
		o.dead = time.Now()
	}
}

// ends implements [stageHand].
func (o *observer) ends(s step) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.faults[len(o.faults)-1]
	f.ended = time.Now()
	o.say(s.said(false), f.ended)
}

// decided is told of every decision.
func (o *observer) decided(d decision) {
	o.mu.Lock()
	defer o.mu.Unlock()
	unasked := errors.Is(d.call.err, redisstore.ErrBreakerOpen)
	o.longest = max(o.longest, d.ended.Sub(d.began))
	if d.call.asked {
		o.open[d.instance] = unasked
	}
	if d.call.err != nil {
		o.fell++
	}
	if unasked {
		o.unasked++
	}
	if len(o.faults) > 0 {
		o.under(o.faults[len(o.faults)-1], d, unasked)
	}
}

// under notes what a decision tells of a fault. mu is held.
func (o *observer) under(f *fault, d decision, unasked bool) {
	if d.ended.Before(f.began) {
		return
	}
	f.longest = max(f.longest, d.ended.Sub(d.began))
	if d.call.err != nil {
		f.fell++
		if f.noticed.IsZero() {
			f.noticed = d.ended
		}
	}
	if unasked && f.opened.IsZero() {
		f.opened = d.ended
	}
	if unasked && !o.announced && !slices.Contains(o.open, false) {
		o.announced = true
		o.say(demo.Event{Text: fmt.Sprintf("local limits are in force (L1), on all %d instances", len(o.open)), Mood: demo.Bad}, d.ended)
	}
	o.recovers(f, d)
}

// recovers notes that the store has decided again. mu is held.
func (o *observer) recovers(f *fault, d decision) {
	if f.ended.IsZero() || d.began.Before(f.ended) || d.by() != byStore || f.back[d.instance] {
		return
	}
	f.back[d.instance] = true
	if !slices.Contains(f.back, false) {
		f.whole = d.ended
		o.say(demo.Event{Text: fmt.Sprintf("the store decides again, on all %d instances", len(o.open)), Mood: demo.Good}, d.ended)
	}
}

// now is what the view shows.
func (o *observer) now() *demo.Faults {
	o.mu.Lock()
	defer o.mu.Unlock()
	lost := 0
	for _, open := range o.open {
		if open {
			lost++
		}
	}
	n := len(o.open)
	f := &demo.Faults{L1: lost > 0, Local: o.fell, Events: slices.Clone(o.events)}
	switch lost {
	case 0:
		f.InForce = fmt.Sprintf("the store, on all %d instances", n)
	case n:
		f.InForce = fmt.Sprintf("local limits (L1), on all %d instances", n)
	default:
		f.InForce = fmt.Sprintf("local limits (L1) on %d of %d instances, on the others the store", lost, n)
	}
	return f
}

// faultsSeen is what the summary says of each fault.
func (o *observer) faultsSeen() []demo.Fault {
	all := make([]demo.Fault, 0, len(o.faults))
	for _, f := range o.faults {
		if f.ended.IsZero() {
			continue // the demo ended before it did
		}
		all = append(all, demo.Fault{
			Fault: f.name, AtS: f.began.Sub(o.start).Round(time.Millisecond).Seconds(), LastedMS: ms(f.ended.Sub(f.began)),
			NoticedMS: since(f.began, f.noticed), L1MS: since(f.began, f.opened), RecoveredMS: since(f.ended, f.whole),
			FellToOnError: f.fell, LongestDecisionMS: ms(f.longest),
		})
	}
	return all
}

func since(from, to time.Time) *float64 {
	if to.IsZero() {
		return nil
	}
	v := ms(to.Sub(from))
	return &v
}

func ms(d time.Duration) float64 {
	return float64(d.Round(10*time.Microsecond)) / float64(time.Millisecond)
}

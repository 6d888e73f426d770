package schedule

import (
	"errors"
	"fmt"
	"slices"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// MaxEntries bounds the entries of a schedule.
const MaxEntries = 200

// Plan says which limits a rule has at a time. It is immutable and safe for concurrent use.
type Plan struct {
	base    []headgate.Limit
	entries []entry
	zones   []*time.Location // of the daily entries, each once
	warmup  *warmup
}

// entry is a checked Entry.
type entry struct {
	daily  *Daily
	zone   int  // in Plan.zones, if daily
	once   span // if not daily
	limits []headgate.Limit
	ramp   int64 // in steps of one second, 0 for none
}

// New returns the plan of a rule's base limits, its schedule and its warm-up, which may be nil. It fails with an
// [*EntryError] if an entry has no time, not as many limits as the base, or a ramp that is longer than itself or has no
// way between two limits, and if two entries are ever on together: see [Plan.At] for what that means of entries in
// different zones. Another error is of the warm-up, or of the whole list.
func New(base []headgate.Limit, entries []Entry, warm *Warmup) (*Plan, error) {
	if slices.Contains(base, nil) {
		return nil, errors.New("a base limit is missing")
	}
	if len(entries) > MaxEntries {
		return nil, fmt.Errorf("%d entries are too many; %d are allowed", len(entries), MaxEntries)
	}
	p := &Plan{base: slices.Clone(base)}
	for i := range entries {
		if wrong := entries[i].check(base); wrong != "" {
			return nil, &EntryError{Entry: i, Other: -1, Message: wrong}
		}
		p.add(&entries[i])
	}
	if o, found := p.overlap(); found {
		return nil, o.explain(entries)
	}
	var err error
	if p.warmup, err = newWarmup(warm); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Plan) add(e *Entry) {
	added := entry{daily: e.Daily, limits: slices.Clone(e.Limits), ramp: steps(e.Ramp)}
	if e.Daily == nil {
		added.once = span{micros(e.From), micros(e.To)}
	} else {
		added.zone = p.zone(e.Daily.loc)
	}
	p.entries = append(p.entries, added)
}

// zone returns the index of a zone in the plan's list.
func (p *Plan) zone(loc *time.Location) int {
	for i, known := range p.zones {
		if known.String() == loc.String() {
			return i
		}
	}
	p.zones = append(p.zones, loc)
	return len(p.zones) - 1
}

// Constant tells that the limits never change, so that [Plan.At] need not be asked again.
func (p *Plan) Constant() bool { return len(p.entries) == 0 && p.warmup == nil }

// Extremes returns the lists of limits that the plan has outside ramps and warm-ups, each once: the base first, then
// those of the entries. What ramps go through lies between them, and a warm-up below.
func (p *Plan) Extremes() [][]headgate.Limit {
	all := [][]headgate.Limit{slices.Clone(p.base)}
	for _, e := range p.entries {
		if !slices.ContainsFunc(all, func(l []headgate.Limit) bool { return slices.Equal(l, e.limits) }) {
			all = append(all, slices.Clone(e.limits))
		}
	}
	return all
}

// At returns the limits in force at a time, one for each of the base, and a piece of time, from ≤ now < until, in which they
// are the same. from is the zero time if they were never others, and until is at the end of the year 9999 if they never
// will be. inForce is when the policy came into force; if it is zero there is no warm-up. The list must not be changed.
//
// Within a ramp of n seconds, after k whole ones, each number of a limit is base + (target - base)·k/n: a rate as an exact
// fraction where the bounds of limits allow it, else to 15 digits; a whole number or a duration rounded to the nearest one. A
// warm-up multiplies the rates and counts of these limits: rates by the exact fraction, whole numbers are rounded down to at least 1. A
// burst or capacity that does not fill within MaxPeriod at the rate is lowered to what does; a rate of less than one
// in MaxPeriod is a count of 0. At the begin of a ramp, after its end, and after a warm-up the limits are equal (==) to those
// that were given.
//
// Two entries in different zones that do not overlap between the years 2026 and 2089 may do so at another time, if the zones
// had other rules then; the one that stands first in the list is on.
func (p *Plan) At(now, inForce time.Time) (limits []headgate.Limit, from, until time.Time) {
	hold, t := always(), micros(now)
	limits = p.scheduled(t, &hold)
	if p.warmup != nil && !inForce.IsZero() {
		limits = p.warmup.limits(limits, t, micros(inForce), &hold)
	}
	return limits, timeOf(hold.from), timeOf(hold.until)
}

// scheduled returns the limits by the schedule alone, and cuts hold to the time that they stay so.
func (p *Plan) scheduled(t int64, hold *span) []headgate.Limit {
	limits, taken := p.base, false
	clocks := make([][]stretch, len(p.zones))
	for i := range p.entries {
		e := &p.entries[i]
		s, on := e.once, e.once.holds(t)
		if e.daily != nil {
			if clocks[e.zone] == nil {
				clocks[e.zone] = stretches(p.zones[e.zone], around(t))
			}
			s, on = e.daily.place(t, clocks[e.zone])
		} else if !on {
			s = e.pause(t)
		}
		hold.cut(s)
		if on && !taken {
			limits, taken = e.at(p.base, t, s.from, hold), true
		}
	}
	return limits
}

// pause returns the time before or after an entry that is on once.
func (e *entry) pause(t int64) span {
	if t < e.once.from {
		return span{past, e.once.from}
	}
	return span{e.once.until, future}
}

// at returns the limits of an entry that is on since begin, and cuts hold to the step of its ramp.
func (e *entry) at(base []headgate.Limit, t, begin int64, hold *span) []headgate.Limit {
	if e.ramp == 0 {
		return e.limits
	}
	s, lasts := stepAt(t-begin, e.ramp)
	hold.cut(lasts.after(begin))
	return s.limits(base, e.limits)
}

package schedule

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"
)

// Entries of different zones are compared over all changes of their clocks from 2026 to 2089: beyond the last that the
// database foretells one by one, and through every way in which weekdays and dates meet.
const (
	comparedFrom  = 1_767_225_600 * second // 2026-01-01
	comparedUntil = 3_786_912_000 * second // 2090-01-01
	// settled is how long after a change of clocks days are alike again at the latest: a day that was stretched by up to one, an
	// entry of up to a day, and a day to see all of them.
	settled = 4 * day
)

// overlap is an instant at which two entries are on. second stands after first in the list.
type overlap struct {
	first, second int
	at            int64
}

func (o overlap) explain(entries []Entry) *EntryError {
	loc := time.UTC
	for _, i := range []int{o.first, o.second} {
		if d := entries[i].Daily; d != nil {
			loc = d.loc
		}
	}
	return &EntryError{Entry: o.second, Other: o.first, Message: fmt.Sprintf("%q overlaps %q, entry %d: both are on at %s",
		entries[o.second].String(), entries[o.first].String(), o.first+1, time.UnixMicro(o.at).In(loc).Format(time.RFC3339Nano))}
}

// overlap finds two entries that are ever on together.
func (p *Plan) overlap() (o overlap, found bool) {
	for _, find := range []func() (overlap, bool){p.onceWithOnce, p.onceWithDaily, p.dailyWithDaily} {
		if o, found = find(); found {
			return o, true
		}
	}
	return overlap{}, false
}

// piece is a time in which an entry is on.
type piece struct {
	span
	entry int
}

// overlapOf finds two pieces of different entries that share a time; the pieces of one entry do not. It sorts them.
func overlapOf(pieces []piece) (o overlap, found bool) {
	slices.SortFunc(pieces, func(a, b piece) int { return cmp.Compare(a.from, b.from) })
	for i := 1; i < len(pieces); i++ {
		if a, b := pieces[i-1], pieces[i]; b.from < a.until {
			return overlap{min(a.entry, b.entry), max(a.entry, b.entry), b.from}, true
		}
	}
	return overlap{}, false
}

func (p *Plan) onceWithOnce() (o overlap, found bool) {
	var pieces []piece
	for i := range p.entries {
		if e := &p.entries[i]; e.daily == nil {
			pieces = append(pieces, piece{e.once, i})
		}
	}
	return overlapOf(pieces)
}

func (p *Plan) onceWithDaily() (o overlap, found bool) {
	for i := range p.entries {
		a := &p.entries[i]
		if a.daily != nil {
			continue
		}
		clocks := p.clocks(around(a.once.from))
		for j := range p.entries {
			b := &p.entries[j]
			if b.daily == nil {
				continue
			}
			at := a.once.from
			s, on := b.daily.place(at, clocks[b.zone])
			if !on {
				at = s.until // when it is on next
			}
			if at < a.once.until {
				return overlap{min(i, j), max(i, j), at}, true
			}
		}
	}
	return overlap{}, false
}

// clocks returns the stretches of every zone over a time.
func (p *Plan) clocks(over span) [][]stretch {
	all := make([][]stretch, len(p.zones))
	for i, loc := range p.zones {
		all[i] = stretches(loc, over)
	}
	return all
}

// dailyWithDaily looks at the days after each change of any clock. What is on at a time depends on the changes before it
// alone, and once days are alike again the rest until the next change is like what was seen.
func (p *Plan) dailyWithDaily() (o overlap, found bool) {
	if p.apart() {
		return overlap{}, false
	}
	clocks := p.clocks(span{comparedFrom - lookBack, comparedUntil + lookAhead})
	seen := map[string]bool{}
	var key []byte
	for _, t := range changes(clocks) {
		// Changes of the same clocks by the same amounts at the same time of day have the same days around them.
		near := span{t - lookBack, t + settled}
		if key = appendKey(key[:0], clocks, near, t); seen[string(key)] {
			continue
		}
		seen[string(key)] = true
		days := make([][]stretch, len(clocks))
		for i, clock := range clocks {
			days[i] = slices.Collect(part(clock, near))
		}
		if o, found = overlapOf(p.pieces(days, span{t, t + settled})); found {
			return o, true
		}
	}
	return overlap{}, false
}

// apart tells that all daily entries are of one zone and never overlap on its clock, nor, therefore, in time.
func (p *Plan) apart() bool {
	var pieces []piece
	for i := range p.entries {
		if d := p.entries[i].daily; d != nil {
			pieces = append(pieces, piece{span{d.start, d.end}, i}, piece{span{d.start + day, d.end + day}, i})
		}
	}
	if len(p.zones) > 1 {
		return false
	}
	_, found := overlapOf(pieces)
	return !found
}

// changes returns the begin of the comparison and the times at which a clock changes in it.
func changes(clocks [][]stretch) []int64 {
	all := []int64{comparedFrom}
	for _, clock := range clocks {
		for _, s := range clock {
			if comparedFrom < s.from && s.from < comparedUntil {
				all = append(all, s.from)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// appendKey writes a time of day in UTC, and the clocks as they are around it.
func appendKey(key []byte, clocks [][]stretch, around span, t int64) []byte {
	begin := midnight(t)
	key = binary.AppendVarint(key, t-begin)
	for _, clock := range clocks {
		for s := range part(clock, around) {
			key = binary.AppendVarint(key, s.offset)
			key = binary.AppendVarint(key, s.until-begin)
		}
	}
	return key
}

// pieces returns when the daily entries are on in a time.
func (p *Plan) pieces(clocks [][]stretch, over span) (all []piece) {
	for i := range p.entries {
		e := &p.entries[i]
		if e.daily == nil {
			continue
		}
		clock := clocks[e.zone]
		for date := midnight(local(clock, over.from)) - earlier*day; ; date += day {
			on := e.daily.on(date, clock)
			if on.from >= over.until {
				break
			}
			if on.cut(over); on.from < on.until {
				all = append(all, piece{on, i})
			}
		}
	}
	return all
}

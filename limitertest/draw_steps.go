package limitertest

import (
	"math/bits"
	"slices"
	"time"

	headgate "github.com/headgate-io/headgate"
	"pgregory.net/rapid"
)

// drawStart draws when a trace begins: in a plain year, around the epoch, at the ends of time, at a change of clocks.
func drawStart(t *rapid.T, f family) int64 {
	if f.calendar {
		return drawChange(t)
	}
	at := pick(t, "start", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro(), 0, headgate.MinTime, headgate.MaxTime-int64(time.Hour/time.Microsecond))
	return max(headgate.MinTime, at+rapid.Int64Range(-2_000_000, 2_000_000).Draw(t, "start"))
}

// drawChange draws a time near a change of the clocks of some zone.
func drawChange(t *rapid.T) int64 {
	at := time.Unix(rapid.Int64Range(-3_000_000_000, 3_900_000_000).Draw(t, "start"), 0)
	if loc, err := time.LoadLocation(rapid.SampledFrom(zones()).Draw(t, "changing")); err == nil {
		if _, end := at.In(loc).ZoneBounds(); !end.IsZero() {
			at = end
		}
	}
	near := pick(t, "near", 3*time.Hour, 49*time.Hour, time.Second, time.Microsecond)
	return at.UnixMicro() + rapid.Int64Range(-int64(near/time.Microsecond), int64(near/time.Microsecond)).Draw(t, "near")
}

// draw draws the next step.
func (w *world) draw(t *rapid.T) op {
	kinds := []func(*rapid.T) op{w.drawTake, w.drawTake, w.drawTake, w.drawTake, w.drawTake, w.drawReload}
	if _, ok := w.subject.(headgate.Refunder); ok {
		kinds = append(kinds, w.drawCrossing)
		if len(w.takes) > 0 {
			kinds = append(kinds, slices.Repeat([]func(*rapid.T) op{w.drawRefund}, 2)...)
		}
	}
	if _, ok := w.subject.(headgate.Slots); ok && w.holdersAt() >= 0 {
		kinds = append(kinds, slices.Repeat([]func(*rapid.T) op{w.drawSlot}, 2)...)
	}
	if _, ok := w.subject.(headgate.Inspector); ok {
		kinds = append(kinds, w.drawInspect)
	}
	if _, ok := w.subject.(headgate.Resetter); ok && pick(t, "reset", false, false, false, true) {
		kinds = append(kinds, w.drawReset)
	}
	return rapid.SampledFrom(kinds).Draw(t, "kind")(t)
}

// holdersAt returns the first slot with a concurrency limit, -1 if there is none.
func (w *world) holdersAt() int {
	for i, s := range w.slots {
		if s.limit.Algorithm() == headgate.AlgConcurrency {
			return i
		}
	}
	return -1
}

func drawKey(t *rapid.T) string { return pick(t, "key", "k", "", "{k}:\x00") }

func drawHolder(t *rapid.T) string { return pick(t, "holder", "A", "B", "C", "D") }

// drawShift draws how the clock moves: mostly not at all or to where an answer changes, at times far or back.
func (w *world) drawShift(t *rapid.T) int64 {
	span := w.span(t)
	switch pick(t, "move", 'n', 'n', 'n', 'w', 'w', 'w', 'f', 'e', 's', 'b', 'p', 'j') {
	case 'w': // where the last answers said that something happens
		if len(w.waits) > 0 {
			return rapid.SampledFrom(w.waits).Draw(t, "wait") - w.now + pick[int64](t, "off", 0, -1, 1)
		}
	case 'f':
		return rapid.Int64Range(0, span).Draw(t, "forward")
	case 'e': // the edge of a window or cell
		return span - modulo(w.now, span) + pick[int64](t, "off", 0, -1, 1)
	case 's':
		return pick[int64](t, "spans", 1, 2, 3)*span + pick[int64](t, "off", 0, -1, 1)
	case 'b':
		return -rapid.Int64Range(0, span).Draw(t, "back")
	case 'p':
		return -pick[int64](t, "spans", 1, 2)*span + pick[int64](t, "off", 0, -1, 1)
	case 'j':
		return rapid.Int64Range(-headgate.MaxTime, headgate.MaxTime).Draw(t, "jump")
	}
	return 0
}

func modulo(a, b int64) int64 { return ((a % b) + b) % b }

// span draws a length of time that matters to one of the slots, at least 1 µs.
func (w *world) span(t *rapid.T) int64 {
	s := w.slots[rapid.IntRange(0, len(w.slots)-1).Draw(t, "slot")]
	if s.lockout != nil && pick(t, "span", false, true) {
		return int64(pick(t, "span", s.lockout.For, max(s.lockout.Within, time.Microsecond), s.lockout.Longest()) / time.Microsecond)
	}
	return max(1, spanOf(s.limit))
}

// spanOf is the longest time that a limit remembers, roughly, in µs.
func spanOf(limit headgate.Limit) int64 {
	switch l := limit.(type) {
	case headgate.TokenBucket:
		whole, rem, den := l.Pace()
		return fill(l.Burst(), whole, rem, den)
	case headgate.LeakyBucket:
		whole, rem, den := l.Pace()
		if capacity, ok := l.Capacity(); ok {
			return fill(capacity, whole, rem, den)
		}
		wait, _ := l.MaxWait()
		return int64(wait / time.Microsecond)
	case headgate.FixedWindow:
		if unit, _ := l.Calendar(); unit != headgate.NotCalendar {
			return int64([]time.Duration{0, time.Hour, day, 7 * day, 31 * day}[unit] / time.Microsecond)
		}
		return int64(l.Period() / time.Microsecond)
	case headgate.SlidingLog:
		return int64(l.Period() / time.Microsecond)
	case headgate.SlidingWindow:
		return int64(l.Period()/time.Microsecond) / l.Cells()
	case headgate.Concurrency:
		return int64(l.TTL() / time.Microsecond)
	}
	return 1
}

// fill is how long units take, rounded up.
func fill(units, whole, rem, den int64) int64 {
	if den == 0 {
		return 1
	}
	hi, lo := bits.Mul64(uint64(units), uint64(rem))
	part, rest := bits.Div64(hi, lo, uint64(den))
	return units*whole + int64(part+min(rest, 1))
}

func (w *world) drawTake(t *rapid.T) op {
	o := takeOp{step: step{w.drawShift(t)}}
	at := *w
	at.shift(o.shift)
	for range rapid.IntRange(1, w.family.slots).Draw(t, "charges") {
		s := w.slots[rapid.IntRange(0, len(w.slots)-1).Draw(t, "slot")]
		c := headgate.Charge{Slot: s.name, Key: drawKey(t), Limit: s.limit}
		if repeated(o.charges, &c) {
			continue
		}
		c.Mode = pick(t, "mode", headgate.Pay, headgate.Pay, headgate.Pay, headgate.Pay, headgate.Check, headgate.Settle, headgate.Shadow)
		if s.lockout != nil && pick(t, "locking", true, true, true, false) {
			c.Lockout = s.lockout
		}
		at.drawCost(t, s, &c)
		o.charges = append(o.charges, c)
	}
	for i := range o.charges {
		if c := &o.charges[i]; c.Mode == headgate.Shadow && w.forward && w.reloaded && len(o.charges) > 1 {
			c.Mode = headgate.Pay // see Config.Sharded
		}
	}
	return o
}

func repeated(charges []headgate.Charge, c *headgate.Charge) bool {
	for i := range charges {
		if charges[i].Slot == c.Slot && charges[i].Key == c.Key {
			return true
		}
	}
	return false
}

// drawCost draws 1, a peek, what just fits or just does not, what the limit just has or just never has, and anything.
func (w *world) drawCost(t *rapid.T, s *slot, c *headgate.Charge) {
	if s.limit.Algorithm() == headgate.AlgConcurrency {
		c.Holder, c.Cost = drawHolder(t), pick[int64](t, "cost", 1, 1, 1, 1, 0)
		return
	}
	room := roomOf(s.limit)
	left := room
	if o := w.look(s, c.Key); o.HasRemaining {
		left = o.Remaining
	}
	switch pick(t, "cost", '1', '1', '1', 'f', 'f', 'o', '2', 'r', '0', 'a', 'm') {
	case '1':
		c.Cost = 1
	case 'f':
		c.Cost = left
	case 'o':
		c.Cost = left + 1
	case '2':
		c.Cost = rapid.Int64Range(2, 5).Draw(t, "cost")
	case 'r':
		c.Cost = pick(t, "over", room+1, headgate.MaxCount, drawRoom(t, s.limit))
	case 'a':
		c.Cost = rapid.Int64Range(0, max(1, left)).Draw(t, "cost")
	case 'm':
		c.Cost = rapid.Int64Range(0, headgate.MaxCount).Draw(t, "cost")
	}
	c.Cost = min(c.Cost, headgate.MaxCount)
}

// drawReload draws a limit for a slot: mostly of the same algorithm, so that the state is kept.
func (w *world) drawReload(t *rapid.T) op {
	i := rapid.IntRange(0, len(w.slots)-1).Draw(t, "slot")
	to := w.family.limits(t)
	for range 3 {
		if to.Algorithm() == w.slots[i].limit.Algorithm() {
			break
		}
		to = w.family.limits(t)
	}
	if pick(t, "alike", true, true, false) {
		to = alike(t, w.slots[i].limit, to)
	}
	return reloadOp{i, to}
}

// alike returns a limit with the count of one and what the state depends on of the other, where it can.
func alike(t *rapid.T, of, to headgate.Limit) headgate.Limit {
	switch l := of.(type) {
	case headgate.FixedWindow:
		n := count(t, "count", headgate.MaxCount)
		if unit, zone := l.Calendar(); unit != headgate.NotCalendar {
			c, err := headgate.NewCalendarWindow(n, unit, zone)
			return made(t, c, err)
		}
		f, err := headgate.NewFixedWindow(n, l.Period())
		return made(t, f, err)
	case headgate.SlidingLog:
		s, err := headgate.NewSlidingLog(pick[int64](t, "count", 1, 2, 5, 0, 1000), l.Period())
		return made(t, s, err)
	case headgate.SlidingWindow:
		s, err := headgate.NewSlidingWindow(count(t, "count", headgate.MaxCount), l.Period(), l.Cells())
		return made(t, s, err)
	}
	return to
}

func (w *world) drawRefund(t *rapid.T) op {
	// The latest takes are the ones that can still be given back.
	i := len(w.takes) - 1 - rapid.IntRange(0, min(4, len(w.takes)-1)).Draw(t, "take")
	o := refundOp{step: step{w.drawShift(t)}, take: i, current: rapid.Bool().Draw(t, "current")}
	for j := range w.takes[i].charges {
		cost := w.takes[i].charges[j].Cost
		switch pick(t, "part", 'a', 'p', '0', 'm', 'x') {
		case 'p':
			cost = rapid.Int64Range(0, cost).Draw(t, "part")
		case '0':
			cost = 0
		case 'm':
			cost = min(cost*2, headgate.MaxCount)
		case 'x':
			cost = headgate.MaxCount
		}
		if w.takes[i].charges[j].Holder != "" {
			cost = min(cost, 1)
		}
		o.costs = append(o.costs, cost)
	}
	return o
}

// drawCrossing draws what is given back by another limit than it was taken by: a take, a change of the limit, at times a take
// by the new one, and the refund of the first.
func (w *world) drawCrossing(t *rapid.T) op {
	i := rapid.IntRange(0, len(w.slots)-1).Draw(t, "slot")
	s := w.slots[i]
	charge := headgate.Charge{Slot: s.name, Key: drawKey(t), Limit: s.limit}
	if s.limit.Algorithm() == headgate.AlgConcurrency {
		charge.Holder = drawHolder(t)
	}
	first := charge
	first.Cost = drawRoom(t, s.limit)
	turn := w.drawReload(t).(reloadOp)
	turn.slot = i
	ops := chain{takeOp{step{w.drawShift(t)}, []headgate.Charge{first}}, turn}
	if charge.Limit = turn.limit; charge.Holder != "" || turn.limit.Algorithm() != headgate.AlgConcurrency {
		for range rapid.IntRange(0, 2).Draw(t, "more") {
			charge.Cost = drawRoom(t, turn.limit)
			ops = append(ops, takeOp{step{0}, []headgate.Charge{charge}})
		}
	}
	back := refundOp{step: step{pick[int64](t, "later", 0, 0, 1)}, take: len(w.takes), costs: []int64{pick(t, "back", first.Cost, first.Cost/2, 1)}, current: true}
	look := charge
	look.Cost = 0
	return append(ops, back, takeOp{step{0}, []headgate.Charge{look}})
}

// drawRoom draws a cost of 1, or one that a limit has just room for.
func drawRoom(t *rapid.T, limit headgate.Limit) int64 {
	room := roomOf(limit)
	return pick(t, "room", room, 1, room/2, room/2+1, min(2, room))
}

func (w *world) drawSlot(t *rapid.T) op {
	s := w.slots[w.holdersAt()]
	return slotOp{
		step:    step{w.drawShift(t)},
		charge:  headgate.Charge{Slot: s.name, Key: drawKey(t), Limit: s.limit, Holder: drawHolder(t)},
		release: rapid.Bool().Draw(t, "release"),
	}
}

func (w *world) drawReset(t *rapid.T) op {
	return resetOp{rapid.IntRange(0, len(w.slots)-1).Draw(t, "slot"), drawKey(t)}
}

func (w *world) drawInspect(t *rapid.T) op {
	return inspectOp{step{w.drawShift(t)}, rapid.IntRange(0, len(w.slots)-1).Draw(t, "slot"), drawKey(t)}
}

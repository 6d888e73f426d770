package algo

import (
	headgate "github.com/headgate-io/headgate"
)

// fixedWindow keeps the start of a window, its end, and what was charged in it.
type fixedWindow struct{}

func (fixedWindow) normalise(s *state, e *env) (dirty bool) {
	l := e.limit.(headgate.FixedWindow)
	if s.by != e.limit {
		dirty = changeFixedWindow(s, l)
	}
	if s.count > 0 && s.at <= e.now && e.now < s.extra {
		return dirty
	}
	start, end := e.zones.Window(l, e.now)
	switch {
	case s.count == 0 || s.extra <= e.now: // over
		s.at, s.extra, s.count = start, end, 0
	case s.at-e.now <= end-start: // the clock went back a little: stands still
	default: // the clock went back far: the count is of now
		s.at, s.extra = start, end
		dirty = true
	}
	return dirty
}

// changeFixedWindow keeps the count of a window whose length stays, and starts fresh else.
func changeFixedWindow(s *state, l headgate.FixedWindow) (dirty bool) {
	old, ok := s.by.(headgate.FixedWindow)
	if ok && sameWindows(old, l) {
		s.by = l
		return false
	}
	dirty = s.by != nil
	*s = state{by: l}
	return dirty
}

func sameWindows(a, b headgate.FixedWindow) bool {
	aUnit, aZone := a.Calendar()
	bUnit, bZone := b.Calendar()
	return aUnit == bUnit && aZone == bZone && a.Period() == b.Period()
}

func (fixedWindow) judge(s *state, e *env, cost int64) judgement {
	l := e.limit.(headgate.FixedWindow)
	switch {
	case cost == 0:
		return passes
	case cost > l.Count():
		return never
	case s.count+cost > l.Count():
		return after(s.extra - e.now)
	}
	return passes
}

func (fixedWindow) left(s *state, e *env, cost int64) int64 {
	return min(cost, max(0, e.limit.(headgate.FixedWindow).Count()-s.count))
}

func (fixedWindow) pay(s *state, _ *env, cost int64) int64 {
	s.count += cost
	return s.at
}

func (fixedWindow) report(s *state, e *env, o *headgate.Outcome) {
	o.HasRemaining = true
	o.Remaining = max(0, e.limit.(headgate.FixedWindow).Count()-s.count)
	if s.count > 0 {
		o.ResetAfter = micros(s.extra - e.now)
	}
}

func (fixedWindow) refund(s *state, _ *env, n, mark int64) int64 {
	if s.at != mark {
		return 0
	}
	n = min(n, s.count)
	s.count -= n
	return n
}

func (fixedWindow) idleAt(s *state) int64 {
	if s.count == 0 {
		return headgate.MinTime
	}
	return s.extra
}

func (fixedWindow) used(s *state, now int64) int64 {
	if now >= s.extra {
		return 0
	}
	return s.count
}

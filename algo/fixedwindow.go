package algo

import (
	headgate "github.com/headgate-io/headgate"
)

// fixedWindow keeps the start of a window, its end, and what was charged in it.
type fixedWindow struct{}

func (fixedWindow) normalise(s *state, by headgate.Limit, e *env) (did change) {
	if !e.same {
		if old, ok := by.(headgate.FixedWindow); !ok || !sameWindows(old, e.limit.(headgate.FixedWindow)) {
			*s, did = state{}, fresh
		}
	}
	if s.count > 0 && s.at <= e.now && e.now < s.extra {
		return did
	}
	start, end := e.window()
	switch {
	case s.count == 0 || s.extra <= e.now: // over
		s.at, s.extra, s.count = start, end, 0
	case s.at-e.now <= end-start: // the clock went back a little: stands still
	default: // the clock went back far: the count is of now
		s.at, s.extra = start, end
		return altered
	}
	return did
}

// window returns the window of now.
func (e *env) window() (start, end int64) {
	if e.length > 0 {
		start = floorTo(e.now, e.length)
		return start, start + e.length
	}
	return e.zones.Window(e.limit.(headgate.FixedWindow), e.now)
}

func sameWindows(a, b headgate.FixedWindow) bool {
	aUnit, aZone := a.Calendar()
	bUnit, bZone := b.Calendar()
	return aUnit == bUnit && aZone == bZone && a.Period() == b.Period()
}

func (fixedWindow) judge(s *state, e *env, cost int64) judgement {
	switch {
	case cost > e.size:
		return never
	case s.count+cost > e.size:
		return after(s.extra - e.now)
	}
	return passes
}

func (fixedWindow) pay(s *state, cost int64) (mark int64) {
	s.count += cost
	return s.at
}

func (fixedWindow) refund(s *state, n, mark int64) bool {
	if s.count == 0 || s.at != mark {
		return false
	}
	s.count -= min(n, s.count)
	return true
}

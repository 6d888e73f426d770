package algo

import (
	"math"

	headgate "github.com/headgate-io/headgate"
)

// tokenBucket keeps one time, when the bucket will be full (the theoretical arrival time of GCRA, ITU-T I.371, moved by
// the burst), as whole microseconds in at and a fraction over the pace's denominator in extra.
type tokenBucket struct{}

func (tokenBucket) normalise(s *state, by headgate.Limit, e *env) change {
	if e.same {
		if s.idle(e.now) {
			s.restart(e.now)
			return kept
		}
		return healMeter(s, e.now, e.most)
	}
	old, ok := by.(headgate.TokenBucket)
	if !ok {
		s.restart(e.now)
		return fresh
	}
	if s.idle(e.now) {
		s.restart(e.now)
		return kept
	}
	var p pace
	p.whole, p.rem, p.den = old.Pace()
	did := healMeter(s, e.now, p.mustTimes(old.Burst()))
	if p == e.pace && old.Burst() == e.size {
		return did // the same numbers in other words
	}
	// Doubles, in this order: the Lua does the same.
	debt := s.unitsAhead(e.now, p)
	level := math.Min(float64(float64(old.Burst())-debt), float64(e.size))
	wait := math.Ceil(float64(float64(e.size)-level) * e.pace.float())
	s.at, s.extra = e.now+int64(wait), 0
	healMeter(s, e.now, e.most)
	return altered
}

// restart makes the meter one never used.
func (s *state) restart(now int64) { *s = state{at: now} }

// idle tells whether the meter's time has come, so that it is as if never used.
func (s *state) idle(now int64) bool { return s.at < now || (s.at == now && s.extra == 0) }

// ahead is how far the meter's time lies ahead of now.
func (s *state) ahead(now int64) span { return span{s.at - now, s.extra} }

// unitsAhead is the same in units, as a double.
func (s *state) unitsAhead(now int64, p pace) float64 {
	return float64(float64(s.at-now)+float64(s.extra)/float64(p.den)) / p.float()
}

// healMeter cuts a time that lies further ahead than the limit can put it, as after a step of the clock.
func healMeter(s *state, now int64, most span) change {
	if most.less(s.ahead(now)) {
		s.at, s.extra = now+most.us, most.frac
		return altered
	}
	return kept
}

func (tokenBucket) judge(s *state, e *env, cost int64) judgement {
	if cost > e.size {
		return never
	}
	want := e.pace.plus(s.ahead(e.now), e.pace.mustTimes(cost))
	if e.most.less(want) {
		return after(e.pace.minus(want, e.most).ceil())
	}
	return passes
}

func (tokenBucket) left(s *state, e *env) int64 {
	return e.pace.units(e.pace.minus(e.most, s.ahead(e.now)), headgate.MaxCount)
}

func (tokenBucket) pay(s *state, e *env, cost int64) (mark int64) {
	return advance(s, e, e.pace.mustTimes(cost))
}

// advance moves the meter's time on and returns it, rounded up.
func advance(s *state, e *env, by span) int64 {
	t := e.pace.plus(span{s.at, s.extra}, by)
	s.at, s.extra = t.us, t.frac
	return t.ceil()
}

// refundMeter moves the time back by n units, to now at most, if the receipt's time and the meter's have not come. The units
// may have been charged at another pace, and at this one be longer than any backlog.
func refundMeter(s *state, e *env, n, mark int64) bool {
	if e.now >= mark || s.idle(e.now) {
		return false
	}
	ahead := s.ahead(e.now)
	back, ok := e.pace.times(n)
	if !ok || ahead.less(back) {
		s.at, s.extra = e.now, 0
		return true
	}
	ahead = e.pace.minus(ahead, back)
	s.at, s.extra = e.now+ahead.us, ahead.frac
	return true
}

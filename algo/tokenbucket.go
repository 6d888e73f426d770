package algo

import (
	"math"

	headgate "github.com/headgate-io/headgate"
)

// tokenBucket keeps one time, when the bucket will be full (the theoretical arrival time of GCRA, ITU-T I.371, moved by
// the burst), as whole microseconds in at and a fraction over the pace's denominator in extra.
type tokenBucket struct{}

func tokenPace(l headgate.TokenBucket) pace {
	whole, rem, den := l.Pace()
	return pace{whole, rem, den}
}

func (tokenBucket) normalise(s *state, e *env) (dirty bool) {
	l := e.limit.(headgate.TokenBucket)
	if s.by != e.limit {
		return changeTokenBucket(s, l, e)
	}
	if s.at <= e.now && (s.at < e.now || s.extra == 0) {
		s.at, s.extra = e.now, 0
		return false
	}
	return healMeter(s, e.now, tokenPace(l).mustTimes(l.Burst()))
}

// changeTokenBucket brings a state under another limit: the level in tokens is kept and clamped to the new burst.
func changeTokenBucket(s *state, l headgate.TokenBucket, e *env) (dirty bool) {
	old, ok := s.by.(headgate.TokenBucket)
	if !ok {
		dirty = s.by != nil
		*s = state{by: l, at: e.now}
		return dirty
	}
	oldPace := tokenPace(old)
	healMeter(s, e.now, oldPace.mustTimes(old.Burst()))
	d := s.at - e.now
	if d < 0 || (d == 0 && s.extra == 0) {
		*s = state{by: e.limit, at: e.now}
		return false
	}
	// Doubles, in this order: the Lua does the same.
	newPace := tokenPace(l)
	debt := float64(float64(d)+float64(s.extra)/float64(oldPace.den)) / oldPace.float()
	level := math.Min(float64(float64(old.Burst())-debt), float64(l.Burst()))
	wait := math.Ceil(float64(float64(l.Burst())-level) * newPace.float())
	s.by, s.at, s.extra = e.limit, e.now+int64(wait), 0
	healMeter(s, e.now, newPace.mustTimes(l.Burst()))
	return true
}

// healMeter cuts a time that lies further ahead than the limit can put it, as after a step of the clock.
func healMeter(s *state, now int64, most span) (dirty bool) {
	if ahead := (span{s.at - now, s.extra}); most.less(ahead) {
		s.at, s.extra = now+most.us, most.frac
		return true
	}
	return false
}

func (tokenBucket) judge(s *state, e *env, cost int64) judgement {
	l := e.limit.(headgate.TokenBucket)
	if cost == 0 {
		return passes
	}
	if cost > l.Burst() {
		return never
	}
	p := tokenPace(l)
	most := p.mustTimes(l.Burst())
	want := p.plus(span{s.at - e.now, s.extra}, p.mustTimes(cost))
	if most.less(want) {
		return after(p.minus(want, most).ceil())
	}
	return passes
}

func (tokenBucket) left(s *state, e *env, cost int64) int64 {
	l := e.limit.(headgate.TokenBucket)
	return min(cost, tokensLeft(s, l, e.now))
}

func tokensLeft(s *state, l headgate.TokenBucket, now int64) int64 {
	p := tokenPace(l)
	return p.units(p.minus(p.mustTimes(l.Burst()), span{s.at - now, s.extra}))
}

func (tokenBucket) pay(s *state, e *env, cost int64) int64 {
	p := tokenPace(e.limit.(headgate.TokenBucket))
	full := p.plus(span{s.at, s.extra}, p.mustTimes(cost))
	s.at, s.extra = full.us, full.frac
	return full.ceil()
}

func (tokenBucket) report(s *state, e *env, o *headgate.Outcome) {
	o.HasRemaining = true
	o.Remaining = tokensLeft(s, e.limit.(headgate.TokenBucket), e.now)
	o.ResetAfter = micros(span{s.at - e.now, s.extra}.ceil())
}

func (tokenBucket) refund(s *state, e *env, n, mark int64) int64 {
	if e.now >= mark {
		return 0
	}
	p := tokenPace(e.limit.(headgate.TokenBucket))
	refundMeter(s, e.now, p, n)
	return n
}

// refundMeter moves the time back by n units, to now at most.
func refundMeter(s *state, now int64, p pace, n int64) {
	ahead, back := span{s.at - now, s.extra}, p.mustTimes(n)
	if ahead.less(back) {
		s.at, s.extra = now, 0
		return
	}
	ahead = p.minus(ahead, back)
	s.at, s.extra = now+ahead.us, ahead.frac
}

func (tokenBucket) idleAt(s *state) int64 { return span{s.at, s.extra}.ceil() }

func (tokenBucket) used(s *state, now int64) int64 {
	l := s.by.(headgate.TokenBucket)
	n := *s
	tokenBucket{}.normalise(&n, &env{limit: l, now: now})
	return l.Burst() - tokensLeft(&n, l, now)
}

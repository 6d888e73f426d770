package algo

import (
	"math"

	headgate "github.com/headgate-io/headgate"
)

// leakyBucket is a queue that one request leaves every pace. It keeps the time when the queue will be empty like the full
// time of a token bucket, and in count, for a queue without a capacity, what the last admitted charge added: such a
// queue is legitimately longer than its longest wait by that.
type leakyBucket struct{}

// longestBacklog returns the longest backlog that the limit can leave behind when the last charge added last µs.
func (e *env) longestBacklog(last int64) span {
	if e.size > 0 {
		return e.most
	}
	return span{us: e.length + last}
}

func (leakyBucket) normalise(s *state, by headgate.Limit, e *env) change {
	if e.same {
		if s.idle(e.now) {
			s.restart(e.now)
			return kept
		}
		return healMeter(s, e.now, e.longestBacklog(s.count))
	}
	old, ok := by.(headgate.LeakyBucket)
	if !ok {
		s.restart(e.now)
		return fresh
	}
	if s.idle(e.now) {
		s.restart(e.now)
		return kept
	}
	was := env{limit: old}
	was.prepareLeakyBucket(old)
	did := healMeter(s, e.now, was.longestBacklog(s.count))
	if was.pace == e.pace && was.size == e.size && was.length == e.length {
		return did // the same numbers in other words
	}
	// The backlog keeps its requests, but never makes anyone wait longer than the new limit can. Doubles, in this order: the
	// Lua does the same. The product can pass every bound, so it is cut before it is an integer.
	backlog := s.unitsAhead(e.now, was.pace)
	wait := math.Min(math.Ceil(float64(backlog*e.pace.float())), float64(maxSpan))
	s.at, s.extra, s.count = e.now+int64(wait), 0, 0
	healMeter(s, e.now, e.longestBacklog(0))
	if e.length >= 0 {
		healMeter(s, e.now, span{us: e.length})
	}
	return altered
}

func (leakyBucket) judge(s *state, e *env, cost int64) judgement {
	inc, ok := e.pace.times(cost)
	if !ok || (span{us: maxSpan}).less(inc) || (e.size > 0 && cost > e.size) {
		return never
	}
	backlog := s.ahead(e.now)
	wait := int64(0)
	if e.size > 0 {
		if want := e.pace.plus(backlog, inc); e.most.less(want) {
			wait = e.pace.minus(want, e.most).ceil()
		}
	}
	if e.length >= 0 {
		wait = max(wait, backlog.ceil()-e.length)
	}
	if wait > 0 {
		return after(wait)
	}
	return passes
}

// room is how much of a cost a settling charge takes.
func (b leakyBucket) room(s *state, e *env, cost int64) int64 {
	if e.length >= 0 && s.ahead(e.now).ceil() > e.length {
		return 0
	}
	if left, ok := b.left(s, e); ok {
		return min(cost, left)
	}
	return e.pace.units(span{us: maxSpan}, cost)
}

// left is how many whole requests the capacity has room for; false if there is no capacity.
func (leakyBucket) left(s *state, e *env) (int64, bool) {
	if e.size == 0 {
		return 0, false
	}
	backlog := s.ahead(e.now)
	if e.most.less(backlog) {
		return 0, true
	}
	return e.pace.units(e.pace.minus(e.most, backlog), headgate.MaxCount), true
}

func (leakyBucket) pay(s *state, e *env, cost int64) (mark int64) {
	inc := e.pace.mustTimes(cost)
	if e.size == 0 {
		s.count = inc.ceil()
	}
	return advance(s, e, inc)
}

func (leakyBucket) used(s *state, e *env) int64 {
	return e.pace.unitsUp(s.ahead(e.now))
}

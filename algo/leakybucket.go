package algo

import (
	"math"

	headgate "github.com/headgate-io/headgate"
)

// leakyBucket is a queue that one request leaves every pace. It keeps the time when the queue will be empty like the full
// time of a token bucket, and in count, for a queue without a capacity, what the last admitted charge added: such a
// queue is legitimately longer than its longest wait by that.
type leakyBucket struct{}

func leakyPace(l headgate.LeakyBucket) pace {
	whole, rem, den := l.Pace()
	return pace{whole, rem, den}
}

// longest returns the longest backlog that the limit can leave behind when the last charge added last µs.
func longestBacklog(l headgate.LeakyBucket, last int64) span {
	if capacity, ok := l.Capacity(); ok {
		return leakyPace(l).mustTimes(capacity)
	}
	wait, _ := l.MaxWait()
	return span{us: wait.Microseconds() + last}
}

func (leakyBucket) normalise(s *state, e *env) (dirty bool) {
	l := e.limit.(headgate.LeakyBucket)
	if s.by != e.limit {
		return changeLeakyBucket(s, l, e)
	}
	if s.at <= e.now && (s.at < e.now || s.extra == 0) {
		s.at, s.extra, s.count = e.now, 0, 0
		return false
	}
	return healMeter(s, e.now, longestBacklog(l, s.count))
}

// changeLeakyBucket brings a state under another limit: the backlog keeps its requests, but never makes anyone wait
// longer than the new limit can.
func changeLeakyBucket(s *state, l headgate.LeakyBucket, e *env) (dirty bool) {
	old, ok := s.by.(headgate.LeakyBucket)
	if !ok {
		dirty = s.by != nil
		*s = state{by: l, at: e.now}
		return dirty
	}
	healMeter(s, e.now, longestBacklog(old, s.count))
	d := s.at - e.now
	if d < 0 || (d == 0 && s.extra == 0) {
		*s = state{by: e.limit, at: e.now}
		return false
	}
	// Doubles, in this order: the Lua does the same. The product can pass every bound, so it is cut before it is an integer.
	oldPace := leakyPace(old)
	backlog := float64(float64(d)+float64(s.extra)/float64(oldPace.den)) / oldPace.float()
	wait := math.Min(math.Ceil(float64(backlog*leakyPace(l).float())), float64(maxSpan))
	s.by, s.at, s.extra, s.count = e.limit, e.now+int64(wait), 0, 0
	healMeter(s, e.now, longestBacklog(l, 0))
	if most, ok := l.MaxWait(); ok {
		healMeter(s, e.now, span{us: most.Microseconds()})
	}
	return true
}

func (leakyBucket) judge(s *state, e *env, cost int64) judgement {
	l := e.limit.(headgate.LeakyBucket)
	if cost == 0 {
		return passes
	}
	p := leakyPace(l)
	inc, ok := p.times(cost)
	capacity, bounded := l.Capacity()
	if !ok || (bounded && cost > capacity) {
		return never
	}
	backlog := span{s.at - e.now, s.extra}
	wait := int64(0)
	if bounded {
		most, want := p.mustTimes(capacity), p.plus(backlog, inc)
		if most.less(want) {
			wait = p.minus(want, most).ceil()
		}
	}
	if most, ok := l.MaxWait(); ok {
		wait = max(wait, backlog.ceil()-most.Microseconds())
	}
	if wait > 0 {
		return after(wait)
	}
	return judgement{ok: true, wait: backlog.ceil()}
}

func (leakyBucket) left(s *state, e *env, cost int64) int64 {
	l := e.limit.(headgate.LeakyBucket)
	if most, ok := l.MaxWait(); ok && (span{s.at - e.now, s.extra}).ceil() > most.Microseconds() {
		return 0
	}
	if _, ok := leakyPace(l).times(cost); !ok {
		cost = leakyPace(l).units(span{us: maxSpan})
	}
	if room, ok := queueLeft(s, l, e.now); ok {
		return min(cost, room)
	}
	return cost
}

// queueLeft is how many whole requests the capacity has room for; false if there is no capacity.
func queueLeft(s *state, l headgate.LeakyBucket, now int64) (int64, bool) {
	capacity, ok := l.Capacity()
	if !ok {
		return 0, false
	}
	p := leakyPace(l)
	most, backlog := p.mustTimes(capacity), span{s.at - now, s.extra}
	if most.less(backlog) {
		return 0, true
	}
	return p.units(p.minus(most, backlog)), true
}

func (leakyBucket) pay(s *state, e *env, cost int64) int64 {
	l := e.limit.(headgate.LeakyBucket)
	p := leakyPace(l)
	inc := p.mustTimes(cost)
	empty := p.plus(span{s.at, s.extra}, inc)
	s.at, s.extra = empty.us, empty.frac
	if _, ok := l.Capacity(); !ok {
		s.count = inc.ceil()
	}
	return empty.ceil()
}

func (leakyBucket) report(s *state, e *env, o *headgate.Outcome) {
	o.Remaining, o.HasRemaining = queueLeft(s, e.limit.(headgate.LeakyBucket), e.now)
	o.ResetAfter = micros(span{s.at - e.now, s.extra}.ceil())
}

func (leakyBucket) refund(s *state, e *env, n, mark int64) int64 {
	if e.now >= mark {
		return 0
	}
	refundMeter(s, e.now, leakyPace(e.limit.(headgate.LeakyBucket)), n)
	return n
}

func (leakyBucket) idleAt(s *state) int64 { return span{s.at, s.extra}.ceil() }

func (leakyBucket) used(s *state, now int64) int64 {
	l := s.by.(headgate.LeakyBucket)
	n := *s
	leakyBucket{}.normalise(&n, &env{limit: l, now: now})
	p := leakyPace(l)
	backlog := span{n.at - now, n.extra}
	whole := p.units(backlog)
	if p.mustTimes(whole) != backlog {
		whole++
	}
	return whole
}

package algo

import (
	"slices"

	headgate "github.com/headgate-io/headgate"
)

// slidingLog keeps the time of every unit charged in the last period, ascending.
type slidingLog struct{}

func (slidingLog) normalise(s *state, e *env) (dirty bool) {
	l := e.limit.(headgate.SlidingLog)
	if s.by != e.limit {
		old, ok := s.by.(headgate.SlidingLog)
		if !ok || old.Period() != l.Period() {
			dirty = s.by != nil
			*s = state{}
		}
		s.by = e.limit
	}
	v := s.times()
	if len(v) > 0 && v[len(v)-1]-e.now > l.Period().Microseconds() {
		// The clock went back far: what lies ahead counts as of now.
		v = slices.Clone(v)
		ahead, _ := slices.BinarySearch(v, e.now+1)
		for i := ahead; i < len(v); i++ {
			v[i] = e.now
		}
		s.series = &series{v}
		dirty = true
	}
	return dirty
}

func (s *state) times() []int64 {
	if s.series == nil {
		return nil
	}
	return s.series.v
}

// alive returns the entries alive at the time that decides: now, or that of an entry a little ahead of it.
func (s *state) alive(now, period int64) (at int64, live []int64) {
	v := s.times()
	at = now
	if len(v) > 0 {
		at = max(at, v[len(v)-1])
	}
	first, _ := slices.BinarySearch(v, at-period+1)
	return at, v[first:]
}

func logOf(s *state, e *env) (l headgate.SlidingLog, period, at int64, live []int64) {
	l = e.limit.(headgate.SlidingLog)
	period = l.Period().Microseconds()
	at, live = s.alive(e.now, period)
	return l, period, at, live
}

func (slidingLog) judge(s *state, e *env, cost int64) judgement {
	l, period, _, live := logOf(s, e)
	if cost == 0 {
		return passes
	}
	if cost > l.Count() {
		return never
	}
	over := int64(len(live)) + cost - l.Count()
	if over > 0 {
		return after(live[over-1] + period - e.now)
	}
	return passes
}

func (slidingLog) left(s *state, e *env, cost int64) int64 {
	l, _, _, live := logOf(s, e)
	return min(cost, max(0, l.Count()-int64(len(live))))
}

func (slidingLog) pay(s *state, e *env, cost int64) int64 {
	_, _, at, live := logOf(s, e)
	if s.series == nil {
		s.series = &series{}
	}
	v := append(s.series.v[:0], live...) // drops the dead in place
	for range cost {
		v = append(v, at)
	}
	s.series.v = v
	return at
}

func (slidingLog) report(s *state, e *env, o *headgate.Outcome) {
	l, period, _, live := logOf(s, e)
	o.HasRemaining = true
	o.Remaining = max(0, l.Count()-int64(len(live)))
	if len(live) > 0 {
		o.ResetAfter = micros(live[len(live)-1] + period - e.now)
	}
}

func (slidingLog) refund(s *state, e *env, n, mark int64) int64 {
	_, _, _, live := logOf(s, e)
	from, _ := slices.BinarySearch(live, mark)
	to, _ := slices.BinarySearch(live, mark+1)
	n = min(n, int64(to-from))
	if s.series != nil {
		v := append(s.series.v[:0], live...)
		s.series.v = slices.Delete(v, from, from+int(n))
	}
	return n
}

func (slidingLog) idleAt(s *state) int64 {
	v := s.times()
	if len(v) == 0 {
		return headgate.MinTime
	}
	return v[len(v)-1] + s.by.(headgate.SlidingLog).Period().Microseconds()
}

func (slidingLog) used(s *state, now int64) int64 {
	_, live := s.alive(now, s.by.(headgate.SlidingLog).Period().Microseconds())
	return int64(len(live))
}

package algo

import (
	"slices"

	headgate "github.com/headgate-io/headgate"
)

// slidingLog keeps the time of every unit charged in the last period, ascending.
type slidingLog struct{}

func (slidingLog) normalise(s *state, by headgate.Limit, e *env) (did change) {
	if !e.same {
		if old, ok := by.(headgate.SlidingLog); !ok || old.Period().Microseconds() != e.length {
			*s = state{}
			return fresh
		}
	}
	if n := len(s.series); n > 0 && s.series[n-1]-e.now > e.length {
		// The clock went back far: what lies ahead counts as of now.
		dead, _ := slices.BinarySearch(s.series, e.now-e.length+1)
		s.series = slices.Clone(s.series[dead:])
		for i, t := range s.series {
			s.series[i] = min(t, e.now)
		}
		return altered
	}
	return kept
}

// alive returns the entries alive at the time that decides: now, or that of an entry a little ahead of it.
func (s *state) alive(e *env) (at int64, live []int64) {
	at = e.now
	if n := len(s.series); n > 0 {
		at = max(at, s.series[n-1])
	}
	first, _ := slices.BinarySearch(s.series, at-e.length+1)
	return at, s.series[first:]
}

func (slidingLog) judge(s *state, e *env, cost int64) judgement {
	if cost > e.size {
		return never
	}
	_, live := s.alive(e)
	if over := int64(len(live)) + cost - e.size; over > 0 {
		return after(live[over-1] + e.length - e.now)
	}
	return passes
}

func (slidingLog) used(s *state, e *env) int64 {
	_, live := s.alive(e)
	return int64(len(live))
}

func (slidingLog) pay(s *state, e *env, cost int64) (mark int64) {
	at, live := s.alive(e)
	s.series = append(s.series[:0], live...) // drops the dead in place
	for range cost {
		s.series = append(s.series, at)
	}
	return at
}

func (slidingLog) resetAfter(s *state, e *env) int64 {
	if _, live := s.alive(e); len(live) > 0 {
		return live[len(live)-1] + e.length - e.now
	}
	return 0
}

func (slidingLog) refund(s *state, e *env, n, mark int64) bool {
	at, live := s.alive(e)
	if len(live) == 0 || mark <= at-e.length {
		return false
	}
	from, _ := slices.BinarySearch(live, mark)
	to, _ := slices.BinarySearch(live, mark+1)
	to = min(to, from+int(n))
	s.series = slices.Delete(append(s.series[:0], live...), from, to)
	return true
}

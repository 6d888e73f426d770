package oracle

import (
	"slices"

	headgate "github.com/headgate-io/headgate"
)

// logState is the times of what was admitted, in ascending order.
type logState struct {
	period int64
	times  []int64
}

func (logState) algorithm() headgate.Algorithm { return headgate.AlgSlidingLog }

func (s logState) inspect(now int64) (used, idleAt int64) {
	newest := s.times[len(s.times)-1]
	eff := max(now, newest)
	for _, t := range s.times {
		if t > eff-s.period {
			used++
		}
	}
	if newest+s.period <= now {
		used = 0
	}
	return used, newest + s.period
}

// logModel has the entries that live.
type logModel struct {
	logState
	limit    int64
	now, eff int64
}

func newLog(old state, l headgate.SlidingLog, now int64) (model, change) {
	if l.Count() == 0 {
		return nothing{}, fresh
	}
	m := &logModel{logState{period: inMicros(l.Period())}, l.Count(), now, now}
	s, ok := old.(logState)
	if !ok || s.period != m.period {
		return m, fresh
	}
	did := kept
	times := slices.Clone(s.times)
	switch newest := times[len(times)-1]; {
	case newest > now && newest-now <= m.period:
		m.eff = newest
	case newest > now:
		did = changed
		for i := range times {
			times[i] = min(times[i], now)
		}
	}
	for _, t := range times {
		if t > m.eff-m.period {
			m.times = append(m.times, t)
		}
	}
	return m, did
}

func (m *logModel) live() int64 { return int64(len(m.times)) }

func (m *logModel) judge(cost int64, _ string) answer {
	if cost > m.limit {
		return never()
	}
	if dying := m.live() + cost - m.limit; dying > 0 {
		return after(headgate.ReasonLimited, m.times[dying-1]+m.period-m.now)
	}
	return pass
}

func (m *logModel) room(cost int64, _ string) int64 {
	units, _ := m.left()
	return min(cost, units)
}

func (m *logModel) charge(cost int64, _ string) int64 {
	for range cost {
		m.times = append(m.times, m.eff)
	}
	return m.eff
}

func (m *logModel) refund(amount, mark int64, _ string) bool {
	if mark <= m.eff-m.period || len(m.times) == 0 {
		return false
	}
	m.times = slices.DeleteFunc(m.times, func(t int64) bool {
		if t != mark || amount == 0 {
			return false
		}
		amount--
		return true
	})
	return true
}

func (m *logModel) left() (int64, bool) { return max(0, m.limit-m.live()), true }

func (m *logModel) wait() int64 { return 0 }

func (m *logModel) reset() int64 {
	if len(m.times) == 0 {
		return 0
	}
	return m.times[len(m.times)-1] + m.period - m.now
}

func (m *logModel) stored() state {
	if len(m.times) == 0 {
		return nil
	}
	return m.logState
}

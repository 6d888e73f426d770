package oracle

import (
	"time"

	headgate "github.com/headgate-io/headgate"
)

// windowKind tells windows of different lengths and zones apart.
type windowKind struct {
	period int64
	unit   headgate.CalendarUnit
	zone   string
}

// windowState is the count of one window. A window without a count is not stored.
type windowState struct {
	windowKind
	start, end int64
	count      int64
}

func (windowState) algorithm() headgate.Algorithm { return headgate.AlgFixedWindow }

func (s windowState) inspect(now int64) (used, idleAt int64) {
	if s.end <= now {
		return 0, s.end
	}
	return s.count, s.end
}

type windowModel struct {
	windowState
	limit int64
	now   int64
}

func newWindow(old state, l headgate.FixedWindow, loc *time.Location, now int64) (model, change) {
	if l.Count() == 0 {
		return nothing{}, fresh
	}
	kind := windowKind{period: inMicros(l.Period())}
	kind.unit, kind.zone = l.Calendar()
	start, end := kind.around(now, loc)
	m := &windowModel{windowState{windowKind: kind, start: start, end: end}, l.Count(), now}
	s, ok := old.(windowState)
	switch {
	case !ok || s.windowKind != kind:
		return m, fresh
	case s.start == start:
		m.count = s.count
	case s.start > now && s.start-now <= end-start:
		m.windowState = s
	case s.start > now:
		m.count = s.count
		return m, changed
	}
	return m, kept
}

func (m *windowModel) judge(cost int64, _ string) answer {
	switch {
	case cost > m.limit:
		return never()
	case m.count+cost > m.limit:
		return after(headgate.ReasonLimited, m.end-m.now)
	}
	return pass
}

func (m *windowModel) room(cost int64, _ string) int64 {
	units, _ := m.left()
	return min(cost, units)
}

func (m *windowModel) charge(cost int64, _ string) int64 {
	m.count += cost
	return m.start
}

func (m *windowModel) refund(amount, mark int64, _ string) bool {
	if mark != m.start || m.count == 0 {
		return false
	}
	m.count = max(0, m.count-amount)
	return true
}

func (m *windowModel) left() (int64, bool) { return max(0, m.limit-m.count), true }

func (m *windowModel) wait() int64 { return 0 }

func (m *windowModel) reset() int64 {
	if m.count == 0 {
		return 0
	}
	return m.end - m.now
}

func (m *windowModel) stored() state {
	if m.count == 0 {
		return nil
	}
	return m.windowState
}

// around returns the window that a time lies in.
func (k windowKind) around(now int64, loc *time.Location) (start, end int64) {
	if k.unit == headgate.NotCalendar {
		start = floorTo(now, k.period)
		return start, start + k.period
	}
	if k.unit == headgate.Hour {
		return hourAround(now, loc)
	}
	return dateWindow(now, k.unit, loc)
}

// location returns the zone of a limit, read once.
func (s *store) location(l headgate.FixedWindow) *time.Location {
	_, zone := l.Calendar()
	if loc, ok := s.zones[zone]; ok {
		return loc
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		loc = time.UTC // a limit with an unknown zone cannot be made
	}
	s.zones[zone] = loc
	return loc
}

package memstock

// jobUnit is one job in the meter's units: a job a second earns a unit in each microsecond, so that nothing is ever rounded.
const jobUnit = 1_000_000

// meter is a token bucket over all consumers of a sku. It holds a tenth of a second's worth, or one job where that is less.
type meter struct {
	level int64 // in units
	at    int64 // when the level was that, in microseconds
}

func burst(rate int64) int64 { return max(rate/10, 1) * jobUnit }

// fill brings the level to now. A clock that goes back earns nothing, and is followed.
func (m *meter) fill(rate, now int64) {
	passed := now - m.at
	m.at = now
	switch {
	case passed >= jobUnit && rate > 0: // a second fills every bucket
		m.level = burst(rate)
	case passed > 0:
		m.level = min(m.level+passed*rate, burst(rate))
	}
}

// ready is how many jobs may be handed out now.
func (m *meter) ready(rate, now int64) int64 {
	m.fill(rate, now)
	return m.level / jobUnit
}

func (m *meter) spend(jobs int64) { m.level -= jobs * jobUnit }

// change goes on at another rate. What was earned is kept as far as the new bucket holds it; the first rate starts full.
func (m *meter) change(from, to, now int64) {
	if from == 0 {
		m.level, m.at = burst(to), now
		return
	}
	m.fill(from, now)
	m.level = min(m.level, burst(to))
}

package referee

import (
	"math/big"

	headgate "github.com/headgate-io/headgate"
)

// meter is the level of a bucket as the time at which it has run down, in parts of a microsecond: with parts = den, a unit
// lasts a whole number of them.
type meter struct {
	parts, unit *big.Int // parts in a microsecond, and in a unit
	ends        *big.Int
	never       bool // the rate is 0
	first, last int64
	began       bool
}

func newMeter(whole, rem, den int64) meter {
	if den == 0 {
		return meter{never: true}
	}
	unit := new(big.Int).Mul(big.NewInt(whole), big.NewInt(den))
	return meter{parts: big.NewInt(den), unit: unit.Add(unit, big.NewInt(rem)), ends: new(big.Int)}
}

func (m *meter) time(us int64) *big.Int { return new(big.Int).Mul(big.NewInt(us), m.parts) }
func (m *meter) units(n int64) *big.Int { return new(big.Int).Mul(big.NewInt(n), m.unit) }
func (m *meter) level(at int64) *big.Int { // at a time
	if !m.began {
		return new(big.Int)
	}
	left := new(big.Int).Sub(m.ends, m.time(at))
	if left.Sign() < 0 {
		left.SetInt64(0)
	}
	return left
}

func (m *meter) charge(a Admission) {
	level := m.level(a.At)
	m.ends = level.Add(level, m.time(a.At)).Add(level, m.units(a.Units))
	if !m.began {
		m.first = a.At
	}
	m.began, m.last = true, a.At
}

func (m *meter) used(at int64) int64 {
	if m.never || !m.began {
		return 0
	}
	up := m.level(at)
	up.Add(up, m.unit).Sub(up, big.NewInt(1))
	return up.Quo(up, m.unit).Int64()
}

// drained returns how many units run down in a time.
func (m *meter) drained(us int64) int64 {
	return new(big.Int).Quo(m.time(us), m.unit).Int64()
}

// bucket is a token bucket: in no interval more than its burst and what flows in meanwhile.
type bucket struct {
	meter
	burst, early int64
}

func newBucket(l headgate.TokenBucket, t Terms) *bucket {
	return &bucket{meter: newMeter(l.Pace()), burst: l.Burst() + t.Extra, early: t.Early.Microseconds()}
}

func (b *bucket) fits(at, units int64) bool {
	if b.never {
		return false
	}
	room := b.units(b.burst)
	room.Add(room, b.time(b.early))
	want := b.level(at)
	return want.Add(want, b.units(units)).Cmp(room) <= 0
}

func (b *bucket) most() int64 {
	if b.never {
		return 0
	}
	return b.burst + b.drained(b.last-b.first+b.early)
}

// queue is a leaky bucket: what waits, the newcomer included, within its capacity; what a newcomer waits for, within the
// longest wait.
type queue struct {
	meter
	capacity int64
	bounded  bool
	wait     int64
	waits    bool
	extra    int64
}

func newQueue(l headgate.LeakyBucket, t Terms) *queue {
	q := &queue{meter: newMeter(l.Pace()), extra: t.Extra}
	q.capacity, q.bounded = l.Capacity()
	wait, ok := l.MaxWait()
	q.wait, q.waits = wait.Microseconds(), ok
	return q
}

func (q *queue) fits(at, units int64) bool {
	if q.never {
		return false
	}
	backlog := q.level(at)
	if q.waits {
		longest := q.time(q.wait)
		if backlog.Cmp(longest.Add(longest, q.units(q.extra))) > 0 {
			return false
		}
	}
	return !q.bounded || backlog.Add(backlog, q.units(units)).Cmp(q.units(q.capacity+q.extra)) <= 0
}

func (q *queue) most() int64 {
	if q.never {
		return 0
	}
	room := q.capacity
	if !q.bounded {
		room = q.drained(q.wait) + 1
	}
	return room + q.extra + q.drained(q.last-q.first)
}

package oracle

import (
	"math"
	"math/big"

	headgate "github.com/headgate-io/headgate"
)

// leakyState is the time when the queue will be empty, the time that its last charge added if there is no capacity, and
// the numbers it was judged by.
type leakyState struct {
	empty    *big.Rat
	last     int64
	pace     *big.Rat
	capacity int64 // 0: none
	maxWait  int64 // -1: none
}

func (leakyState) algorithm() headgate.Algorithm { return headgate.AlgLeakyBucket }

func (s leakyState) inspect(now int64) (used, idleAt int64) {
	waiting := smaller(sub(s.empty, whole(now)), s.furthest())
	return unitsIn(waiting, s.pace), ceil(s.empty)
}

func (s leakyState) sameNumbers(t leakyState) bool {
	return s.pace.Cmp(t.pace) == 0 && s.capacity == t.capacity && s.maxWait == t.maxWait
}

// furthest is how far ahead of now the empty time can lie.
func (s leakyState) furthest() *big.Rat {
	if s.capacity > 0 {
		return mul(whole(s.capacity), s.pace)
	}
	return whole(s.maxWait + s.last)
}

type leakyModel struct {
	leakyState
	now int64
}

func newLeaky(old state, l headgate.LeakyBucket, now int64) (model, change) {
	pace := paceOf(l.Rate())
	if pace == nil {
		return nothing{}, fresh
	}
	m := &leakyModel{leakyState{empty: whole(now), pace: pace, maxWait: -1}, now}
	m.capacity, _ = l.Capacity()
	if d, ok := l.MaxWait(); ok {
		m.maxWait = inMicros(d)
	}
	s, ok := old.(leakyState)
	if !ok {
		return m, fresh
	}
	if s.empty.Cmp(whole(now)) <= 0 {
		return m, kept // as if never seen
	}
	did := kept
	if most := add(whole(now), s.furthest()); less(most, s.empty) {
		s.empty, did = most, changed
	}
	if !s.sameNumbers(m.leakyState) {
		m.empty = convertLeaky(s, m.leakyState, now)
		return m, changed
	}
	m.empty, m.last = s.empty, s.last
	return m, did
}

// convertLeaky keeps the backlog in requests, in doubles as the stores do, and cuts it to what the new limit can make wait.
func convertLeaky(old, to leakyState, now int64) *big.Rat {
	backlog := unitsUntil(old.empty, now, old.pace)
	span := new(big.Rat).SetFloat64(math.Ceil(backlog * double(to.pace)))
	if to.maxWait >= 0 {
		span = smaller(span, whole(to.maxWait))
	}
	if to.capacity > 0 {
		span = smaller(span, mul(whole(to.capacity), to.pace))
	}
	return add(whole(now), span)
}

func (m *leakyModel) backlog() *big.Rat { return sub(m.empty, whole(m.now)) }

func (m *leakyModel) judge(cost int64, _ string) answer {
	added := mul(whole(cost), m.pace)
	if (m.capacity > 0 && cost > m.capacity) || less(whole(inMicros(headgate.MaxPeriod)), added) {
		return never()
	}
	need := new(big.Rat)
	if m.capacity > 0 {
		need = larger(need, sub(add(m.backlog(), added), mul(whole(m.capacity), m.pace)))
	}
	if m.maxWait >= 0 {
		need = larger(need, sub(m.backlog(), whole(m.maxWait)))
	}
	if need.Sign() > 0 {
		return after(headgate.ReasonLimited, ceil(need))
	}
	return pass
}

func (m *leakyModel) room(cost int64, _ string) int64 {
	if m.maxWait >= 0 && less(whole(m.maxWait), m.backlog()) {
		return 0
	}
	if units, ok := m.left(); ok {
		return min(cost, units)
	}
	return floor(smaller(whole(cost), div(whole(inMicros(headgate.MaxPeriod)), m.pace)))
}

func (m *leakyModel) charge(cost int64, _ string) int64 {
	added := mul(whole(cost), m.pace)
	m.empty = add(m.empty, added)
	if m.capacity == 0 {
		m.last = ceil(added)
	}
	return ceil(m.empty)
}

func (m *leakyModel) refund(amount, mark int64, _ string) bool {
	if m.now >= mark || m.backlog().Sign() <= 0 {
		return false
	}
	m.empty = larger(whole(m.now), sub(m.empty, mul(whole(amount), m.pace)))
	return true
}

func (m *leakyModel) left() (int64, bool) {
	if m.capacity == 0 {
		return 0, false
	}
	free := sub(mul(whole(m.capacity), m.pace), m.backlog())
	return max(0, floor(div(free, m.pace))), true
}

func (m *leakyModel) wait() int64 { return ceil(m.backlog()) }

func (m *leakyModel) reset() int64 { return ceil(m.backlog()) }

func (m *leakyModel) stored() state { return m.leakyState }

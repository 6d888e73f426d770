package oracle

import (
	"math"
	"math/big"

	headgate "github.com/headgate-io/headgate"
)

// tokenState is the time when the bucket will be full, and the numbers it was judged by.
type tokenState struct {
	full  *big.Rat
	pace  *big.Rat
	burst int64
}

func (tokenState) algorithm() headgate.Algorithm { return headgate.AlgTokenBucket }

func (s tokenState) inspect(now int64) (used, idleAt int64) {
	missing := smaller(sub(s.full, whole(now)), s.span())
	return unitsIn(missing, s.pace), ceil(s.full)
}

func (s tokenState) span() *big.Rat { return mul(whole(s.burst), s.pace) }

type tokenModel struct {
	tokenState
	now int64
}

func newToken(old state, l headgate.TokenBucket, now int64) (model, change) {
	pace := paceOf(l.Rate())
	if pace == nil {
		return nothing{}, fresh
	}
	m := &tokenModel{tokenState{whole(now), pace, l.Burst()}, now}
	s, ok := old.(tokenState)
	if !ok {
		return m, fresh
	}
	if s.full.Cmp(whole(now)) <= 0 {
		return m, kept // as if never seen
	}
	did := kept
	if most := add(whole(now), s.span()); less(most, s.full) {
		s.full, did = most, changed
	}
	if s.pace.Cmp(pace) != 0 || s.burst != l.Burst() {
		converted := convertToken(s, m.tokenState, now)
		s.full, did = smaller(converted, add(whole(now), m.span())), changed
	}
	m.full = s.full
	return m, did
}

// convertToken moves a level in tokens from old numbers to new ones, in doubles as the stores do.
func convertToken(old, to tokenState, now int64) *big.Rat {
	debt := unitsUntil(old.full, now, old.pace)
	level := math.Min(float64(old.burst)-debt, float64(to.burst))
	missing := float64(to.burst) - level
	span := math.Ceil(missing * double(to.pace))
	return add(whole(now), new(big.Rat).SetFloat64(span))
}

// need is the time that is missing to a cost.
func (m *tokenModel) need(cost int64) *big.Rat {
	after := add(m.full, mul(whole(cost), m.pace))
	return sub(after, add(whole(m.now), m.span()))
}

func (m *tokenModel) judge(cost int64, _ string) answer {
	if cost > m.burst {
		return never()
	}
	if need := m.need(cost); need.Sign() > 0 {
		return after(headgate.ReasonLimited, ceil(need))
	}
	return pass
}

func (m *tokenModel) room(cost int64, _ string) int64 {
	units, _ := m.left()
	return min(cost, units)
}

func (m *tokenModel) charge(cost int64, _ string) int64 {
	m.full = add(m.full, mul(whole(cost), m.pace))
	return ceil(m.full)
}

func (m *tokenModel) refund(amount, mark int64, _ string) bool {
	if m.now >= mark || m.full.Cmp(whole(m.now)) <= 0 {
		return false
	}
	m.full = larger(whole(m.now), sub(m.full, mul(whole(amount), m.pace)))
	return true
}

func (m *tokenModel) left() (int64, bool) {
	free := sub(add(whole(m.now), m.span()), m.full)
	return floor(div(free, m.pace)), true
}

func (m *tokenModel) wait() int64 { return 0 }

func (m *tokenModel) reset() int64 { return ceil(sub(m.full, whole(m.now))) }

func (m *tokenModel) stored() state { return m.tokenState }

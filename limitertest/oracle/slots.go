package oracle

import (
	"context"

	headgate "github.com/headgate-io/headgate"
)

// slotState is the death of each holder's slot and the end of each tombstone.
type slotState struct {
	deaths, tombs map[string]int64
}

func (slotState) algorithm() headgate.Algorithm { return headgate.AlgConcurrency }

func (s slotState) inspect(now int64) (used, idleAt int64) {
	idleAt = headgate.MinTime
	for _, death := range s.deaths {
		if death > now {
			used++
		}
		idleAt = max(idleAt, death)
	}
	for _, end := range s.tombs {
		idleAt = max(idleAt, end)
	}
	return used, idleAt
}

// slotModel has the slots and tombstones that live.
type slotModel struct {
	slotState
	limit int64
	ttl   int64
	now   int64
}

func newSlots(old state, l headgate.Concurrency, now int64) (model, change) {
	if l.Count() == 0 {
		return nothing{}, fresh
	}
	return openSlots(old, l, now)
}

func openSlots(old state, l headgate.Concurrency, now int64) (*slotModel, change) {
	m := &slotModel{slotState{map[string]int64{}, map[string]int64{}}, l.Count(), inMicros(l.TTL()), now}
	s, ok := old.(slotState)
	if !ok {
		return m, fresh
	}
	did := kept
	for _, kind := range []struct{ from, to map[string]int64 }{{s.deaths, m.deaths}, {s.tombs, m.tombs}} {
		for holder, end := range kind.from {
			if end > now+2*m.ttl {
				end, did = now+m.ttl, changed
			}
			if end > now {
				kind.to[holder] = end
			}
		}
	}
	return m, did
}

func (m *slotModel) judge(_ int64, holder string) answer {
	unknown := headgate.Retry{State: headgate.RetryUnknown}
	switch {
	case m.has(m.tombs, holder):
		return answer{reason: headgate.ReasonGone, retry: unknown}
	case m.has(m.deaths, holder) || int64(len(m.deaths)) < m.limit:
		return pass
	}
	return answer{reason: headgate.ReasonLimited, retry: unknown}
}

func (m *slotModel) has(of map[string]int64, holder string) bool {
	_, ok := of[holder]
	return ok
}

func (m *slotModel) room(cost int64, holder string) int64 {
	if m.judge(cost, holder).allowed {
		return cost
	}
	return 0
}

func (m *slotModel) charge(_ int64, holder string) int64 {
	if !m.has(m.deaths, holder) {
		m.deaths[holder] = m.now + m.ttl
	}
	return m.now
}

func (m *slotModel) refund(_, _ int64, holder string) bool {
	if !m.has(m.deaths, holder) {
		return false
	}
	delete(m.deaths, holder)
	return true
}

func (m *slotModel) left() (int64, bool) { return max(0, m.limit-int64(len(m.deaths))), true }

func (m *slotModel) wait() int64 { return 0 }

func (m *slotModel) reset() int64 {
	latest := m.now
	for _, death := range m.deaths {
		latest = max(latest, death)
	}
	return latest - m.now
}

func (m *slotModel) stored() state {
	if len(m.deaths)+len(m.tombs) == 0 {
		return nil
	}
	return m.slotState
}

// Renew implements [headgate.Slots].
func (v *view) Renew(_ context.Context, c *headgate.Charge) (bool, error) {
	alive := false
	err := v.onSlots(c, func(m *slotModel) bool {
		if alive = m.has(m.deaths, c.Holder); alive {
			m.deaths[c.Holder] = m.now + m.ttl
		}
		return alive
	})
	return alive, err
}

// Release implements [headgate.Slots].
func (v *view) Release(_ context.Context, c *headgate.Charge) error {
	return v.onSlots(c, func(m *slotModel) bool {
		if m.has(m.deaths, c.Holder) {
			delete(m.deaths, c.Holder)
		} else {
			m.tombs[c.Holder] = m.now + m.ttl
		}
		return true
	})
}

// onSlots runs do on the slots of a charge and stores them if it returns true.
func (v *view) onSlots(c *headgate.Charge, do func(*slotModel) bool) error {
	acquire := *c
	acquire.Cost = 1
	if err := headgate.Validate([]headgate.Charge{acquire}); err != nil {
		return err
	}
	l, ok := c.Limit.(headgate.Concurrency)
	if !ok {
		return &headgate.Error{Code: headgate.CodeInvalidLimit, Charge: 0, Message: c.Limit.Algorithm().String() + " has no holders"}
	}
	now, err := v.micros()
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	id := identity{c.Slot, c.Key}
	e := v.entries[id]
	m, _ := openSlots(e.state, l, now)
	if do(m) {
		e.state = m.stored()
		v.put(id, e)
	}
	return nil
}

package leasestore

import (
	"context"
	"sync"

	headgate "github.com/headgate-io/headgate"
)

// maxReturns is how many returns wait at most to be given back; what is beyond is lost.
const maxReturns = 4096

// returned is a number of units that were charged and will not be spent.
type returned struct {
	h     *holding
	limit headgate.Limit
	units int64
	mark  int64
}

// returns are the units that wait to be given back.
type returns struct {
	wake chan struct{}

	mu       sync.Mutex
	list     []returned // guarded by mu
	finished bool       // guarded by mu: no more will come
}

// dispose gives back what is left in leases that were dropped from a holding. The caller holds its lock.
func (s *Store) dispose(h *holding, dropped []*lease) {
	for _, l := range dropped {
		unspent := l.retire()
		h.spent += l.granted - unspent
		s.giveBack(h, l.resetAt, l.mark, unspent)
	}
}

// tidy drops the leases that are dead. The caller holds the lock.
func (s *Store) tidy(h *holding, now int64) {
	for _, l := range h.leases {
		if now >= l.deadline {
			s.dispose(h, h.drop(func(l *lease) bool { return now >= l.deadline }))
			h.pick(1)
			return
		}
	}
}

// relimit makes a limit the one of the holding. Leases of another are given back. The caller holds the lock.
func (s *Store) relimit(h *holding, limit headgate.Limit) {
	if h.limit == limit {
		return
	}
	h.limit = limit
	h.deny(nil)
	h.askAt, h.empty, h.endAt = 0, 0, 0
	s.dispose(h, h.drop(func(*lease) bool { return true }))
	h.more.Store(false)
}

// putBack puts units into the lease that they were taken from. Those for which it has no room, or which it does not take any more,
// go back to the upstream.
func (s *Store) putBack(h *holding, l *lease, units int64) {
	if units -= l.restore(units); units > 0 {
		h.mu.Lock()
		s.giveBack(h, l.resetAt, l.mark, units)
		h.mu.Unlock()
		return
	}
	if h.current.Load() != l {
		h.more.Store(true)
	}
}

// giveBack leaves units to be given back to the upstream, if it would take them. The caller holds the holding's lock.
func (s *Store) giveBack(h *holding, resetAt, mark, units int64) {
	switch {
	case units <= 0:
	case s.now() >= resetAt || !s.returns.add(returned{h: h, limit: h.limit, units: units, mark: mark}):
		s.lose(h, units)
	}
}

// lose counts units as lost.
func (s *Store) lose(h *holding, units int64) {
	if units > 0 {
		s.figures.lost.Add(uint64(units))
		s.cfg.Observer.Returned(h.slot, 0, units)
	}
}

func (r *returns) add(one returned) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) >= maxReturns || r.finished {
		return false
	}
	r.list = append(r.list, one)
	r.signal()
	return true
}

func (r *returns) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// finish ends the loop when nothing is left.
func (r *returns) finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finished = true
	r.signal()
}

// batch takes what one call can give back: each key once, also if it was swept and has another holding by now.
func (r *returns) batch() (list []returned, finished bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := r.list[:0]
	in := map[identity]bool{}
	for _, one := range r.list {
		id := identity{one.h.slot, one.h.key}
		if len(list) == headgate.MaxCharges || in[id] {
			kept = append(kept, one)
			continue
		}
		in[id] = true
		list = append(list, one)
	}
	clear(r.list[len(kept):])
	r.list = kept
	return list, r.finished
}

// returnLoop gives back what comes. What comes during a call goes with the next.
func (s *Store) returnLoop() {
	for {
		list, finished := s.returns.batch()
		switch {
		case len(list) > 0:
			s.refundAll(list)
		case finished:
			return
		default:
			<-s.returns.wake
		}
	}
}

func (s *Store) refundAll(list []returned) {
	charges := make([]headgate.Charge, len(list))
	d := headgate.Decision{Allowed: true, Outcomes: make([]headgate.Outcome, len(list))}
	for i, one := range list {
		charges[i] = headgate.Charge{Slot: one.h.slot, Key: one.h.key, Limit: one.limit, Cost: one.units}
		d.Outcomes[i] = headgate.Outcome{Allowed: true, Receipt: headgate.Receipt{Charged: one.units, Mark: one.mark}}
	}
	ctx, cancel := context.WithTimeout(s.life, s.cfg.Timeout)
	defer cancel()
	refunder, ok := s.upstream.(headgate.Refunder)
	ok = ok && refunder.Refund(ctx, charges, &d) == nil
	for _, one := range list {
		if !ok {
			s.lose(one.h, one.units)
			continue
		}
		s.cameBack(one.h)
		s.figures.refunded.Add(uint64(one.units))
		s.cfg.Observer.Returned(one.h.slot, one.units, 0)
	}
}

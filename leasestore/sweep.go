package leasestore

import "time"

// sweepLoop gives back what died in holdings that nobody asks for, and forgets those that have been idle. It rests twenty times
// as long as it works.
func (s *Store) sweepLoop() {
	least := s.cfg.Life / 4
	timer := time.NewTimer(least)
	defer timer.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-timer.C:
		}
		began := time.Now()
		s.sweep()
		timer.Reset(max(least, 20*time.Since(began)))
	}
}

func (s *Store) sweep() {
	s.table.Range(func(id identity, h *holding) bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		now := s.now()
		s.tidy(h, now)
		if s.idle(h, now) {
			h.gone = true
			s.table.Delete(id)
			s.front.forget(h)
			s.keys.Add(-1)
		}
		return !s.closed.Load()
	})
}

// idle tells whether nothing is known of a key that is worth keeping. The caller holds the lock.
func (s *Store) idle(h *holding, now int64) bool {
	if len(h.leases) > 0 || h.call != nil || h.waiting > 0 {
		return false
	}
	if r := h.refusal.Load(); r != nil && now < r.until {
		return false
	}
	return now-h.used > 2*int64(s.cfg.Life)
}

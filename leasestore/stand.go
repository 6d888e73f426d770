package leasestore

import headgate "github.com/headgate-io/headgate"

// stand finds out where one charge stands. It reports false if its holding is no longer that of its key.
func (t *taking) stand(w *want, claim bool) bool {
	h, s := w.h, t.s
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone {
		return false
	}
	now := s.now()
	h.used = now
	s.relimit(h, w.limit)
	s.tidy(h, now)
	w.step = strict
	switch {
	case w.c.Mode == headgate.Check:
		t.check(w, now)
	case t.serve(w, now) || w.c.Mode == headgate.Settle || t.refuse(w, now) || !claim:
	case h.failed != nil && now < h.failedUntil:
		w.step, w.err = failed, h.failed
	case h.call != nil:
		w.step, w.call = waits, h.call
	default:
		t.claim(w, now)
	}
	return true
}

// check judges a charge that takes nothing by what is in hand.
func (t *taking) check(w *want, now int64) {
	if l := w.h.current.Load(); l != nil && w.h.held() >= w.c.Cost {
		w.step, w.from, w.remaining = seen, l, w.h.remaining(l, l.held())
		return
	}
	t.refuse(w, now)
}

func (t *taking) serve(w *want, now int64) bool {
	from, remaining := w.h.spend(w.c.Cost)
	if from == nil {
		return false
	}
	w.step, w.from, w.remaining = served, from, remaining
	t.s.arm(w.h, now)
	return true
}

func (t *taking) refuse(w *want, now int64) bool {
	r, held := w.h.refusal.Load(), w.h.held()
	if r == nil || !r.denies(w.limit, w.c.Cost, held, now) {
		return false
	}
	w.step, w.refusal, w.held = denied, r, held
	if !w.counted && w.c.Mode == headgate.Pay {
		w.counted = true
		r.denied.Add(w.c.Cost)
	}
	return true
}

// claim decides how the upstream is asked for a charge, and marks the key so that others wait for the answer.
func (t *taking) claim(w *want, now int64) {
	h, cfg, took := w.h, &t.s.cfg, t.s.callTime()
	if length := lengthOf(w.limit); length > 0 && took > length/2 {
		return // leases would be dead when they come
	}
	held := h.held()
	recent := h.recent(now, cfg.Ahead) + w.c.Cost
	w.resets = h.resets
	switch {
	case now < h.askAt:
		w.step, w.need = looks, max(1, w.c.Cost-held)
	case recent == w.c.Cost && held == 0:
		w.step = cold
	default:
		w.step = asks
		w.need = max(h.target(now, recent, cfg.Ahead, took), w.c.Cost+h.waiting) - held
		w.need = min(max(w.need, 1), sizeOf(w.limit))
	}
	if t.call == nil {
		t.call = &call{done: make(chan struct{})}
	}
	h.call = t.call
}

// arm sets the mark of the current lease below which more is charged, once. The caller holds the lock.
func (s *Store) arm(h *holding, now int64) {
	l := h.current.Load()
	if l == nil || l == h.armed {
		return
	}
	h.armed = l
	l.low.Store(threshold(h.recent(now, s.cfg.Ahead), s.cfg.Ahead, s.callTime()) - (h.held() - l.held()))
}

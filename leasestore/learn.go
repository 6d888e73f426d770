package leasestore

import headgate "github.com/headgate-io/headgate"

// answer is what the upstream has said of one charge, and when it was asked and answered.
type answer struct {
	*headgate.Outcome
	sent, got int64
}

// resetAt is when the state is as if never used, at the latest.
func (a *answer) resetAt() int64 { return a.got + int64(a.ResetAfter) }

// noteGrant draws the conclusions from what was granted: if it is less than was asked for, the limit is at its end, and the next
// call for units waits.
func (s *Store) noteGrant(h *holding, w *want, granted int64, a *answer) {
	if granted >= w.need {
		h.askAt, h.empty = 0, 0
		h.deny(nil)
		return
	}
	h.askAt = a.sent + int64(s.cfg.Gap)
	if granted > 0 {
		h.empty = 0
	}
	if !foretells(w.limit) {
		h.deny(nil) // the time of a denial is not known: who needs it must look
		return
	}
	r := newRefusal(w.limit, a.Remaining+1, a)
	wait := int64(waitFor(w.limit, a.ResetAfter, r.need))
	if granted == 0 {
		h.askAt = s.pause(h, a.sent, wait)
	}
	r.until, r.retryAt = h.askAt, a.got+wait
	h.deny(r)
}

// looked keeps what a look has found: the time of the denial, or that there are units by now, which the next call may fetch, however
// long the pause was to be.
func (s *Store) looked(h *holding, w *want, a *answer) {
	if a.Allowed {
		h.askAt, h.empty = min(h.askAt, a.sent+int64(s.cfg.Gap)), 0
	}
	r := newRefusal(w.limit, w.need, a)
	r.until, r.retryAt = h.askAt, h.askAt
	if !a.Allowed {
		r.retryAt = a.got + int64(a.RetryAfter.After)
		r.until = s.pause(h, a.sent, int64(a.RetryAfter.After))
		h.askAt = r.until
	}
	h.deny(r)
}

// pause is when the next call comes for a key that has nothing left, whose denial was asked for at a time and lasts for wait: after
// Gap at first, then twice as long each time, until the denial is over at the latest. So what comes back early, because others
// refund it, is found after a time in proportion to the denial's, and a key that is denied all day costs few calls. Many denials
// that were asked for at once are one.
func (s *Store) pause(h *holding, sent, wait int64) int64 {
	gap := int64(s.cfg.Gap)
	if r := h.refusal.Load(); r != nil && sent < r.until {
		return max(r.until, sent+gap)
	}
	pause := gap << min(h.empty, 30)
	h.empty++
	return sent + max(gap, min(wait, pause))
}

// cameBack notes that units of a key were given back to the upstream: however long the pause was to be, the next call may come
// after Gap.
func (s *Store) cameBack(h *holding) {
	h.mu.Lock()
	defer h.mu.Unlock()
	soon := s.now() + int64(s.cfg.Gap)
	h.askAt, h.empty = min(h.askAt, soon), 0
	if r := h.refusal.Load(); r != nil && r.until > soon {
		h.deny(r.ending(soon))
	}
}

// noteAnswer keeps what the answer to one charge says of the key. It reports whether the key has been asked for more than this
// lately.
func (s *Store) noteAnswer(w *want, a *answer) (busy bool) {
	h := w.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.limit != w.limit || h.resets != w.resets && w.step == cold {
		return false
	}
	if end, ok := ends(w.limit, a.Outcome); ok && a.Receipt.Charged > 0 {
		h.endAt = a.sent + int64(end)
	}
	units := min(w.c.Cost, sizeOf(w.limit)) // a settling cost may be greater
	if w.c.Mode != headgate.Check && !w.counted {
		w.counted = true
		h.asked += units
	}
	switch {
	case a.Allowed && w.step == cold:
		h.empty, h.askAt = 0, 0
		h.deny(nil)
	case a.Reason == headgate.ReasonLimited && a.RetryAfter.State == headgate.RetryAfter:
		s.noteDenial(h, w, a)
	}
	return h.recent(a.got, s.cfg.Ahead) > units
}

// makeUp takes from the leases what a settling charge did not get at the upstream.
func (s *Store) makeUp(w *want, o *headgate.Outcome) {
	h := w.h
	h.mu.Lock()
	defer h.mu.Unlock()
	s.tidy(h, s.now())
	short := min(w.c.Cost-o.Receipt.Charged, h.held())
	if short <= 0 || h.limit != w.limit {
		return
	}
	from, _ := h.spend(short)
	switch {
	case from == nil:
		return
	case o.Receipt.Charged == 0:
		o.Receipt = headgate.Receipt{Charged: short, Mark: from.mark}
	case o.Receipt.Mark == from.mark:
		o.Receipt.Charged += short
	}
	o.Remaining = h.held() // the upstream has nothing left
}

// noteDenial keeps a denial, by which this and greater costs are denied without a call for a while.
func (s *Store) noteDenial(h *holding, w *want, a *answer) {
	wait := int64(a.RetryAfter.After)
	r := newRefusal(w.limit, w.c.Cost, a)
	r.retryAt = a.got + wait
	if foretells(w.limit) {
		r.need = a.Remaining + 1
		r.retryAt = a.got + int64(waitFor(w.limit, a.ResetAfter, r.need))
		wait = r.retryAt - a.got
	}
	r.until = s.pause(h, a.sent, wait)
	if old := h.refusal.Load(); old == nil || a.sent >= old.until || r.need < old.need {
		h.deny(r)
	}
}

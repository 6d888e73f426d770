package leasestore

import (
	"context"
	"errors"

	headgate "github.com/headgate-io/headgate"
)

// rounds is how often a take tries to be served from leases: each time it waits for a call or makes one. After that its charges
// go to the upstream as they are, so that it ends.
const rounds = 5

// step is where a charge stands within a take.
type step uint8

const (
	strict step = iota // it goes to the upstream as it is
	cold               // the same, and others wait for what comes of it: a key that was not asked for lately
	served             // spent from a lease
	seen               // a check that what is in hand passes
	denied             // known to be denied
	failed             // the upstream has just failed
	waits              // a call is under way
	asks               // a call for units is to be made
	looks              // the time of its denial is to be asked for
)

// want is one charge of a take.
type want struct {
	c    *headgate.Charge
	h    *holding // nil if the charge cannot be leased, or no more keys can
	step step
	// counted: the cost is in the demand already.
	counted bool
	from    *lease // of served and seen
	// remaining is what served and seen have left, here and at the upstream.
	remaining int64
	refusal   *refusal // of denied
	held      int64
	call      *call // of waits
	err       error // of failed
	need      int64 // of asks and looks
	limit     headgate.Limit
	resets    uint32
}

// units is how many a call asks for.
func (w *want) units() int64 {
	if w.step == asks {
		return w.need
	}
	return 0
}

// taking is a take that is not served at once.
type taking struct {
	s     *Store
	wants []want
	// call is what the take has claimed the keys for that it will call for, nil if it has not.
	call *call
}

func (s *Store) takeAll(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	if err := s.admit(ctx); err != nil {
		return err
	}
	if err := headgate.Validate(charges); err != nil {
		return err
	}
	if len(charges) > 1 && s.takeFew(charges, d) {
		return nil
	}
	t, _ := s.takings.Get().(*taking)
	t.s = s
	for i := range charges {
		w := want{c: &charges[i]}
		if leasable(w.c) {
			w.limit, w.h = w.c.Limit, s.hold(w.c.Slot, w.c.Key)
		}
		t.wants = append(t.wants, w)
	}
	err := t.run(ctx, charges, d)
	clear(t.wants)
	t.wants = t.wants[:0]
	s.takings.Put(t)
	return err
}

// admit refuses calls that must not begin.
func (s *Store) admit(ctx context.Context) error {
	if ctx.Err() != nil {
		return newError(headgate.CodeTimeout, context.Cause(ctx), "not begun")
	}
	if s.closed.Load() {
		return newError(headgate.CodeClosed, nil, "the store is closed")
	}
	return nil
}

func (t *taking) run(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	for round := 1; ; round++ {
		worst, at := t.look(round < rounds)
		var err error
		switch at {
		case denied:
			t.undo()
			t.release(nil)
			t.write(charges, d)
			return nil
		case failed:
			t.undo()
			t.release(nil)
			return worst.err
		case waits:
			t.undo()
			t.release(nil)
			err = t.s.await(ctx, worst.call, worst)
		case asks, looks:
			t.undo()
			if c := t.launch(); c != nil {
				err = t.s.await(ctx, c, worst)
				break
			}
			t.release(nil)
			round = rounds // no call for units can be made now
		default:
			return t.settle(ctx, charges, d)
		}
		if err != nil {
			return err
		}
	}
}

// look finds out where the charges stand and returns the one that decides what is to be done now, and where it stands. Units of
// those that are served are in the take's hand then. Unless it may claim keys for calls, charges that need one go to the upstream
// as they are.
func (t *taking) look(claim bool) (worst *want, at step) {
	for i := range t.wants {
		w := &t.wants[i]
		if w.h == nil {
			continue
		}
		for !t.stand(w, claim) { // it was swept meanwhile
			t.s.front.forget(w.h)
			if w.h = t.s.hold(w.c.Slot, w.c.Key); w.h == nil {
				w.step = strict
				break
			}
		}
		if w.step > at {
			worst, at = w, w.step
		}
		claim = claim && (w.step < denied || w.step > waits)
	}
	for _, ends := range [...]step{denied, failed} {
		for i := range t.wants {
			if t.wants[i].step == ends {
				return &t.wants[i], ends
			}
		}
	}
	return worst, at
}

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

// undo puts back what is in the take's hand.
func (t *taking) undo() {
	for i := range t.wants {
		w := &t.wants[i]
		if w.step != served {
			continue
		}
		t.s.putBack(w.h, w.from, w.c.Cost)
		w.remaining += w.c.Cost
		w.step = seen
	}
}

// ask is a take of a part of the charges, kept for the next one.
type ask struct {
	charges []headgate.Charge
	d       headgate.Decision
}

func (a *ask) reset() {
	clear(a.charges)
	a.charges = a.charges[:0]
}

// settle ends a take: what is not in hand is asked of the upstream in one take, and if that is denied, or fails, what is in hand
// goes back.
func (t *taking) settle(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	n := 0
	for i := range t.wants {
		if t.wants[i].step <= cold {
			n++
		}
	}
	if n == 0 {
		t.write(charges, d)
		return nil
	}
	if n < len(charges) {
		return t.settleRest(ctx, charges, d)
	}
	sent := t.s.now()
	if err := t.s.upstream.Take(ctx, charges, d); err != nil {
		return t.broken(ctx, err)
	}
	t.conclude(d, sent)
	return nil
}

// settleRest is settle where a part of the charges is in hand.
func (t *taking) settleRest(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	a, _ := t.s.asks.Get().(*ask)
	defer t.s.asks.Put(a)
	defer a.reset()
	for i := range t.wants {
		if t.wants[i].step <= cold {
			a.charges = append(a.charges, charges[i])
		}
	}
	sent := t.s.now()
	if err := t.s.upstream.Take(ctx, a.charges, &a.d); err != nil {
		t.undo()
		return t.broken(ctx, t.original(err))
	}
	if !a.d.Allowed {
		t.undo()
	}
	t.write(charges, d)
	n := 0
	for i := range t.wants {
		if t.wants[i].step <= cold {
			d.Outcomes[i] = a.d.Outcomes[n]
			n++
		}
	}
	d.Conclude(charges)
	t.conclude(d, sent)
	return nil
}

// broken ends a take that the upstream failed. If it is only that the caller's own time was over, those who wait ask themselves.
func (t *taking) broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		t.release(nil)
	} else {
		t.end(err)
	}
	return err
}

// original is an error of a part of the charges as one of all.
func (t *taking) original(err error) error {
	var e *headgate.Error
	if !errors.As(err, &e) || e.Charge < 0 {
		return err
	}
	n := 0
	for i := range t.wants {
		if t.wants[i].step > cold {
			continue
		}
		if n == e.Charge {
			moved := *e
			moved.Charge = i
			return &moved
		}
		n++
	}
	return err
}

// write makes a decision of what is in hand and what is known. A charge that was not asked for, because another is denied, has an
// outcome that allows and tells nothing.
func (t *taking) write(charges []headgate.Charge, d *headgate.Decision) {
	d.Reset(len(charges))
	now := t.s.now()
	for i := range t.wants {
		w, o := &t.wants[i], &d.Outcomes[i]
		switch w.step {
		case served:
			w.from.outcome(w.c.Cost, w.remaining, now, o)
		case seen:
			w.from.outcome(0, w.remaining, now, o)
			o.Receipt = headgate.Receipt{}
		case denied:
			w.refusal.outcome(w.c.Cost, w.held, now, o)
		default:
			o.Allowed = true
		}
	}
	d.Conclude(charges)
}

// conclude draws the conclusions from what the upstream has answered to charges as they are, and wakes those who wait for it.
func (t *taking) conclude(d *headgate.Decision, sent int64) {
	got := t.s.now()
	t.s.learn(got - sent)
	for i := range t.wants {
		w, o := &t.wants[i], &d.Outcomes[i]
		if w.h == nil || w.step > cold {
			continue
		}
		if t.s.noteAnswer(w, o, sent, got) && w.c.Mode == headgate.Settle && d.Allowed {
			t.s.makeUp(w, o)
			t.s.refill(w.h)
		}
	}
	t.release(nil)
}

// noteAnswer keeps what the answer to one charge says of the key. It reports whether the key has been asked for more than this
// lately.
func (s *Store) noteAnswer(w *want, o *headgate.Outcome, sent, got int64) (busy bool) {
	h := w.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.limit != w.limit || h.resets != w.resets && w.step == cold {
		return false
	}
	if end, ok := ends(w.limit, o); ok && o.Receipt.Charged > 0 {
		h.endAt = sent + int64(end)
	}
	if w.c.Mode != headgate.Check && !w.counted {
		w.counted = true
		h.asked += w.c.Cost
	}
	switch {
	case o.Allowed && w.step == cold:
		h.empty, h.askAt = 0, 0
		h.deny(nil)
	case o.Reason == headgate.ReasonLimited && o.RetryAfter.State == headgate.RetryAfter:
		s.noteDenial(h, w, o, sent, got)
	}
	return h.recent(got, s.cfg.Ahead) > w.c.Cost
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
func (s *Store) noteDenial(h *holding, w *want, o *headgate.Outcome, sent, got int64) {
	wait := int64(o.RetryAfter.After)
	r := &refusal{limit: w.limit, need: w.c.Cost, remaining: o.Remaining, told: got, resetAt: got + int64(o.ResetAfter), retryAt: got + wait}
	if foretells(w.limit) {
		r.need = o.Remaining + 1
		r.retryAt = got + int64(waitFor(w.limit, o.ResetAfter, r.need))
		wait = r.retryAt - got
	}
	r.until = sent + s.pause(h, wait)
	h.deny(r)
}

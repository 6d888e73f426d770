package leasestore

import (
	"context"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// call is a call of the upstream that is under way for one key, or for several of one take.
type call struct {
	done chan struct{}
	// err is what it failed with, if that is the store's fault; to be read once done is closed.
	err error
}

// await waits for a call, and returns its error. It gives up when ctx is over; the call goes on, and what it brings is for
// others.
func (s *Store) await(ctx context.Context, c *call, w *want) error {
	if s.waiting.Add(1) > int64(s.cfg.MaxWaiting) {
		s.waiting.Add(-1)
		return newError(headgate.CodeOverloaded, nil, "too many takes wait for units")
	}
	defer s.waiting.Add(-1)
	w.h.wait(w.c.Cost)
	defer w.h.wait(-w.c.Cost)
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return newError(headgate.CodeTimeout, context.Cause(ctx), "the time was over before the call for units")
	}
}

// wait notes that so many units are waited for.
func (h *holding) wait(units int64) {
	h.mu.Lock()
	h.waiting += units
	h.mu.Unlock()
}

// release ends the claims of a take on its keys, and wakes those who wait for its call.
func (t *taking) release(err error) {
	if t.call == nil {
		return
	}
	for i := range t.wants {
		if h := t.wants[i].h; h != nil {
			h.settle(t.call)
		}
	}
	t.call.err = err
	close(t.call.done)
	t.call = nil
}

// settle ends a call of the key, if that is the one under way.
func (h *holding) settle(c *call) {
	h.mu.Lock()
	if h.call == c {
		h.call = nil
	}
	h.mu.Unlock()
}

// launch starts the call that a take has claimed its keys for, and returns it; nil if it must not. The call runs on its own, so
// that a caller who has little time loses no units but his own. Where it looks for the time of a denial it asks for no units: a
// check that is denied would deny them, and the take is denied anyway.
func (t *taking) launch(worst step) *call {
	if !t.s.reserve() {
		return nil
	}
	c := t.call
	own := &taking{s: t.s, call: c, wants: make([]want, 0, len(t.wants))}
	for i := range t.wants {
		switch w := &t.wants[i]; {
		case w.step == worst:
			own.wants = append(own.wants, want{h: w.h, step: w.step, need: w.need, limit: w.limit, resets: w.resets})
		case w.h != nil:
			w.h.settle(c)
		}
	}
	t.call = nil
	go own.fetch()
	return c
}

// reserve makes room for a call in the background; fetch frees it.
func (s *Store) reserve() bool {
	s.begin.Lock()
	defer s.begin.Unlock()
	if s.closed.Load() {
		return false
	}
	select {
	case s.refills <- struct{}{}:
		s.calls.Add(1)
		return true
	default:
		return false
	}
}

// fetch asks the upstream for the units that the wants of a call need, and for the times of the denials of those that must not
// ask now. Units that come are left in the keys' holdings, for whoever is first.
func (t *taking) fetch() {
	s := t.s
	defer s.calls.Done()
	defer func() { <-s.refills }()
	ctx, cancel := context.WithTimeout(s.life, s.cfg.Timeout)
	defer cancel()
	charges := make([]headgate.Charge, len(t.wants))
	for i := range t.wants {
		w := &t.wants[i]
		charges[i] = headgate.Charge{Slot: w.h.slot, Key: w.h.key, Limit: w.limit, Cost: w.need, Mode: headgate.Settle}
		if w.step == looks {
			charges[i].Mode = headgate.Check
		}
	}
	var d headgate.Decision
	sent := s.now()
	err := s.upstream.Take(ctx, charges, &d)
	got := s.now()
	if err == nil && len(d.Outcomes) != len(charges) {
		err = newError(headgate.CodeInternal, nil, "the upstream has answered to other charges than it was asked")
	}
	if err == nil {
		s.learn(got - sent)
	}
	for i := range t.wants {
		w := &t.wants[i]
		if err != nil {
			s.report(w, 0, got-sent, string(headgate.CodeOf(err)))
			continue
		}
		s.deliver(w, answer{&d.Outcomes[i], sent, got})
	}
	t.end(err)
}

// report tells of what became of a want.
func (s *Store) report(w *want, granted, took int64, code string) {
	s.figures.calls.Add(1)
	if code != "" {
		s.figures.failed.Add(1)
	}
	s.figures.asked.Add(uint64(w.units()))
	s.figures.granted.Add(uint64(granted))
	s.cfg.Observer.Leased(w.h.slot, w.units(), granted, time.Duration(took), code)
}

// end ends a call. The error of one that the upstream failed goes to all who wait for it, and to those who come within Gap.
func (t *taking) end(err error) {
	if passing(err) {
		until := t.s.now() + int64(t.s.cfg.Gap)
		for i := range t.wants {
			if h := t.wants[i].h; h != nil {
				h.fail(t.call, err, until)
			}
		}
	}
	t.release(err)
}

// fail keeps the error of a call, if that is the one under way.
func (h *holding) fail(c *call, err error, until int64) {
	h.mu.Lock()
	if h.call == c && c != nil {
		h.failed, h.failedUntil = err, until
	}
	h.mu.Unlock()
}

// passing tells whether an error is of the upstream's health, and not of what it was asked.
func passing(err error) bool {
	switch headgate.CodeOf(err) {
	case headgate.CodeUnavailable, headgate.CodeTimeout, headgate.CodeIndeterminate, headgate.CodeOverloaded, headgate.CodeClosed:
		return true
	}
	return false
}

// learn takes a call's time into the mean.
func (s *Store) learn(took int64) {
	old := s.took.Load()
	s.took.CompareAndSwap(old, old+(took-old)/8) // one of several at once is enough
}

// callTime is how long a call takes, for the purpose of asking in time.
func (s *Store) callTime() time.Duration {
	return min(time.Duration(s.took.Load()), 500*time.Millisecond)
}

// deliver brings the answer of a call home: the units as a lease, and what it says about denials.
func (s *Store) deliver(w *want, a answer) {
	h := w.h
	granted := min(a.Receipt.Charged, w.units())
	s.report(w, granted, a.got-a.sent, "")
	h.mu.Lock()
	defer h.mu.Unlock()
	l := newLease(w.limit, granted, &a)
	end, ends := ends(w.limit, a.Outcome)
	if granted > 0 {
		l.deadline = a.sent + int64(s.cfg.Life)
		if ends {
			h.endAt = a.sent + int64(end)
			l.deadline = min(l.deadline, h.endAt)
		}
	}
	switch {
	case h.resets != w.resets:
		s.lose(h, granted) // what they were charged to is erased
		return
	case h.limit != w.limit || s.closed.Load():
		s.giveBack(h, l.resetAt, l.mark, granted)
		return
	case granted > 0:
		h.upstream = a.Remaining
		s.stock(h, l)
	}
	if w.step == looks {
		s.looked(h, w, &a)
	} else {
		s.noteGrant(h, w, granted, &a)
	}
}

func newLease(limit headgate.Limit, granted int64, a *answer) *lease {
	l := &lease{limit: limit, granted: granted, resetAt: a.resetAt(), mark: a.Receipt.Mark}
	l.left.Store(granted)
	l.low.Store(-1)
	return l
}

// stock adds a lease to the holding. If there are too many, a spent one is forgotten, or else the oldest given back.
func (s *Store) stock(h *holding, l *lease) {
	if len(h.leases) >= maxLeases {
		oldest := h.leases[0]
		for _, old := range h.leases {
			if old.held() == 0 {
				oldest = old
				break
			}
		}
		s.dispose(h, h.drop(func(old *lease) bool { return old == oldest }))
	}
	h.leases = append(h.leases, l)
	h.pick(1)
}

// refill starts a call in the background if too few units are in hand.
func (s *Store) refill(h *holding) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := s.now()
	s.tidy(h, now)
	if h.gone || h.call != nil || now < h.askAt || h.limit == nil {
		return
	}
	took := s.callTime()
	recent := h.recent(now, s.cfg.Ahead)
	held := h.held()
	if few := threshold(recent, s.cfg.Ahead, took); held >= few {
		if l := h.current.Load(); l != nil {
			l.low.Store(few - (held - l.held()))
		}
		return
	}
	need := min(h.target(now, recent, s.cfg.Ahead, took)-held, sizeOf(h.limit))
	if need <= 0 {
		return
	}
	if !s.reserve() {
		return
	}
	t := &taking{s: s, call: &call{done: make(chan struct{})}}
	t.wants = []want{{h: h, step: asks, need: need, limit: h.limit, resets: h.resets}}
	h.call = t.call
	go t.fetch()
}

package policy

import (
	"context"
	"sync"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// Bounds of the time between renewals, and of one call.
const (
	minRenewal  = 5 * time.Millisecond
	renewalCall = time.Second
)

// hold keeps the slots that one request occupies: it renews them while the request runs and frees them when it is over.
type hold struct {
	slots    []heldSlot
	observer Observer
	every    time.Duration
	until    time.Time
	ctx      context.Context // of the request: when it ends, nothing is renewed

	mu    sync.Mutex
	timer *time.Timer
	done  bool
}

type heldSlot struct {
	charge headgate.Charge
	store  headgate.Slots
	gone   bool // died, or may never have been: it is only released
}

// hold sets v.Done if the request occupies slots, or is charged when its answer is known. After an uncertain answer the store
// may hold slots too.
func (e *Engine) hold(s *scratch, v *httpverdict.Verdict) {
	var h *hold
	for i := range s.groups {
		for c := s.groups[i].from; c < s.groups[i].to; c++ {
			if s.charges[c].Holder != "" {
				h = e.holdSlot(s, &s.groups[i], c, h)
			}
		}
	}
	later := e.settleLater(s, v)
	switch {
	case h != nil && later != nil:
		v.Done = func(ctx context.Context, res httpverdict.Result) {
			// In this order a limit of one in flight makes a charge for answers exact: who gets the slot sees the charge.
			later.settle(ctx, res)
			h.release(ctx, res)
		}
	case h != nil:
		v.Done = h.release
	case later != nil:
		v.Done = later.settle
	}
	if h != nil && h.every > 0 && !e.still {
		h.mu.Lock()
		h.timer = time.AfterFunc(h.every, h.renew)
		h.mu.Unlock()
	}
}

// holdSlot adds the slots that a charge may occupy, and makes the hold with the first.
func (e *Engine) holdSlot(s *scratch, g *group, i int, h *hold) *hold {
	taken := g.decided != nil && i < s.asked && s.decision.Outcomes[i].Receipt.Charged > 0
	if !taken && g.doubtful == [2]bool{} {
		return h
	}
	if h == nil {
		h = &hold{observer: e.cfg.Observer, ctx: s.ctx, until: time.Now().Add(e.cfg.MaxHold)}
	}
	if taken {
		h.add(s.charges[i], g.decided, false)
	}
	for of, limiter := range [...]headgate.Limiter{ofStore: e.limiters[g.store], ofFallback: e.cfg.Fallback} {
		if g.doubtful[of] && !(taken && g.fellBack == (of == ofFallback)) {
			h.add(s.charges[i], limiter, true)
		}
	}
	return h
}

func (h *hold) add(c headgate.Charge, l headgate.Limiter, gone bool) {
	store, ok := l.(headgate.Slots)
	if !ok {
		return // NewEngine has checked: it cannot be
	}
	h.slots = append(h.slots, heldSlot{c, store, gone})
	if limit, ok := c.Limit.(headgate.Concurrency); ok && !gone {
		every := max(limit.TTL()/3, minRenewal)
		if h.every == 0 || every < h.every {
			h.every = every
		}
	}
}

// renew runs on the timer's goroutine, one at a time: the timer is set again only at its end.
func (h *hold) renew() {
	if h.ctx.Err() != nil || time.Now().After(h.until) {
		return
	}
	alive := false
	for i := range h.slots {
		if slot := &h.slots[i]; !slot.gone && !h.isDone() {
			slot.gone = !h.renewSlot(slot)
			alive = alive || !slot.gone
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if alive && !h.done {
		h.timer.Reset(h.every)
	}
}

// renewSlot reports whether the slot may still be there: after a failed call nobody knows, and the next one may be in time.
func (h *hold) renewSlot(slot *heldSlot) bool {
	ctx, cancel := context.WithTimeout(h.ctx, renewalCall)
	defer cancel()
	alive, err := slot.store.Renew(ctx, &slot.charge)
	if err != nil {
		h.failed(err)
		return true
	}
	return alive
}

func (h *hold) isDone() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.done
}

// release frees the slots, once. A slot that cannot be freed dies at its ttl.
func (h *hold) release(ctx context.Context, _ httpverdict.Result) {
	h.mu.Lock()
	if h.done {
		h.mu.Unlock()
		return
	}
	h.done = true
	if h.timer != nil {
		h.timer.Stop()
	}
	h.mu.Unlock()
	ctx, cancel := outliving(ctx)
	defer cancel()
	for i := range h.slots {
		if err := h.slots[i].store.Release(ctx, &h.slots[i].charge); err != nil {
			h.failed(err)
		}
	}
}

func (h *hold) failed(err error) {
	if h.observer != nil {
		h.observer.StoreFailed(string(codeOf(err)), false)
	}
}

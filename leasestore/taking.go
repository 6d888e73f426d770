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
			if c := t.launch(at); c != nil {
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
		busy := t.s.noteAnswer(w, &answer{o, sent, got})
		if w.c.Mode == headgate.Settle && d.Allowed {
			t.s.makeUp(w, o)
			if busy {
				t.s.refill(w.h)
			}
		}
	}
	t.release(nil)
}

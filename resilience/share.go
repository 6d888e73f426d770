package resilience

import (
	"context"
	"sync"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// Share is a [headgate.Limiter] over a local one that judges by the n-th part of every limit, n being how many instances live:
// what is left of limits that a fleet shares when the store that it shares them in is gone. See [Divide].
//
// It has all abilities of a limiter and passes them on; one that the local limiter lacks is answered with
// headgate.CodeUnsupported. When n changes, so do the limits, and states stay as they do when any limit changes. It is safe for
// concurrent use, and a take allocates nothing once its limits have been seen.
type Share struct {
	local headgate.Limiter
	live  func() int
	parts *parts
	lists *sync.Pool
}

var _ abilities = (*Share)(nil)

// abilities is all that a limiter can do.
type abilities interface {
	headgate.Limiter
	headgate.Refunder
	headgate.Slots
	headgate.Resetter
	headgate.Inspector
	headgate.Timed
}

// NewShare returns the share of one instance. live says how many there are and is called for every take: [Fleet.Live] is one.
// Nil, or an answer below 1, stands for 1. The local limiter stays the caller's to close.
func NewShare(local headgate.Limiter, live func() int) *Share {
	if live == nil {
		live = func() int { return 1 }
	}
	return &Share{local: local, live: live, parts: &parts{}, lists: &sync.Pool{New: func() any { return new(list) }}}
}

// few is the number of charges that a list has room for from the start.
const few = 8

// list is room for the charges of one call with their limits divided. It is pooled: a slice on the stack would escape to the
// local limiter. It keeps its charges until it is used again or the pool is emptied.
type list struct {
	// last are the divisions that the first charges of the last call met, which those of the next often meet as well.
	last  [few]*divided
	more  []headgate.Charge // instead of first, of many
	first [few]headgate.Charge
}

// divide writes the charges with the n-th parts of their limits into the list.
func (l *list) divide(p *parts, charges []headgate.Charge, n int) []headgate.Charge {
	if len(charges) > few {
		l.more = append(l.more[:0], charges...)
		for i := range l.more {
			l.more[i].Limit = p.of(l.more[i].Limit, n)
		}
		return l.more
	}
	for i := range charges {
		c := &l.first[i]
		*c = charges[i]
		if !l.last[i].is(c.Limit, n) {
			l.last[i] = p.find(c.Limit, n)
		}
		c.Limit = l.last[i].part
	}
	return l.first[:len(charges)]
}

// back gives a list back.
func (s *Share) back(l *list) {
	if cap(l.more) <= headgate.MaxCharges {
		s.lists.Put(l)
	}
}

// Take implements [headgate.Limiter].
func (s *Share) Take(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	n := s.live()
	if n <= 1 {
		return s.local.Take(ctx, charges, d)
	}
	l := s.lists.Get().(*list)
	own := l.first[:1]
	if len(charges) == 1 { // as most are. The limit is read where it was written long ago, not from the copy just made
		c, known := &charges[0], l.last[0]
		if !known.is(c.Limit, n) {
			known = s.parts.find(c.Limit, n)
			l.last[0] = known
		}
		l.first[0] = *c
		l.first[0].Limit = known.part
	} else {
		own = l.divide(s.parts, charges, n)
	}
	err := s.local.Take(ctx, own, d)
	s.back(l)
	return err
}

// Refund implements [headgate.Refunder].
func (s *Share) Refund(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	refunder, ok := s.local.(headgate.Refunder)
	if !ok {
		return unsupported("refund")
	}
	l := s.lists.Get().(*list)
	defer s.back(l)
	return refunder.Refund(ctx, l.divide(s.parts, charges, s.live()), d)
}

// Renew implements [headgate.Slots].
func (s *Share) Renew(ctx context.Context, c *headgate.Charge) (alive bool, err error) {
	slots, ok := s.local.(headgate.Slots)
	if !ok {
		return false, unsupported("renew a slot")
	}
	own := *c
	own.Limit = s.parts.of(c.Limit, s.live())
	return slots.Renew(ctx, &own)
}

// Release implements [headgate.Slots].
func (s *Share) Release(ctx context.Context, c *headgate.Charge) error {
	slots, ok := s.local.(headgate.Slots)
	if !ok {
		return unsupported("release a slot")
	}
	own := *c
	own.Limit = s.parts.of(c.Limit, s.live())
	return slots.Release(ctx, &own)
}

// Reset implements [headgate.Resetter].
func (s *Share) Reset(ctx context.Context, slot, key string) error {
	resetter, ok := s.local.(headgate.Resetter)
	if !ok {
		return unsupported("reset a key")
	}
	return resetter.Reset(ctx, slot, key)
}

// Inspect implements [headgate.Inspector].
func (s *Share) Inspect(ctx context.Context, slot, key string) (headgate.Inspection, error) {
	inspector, ok := s.local.(headgate.Inspector)
	if !ok {
		return headgate.Inspection{}, unsupported("look at a key")
	}
	return inspector.Inspect(ctx, slot, key)
}

// At implements [headgate.Timed]. Without a local limiter that can be told the time, the view refuses every take.
func (s *Share) At(now time.Time) headgate.Limiter {
	timed, ok := s.local.(headgate.Timed)
	if !ok {
		return timeless{}
	}
	view := *s
	view.local = timed.At(now)
	return &view
}

// timeless stands for the view of a limiter that cannot be told the time.
type timeless struct{}

func (timeless) Take(_ context.Context, _ []headgate.Charge, d *headgate.Decision) error {
	d.Reset(0)
	return unsupported("be told the time")
}

func unsupported(what string) error {
	return &headgate.Error{Code: headgate.CodeUnsupported, Charge: -1, Message: "resilience: the limiter below cannot " + what}
}

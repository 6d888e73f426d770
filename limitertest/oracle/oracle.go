package oracle

import (
	"context"
	"fmt"
	"math/big"
	"sync"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// Config of an Oracle. The zero value works.
type Config struct {
	// Now is the clock of takes without a time of their own; default time.Now.
	Now func() time.Time
}

// Oracle is a [headgate.Limiter] with every ability. It is safe for concurrent use. It keeps every key that it ever saw.
type Oracle struct {
	view
}

// view is the oracle at one time, or, with now nil, at the time of its clock.
type view struct {
	*store
	now *time.Time
}

type identity struct{ slot, key string }

// entry is what is stored for one identity: a state of one of the algorithms or nil, and a lockout or nil.
type entry struct {
	state state
	lock  *lock
}

type store struct {
	clock func() time.Time

	mu      sync.Mutex
	entries map[identity]entry        // guarded by mu
	zones   map[string]*time.Location // guarded by mu
}

// New returns an empty Oracle.
func New(cfg Config) *Oracle {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Oracle{view{store: &store{clock: cfg.Now, entries: map[identity]entry{}, zones: map[string]*time.Location{}}}}
}

// At returns the oracle at a time.
func (o *Oracle) At(now time.Time) headgate.Limiter {
	return &view{store: o.store, now: &now}
}

// At returns the same oracle at another time.
func (v *view) At(now time.Time) headgate.Limiter {
	return &view{store: v.store, now: &now}
}

func (v *view) micros() (int64, error) {
	if v.now == nil {
		return headgate.Micros(v.clock())
	}
	return headgate.Micros(*v.now)
}

// Take implements [headgate.Limiter].
func (v *view) Take(_ context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	d.Reset(0)
	if err := headgate.Validate(charges); err != nil {
		return err
	}
	now, err := v.micros()
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	plans := make([]*plan, len(charges))
	for i := range charges {
		plans[i] = v.plan(now, &charges[i])
	}
	d.Reset(len(charges))
	d.Allowed = passes(plans, headgate.Pay, headgate.Check)
	shadows := passes(plans, headgate.Shadow)
	for i, p := range plans {
		through := d.Allowed && (p.charge.Mode != headgate.Shadow || shadows)
		d.Outcomes[i] = v.settleUp(p, through)
	}
	d.Binding = binding(charges, d)
	return nil
}

// Refund implements [headgate.Refunder].
func (v *view) Refund(_ context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	if err := headgate.Validate(charges); err != nil {
		return err
	}
	if len(d.Outcomes) != len(charges) {
		return &headgate.Error{Code: headgate.CodeInvalidCharge, Charge: -1,
			Message: fmt.Sprintf("%d charges and %d outcomes are not of one take", len(charges), len(d.Outcomes))}
	}
	now, err := v.micros()
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range charges {
		v.refundOne(now, &charges[i], &d.Outcomes[i].Receipt)
	}
	return nil
}

func (s *store) refundOne(now int64, c *headgate.Charge, r *headgate.Receipt) {
	amount := min(c.Cost, r.Charged)
	if amount == 0 {
		return
	}
	id := identity{c.Slot, c.Key}
	e := s.entries[id]
	m, same := s.normalise(e.state, c.Limit, now)
	if e.state == nil || same == fresh || !m.refund(amount, r.Mark, c.Holder) {
		r.Charged = 0
		return
	}
	r.Charged -= amount
	e.state = m.stored()
	s.put(id, e)
}

// Reset implements [headgate.Resetter].
func (v *view) Reset(_ context.Context, slot, key string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.entries, identity{slot, key})
	return nil
}

// Inspect implements [headgate.Inspector].
func (v *view) Inspect(_ context.Context, slot, key string) (headgate.Inspection, error) {
	now, err := v.micros()
	if err != nil {
		return headgate.Inspection{}, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	e, ok := v.entries[identity{slot, key}]
	in := headgate.Inspection{Found: ok}
	if e.lock != nil && e.lock.last > 0 && e.lock.until > now {
		in.LockedUntil = time.UnixMicro(e.lock.until)
	}
	if e.state != nil {
		in.Algorithm = e.state.algorithm()
		used, idle := e.state.inspect(now)
		in.Used, in.IdleAt = used, time.UnixMicro(idle)
	}
	return in, nil
}

func (s *store) put(id identity, e entry) {
	if e.state == nil && e.lock == nil {
		delete(s.entries, id)
		return
	}
	s.entries[id] = e
}

// passes tells whether every planned charge of these modes passed.
func passes(plans []*plan, modes ...headgate.Mode) bool {
	for _, p := range plans {
		for _, m := range modes {
			if p.charge.Mode == m && !p.answer.allowed {
				return false
			}
		}
	}
	return true
}

// binding finds the charge that decided.
func binding(charges []headgate.Charge, d *headgate.Decision) int {
	best := -1
	var least *big.Rat
	for i := range charges {
		o := &d.Outcomes[i]
		if m := charges[i].Mode; m == headgate.Settle || m == headgate.Shadow {
			continue
		}
		if !d.Allowed {
			if !o.Allowed && (best < 0 || outwaits(o.RetryAfter, d.Outcomes[best].RetryAfter)) {
				best = i
			}
			continue
		}
		if !o.HasRemaining {
			continue
		}
		share := big.NewRat(o.Remaining, max(charges[i].Cost, 1))
		if least == nil || share.Cmp(least) < 0 {
			best, least = i, share
		}
	}
	return best
}

// outwaits tells whether a is a longer wait than b: never, then the times, then unknown.
func outwaits(a, b headgate.Retry) bool {
	order := map[headgate.RetryState]int{headgate.RetryUnknown: 0, headgate.RetryAfter: 1, headgate.RetryNever: 2}
	if a.State != b.State {
		return order[a.State] > order[b.State]
	}
	return a.State == headgate.RetryAfter && a.After > b.After
}

package resilience

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// LimiterConfig says how a [Limiter] does without its store. The zero value is ready.
type LimiterConfig struct {
	// Live says how many instances share the store, so that each admits its part while the store is lost: [Fleet.Live] is one. Nil
	// stands for 1: each then admits the whole.
	Live func() int
	// Breakers, if set, are those that the store reports its calls to and asks whether to make them, as a redisstore.Store does;
	// they stay the caller's to close. Nil has the limiter make its own and count takes.
	Breakers *Breakers
	// Probe finds out whether the store is back, for the limiter's own breakers; see BreakersConfig. Default: a take of 1 under the
	// slot "headgate/probe".
	Probe func(ctx context.Context) error
	// Observer, if set, is told of takes that were decided without the store. It is called on the hot path and must not block.
	Observer LimiterObserver
	// Logger is that of the limiter's own breakers. Default: nothing is logged.
	Logger *slog.Logger
}

// LimiterObserver is told what a Limiter does.
type LimiterObserver interface {
	// FellBack tells of one take that was decided locally, and the code of the failure: "unavailable" while the breaker is open.
	FellBack(code string)
}

// Limiter asks a store, and where that fails, or has failed so often that its breaker is open, a local limiter at once, by this
// instance's part of every limit: store, breaker and fallback in one, for a program that has no policy.
//
// Errors that another store would answer as well, and those of a caller whose context was cancelled, are returned. A take that the
// store may have charged without an answer is charged locally too. Everything that follows a take goes to where it was decided:
// receipts tell, and of a slot whether it lives in the local limiter. An error of a renewal or a release says that the store, which may have the
// slot, did not answer; the slot then dies at its ttl.
//
// It is safe for concurrent use, and must be closed. It has all abilities of the store; one that either lacks is answered with
// headgate.CodeUnsupported.
type Limiter struct {
	*shared
	store headgate.Limiter
	local *Share
}

// shared is what a limiter has in common with its views.
type shared struct {
	cfg      LimiterConfig
	breakers *Breakers // nil if the store asks its own
	slots    slotsAway
}

var _ abilities = (*Limiter)(nil)

// ownNode is the name of the store among the limiter's own breakers.
const ownNode = ""

// NewLimiter returns a limiter over a store that may fail and a local one that does not: a memstore.Store is one. Both stay the
// caller's to close, after the limiter.
func NewLimiter(store, local headgate.Limiter, cfg LimiterConfig) *Limiter {
	l := &Limiter{shared: &shared{cfg: cfg, slots: slotsAway{born: time.Now()}}, store: store, local: NewShare(local, cfg.Live)}
	if cfg.Breakers == nil {
		probe := cfg.Probe
		if probe == nil {
			probe = probeOf(store)
		}
		l.breakers = NewBreakers(BreakersConfig{Logger: cfg.Logger, Probe: func(ctx context.Context, _ string) error { return probe(ctx) }})
	}
	return l
}

// probeOf asks a store with a take that it has to write, of a limit that cannot be leased: units in hand would say nothing of the
// store behind them.
func probeOf(store headgate.Limiter) func(context.Context) error {
	limit, err := headgate.ParseLimit("leaky_bucket 1000/s capacity=1000")
	return func(ctx context.Context) error {
		if err != nil {
			return err
		}
		_, err := headgate.Take(ctx, store, headgate.One("headgate/probe", "", limit))
		return err
	}
}

// Close ends the probes of the limiter's own breakers. It may be called again.
func (l *Limiter) Close() error {
	if l.breakers == nil {
		return nil
	}
	return l.breakers.Close()
}

// Lost tells whether the store is lost: then takes are decided locally.
func (l *Limiter) Lost() bool {
	if l.breakers != nil {
		return l.breakers.Lost()
	}
	return l.cfg.Breakers.Lost()
}

// barred tells that the store is not to be asked.
func (l *Limiter) barred() bool { return l.breakers != nil && l.breakers.Lost() }

// Take implements [headgate.Limiter].
func (l *Limiter) Take(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	code := headgate.CodeUnavailable
	if !l.barred() {
		err := l.askStore(ctx, charges, d)
		if err == nil || ownFault(ctx, err) {
			return err
		}
		code = codeOf(err)
	}
	err := l.local.Take(ctx, charges, d)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) { // which may be what failed the store; memory needs no time
		err = l.local.Take(context.WithoutCancel(ctx), charges, d)
	}
	if err != nil {
		return err
	}
	if l.cfg.Observer != nil {
		l.cfg.Observer.FellBack(string(code))
	}
	for i := range d.Outcomes {
		if d.Outcomes[i].Receipt.Charged > 0 {
			l.markLocal(&charges[i], &d.Outcomes[i].Receipt)
		}
	}
	return nil
}

// markLocal marks a receipt as one of the local limiter; see isLocal.
func (l *Limiter) markLocal(c *headgate.Charge, r *headgate.Receipt) {
	r.Mark ^= math.MinInt64
	if c, ok := c.Limit.(headgate.Concurrency); ok {
		l.slots.taken(c.TTL())
	}
}

// patience is how long a caller must have waited for its own end to count as a failure of the store. Without it a store that hangs
// would be asked for ever by callers who all leave before it gives up.
const patience = 100 * time.Millisecond

// askStore asks the store, and counts its answer for the breaker if the store does not.
func (l *Limiter) askStore(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	if l.breakers == nil {
		return l.store.Take(ctx, charges, d)
	}
	begun := time.Now()
	err := l.store.Take(ctx, charges, d)
	switch took := time.Since(begun); {
	case err == nil:
		l.breakers.Called(ownNode, took, "")
	case ctx.Err() == nil || took >= patience: // a caller who leaves sooner says nothing of the store
		l.breakers.Called(ownNode, took, string(codeOf(err)))
	}
	return err
}

// isLocal tells whether a receipt is of the local limiter: its mark has the sign turned. Marks of stores are times, in
// microseconds and perhaps with a number on top: far from the least number if below zero, and from the largest if above.
func isLocal(r headgate.Receipt) bool {
	const far = math.MaxInt64 - 1<<53
	return r.Mark < math.MinInt64/4 || r.Mark > far
}

// Refund implements [headgate.Refunder]: it gives back where the take was decided.
func (l *Limiter) Refund(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	local := false
	for i := range d.Outcomes {
		if r := &d.Outcomes[i].Receipt; r.Charged > 0 && isLocal(*r) {
			local = true
			r.Mark ^= math.MinInt64
		}
	}
	if !local {
		refunder, ok := l.store.(headgate.Refunder)
		switch {
		case !ok:
			return unsupported("refund")
		case l.barred():
			return lost()
		}
		return refunder.Refund(ctx, charges, d)
	}
	err := l.local.Refund(ctx, charges, d)
	for i := range d.Outcomes {
		if r := &d.Outcomes[i].Receipt; r.Charged > 0 {
			r.Mark ^= math.MinInt64
		}
	}
	return err
}

// Reset implements [headgate.Resetter]: both forget the key.
func (l *Limiter) Reset(ctx context.Context, slot, key string) error {
	resetter, ok := l.store.(headgate.Resetter)
	if !ok {
		return unsupported("reset a key")
	}
	return errors.Join(l.local.Reset(ctx, slot, key), resetter.Reset(ctx, slot, key))
}

// Inspect implements [headgate.Inspector]: it shows the state of the store or, while that is lost, the local one.
func (l *Limiter) Inspect(ctx context.Context, slot, key string) (headgate.Inspection, error) {
	inspector, ok := l.store.(headgate.Inspector)
	switch {
	case !ok:
		return headgate.Inspection{}, unsupported("look at a key")
	case l.Lost():
		return l.local.Inspect(ctx, slot, key)
	}
	return inspector.Inspect(ctx, slot, key)
}

// At implements [headgate.Timed]. The view shares breakers and states.
func (l *Limiter) At(now time.Time) headgate.Limiter {
	store, storeToo := l.store.(headgate.Timed)
	local, localToo := l.local.At(now).(*Share)
	if !storeToo || !localToo {
		return timeless{}
	}
	return &Limiter{shared: l.shared, store: store.At(now), local: local}
}

// ownFault tells that another store would refuse as well, or that nobody waits for an answer.
func ownFault(ctx context.Context, err error) bool {
	switch headgate.CodeOf(err) {
	case headgate.CodeInvalidCost, headgate.CodeInvalidLimit, headgate.CodeInvalidCharge, headgate.CodeDuplicateCharge,
		headgate.CodeTooManyCharges, headgate.CodeInvalidTime, headgate.CodeUnsupported:
		return true
	}
	return errors.Is(ctx.Err(), context.Canceled)
}

// codeOf names an error also if the store did not.
func codeOf(err error) headgate.Code {
	if code := headgate.CodeOf(err); code != "" {
		return code
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return headgate.CodeTimeout
	}
	return headgate.CodeInternal
}

// slotsAway says until when slots may live in the local limiter. Without such a time everything is the store's.
type slotsAway struct {
	born  time.Time
	until atomic.Int64 // in nanoseconds since born
}

// taken notes a slot that was taken or renewed locally.
func (s *slotsAway) taken(ttl time.Duration) {
	const most = 100 * 365 * 24 * time.Hour // together with the age of a process it fits
	until := int64(time.Since(s.born) + min(ttl, most))
	for {
		old := s.until.Load()
		if old >= until || s.until.CompareAndSwap(old, until) {
			return
		}
	}
}

// any tells whether any may live.
func (s *slotsAway) any() bool {
	until := s.until.Load()
	return until != 0 && int64(time.Since(s.born)) < until
}

package policy

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// phase is a time in which the limits of a rule stay as they are.
type phase struct {
	from, until time.Time
	// force is what was known of the coming into force when the phase was made.
	force int64
	variant
}

// baseOf returns the rule's own limits as they are now.
func (e *Engine) baseOf(s *scratch, index int32) *variant {
	rule := &e.policy.rules[index]
	if rule.plan == nil {
		return &rule.base
	}
	now := s.now()
	since := e.inForce(s.ctx, index)
	p := e.phases[index].Load()
	if p == nil || p.force != since || now.Before(p.from) || !now.Before(p.until) {
		p = &phase{force: since}
		var in time.Time
		if since != unknownForce {
			in = time.UnixMicro(since)
		}
		var set []headgate.Limit
		set, p.from, p.until = rule.plan.At(now, in)
		p.variant = rule.base.with(rule.name, set)
		e.phases[index].Store(p)
	}
	return &p.variant
}

// RuleLimits is a rule with its own limits as they are now: schedules, ramps and warm-ups applied, overrides not.
type RuleLimits struct {
	Rule   string
	Limits []headgate.Limit
}

// LimitsInForce returns the limits of the rules that decide or watch, in the order of the policy. It asks no store: a rule of
// which no request has asked yet how far its warm-up is has its whole limits.
func (e *Engine) LimitsInForce() []RuleLimits {
	out := make([]RuleLimits, len(e.policy.rules))
	for i := range e.policy.rules {
		rule := &e.policy.rules[i]
		out[i] = RuleLimits{rule.name, rule.base.limits}
		if rule.plan == nil {
			continue
		}
		var in time.Time
		if f := &e.force[i]; rule.warm != "" && f.known.Load() {
			in = time.UnixMicro(f.since.Load())
		}
		out[i].Limits, _, _ = rule.plan.At(e.now(), in)
	}
	return out
}

// force is since when a rule is in force with its limits and its warm-up, as the store has it.
type force struct {
	since  atomic.Int64 // µs since the Unix epoch by the clock of the engine, if known
	known  atomic.Bool
	failed atomic.Bool // the store has not answered so far
	mu     sync.Mutex
	next   time.Time // when the store may be asked again
}

const (
	unknownForce = math.MinInt64
	forceRetry   = time.Second
)

// forceSlot remembers one take for as long as a store remembers anything: its age is the time since the rule came into
// force, on every instance, whichever asked first.
const forceSlot = "policy/in-force"

// inForce returns since when a rule is in force, unknownForce if it does not warm up or the store does not answer: then the
// limits are whole, since a service that has been running must not be throttled by a store that is lost.
func (e *Engine) inForce(ctx context.Context, index int32) int64 {
	f := &e.force[index]
	switch {
	case e.policy.rules[index].warm == "":
		return unknownForce
	case f.known.Load():
		return f.since.Load()
	}
	if !f.lock() {
		return unknownForce
	}
	defer f.mu.Unlock()
	now := e.now()
	if f.known.Load() {
		return f.since.Load()
	}
	if now.Before(f.next) {
		return unknownForce
	}
	age, err := e.askForce(ctx, e.policy.rules[index].warm)
	if err != nil {
		if f.failed.Store(true); !e.still {
			f.next = now.Add(forceRetry)
		}
		return unknownForce
	}
	f.since.Store(now.Add(-age).UnixMicro())
	f.known.Store(true)
	return f.since.Load()
}

// lock makes the first requests of all wait for the store, or there would be no warm-up for them. When it has failed to
// answer, one request at a time asks again, and no other waits: it may take long. It reports false to those.
func (f *force) lock() bool {
	if f.failed.Load() {
		return f.mu.TryLock()
	}
	f.mu.Lock()
	return true
}

// askForce returns the time since a rule came into force, which may be now.
func (e *Engine) askForce(ctx context.Context, identity string) (age time.Duration, err error) {
	limit, err := headgate.NewSlidingLog(1, headgate.MaxPeriod)
	if err != nil {
		return 0, err // cannot be: the constants are within the bounds
	}
	charge := headgate.One(forceSlot, identity, limit)
	d, err := headgate.Take(context.WithoutCancel(ctx), e.limiters[storeStrict], charge)
	if err != nil {
		return 0, err
	}
	return headgate.MaxPeriod - d.Outcomes[0].ResetAfter, nil
}

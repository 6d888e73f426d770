package policy

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/policy/internal/lookup"
)

// EngineConfig sets up an [Engine]. The zero value works, but for policies that mark requests or look dimensions up.
type EngineConfig struct {
	// Local decides the rules with store: local, and should be in memory; nil: the limiter of the engine does.
	Local headgate.Limiter
	// Leased decides the rules with store: leased; nil: the limiter of the engine does.
	Leased headgate.Limiter
	// Fallback decides, with the same limits, the rules with on_error: local when the limiter answers with an error that is
	// not the request's fault. nil: such requests are answered with 503. It should be in memory: it is asked without the
	// caller's deadline.
	Fallback headgate.Limiter
	// Levels says which degradation is in force, and is told of devices; nil: none ever is.
	Levels Levels
	// Overload says whether the process is in danger; nil: it never is.
	Overload Overloads
	// Lookups finds the dimensions that are looked up. NewEngine refuses a policy that needs what is nil.
	Lookups Lookups
	// Before is the engine whose place this one takes, if there is one. What it has looked up stays known for dimensions that
	// are looked up the same way, so that a change of the policy does not ask for all values at once; and if MaxWaiting is the
	// same, requests that wait for their turn under it stay before those that come to the new one. It is not kept.
	Before *Engine
	// MarkKey signs the header of requests that are over a limit and pass all the same, at least 16 bytes. NewEngine refuses a
	// policy that needs it if it is shorter.
	MarkKey []byte
	// Observer is told what is decided; nil: nobody is.
	Observer Observer
	// Explain fills in Verdict.Matches, for tests and replays. Of a rule that is charged for the answer, Match.Cost is what
	// was charged once Verdict.Done has been called; for this there is a Done of denied requests, too, which charges nothing.
	Explain bool
	// MaxWaiting is how many requests may wait for their turn at a time, in all rules with on_deny: wait; 0 stands for 1024. The
	// requests of one key may take an eighth of these places, at least one.
	MaxWaiting int
	// MaxHold is the longest time for which the slots of one request's concurrency limits are renewed, at least 1 s; after
	// it they die at their ttl, also if the front never calls Done. 0 stands for 24 h.
	MaxHold time.Duration
	// NewID names a verdict and, among them all, the holder of its concurrency slots; nil stands for httpverdict.NewID.
	NewID func() string
	// Now is the clock behind schedules, tokens and expressions; nil stands for time.Now. Limits go by the store's clock.
	Now func() time.Time
}

// Lookups finds values outside. The functions are called from many goroutines at a time, with a deadline, and answer found
// false if there is no value.
type Lookups struct {
	// HashField reads a field of a hash in Redis.
	HashField func(ctx context.Context, hash, field string) (value string, found bool, err error)
	// HTTPGet asks an HTTP service, for the whole answer or, if json is not "", for a field of it.
	HTTPGet func(ctx context.Context, url, json string) (value string, found bool, err error)
}

// Bounds of EngineConfig.
const (
	defaultMaxWaiting = 1024
	minMarkKey        = 16
)

// Engine applies a policy with a limiter. It is a [httpverdict.Decider], a [httpverdict.Timed] and a
// [httpverdict.Needer], and safe for concurrent use. It starts no goroutine but for the renewal of slots that requests
// hold for long, and for look-ups.
type Engine struct {
	policy   *Policy
	cfg      EngineConfig
	limiters [storeCount]headgate.Limiter
	// still: time stands at, where At has put it, so nothing is renewed and nobody is held.
	still bool
	at    time.Time
	// root is the engine that a view is of, itself if it is none.
	root *Engine

	pool    *sync.Pool // of *scratch
	phases  []atomic.Pointer[phase]
	force   []force // by rule
	lines   *waitLines
	lookups []*lookup.Cache // by dimension; nil for those that are not looked up
	seed    maphash.Seed    // of what tells devices apart
}

// NewEngine returns an engine. It fails if the policy needs what a limiter or the configuration lacks, or if a field of
// cfg is out of range.
func NewEngine(p *Policy, limiter headgate.Limiter, cfg EngineConfig) (*Engine, error) {
	switch {
	case p == nil || limiter == nil:
		return nil, errors.New("policy: an engine needs a policy and a limiter")
	case cfg.MaxHold != 0 && cfg.MaxHold < time.Second:
		return nil, fmt.Errorf("policy: MaxHold %s is below 1s", cfg.MaxHold)
	case cfg.MaxWaiting < 0:
		return nil, fmt.Errorf("policy: MaxWaiting %d is negative; use 0 for the default", cfg.MaxWaiting)
	}
	cfg.setDefaults()
	e := &Engine{policy: p, cfg: cfg, limiters: [storeCount]headgate.Limiter{limiter, limiter, limiter}}
	if cfg.Local != nil {
		e.limiters[storeLocal] = cfg.Local
	}
	if cfg.Leased != nil {
		e.limiters[storeLeased] = cfg.Leased
	}
	if err := e.check(); err != nil {
		return nil, fmt.Errorf("policy %s: %w", p.name, err)
	}
	e.root = e
	e.phases = make([]atomic.Pointer[phase], len(p.rules))
	e.force = make([]force, len(p.rules))
	if e.lines = newWaitLines(cfg.MaxWaiting); cfg.Before != nil && cfg.Before.lines.most == cfg.MaxWaiting {
		e.lines = cfg.Before.lines // those who wait there were first
	}
	if e.seed = maphash.MakeSeed(); cfg.Before != nil {
		e.seed = cfg.Before.seed
	}
	e.lookups = newLookups(p, &cfg)
	e.cfg.Before = nil
	e.pool = &sync.Pool{New: func() any { return newScratch(p) }}
	return e, nil
}

func (c *EngineConfig) setDefaults() {
	if c.MaxHold == 0 {
		c.MaxHold = 24 * time.Hour
	}
	if c.MaxWaiting == 0 {
		c.MaxWaiting = defaultMaxWaiting
	}
	if c.Now == nil {
		c.Now = time.Now
	}
}

// check tells whether the engine has what the policy needs.
func (e *Engine) check() error {
	for i := range e.policy.rules {
		r := &e.policy.rules[i]
		for _, l := range []headgate.Limiter{e.limiters[r.store], e.cfg.Fallback} {
			if _, ok := l.(headgate.Slots); l != nil && !ok && r.hasLimit(isConcurrency) {
				return fmt.Errorf("rule %q has concurrency limits, and the store cannot release slots", r.name)
			}
			if _, ok := l.(headgate.Refunder); l != nil && !ok && e.policy.split {
				return fmt.Errorf("rule %q is in another store than others, and its store cannot give back what it has charged", r.name)
			}
		}
		if r.action.kind == Mark && !r.shadow && len(e.cfg.MarkKey) < minMarkKey {
			return fmt.Errorf("rule %q marks requests, and there is no key of at least %d bytes to sign the mark with", r.name, minMarkKey)
		}
	}
	for i := range e.policy.dims {
		d := &e.policy.dims[i]
		if d.kind == dimRedis && e.cfg.Lookups.HashField == nil {
			return fmt.Errorf("dimension %q is looked up in Redis, and there is none; use a Redis store", d.name)
		}
		if d.kind == dimHTTP && e.cfg.Lookups.HTTPGet == nil {
			return fmt.Errorf("dimension %q is looked up by HTTP, which is not possible here", d.name)
		}
	}
	return nil
}

// Policy returns the policy that the engine applies.
func (e *Engine) Policy() *Policy { return e.policy }

// HasDimension tells whether the policy has a dimension of this name.
func (e *Engine) HasDimension(name string) bool { return e.policy.HasDimension(name) }

// Needs returns what the policy asks of the front.
func (e *Engine) Needs() []httpverdict.Need { return e.policy.Needs() }

// Waiting returns how many requests wait for their turn now.
func (e *Engine) Waiting() int { return e.lines.waiting() }

// At returns a view of the engine to which it is always now. If a limiter is not a [headgate.Timed], every verdict of the
// view is unavailable, with the code "unsupported". A request that would be held for its turn is not: its verdict is that
// of the time when its turn would come, with the time to wait in Verdict.Wait.
func (e *Engine) At(now time.Time) httpverdict.Decider {
	view, ok := e.view(now)
	if !ok {
		return untimed{e}
	}
	return view
}

func (e *Engine) view(now time.Time) (*Engine, bool) {
	view := *e.root
	view.still, view.at = true, now
	for i, l := range e.root.limiters {
		timed, ok := l.(headgate.Timed)
		if !ok {
			return nil, false
		}
		view.limiters[i] = timed.At(now)
	}
	if l := e.root.cfg.Fallback; l != nil {
		timed, ok := l.(headgate.Timed)
		if !ok {
			return nil, false
		}
		view.cfg.Fallback = timed.At(now)
	}
	return &view, true
}

func (e *Engine) now() time.Time {
	if e.still {
		return e.at
	}
	return e.cfg.Now()
}

// untimed is the view of an engine whose store has no time to pass in.
type untimed struct{ e *Engine }

func (u untimed) Decide(context.Context, *httpverdict.Request) *httpverdict.Verdict {
	return &httpverdict.Verdict{Kind: httpverdict.Unavailable, ID: httpverdict.NewID(), Code: string(headgate.CodeUnsupported),
		Detail: "This store does not let its time be set.", Binding: -1, Response: u.e.policy.response}
}

// Decide judges one request. It blocks while a rule holds the request for its turn.
func (e *Engine) Decide(ctx context.Context, r *httpverdict.Request) *httpverdict.Verdict {
	if e.cfg.Observer == nil {
		v, _ := e.decide(ctx, r)
		return v
	}
	start := time.Now()
	v, waited := e.decide(ctx, r)
	e.cfg.Observer.Decided(v.Rule, v.Kind.String(), time.Since(start)-waited)
	for _, rule := range v.Shadow {
		e.cfg.Observer.ShadowDenied(rule)
	}
	return v
}

// answer is a verdict with room for the reports of most requests, in one allocation.
type answer struct {
	httpverdict.Verdict
	room [5]httpverdict.LimitReport
}

func (e *Engine) decide(ctx context.Context, r *httpverdict.Request) (v *httpverdict.Verdict, waited time.Duration) {
	s := e.pool.Get().(*scratch)
	defer func() {
		s.end()
		e.pool.Put(s)
	}()
	s.begin(ctx, e, r)
	a := &answer{}
	v = &a.Verdict
	v.Binding, v.ClientIP, v.Response = -1, s.client, e.policy.response
	v.Limits = a.room[:0]
	if !e.judgeLists(s, v) {
		e.policy.index.find(s, r.Path, r.Host)
		switch {
		case e.shed(s, v):
		case !e.collect(s, v):
			e.explain(s, v)
		case len(s.applied) > 0:
			s.charge(v)
			e.judge(s, v)
			e.tellDevice(s)
		}
	}
	if v.ID == "" {
		v.ID = string(s.buf[:s.idEnd])
	}
	return v, s.waited
}

// judgeLists reports whether a list, or that the request is on none that passes at L3, has decided.
func (e *Engine) judgeLists(s *scratch, v *httpverdict.Verdict) bool {
	if l := s.anyMember(e.policy.deny); l >= 0 {
		v.Kind, v.Code = httpverdict.Forbidden, "list_denied"
		v.Rule = "list:" + e.policy.lists[l].name
		return true
	}
	if e.restricts(s, v) {
		return true
	}
	if l := s.anyPassing(e.policy.allow); l >= 0 {
		v.Code, v.Rule = "list_allowed", "list:"+e.policy.lists[l].name
		return true
	}
	return false
}

package policy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// EngineConfig sets up an [Engine]. The zero value works.
type EngineConfig struct {
	// Fallback decides, with the same limits, when the limiter answers with an error that is not the request's fault. nil:
	// such requests are answered with 503. It should be in memory: it is asked without the caller's deadline.
	Fallback headgate.Limiter
	// Observer is told what is decided; nil: nobody is.
	Observer Observer
	// MaxHold is the longest time for which the slots of one request's concurrency limits are renewed, at least 1 s; after
	// it they die at their ttl, also if the front never calls Done. 0 stands for 24 h.
	MaxHold time.Duration
	// NewID names a verdict and, among them all, the holder of its concurrency slots; nil stands for httpverdict.NewID.
	NewID func() string
}

// Engine applies a policy with a limiter. It is a [httpverdict.Decider], a [httpverdict.Timed] and a
// [httpverdict.Needer], and safe for concurrent use. It starts no goroutine but for the renewal of slots that requests
// hold for long.
type Engine struct {
	policy   *Policy
	limiter  headgate.Limiter
	fallback headgate.Limiter
	observer Observer
	newID    func() string
	maxHold  time.Duration
	// still: time stands where At has put it, so nothing is renewed.
	still bool
	pool  *sync.Pool // of *scratch
}

// NewEngine returns an engine. It fails if the policy needs what a limiter cannot do, or if a field of cfg is out of range.
func NewEngine(p *Policy, limiter headgate.Limiter, cfg EngineConfig) (*Engine, error) {
	switch {
	case p == nil || limiter == nil:
		return nil, errors.New("policy: an engine needs a policy and a limiter")
	case cfg.MaxHold != 0 && cfg.MaxHold < time.Second:
		return nil, fmt.Errorf("policy: MaxHold %s is below 1s", cfg.MaxHold)
	}
	for _, need := range p.Needs() {
		for _, l := range []headgate.Limiter{limiter, cfg.Fallback} {
			if _, ok := l.(headgate.Slots); l != nil && !ok && need.Kind == httpverdict.NeedRelease {
				return nil, fmt.Errorf("policy %s: rule %q %w", p.name, need.Rule, errNoSlots)
			}
		}
	}
	e := &Engine{policy: p, limiter: limiter, fallback: cfg.Fallback, observer: cfg.Observer, newID: cfg.NewID, maxHold: cfg.MaxHold}
	if e.newID == nil {
		e.newID = httpverdict.NewID
	}
	if e.maxHold == 0 {
		e.maxHold = 24 * time.Hour
	}
	e.pool = &sync.Pool{New: func() any { return newScratch(p) }}
	return e, nil
}

// Policy returns the policy that the engine applies.
func (e *Engine) Policy() *Policy { return e.policy }

// HasDimension tells whether the policy has a dimension of this name.
func (e *Engine) HasDimension(name string) bool { return e.policy.HasDimension(name) }

// Needs returns what the policy asks of the front.
func (e *Engine) Needs() []httpverdict.Need { return e.policy.Needs() }

// At returns a view of the engine to which it is always now. If a limiter is not a [headgate.Timed], every verdict of the
// view is unavailable, with the code "unsupported".
func (e *Engine) At(now time.Time) httpverdict.Decider {
	view := *e
	view.still = true
	timed, ok := e.limiter.(headgate.Timed)
	if !ok {
		return untimed{e}
	}
	view.limiter = timed.At(now)
	if e.fallback != nil {
		if timed, ok = e.fallback.(headgate.Timed); !ok {
			return untimed{e}
		}
		view.fallback = timed.At(now)
	}
	return &view
}

// untimed is the view of an engine whose store has no time to pass in.
type untimed struct{ e *Engine }

func (u untimed) Decide(context.Context, *httpverdict.Request) *httpverdict.Verdict {
	return &httpverdict.Verdict{Kind: httpverdict.Unavailable, ID: u.e.newID(), Code: string(headgate.CodeUnsupported),
		Detail: "This store does not let its time be set.", Binding: -1, Response: u.e.policy.response}
}

// Decide judges one request.
func (e *Engine) Decide(ctx context.Context, r *httpverdict.Request) *httpverdict.Verdict {
	if e.observer == nil {
		return e.decide(ctx, r)
	}
	start := time.Now()
	v := e.decide(ctx, r)
	e.observer.Decided(v.Rule, v.Kind.String(), time.Since(start))
	for _, rule := range v.Shadow {
		e.observer.ShadowDenied(rule)
	}
	return v
}

// answer is a verdict with room for the reports of most requests, in one allocation.
type answer struct {
	httpverdict.Verdict
	room [4]httpverdict.LimitReport
}

func (e *Engine) decide(ctx context.Context, r *httpverdict.Request) *httpverdict.Verdict {
	s := e.pool.Get().(*scratch)
	defer func() {
		s.end()
		e.pool.Put(s)
	}()
	s.begin(r)
	a := &answer{}
	v := &a.Verdict
	v.ID, v.Binding, v.ClientIP, v.Response = e.newID(), -1, s.client, e.policy.response
	v.Limits = a.room[:0]
	if e.judgeLists(s, v) {
		return v
	}
	e.policy.index.find(s, r.Path, r.Host)
	if !e.collect(s, v) || len(s.charges) == 0 {
		return v
	}
	e.take(ctx, s, v)
	return v
}

// judgeLists reports whether a list has decided.
func (e *Engine) judgeLists(s *scratch, v *httpverdict.Verdict) bool {
	if l := s.anyMember(e.policy.deny); l >= 0 {
		v.Kind, v.Code, v.Detail = httpverdict.Forbidden, "list_denied", "Access is not allowed."
		v.Rule = "list:" + e.policy.lists[l].name
		return true
	}
	if l := s.anyPassing(e.policy.allow); l >= 0 {
		v.Code, v.Rule = "list_allowed", "list:"+e.policy.lists[l].name
		return true
	}
	return false
}

// collect makes the charges of every rule that matches. It reports false if a rule denies without being asked: a dimension
// that it demands is missing.
func (e *Engine) collect(s *scratch, v *httpverdict.Verdict) bool {
	bit, preflight := methodBit(methodOf(s.req.Method)), isPreflight(s.req)
	for _, c := range s.found {
		rule := &e.policy.rules[c.rule]
		if preflight && rule.spec >= 0 || !rule.match.admits(bit, s.req.Host) || s.anyPassing(rule.skip) >= 0 {
			continue
		}
		key, lacking := s.key(rule.spec, c.route)
		switch {
		case !lacking || rule.missing == missingShared:
			s.addCharges(c.rule, key, lacking, v.ID)
		case rule.missing == missingDeny && rule.shadow:
			v.Shadow = append(v.Shadow, rule.name)
		case rule.missing == missingDeny:
			v.Kind, v.Rule, v.Code = httpverdict.Forbidden, rule.name, "dimension_missing"
			v.Detail = "The request lacks something that is needed to let it pass."
			return false
		}
	}
	return true
}

// isPreflight recognises the request with which a browser asks whether it may send another: it carries no credentials, so
// it is charged only to rules for everybody.
func isPreflight(r *httpverdict.Request) bool {
	return r.Method == http.MethodOptions && len(r.Header["Origin"]) > 0 && len(r.Header["Access-Control-Request-Method"]) > 0
}

// key returns the key of a request for a spec, made once for all rules that share it.
func (s *scratch) key(index int, route string) (text string, lacking bool) {
	if index < 0 {
		return "", false
	}
	spec, built := &s.p.specs[index], &s.keys[index]
	if !built.known || spec.perRule {
		s.buf, built.lacking = s.appendKey(s.buf[:0], spec, route)
		built.known, built.text = true, string(s.buf)
	}
	return built.text, built.lacking
}

func (s *scratch) addCharges(index int32, key string, lacking bool, holder string) {
	rule := &s.p.rules[index]
	for i := range rule.charges {
		c := rule.charges[i]
		c.Key = key
		if _, ok := c.Limit.(headgate.Concurrency); ok {
			c.Holder = holder
		}
		if lacking {
			c.Lockout = nil // one client without the dimension must not shut out all the others
		}
		s.charges = append(s.charges, c)
		s.rules = append(s.rules, index)
	}
}

package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/leasestore"
	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/policy"
	"github.com/headgate-io/headgate/resilience"
)

// GuardConfig says what a [Guard] works on.
type GuardConfig struct {
	// Store is where limits are counted. It is not the guard's: close the guard, then the store.
	Store *Store
	// MarkKey signs the header of requests that are over a limit and pass all the same, with at least 16 bytes; a policy that
	// marks is refused without it.
	MarkKey []byte
	// Instance names this process among those that share the store; by default a name of its own.
	Instance string
	// Instances is how many processes share the store as long as it has not said so: what local limits are divided by if this one
	// starts while the store is lost. 0 stands for 1.
	Instances int
	// Overload tells whether the process is in danger; nil: it never is. It is not the guard's.
	Overload *resilience.Overload
	// Watch is told what happens; the zero value tells nobody.
	Watch GuardWatch
	// Log gets that the store fails, and every change of a level; nil discards it.
	Log *slog.Logger
}

// GuardWatch is who is told of what a guard does.
type GuardWatch struct {
	Decisions policy.Observer
	Leases    leasestore.Observer
	Levels    resilience.LevelObserver
	Keys      memstore.Observer
	// Rules is told the names of all that can decide, lists as "list:NAME", whenever a policy comes into force.
	Rules func(names []string)
}

// Guard is a policy at work on a store, with limits in memory for the time that a remote store is lost, and the levels of
// degradation. The policy can be replaced while requests are judged: each is judged, and released, by the one that was in
// force when it came. What has been counted stays: it is the store's, and the guard's own memory's. A Guard is a
// [httpverdict.Decider] and a [httpverdict.Needer], and safe for concurrent use.
type Guard struct {
	cfg      GuardConfig
	loss     *lossLog
	limiters *limiters
	fleet    *resilience.Fleet
	levels   *resilience.Levels
	finds    *lookups
	live     atomic.Pointer[live]
	replace  sync.Mutex
}

// live is a policy in force.
type live struct {
	engine *policy.Engine
	// trusted are the headers that are believed from trusted proxies only.
	trusted []string
}

var (
	_ httpverdict.Decider = (*Guard)(nil)
	_ httpverdict.Needer  = (*Guard)(nil)
)

// NewGuard puts a policy to work.
func NewGuard(p *policy.Policy, cfg GuardConfig) (*Guard, error) {
	if cfg.Store == nil {
		return nil, errors.New("a guard needs a store")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	g := &Guard{cfg: cfg, loss: &lossLog{log: cfg.Log, store: cfg.Store.Name, next: cfg.Watch.Decisions}}
	g.finds = newLookups(cfg.Store, cfg.Log)
	g.join()
	g.limiters = newLimiters(limitersConfig{
		store: cfg.Store, live: g.fleet.Live, leases: cfg.Watch.Leases,
		memory: memstore.Config{Logger: cfg.Log, Observer: cfg.Watch.Keys},
	})
	g.fleet.OnNote(g.hear)
	if err := g.Replace(p, nil); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// join makes this process one of the fleet that shares the store, with the fleet's levels.
func (g *Guard) join() {
	store := g.cfg.Store
	var board resilience.Board
	if store.remote != nil {
		board = store.remote
	}
	g.fleet = resilience.NewFleet(board, resilience.FleetConfig{ID: g.cfg.Instance, Assume: g.cfg.Instances, Logger: g.cfg.Log})
	g.levels = resilience.NewLevels(resilience.LevelsConfig{
		Fleet: g.fleet, Lost: store.Lost, LostWhy: store.whyLost, Observer: g.cfg.Watch.Levels, Logger: g.cfg.Log,
	})
}

// Replace puts a policy in force in place of the one that is, from the next request on. It fails, and changes nothing, if the
// policy needs what the store or the guard lacks, or if check refuses it; check, which may be nil, is asked last.
func (g *Guard) Replace(p *policy.Policy, check func(*policy.Engine) error) error {
	g.replace.Lock()
	defer g.replace.Unlock()
	engine, err := policy.NewEngine(p, g.limiters.strict, g.engineConfig(p))
	switch {
	case err != nil && len(g.cfg.MarkKey) == 0 && marks(p):
		return fmt.Errorf("%w; set HEADGATE_MARK_KEY", err)
	case err != nil:
		return err
	case check != nil:
		if err := check(engine); err != nil {
			return err
		}
	}
	g.live.Store(&live{engine: engine, trusted: p.TrustedHeaders()})
	g.limiters.renew()
	g.follow(p)
	if g.cfg.Watch.Rules != nil {
		g.cfg.Watch.Rules(deciders(p))
	}
	return nil
}

// follow has the levels and the overload go by a policy.
func (g *Guard) follow(p *policy.Policy) {
	d := p.Degradation()
	g.levels.SetPolicy(resilience.LevelsPolicy{Automatic: d.Automatic, DeniedDevices: d.DeniedDevices, For: d.For, RetryAfter: d.RetryAfter})
	if g.cfg.Overload != nil {
		g.cfg.Overload.SetThresholds(p.Overload().CPU, p.Overload().Memory)
		g.cfg.Overload.SetPass(p.Overload().Pass)
	}
}

// engineConfig is what every policy gets beside the store, and shares with the one before and the one after it.
func (g *Guard) engineConfig(p *policy.Policy) policy.EngineConfig {
	cfg := policy.EngineConfig{Observer: g.loss, Lookups: g.finds.of(p), MarkKey: g.cfg.MarkKey, Levels: g.levels}
	if g.cfg.Overload != nil {
		cfg.Overload = g.cfg.Overload
	}
	if old := g.live.Load(); old != nil {
		cfg.Before = old.engine
	}
	g.limiters.give(&cfg)
	return cfg
}

// deciders are the names that verdicts of a policy can have for what decided.
func deciders(p *policy.Policy) []string {
	var names []string
	for _, r := range p.Rules() {
		names = append(names, r.Name)
	}
	for _, l := range slices.Concat(p.Deny(), p.Allow()) {
		names = append(names, "list:"+l)
	}
	return names
}

// marks tells whether a rule of a policy marks requests.
func marks(p *policy.Policy) bool {
	return slices.ContainsFunc(p.Rules(), func(r policy.Rule) bool { return r.Action == policy.Mark })
}

// Decide judges a request by the policy in force.
func (g *Guard) Decide(ctx context.Context, r *httpverdict.Request) *httpverdict.Verdict {
	return g.live.Load().engine.Decide(ctx, r)
}

// Needs returns what the policy in force asks of the front.
func (g *Guard) Needs() []httpverdict.Need { return g.live.Load().engine.Needs() }

// Value returns the value that a dimension of the policy in force has of a request; see [policy.Engine.Value].
func (g *Guard) Value(ctx context.Context, r *httpverdict.Request, dimension string) (string, bool) {
	return g.live.Load().engine.Value(ctx, r, dimension)
}

// Policy returns the policy in force.
func (g *Guard) Policy() *policy.Policy { return g.live.Load().engine.Policy() }

// LimitsInForce returns the limits of the policy in force as they are now.
func (g *Guard) LimitsInForce() []policy.RuleLimits { return g.live.Load().engine.LimitsInForce() }

// Waiting returns how many requests wait for their turn.
func (g *Guard) Waiting() int { return g.live.Load().engine.Waiting() }

// AwaitFleet waits until the store has said which switches the fleet has turned, and how many processes share it; but not for
// a store that is lost, and not beyond ctx.
func (g *Guard) AwaitFleet(ctx context.Context) {
	if !g.cfg.Store.Lost() {
		_ = g.fleet.Await(ctx) // it will be known later, then
	}
}

// Levels are the switches by which the service degrades.
func (g *Guard) Levels() *resilience.Levels { return g.levels }

// Instances returns how many processes share the store, this one among them, and how long ago that was known.
func (g *Guard) Instances() (live int, age time.Duration) { return g.fleet.Live(), g.fleet.Age() }

// Close gives back what the guard holds: what it has charged ahead, and its place in the fleet.
func (g *Guard) Close() error {
	g.finds.close()
	var err error
	if g.limiters != nil {
		err = g.limiters.close()
	}
	return errors.Join(err, g.levels.Close(), g.fleet.Close())
}

// lossLog logs that the store fails, at most once in lossEvery however many requests notice, and tells another observer of
// everything.
type lossLog struct {
	log   *slog.Logger
	store string
	next  policy.Observer // nil: nobody
	// failed counts failures since the last line, decided those of them whose request was decided all the same.
	failed, decided atomic.Int64
	said            atomic.Int64 // Unix nanoseconds
}

const lossEvery = 5 * time.Second

// Decided implements [policy.Observer].
func (l *lossLog) Decided(rule, verdict string, took time.Duration) {
	if l.next != nil {
		l.next.Decided(rule, verdict, took)
	}
}

// ShadowDenied implements [policy.Observer].
func (l *lossLog) ShadowDenied(rule string) {
	if l.next != nil {
		l.next.ShadowDenied(rule)
	}
}

// Shed implements [policy.Observer].
func (l *lossLog) Shed(priority string) {
	if l.next != nil {
		l.next.Shed(priority)
	}
}

// StoreFailed implements [policy.Observer].
func (l *lossLog) StoreFailed(code string, fallback bool) {
	if l.next != nil {
		l.next.StoreFailed(code, fallback)
	}
	l.failed.Add(1)
	if fallback {
		l.decided.Add(1)
	}
	now, said := time.Now().UnixNano(), l.said.Load()
	if now-said < int64(lossEvery) || !l.said.CompareAndSwap(said, now) {
		return
	}
	// What does not decide a request fails as well: giving back, settling, renewing. So no line says that somebody got 503.
	l.log.Warn("the store fails: on_error of each rule says what becomes of its requests", "store", l.store, "code", code,
		"failures", l.failed.Swap(0), "decided_without_it", l.decided.Swap(0))
}

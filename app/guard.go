package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/policy"
)

// GuardConfig says what a [Guard] works on.
type GuardConfig struct {
	// Store is where limits are counted. It is not the guard's: close the guard, then the store.
	Store *Store
	// MarkKey signs the header of requests that are over a limit and pass all the same, with at least 16 bytes; a policy that
	// marks is refused without it.
	MarkKey []byte
	// Log gets that the store fails; nil discards it.
	Log *slog.Logger
}

// Guard is a policy at work on a store, with limits in memory for the time that a remote store is lost. The policy can be
// replaced while requests are judged: each is judged, and released, by the one that was in force when it came. What has been
// counted stays: it is the store's, and the guard's own memory's. A Guard is a [httpverdict.Decider] and a
// [httpverdict.Needer], and safe for concurrent use.
type Guard struct {
	cfg   GuardConfig
	loss  *lossLog
	local *memstore.Store // nil if the store is in memory itself
	finds *lookups
	live  atomic.Pointer[live]
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
	g := &Guard{cfg: cfg, loss: &lossLog{log: cfg.Log, store: cfg.Store.Name}}
	g.finds = newLookups(cfg.Store, cfg.Log)
	if cfg.Store.Remote {
		g.local = memstore.New(memstore.Config{Logger: cfg.Log})
	}
	if err := g.Replace(p, nil); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// Replace puts a policy in force in place of the one that is, from the next request on. It fails, and changes nothing, if the
// policy needs what the store or the guard lacks, or if check refuses it; check, which may be nil, is asked last.
func (g *Guard) Replace(p *policy.Policy, check func(*policy.Engine) error) error {
	engine, err := policy.NewEngine(p, g.cfg.Store.Limiter, g.engineConfig(p))
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
	return nil
}

// engineConfig is what every policy gets beside the store, and shares with the one before and the one after it.
func (g *Guard) engineConfig(p *policy.Policy) policy.EngineConfig {
	cfg := policy.EngineConfig{Observer: g.loss, Lookups: g.finds.of(p), MarkKey: g.cfg.MarkKey}
	if old := g.live.Load(); old != nil {
		cfg.Before = old.engine
	}
	if g.local != nil {
		cfg.Fallback, cfg.Local = g.local, g.local
	}
	return cfg
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

// Policy returns the policy in force.
func (g *Guard) Policy() *policy.Policy { return g.live.Load().engine.Policy() }

// Waiting returns how many requests wait for their turn.
func (g *Guard) Waiting() int { return g.live.Load().engine.Waiting() }

// Close gives back what the guard holds.
func (g *Guard) Close() error {
	g.finds.close()
	if g.local == nil {
		return nil
	}
	return g.local.Close()
}

// lossLog logs that the store fails, at most once in lossEvery however many requests notice.
type lossLog struct {
	log    *slog.Logger
	store  string
	failed atomic.Int64
	said   atomic.Int64 // Unix nanoseconds
}

const lossEvery = 5 * time.Second

// Decided implements [policy.Observer].
func (l *lossLog) Decided(string, string, time.Duration) {}

// ShadowDenied implements [policy.Observer].
func (l *lossLog) ShadowDenied(string) {}

// Shed implements [policy.Observer].
func (l *lossLog) Shed(string) {}

// StoreFailed implements [policy.Observer].
func (l *lossLog) StoreFailed(code string, fallback bool) {
	l.failed.Add(1)
	now, said := time.Now().UnixNano(), l.said.Load()
	if now-said < int64(lossEvery) || !l.said.CompareAndSwap(said, now) {
		return
	}
	effect := "requests that need it are answered 503"
	if fallback {
		effect = "local limits are in force"
	}
	l.log.Warn("the store fails: "+effect, "store", l.store, "code", code, "failures", l.failed.Swap(0))
}

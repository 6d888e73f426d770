package app

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/policy"
)

// Guard is a policy at work on a store, with limits in memory for the time that a remote store is lost.
type Guard struct {
	*policy.Engine
	local *memstore.Store // nil if the store is in memory itself
}

// NewGuard puts a policy to work. The store is not the guard's: close the guard, then the store.
func NewGuard(p *policy.Policy, store *Store, log *slog.Logger) (*Guard, error) {
	g := &Guard{}
	cfg := policy.EngineConfig{Observer: &lossLog{log: log, store: store.Name}}
	if store.Remote {
		g.local = memstore.New(memstore.Config{Logger: log})
		cfg.Fallback = g.local
	}
	var err error
	if g.Engine, err = policy.NewEngine(p, store.Limiter, cfg); err != nil {
		_ = g.Close()
		return nil, err
	}
	return g, nil
}

// Close gives back what the guard holds.
func (g *Guard) Close() error {
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

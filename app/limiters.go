package app

import (
	"context"
	"errors"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/leasestore"
	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/policy"
	"github.com/headgate-io/headgate/resilience"
)

// limiters are what decides a policy's rules, by their store, and when that has failed:
//
//	strict    the deny cache, before the store
//	leased    leases of the store
//	local     this process's memory
//	fallback  the same memory, limits divided by the instances that live
//
// A store that is in memory itself cannot be lost and costs no call: it decides everything.
type limiters struct {
	strict                  headgate.Limiter
	leased, local, fallback headgate.Limiter // nil: strict does
	denials                 *leasestore.DenyCache
	leases                  *leasestore.Store
	memory                  *memstore.Store
}

// limitersConfig says what limiters are made of.
type limitersConfig struct {
	store  *Store
	live   func() int
	leases leasestore.Observer
	memory memstore.Config
}

func newLimiters(cfg limitersConfig) *limiters {
	if !cfg.store.Remote {
		return &limiters{strict: cfg.store.Limiter}
	}
	l := &limiters{
		denials: leasestore.NewDenyCache(cfg.store.Limiter, leasestore.DenyConfig{}),
		leases:  leasestore.New(cfg.store.Limiter, leasestore.Config{Observer: cfg.leases}),
		memory:  memstore.New(cfg.memory),
	}
	l.strict, l.leased, l.local, l.fallback = l.denials, l.leases, l.memory, resilience.NewShare(l.memory, cfg.live)
	return l
}

// give puts the limiters into the configuration of an engine, whose own limiter strict is.
func (l *limiters) give(cfg *policy.EngineConfig) {
	cfg.Leased, cfg.Local, cfg.Fallback = l.leased, l.local, l.fallback
}

// forget drops what is known of a key's denials here, what was charged ahead for it, and what was counted in memory.
func (l *limiters) forget(slot, key string) {
	if l.denials == nil {
		return
	}
	l.denials.Forget(slot, key)
	l.leases.Forget(slot, key)
	_ = l.memory.Reset(context.Background(), slot, key) // it fails only when it is closed, and then there is nothing to forget
}

// renew drops all that is known of denials: the limits may have changed.
func (l *limiters) renew() {
	if l.denials != nil {
		l.denials.ForgetAll()
	}
}

// reset erases the states of a slot's key, wherever they are.
func (l *limiters) reset(ctx context.Context, slot, key string) error {
	var all error
	for _, limiter := range []headgate.Limiter{l.strict, l.leased, l.local} {
		if r, ok := limiter.(headgate.Resetter); ok {
			all = errors.Join(all, r.Reset(ctx, slot, key))
		}
	}
	return all
}

// close gives back what was charged ahead, and the memory.
func (l *limiters) close() error {
	if l.leases == nil {
		return nil
	}
	return errors.Join(l.leases.Close(), l.memory.Close())
}

package app

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/redisstore"
	"github.com/headgate-io/headgate/resilience"
)

// firstReach is how long the start of a process waits for a store that may be away.
const firstReach = 3 * time.Second

func openRedis(ctx context.Context, cfg StoreConfig) (*Store, error) {
	c := redisConfig(cfg)
	store := &Store{Name: cfg.URL.String() + " namespace " + c.Namespace, Remote: true, reached: func() bool { return true }}
	store.breakers = resilience.NewBreakers(resilience.BreakersConfig{Probe: store.probe, Observer: cfg.Watch.Breakers, Logger: cfg.Log})
	c.Breaker, c.Observer = store.breakers, &calls{breakers: store.breakers, next: cfg.Watch.Calls}
	store.connect = func(ctx context.Context) (rueidis.Client, error) { return redisstore.Connect(ctx, c) }
	if cfg.MayBeAway {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, firstReach)
		defer cancel()
	}
	s, err := redisstore.New(ctx, c)
	switch {
	case err == nil:
		store.Limiter, store.remote, store.close = s, s, s.Close
	case !cfg.MayBeAway || errors.Is(err, redisstore.ErrConfig) || errors.Is(err, redisstore.ErrRefused):
		_ = store.breakers.Close() // it has nothing to give back but its goroutines
		return nil, err
	default:
		cfg.Log.Warn("the store cannot be reached yet: what its rules say for a store that fails is in force", "store", store.Name,
			"error", storeError("store", err))
		late := reachLate(c, store.Name)
		store.Limiter, store.remote, store.close, store.reached = late, late, late.Close, late.reached
	}
	return store, nil
}

func redisConfig(cfg StoreConfig) redisstore.Config {
	c := *cfg.URL.redis
	c.Namespace = cmp.Or(cfg.Namespace, c.Namespace, DefaultNamespace)
	c.Secret = cmp.Or(cfg.Secret, c.Secret)
	c.SentinelUsername = cmp.Or(cfg.SentinelUsername, c.SentinelUsername)
	c.SentinelPassword = cmp.Or(cfg.SentinelPassword, c.SentinelPassword)
	c.Logger = cfg.Log
	return c
}

// probe finds out whether a node can do its work. Breakers ask when one of theirs is open, so there is a store then.
func (s *Store) probe(ctx context.Context, node string) error { return s.remote.Probe(ctx, node) }

// calls has the breakers count the calls on the wire, and tells another observer of everything.
type calls struct {
	breakers *resilience.Breakers
	next     redisstore.Observer // nil: nobody
}

// Call implements [redisstore.Observer].
func (c *calls) Call(node, script string, takes int, took time.Duration, code headgate.Code) {
	c.breakers.Called(node, took, string(code))
	if c.next != nil {
		c.next.Call(node, script, takes, took, code)
	}
}

// Failed implements [redisstore.Observer].
func (c *calls) Failed(code headgate.Code, own bool) {
	if c.next != nil {
		c.next.Failed(code, own)
	}
}

// UnknownStates implements [redisstore.Observer].
func (c *calls) UnknownStates(n int) {
	if c.next != nil {
		c.next.UnknownStates(n)
	}
}

// NewKey implements [redisstore.Observer].
func (c *calls) NewKey(slot string) {
	if c.next != nil {
		c.next.NewKey(slot)
	}
}

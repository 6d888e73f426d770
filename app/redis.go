package app

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate-io/headgate/redisstore"
)

// firstReach is how long the start of a process waits for a store that may be away.
const firstReach = 3 * time.Second

func openRedis(ctx context.Context, cfg StoreConfig) (*Store, error) {
	c := redisConfig(cfg)
	store := &Store{Name: cfg.URL.String() + " namespace " + c.Namespace, Remote: true, reached: func() bool { return true }}
	store.connect = func(ctx context.Context) (rueidis.Client, error) { return redisstore.Connect(ctx, c) }
	if cfg.MayBeAway {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, firstReach)
		defer cancel()
	}
	s, err := redisstore.New(ctx, c)
	switch {
	case err == nil:
		store.Limiter, store.close = s, s.Close
	case !cfg.MayBeAway || errors.Is(err, redisstore.ErrConfig) || errors.Is(err, redisstore.ErrRefused):
		return nil, err
	default:
		cfg.Log.Warn("the store cannot be reached yet: what its rules say for a store that fails is in force", "store", store.Name,
			"error", storeError("store", err))
		late := reachLate(c, store.Name)
		store.Limiter, store.close, store.reached = late, late.Close, late.reached
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

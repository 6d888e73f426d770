package app

import (
	"cmp"
	"context"

	"github.com/headgate-io/headgate/redisstore"
)

func openRedis(ctx context.Context, cfg StoreConfig) (*Store, error) {
	c := *cfg.URL.redis
	c.Namespace = cmp.Or(cfg.Namespace, c.Namespace, DefaultNamespace)
	c.Secret = cmp.Or(cfg.Secret, c.Secret)
	c.SentinelUsername = cmp.Or(cfg.SentinelUsername, c.SentinelUsername)
	c.SentinelPassword = cmp.Or(cfg.SentinelPassword, c.SentinelPassword)
	c.Logger = cfg.Log
	s, err := redisstore.New(ctx, c)
	if err != nil {
		return nil, err
	}
	return &Store{Limiter: s, Name: cfg.URL.String() + " namespace " + c.Namespace, Remote: true, close: s.Close}, nil
}

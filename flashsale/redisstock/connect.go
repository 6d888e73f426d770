package redisstock

import (
	"context"

	"github.com/headgate-io/headgate/internal/redisconn"
	"github.com/redis/rueidis"
)

// connect opens a client and returns once it has talked to Redis.
func connect(ctx context.Context, cfg *Config) (rueidis.Client, error) {
	return redisconn.Connect(ctx, &redisconn.Options{
		Addrs: cfg.Addrs, Master: cfg.Master, Cluster: cfg.Cluster, Namespace: cfg.Namespace,
		Username: cfg.Username, Password: cfg.Password, SentinelUsername: cfg.SentinelUsername, SentinelPassword: cfg.SentinelPassword,
		DB: cfg.DB, TLS: cfg.TLS, ConnectTimeout: cfg.ConnectTimeout, Timeout: cfg.Timeout,
	})
}

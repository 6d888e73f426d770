package redisstock

import (
	"context"
	"net"
	"time"

	"github.com/redis/rueidis"
)

// connect opens a client and returns once it has talked to Redis.
func connect(ctx context.Context, cfg *Config) (rueidis.Client, error) {
	option := rueidis.ClientOption{
		InitAddress: cfg.Addrs,
		Username:    cfg.Username, Password: cfg.Password,
		SelectDB:     cfg.DB,
		TLSConfig:    cfg.TLS,
		Dialer:       net.Dialer{Timeout: cfg.ConnectTimeout, KeepAlive: 15 * time.Second},
		DisableRetry: true, // the caller repeats, and knows that it does
		DisableCache: true,
		// A connection on which nothing comes back for this long is given up and made anew.
		ConnWriteTimeout:   max(cfg.ConnectTimeout, 2*cfg.Timeout),
		PipelineMultiplex:  1,
		ForceSingleClient:  !cfg.Cluster && cfg.Master == "",
		ClientSetInfo:      rueidis.DisableClientSetInfo,
		ReadBufferEachConn: 64 << 10, WriteBufferEachConn: 64 << 10,
	}
	if cfg.Master != "" {
		option.Sentinel = rueidis.SentinelOption{
			MasterSet: cfg.Master, TLSConfig: cfg.TLS, Dialer: option.Dialer,
			Username: cfg.SentinelUsername, Password: cfg.SentinelPassword,
		}
	}
	type result struct {
		client rueidis.Client
		err    error
	}
	done := make(chan result, 1)
	go func() {
		client, err := rueidis.NewClient(option)
		done <- result{client, err}
	}()
	select {
	case r := <-done:
		return r.client, r.err
	case <-ctx.Done():
		go func() { // the client cannot be told to stop dialling; its own time-out ends it
			if r := <-done; r.err == nil {
				r.client.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// Package redisconn connects to Redis, alone, behind Sentinel or as a cluster, for the stores that never send a command twice.
package redisconn

import (
	"context"
	"net"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// Connect opens a client and returns once it has talked to Redis. A node of a cluster that is taken for a lone Redis is refused, with
// Redis's own error, CROSSSLOT.
func Connect(ctx context.Context, o *Options) (rueidis.Client, error) {
	type result struct {
		client rueidis.Client
		err    error
	}
	done := make(chan result, 1)
	go func() {
		client, err := rueidis.NewClient(o.client())
		if err == nil && !o.Cluster {
			if err = refuseCluster(ctx, client, o.Namespace); err != nil {
				client.Close()
			}
		}
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

// refuseCluster finds out that what was taken for a lone Redis is a node of a cluster, on which only some keys would work: a
// cluster refuses any command on keys of two slots, whatever they hold. Other answers, such as that the user may not ask, are no
// reason to give up.
func refuseCluster(ctx context.Context, client rueidis.Client, namespace string) error {
	err := client.Do(ctx, client.B().Arbitrary("MGET").Keys(namespace+"{a}", namespace+"{b}").Build()).Error()
	if refusal, ok := rueidis.IsRedisErr(err); ok && strings.HasPrefix(refusal.Error(), "CROSSSLOT") {
		return refusal
	}
	return nil
}

func (o *Options) client() rueidis.ClientOption {
	option := rueidis.ClientOption{
		InitAddress: o.Addrs,
		Username:    o.Username, Password: o.Password,
		SelectDB:     o.DB,
		TLSConfig:    o.TLS,
		Dialer:       net.Dialer{Timeout: o.ConnectTimeout, KeepAlive: 15 * time.Second},
		DisableRetry: true, // what may have run is never sent again by the client: whoever repeats knows that they do
		DisableCache: true,
		// A connection on which nothing comes back for this long is given up and made anew.
		ConnWriteTimeout:   max(o.ConnectTimeout, 2*o.Timeout),
		PipelineMultiplex:  1,
		ForceSingleClient:  !o.Cluster && o.Master == "",
		ClientSetInfo:      rueidis.DisableClientSetInfo,
		ReadBufferEachConn: 64 << 10, WriteBufferEachConn: 64 << 10,
	}
	if o.Master != "" {
		option.Sentinel = rueidis.SentinelOption{
			MasterSet: o.Master, TLSConfig: o.TLS, Dialer: option.Dialer,
			Username: o.SentinelUsername, Password: o.SentinelPassword,
		}
	}
	return option
}

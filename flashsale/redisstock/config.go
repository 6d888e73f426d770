package redisstock

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/internal/redisconn"
	"github.com/redis/rueidis"
)

// Config says where Redis is and how to use it. The zero Config means a Redis without a password on 127.0.0.1:6379.
type Config struct {
	// Client, if set, is a client of your own, made with DisableRetry, which stays yours to close; the fields on connecting are then
	// ignored.
	Client rueidis.Client

	// Addrs are host:port of Redis; of the sentinels if Master is set; of some nodes of a cluster if Cluster is set.
	// Default 127.0.0.1:6379.
	Addrs []string
	// Master is the name by which Sentinel knows the primary. Setting it means Sentinel.
	Master string
	// Cluster means Redis Cluster.
	Cluster bool
	// Username and Password are of an ACL user; a password alone is that of the default user.
	Username, Password string
	// SentinelUsername and SentinelPassword are for the sentinels themselves. Default: none.
	SentinelUsername, SentinelPassword string
	// DB is the number of the database; a cluster has only 0.
	DB int
	// TLS, if set, encrypts the connections.
	TLS *tls.Config
	// ConnectTimeout bounds connecting, greeting included. Default 1 s.
	ConnectTimeout time.Duration

	// Namespace keeps users of one Redis apart: 1 to 64 letters, digits, '.', '_', '-' and ':'. Default "headgate".
	Namespace string
	// Timeout is how long a call waits for Redis. Default 1 s. The caller's context may end it earlier.
	Timeout time.Duration
	// MaxBatch is the most reserve calls of one sku that go in one script call, 1 to 128. Default 128.
	MaxBatch int
	// MaxInFlight is the most script calls of reserves on the wire at a time for each sku. Default 2.
	MaxInFlight int
	// MaxQueue is the most reserve calls that wait to be sent; those beyond fail with CodeBusy at once. Default 16384.
	MaxQueue int
	// MaxCalls is the most other calls under way at a time; those beyond wait. Default 64.
	MaxCalls int
	// MaxDead is how many dead letters a sku keeps; one more drops the oldest, whose reservation stays pending until the sweeper
	// ends it. Default 10,000.
	MaxDead int
	// MaxRefusalBytes is how much memory the log of refusals may take: the oldest give way. Default 64 MiB.
	MaxRefusalBytes int64

	// Now, if set, is the clock, for tests. Default: that of Redis, read inside each script.
	Now func() time.Time
}

const maxBatch = 128

func (c Config) withDefaults() Config {
	where := c.redis().WithDefaults()
	c.Addrs, c.ConnectTimeout, c.Namespace = where.Addrs, where.ConnectTimeout, where.Namespace
	c.Timeout = cmp.Or(c.Timeout, time.Second)
	c.MaxBatch = cmp.Or(c.MaxBatch, maxBatch)
	c.MaxInFlight = cmp.Or(c.MaxInFlight, 2)
	c.MaxQueue = cmp.Or(c.MaxQueue, 16384)
	c.MaxCalls = cmp.Or(c.MaxCalls, 64)
	c.MaxDead = cmp.Or(c.MaxDead, 10_000)
	c.MaxRefusalBytes = cmp.Or(c.MaxRefusalBytes, 64<<20)
	return c
}

// redis is the part that says where Redis is.
func (c *Config) redis() *redisconn.Options {
	return &redisconn.Options{
		Addrs: c.Addrs, Master: c.Master, Cluster: c.Cluster, Namespace: c.Namespace,
		Username: c.Username, Password: c.Password, SentinelUsername: c.SentinelUsername, SentinelPassword: c.SentinelPassword,
		DB: c.DB, TLS: c.TLS, ConnectTimeout: c.ConnectTimeout, Timeout: c.Timeout,
	}
}

func (c *Config) validate() error {
	if err := c.redis().Check(); err != nil {
		return configErrorf("%s", err)
	}
	switch {
	case c.MaxBatch < 1 || c.MaxBatch > maxBatch:
		return configErrorf("a batch of %d reserve calls is outside 1 to %d", c.MaxBatch, maxBatch)
	case c.MaxInFlight < 1 || c.MaxQueue < 1 || c.MaxCalls < 1 || c.MaxDead < 1:
		return configErrorf("MaxInFlight %d, MaxQueue %d, MaxCalls %d and MaxDead %d: at least 1 each is needed", c.MaxInFlight, c.MaxQueue, c.MaxCalls, c.MaxDead)
	case c.MaxRefusalBytes < 1 || c.MaxRefusalBytes > maxNumber:
		return configErrorf("MaxRefusalBytes %d: at least 1 is needed", c.MaxRefusalBytes)
	}
	return nil
}

func configErrorf(format string, args ...any) error {
	return &flashsale.Error{Code: flashsale.CodeInvalidArgument, Message: "redisstock: " + fmt.Sprintf(format, args...)}
}

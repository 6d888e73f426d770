package redisstore

import (
	"cmp"
	"crypto/tls"
	"log/slog"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/internal/redisconn"
)

// Config says where Redis is and how to use it. The zero Config means a Redis without a password on 127.0.0.1:6379.
type Config struct {
	// Client, if set, is a client of your own, which stays yours to close; the fields on connecting are then ignored, but
	// for Cluster.
	Client Client

	// Addrs are host:port of Redis; of the sentinels if Master is set; of some nodes of a cluster if Cluster is set.
	// Default 127.0.0.1:6379.
	Addrs []string
	// Master is the name by which Sentinel knows the primary. Setting it means Sentinel.
	Master string
	// Cluster means Redis Cluster. Takes over several of its shards are then two round trips where one denies; see docs/redis.md.
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
	// Secret keys the choice of a shard, so that nobody can pick keys that all lie on one. All instances of a namespace need
	// the same, and a new one loses the states. Default: the namespace's name.
	Secret string

	// Timeout is how long a call waits for Redis. Default 200 ms. The deadline of the caller's context may end it earlier.
	Timeout time.Duration
	// MaxBatch is the most takes of one script call, 1 to 64. Default 64.
	MaxBatch int
	// MaxInFlight is the most script calls on the wire at a time: in all, or for each shard of a cluster. Default 2; 1 of a
	// cluster's.
	MaxInFlight int
	// MaxQueue is the most takes that wait to be sent; those beyond are answered with CodeOverloaded at once. Default 16384.
	MaxQueue int

	// Observer, if set, is told what happens. See there.
	Observer Observer
	// Breaker, if set, says which nodes are not worth asking. See there.
	Breaker Breaker
	// Logger gets what an operator should know. Default: nothing is logged.
	Logger *slog.Logger
}

// Breaker tells a Store which nodes of Redis not to ask. It is asked before everything that goes to a node, from many goroutines: it
// must not block, and should take nanoseconds. How a node fares it learns from [Observer].Call; whether one has come back,
// from [Store.Probe].
type Breaker interface {
	// Open tells whether calls to a node, as Observer.Call names it, are to fail at once. They do so with CodeUnavailable and an
	// error that wraps [ErrBreakerOpen]. Of a take over several nodes one that is open is enough, and nothing is sent.
	Open(node string) bool
}

// Observer is told what a Store does. Its methods are called from many goroutines, on the hot path: they must not block.
type Observer interface {
	// Call tells of one script call on the wire: the node that it went to, the script's name (take, refund, slots, inspect, reset,
	// fleet), how many takes it had, how long it took, and the code of its failure, "" if there was none.
	//
	// The node is host:port: of the one Redis, as configured; of the primary that Sentinel names; of the primary that serves
	// the keys on a cluster, as of late. It is "" where that is not known, which it never is of a client of your own.
	//
	// A call that has no answer within Config.Timeout has failed, with CodeIndeterminate, and is told of then, not when the client
	// gives it up. One that has failed took at most that: if this process was stopped meanwhile, that is not the node's fault. What
	// Redis refuses for the moment (LOADING, READONLY, TRYAGAIN) is one call for as long as it is repeated. When a caller leaves is
	// not the call's concern.
	Call(node, script string, takes int, took time.Duration, code headgate.Code)
	// Failed tells of one caller that got an error. own tells that its context ended before the store's time was up, which is
	// no failure of Redis.
	Failed(code headgate.Code, own bool)
	// UnknownStates tells of states that were found in a format that this version does not know, and started fresh.
	UnknownStates(n int)
	// NewKey tells of a key of a slot that was charged for the first time, or the first time since it expired.
	NewKey(slot string)
}

// nobody observes nothing.
type nobody struct{}

func (nobody) Call(string, string, int, time.Duration, headgate.Code) {}
func (nobody) Failed(headgate.Code, bool)                             {}
func (nobody) UnknownStates(int)                                      {}
func (nobody) NewKey(string)                                          {}

// Bounds of the batching.
const (
	maxBatch     = 64
	maxBatchKeys = 256
	maxSpecs     = 255
)

func (c Config) withDefaults() Config {
	where := c.redis().WithDefaults()
	c.Addrs, c.ConnectTimeout, c.Namespace = where.Addrs, where.ConnectTimeout, where.Namespace
	c.Timeout = cmp.Or(c.Timeout, 200*time.Millisecond)
	c.MaxBatch = cmp.Or(c.MaxBatch, maxBatch)
	c.MaxQueue = cmp.Or(c.MaxQueue, 16384)
	if c.MaxInFlight == 0 {
		if c.MaxInFlight = 2; c.Cluster {
			c.MaxInFlight = 1
		}
	}
	if c.Observer == nil {
		c.Observer = nobody{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
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
		return configErrorf("a batch of %d takes is outside 1 to %d", c.MaxBatch, maxBatch)
	case c.MaxInFlight < 1:
		return configErrorf("%d calls in flight: at least 1 is needed", c.MaxInFlight)
	case c.MaxQueue < 1:
		return configErrorf("a queue of %d takes: at least 1 is needed", c.MaxQueue)
	}
	return nil
}

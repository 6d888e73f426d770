// Package redisstore decides takes in Redis: on one node, under Sentinel, or on a Cluster, for any number of processes at
// once. The decisions are those of package algo to the microsecond; docs/redis.md says how they are made, what is kept in
// Redis, and what each failure of Redis means.
//
//	store, err := redisstore.Open(ctx, "redis://127.0.0.1:6379")
//	if err != nil { … }
//	defer store.Close()
//	ok, err := headgate.Allow(ctx, store, limit, "203.0.113.9")
package redisstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/algo"
	"github.com/headgate-io/headgate/internal/redisconn"
	"github.com/redis/rueidis"
)

// Store is a [headgate.Limiter] in Redis, with every ability: [headgate.Refunder], [headgate.Slots], [headgate.Resetter],
// [headgate.Inspector], [headgate.Timed]. It is safe for concurrent use. Close it when nobody uses it any more.
type Store struct {
	view
	cfg     Config
	client  Client
	owned   rueidis.Client // nil where the client is the user's
	scripts scripts
	names   *namer
	zones   algo.Zones
	windows calendars
	lanes   []lane        // one; on a cluster one for each shard
	slots   [shards]int64 // of a cluster: where the lanes' keys lie

	ops     sync.Pool
	batches sync.Pool
	queued  atomic.Int64  // ops that wait to be sent
	stuck   atomic.Int64  // calls whose place on the wire was given away
	sending atomic.Int64  // goroutines that make calls for others
	spreads atomic.Int64  // takes over several shards that are under way
	asides  atomic.Int64  // calls past the queues that are under way
	probes  atomic.Int64  // probes that are under way
	asked   atomic.Int64  // questions after the nodes that are under way
	rotates atomic.Int64  // which of a node's shards is probed next
	doubted chan struct{} // gets a value when the lanes' nodes may have changed; nil where they do not
	broken  atomic.Bool   // the last call got no answer

	open       *headgate.Error  // of what the breaker does not let through
	complained atomic.Int64     // when a failure was logged, ns
	wall       func() time.Time // the clock of this machine

	base    context.Context // ends when the store closes
	stop    context.CancelFunc
	senders sync.WaitGroup
	closing sync.Once
}

// view is the store at a time, or at that of Redis.
type view struct {
	s     *Store
	timed bool
	at    time.Time
}

var (
	_ headgate.Limiter   = (*Store)(nil)
	_ headgate.Refunder  = (*Store)(nil)
	_ headgate.Slots     = (*Store)(nil)
	_ headgate.Resetter  = (*Store)(nil)
	_ headgate.Inspector = (*Store)(nil)
	_ headgate.Timed     = (*Store)(nil)
)

// New connects to Redis and returns a store. The context bounds connecting only. Its error wraps [ErrConfig] or [ErrRefused] if
// to try again makes no sense.
func New(ctx context.Context, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, client: cfg.Client, scripts: newScripts(), names: newNamer(cfg.Namespace, cfg.Secret), open: newOpenError(), wall: time.Now}
	if s.client == nil {
		client, err := redisconn.Connect(ctx, cfg.redis())
		if err != nil {
			return nil, connectError(err)
		}
		s.client, s.owned = rueidisClient{client}, client
	}
	s.cfg.Password, s.cfg.SentinelPassword, s.cfg.Secret = "", "", "" // not needed any more
	s.view.s = s
	s.windows.zones = &s.zones
	s.lanes = make([]lane, 1)
	if cfg.Cluster {
		s.lanes = make([]lane, shards)
	}
	for i := range s.lanes {
		s.lanes[i].s = s
	}
	s.ops.New = func() any { return newOp() }
	s.batches.New = func() any { return newBatch() }
	s.base, s.stop = context.WithCancel(context.Background())
	s.startNodes(ctx)
	return s, nil
}

// Close fails what waits with CodeClosed, ends the calls on the wire and, unless it is the user's, the client. A second Close
// does nothing.
func (s *Store) Close() error {
	s.closing.Do(func() {
		for i := range s.lanes {
			s.lanes[i].close()
		}
		s.stop()
		if s.owned != nil {
			s.owned.Close()
		}
		s.senders.Wait()
	})
	return nil
}

// At returns the store at a time, for tests and replays: as [headgate.Timed] says. Keys that are written through it live for
// an hour of real time at least. Its takes are sent one by one.
func (v *view) At(now time.Time) headgate.Limiter { return &view{s: v.s, timed: true, at: now} }

// lane returns the queue for ops on a key.
func (s *Store) lane(key string) *lane {
	if len(s.lanes) == 1 {
		return &s.lanes[0]
	}
	return &s.lanes[s.names.shard(key)]
}

// begin returns an op for now, with its deadline; wall is the time on the wall.
func (v *view) begin(ctx context.Context, script *script) (o *op, wall time.Time, err *headgate.Error) {
	if ctx.Err() != nil {
		return nil, wall, newError(headgate.CodeTimeout, ctx.Err(), "the time was up before anything was sent; nothing was charged")
	}
	var now int64
	if v.timed {
		us, bad := headgate.Micros(v.at)
		if bad != nil {
			return nil, wall, timeError(bad)
		}
		now = us
	}
	wall = time.Now()
	o = v.s.ops.Get().(*op)
	o.script, o.timed, o.now, o.deadline = script, v.timed, now, wall.Add(v.s.cfg.Timeout)
	o.around = now
	if !v.timed {
		o.around = v.s.wall().UnixMicro()
	}
	return o, wall, nil
}

func timeError(err error) *headgate.Error {
	var e *headgate.Error
	if errors.As(err, &e) {
		return e
	}
	return newError(headgate.CodeInvalidTime, err, "the time cannot be used")
}

// run sends an op and waits for its answer. After an error the op is gone; else give it back with free.
func (s *Store) run(ctx context.Context, l *lane, o *op, wall time.Time) *headgate.Error {
	if s.patient(ctx, o) && l.alone(o) {
		<-o.done
		if o.err != nil {
			err := o.err
			s.free(o)
			return err
		}
		return nil
	}
	if err := l.submit(o); err != nil {
		s.free(o)
		return err
	}
	err, left := o.await(ctx, wall)
	if err != nil && !left {
		s.free(o)
	}
	return err
}

// patient tells whether a caller can wait for the client itself: it has no earlier deadline than the store's, and the
// client is ours, keeps to deadlines, and is connected, as far as the last call knows. The client lets calls wait for a
// connection that another call makes, as long as that one may take: beside calls with more time than the caller's it cannot.
func (s *Store) patient(ctx context.Context, o *op) bool {
	if s.owned == nil || s.broken.Load() || s.sending.Load() > 0 {
		return false
	}
	own, ok := ctx.Deadline()
	return !ok || !own.Before(o.deadline)
}

// free gives an op back once nothing of its answer is needed.
func (s *Store) free(o *op) {
	clear(o.charges)
	clear(o.refs)
	o.charges, o.refs = o.charges[:0], o.refs[:0]
	o.marks, o.what, o.raw, o.reply, o.err = nil, 0, nil, "", nil
	o.refusal.Store(nil)
	s.ops.Put(o)
}

func (s *Store) bounds(l headgate.Limit, around int64) [4]int64 { return s.windows.bounds(l, around) }

// fail tells the observer of an error and returns it, nil for none.
func (s *Store) fail(err *headgate.Error) error {
	if err == nil {
		return nil
	}
	s.cfg.Observer.Failed(err.Code, err != s.open && isOwn(err))
	return err
}

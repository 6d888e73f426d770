package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate-io/headgate/lookup"
)

// lateRedis reads hashes over a connection of its own, which is made when it is first needed. Look-ups wait for the first
// attempt. Once one has failed they fail at once until another has succeeded, of which there is one in connectEvery: a Redis
// that answers nothing, not even that it is away, holds up nobody.
type lateRedis struct {
	connect func(context.Context) (rueidis.Client, error)
	ctx     context.Context // ends with close
	stop    context.CancelFunc
	tries   sync.WaitGroup

	mu   sync.Mutex
	last *connection // nil before the first; guarded by mu
}

// connectEvery is how often connecting is tried, connectWithin how long it may take.
const (
	connectEvery  = time.Second
	connectWithin = 3 * time.Second
)

// connection is an attempt to connect, and what came of it: what follows done is set when done is closed.
type connection struct {
	done   chan struct{}
	before error // what the attempt before has failed with; nil for the first
	client rueidis.Client
	redis  *lookup.Redis
	err    error
	ended  time.Time
}

func newLateRedis(connect func(context.Context) (rueidis.Client, error)) *lateRedis {
	r := &lateRedis{connect: connect}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

// HashField reads a field of a hash, see [lookup.Redis.HashField].
func (r *lateRedis) HashField(ctx context.Context, hash, field string) (value string, found bool, err error) {
	a := r.current()
	if err := a.await(ctx); err != nil {
		return "", false, err
	}
	return a.redis.HashField(ctx, hash, field)
}

// await waits for the end of an attempt, but not of one after a failure.
func (a *connection) await(ctx context.Context) error {
	select {
	case <-a.done:
		return a.err
	default:
	}
	if a.before != nil {
		return a.before
	}
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return fmt.Errorf("look-ups in Redis: it is not connected yet: %w", ctx.Err())
	}
}

// current returns the attempt that counts: the last one, or a new one if that has failed a while ago.
func (r *lateRedis) current() *connection {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.last; a != nil && (r.ctx.Err() != nil || !a.worn()) {
		return a
	}
	a := &connection{done: make(chan struct{})}
	if r.last != nil {
		a.before = r.last.err
	}
	r.last = a
	if r.ctx.Err() != nil { // closed before anything was looked up
		a.err = r.ctx.Err()
		close(a.done)
		return a
	}
	r.tries.Go(func() { a.run(r.ctx, r.connect) })
	return a
}

// worn tells whether an attempt has failed so long ago that it is time for another.
func (a *connection) worn() bool {
	select {
	case <-a.done:
		return a.err != nil && time.Since(a.ended) >= connectEvery
	default:
		return false
	}
}

func (a *connection) run(ctx context.Context, connect func(context.Context) (rueidis.Client, error)) {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	a.client, a.err = connect(ctx)
	if a.err != nil {
		a.err = storeError("look-ups in Redis", a.err)
	} else {
		a.redis = lookup.NewRedis(a.client)
	}
	a.ended = time.Now()
	close(a.done)
}

func (r *lateRedis) close() {
	r.mu.Lock()
	r.stop() // no attempt begins from here on
	a := r.last
	r.mu.Unlock()
	r.tries.Wait()
	if a != nil && a.client != nil {
		a.client.Close()
	}
}

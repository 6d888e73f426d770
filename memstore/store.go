// Package memstore is the in-process store: a headgate.Limiter that keeps its states in memory and decides by the wall
// clock. It is bounded, it forgets idle keys by itself, and a take on keys it knows allocates nothing.
//
// When a slot has as many keys as it may have, its further keys share one state until others have gone idle: a flood of new
// keys is limited as one, and never makes the store forget a key that is denied.
package memstore

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/algo"
)

// Store is the in-process limiter. Make it with [New]; it is safe for concurrent use, and must be closed.
//
// It implements [headgate.Limiter], [headgate.Refunder], [headgate.Slots], [headgate.Resetter], [headgate.Inspector] and
// [headgate.Timed].
type Store struct {
	cfg    Config
	seed   maphash.Seed
	clock  clock
	zones  algo.Zones
	closed atomic.Bool
	born   time.Time

	table      table
	slots      registry
	keys       atomic.Int64
	overflowed atomic.Uint64
	forgotten  atomic.Uint64

	urgent atomic.Bool // keys overflow: the sweeper hurries
	stop   chan struct{}
	ended  sync.WaitGroup
	once   sync.Once
}

// New returns a store and starts its sweeper.
func New(cfg Config) *Store {
	s := &Store{cfg: cfg.withDefaults(), seed: maphash.MakeSeed(), born: time.Now(), stop: make(chan struct{})}
	s.clock.custom, s.clock.wall = cfg.Now, time.Now
	s.slots.byName, s.slots.most, s.slots.full = map[string]*slot{}, s.cfg.MaxSlots, int64(s.cfg.MaxKeysPerSlot)
	if s.cfg.SweepInterval > 0 {
		s.ended.Go(s.sweepLoop)
	}
	return s
}

// Close ends the sweeper. Calls after it fail with headgate.CodeClosed; those under way finish. It may be called again.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.closed.Store(true)
		close(s.stop)
	})
	s.ended.Wait()
	return nil
}

// Stats are the figures of a store.
type Stats struct {
	// Keys and Slots is how many there are now.
	Keys, Slots int
	// Overflowed counts the charges that had to use a state shared by the keys for which there was no room.
	Overflowed uint64
	// Forgotten counts the idle keys that the sweeper has removed.
	Forgotten uint64
}

// Stats returns the figures of the store.
func (s *Store) Stats() Stats {
	return Stats{Keys: int(s.keys.Load()), Slots: s.slots.len(), Overflowed: s.overflowed.Load(), Forgotten: s.forgotten.Load()}
}

// Take implements [headgate.Limiter]. It fails with CodeTimeout if ctx is over, before anything is charged.
func (s *Store) Take(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	return s.take(ctx, nil, charges, d)
}

// Refund implements [headgate.Refunder].
func (s *Store) Refund(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	return s.refund(ctx, nil, charges, d)
}

// Renew implements [headgate.Slots].
func (s *Store) Renew(ctx context.Context, c *headgate.Charge) (alive bool, err error) {
	return s.renew(ctx, nil, c)
}

// Release implements [headgate.Slots].
func (s *Store) Release(ctx context.Context, c *headgate.Charge) error {
	return s.release(ctx, nil, c)
}

// Reset implements [headgate.Resetter]. A state that the key shares with others for want of room is left alone.
func (s *Store) Reset(ctx context.Context, slot, key string) error {
	return s.reset(ctx, nil, slot, key)
}

// Inspect implements [headgate.Inspector]. An idle state is not found, whether or not it was swept.
func (s *Store) Inspect(ctx context.Context, slot, key string) (headgate.Inspection, error) {
	return s.inspect(ctx, nil, slot, key)
}

// At implements [headgate.Timed]. Keys used through the view stay for an hour at least, whatever their time says.
func (s *Store) At(now time.Time) headgate.Limiter { return &view{s: s, now: now} }

// start begins every call: it refuses those that must not run and tells the time. v is nil for the store's own clock.
func (s *Store) start(ctx context.Context, v *view) (now int64, err error) {
	if ctx.Err() != nil {
		return 0, &headgate.Error{Code: headgate.CodeTimeout, Charge: -1, Message: "memstore: not begun", Err: context.Cause(ctx)}
	}
	if s.closed.Load() {
		return 0, &headgate.Error{Code: headgate.CodeClosed, Charge: -1, Message: "memstore: the store is closed"}
	}
	if v != nil {
		return headgate.Micros(v.now)
	}
	return s.clock.now()
}

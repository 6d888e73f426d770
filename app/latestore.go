package app

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/redisstore"
)

// reachEvery is how often a store that is away is tried, reachWithin how long it may take.
const (
	reachEvery  = time.Second
	reachWithin = 3 * time.Second
)

// lateStore is a store on Redis that could not be reached when it was to be opened. Until it can be, it fails at once. It has
// the abilities of the store but for that of being told the time.
type lateStore struct {
	store atomic.Pointer[redisstore.Store] // nil until it is reached
	stop  context.CancelFunc
	tries sync.WaitGroup
}

var (
	_ headgate.Limiter   = (*lateStore)(nil)
	_ headgate.Refunder  = (*lateStore)(nil)
	_ headgate.Slots     = (*lateStore)(nil)
	_ headgate.Resetter  = (*lateStore)(nil)
	_ headgate.Inspector = (*lateStore)(nil)
	_ remoteStore        = (*lateStore)(nil)
)

func reachLate(cfg redisstore.Config, name string) *lateStore {
	ctx, cancel := context.WithCancel(context.Background())
	l := &lateStore{stop: cancel}
	l.tries.Go(func() { l.reach(ctx, cfg, name) })
	return l
}

// reach tries until it has reached the store. It says so, and what keeps it whenever that is another thing.
func (l *lateStore) reach(ctx context.Context, cfg redisstore.Config, name string) {
	log, said := cfg.Logger, ""
	tick := time.NewTicker(reachEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		store, err := openWithin(ctx, cfg)
		if err == nil {
			l.store.Store(store)
			log.Info("the store is reached", "store", name)
			return
		}
		if text := storeError("store", err).Error(); text != said && ctx.Err() == nil {
			log.LogAttrs(ctx, slog.LevelWarn, "the store cannot be reached yet", slog.String("store", name), slog.String("error", text))
			said = text
		}
	}
}

func openWithin(ctx context.Context, cfg redisstore.Config) (*redisstore.Store, error) {
	ctx, cancel := context.WithTimeout(ctx, reachWithin)
	defer cancel()
	return redisstore.New(ctx, cfg)
}

func (l *lateStore) reached() bool { return l.store.Load() != nil }

// Close gives back what the store holds.
func (l *lateStore) Close() error {
	l.stop()
	l.tries.Wait()
	if s := l.store.Load(); s != nil {
		return s.Close()
	}
	return nil
}

func away() error {
	return &headgate.Error{Code: headgate.CodeUnavailable, Charge: -1, Message: "the store has not been reached yet; nothing was charged"}
}

// Take implements [headgate.Limiter].
func (l *lateStore) Take(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	if s := l.store.Load(); s != nil {
		return s.Take(ctx, charges, d)
	}
	d.Reset(0)
	return away()
}

// Refund implements [headgate.Refunder].
func (l *lateStore) Refund(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	if s := l.store.Load(); s != nil {
		return s.Refund(ctx, charges, d)
	}
	return away()
}

// Renew implements [headgate.Slots].
func (l *lateStore) Renew(ctx context.Context, c *headgate.Charge) (alive bool, err error) {
	if s := l.store.Load(); s != nil {
		return s.Renew(ctx, c)
	}
	return false, away()
}

// Release implements [headgate.Slots].
func (l *lateStore) Release(ctx context.Context, c *headgate.Charge) error {
	if s := l.store.Load(); s != nil {
		return s.Release(ctx, c)
	}
	return away()
}

// Reset implements [headgate.Resetter].
func (l *lateStore) Reset(ctx context.Context, slot, key string) error {
	if s := l.store.Load(); s != nil {
		return s.Reset(ctx, slot, key)
	}
	return away()
}

// Inspect implements [headgate.Inspector].
func (l *lateStore) Inspect(ctx context.Context, slot, key string) (headgate.Inspection, error) {
	if s := l.store.Load(); s != nil {
		return s.Inspect(ctx, slot, key)
	}
	return headgate.Inspection{}, away()
}

// Beat implements [resilience.Board].
func (l *lateStore) Beat(ctx context.Context, id string, ttl time.Duration) (live int, notes map[string]string, err error) {
	if s := l.store.Load(); s != nil {
		return s.Beat(ctx, id, ttl)
	}
	return 0, nil, away()
}

// Note implements [resilience.Board].
func (l *lateStore) Note(ctx context.Context, name, value string, ttl time.Duration) error {
	if s := l.store.Load(); s != nil {
		return s.Note(ctx, name, value, ttl)
	}
	return away()
}

// Probe implements [remoteStore].
func (l *lateStore) Probe(ctx context.Context, node string) error {
	if s := l.store.Load(); s != nil {
		return s.Probe(ctx, node)
	}
	return away()
}

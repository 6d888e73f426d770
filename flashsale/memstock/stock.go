package memstock

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/puzpuzpuz/xsync/v4"

	"github.com/headgate-io/headgate/flashsale"
)

// Stock implements [flashsale.Stock], [flashsale.Queue] and [flashsale.Loader] in memory. It is safe for concurrent use: calls for one key
// run one after the other, those for different keys do not wait for each other.
type Stock struct {
	cfg          Config
	run          string
	skus         *xsync.Map[flashsale.Key, *sku]
	reservations atomic.Int64 // of all skus and epochs
	closed       atomic.Bool
	refusals     refusalLog
}

var (
	_ flashsale.Stock  = (*Stock)(nil)
	_ flashsale.Queue  = (*Stock)(nil)
	_ flashsale.Loader = (*Stock)(nil)
)

// New returns an empty stock, with a run of its own.
func New(cfg Config) *Stock {
	cfg = cfg.withDefaults()
	var run [8]byte
	_, _ = io.ReadFull(cfg.Rand, run[:]) // a source that fails makes a poorer name, and the epochs still start from nothing
	return &Stock{cfg: cfg, run: hex.EncodeToString(run[:]), skus: xsync.NewMap[flashsale.Key, *sku]()}
}

// Close ends the stock: what it holds is gone, and every later call fails with CodeClosed.
func (s *Stock) Close() error {
	if s.closed.CompareAndSwap(false, true) {
		s.skus.Clear()
		s.refusals.clear()
	}
	return nil
}

// now is the clock in microseconds, which is how exact the other stores are.
func (s *Stock) now() int64 { return s.cfg.Now().UnixMicro() }

// sku is what there is of one key.
type sku struct {
	mu sync.Mutex
	// Guarded by mu. pointer is the current epoch, 0 before the first; epochs are those that have keys, and current is that of the
	// pointer, nil while nothing is loaded into it.
	pointer int64
	epochs  map[int64]*keys
	current *keys
	gone    bool // it was removed, and is not in the stock any more
}

// check refuses to work on behalf of whoever has gone, and after Close.
func (s *Stock) check(ctx context.Context) error {
	if s.closed.Load() {
		return &flashsale.Error{Code: flashsale.CodeClosed, Message: "memstock: the stock has been closed"}
	}
	if err := ctx.Err(); err != nil {
		return &flashsale.Error{Code: flashsale.CodeUnavailable, Message: "memstock: not begun", Err: err}
	}
	return nil
}

// lock returns the keys of the current epoch, with their sku locked, if it is the one that the caller knows and has been loaded.
func (s *Stock) lock(ctx context.Context, key flashsale.Key, epoch int64) (*keys, error) {
	k, err := s.lockPointed(ctx, key, epoch)
	if err != nil {
		return nil, err
	}
	if k.current == nil || !k.current.loaded {
		k.mu.Unlock()
		return nil, failf(flashsale.CodeRebuilding, "the stock of %s is being loaded in epoch %d; ask again", key, epoch)
	}
	return k.current, nil
}

// lockPointed returns a sku, locked, if the epoch is the current one, loaded or not.
func (s *Stock) lockPointed(ctx context.Context, key flashsale.Key, epoch int64) (*sku, error) {
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	k, ok := s.skus.Load(key)
	if !ok {
		return nil, stale(key, epoch, 0)
	}
	k.mu.Lock()
	if k.pointer != epoch || epoch == 0 {
		pointer := k.pointer
		k.mu.Unlock()
		return nil, stale(key, epoch, pointer)
	}
	return k, nil
}

func stale(key flashsale.Key, epoch, pointer int64) error {
	return failf(flashsale.CodeStaleEpoch, "the stock of %s is at epoch %d, not %d; read the epoch again from SQL", key, pointer, epoch)
}

func failf(code flashsale.Code, format string, args ...any) error {
	return &flashsale.Error{Code: code, Message: fmt.Sprintf("memstock: "+format, args...)}
}

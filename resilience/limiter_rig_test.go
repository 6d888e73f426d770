package resilience

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/memstore"
)

// fallible is a store that can be made to fail.
type fallible struct {
	*memstore.Store
	mu    sync.Mutex
	err   error
	after bool // it fails after it has done what was asked
	calls atomic.Int64
}

// fail lets it fail from now on, or work again.
func (f *fallible) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.after = err, headgate.CodeOf(err) == headgate.CodeIndeterminate
}

func (f *fallible) run(do func() error) error {
	f.calls.Add(1)
	f.mu.Lock()
	fails, after := f.err, f.after
	f.mu.Unlock()
	if fails != nil && !after {
		return fails
	}
	if err := do(); err != nil {
		return err
	}
	return fails
}

func (f *fallible) Take(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	err := f.run(func() error { return f.Store.Take(ctx, charges, d) })
	if err != nil {
		d.Reset(0)
	}
	return err
}

func (f *fallible) Refund(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	return f.run(func() error { return f.Store.Refund(ctx, charges, d) })
}

func (f *fallible) Renew(ctx context.Context, c *headgate.Charge) (alive bool, err error) {
	err = f.run(func() error { alive, err = f.Store.Renew(ctx, c); return err })
	return alive && err == nil, err
}

func (f *fallible) Release(ctx context.Context, c *headgate.Charge) error {
	return f.run(func() error { return f.Store.Release(ctx, c) })
}

func (f *fallible) Reset(ctx context.Context, slot, key string) error {
	return f.run(func() error { return f.Store.Reset(ctx, slot, key) })
}

func failure(code headgate.Code) error {
	return &headgate.Error{Code: code, Charge: -1, Message: "made to fail"}
}

// fell counts what was decided locally, by code.
type fell struct {
	mu    sync.Mutex
	codes map[string]int
}

func (f *fell) FellBack(code string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.codes == nil {
		f.codes = map[string]int{}
	}
	f.codes[code]++
}

func (f *fell) count(code string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.codes[code]
}

// pair is a limiter with its parts.
type pair struct {
	*Limiter
	store *fallible
	local *memstore.Store
	fell  *fell
}

func openPair(tb testing.TB, cfg LimiterConfig) pair {
	tb.Helper()
	p := pair{store: &fallible{Store: openMemory(tb)}, local: openMemory(tb), fell: &fell{}}
	cfg.Observer = p.fell
	p.Limiter = NewLimiter(p.store, p.local, cfg)
	tb.Cleanup(func() { _ = p.Close() })
	return p
}

// used is what a store has charged.
func used(t *testing.T, l headgate.Inspector, slot string) int64 {
	t.Helper()
	in, err := l.Inspect(t.Context(), slot, "k")
	if err != nil {
		t.Fatal(err)
	}
	return in.Used
}

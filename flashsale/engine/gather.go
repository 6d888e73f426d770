package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// gather answers many callers with few calls: whoever comes while all calls are under way shares the next one. What is answered
// was asked for after the caller came, so it is never older than that. There is no goroutine: the first caller of a call makes it.
type gather[K comparable, V any] struct {
	// ask answers keys; what is not in its answer is not there. No more join a call that has limit of them.
	ask   func(ctx context.Context, keys []K) (map[K]V, error)
	limit int
	slots chan struct{} // one for each call that may be under way

	mu   sync.Mutex
	open *gathered[K, V] // still takes keys; nil: there is none
}

// gathered is one call for several.
type gathered[K comparable, V any] struct {
	keys    []K
	seen    map[K]struct{}
	done    chan struct{}
	answers map[K]V
	err     error
	// left tells that who made the call has gone: the others begin anew.
	left bool
}

func newGather[K comparable, V any](calls, limit int, ask func(context.Context, []K) (map[K]V, error)) *gather[K, V] {
	return &gather[K, V]{ask: ask, limit: limit, slots: make(chan struct{}, calls)}
}

// get returns the answer for a key, and whether there is one.
func (g *gather[K, V]) get(ctx context.Context, key K) (value V, found bool, err error) {
	answers, err := g.all(ctx, key)
	value, found = answers[key]
	return value, found, err
}

// all returns answers among which are those for some keys. They are shared: they must not be changed.
func (g *gather[K, V]) all(ctx context.Context, keys ...K) (map[K]V, error) {
	for {
		call, mine := g.join(keys)
		if mine {
			g.make(ctx, call)
		}
		select {
		case <-call.done:
		case <-ctx.Done():
			return nil, interrupted(ctx)
		}
		if call.left && ctx.Err() == nil {
			continue
		}
		return call.answers, call.err
	}
}

func (g *gather[K, V]) join(keys []K) (call *gathered[K, V], mine bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	call = g.open
	if call == nil {
		call, mine = &gathered[K, V]{seen: make(map[K]struct{}, len(keys)), done: make(chan struct{})}, true
		g.open = call
	}
	for _, key := range keys {
		if _, ok := call.seen[key]; !ok {
			call.seen[key] = struct{}{}
			call.keys = append(call.keys, key)
		}
	}
	if len(call.keys) >= g.limit {
		g.open = nil
	}
	return call, mine
}

func (g *gather[K, V]) make(ctx context.Context, call *gathered[K, V]) {
	defer close(call.done)
	select {
	case g.slots <- struct{}{}:
		defer func() { <-g.slots }()
	case <-ctx.Done():
	}
	g.mu.Lock()
	if g.open == call {
		g.open = nil
	}
	g.mu.Unlock()
	if ctx.Err() != nil {
		call.left, call.err = true, interrupted(ctx)
		return
	}
	// If it panics the others must not take that for an answer without them.
	call.err = errorf(flashsale.CodeInternal, "what was looked up could not be read")
	call.answers, call.err = g.ask(ctx, call.keys)
	if call.err != nil && ctx.Err() != nil {
		call.left, call.err = true, interrupted(ctx)
	}
}

// interrupted is the error of a call whose context has ended.
func interrupted(ctx context.Context) error {
	return &flashsale.Error{Code: flashsale.CodeUnavailable, Message: "the call was given up", Err: context.Cause(ctx)}
}

// errorf returns an error of the sale.
func errorf(code flashsale.Code, format string, args ...any) error {
	return &flashsale.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// pause waits, and reports whether the context has lasted.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

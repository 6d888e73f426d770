package invariants

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/porttest"
)

// faults are what happens at the calls of the ports of all engines of a world.
type faults struct {
	hooks atomic.Pointer[hooks]
}

// hooks may be nil each, and refuse a call: before it, so that it is not made, or after it, so that nobody hears of it. Step, if set, has
// the calls made one at a time, whoever makes them, and is called after each of them: between two steps.
type hooks struct {
	before, after func(call string) error
	step          func(call string)
	one           sync.Mutex
}

// set puts hooks in place, nil for none. No call may be under way.
func (f *faults) set(h *hooks) { f.hooks.Store(h) }

// gate is passed by all calls.
func (f *faults) gate() *porttest.Gate {
	return &porttest.Gate{
		Before: func(_ context.Context, call string) error {
			h := f.hooks.Load()
			if h == nil {
				return nil
			}
			if h.alone(call) {
				h.one.Lock()
			}
			if h.before != nil {
				if err := h.before(call); err != nil {
					h.unlock(call)
					return err
				}
			}
			return nil
		},
		After: func(_ context.Context, call string, _ error) error {
			h := f.hooks.Load()
			if h == nil {
				return nil
			}
			if h.alone(call) {
				h.step(call)
			}
			h.unlock(call)
			if h.after != nil {
				return h.after(call)
			}
			return nil
		},
	}
}

// alone reports whether a call is one step. A snapshot is none: its parts are loaded while it is read.
func (h *hooks) alone(call string) bool { return h.step != nil && call != "orders.Snapshot" }

func (h *hooks) unlock(call string) {
	if h.alone(call) {
		h.one.Unlock()
	}
}

// cut is a call whose line is cut.
func cut(call string) error {
	return &flashsale.Error{Code: flashsale.CodeUnavailable, Message: call + ": the line is cut"}
}

// lose refuses the first n calls of some names.
func lose(n int64, calls ...string) func(string) error {
	var left atomic.Int64
	left.Store(n)
	return func(call string) error {
		if !slices.Contains(calls, call) || left.Add(-1) < 0 {
			return nil
		}
		return cut(call)
	}
}

// flaky refuses calls of the stores by chance: one in so many.
func flaky(seed uint64, oneIn int) func(string) error {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 3))
	return func(call string) error {
		if !strings.HasPrefix(call, "stock.") && !strings.HasPrefix(call, "orders.") {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if rng.IntN(oneIn) > 0 {
			return nil
		}
		return cut(call)
	}
}

// doom is the death of an engine at its n-th call of a port, before it is made; what is after a call is before the next one. From then
// on nothing of the engine comes to any port.
type doom struct {
	n   int
	end context.CancelFunc

	mu    sync.Mutex // a lease may be renewed beside the flow
	calls int
	dead  bool
	at    string
}

func (d *doom) gate() *porttest.Gate {
	return &porttest.Gate{Before: func(_ context.Context, call string) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.calls++; d.calls == d.n {
			d.dead, d.at = true, call
			d.end()
		}
		if d.dead {
			return cut(call)
		}
		return nil
	}}
}

// told is what observers were told.
type told struct {
	mu    sync.Mutex
	alarm map[string]bool
}

func (o *told) alarmed(kind string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.alarm[kind]
}

// Alarm implements engine.Observer.
func (o *told) Alarm(kind, _ string, on bool, _ float64, _ string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.alarm == nil {
		o.alarm = map[string]bool{}
	}
	o.alarm[kind] = on
}

// The rest of engine.Observer is not remembered.
func (*told) Moved(string, string, string, int64)                       {}
func (*told) Reserved(string, string, time.Duration)                    {}
func (*told) Batch(string, int, int, time.Duration, time.Duration)      {}
func (*told) Backlog(string, int64, int64, int64, int64, time.Duration) {}
func (*told) Workers(int, string)                                       {}
func (*told) Leased(string, bool)                                       {}
func (*told) Rebuilt(string, int64, time.Duration, string)              {}
func (*told) Job(string, int, time.Duration, string)                    {}

// Package algo is the algorithms as pure functions: (state, now, limit, cost) gives a new state and an outcome. It does no
// input or output, takes no locks and reads no clock. The memory store runs it, and the Lua of the Redis store is checked
// against it. Nothing here is safe for concurrent use of one Cell; the caller locks.
//
// Time is in whole microseconds since the Unix epoch. docs/algorithms.md describes the algorithms,
// docs/decisions/0001-exact-semantics.md the finer points.
package algo

import (
	"slices"

	headgate "github.com/headgate-io/headgate"
)

// Cell is what a store keeps for one (slot, key). The zero Cell is a key never seen.
type Cell struct {
	state state
	// lock is nil until a charge with a lockout was denied.
	lock *lock
}

// state is what an algorithm remembers of one key. What the fields mean depends on the algorithm of by:
//
//	by's algorithm   at            extra      count             series, holders
//	token_bucket     full at       fraction   –                 –
//	leaky_bucket     empty at      fraction   last increment    –
//	fixed_window     start         end        count             –
//	sliding_log      –             –          –                 times, ascending
//	sliding_window   newest cell   –          –                 counts, newest first
//	concurrency      –             –          –                 who holds until when
type state struct {
	// by is the limit it was last judged by; nil: never seen.
	by               headgate.Limit
	at, extra, count int64
	series           *series
	holders          *holders
}

type series struct{ v []int64 }

// judgement is the answer of one algorithm for one cost.
type judgement struct {
	ok     bool
	reason headgate.Reason
	retry  headgate.Retry
	wait   int64 // µs to hold an allowed charge
}

var (
	passes  = judgement{ok: true}
	never   = judgement{reason: headgate.ReasonCostExceedsLimit, retry: headgate.Retry{State: headgate.RetryNever}}
	unknown = judgement{reason: headgate.ReasonLimited, retry: headgate.Retry{State: headgate.RetryUnknown}}
)

func after(us int64) judgement {
	return judgement{reason: headgate.ReasonLimited, retry: headgate.Retry{After: micros(us)}}
}

// env is what a judgement depends on beside the state and the cost.
type env struct {
	limit  headgate.Limit
	now    int64
	holder string
	zones  *Zones
}

// denying is the rules of every limit whose count is zero.
type denying struct{}

func (denying) normalise(s *state, _ *env) bool {
	dirty := s.by != nil
	*s = state{}
	return dirty
}

func (denying) judge(_ *state, _ *env, cost int64) judgement {
	if cost == 0 {
		return passes
	}
	return never
}

func (denying) left(*state, *env, int64) int64          { return 0 }
func (denying) pay(*state, *env, int64) int64           { return 0 }
func (denying) refund(*state, *env, int64, int64) int64 { return 0 }
func (denying) idleAt(*state) int64                     { return headgate.MinTime }
func (denying) used(*state, int64) int64                { return 0 }

// report says that nothing is left, but of a queue without a capacity it says nothing, whatever its rate.
func (denying) report(_ *state, e *env, o *headgate.Outcome) {
	o.HasRemaining = true
	if l, ok := e.limit.(headgate.LeakyBucket); ok {
		_, o.HasRemaining = l.Capacity()
	}
}

// IdleAt returns when a cell is as if never seen, so that a store may forget it: a time in the past for an empty one.
func (c *Cell) IdleAt() int64 {
	at := headgate.MinTime
	if c.state.by != nil {
		at = rulesOf(c.state.by).idleAt(&c.state)
	}
	if c.lock != nil {
		at = max(at, c.lock.idleAt())
	}
	return at
}

// Used returns how much is charged at the time: tokens missing or requests waiting, rounded up; units in the window;
// entries in the log; holders.
func (c *Cell) Used(now int64) int64 {
	if c.state.by == nil {
		return 0
	}
	return rulesOf(c.state.by).used(&c.state, now)
}

// Clone returns a copy that shares nothing with the cell.
func (c *Cell) Clone() Cell {
	n := *c
	if s := c.state.series; s != nil {
		n.state.series = &series{slices.Clone(s.v)}
	}
	if h := c.state.holders; h != nil {
		n.state.holders = &holders{h.live.clone(), h.gone.clone()}
	}
	if c.lock != nil {
		k := *c.lock
		n.lock = &k
	}
	return n
}

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

// Cell is what a store keeps for one (slot, key). The zero Cell is a key never seen. It has 48 bytes, and more behind a
// pointer for what needs it: a token bucket, a leaky bucket and a fixed window without a lockout do not.
type Cell struct {
	// What the numbers mean depends on the algorithm of by; see state. They stand first, beside the lock that a store keeps
	// before a cell: what every take writes should be in one cache line.
	at, extra, count int64
	// by is the limit it was last judged by; nil: there is no state.
	by   headgate.Limit
	tail *tail
}

// tail is the part of a cell that not every algorithm has.
type tail struct {
	series  []int64
	holders *holders
	// lock is nil until a charge with a lockout was denied.
	lock *lock
}

// state is what an algorithm remembers of one key, as it is worked on:
//
//	algorithm        at            extra      count             series, holders
//	token_bucket     full at       fraction   –                 –
//	leaky_bucket     empty at      fraction   last increment    –
//	fixed_window     start         end        count             –
//	sliding_log      –             –          –                 times, ascending
//	sliding_window   newest cell   –          –                 counts, newest first
//	concurrency      –             –          –                 who holds until when
//
// series and holders are the cell's own until the state is put back: before that they are replaced and never changed.
type state struct {
	at, extra, count int64
	series           []int64
	holders          *holders
}

func (c *Cell) state() state {
	s := state{at: c.at, extra: c.extra, count: c.count}
	if c.tail != nil {
		s.series, s.holders = c.tail.series, c.tail.holders
	}
	return s
}

// put stores a state that was judged by e's limit.
func (c *Cell) put(s *state, e *env) {
	c.at, c.extra, c.count = s.at, s.extra, s.count
	if s.series != nil || s.holders != nil || c.tail != nil {
		c.putTail(s)
	}
	switch {
	case e.rules.empty(s):
		c.by = nil
	case !e.same:
		c.by = e.limit
	}
}

func (c *Cell) putTail(s *state) {
	if c.tail == nil {
		c.tail = &tail{}
	}
	c.tail.series, c.tail.holders = s.series, s.holders
	if s.series == nil && s.holders == nil && c.tail.lock == nil {
		c.tail = nil
	}
}

func (c *Cell) lock() *lock {
	if c.tail == nil {
		return nil
	}
	return c.tail.lock
}

func (c *Cell) putLock(k lock) {
	if c.tail == nil {
		c.tail = &tail{}
	}
	c.tail.lock = &k
}

// IdleAt returns when a cell is as if never seen, so that a store may forget it: a time in the past for an empty one.
func (c *Cell) IdleAt() int64 {
	at := headgate.MinTime
	if c.by != nil {
		s, e := c.stored()
		at = e.rules.idleAt(&s, &e)
	}
	if k := c.lock(); k != nil {
		at = max(at, k.idleAt())
	}
	return at
}

// stored returns the state of a cell that has one, under the limit that it was last judged by.
func (c *Cell) stored() (state, env) {
	s, e := c.state(), env{limit: c.by, same: true}
	e.prepare()
	if s.holders != nil {
		e.rules = ruleConcurrency // holders stay when they release under a limit of count 0
	}
	return s, e
}

// Used returns how much is charged at the time: tokens missing or requests waiting, rounded up; units in the window or in
// cells of which a part is still inside; entries in the log; holders.
func (c *Cell) Used(now int64) int64 {
	if c.by == nil {
		return 0
	}
	s, e := c.stored()
	e.now, e.zones = now, &Zones{}
	e.rules.normalise(&s, c.by, &e)
	return e.rules.used(&s, &e)
}

// LockedUntil returns the end of the lockout in force at the time, in microseconds; false if there is none.
func (c *Cell) LockedUntil(now int64) (until int64, ok bool) {
	k := c.lock()
	if k == nil || k.length == 0 || k.until <= now {
		return 0, false
	}
	return k.until, true
}

// Algorithm returns the algorithm that judged the cell last; false if it has no state.
func (c *Cell) Algorithm() (headgate.Algorithm, bool) {
	if c.by == nil {
		return 0, false
	}
	return c.by.Algorithm(), true
}

// Clone returns a copy that shares nothing with the cell.
func (c *Cell) Clone() Cell {
	n := *c
	if t := c.tail; t != nil {
		n.tail = &tail{series: slices.Clone(t.series)}
		if t.holders != nil {
			n.tail.holders = &holders{t.holders.live.clone(), t.holders.gone.clone()}
		}
		if t.lock != nil {
			n.putLock(*t.lock)
		}
	}
	return n
}

package algo

import (
	"container/heap"
	"maps"
	"slices"

	headgate "github.com/headgate-io/headgate"
)

// concurrency keeps who holds a slot and until when, and the holders whose release came before their acquire.
type concurrency struct{}

type holders struct {
	live, gone leases
}

// leases is a set of names that each end at a time: a heap by that time and an index by name.
type leases struct {
	byEnd  []lease
	byName map[string]int // index in byEnd
	// latest is the latest end, or with stale set only no earlier than it.
	latest int64
	stale  bool
}

type lease struct {
	name string
	end  int64
}

func (l *leases) Len() int           { return len(l.byEnd) }
func (l *leases) Less(i, j int) bool { return l.byEnd[i].end < l.byEnd[j].end }

func (l *leases) Swap(i, j int) {
	l.byEnd[i], l.byEnd[j] = l.byEnd[j], l.byEnd[i]
	l.byName[l.byEnd[i].name], l.byName[l.byEnd[j].name] = i, j
}

func (l *leases) Push(x any) {
	n := x.(lease)
	l.byName[n.name] = len(l.byEnd)
	l.byEnd = append(l.byEnd, n)
}

func (l *leases) Pop() any {
	last := l.byEnd[len(l.byEnd)-1]
	l.byEnd[len(l.byEnd)-1] = lease{}
	l.byEnd = l.byEnd[:len(l.byEnd)-1]
	delete(l.byName, last.name)
	return last
}

func (l *leases) set(name string, end int64) {
	if i, ok := l.byName[name]; ok {
		l.noLater(l.byEnd[i].end)
		l.byEnd[i].end = end
		heap.Fix(l, i)
	} else {
		if l.byName == nil {
			l.byName = map[string]int{}
		}
		heap.Push(l, lease{name, end})
	}
	if end >= l.latest || len(l.byEnd) == 1 {
		l.latest, l.stale = end, false
	}
}

func (l *leases) remove(name string) {
	if i, ok := l.byName[name]; ok {
		l.noLater(l.byEnd[i].end)
		heap.Remove(l, i)
	}
}

// noLater notes that a lease of this end ends sooner from now on.
func (l *leases) noLater(end int64) { l.stale = l.stale || end == l.latest }

func (l *leases) alive(name string, now int64) bool {
	i, ok := l.byName[name]
	return ok && l.byEnd[i].end > now
}

// dropDead forgets what has ended.
func (l *leases) dropDead(now int64) {
	for len(l.byEnd) > 0 && l.byEnd[0].end <= now {
		heap.Pop(l)
	}
}

// count returns how many have not ended, without changing anything; it looks at no more than the dead and their children.
func (l *leases) count(now int64) int64 { return int64(len(l.byEnd) - l.dead(0, now)) }

func (l *leases) dead(i int, now int64) int {
	if i >= len(l.byEnd) || l.byEnd[i].end > now {
		return 0
	}
	return 1 + l.dead(2*i+1, now) + l.dead(2*i+2, now)
}

// last returns the latest end; before all times if there is none.
func (l *leases) last() int64 {
	if l.stale || len(l.byEnd) == 0 {
		l.latest, l.stale = headgate.MinTime, false
		for _, n := range l.byEnd[len(l.byEnd)/2:] { // the latest is a leaf
			l.latest = max(l.latest, n.end)
		}
	}
	return l.latest
}

// endsAfter tells whether any lease ends after a time.
func (l *leases) endsAfter(t int64) bool { return len(l.byEnd) > 0 && l.last() > t }

// healed returns a copy in which those that began further ahead than a ttl end one ttl from now, without the dead.
func (l *leases) healed(now, ttl int64) leases {
	var n leases
	for _, x := range l.byEnd {
		if x.end > now+2*ttl {
			x.end = now + ttl
		}
		if x.end > now {
			n.set(x.name, x.end)
		}
	}
	return n
}

func (concurrency) normalise(s *state, by headgate.Limit, e *env) change {
	if _, ok := by.(headgate.Concurrency); !ok {
		*s = state{}
		return fresh
	}
	h := s.holders
	if far := e.now + 2*e.length; h.live.endsAfter(far) || h.gone.endsAfter(far) {
		s.holders = &holders{h.live.healed(e.now, e.length), h.gone.healed(e.now, e.length)}
		return altered
	}
	return kept
}

func (concurrency) used(s *state, e *env) int64 {
	if s.holders == nil {
		return 0
	}
	return s.holders.live.count(e.now)
}

func (c concurrency) judge(s *state, e *env) judgement {
	if h := s.holders; h != nil {
		if h.gone.alive(e.holder, e.now) {
			return judgement{reason: headgate.ReasonGone, retry: headgate.Retry{State: headgate.RetryUnknown}}
		}
		if h.live.alive(e.holder, e.now) {
			return passes
		}
	}
	if c.used(s, e) < e.size {
		return passes
	}
	return unknown
}

func (c concurrency) room(s *state, e *env) int64 {
	if c.judge(s, e).ok {
		return 1
	}
	return 0
}

func (concurrency) pay(s *state, e *env) (mark int64) {
	h := s.own(e.now)
	if !h.live.alive(e.holder, e.now) {
		h.live.set(e.holder, e.now+e.length)
	}
	return e.now
}

// own returns the holders to be changed, without the dead.
func (s *state) own(now int64) *holders {
	if s.holders == nil {
		s.holders = &holders{}
	}
	s.holders.live.dropDead(now)
	s.holders.gone.dropDead(now)
	return s.holders
}

func (concurrency) resetAfter(s *state, e *env) int64 {
	if s.holders == nil {
		return 0
	}
	return max(0, s.holders.live.last()-e.now)
}

func (concurrency) refund(s *state, e *env) bool {
	if s.holders == nil || !s.holders.live.alive(e.holder, e.now) {
		return false
	}
	s.own(e.now).live.remove(e.holder)
	return true
}

func (concurrency) idleAt(s *state) int64 {
	return max(s.holders.live.last(), s.holders.gone.last())
}

// Renew gives the slot of a holder a new life and reports whether there still was one.
func Renew(c *Cell, l headgate.Concurrency, holder string, now int64) (alive bool) {
	e, s := slotsOf(c, l, holder, now)
	if s.holders == nil || !s.holders.live.alive(holder, now) {
		return false
	}
	s.own(now).live.set(holder, now+e.length)
	c.put(&s, &e)
	return true
}

// Release frees the slot of a holder; if there was none it leaves a tombstone for the ttl.
func Release(c *Cell, l headgate.Concurrency, holder string, now int64) {
	e, s := slotsOf(c, l, holder, now)
	h := s.own(now)
	if h.live.alive(holder, now) {
		h.live.remove(holder)
	} else {
		h.gone.set(holder, now+e.length)
	}
	c.put(&s, &e)
}

// slotsOf returns the normalised state of a cell, also under a limit whose count is zero: its holders still release.
func slotsOf(c *Cell, l headgate.Concurrency, holder string, now int64) (env, state) {
	e := env{limit: l, now: now, holder: holder, rules: ruleConcurrency, length: l.TTL().Microseconds(), size: l.Count()}
	s := c.state()
	concurrency{}.normalise(&s, c.by, &e)
	return e, s
}

func (l *leases) clone() leases {
	return leases{byEnd: slices.Clone(l.byEnd), byName: maps.Clone(l.byName), latest: l.latest, stale: l.stale}
}

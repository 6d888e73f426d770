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
	latest int64          // no end is later
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
	l.latest = max(l.latest, end)
	if i, ok := l.byName[name]; ok {
		l.byEnd[i].end = end
		heap.Fix(l, i)
		return
	}
	if l.byName == nil {
		l.byName = map[string]int{}
	}
	if len(l.byEnd) == 0 {
		l.latest = end
	}
	heap.Push(l, lease{name, end})
}

func (l *leases) remove(name string, now int64) (wasAlive bool) {
	i, ok := l.byName[name]
	if !ok {
		return false
	}
	return heap.Remove(l, i).(lease).end > now
}

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

// last returns the latest end; false if there is none.
func (l *leases) last() (end int64, ok bool) {
	for i, n := range l.byEnd[len(l.byEnd)/2:] { // the latest is a leaf
		if i == 0 || n.end > end {
			end, ok = n.end, true
		}
	}
	return end, ok
}

// heal gives those that began further ahead than a ttl one ttl from now. It returns a healed copy, or l if none did.
func (l leases) heal(now, ttl int64) (leases, bool) {
	if len(l.byEnd) == 0 || l.latest <= now+2*ttl {
		return l, false
	}
	healed, changed := leases{byName: make(map[string]int, len(l.byEnd))}, false
	for _, n := range l.byEnd {
		if n.end > now+2*ttl {
			n.end, changed = now+ttl, true
		}
		healed.set(n.name, n.end)
	}
	return healed, changed
}

func (concurrency) normalise(s *state, e *env) (dirty bool) {
	if s.by != e.limit {
		if _, ok := s.by.(headgate.Concurrency); !ok {
			dirty = s.by != nil
			*s = state{}
		}
		s.by = e.limit
	}
	if s.holders == nil {
		return dirty
	}
	ttl := e.limit.(headgate.Concurrency).TTL().Microseconds()
	live, liveHealed := s.holders.live.heal(e.now, ttl)
	gone, goneHealed := s.holders.gone.heal(e.now, ttl)
	if liveHealed || goneHealed {
		s.holders = &holders{live, gone}
		dirty = true
	}
	return dirty
}

func (s *state) liveHolders(now int64) int64 {
	if s.holders == nil {
		return 0
	}
	return s.holders.live.count(now)
}

func (concurrency) judge(s *state, e *env, cost int64) judgement {
	l := e.limit.(headgate.Concurrency)
	switch {
	case cost == 0:
		return passes
	case s.holders != nil && s.holders.gone.alive(e.holder, e.now):
		return judgement{reason: headgate.ReasonGone, retry: headgate.Retry{State: headgate.RetryUnknown}}
	case s.holders != nil && s.holders.live.alive(e.holder, e.now):
		return passes
	case s.liveHolders(e.now) < l.Count():
		return passes
	}
	return unknown
}

func (c concurrency) left(s *state, e *env, cost int64) int64 {
	if cost > 0 && c.judge(s, e, 1).ok {
		return 1
	}
	return 0
}

func (concurrency) pay(s *state, e *env, _ int64) int64 {
	if s.holders == nil {
		s.holders = &holders{}
	}
	s.holders.dropDead(e.now)
	if !s.holders.live.alive(e.holder, e.now) {
		s.holders.live.set(e.holder, e.now+e.limit.(headgate.Concurrency).TTL().Microseconds())
	}
	return e.now
}

func (h *holders) dropDead(now int64) {
	h.live.dropDead(now)
	h.gone.dropDead(now)
}

func (concurrency) report(s *state, e *env, o *headgate.Outcome) {
	o.HasRemaining = true
	o.Remaining = max(0, e.limit.(headgate.Concurrency).Count()-s.liveHolders(e.now))
	if s.holders != nil {
		if end, ok := s.holders.live.last(); ok && end > e.now {
			o.ResetAfter = micros(end - e.now)
		}
	}
}

func (concurrency) refund(s *state, e *env, n, _ int64) int64 {
	if s.holders == nil {
		return 0
	}
	s.holders.dropDead(e.now)
	if !s.holders.live.remove(e.holder, e.now) {
		return 0
	}
	return n
}

func (concurrency) idleAt(s *state) int64 {
	at := headgate.MinTime
	if s.holders != nil {
		for _, l := range []*leases{&s.holders.live, &s.holders.gone} {
			if end, ok := l.last(); ok {
				at = max(at, end)
			}
		}
	}
	return at
}

func (concurrency) used(s *state, now int64) int64 { return s.liveHolders(now) }

// Renew gives the slot of a holder a new life and reports whether there still was one. l is a Concurrency limit.
func Renew(c *Cell, l headgate.Concurrency, holder string, now int64) (alive bool) {
	e := env{limit: l, now: now, holder: holder}
	if l.Count() == 0 {
		return false
	}
	concurrency{}.normalise(&c.state, &e)
	if c.state.holders == nil {
		return false
	}
	c.state.holders.dropDead(now)
	if !c.state.holders.live.alive(holder, now) {
		return false
	}
	c.state.holders.live.set(holder, now+l.TTL().Microseconds())
	return true
}

// Release frees the slot of a holder; if there was none it leaves a tombstone for the ttl. l is a Concurrency limit.
func Release(c *Cell, l headgate.Concurrency, holder string, now int64) {
	e := env{limit: l, now: now, holder: holder}
	if l.Count() == 0 {
		return
	}
	concurrency{}.normalise(&c.state, &e)
	if c.state.holders == nil {
		c.state.holders = &holders{}
	}
	h := c.state.holders
	h.dropDead(now)
	if !h.live.remove(holder, now) {
		h.gone.set(holder, now+l.TTL().Microseconds())
	}
}

func (l *leases) clone() leases {
	return leases{byEnd: slices.Clone(l.byEnd), byName: maps.Clone(l.byName), latest: l.latest}
}

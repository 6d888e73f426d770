package memstore

import (
	"sync"
	"sync/atomic"

	headgate "github.com/headgate-io/headgate"
)

// slot is what the keys of one slot share.
type slot struct {
	name string
	keys atomic.Int64 // entries in the table
	held atomic.Int64 // takes that are about to make an entry
	// moves counts the keys that got an entry of their own while overflow was in use. A take that went for the overflow
	// looks at it again once it has the lock.
	moves  atomic.Uint64
	warned atomic.Bool // that it is full

	mu sync.Mutex
	// overflow are the states that new keys share while there is no room: the first for the first such charge of a take,
	// the second for the second, so that a take never meets one state twice.
	overflow []*entry
	dropped  bool // it is no longer in the registry
}

// shared returns the overflow state for the n-th overflowing charge of a take; nil if there is none and none is to be made.
func (s *slot) shared(n int, create bool) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	for create && !s.dropped && len(s.overflow) <= n {
		s.overflow = append(s.overflow, &entry{slot: s, hash: uint32(len(s.overflow))})
	}
	if n >= len(s.overflow) {
		return nil
	}
	return s.overflow[n]
}

// registry knows the slots that have state.
type registry struct {
	mu     sync.RWMutex
	byName map[string]*slot
	most   int
	full   int64 // keys of a slot without room
}

// find returns a slot; nil if it has no state.
func (r *registry) find(name string) *slot {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byName[name]
}

// hold returns a slot, made if need be, that is not dropped before the caller lets go of it.
func (r *registry) hold(name string) (*slot, error) {
	r.mu.RLock()
	s := r.byName[name]
	if s != nil {
		s.held.Add(1)
	}
	r.mu.RUnlock()
	if s != nil {
		return s, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s = r.byName[name]
	if s == nil {
		if len(r.byName) >= r.most {
			return nil, &headgate.Error{Code: headgate.CodeOverloaded, Charge: -1, Message: "memstore: too many slots have state; a slot is named by the program's text, never by a client's (or raise Config.MaxSlots)"}
		}
		// Not a copy: a caller that uses one string for a slot has it compared by its address.
		s = &slot{name: name}
		r.byName[s.name] = s
	}
	s.held.Add(1)
	return s, nil
}

func (r *registry) len() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.byName)
}

// sweep drops the slots without keys whose overflow is idle.
func (r *registry) sweep(idle func(*entry) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, s := range r.byName {
		if s.keys.Load() < r.full/2 {
			s.warned.Store(false) // it is worth another warning when it is full again
		}
		if s.held.Load() == 0 && s.keys.Load() == 0 && s.drop(idle) {
			delete(r.byName, name)
		}
	}
}

// drop marks the slot and its overflow as gone if nothing of it is in use.
func (s *slot) drop(idle func(*entry) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.overflow) > 0 {
		last := s.overflow[len(s.overflow)-1]
		if !idle(last) {
			return false
		}
		s.overflow = s.overflow[:len(s.overflow)-1]
	}
	s.dropped = true
	return true
}

package memstore

import (
	"context"
	"fmt"
	"log/slog"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/algo"
)

// place is where the state of one charge lies.
type place struct {
	e *entry
	// nth is 0 for a key's own entry, else 1 plus the index of the overflow state it shares; moves is then the slot's count
	// when that was found out.
	nth   int
	moves uint64
	// private: the entry is this take's alone, for a state that is read and not written.
	private bool
}

// use says what a place is wanted for.
type use uint8

const (
	toRead  use = iota // a missing state need not be made
	toWrite            // a missing state is made
)

// locate finds the state of an identity. before are the places of the charges before it in the same take.
func (s *Store) locate(id *identity, u use, before []place) (place, error) {
	sh := s.table.shardOf(id.hash)
	if e := sh.findID(id); e != nil {
		return place{e: e}, nil
	}
	if u == toRead {
		return s.glimpse(sh, id, before), nil
	}
	for {
		sl, err := s.slots.hold(id.slot)
		if err != nil {
			return place{}, err
		}
		if p := s.admit(sh, sl, id, before); p.e != nil {
			return p, nil
		}
	}
}

// glimpse finds a state that is not to be made if it is missing: what a new key would start with then.
func (s *Store) glimpse(sh *shard, id *identity, before []place) place {
	sh.mu.Lock()
	e := sh.findID(id)
	sh.mu.Unlock()
	if e != nil {
		return place{e: e}
	}
	p := place{e: &entry{}, private: true}
	sl := s.slots.find(id.slot)
	if sl == nil {
		return p
	}
	p.e.slot = sl
	if o := sl.shared(ordinal(sl, before), false); o != nil {
		o.mu.Lock()
		p.e.cell = o.cell.Clone()
		o.mu.Unlock()
	}
	return p
}

// admit gives a new key an entry of its own, or where there is no room the slot's overflow. sl is held and is let go of.
// A place without an entry means: once more.
func (s *Store) admit(sh *shard, sl *slot, id *identity, before []place) place {
	defer sl.held.Add(-1)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if e := sh.findID(id); e != nil {
		return place{e: e}
	}
	moves, n := sl.moves.Load(), ordinal(sl, before)
	if !s.reserve(sl) {
		s.countOverflow(sl)
		return place{e: sl.shared(n, true), nth: n + 1, moves: moves}
	}
	e := newEntry(id, sl)
	if o := sl.shared(n, false); o != nil {
		// The key may have been charged there, so it begins with what is charged there.
		o.mu.Lock()
		defer o.mu.Unlock()
		e.cell, e.keep = o.cell.Clone(), o.keep
		if e.keep == gone {
			e.keep = 0
		}
		sl.moves.Add(1)
	}
	sh.insert(e)
	return place{e: e}
}

// reserve counts one key more, if there is room in the store and in the slot.
func (s *Store) reserve(sl *slot) bool {
	if s.keys.Add(1) <= int64(s.cfg.MaxKeys) {
		if sl.keys.Add(1) <= int64(s.cfg.MaxKeysPerSlot) {
			return true
		}
		sl.keys.Add(-1)
	}
	s.keys.Add(-1)
	return false
}

// ordinal is how many charges of the take share the slot's overflow already. A copy is not shared: else a peek beside a
// charge would send that to a state that the same charge does not use alone.
func ordinal(sl *slot, before []place) (n int) {
	for i := range before {
		if before[i].e.slot == sl && before[i].nth > 0 {
			n++
		}
	}
	return n
}

func (s *Store) countOverflow(sl *slot) {
	s.overflowed.Add(1)
	if !sl.warned.Swap(true) {
		s.cfg.Logger.LogAttrs(context.Background(), slog.LevelWarn, "memstore: no room for more keys; new ones share one state",
			slog.String("slot", fmt.Sprintf("%.64q", sl.name)), slog.Int64("keys_of_slot", sl.keys.Load()), slog.Int64("keys", s.keys.Load()))
	}
	s.hurry()
}

// valid tells whether a place is still that of its key. The caller holds the entry's lock.
func (p *place) valid() bool {
	return p.private || p.e.keep != gone && (p.nth == 0 || p.e.slot.moves.Load() == p.moves)
}

// cells lists the cells of places.
func cells(dst []*algo.Cell, places []place) []*algo.Cell {
	for i := range places {
		dst = append(dst, &places[i].e.cell)
	}
	return dst
}

// useOf tells whether a charge may write its state.
func useOf(c *headgate.Charge) use {
	if c.Cost == 0 || (c.Mode == headgate.Check && c.Lockout == nil) {
		return toRead
	}
	return toWrite
}

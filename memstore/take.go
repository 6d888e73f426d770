package memstore

import (
	"context"
	"errors"
	"strings"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/algo"
)

// few is the number of charges up to which a take works on the stack.
const few = 8

func (s *Store) take(ctx context.Context, v *view, charges []headgate.Charge, d *headgate.Decision) error {
	now, err := s.start(ctx, v)
	if err == nil {
		err = headgate.Validate(charges)
	}
	switch {
	case err != nil:
	case len(charges) == 1 && s.takeOne(v, now, charges, d):
		return nil
	default:
		err = s.takeAll(v, now, charges, d)
	}
	if err != nil {
		d.Reset(0)
	}
	return err
}

// takeOne is the common take: one charge on a key that is there. It reports false if it is not.
func (s *Store) takeOne(v *view, now int64, charges []headgate.Charge, d *headgate.Decision) bool {
	slot, key := charges[0].Slot, charges[0].Key
	if len(slot) > maxText || len(key) > maxText {
		return false
	}
	hash := hashOf(s.seed, slot, key)
	e := s.table.shardOf(hash).find(uint32(hash), slot, key)
	if e == nil {
		return false
	}
	e.mu.Lock()
	if v != nil || e.keep != 0 {
		return s.takeMarked(v, e, now, charges, d)
	}
	algo.TakeOne(&s.zones, now, charges, &e.cell, d)
	e.mu.Unlock()
	return true
}

func (s *Store) takeMarked(v *view, e *entry, now int64, charges []headgate.Charge, d *headgate.Decision) bool {
	defer e.mu.Unlock()
	if e.keep == gone {
		return false
	}
	algo.TakeOne(&s.zones, now, charges, &e.cell, d)
	v.touch(e, now)
	return true
}

// takeAll takes any list of charges.
func (s *Store) takeAll(v *view, now int64, charges []headgate.Charge, d *headgate.Decision) error {
	var fewPlaces [few]place
	places, err := s.lock(fewPlaces[:0], charges)
	if err != nil {
		return err
	}
	defer unlock(places)
	var fewCells [few]*algo.Cell
	algo.Take(&s.zones, now, charges, cells(fewCells[:0], places), d)
	for i := range places {
		v.touch(places[i].e, now)
		if r := &d.Outcomes[i].Receipt; places[i].nth > 0 && r.Charged > 0 {
			r.Mark = markOverflow(r.Mark, places[i].nth)
		}
	}
	return nil
}

// lock finds the states of the charges and locks them, each once, in one order for all takes.
func (s *Store) lock(places []place, charges []headgate.Charge) ([]place, error) {
	for {
		for i := range charges {
			id := s.identify(charges[i].Slot, charges[i].Key)
			p, err := s.locate(&id, useOf(&charges[i]), places)
			if err != nil {
				return nil, atCharge(err, i)
			}
			places = append(places, p)
		}
		if lockAll(places) {
			return places, nil
		}
		places = places[:0]
	}
}

// lockAll locks the places, or none and reports false if one is no longer that of its key.
func lockAll(places []place) bool {
	var fewOrder [few]int
	order := fewOrder[:0]
	for i := range places {
		at := len(order)
		for at > 0 && less(places[i].e, places[order[at-1]].e) {
			at--
		}
		order = append(order, 0)
		copy(order[at+1:], order[at:])
		order[at] = i
	}
	for n, i := range order {
		places[i].e.mu.Lock()
		if places[i].valid() {
			continue
		}
		for _, j := range order[:n+1] {
			places[j].e.mu.Unlock()
		}
		return false
	}
	return true
}

func unlock(places []place) {
	for i := range places {
		places[i].e.mu.Unlock()
	}
}

// less is the order in which entries are locked. An overflow state has no key, and its index for a hash.
func less(a, b *entry) bool {
	if a.hash != b.hash {
		return a.hash < b.hash
	}
	if c := strings.Compare(a.key, b.key); c != 0 {
		return c < 0
	}
	// An entry without a slot is one take's own: its place does not matter.
	return a.slot != b.slot && (a.slot == nil || (b.slot != nil && a.slot.name < b.slot.name))
}

func atCharge(err error, i int) error {
	if e := (*headgate.Error)(nil); errors.As(err, &e) {
		e.Charge = i
	}
	return err
}

// overflowMark is the distance that sets apart the receipts of overflow states: more than any time.
const overflowMark = int64(1) << 55

func markOverflow(mark int64, nth int) int64 { return mark + int64(nth)*overflowMark }

// splitMark undoes markOverflow.
func splitMark(mark int64) (plain int64, nth int) {
	n := (mark + overflowMark/2) >> 55
	return mark - n*overflowMark, int(n)
}

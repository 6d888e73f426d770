package memstore

import (
	"context"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/algo"
)

func (s *Store) refund(ctx context.Context, v *view, charges []headgate.Charge, d *headgate.Decision) error {
	now, err := s.start(ctx, v)
	if err == nil {
		err = headgate.Validate(charges)
	}
	if err != nil {
		return err
	}
	if len(d.Outcomes) != len(charges) {
		return &headgate.Error{Code: headgate.CodeInvalidCharge, Charge: -1, Message: "memstore: the decision is not that of these charges"}
	}
	var fewPlaces [few]place
	places := s.lockCharged(fewPlaces[:0], charges, d)
	defer unlock(places)
	for i := range places {
		d.Outcomes[i].Receipt.Mark, _ = splitMark(d.Outcomes[i].Receipt.Mark)
	}
	var fewCells [few]*algo.Cell
	algo.Refund(&s.zones, now, charges, cells(fewCells[:0], places), d)
	for i := range places {
		v.touch(places[i].e, now)
		if r := &d.Outcomes[i].Receipt; places[i].nth > 0 {
			r.Mark = markOverflow(r.Mark, places[i].nth)
		}
	}
	return nil
}

// lockCharged locks the states that the receipts are of. One that is not there any more is stood in for by an empty one,
// from which nothing can be given back.
func (s *Store) lockCharged(places []place, charges []headgate.Charge, d *headgate.Decision) []place {
	for {
		for i := range charges {
			places = append(places, s.charged(&charges[i], d.Outcomes[i].Receipt.Mark))
		}
		if lockAll(places) {
			return places
		}
		places = places[:0]
	}
}

func (s *Store) charged(c *headgate.Charge, mark int64) place {
	id := s.identify(c.Slot, c.Key)
	if _, nth := splitMark(mark); nth > 0 {
		if sl := s.slots.find(id.slot); sl != nil {
			if e := sl.shared(nth-1, false); e != nil {
				return place{e: e, nth: nth, moves: sl.moves.Load()}
			}
		}
	} else if e := s.lookup(&id); e != nil {
		return place{e: e}
	}
	return place{e: &entry{}, private: true}
}

// lookup finds the entry of a key for certain.
func (s *Store) lookup(id *identity) *entry {
	sh := s.table.shardOf(id.hash)
	if e := sh.findID(id); e != nil {
		return e
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.findID(id)
}

// slotted checks a charge that renews or releases, and returns its limit.
func slotted(c *headgate.Charge) (headgate.Concurrency, error) {
	one := *c
	one.Cost = 1
	if err := headgate.Validate([]headgate.Charge{one}); err != nil {
		return headgate.Concurrency{}, err
	}
	l, ok := c.Limit.(headgate.Concurrency)
	if !ok {
		return l, &headgate.Error{Code: headgate.CodeInvalidLimit, Charge: 0, Message: "memstore: only a concurrency limit has slots to renew or release, not " + c.Limit.String()}
	}
	return l, nil
}

func (s *Store) renew(ctx context.Context, v *view, c *headgate.Charge) (alive bool, err error) {
	err = s.withHolders(ctx, v, c, toRead, func(e *entry, l headgate.Concurrency, now int64) {
		alive = algo.Renew(&e.cell, l, c.Holder, now)
	})
	return alive, err
}

func (s *Store) release(ctx context.Context, v *view, c *headgate.Charge) error {
	return s.withHolders(ctx, v, c, toWrite, func(e *entry, l headgate.Concurrency, now int64) {
		algo.Release(&e.cell, l, c.Holder, now)
	})
}

// withHolders runs do on the locked state of a concurrency charge.
func (s *Store) withHolders(ctx context.Context, v *view, c *headgate.Charge, u use, do func(*entry, headgate.Concurrency, int64)) error {
	now, err := s.start(ctx, v)
	if err != nil {
		return err
	}
	l, err := slotted(c)
	if err != nil {
		return err
	}
	id := s.identify(c.Slot, c.Key)
	for {
		p, err := s.holding(&id, u)
		if err != nil {
			return err
		}
		p.e.mu.Lock()
		ok := p.valid()
		if ok {
			do(p.e, l, now)
			v.touch(p.e, now)
		}
		p.e.mu.Unlock()
		if ok {
			return nil
		}
	}
}

// holding finds the state that has the holders of a key: its own or, as long as it has none, that of its slot's overflow.
func (s *Store) holding(id *identity, u use) (place, error) {
	if e := s.lookup(id); e != nil {
		return place{e: e}, nil
	}
	if sl := s.slots.find(id.slot); sl != nil {
		moves := sl.moves.Load()
		if e := sl.shared(0, false); e != nil {
			return place{e: e, nth: 1, moves: moves}, nil
		}
	}
	return s.locate(id, u, nil)
}

func (s *Store) reset(ctx context.Context, v *view, slot, key string) error {
	if _, err := s.start(ctx, v); err != nil {
		return err
	}
	id := s.identify(slot, key)
	sh := s.table.shardOf(id.hash)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if e := sh.findID(&id); e != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.keep = gone
		sh.remove(e)
		s.uncount(e)
	}
	return nil
}

func (s *Store) uncount(e *entry) {
	s.keys.Add(-1)
	e.slot.keys.Add(-1)
}

func (s *Store) inspect(ctx context.Context, v *view, slot, key string) (headgate.Inspection, error) {
	now, err := s.start(ctx, v)
	if err != nil {
		return headgate.Inspection{}, err
	}
	id := s.identify(slot, key)
	e := s.lookup(&id)
	if e == nil {
		return headgate.Inspection{}, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	idle := e.cell.IdleAt()
	if e.keep == gone || idle <= now {
		return headgate.Inspection{}, nil
	}
	in := headgate.Inspection{Found: true, Used: e.cell.Used(now), IdleAt: time.UnixMicro(idle).UTC()}
	in.Algorithm, _ = e.cell.Algorithm()
	if until, ok := e.cell.LockedUntil(now); ok {
		in.LockedUntil = time.UnixMicro(until).UTC()
	}
	return in, nil
}

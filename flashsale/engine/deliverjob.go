package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// Bounds of one pass of DeliverOnce. What is younger than deliverAge, whoever wrote it is about to deliver. A pass that meets so many
// pages of which nothing can be delivered leaves the rest to the next.
const (
	deliverAge   = time.Second
	deliverPage  = 500
	deliverPages = 20
	deliverStuck = 4
)

// DeliverOnce lets the Stock follow the rows of the outbox that it has not followed for longer than a second, and returns how many
// it has marked as sent. Keys that are being rebuilt wait: their new epoch is loaded from SQL. A pass goes on after what the one before
// has looked at, and begins again at the end, so that rows which cannot be delivered, however many, hide no others.
func (e *Engine) DeliverOnce(ctx context.Context) (int, error) {
	did, stuck := 0, 0
	after := e.care.delivered.get()
	failed := map[flashsale.Key]bool{}
	var errs []error
	for range deliverPages {
		events, err := e.orders.Unsent(ctx, flashsale.LaneStock, deliverAge, after, deliverPage)
		if err != nil {
			return did, errors.Join(append(errs, err)...)
		}
		n, err := e.deliverEvents(ctx, events, failed)
		did, errs = did+n, append(errs, err)
		if n == 0 {
			stuck++
		}
		if after = 0; len(events) == deliverPage {
			after = events[deliverPage-1].ID
		}
		e.care.delivered.set(after)
		if after == 0 || stuck == deliverStuck {
			break
		}
	}
	return did, errors.Join(errs...)
}

// deliverEvents delivers rows of any keys, of several at a time. One key that fails, or waits for its store, does not hold up the others.
// It is noted as failed, and those that are already are left alone.
func (e *Engine) deliverEvents(ctx context.Context, events []flashsale.Event, failed map[flashsale.Key]bool) (int, error) {
	var keys []flashsale.Key
	of := map[flashsale.Key][]flashsale.Event{}
	for i := range events {
		key := events[i].Key
		if failed[key] {
			continue
		}
		if of[key] == nil {
			keys = append(keys, key)
		}
		of[key] = append(of[key], events[i])
	}
	var did atomic.Int64
	bad := make([]bool, len(keys))
	err := e.allOf(len(keys), e.cfg.Paying.Parallel, "delivering", func(i int) error {
		n, err := e.deliverKey(ctx, keys[i], of[keys[i]])
		did.Add(int64(n))
		bad[i] = err != nil
		return err
	})
	for i, key := range keys {
		if bad[i] {
			failed[key] = true
		}
	}
	return int(did.Load()), err
}

func (e *Engine) deliverKey(ctx context.Context, key flashsale.Key, events []flashsale.Event) (int, error) {
	s, err := e.readSKU(ctx, key)
	if err != nil || s.Rebuilding {
		return 0, err
	}
	if s.Retired { // there is nothing that could follow
		return e.markSent(ctx, s.Epoch, events)
	}
	ids, err := e.follow(ctx, key, s.Epoch, events)
	if isEpoch(err) {
		return 0, nil
	}
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	if err := e.orders.Sent(ctx, flashsale.LaneStock, s.Epoch, ids); err != nil {
		return 0, err
	}
	return len(ids), nil
}

func (e *Engine) markSent(ctx context.Context, epoch int64, events []flashsale.Event) (int, error) {
	ids := make([]int64, len(events))
	for i := range events {
		ids[i] = events[i].ID
	}
	return len(ids), e.orders.Sent(ctx, flashsale.LaneStock, epoch, ids)
}

// follow applies rows in an epoch, and returns the ids of those that the Stock has followed. Of what it does not know though SQL
// holds units for it, it notes a loss.
func (e *Engine) follow(ctx context.Context, key flashsale.Key, epoch int64, events []flashsale.Event) ([]int64, error) {
	effects := make([]flashsale.Effect, len(events))
	for i := range events {
		v := &events[i]
		effects[i] = flashsale.Effect{RID: v.RID, User: v.User, Quantity: v.Quantity, State: v.State, Version: v.Version}
	}
	applied, err := e.stock.Apply(ctx, key, epoch, effects, nil)
	if err != nil {
		return nil, err
	}
	var ids []int64
	unknown := map[string][]int64{}
	for i := range events {
		if i < len(applied) && applied[i] == flashsale.AppliedLost {
			unknown[events[i].RID] = append(unknown[events[i].RID], events[i].ID)
		} else {
			ids = append(ids, events[i].ID)
		}
	}
	forgotten, err := e.forgotten(ctx, key, epoch, unknown)
	return append(ids, forgotten...), err
}

// forgotten tells what the Stock need not know any more from what it has lost: what ended longer ago than Retention is not loaded
// by a rebuild, so that a row about it which is still unsent must not ask for another one, for ever.
func (e *Engine) forgotten(ctx context.Context, key flashsale.Key, epoch int64, unknown map[string][]int64) (ids []int64, err error) {
	if len(unknown) == 0 {
		return nil, nil
	}
	rids := make([]string, 0, len(unknown))
	for rid := range unknown {
		rids = append(rids, rid)
	}
	now, err := e.orders.Now(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := e.orders.Reservations(ctx, rids)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if r := &rows[i]; r.State.Terminal() && now.Sub(r.EndedAt) >= flashsale.Retention {
			ids = append(ids, unknown[r.RID]...)
			delete(unknown, r.RID)
		}
	}
	if len(unknown) > 0 {
		e.lost(key, epoch, "an effect for a reservation that the stock does not know")
	}
	return ids, nil
}

// passes reports whether an error tells of the moment rather than of what was asked, so that the same again may do better.
func passes(err error) bool {
	return isPassing(err) || isEpoch(err) || flashsale.CodeOf(err) == flashsale.CodeFenced
}

// readSKU asks SQL now, and joins nobody who has asked before.
func (e *Engine) readSKU(ctx context.Context, key flashsale.Key) (*flashsale.SKUState, error) {
	s, err := e.orders.SKU(ctx, key)
	if err != nil {
		return nil, err
	}
	e.skus.put(s)
	return s, nil
}

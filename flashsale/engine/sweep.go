package engine

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// Bounds of one pass of the sweeper; what is left over is for the next.
const (
	sweepPage  = 256
	sweepPages = 8
	pruneAge   = time.Hour
	pruneRows  = 2000
)

// SweepOnce ends what is past its time, and finishes what others have left: pending reservations past their deadline (T2), reserved
// ones past their time and grace (T6), payments past theirs (T7), operations that are open, reservations that ended longer ago than
// Retention, rows of the outbox that everybody has had for an hour, events of the provider older than EventsFor. It returns how much it
// did. What is left in the Stock of skus that were closed and quiet for longer than Retention, or dropped, goes too. What fails holds up nothing else.
func (e *Engine) SweepOnce(ctx context.Context) (int, error) {
	skus, err := e.orders.SKUs(ctx)
	if err != nil {
		return 0, err
	}
	did := 0
	var errs []error
	add := func(n int, err error) {
		did += n
		errs = append(errs, err)
	}
	// What SQL alone decides comes first: a Stock that does not answer makes everybody wait who asks it.
	add(e.sweepUnpaid(ctx))
	add(e.sweepStocks(ctx, skus))
	add(e.finishOperations(ctx))
	add(e.retire(ctx))
	add(e.cleanDropped(ctx))
	pruned, err := e.orders.PruneOutbox(ctx, pruneAge, pruneRows)
	add(int(pruned), err)
	forgotten, err := e.orders.PruneEvents(ctx, flashsale.EventsFor, pruneRows)
	add(int(forgotten), err)
	return did, errors.Join(errs...)
}

// sweepStocks ends and forgets what the Stock knows, of several skus at a time: those of a node that does not answer keep the others
// waiting as little as can be.
func (e *Engine) sweepStocks(ctx context.Context, skus []flashsale.SKUState) (int, error) {
	var did atomic.Int64
	err := e.allOf(len(skus), e.cfg.Paying.Parallel, "sweeping", func(i int) error {
		s := &skus[i]
		if s.Rebuilding {
			return nil
		}
		ended, err := e.sweepPending(ctx, s)
		if err == nil {
			var forgotten int
			forgotten, err = e.forget(ctx, s)
			ended += forgotten
		}
		did.Add(int64(ended))
		return err
	})
	return int(did.Load()), err
}

// sweepPending is T2. A row that is there after all is answered with what it says, so that the Stock follows that.
func (e *Engine) sweepPending(ctx context.Context, s *flashsale.SKUState) (did int, err error) {
	for range sweepPages {
		due, err := e.stock.Due(ctx, s.Key, s.Epoch, sweepPage)
		if isEpoch(err) || err == nil && len(due) == 0 {
			return did, nil
		}
		if err != nil {
			return did, err
		}
		decided, err := e.tombstone(ctx, s.Key, due)
		did += len(decided)
		if err == nil {
			err = e.deliver(ctx, s.Key, s.Epoch, decided, nil)
		}
		if isEpoch(err) {
			return did, nil
		}
		if err != nil || len(due) < sweepPage {
			return did, err
		}
	}
	return did, nil
}

// tombstone refuses what is due, by halves if it cannot be done at once, so that one that SQL will not take holds up no other.
func (e *Engine) tombstone(ctx context.Context, key flashsale.Key, due []flashsale.Entry) ([]flashsale.Decided, error) {
	decided, err := e.orders.Tombstone(ctx, key, due)
	if err == nil {
		for i := range decided {
			e.moved(key, &decided[i], "T2")
		}
		return decided, nil
	}
	if passes(err) || ctx.Err() != nil || len(due) == 1 {
		return nil, err
	}
	half := len(due) / 2
	first, err1 := e.tombstone(ctx, key, due[:half])
	second, err2 := e.tombstone(ctx, key, due[half:])
	all := slices.Concat(first, second)
	if len(all) > 0 {
		if err := errors.Join(err1, err2); err != nil {
			e.log.Error("a pending reservation cannot be refused", slog.String("sku", key.String()), slog.Any("error", err))
		}
		return all, nil
	}
	return nil, errors.Join(err1, err2)
}

// moved tells the observer of a transition that was made now.
func (e *Engine) moved(key flashsale.Key, d *flashsale.Decided, transition string) {
	if !d.Replayed {
		e.observer.Moved(key.String(), transition, d.Reason, d.Quantity)
	}
}

// sweepUnpaid is T6 and T7.
func (e *Engine) sweepUnpaid(ctx context.Context) (did int, err error) {
	expired := map[flashsale.Key][]flashsale.Decided{}
	defer func() { e.deliverAll(ctx, expired) }()
	for range sweepPages {
		list, err := e.orders.Expiring(ctx, sweepPage)
		if err != nil {
			return did, err
		}
		var reserved, confirming []*flashsale.Reservation
		for i := range list {
			if list[i].State == flashsale.Confirming {
				confirming = append(confirming, &list[i])
			} else {
				reserved = append(reserved, &list[i])
			}
		}
		n, err := e.expire(ctx, reserved, expired)
		did += n
		if err := errors.Join(err, e.settle(ctx, confirming)); err != nil || len(reserved) < sweepPage || n == 0 {
			return did, err
		}
	}
	return did, nil
}

// deliverAll lets the Stock follow, in one step for each key.
func (e *Engine) deliverAll(ctx context.Context, decided map[flashsale.Key][]flashsale.Decided) {
	keys := slices.Collect(maps.Keys(decided))
	_ = e.allOf(len(keys), e.cfg.Paying.Parallel, "delivering", func(i int) error {
		e.deliverNow(ctx, keys[i], decided[keys[i]])
		return nil
	})
}

// expire is T6. What was expired is added to what there is of each key.
func (e *Engine) expire(ctx context.Context, reserved []*flashsale.Reservation, of map[flashsale.Key][]flashsale.Decided) (did int, err error) {
	var errs []error
	for _, r := range reserved {
		d, err := e.orders.Expire(ctx, r.RID)
		if code := flashsale.CodeOf(err); code == flashsale.CodeInvalidState || code == flashsale.CodeNotFound {
			continue // its shopper has begun to pay, or another sweeper was here
		}
		if errs = append(errs, err); err != nil {
			if passes(err) {
				break
			}
			continue
		}
		of[r.Key] = append(of[r.Key], d)
		e.moved(r.Key, &d, "T6")
		did++
	}
	return did, errors.Join(errs...)
}

// settle is T7: the provider says what becomes of payments past their time.
func (e *Engine) settle(ctx context.Context, confirming []*flashsale.Reservation) error {
	if e.payments == nil {
		return nil
	}
	return e.allOf(len(confirming), e.cfg.Paying.Parallel, "settling", func(i int) error { return e.settleOverdue(ctx, confirming[i]) })
}

// forget takes one page further the walk through all reservations of a key, which removes what ended longer ago than Retention. The
// Stock's clock decides; this one only chooses whom to ask about.
func (e *Engine) forget(ctx context.Context, s *flashsale.SKUState) (int, error) {
	page, next, err := e.stock.Entries(ctx, s.Key, s.Epoch, e.care.walked("forget", s.Key, s.Epoch), sweepPage)
	if err != nil {
		if isEpoch(err) {
			err = nil
		}
		return 0, err
	}
	e.care.walkOn("forget", s.Key, s.Epoch, next)
	var ended []string
	for i := range page {
		if page[i].State.Terminal() && e.cfg.Now().Sub(page[i].At) >= flashsale.Retention-time.Minute {
			ended = append(ended, page[i].RID)
		}
	}
	if len(ended) == 0 {
		return 0, nil
	}
	n, err := e.stock.Forget(ctx, s.Key, s.Epoch, ended)
	if isEpoch(err) {
		err = nil
	}
	return n, err
}

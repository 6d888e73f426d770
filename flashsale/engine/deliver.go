package engine

import (
	"context"
	"log/slog"

	"github.com/headgate-io/headgate/flashsale"
)

// deliver lets the Stock follow what SQL has just decided, and acknowledges jobs with it. What fails here is not lost: the outbox
// has it, and the job of DeliverOnce finds it. So its errors are told and not returned, but for the caller who has jobs to
// acknowledge.
func (e *Engine) deliver(ctx context.Context, key flashsale.Key, epoch int64, decided []flashsale.Decided, acks []string) error {
	effects, ids := make([]flashsale.Effect, len(decided)), make([]int64, 0, len(decided))
	for i := range decided {
		effects[i] = decided[i].Effect()
		if decided[i].Outbox != 0 {
			ids = append(ids, decided[i].Outbox)
		}
	}
	applied, err := e.stock.Apply(ctx, key, epoch, effects, acks)
	// Not before: whoever is told asks again, maybe another instance, and is not to hear less.
	e.waiters.tell(key, decided)
	if err != nil {
		return err
	}
	sent := e.noticeLosses(key, epoch, decided, applied, ids)
	if len(sent) == 0 {
		return nil
	}
	if err := e.orders.Sent(ctx, flashsale.LaneStock, epoch, sent); err != nil {
		e.log.Debug("what was delivered to the stock could not be marked; it is delivered again", slog.String("sku", key.String()), slog.Any("error", err))
	}
	return nil
}

// noticeLosses asks for a rebuild where the Stock does not know what SQL holds units for, and returns the rows that count as sent.
func (e *Engine) noticeLosses(key flashsale.Key, epoch int64, decided []flashsale.Decided, applied []flashsale.Applied, ids []int64) []int64 {
	lost := false
	sent := ids[:0]
	for i := range decided {
		switch {
		case i < len(applied) && applied[i] == flashsale.AppliedLost:
			lost = true
		case decided[i].Outbox != 0:
			sent = append(sent, decided[i].Outbox)
		}
	}
	if lost {
		e.lost(key, epoch, "an effect for a reservation that the stock does not know")
	}
	return sent
}

// deliverNow is deliver for a transition of one reservation that has no job, in whatever epoch there is.
func (e *Engine) deliverNow(ctx context.Context, key flashsale.Key, decided []flashsale.Decided) {
	if len(decided) == 0 {
		return
	}
	err := e.inEpoch(ctx, key, func(epoch int64) error { return e.deliver(ctx, key, epoch, decided, nil) })
	if err != nil {
		e.log.Debug("the stock does not follow yet; it will, from the outbox", slog.String("sku", key.String()), slog.Any("error", err))
	}
}

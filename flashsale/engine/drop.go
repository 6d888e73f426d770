package engine

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

const (
	// droppedFor is how long after a sale was dropped the Stock is cleaned of it: rebuilds that had begun have ended by then.
	droppedFor = time.Minute
	// dropSKUs bounds the skus that one pass cleans.
	dropSKUs = 16
)

// DropSale removes a sale that was never opened, as if it had never been created, but for a note of who wanted it and why: its id is free
// again. CodeInvalidState if any of its skus was ever opened, or anything was reserved: such a sale stays in the books. The command is for all of
// the sale. What the Stock has of it goes a minute later.
func (e *Engine) DropSale(ctx context.Context, c Command) error {
	if err := c.check(); err != nil {
		return err
	}
	if c.SKU != "" {
		return errorf(flashsale.CodeInvalidArgument, "a sale is dropped as a whole, and not %s of it", c.SKU)
	}
	if err := e.orders.DropSale(ctx, &flashsale.Drop{ID: c.ID, Sale: c.Sale, Reason: c.Reason, By: c.By}); err != nil {
		return err
	}
	e.log.Info("a sale is dropped that was never opened", slog.String("operation", c.ID), slog.String("sale", c.Sale), slog.String("by", c.By), slog.String("reason", c.Reason))
	return nil
}

// cleanDropped removes what the Stock has of skus that were dropped. The next pass goes on with others: those that fail hide none.
func (e *Engine) cleanDropped(ctx context.Context) (int, error) {
	skus, err := e.orders.Dropped(ctx, droppedFor, e.care.dropped.get(), dropSKUs)
	if err != nil {
		return 0, err
	}
	next := flashsale.DroppedSKU{}
	if len(skus) == dropSKUs {
		next = skus[dropSKUs-1]
	}
	e.care.dropped.set(next)
	var did atomic.Int64
	err = e.allOf(len(skus), e.cfg.Paying.Parallel, "removing what was dropped", func(i int) error {
		err := e.cleanSKU(ctx, &skus[i])
		if err == nil {
			did.Add(1)
		}
		if isEpoch(err) { // it is loaded anew right now; the next pass sees as what
			err = nil
		}
		return err
	})
	return int(did.Load()), err
}

// cleanSKU removes what there is of one, unless it is of a later sale of the same name: that one's epochs are higher, and its first load
// removes the older ones.
func (e *Engine) cleanSKU(ctx context.Context, d *flashsale.DroppedSKU) error {
	v, err := e.stock.View(ctx, d.Key)
	if err != nil {
		return err
	}
	if v.Epoch <= d.Epoch {
		if err := e.stock.Remove(ctx, d.Key, max(v.Epoch, 1)); err != nil {
			return err
		}
	}
	return e.orders.Removed(ctx, d)
}

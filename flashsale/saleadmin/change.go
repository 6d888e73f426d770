package saleadmin

import (
	"context"
	"log/slog"
	"net/http"
	"slices"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
)

func (a *api) create(q *request) error {
	var o CreateOrder
	if err := q.order(&o, &o.Reason, maxSale); err != nil {
		return err
	}
	sale, err := o.Sale.sale()
	if err != nil {
		return err
	}
	q.command.Sale = sale.ID
	if err := a.sales.CreateSale(q.r.Context(), sale); err != nil {
		return err
	}
	q.done(slog.String("sale", sale.ID), slog.Int("skus", len(sale.SKUs)))
	view, err := q.sale(sale.ID, defaultOperations, Page{Limit: showPage().usual})
	if err != nil {
		return err
	}
	q.w.Header().Set("Location", Prefix+"/"+sale.ID)
	return q.answer(http.StatusCreated, &Created{OperationID: q.command.ID, Sale: *view})
}

func (a *api) drop(q *request) error {
	var o DropOrder
	if err := q.order(&o, &o.Reason, maxBody); err != nil {
		return err
	}
	if err := a.sales.DropSale(q.r.Context(), *q.command); err != nil {
		return err
	}
	q.done(slog.String("sale", q.command.Sale))
	return q.answer(http.StatusOK, &Dropped{OperationID: q.command.ID, Sale: q.command.Sale})
}

// command is one of the engine's for a whole sale or a sku.
type command func(ctx context.Context, c engine.Command) ([]flashsale.Operation, error)

func (a *api) pause(q *request) error { return q.toStatus(a.sales.PauseSale) }
func (a *api) drain(q *request) error { return q.toStatus(a.sales.DrainSale) }
func (a *api) close(q *request) error { return q.toStatus(a.sales.CloseSale) }

func (q *request) toStatus(run command) error {
	var o StatusOrder
	if err := q.order(&o, &o.Reason, maxBody); err != nil {
		return err
	}
	return q.run(o.SKU, nil, run)
}

// resume opens what is paused. What has never been open is opened with the check before it, by open.
func (a *api) resume(q *request) error {
	return q.toStatus(func(ctx context.Context, c engine.Command) ([]flashsale.Operation, error) {
		drafts, err := q.drafts(ctx, &c)
		if err != nil {
			return nil, err
		}
		if len(drafts) > 0 {
			return nil, &flashsale.Error{
				Code: flashsale.CodeInvalidState, Message: drafts[0].String() + " has not been opened yet: open it, which looks first whether all is ready",
			}
		}
		return a.sales.ResumeSale(ctx, c)
	})
}

// drafts are the skus of a command that are drafts.
func (q *request) drafts(ctx context.Context, c *engine.Command) (drafts []flashsale.Key, err error) {
	keys, err := q.keysOf(ctx, c.Sale, c.SKU)
	if err != nil {
		return nil, err
	}
	states, err := q.sales.SKUs(ctx)
	if err != nil {
		return nil, err
	}
	for i := range states {
		if states[i].Settings.Status == flashsale.Draft && slices.Contains(keys, states[i].Key) {
			drafts = append(drafts, states[i].Key)
		}
	}
	return drafts, nil
}

// keysOf are the skus of a sale, or the one that is named.
func (q *request) keysOf(ctx context.Context, sale, sku string) ([]flashsale.Key, error) {
	s, err := q.sales.Sale(ctx, sale)
	if err != nil {
		return nil, err
	}
	var keys []flashsale.Key
	for i := range s.SKUs {
		if sku == "" || s.SKUs[i].ID == sku {
			keys = append(keys, flashsale.Key{Sale: sale, SKU: s.SKUs[i].ID})
		}
	}
	if len(keys) == 0 {
		return nil, &flashsale.Error{Code: flashsale.CodeUnknownSKU, Message: "the sale " + sale + " has no sku " + shorten(sku)}
	}
	return keys, nil
}

// zoneOf is the zone in which people read the times of a sale.
func (q *request) zoneOf(sale string) (string, error) {
	s, err := q.sales.Sale(q.r.Context(), sale)
	if err != nil {
		return "", err
	}
	return s.Zone, nil
}

func (a *api) rate(q *request) error {
	var o RateOrder
	if err := q.order(&o, &o.Reason, maxBody); err != nil {
		return err
	}
	if o.Rate < 1 || o.Rate > flashsale.MaxRate {
		return invalid(FieldError{"rate", "give 1 to 1000000 reservations a second"})
	}
	return q.run(o.SKU, nil, func(ctx context.Context, c engine.Command) ([]flashsale.Operation, error) {
		return a.sales.SetRate(ctx, c, o.Rate)
	})
}

func (a *api) topUp(q *request) error    { return q.adjust(a.sales.TopUp) }
func (a *api) withdraw(q *request) error { return q.adjust(a.sales.Withdraw) }

func (q *request) adjust(run func(ctx context.Context, c engine.Command, units int64) (*flashsale.Operation, error)) error {
	var o UnitsOrder
	if err := q.order(&o, &o.Reason, maxBody); err != nil {
		return err
	}
	if o.Units < 1 || o.Units > flashsale.MaxTotal {
		return invalid(FieldError{"units", "give 1 to 1000000000"})
	}
	return q.run(q.r.PathValue("sku"), nil, func(ctx context.Context, c engine.Command) ([]flashsale.Operation, error) {
		op, err := run(ctx, c, o.Units)
		if op == nil {
			return nil, err
		}
		return []flashsale.Operation{*op}, err
	})
}

func (a *api) rebuild(q *request) error {
	var o StatusOrder
	if err := q.order(&o, &o.Reason, maxBody); err != nil {
		return err
	}
	return q.run(o.SKU, nil, a.sales.Rebuild)
}

// run gives a command, and answers what became of it: 200 if it is done, 202 if it has begun and is being finished, 409 if it was refused.
func (q *request) run(sku string, findings []Finding, run command) error {
	q.command.SKU = sku
	ops, err := run(q.r.Context(), *q.command)
	change := Change{OperationID: q.command.ID, Operations: operationsOf(ops), Findings: findings}
	if err != nil {
		p := problemOf(err)
		p.Operations = change.Operations
		return p
	}
	status := http.StatusOK
	for i := range ops {
		switch ops[i].State {
		case flashsale.OpRefused:
			return &Problem{
				Status: http.StatusConflict, Code: "refused", Detail: "the operation was refused: " + ops[i].Detail, Operations: change.Operations,
			}
		case flashsale.OpBegun, flashsale.OpCommitted:
			status = http.StatusAccepted
		}
	}
	q.done(slog.String("sale", q.command.Sale), slog.String("sku", sku), slog.Int("operations", len(ops)))
	return q.answer(status, &change)
}

// done logs a change that was made.
func (q *request) done(attrs ...slog.Attr) {
	q.log(slog.LevelInfo, "a sale was changed", attrs...)
}

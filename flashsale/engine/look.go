package engine

import (
	"context"

	"github.com/headgate-io/headgate/flashsale"
)

// Look is where a sku stands in both stores, for those who look after it.
type Look struct {
	SKU flashsale.SKUState
	// Stock are the figures of the Stock; StockErr says why there are none.
	Stock    flashsale.StockView
	StockErr error
	// UnderWay says what is under way, "" if the sku is quiescent.
	UnderWay string
	// Unsent counts the rows of the outbox that the Stock has not followed yet.
	Unsent int64
}

// Look reads where a sku stands. Only SQL must answer: without the Stock there are SQL's figures.
func (e *Engine) Look(ctx context.Context, key flashsale.Key) (*Look, error) {
	s, err := e.stand(ctx, key)
	if err == nil {
		return &Look{SKU: *s.sku, Stock: s.view, UnderWay: s.underWay(), Unsent: s.unsent}, nil
	}
	sku, sqlErr := e.orders.SKU(ctx, key)
	if sqlErr != nil {
		return nil, sqlErr
	}
	l := &Look{SKU: *sku, StockErr: err, UnderWay: "the stock does not answer"}
	l.Unsent, sqlErr = e.orders.UnsentCount(ctx, key)
	return l, sqlErr
}

// Sale returns a sale as it was created, CodeUnknownSale if there is none.
func (e *Engine) Sale(ctx context.Context, id string) (*flashsale.Sale, error) {
	if err := flashsale.CheckID("the id of the sale", id); err != nil {
		return nil, err
	}
	return e.orders.Sale(ctx, id)
}

// SaleIDs lists sales, newest first, at most limit.
func (e *Engine) SaleIDs(ctx context.Context, limit int) ([]string, error) {
	return e.orders.SaleIDs(ctx, limit)
}

// SalesAfter pages through sales, newest first, with all their skus as SQL has them: the first page with after "", the next one with the id of the last
// sale. CodeUnknownSale if there is no such sale.
func (e *Engine) SalesAfter(ctx context.Context, after string, limit int) ([]flashsale.Sale, []flashsale.SKUState, error) {
	return e.orders.SalesAfter(ctx, after, limit)
}

// SKU is a sku as SQL has it.
func (e *Engine) SKU(ctx context.Context, key flashsale.Key) (*flashsale.SKUState, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	return e.orders.SKU(ctx, key)
}

// SKUs are all skus as SQL has them, of sales that are not closed and quiet for longer than flashsale.Retention.
func (e *Engine) SKUs(ctx context.Context) ([]flashsale.SKUState, error) { return e.orders.SKUs(ctx) }

// Operations lists what was done to a sku, newest first, at most limit.
func (e *Engine) Operations(ctx context.Context, key flashsale.Key, limit int) ([]flashsale.Operation, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	return e.orders.OperationsOf(ctx, key, limit)
}

// Instance names this process among all.
func (e *Engine) Instance() string { return e.cfg.Instance }

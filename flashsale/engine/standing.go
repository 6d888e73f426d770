package engine

import (
	"context"

	"github.com/headgate-io/headgate/flashsale"
)

// standing is where a key stands in both stores.
type standing struct {
	sku  *flashsale.SKUState
	view flashsale.StockView
	// still tells that the Stock did not change while SQL was read, so that both are of one moment.
	still  bool
	unsent int64
	open   int64
}

// stand reads where a key stands.
func (e *Engine) stand(ctx context.Context, key flashsale.Key) (*standing, error) {
	s := &standing{}
	var err error
	if s.view, err = e.stock.View(ctx, key); err != nil {
		return nil, err
	}
	// The state comes before what tells that something is under way: what moves one and not yet the other is seen by it.
	if s.sku, err = e.orders.SKU(ctx, key); err != nil {
		return nil, err
	}
	if s.open, err = e.orders.OpenCount(ctx, key); err != nil {
		return nil, err
	}
	if s.unsent, err = e.orders.UnsentCount(ctx, key); err != nil {
		return nil, err
	}
	after, err := e.stock.View(ctx, key)
	if err != nil {
		return nil, err
	}
	s.still = sameMoment(&s.view, &after)
	return s, nil
}

// sameMoment reports whether nothing has changed in the Stock between two views.
func sameMoment(a, b *flashsale.StockView) bool {
	return a.Epoch == b.Epoch && a.Run == b.Run && a.Seq == b.Seq && a.Loaded && b.Loaded
}

// underWay says what is under way, "" if the key is quiescent.
func (s *standing) underWay() string {
	switch q := &s.view.Queue; {
	case s.sku.Retired && s.unsent == 0 && s.open == 0:
		return ""
	case s.sku.Rebuilding || !s.view.Loaded || s.view.Epoch != s.sku.Epoch:
		return "the stock is being loaded"
	case s.view.Settings.Version < s.sku.Settings.Version:
		return "the stock does not have its settings yet"
	case q.Depth > 0:
		return counted(q.Depth, "job waits to be decided", "jobs wait to be decided")
	case q.Pending > 0:
		return counted(q.Pending, "reservation is pending", "reservations are pending")
	case s.unsent > 0:
		return notFollowed(s.unsent)
	case s.open > 0:
		return counted(s.open, "operation is open", "operations are open")
	case !s.still:
		return "the stock has just changed"
	}
	return ""
}

func notFollowed(rows int64) string {
	return "the stock has not followed " + counted(rows, "row of the outbox", "rows of the outbox")
}

// drift returns how the counters differ, nil if they do not or something is under way.
func (s *standing) drift() *Drift {
	d := &Drift{
		Epoch: s.view.Epoch,
		Stock: Counters{s.view.Total, s.view.Available, s.view.Held, s.view.Sold},
		SQL:   Counters{s.sku.Total, s.sku.Available(), s.sku.Reserved, s.sku.Sold},
	}
	if d.Stock == d.SQL || s.sku.Retired || s.underWay() != "" {
		return nil
	}
	return d
}

// Quiescent reports whether nothing is under way for a key, in either store: no job, nothing pending, no row of the outbox that the
// Stock has not followed, no open operation, no rebuild. If something is, what says it.
func (e *Engine) Quiescent(ctx context.Context, key flashsale.Key) (quiet bool, what string, err error) {
	s, err := e.stand(ctx, key)
	if err != nil {
		return false, "", err
	}
	what = s.underWay()
	return what == "", what, nil
}

// rowsOf returns the rows that SQL has of these rids.
func (e *Engine) rowsOf(ctx context.Context, rids []string) (map[string]*flashsale.Reservation, error) {
	if len(rids) == 0 {
		return nil, nil
	}
	rows, err := e.orders.Reservations(ctx, rids)
	if err != nil {
		return nil, err
	}
	of := make(map[string]*flashsale.Reservation, len(rows))
	for i := range rows {
		of[rows[i].RID] = &rows[i]
	}
	return of, nil
}

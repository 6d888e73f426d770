package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/headgate-io/headgate/flashsale"
)

// storyRows bounds a story.
const storyRows = 200

// Chapter is one reservation of a story, with all that was tried to pay for it.
type Chapter struct {
	Reservation flashsale.Reservation
	Payments    []flashsale.Payment
}

// Story tells what is known of a shopper in a sale, newest first: what is pending in the Stock, at most 16 reservations of each sku, and at most
// 200 of SQL: reserved, refused (with the reason), paid, given back, and every payment. Of a pending one Until is when it is decided at the
// latest. What was refused before it came to SQL has left no row: see [Engine.Refusals]. An error of the Stock alone comes with what SQL knows,
// without what is pending in the skus that do not answer.
func (e *Engine) Story(ctx context.Context, sale, user string) ([]Chapter, error) {
	if err := flashsale.CheckUser(user); err != nil {
		return nil, err
	}
	s, err := e.orders.Sale(ctx, sale)
	if err != nil {
		return nil, err
	}
	// The Stock first: what SQL decides meanwhile is then told by SQL.
	pending, errStock := e.pendingOf(ctx, s, user)
	rows, err := e.orders.OfUser(ctx, sale, user, storyRows)
	if err != nil {
		return nil, err
	}
	decided := make(map[string]bool, len(rows))
	for i := range rows {
		decided[rows[i].RID] = true
	}
	story := slices.DeleteFunc(pending, func(c Chapter) bool { return decided[c.Reservation.RID] })
	for i := range rows {
		c := Chapter{Reservation: rows[i]}
		if rows[i].State != flashsale.Rejected {
			if c.Payments, err = e.orders.PaymentsOf(ctx, rows[i].RID); err != nil {
				return nil, err
			}
		}
		story = append(story, c)
	}
	return story, errStock
}

// pendingOf are chapters of what waits in the Stock to be decided, newest first.
func (e *Engine) pendingOf(ctx context.Context, s *flashsale.Sale, user string) ([]Chapter, error) {
	of := make([][]Chapter, len(s.SKUs))
	err := e.allOf(len(s.SKUs), lookupKeys, "looking up a shopper", func(i int) (err error) {
		key := flashsale.Key{Sale: s.ID, SKU: s.SKUs[i].ID}
		if of[i], err = e.pendingIn(ctx, key, user); err != nil {
			err = fmt.Errorf("%s: what is pending is not known: %w", key, err)
		}
		return err
	})
	all := slices.Concat(of...)
	slices.SortStableFunc(all, func(a, b Chapter) int {
		return cmp.Or(b.Reservation.CreatedAt.Compare(a.Reservation.CreatedAt), cmp.Compare(a.Reservation.RID, b.Reservation.RID))
	})
	if all == nil {
		all = []Chapter{}
	}
	return all, err
}

func (e *Engine) pendingIn(ctx context.Context, key flashsale.Key, user string) (pending []Chapter, err error) {
	var entries []flashsale.Entry
	err = e.inEpoch(ctx, key, func(epoch int64) error {
		rids, err := e.stock.Holds(ctx, key, epoch, user)
		if err == nil && len(rids) > 0 {
			entries, err = e.stock.Find(ctx, key, epoch, rids)
		}
		return err
	})
	if isRetired(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	sku, err := e.skus.get(ctx, key)
	if err != nil {
		return nil, err
	}
	for i := range entries {
		if entry := &entries[i]; entry.State == flashsale.Pending && entry.User == user {
			pending = append(pending, Chapter{Reservation: flashsale.Reservation{
				RID: entry.RID, Key: key, User: user, Quantity: entry.Quantity, State: entry.State, Until: entry.Deadline,
				Amount: sku.Price * entry.Quantity, Currency: sku.Currency, CreatedAt: entry.At, ChangedAt: entry.At,
			}})
		}
	}
	return pending, nil
}

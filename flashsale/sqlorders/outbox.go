package sqlorders

import (
	"context"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// tell writes the rows of the outbox for versions that reservations have now, all with the same number, and calls f with the ids.
func (t *tx) tell(of []flashsale.Reservation, f func(rid string, id int64)) error {
	rows := make([][]any, len(of))
	for i := range of {
		r := &of[i]
		rows[i] = []any{r.RID, r.Version, r.Key.Sale, r.Key.SKU, []byte(r.User), r.Quantity, int64(r.State), r.Reason, r.OrderID, r.Amount, r.Currency,
			int64(0), int64(0), t.now}
	}
	read := func(scan func(...any) error) error {
		var id int64
		var rid string
		err := scan(&id, &rid)
		f(rid, id)
		return err
	}
	if t.d.returning {
		return t.insertReturning(outboxTable(), " RETURNING id, rid", rows, read)
	}
	if err := t.insert(outboxTable(), "", rows); err != nil {
		return err
	}
	// The ids of rows that were inserted together need not follow one another, so they are read by their other key.
	rids := make([]string, len(of))
	for i := range of {
		rids[i] = of[i].RID
	}
	return inParts(t.d, rids, func(part []string) error {
		those, args := in(t.d, "rid", part)
		return t.query("SELECT id, rid FROM outbox WHERE version = ? AND "+those, append([]any{of[0].Version}, args...), read)
	})
}

// sentColumn is the column of a lane.
func sentColumn(lane flashsale.Lane) (string, error) {
	switch lane {
	case flashsale.LaneStock:
		return "stock_sent", nil
	case flashsale.LaneRelay:
		return "relay_sent", nil
	}
	return "", invalidf("the outbox has no lane %.32q", string(lane))
}

const eventColumns = "o.id, o.rid, o.version, o.sale, o.sku, o.user_id, o.quantity, o.state, o.reason, o.order_id, o.amount, o.currency, o.at"

// events returns the rows of a query for eventColumns.
func (t *tx) events(where string, args ...any) ([]flashsale.Event, error) {
	var all []flashsale.Event
	err := t.query("SELECT "+eventColumns+" FROM outbox o WHERE "+where+" ORDER BY o.id LIMIT ?", args, func(scan func(...any) error) error {
		var e flashsale.Event
		var user []byte
		var state, at int64
		if err := scan(&e.ID, &e.RID, &e.Version, &e.Key.Sale, &e.Key.SKU, &user, &e.Quantity, &state, &e.Reason, &e.OrderID, &e.Amount, &e.Currency, &at); err != nil {
			return err
		}
		e.User, e.State, e.At = string(user), flashsale.State(state), timeAt(at)
		all = append(all, e)
		return nil
	})
	return all, err
}

// Unsent implements [flashsale.Outbox].
func (o *Orders) Unsent(ctx context.Context, lane flashsale.Lane, age time.Duration, after int64, limit int) ([]flashsale.Event, error) {
	column, err := sentColumn(lane)
	if err != nil || limit <= 0 {
		return nil, err
	}
	where := "o." + column + " = 0 AND o.at <= ? AND o.id > ?"
	if lane == flashsale.LaneStock {
		where += " AND NOT EXISTS (SELECT 1 FROM sale_sku k WHERE k.sale = o.sale AND k.sku = o.sku AND k.rebuilding = 1)"
	}
	var events []flashsale.Event
	err = o.read(ctx, "Unsent", func(t *tx) error {
		if err := t.clock(); err != nil {
			return err
		}
		events, err = t.events(where, t.now-age.Microseconds(), after, limit)
		return err
	})
	return events, err
}

// UnsentOf lists what LaneStock has not delivered of a key, in the order of ids and from after this one.
func (o *Orders) UnsentOf(ctx context.Context, key flashsale.Key, after int64, limit int) ([]flashsale.Event, error) {
	if err := checkKey(key); err != nil || limit <= 0 {
		return nil, err
	}
	var events []flashsale.Event
	err := o.read(ctx, "UnsentOf", func(t *tx) (err error) {
		events, err = t.events("o.stock_sent = 0 AND o.sale = ? AND o.sku = ? AND o.id > ?", key.Sale, key.SKU, after, limit)
		return err
	})
	return events, err
}

// Sent marks rows as delivered. A row that went to the Stock counts if its sku still has that epoch once the delivery is over: what was
// delivered before a rebuild began was committed before, so it is in the snapshot of the rebuild, and what came to the old keys after
// it does not count. So nothing has to be locked, and deliveries and decisions do not wait for each other.
func (o *Orders) Sent(ctx context.Context, lane flashsale.Lane, epoch int64, ids []int64) error {
	column, err := sentColumn(lane)
	if err != nil || len(ids) == 0 {
		return err
	}
	return o.write(ctx, "Sent", func(t *tx) error {
		return inParts(t.d, ids, func(part []int64) error {
			if lane == flashsale.LaneStock {
				if part, err = t.inEpoch(part, epoch); err != nil || len(part) == 0 {
					return err
				}
			}
			those, args := in(t.d, "id", part)
			_, err := t.exec("UPDATE outbox SET "+column+" = 1 WHERE "+column+" = 0 AND "+those, args...)
			return err
		})
	})
}

// inEpoch returns those rows whose sku has this epoch and is not being rebuilt.
func (t *tx) inEpoch(ids []int64, epoch int64) ([]int64, error) {
	those, args := in(t.d, "o.id", ids)
	return t.ids("SELECT o.id FROM outbox o JOIN sale_sku k ON k.sale = o.sale AND k.sku = o.sku WHERE k.epoch = ? AND k.rebuilding = 0 AND "+those,
		append([]any{epoch}, args...))
}

func (t *tx) ids(query string, args []any) (ids []int64, err error) {
	err = t.query(query, args, func(scan func(...any) error) error {
		var id int64
		err := scan(&id)
		ids = append(ids, id)
		return err
	})
	return ids, err
}

// UnsentCount counts what LaneStock has not delivered of a key.
func (o *Orders) UnsentCount(ctx context.Context, key flashsale.Key) (n int64, err error) {
	if err := checkKey(key); err != nil {
		return 0, err
	}
	err = o.read(ctx, "UnsentCount", func(t *tx) error {
		_, err := t.one("SELECT COUNT(*) FROM outbox WHERE stock_sent = 0 AND sale = ? AND sku = ?", []any{key.Sale, key.SKU}, &n)
		return err
	})
	return n, err
}

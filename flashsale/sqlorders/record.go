package sqlorders

import "github.com/headgate-io/headgate/flashsale"

func reservationTable() columns {
	return columnsOf("reservation", "rid", "sale", "sku", "user_id bytes", "quantity int", "state int", "version int", "reason", "until_at int",
		"pay_granted int", "order_id", "amount int", "currency", "origin", "epoch int", "seq int", "created_at int", "changed_at int", "ended_at int")
}

func buyerTable() columns {
	return columnsOf("buyer", "sale", "sku", "user_id bytes", "quantity int", "most int")
}

func ordersTable() columns {
	return columnsOf("orders", "order_id", "rid", "sale", "sku", "user_id bytes", "quantity int", "amount int", "currency", "state",
		"created_at int", "changed_at int")
}

func outboxTable() columns {
	return columnsOf("outbox", "rid", "version int", "sale", "sku", "user_id bytes", "quantity int", "state int", "reason", "order_id", "amount int",
		"currency", "stock_sent int", "relay_sent int", "at int")
}

// record writes what a desk has decided, a table at a time, and notes the ids of the rows of the outbox.
func (t *tx) record(d *desk, decided []flashsale.Decided) error {
	if len(d.fresh) > 0 {
		made := d.made(t.now)
		if err := t.recordRows(d, made); err != nil {
			return err
		}
		places := make(map[string]int, len(d.fresh))
		d.each(false, func(v *verdict) { places[v.rid] = v.at })
		if err := t.tell(made, func(rid string, id int64) { decided[places[rid]].Outbox = id }); err != nil {
			return err
		}
	}
	if d.taken == 0 && d.seq <= d.sku.Seq {
		return nil
	}
	_, err := t.exec("UPDATE sale_sku SET reserved = reserved + ?, seq = ?, changed_at = ? WHERE sale = ? AND sku = ?",
		d.taken, max(d.seq, d.sku.Seq), t.now, d.sku.Key.Sale, d.sku.Key.SKU)
	return err
}

// made are the reservations that a desk has decided.
func (d *desk) made(now int64) []flashsale.Reservation {
	made := make([]flashsale.Reservation, 0, len(d.fresh))
	at := timeAt(now)
	d.each(false, func(v *verdict) {
		r := flashsale.Reservation{RID: v.rid, Key: d.sku.Key, User: v.user, Quantity: v.quantity, State: v.state(), Version: 1, Reason: v.reason,
			Currency: d.sku.Currency, Origin: v.origin, CreatedAt: at, ChangedAt: at}
		if v.reason == "" {
			r.Until, r.OrderID, r.Amount = at.Add(d.sku.Hold), flashsale.OrderID(v.rid), v.quantity*d.sku.Price
		} else {
			r.EndedAt = at
		}
		made = append(made, r)
	})
	return made
}

// reservationValues are those of reservationTable for a new row.
func reservationValues(r *flashsale.Reservation, epoch, seq int64) []any {
	return []any{r.RID, r.Key.Sale, r.Key.SKU, []byte(r.User), r.Quantity, int64(r.State), r.Version, r.Reason, micros(r.Until),
		flag(r.PayGranted), r.OrderID, r.Amount, r.Currency, r.Origin, epoch, seq, micros(r.CreatedAt), micros(r.ChangedAt), orNull(micros(r.EndedAt))}
}

// recordRows writes the rows of reservations, and those of what takes units: buyers, ledger and orders.
func (t *tx) recordRows(d *desk, made []flashsale.Reservation) error {
	rows := make([][]any, len(made))
	for i := range made {
		rows[i] = reservationValues(&made[i], d.sku.Epoch, d.fresh[i].seq)
	}
	if err := t.insert(reservationTable(), "", rows); err != nil || d.taken == 0 {
		return err
	}
	buyers, ledger, orders := make([][]any, 0, len(d.bought)), make([][]any, 0, len(made)), make([][]any, 0, len(made))
	for user, quantity := range d.bought { // one row for each, since an upsert must not meet its own
		buyers = append(buyers, []any{d.sku.Key.Sale, d.sku.Key.SKU, []byte(user), quantity, d.sku.Settings.PurchaseLimit})
	}
	for i := range made {
		r := &made[i]
		if r.State == flashsale.Reserved {
			ledger = append(ledger, []any{r.RID, phaseReserve, r.Key.Sale, r.Key.SKU, r.Quantity, "", t.now})
			orders = append(orders, []any{r.OrderID, r.RID, r.Key.Sale, r.Key.SKU, []byte(r.User), r.Quantity, r.Amount, r.Currency, orderUnpaid, t.now, t.now})
		}
	}
	more := t.d.onConflict("sale, sku, user_id", "quantity = buyer.quantity + NEW(quantity)")
	if err := t.insert(buyerTable(), more, buyers); err != nil {
		return err
	}
	if err := t.insert(ledgerColumns(), "", ledger); err != nil {
		return err
	}
	return t.insert(ordersTable(), "", orders)
}

package sqlorders

import (
	"context"

	"github.com/headgate-io/headgate/flashsale"
)

// Books implements [flashsale.Rebuilds].
func (o *Orders) Books(ctx context.Context, key flashsale.Key) (*flashsale.Books, error) {
	b := &flashsale.Books{ByState: map[flashsale.State]int64{}, Rows: map[flashsale.State]int64{}}
	err := o.snapshot(ctx, "Books", func(t *tx) error {
		if err := t.unhurried(); err != nil {
			return err
		}
		state, err := t.readSKU(key)
		if err != nil {
			return err
		}
		b.State = *state
		for _, sum := range []func(flashsale.Key, *flashsale.Books) error{t.sumReservations, t.sumBuyers, t.sumLedger, t.sumOrders, t.countLoose} {
			if err := sum(key, b); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return b, nil
}

func (t *tx) sumReservations(key flashsale.Key, b *flashsale.Books) error {
	return t.query("SELECT state, COUNT(*), "+t.d.sum("quantity")+" FROM reservation WHERE sale = ? AND sku = ? GROUP BY state", []any{key.Sale, key.SKU},
		func(scan func(...any) error) error {
			var state, rows, quantity int64
			err := scan(&state, &rows, &quantity)
			b.Rows[flashsale.State(state)], b.ByState[flashsale.State(state)] = rows, quantity
			return err
		})
}

func (t *tx) sumBuyers(key flashsale.Key, b *flashsale.Books) error {
	_, err := t.one("SELECT "+t.d.sum("quantity")+", "+t.d.sum("CASE WHEN quantity > ? THEN 1 ELSE 0 END")+" FROM buyer WHERE sale = ? AND sku = ?",
		[]any{b.State.Settings.PurchaseLimit, key.Sale, key.SKU}, &b.Buyers, &b.OverLimit)
	return err
}

func (t *tx) sumLedger(key flashsale.Key, b *flashsale.Books) error {
	into := map[[2]string]*int64{
		{phaseInitial, ""}: &b.LedgerInitial, {"reserve", ""}: &b.LedgerReserved, {"settle", "sold"}: &b.LedgerSold,
		{"settle", "released"}: &b.LedgerReleased, {phaseTopUp, ""}: &b.LedgerTopUp, {phaseWithdraw, ""}: &b.LedgerWithdrawn,
	}
	err := t.query("SELECT phase, kind, "+t.d.sum("quantity")+" FROM stock_ledger WHERE sale = ? AND sku = ? GROUP BY phase, kind", []any{key.Sale, key.SKU},
		func(scan func(...any) error) error {
			var phase, kind string
			var quantity int64
			if err := scan(&phase, &kind, &quantity); err != nil {
				return err
			}
			sum := into[[2]string{phase, kind}]
			if sum == nil {
				return errorf(flashsale.CodeInternal, "the ledger of %s has the phase %q with the kind %q", key, phase, kind)
			}
			*sum = quantity
			return nil
		})
	if err != nil {
		return err
	}
	_, err = t.one("SELECT COUNT(*) FROM (SELECT id FROM stock_ledger WHERE sale = ? AND sku = ? AND phase = 'settle' GROUP BY id HAVING COUNT(*) > 1) twice",
		[]any{key.Sale, key.SKU}, &b.DoubleSettled)
	return err
}

func (t *tx) sumOrders(key flashsale.Key, b *flashsale.Books) error {
	_, err := t.one("SELECT "+t.d.sum("CASE WHEN state = 'paid' THEN 1 ELSE 0 END")+", "+t.d.sum("CASE WHEN state = 'unpaid' THEN 1 ELSE 0 END")+
		" FROM orders WHERE sale = ? AND sku = ?", []any{key.Sale, key.SKU}, &b.OrdersPaid, &b.OrdersOpen)
	if err != nil {
		return err
	}
	_, err = t.one("SELECT COUNT(*) FROM outbox WHERE stock_sent = 0 AND sale = ? AND sku = ?", []any{key.Sale, key.SKU}, &b.Unsent)
	return err
}

// countLoose counts captured payments of the sku's reservations that have paid for nothing yet.
func (t *tx) countLoose(key flashsale.Key, b *flashsale.Books) error {
	_, err := t.one("SELECT COUNT(*) FROM payment p JOIN reservation r ON r.rid = p.rid WHERE p.state = 'captured' AND p.applied_to IS NULL AND r.sale = ? AND r.sku = ?",
		[]any{key.Sale, key.SKU}, &b.CapturedLoose)
	return err
}

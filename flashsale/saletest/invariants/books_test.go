package invariants

import (
	"fmt"
	"strings"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// books are figures of SQL, read around the package that keeps it, all of one moment.
type books struct {
	total, reserved, sold int64
	// Units of reservations that are reserved or confirming, and that are confirmed; of buyers; the most that one buyer has.
	rowsHeld, rowsSold, buyers, most int64
	// buyersOff counts buyers who have other units than their reservations.
	buyersOff int64
	// The ledger: units.
	ledgerInitial, ledgerTopUp, ledgerWithdrawn, ledgerReserved, ledgerSold, ledgerReleased int64
	// Counts of reservations: that were reserved once, that are settled, and that are confirmed.
	taken, settled, confirmed int64
	// Counts of rows of the ledger, of orders, of paid orders, of payments that are applied, and to how many reservations.
	reserveRows, settleRows, orders, paid, applied, appliedTo int64
	// Counts of reservations whose row of the ledger, order, or events in the outbox are not as many or as much as they should be.
	settledOff, ordersOff, outboxOff int64
}

// ofSKU are the figures, by the order of the fields of books after the first three.
var ofSKU = []string{
	"SELECT SUM(quantity) FROM reservation WHERE state IN (2, 3)",
	"SELECT SUM(quantity) FROM reservation WHERE state = 4",
	"SELECT SUM(quantity) FROM buyer",
	"SELECT MAX(quantity) FROM buyer",
	"SELECT COUNT(*) FROM buyer b WHERE b.quantity <> (SELECT COALESCE(SUM(r.quantity), 0) FROM reservation r WHERE r.sale = b.sale AND r.sku = b.sku AND r.user_id = b.user_id AND r.state IN (2, 3, 4))",
	"SELECT SUM(quantity) FROM stock_ledger WHERE phase = 'initial'",
	"SELECT SUM(quantity) FROM stock_ledger WHERE phase = 'top_up'",
	"SELECT SUM(quantity) FROM stock_ledger WHERE phase = 'withdraw'",
	"SELECT SUM(quantity) FROM stock_ledger WHERE phase = 'reserve'",
	"SELECT SUM(quantity) FROM stock_ledger WHERE phase = 'settle' AND kind = 'sold'",
	"SELECT SUM(quantity) FROM stock_ledger WHERE phase = 'settle' AND kind = 'released'",
	"SELECT COUNT(*) FROM reservation WHERE state <> 7",
	"SELECT COUNT(*) FROM reservation WHERE state IN (4, 5, 6)",
	"SELECT COUNT(*) FROM reservation WHERE state = 4",
	"SELECT COUNT(*) FROM stock_ledger WHERE phase = 'reserve'",
	"SELECT COUNT(*) FROM stock_ledger WHERE phase = 'settle'",
	"SELECT COUNT(*) FROM orders",
	"SELECT COUNT(*) FROM orders WHERE state = 'paid'",
	"SELECT COUNT(applied_to) FROM payment",
	"SELECT COUNT(DISTINCT applied_to) FROM payment",
	"SELECT COUNT(*) FROM reservation r WHERE r.state IN (4, 5, 6) AND NOT EXISTS (SELECT 1 FROM stock_ledger l WHERE l.id = r.rid AND l.phase = 'settle' AND l.quantity = r.quantity AND l.kind = CASE WHEN r.state = 4 THEN 'sold' ELSE 'released' END)",
	"SELECT COUNT(*) FROM reservation r WHERE r.state <> 7 AND 1 <> (SELECT COUNT(*) FROM orders o WHERE o.rid = r.rid AND o.order_id = r.order_id AND o.quantity = r.quantity AND o.state = CASE r.state WHEN 4 THEN 'paid' WHEN 5 THEN 'cancelled' WHEN 6 THEN 'expired' ELSE 'unpaid' END)",
	"SELECT COUNT(*) FROM reservation r WHERE r.created_at > %d AND r.version <> (SELECT COUNT(*) FROM outbox o WHERE o.rid = r.rid)",
}

// books reads them with one statement, which sees one moment on each database.
func (w *world) books() (b books) {
	w.Helper()
	var q strings.Builder
	q.WriteString("SELECT total, reserved, sold")
	for _, figure := range ofSKU {
		q.WriteString(", COALESCE((" + figure + "), 0)")
	}
	q.WriteString(" FROM sale_sku")
	// Events that everybody has are kept for an hour.
	query := fmt.Sprintf(q.String(), w.clock.Now().Add(-59*time.Minute).UnixMicro())
	err := w.raw.QueryRowContext(w.Context(), query).Scan(&b.total, &b.reserved, &b.sold,
		&b.rowsHeld, &b.rowsSold, &b.buyers, &b.most, &b.buyersOff,
		&b.ledgerInitial, &b.ledgerTopUp, &b.ledgerWithdrawn, &b.ledgerReserved, &b.ledgerSold, &b.ledgerReleased,
		&b.taken, &b.settled, &b.confirmed, &b.reserveRows, &b.settleRows, &b.orders, &b.paid, &b.applied, &b.appliedTo,
		&b.settledOff, &b.ordersOff, &b.outboxOff)
	w.must(err)
	return b
}

// counters are those of the sku alone.
func (w *world) counters() (b books) {
	w.Helper()
	w.must(w.raw.QueryRowContext(w.Context(), "SELECT total, reserved, sold FROM sale_sku").Scan(&b.total, &b.reserved, &b.sold))
	return b
}

// addsUp is I2.
func addsUp(v *flashsale.StockView) (f findings) {
	f.unless(v.Available >= 0 && v.Held >= 0 && v.Sold >= 0 && v.Available+v.Held+v.Sold == v.Total,
		"I2: the stock has %d available, %d held and %d sold of %d", v.Available, v.Held, v.Sold, v.Total)
	return f
}

// count is the answer to a question that has a number.
func (w *world) count(query string) (n int64) {
	w.Helper()
	w.must(w.raw.QueryRowContext(w.Context(), query).Scan(&n))
	return n
}

// findings are what does not hold.
type findings []string

func (f *findings) unless(holds bool, format string, args ...any) {
	if !holds {
		*f = append(*f, fmt.Sprintf(format, args...))
	}
}

// units is I1.
func (b *books) units() (f findings) {
	f.unless(b.reserved >= 0 && b.sold >= 0 && b.reserved+b.sold <= b.total, "I1: %d reserved and %d sold of %d", b.reserved, b.sold, b.total)
	return f
}

// sums is I4.
func (b *books) sums() (f findings) {
	f.unless(b.reserved == b.rowsHeld && b.sold == b.rowsSold, "I4: %d reserved and %d sold, and by reservations %d and %d", b.reserved, b.sold, b.rowsHeld, b.rowsSold)
	f.unless(b.reserved == b.ledgerReserved-b.ledgerSold-b.ledgerReleased && b.sold == b.ledgerSold,
		"I4: %d reserved and %d sold, and the ledger has reserved %d, sold %d, released %d", b.reserved, b.sold, b.ledgerReserved, b.ledgerSold, b.ledgerReleased)
	f.unless(b.total == b.ledgerInitial+b.ledgerTopUp-b.ledgerWithdrawn, "I4: a total of %d, and the ledger has %d + %d − %d", b.total, b.ledgerInitial, b.ledgerTopUp, b.ledgerWithdrawn)
	f.unless(b.buyers == b.reserved+b.sold && b.buyersOff == 0, "I4: buyers have %d of %d, and %d of them not what their reservations say", b.buyers, b.reserved+b.sold, b.buyersOff)
	return f
}

// once is I5.
func (b *books) once() (f findings) {
	f.unless(b.reserveRows == b.taken && b.orders == b.taken, "I5: %d reservations, %d of them in the ledger, %d orders", b.taken, b.reserveRows, b.orders)
	f.unless(b.settleRows == b.settled && b.settledOff == 0, "I5: %d have ended, %d are settled in the ledger, %d of them otherwise", b.settled, b.settleRows, b.settledOff)
	f.unless(b.paid == b.confirmed && b.applied == b.confirmed && b.appliedTo == b.confirmed,
		"I5: %d confirmed, %d orders paid, %d payments applied to %d reservations", b.confirmed, b.paid, b.applied, b.appliedTo)
	f.unless(b.ordersOff == 0 && b.outboxOff == 0, "I5: %d reservations have no order as they should, %d not as many events as versions", b.ordersOff, b.outboxOff)
	return f
}

// limits is I6.
func (b *books) limits(limit int64) (f findings) {
	f.unless(b.most <= limit && b.buyersOff == 0, "I6: a user has %d, and the limit is %d; %d have other units than their reservations", b.most, limit, b.buyersOff)
	return f
}

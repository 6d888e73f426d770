package sqlorders

import (
	"context"
	"fmt"
	"strings"
)

// checkBooks holds the tables against each other with sums of its own: I1, I4, I5, I6 and what the outbox and the payments have to say.
// Each query must find nothing.
func (s *shop) checkBooks() {
	s.Helper()
	s.checkBooksBut("nothing")
}

// checkBooksBut leaves out what is about a word.
func (s *shop) checkBooksBut(word string) {
	s.Helper()
	for what, query := range contradictions {
		if strings.Contains(what, word) {
			continue
		}
		for _, row := range s.rows(query) {
			s.Errorf("%s: %s", what, row)
		}
	}
}

// rows shows the first rows of a query.
func (s *shop) rows(query string) (shown []string) {
	s.Helper()
	rows, err := s.o.db.QueryContext(context.Background(), query) // that of the test is over in its Cleanup
	if err != nil {
		s.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		s.Fatal(err)
	}
	for rows.Next() && len(shown) < 5 {
		values := make([]any, len(names))
		for i := range values {
			values[i] = new(any)
		}
		if err := rows.Scan(values...); err != nil {
			s.Fatal(err)
		}
		var row []string
		for i, v := range values {
			row = append(row, names[i]+"="+plain(*v.(*any)))
		}
		shown = append(shown, strings.Join(row, " "))
	}
	if err := rows.Err(); err != nil {
		s.Fatal(err)
	}
	return shown
}

func plain(v any) string {
	if b, ok := v.([]byte); ok {
		return string(b)
	}
	return fmt.Sprint(v)
}

const perSKU = "SELECT k.sale, k.sku, k.reserved, k.sold, x.* FROM sale_sku k JOIN "

var contradictions = map[string]string{
	"I1: reserved or sold below 0, or above the total": `
		SELECT sale, sku, reserved, sold, total FROM sale_sku WHERE reserved < 0 OR sold < 0 OR reserved + sold > total`,

	"I4: counters and rows": perSKU + `(
		SELECT k2.sale AS s, k2.sku AS u,
			COALESCE(SUM(CASE WHEN r.state IN (2, 3) THEN r.quantity ELSE 0 END), 0) AS held,
			COALESCE(SUM(CASE WHEN r.state = 4 THEN r.quantity ELSE 0 END), 0) AS confirmed
		FROM sale_sku k2 LEFT JOIN reservation r ON r.sale = k2.sale AND r.sku = k2.sku GROUP BY k2.sale, k2.sku
	) x ON x.s = k.sale AND x.u = k.sku WHERE x.held <> k.reserved OR x.confirmed <> k.sold`,

	"I4: counters and ledger": perSKU + `(
		SELECT k2.sale AS s, k2.sku AS u,
			COALESCE(SUM(CASE WHEN l.phase = 'reserve' THEN l.quantity WHEN l.phase = 'settle' THEN -l.quantity ELSE 0 END), 0) AS open_units,
			COALESCE(SUM(CASE WHEN l.phase = 'settle' AND l.kind = 'sold' THEN l.quantity ELSE 0 END), 0) AS sold_units
		FROM sale_sku k2 LEFT JOIN stock_ledger l ON l.sale = k2.sale AND l.sku = k2.sku GROUP BY k2.sale, k2.sku
	) x ON x.s = k.sale AND x.u = k.sku WHERE x.open_units <> k.reserved OR x.sold_units <> k.sold`,

	"I4: a reservation and its lines in the ledger": `
		SELECT r.rid, r.state, r.quantity, a.quantity AS taken, b.quantity AS settled, b.kind FROM reservation r
		LEFT JOIN stock_ledger a ON a.id = r.rid AND a.phase = 'reserve' LEFT JOIN stock_ledger b ON b.id = r.rid AND b.phase = 'settle'
		WHERE r.state <> 7 AND (a.quantity IS NULL OR a.quantity <> r.quantity) OR r.state = 7 AND (a.id IS NOT NULL OR b.id IS NOT NULL)
			OR r.state IN (2, 3) AND b.id IS NOT NULL OR r.state = 4 AND (b.kind IS NULL OR b.kind <> 'sold' OR b.quantity <> r.quantity)
			OR r.state IN (5, 6) AND (b.kind IS NULL OR b.kind <> 'released' OR b.quantity <> r.quantity)`,

	"I5: a reservation and its order": `
		SELECT r.rid, r.state, r.order_id, r.amount, o.order_id AS other, o.state AS order_state, o.amount AS order_amount FROM reservation r
		LEFT JOIN orders o ON o.rid = r.rid
		WHERE r.state = 7 AND (o.rid IS NOT NULL OR r.order_id <> '') OR r.state <> 7 AND (o.rid IS NULL OR o.order_id <> r.order_id
			OR o.quantity <> r.quantity OR o.amount <> r.amount OR o.currency <> r.currency OR o.user_id <> r.user_id OR o.state <>
			CASE r.state WHEN 4 THEN 'paid' WHEN 5 THEN 'cancelled' WHEN 6 THEN 'expired' ELSE 'unpaid' END)`,

	"I5: orders or ledger lines of no reservation": `
		SELECT 'order' AS what, o.rid FROM orders o WHERE NOT EXISTS (SELECT 1 FROM reservation r WHERE r.rid = o.rid)
		UNION ALL SELECT 'ledger', l.id FROM stock_ledger l WHERE l.phase IN ('reserve', 'settle')
			AND NOT EXISTS (SELECT 1 FROM reservation r WHERE r.rid = l.id)`,

	"I6: a buyer and their reservations": `
		SELECT r.sale, r.sku, r.user_id, r.units, b.quantity, b.most, k.purchase_limit FROM (
			SELECT sale, sku, user_id, SUM(CASE WHEN state IN (2, 3, 4) THEN quantity ELSE 0 END) AS units FROM reservation WHERE state <> 7 GROUP BY sale, sku, user_id
		) r JOIN sale_sku k ON k.sale = r.sale AND k.sku = r.sku LEFT JOIN buyer b ON b.sale = r.sale AND b.sku = r.sku AND b.user_id = r.user_id
		WHERE b.quantity IS NULL OR b.quantity <> r.units OR r.units > k.purchase_limit OR b.most <> k.purchase_limit`,

	"I6: a buyer without reservations": `
		SELECT b.sale, b.sku, b.user_id, b.quantity FROM buyer b WHERE NOT EXISTS (
			SELECT 1 FROM reservation r WHERE r.sale = b.sale AND r.sku = b.sku AND r.user_id = b.user_id AND r.state <> 7)`,

	"the outbox has not one row for each version": `
		SELECT r.rid, r.version, x.n, x.first_version, x.last_version FROM reservation r LEFT JOIN (
			SELECT rid, COUNT(*) AS n, MIN(version) AS first_version, MAX(version) AS last_version FROM outbox GROUP BY rid
		) x ON x.rid = r.rid WHERE x.n IS NULL OR x.n <> r.version OR x.first_version <> 1 OR x.last_version <> r.version`,

	"the last row of the outbox is not the reservation": `
		SELECT r.rid, r.state, o.state AS told FROM reservation r JOIN outbox o ON o.rid = r.rid AND o.version = r.version
		WHERE o.state <> r.state OR o.quantity <> r.quantity OR o.user_id <> r.user_id OR o.sale <> r.sale OR o.sku <> r.sku OR o.reason <> r.reason
			OR o.order_id <> r.order_id OR o.amount <> r.amount OR o.currency <> r.currency OR o.at <> r.changed_at`,

	"a terminal version that is not the last": `
		SELECT o.rid, o.version, o.state FROM outbox o JOIN reservation r ON r.rid = o.rid WHERE o.state >= 4 AND o.version <> r.version`,

	"a payment that is applied to what is not paid, or not captured": `
		SELECT p.intent_key, p.state, p.applied_to, r.state AS reserved_state FROM payment p LEFT JOIN reservation r ON r.rid = p.applied_to
		WHERE p.applied_to IS NOT NULL AND (r.state IS NULL OR r.state <> 4 OR p.state <> 'captured' OR p.amount <> r.amount OR p.currency <> r.currency)`,

	"a confirmed reservation that no payment is applied to": `
		SELECT r.rid FROM reservation r WHERE r.state = 4 AND NOT EXISTS (SELECT 1 FROM payment p WHERE p.applied_to = r.rid)`,

	"a live payment of what is not being paid": `
		SELECT p.intent_key, r.state FROM payment p LEFT JOIN reservation r ON r.rid = p.rid WHERE p.live = 1 AND (r.state IS NULL OR r.state NOT IN (3, 4))`,

	"confirming without a live payment": `
		SELECT r.rid FROM reservation r WHERE r.state = 3 AND NOT EXISTS (SELECT 1 FROM payment p WHERE p.rid = r.rid AND p.live = 1)`,
}

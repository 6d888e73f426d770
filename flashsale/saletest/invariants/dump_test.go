package invariants

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// tables are all tables of a sale, as they are read to be compared. Leases are of those who work on it, and the ids of the outbox are
// numbers that a transaction may have used up that was repeated.
var tables = map[string]string{
	"sale": "*", "sale_sku": "*", "buyer": "*", "reservation": "*", "stock_ledger": "*", "operation": "*", "orders": "*", "payment": "*",
	"payment_event": "*", "inbox": "*",
	"outbox": "rid, version, sale, sku, user_id, quantity, state, reason, order_id, amount, currency, stock_sent, relay_sent, at",
}

// dumpSQL is all of SQL, a line for each row.
func (w *world) dumpSQL() (lines []string) {
	w.Helper()
	for table, columns := range tables {
		lines = append(lines, w.dumpTable(table, columns)...)
	}
	slices.Sort(lines)
	return lines
}

func (w *world) dumpTable(table, columns string) (lines []string) {
	w.Helper()
	rows, err := w.raw.QueryContext(w.Context(), "SELECT "+columns+" FROM "+table)
	w.must(err)
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	w.must(err)
	for rows.Next() {
		row, into := make([]any, len(names)), make([]any, len(names))
		for i := range row {
			into[i] = &row[i]
		}
		w.must(rows.Scan(into...))
		line := table
		for i, name := range names {
			if name == "store_run" { // each process of a store has one of its own
				continue
			}
			if b, ok := row[i].([]byte); ok {
				row[i] = string(b)
			}
			line += fmt.Sprintf(" %s=%q", name, fmt.Sprint(row[i]))
		}
		lines = append(lines, line)
	}
	w.must(rows.Err())
	return lines
}

// dumpStock is all that the Stock says of itself, but for what has to do with its own life.
func (w *world) dumpStock() (lines []string) {
	w.Helper()
	v := w.view()
	epoch := v.Epoch
	v.Epoch, v.Run, v.Seq, v.Now = 0, "", 0, time.Time{}
	lines = append(lines, fmt.Sprintf("view %+v", v))
	for cursor := ""; ; {
		page, next, err := w.stock().Entries(w.Context(), phone, epoch, cursor, 1000)
		w.must(err)
		for i := range page {
			lines = append(lines, fmt.Sprintf("entry %+v", page[i]))
		}
		if cursor = next; next == "" {
			break
		}
	}
	dead, err := w.stock().Dead(w.Context(), phone, epoch, 1000)
	w.must(err)
	for i := range dead {
		lines = append(lines, fmt.Sprintf("dead %+v", dead[i]))
	}
	slices.Sort(lines)
	return slices.Compact(lines) // a walk may see an entry twice
}

// differences are the lines that only one of two dumps has.
func differences(a, b []string) string {
	var out strings.Builder
	for _, side := range []struct {
		sign       string
		have, miss []string
	}{{"- ", a, b}, {"+ ", b, a}} {
		for _, line := range side.have {
			if !slices.Contains(side.miss, line) {
				out.WriteString(side.sign + line + "\n")
			}
		}
	}
	return out.String()
}

// holdings are the units that users hold and have bought, as the Stock says: by its entries that have not ended without a sale.
func (w *world) holdings() map[string]int64 {
	w.Helper()
	of := map[string]int64{}
	page, _, err := w.stock().Entries(w.Context(), phone, w.sku().Epoch, "", 10_000)
	w.must(err)
	for i := range page {
		if page[i].State.Class() != flashsale.Free {
			of[page[i].User] += page[i].Quantity
		}
	}
	return of
}

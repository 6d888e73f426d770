package sqlorders

import (
	"context"
	"strings"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// paidBy are the places that say that a reservation is paid: the table, the columns of its rid and of its last change, and where.
var paidBy = [...][4]string{
	{"reservation", "rid", "changed_at", "state = 4"},
	{"orders", "rid", "changed_at", "state = 'paid'"},
	{"stock_ledger", "id", "at", "phase = 'settle' AND kind = 'sold'"},
	{"payment", "applied_to", "changed_at", "applied_to IS NOT NULL"},
}

// PaidSince pages through reservations that any table says are paid, by the time at which that table has said so. A reservation of which
// the tables say it at different times comes once for each.
func (o *Orders) PaidSince(ctx context.Context, since time.Time, cursor string, limit int) (paid []flashsale.Paid, next string, err error) {
	p := page{method: "PaidSince", since: since, cursor: cursor, limit: limit}
	from, err := p.begin()
	if err != nil {
		return nil, "", err
	}
	var last position
	err = o.snapshot(ctx, p.method, func(t *tx) error {
		var rids []string
		if rids, last, err = t.paidRIDs(from, limit); err != nil {
			return err
		}
		paid, err = t.paid(rids)
		return err
	})
	if err == nil && last.at != 0 {
		next = last.cursor()
	}
	return paid, next, err
}

// paidRIDs returns the rids of a page, and where it ends if it is full. Each place gives its first rows, so that the first of all
// are among them.
func (t *tx) paidRIDs(from position, limit int) (rids []string, last position, err error) {
	var parts []string
	var args []any
	for _, by := range paidBy {
		later, more := from.after(by[2], by[1])
		parts = append(parts, "SELECT x.rid, x.at FROM (SELECT "+by[1]+" AS rid, "+by[2]+" AS at FROM "+by[0]+" WHERE "+by[3]+" AND "+later+
			" ORDER BY "+by[2]+", "+by[1]+" LIMIT ?) x")
		args = append(append(args, more...), limit)
	}
	n, seen := 0, map[string]bool{}
	err = t.query("SELECT y.rid, y.at FROM ("+strings.Join(parts, " UNION ")+") y ORDER BY y.at, y.rid LIMIT ?", append(args, limit), func(scan func(...any) error) error {
		var at position
		if err := scan(&at.id, &at.at); err != nil {
			return err
		}
		if n++; n == limit {
			last = at
		}
		if !seen[at.id] {
			seen[at.id] = true
			rids = append(rids, at.id)
		}
		return nil
	})
	return rids, last, err
}

// paid reads what each table says of reservations, in the order of rids.
func (t *tx) paid(rids []string) ([]flashsale.Paid, error) {
	paid, place := make([]flashsale.Paid, len(rids)), make(map[string]*flashsale.Paid, len(rids))
	for i, rid := range rids {
		paid[i].Reservation.RID = rid
		place[rid] = &paid[i]
	}
	err := t.eachReservation(rids, func(r *flashsale.Reservation) error {
		place[r.RID].Reservation = *r
		return nil
	})
	if err != nil {
		return nil, err
	}
	var rid, state, intent string
	var quantity int64
	reads := []struct {
		query, column string
		dest          []any
		set           func(p *flashsale.Paid)
	}{
		{"SELECT rid FROM orders WHERE state = 'paid' AND ", "rid", []any{&rid}, func(p *flashsale.Paid) { p.OrderPaid = true }},
		{"SELECT id, quantity FROM stock_ledger WHERE phase = 'settle' AND kind = 'sold' AND ", "id", []any{&rid, &quantity}, func(p *flashsale.Paid) { p.LedgerSold = quantity }},
		{"SELECT applied_to, intent_key, state FROM payment WHERE ", "applied_to", []any{&rid, &intent, &state}, func(p *flashsale.Paid) {
			p.IntentKey, p.PaymentState = intent, flashsale.PaymentState(state)
		}},
	}
	for _, read := range reads {
		err := inParts(t.d, rids, func(part []string) error {
			those, args := in(t.d, read.column, part)
			return t.query(read.query+those, args, func(scan func(...any) error) error {
				err := scan(read.dest...)
				read.set(place[rid])
				return err
			})
		})
		if err != nil {
			return nil, err
		}
	}
	return paid, nil
}

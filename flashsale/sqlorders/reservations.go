package sqlorders

import (
	"cmp"
	"context"
	"slices"

	"github.com/headgate-io/headgate/flashsale"
)

// reservationColumns are those that a flashsale.Reservation is made of, of the table r.
const reservationColumns = "r.rid, r.sale, r.sku, r.user_id, r.quantity, r.state, r.version, r.reason, r.until_at, r.pay_granted, " +
	"r.order_id, r.amount, r.currency, r.origin, r.created_at, r.changed_at, r.ended_at"

// reservationRow is what a row is scanned into.
type reservationRow struct {
	r                                       flashsale.Reservation
	user                                    []byte
	state, until, granted, created, changed int64
	ended                                   *int64
}

func (w *reservationRow) dest() []any {
	r := &w.r
	return []any{&r.RID, &r.Key.Sale, &r.Key.SKU, &w.user, &r.Quantity, &w.state, &r.Version, &r.Reason, &w.until, &w.granted,
		&r.OrderID, &r.Amount, &r.Currency, &r.Origin, &w.created, &w.changed, &w.ended}
}

func (w *reservationRow) result() flashsale.Reservation {
	r := w.r
	r.User, r.State, r.PayGranted = string(w.user), flashsale.State(w.state), w.granted != 0
	r.Until, r.CreatedAt, r.ChangedAt = timeAt(w.until), timeAt(w.created), timeAt(w.changed)
	if w.ended != nil {
		r.EndedAt = timeAt(*w.ended)
	}
	return r
}

// reservation reads a row, CodeNotFound if there is none.
func (t *tx) reservation(rid string) (*flashsale.Reservation, error) {
	r, err := t.findReservation(rid)
	if err == nil && r == nil {
		return nil, noReservation(rid)
	}
	return r, err
}

// findReservation reads a row, nil if there is none.
func (t *tx) findReservation(rid string) (*flashsale.Reservation, error) {
	var row reservationRow
	found, err := t.one("SELECT "+reservationColumns+" FROM reservation r WHERE r.rid = ?", []any{rid}, row.dest()...)
	if err != nil || !found {
		return nil, err
	}
	r := row.result()
	return &r, nil
}

// eachReservation calls f with the rows that there are of rids.
func (t *tx) eachReservation(rids []string, f func(*flashsale.Reservation) error) error {
	return inParts(t.d, rids, func(part []string) error {
		those, args := in(t.d, "r.rid", part)
		return t.queryReservations("SELECT "+reservationColumns+" FROM reservation r WHERE "+those, args, f)
	})
}

func (t *tx) queryReservations(query string, args []any, f func(*flashsale.Reservation) error) error {
	return t.query(query, args, func(scan func(...any) error) error {
		var row reservationRow
		if err := scan(row.dest()...); err != nil {
			return err
		}
		r := row.result()
		return f(&r)
	})
}

// maxIn bounds a list of values: of a longer one MariaDB makes a table, and then may read all of the other.
const maxIn = 500

// inParts calls f with parts of values that are few enough for one statement.
func inParts[T value](d *dialect, values []T, f func(part []T) error) error {
	if d.arrays && len(values) > 0 {
		return f(values)
	}
	for part := range slices.Chunk(values, maxIn) {
		if err := f(part); err != nil {
			return err
		}
	}
	return nil
}

// isID reports whether there can be a row of this id. Some databases refuse to look for what is no text.
func isID(id string) bool { return flashsale.CheckID("an id", id) == nil }

// Reservation returns a row.
func (o *Orders) Reservation(ctx context.Context, rid string) (r *flashsale.Reservation, err error) {
	if !isID(rid) {
		return nil, noReservation(rid)
	}
	err = o.read(ctx, "Reservation", func(t *tx) (err error) {
		r, err = t.reservation(rid)
		return err
	})
	return r, err
}

// Reservations returns the rows that there are of these rids.
func (o *Orders) Reservations(ctx context.Context, rids []string) ([]flashsale.Reservation, error) {
	var found []flashsale.Reservation
	rids = slices.DeleteFunc(slices.Clone(rids), func(rid string) bool { return !isID(rid) })
	err := o.read(ctx, "Reservations", func(t *tx) error {
		found = found[:0]
		return t.eachReservation(rids, func(r *flashsale.Reservation) error {
			found = append(found, *r)
			return nil
		})
	})
	return found, err
}

// OfUser returns a user's rows of a sale, newest first.
func (o *Orders) OfUser(ctx context.Context, sale, user string, limit int) ([]flashsale.Reservation, error) {
	if !isID(sale) || user == "" || len(user) > flashsale.MaxUser || limit <= 0 {
		return nil, nil
	}
	return o.list(ctx, "OfUser", func(*tx) (string, []any) {
		return "SELECT " + reservationColumns + " FROM reservation r WHERE r.sale = ? AND r.user_id = ? ORDER BY r.created_at DESC, r.rid LIMIT ?",
			[]any{sale, []byte(user), limit}
	})
}

// list reads the rows of a query that may need the clock.
func (o *Orders) list(ctx context.Context, method string, query func(*tx) (string, []any)) ([]flashsale.Reservation, error) {
	var found []flashsale.Reservation
	err := o.read(ctx, method, func(t *tx) error {
		if err := t.clock(); err != nil {
			return err
		}
		text, args := query(t)
		return t.queryReservations(text, args, func(r *flashsale.Reservation) error {
			found = append(found, *r)
			return nil
		})
	})
	return found, err
}

// Expiring lists what the sweeper has to look at. At least half of the places are for each of the two kinds, as far as there are any:
// payments that are held because the provider cannot be reached must not keep the unpaid from being given back.
func (o *Orders) Expiring(ctx context.Context, limit int) ([]flashsale.Reservation, error) {
	if limit <= 0 {
		return nil, nil
	}
	due := func(state flashsale.State, over string) ([]flashsale.Reservation, error) {
		return o.list(ctx, "Expiring", func(t *tx) (string, []any) {
			return "SELECT " + reservationColumns + " FROM reservation r JOIN sale s ON s.id = r.sale WHERE r.ended_at IS NULL AND r.state = ? AND r.until_at <= ? AND " +
				over + " <= ? ORDER BY r.until_at, r.rid LIMIT ?", []any{int64(state), t.now, t.now, limit}
		})
	}
	unpaid, err := due(flashsale.Reserved, "r.until_at + s.grace")
	if err != nil {
		return nil, err
	}
	paying, err := due(flashsale.Confirming, "r.until_at")
	if err != nil {
		return nil, err
	}
	half := limit / 2
	unpaid = unpaid[:min(len(unpaid), max(limit-len(paying), limit-half))]
	paying = paying[:min(len(paying), limit-len(unpaid))]
	all := slices.Concat(unpaid, paying)
	slices.SortStableFunc(all, func(a, b flashsale.Reservation) int {
		return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(a.RID, b.RID))
	})
	return all, nil
}

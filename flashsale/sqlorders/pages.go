package sqlorders

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// position is where a page ended: the time of change, and the id, of its last row. Rows that change meanwhile move to the end.
type position struct {
	at int64
	id string
}

func (p position) cursor() string { return strconv.FormatInt(p.at, 10) + "|" + p.id }

// parseCursor returns where a page begins: after all before since if the cursor is "".
func parseCursor(cursor string, since time.Time) (position, error) {
	if cursor == "" {
		return position{at: micros(since)}, nil
	}
	at, id, ok := strings.Cut(cursor, "|")
	n, err := strconv.ParseInt(at, 10, 64)
	if !ok || err != nil || text(id) != id {
		return position{}, invalidf("sqlorders: %.80q is not the cursor of a page; begin with an empty one", cursor)
	}
	return position{at: n, id: id}, nil
}

// after is a condition that a row comes later than a position, by two columns that are not NULL.
func (p position) after(at, id string) (string, []any) {
	return at + " >= ? AND (" + at + " > ? OR " + id + " > ?)", []any{p.at, p.at, p.id}
}

// OpenPayments pages through payments of one state by the time of their last change, those alone that is older than age.
func (o *Orders) OpenPayments(ctx context.Context, state flashsale.PaymentState, age time.Duration, cursor string, limit int) ([]flashsale.Payment, string, error) {
	where := "p.state = ? AND p.changed_at <= ?"
	if state == flashsale.PaymentCaptured {
		where += " AND p.applied_to IS NULL"
	}
	return o.pagePayments(ctx, page{method: "OpenPayments", cursor: cursor, limit: limit}, func(t *tx) (string, []any, error) {
		err := t.clock()
		return where, []any{string(state), t.now - age.Microseconds()}, err
	})
}

// PaymentsSince pages through payments by the time of their last change, at since or later. A transaction that is under way may
// commit a time that lies before pages that were read already: begin again somewhat earlier.
func (o *Orders) PaymentsSince(ctx context.Context, since time.Time, cursor string, limit int) ([]flashsale.Payment, string, error) {
	return o.pagePayments(ctx, page{method: "PaymentsSince", since: since, cursor: cursor, limit: limit}, func(*tx) (string, []any, error) {
		return "1 = 1", nil, nil
	})
}

// page is what is asked for: at most limit rows from a position on.
type page struct {
	method string
	since  time.Time
	cursor string
	limit  int
}

func (p *page) begin() (position, error) {
	if p.limit <= 0 || p.limit > maxPage {
		return position{}, invalidf("sqlorders: %s with a limit of %d; give 1 to %d", p.method, p.limit, maxPage)
	}
	return parseCursor(p.cursor, p.since)
}

// maxPage bounds the rows of a page.
const maxPage = 10_000

func (o *Orders) pagePayments(ctx context.Context, p page, where func(*tx) (string, []any, error)) (found []flashsale.Payment, next string, err error) {
	from, err := p.begin()
	if err != nil {
		return nil, "", err
	}
	err = o.read(ctx, p.method, func(t *tx) error {
		condition, args, err := where(t)
		if err != nil {
			return err
		}
		later, more := from.after("p.changed_at", "p.intent_key")
		args = append(append(args, more...), p.limit)
		found, err = t.queryPayments(condition+" AND "+later+" ORDER BY p.changed_at, p.intent_key LIMIT ?", args...)
		return err
	})
	if err == nil && len(found) == p.limit {
		last := &found[len(found)-1]
		next = position{at: micros(last.ChangedAt), id: last.IntentKey}.cursor()
	}
	return found, next, err
}

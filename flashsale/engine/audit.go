package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

const (
	auditPage  = 1000
	auditTries = 5
)

// AuditReport says whether a key keeps what the sale promises.
type AuditReport struct {
	Key flashsale.Key
	At  time.Time
	// UnderWay says what is under way, "" if the key was quiescent. Equalities between the stores hold only then.
	UnderWay string
	// Still tells that the Stock did not change while it was read, so that what it says was compared with what SQL said at that moment.
	Still bool
	// Broken are the invariants that do not hold.
	Broken []Broken
	Stock  flashsale.StockView
	Books  flashsale.Books
	// Entries counts what the Stock knows, by state.
	Entries map[flashsale.State]int64
}

// Broken is an invariant that does not hold.
type Broken struct {
	// Invariant is its name, such as "I1".
	Invariant string
	// Text says by which numbers.
	Text string
}

// OK reports whether nothing is broken.
func (r *AuditReport) OK() bool { return len(r.Broken) == 0 }

// String says in one line for each what is broken.
func (r *AuditReport) String() string {
	if r.OK() {
		return r.Key.String() + ": all holds"
	}
	var b strings.Builder
	for _, x := range r.Broken {
		fmt.Fprintf(&b, "%s: %s: %s\n", r.Key, x.Invariant, x.Text)
	}
	return b.String()
}

// Audit checks, from all tables and from what the Stock holds, that a key keeps I1 to I6: no unit is held twice, the Stock does not
// offer what SQL does not have, counters are what rows and ledger say, nothing is settled twice, nobody has more than the
// purchase limit. What can only be told when both stores are of one moment is told if the Stock stands still long enough. It changes nothing.
func (e *Engine) Audit(ctx context.Context, key flashsale.Key) (*AuditReport, error) {
	var a *audit
	for range auditTries {
		var err error
		if a, err = e.lookAt(ctx, key); err != nil {
			return nil, err
		}
		if a.report.Still {
			break
		}
	}
	a.sql()
	if !a.standing.sku.Rebuilding && e.lossOf(a.standing.sku, &a.report.Stock) == "" {
		a.stock()
		a.between()
	}
	return a.report, nil
}

// audit is what was read, and what is found in it.
type audit struct {
	report   *AuditReport
	standing *standing
	held     int64
	sold     int64
	users    map[string]int64 // what users hold and have bought in the Stock
	differ   []string         // rids that SQL says something else of
}

func (e *Engine) lookAt(ctx context.Context, key flashsale.Key) (*audit, error) {
	a := &audit{report: &AuditReport{Key: key, At: e.cfg.Now(), Entries: map[flashsale.State]int64{}}, users: map[string]int64{}}
	var err error
	if a.standing, err = e.stand(ctx, key); err != nil {
		return nil, err
	}
	if err := e.readStock(ctx, a); err != nil && !isEpoch(err) {
		return nil, err
	}
	books, err := e.orders.Books(ctx, key)
	if err != nil {
		return nil, err
	}
	after, err := e.stock.View(ctx, key)
	if err != nil {
		return nil, err
	}
	r := a.report
	r.Books, r.Stock = *books, a.standing.view
	r.Still = a.standing.still && sameMoment(&a.standing.view, &after) && books.State.Epoch == after.Epoch
	if r.UnderWay = a.standing.underWay(); r.UnderWay == "" && !r.Still && !a.standing.sku.Retired {
		r.UnderWay = "the stock has just changed"
	}
	if r.UnderWay == "" && books.Unsent > 0 {
		r.UnderWay = notFollowed(books.Unsent)
	}
	return a, nil
}

func (e *Engine) readStock(ctx context.Context, a *audit) error {
	for cursor := ""; ; {
		page, next, err := e.stock.Entries(ctx, a.report.Key, a.standing.sku.Epoch, cursor, auditPage)
		if err != nil {
			return err
		}
		rids := make([]string, len(page))
		for i := range page {
			rids[i] = page[i].RID
			a.count(&page[i])
		}
		rows, err := e.rowsOf(ctx, rids)
		if err != nil {
			return err
		}
		for i := range page {
			if row := rows[page[i].RID]; row == nil || row.State != page[i].State || row.Version != page[i].Version {
				a.differ = named(a.differ, page[i].RID)
			}
		}
		if cursor = next; cursor == "" {
			return nil
		}
	}
}

func (a *audit) count(entry *flashsale.Entry) {
	a.report.Entries[entry.State]++
	switch entry.State.Class() {
	case flashsale.Held:
		a.held += entry.Quantity
	case flashsale.Sold:
		a.sold += entry.Quantity
	default:
		return
	}
	a.users[entry.User] += entry.Quantity
}

// breaks notes an invariant that does not hold, unless it does.
func (a *audit) breaks(invariant string, holds bool, format string, args ...any) {
	if !holds {
		a.report.Broken = append(a.report.Broken, Broken{invariant, fmt.Sprintf(format, args...)})
	}
}

// sql checks what SQL says of itself, at one moment.
func (a *audit) sql() {
	b := &a.report.Books
	s := &b.State
	a.breaks("I1", s.Reserved >= 0 && s.Sold >= 0 && s.Reserved+s.Sold <= s.Total, "SQL has %d reserved and %d sold of %d", s.Reserved, s.Sold, s.Total)
	rows := b.ByState[flashsale.Reserved] + b.ByState[flashsale.Confirming]
	a.breaks("I4", s.Reserved == rows, "SQL counts %d as reserved, and its reservations come to %d", s.Reserved, rows)
	a.breaks("I4", s.Sold == b.ByState[flashsale.Confirmed], "SQL counts %d as sold, and its reservations come to %d", s.Sold, b.ByState[flashsale.Confirmed])
	open := b.LedgerReserved - b.LedgerSold - b.LedgerReleased
	a.breaks("I4", s.Reserved == open, "SQL counts %d as reserved, and the ledger has %d that are not settled", s.Reserved, open)
	a.breaks("I4", s.Sold == b.LedgerSold, "SQL counts %d as sold, the ledger %d", s.Sold, b.LedgerSold)
	total := b.LedgerInitial + b.LedgerTopUp - b.LedgerWithdrawn
	a.breaks("I4", s.Total == total, "SQL has a total of %d, the ledger %d", s.Total, total)
	a.breaks("I4", b.Buyers == s.Reserved+s.Sold, "the buyers have %d, and %d are reserved or sold", b.Buyers, s.Reserved+s.Sold)
	a.breaks("I4", b.OrdersPaid == b.Rows[flashsale.Confirmed], "%s paid, and %s confirmed",
		counted(b.OrdersPaid, "order is", "orders are"), counted(b.Rows[flashsale.Confirmed], "reservation", "reservations"))
	unpaid := b.Rows[flashsale.Reserved] + b.Rows[flashsale.Confirming]
	a.breaks("I4", b.OrdersOpen == unpaid, "%s open, and %s to be paid", counted(b.OrdersOpen, "order is", "orders are"), counted(unpaid, "reservation is", "reservations are"))
	a.breaks("I5", b.DoubleSettled == 0, "%s settled more than once", counted(b.DoubleSettled, "reservation is", "reservations are"))
	a.breaks("I6", b.OverLimit == 0, "%s more than the purchase limit", counted(b.OverLimit, "buyer has", "buyers have"))
}

// stock checks what the Stock says of itself.
func (a *audit) stock() {
	v := &a.report.Stock
	a.breaks("I2", v.Available >= 0 && v.Held >= 0 && v.Sold >= 0 && v.Available+v.Held+v.Sold == v.Total,
		"the stock has %d available, %d held and %d sold of %d", v.Available, v.Held, v.Sold, v.Total)
	if !a.report.Still {
		return
	}
	a.breaks("I4", a.held == v.Held, "the stock counts %d as held, and its reservations come to %d", v.Held, a.held)
	a.breaks("I4", a.sold <= v.Sold, "the stock counts %d as sold, and its reservations come to %d", v.Sold, a.sold)
	pending := a.report.Entries[flashsale.Pending]
	a.breaks("I4", pending == v.Queue.Pending, "the stock counts %d as pending, and %d of its reservations are", v.Queue.Pending, pending)
	limit := a.standing.sku.Settings.PurchaseLimit
	for _, user := range slices.Sorted(maps.Keys(a.users)) {
		a.breaks("I6", a.users[user] <= limit, "a user has %d in the stock; the purchase limit is %d", a.users[user], limit)
	}
}

// between checks one store against the other.
func (a *audit) between() {
	if !a.report.Still {
		return
	}
	v, s := &a.report.Stock, &a.report.Books.State
	a.breaks("I3", v.Available <= s.Available(), "the stock offers %d, and SQL has %d left", v.Available, s.Available())
	if a.report.UnderWay != "" {
		return
	}
	a.breaks("I3", v.Available == s.Available(), "with nothing under way the stock offers %d, and SQL has %d left", v.Available, s.Available())
	a.breaks("I3", v.Total == s.Total && v.Held == s.Reserved && v.Sold == s.Sold, "with nothing under way the stock has total %d, held %d, sold %d, and SQL %d, %d, %d",
		v.Total, v.Held, v.Sold, s.Total, s.Reserved, s.Sold)
	a.breaks("I3", len(a.differ) == 0, "with nothing under way the stores say different things of %s", strings.Join(a.differ, ", "))
	for _, state := range []flashsale.State{flashsale.Reserved, flashsale.Confirming} {
		in, rows := a.report.Entries[state], a.report.Books.Rows[state]
		a.breaks("I3", in == rows, "with nothing under way the stock knows %d %s reservations, and SQL %d", in, state, rows)
	}
}

package demo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
)

// Invariants are what a sale promises, and whether it was kept.
type Invariants struct {
	OK bool `json:"ok"`
	// Settled tells that the sale came to its end: nothing is held, owed or under way, and it was closed. If not, such as after an early
	// end, only what must hold at every moment was checked.
	Settled bool `json:"settled"`
	// Broken says of each that was not kept by which numbers.
	Broken []string `json:"broken"`
}

func (v *Invariants) unless(holds bool, format string, args ...any) {
	if !holds && len(v.Broken) < maxWrong {
		v.Broken = append(v.Broken, fmt.Sprintf(format, args...))
	}
}

// auditWithin bounds the looks at the books at the end.
const auditWithin = 30 * time.Second

// cashUp brings the sale to its end and checks what it promises. After an early end it takes no more than a moment.
func (s *stage) cashUp(ctx context.Context) Invariants {
	m := s.market
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.plan.settleWithin())
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	defer stop()
	var v Invariants
	why := m.wind(within)
	v.Settled = why == ""
	v.unless(v.Settled || ctx.Err() != nil, "the sale did not come to its end: %s", why)
	audit, done := context.WithTimeout(context.WithoutCancel(ctx), auditWithin)
	defer done()
	if err := m.check(audit, &v, s.heard); err != nil {
		v.unless(false, "the books could not be looked at: %v", err)
	}
	v.OK = len(v.Broken) == 0
	if v.OK {
		v.Broken = []string{}
	}
	return v
}

const windEvery = 50 * time.Millisecond

// wind ends the sale: nobody reserves any more, what is held is paid or comes back, and it is closed. It returns what is still under
// way when ctx ends, "" if nothing is.
func (m *market) wind(ctx context.Context) string {
	if err := m.drain(ctx); err != nil {
		return err.Error()
	}
	for {
		why := m.underWay(ctx)
		if why == "" {
			_, err := m.CloseSale(ctx, m.command("close", "the demo is over"))
			if err == nil {
				return ""
			}
			why = err.Error()
		}
		if !pause(ctx, windEvery) {
			return why
		}
	}
}

// underWay says what is under way, "" if nothing is.
func (m *market) underWay(ctx context.Context) string {
	m.counting.Lock()
	sale, books, err := m.book.read(ctx)
	m.counting.Unlock()
	if err != nil {
		return err.Error()
	}
	if sale.Held > 0 {
		return counted(sale.Held, "unit is held", "units are held")
	}
	if books.CapturedLoose > 0 {
		return counted(books.CapturedLoose, "payment has been taken, and is neither used nor given back", "payments have been taken, and are neither used nor given back")
	}
	if owed := m.book.owed(); owed > 0 {
		return counted(owed, "payment is to be given back", "payments are to be given back")
	}
	quiet, what, err := m.Quiescent(ctx, m.key)
	switch {
	case err != nil:
		return err.Error()
	case !quiet:
		return what
	}
	return m.bankUnderWay(ctx)
}

// bankUnderWay says what the bank has done, or is about to do, that the books do not know of yet: a message may be lost, and a payment
// that had failed may go through after all, of which the match alone hears.
func (m *market) bankUnderWay(ctx context.Context) string {
	if planned := m.bank.Stats().Planned; planned > 0 {
		return "the bank is still at " + counted(planned, "thing", "things")
	}
	report, err := m.MatchOnce(ctx, m.start)
	switch {
	case err != nil:
		return err.Error()
	case report.Repaired > 0:
		return "the match has just put " + counted(report.Repaired, "payment", "payments") + " right"
	}
	for i := range report.Differences {
		if d := &report.Differences[i]; d.Kind == engine.UnknownHere || m.knows(d) {
			return fmt.Sprintf("the bank and the books differ (%s) about the payment %s of the reservation %s: %s", d.Kind, d.IntentKey, d.RID, d.Detail)
		}
	}
	return ""
}

// knows tells that a difference is of this sale, and not of one before in the same database, whose bank is gone.
func (m *market) knows(d *engine.Difference) bool {
	m.counting.Lock()
	defer m.counting.Unlock()
	_, payment := m.book.payments[d.IntentKey]
	_, owner := m.book.owners[d.RID]
	return payment || owner
}

// check looks at everything that the sale has written, at what the bank has, and at what the crowd was told.
func (m *market) check(ctx context.Context, v *Invariants, heard *answers) error {
	report, err := m.Audit(ctx, m.key)
	if err != nil {
		return err
	}
	for _, b := range report.Broken {
		v.unless(false, "%s: %s", b.Invariant, b.Text)
	}
	sale := m.count(ctx)
	v.unless(sale.Oversold == 0, "%s sold or held beyond the stock of %d", counted(sale.Oversold, "unit is", "units are"), sale.Stock)
	v.unless(sale.Sold+sale.Unsold == sale.Stock, "%d sold and %d unsold are not the stock of %d", sale.Sold, sale.Unsold, sale.Stock)
	v.unless(sale.Reserved == sale.Sold+sale.Returned+sale.Held, "%s reserved, and %d sold, %d returned and %d held are not as many",
		counted(sale.Reserved, "unit was", "units were"), sale.Sold, sale.Returned, sale.Held)
	if v.Settled {
		stock := &report.Stock
		v.unless(stock.Sold+stock.Available == stock.Total, "at the end the stock has %d sold and %d available of %d", stock.Sold, stock.Available, stock.Total)
		v.unless(sale.Paid-sale.Refunded == sale.Sold, "%s less %d given back are not the %s sold", counted(sale.Paid, "payment", "payments"), sale.Refunded, counted(sale.Sold, "unit", "units"))
		v.unless(len(m.book.owners) == sale.Sold, "%s paid, and %s sold", counted(len(m.book.owners), "reservation is", "reservations are"), counted(sale.Sold, "unit", "units"))
	}
	m.checkBank(v, &sale)
	return m.checkAnswers(ctx, v, heard)
}

// checkBank holds the books against what the payment provider did.
func (m *market) checkBank(v *Invariants, sale *Sale) {
	kept := 0
	for r := range m.bank.Records() {
		if m.earlier[r.Intent.Key] {
			continue
		}
		v.unless(r.Captures <= 1 && r.Refunds <= r.Captures, "the payment %s was taken %s and given back %s", r.Intent.Key, counted(r.Captures, "time", "times"), counted(r.Refunds, "time", "times"))
		if r.Charged() {
			kept++
		}
	}
	v.unless(!v.Settled || kept == sale.Sold, "the bank keeps %s for %s sold", counted(kept, "payment", "payments"), counted(sale.Sold, "unit", "units"))
}

// counted is a number with what it counts: counted(1, "unit is", "units are").
func counted[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(int64(n), 10) + " " + many
}

// findMany is how many reservations are looked up at a time.
const findMany = 500

// checkAnswers holds what the crowd was told against SQL: every reservation that somebody heard of is there, and its final answer is the
// one that they were given.
func (m *market) checkAnswers(ctx context.Context, v *Invariants, heard *answers) error {
	all, wrong := heard.all()
	for _, text := range wrong {
		v.unless(false, "%s", text)
	}
	for rids := range slices.Chunk(slices.Sorted(maps.Keys(all)), findMany) {
		rows, err := m.books.Reservations(ctx, rids)
		if err != nil {
			return err
		}
		found := make(map[string]*flashsale.Reservation, len(rows))
		for i := range rows {
			found[rows[i].RID] = &rows[i]
		}
		for _, rid := range rids {
			checkAnswer(v, rid, all[rid], found[rid])
		}
	}
	return nil
}

func checkAnswer(v *Invariants, rid string, told told, row *flashsale.Reservation) {
	switch {
	case row == nil:
		v.unless(!v.Settled && told.state == flashsale.Pending.String(), "%s was told that the reservation %s is %s, and there is none", told.user, rid, told.state)
	case row.User != told.user:
		v.unless(false, "the reservation %s is %s's, and %s was told of it", rid, row.User, told.user)
	case told.final:
		v.unless(row.State.String() == told.state, "%s was told that the reservation %s is %s, and it is %s", told.user, rid, told.state, row.State)
	default:
		v.unless(!v.Settled || row.State.Terminal(), "the reservation %s of %s is still %s", rid, told.user, row.State)
	}
}

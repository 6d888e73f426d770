package model

import (
	"context"

	"github.com/headgate-io/headgate/flashsale"
)

// booksEvery is after how many writes to SQL the sums of all tables are looked at too.
const booksEvery = 4

// always checks what holds between any two steps: I1 in SQL, I2 in the Stock, I3 between them unless the Stock has lost something
// since it was loaded, and now and then I4 to I6 in SQL.
func (w *world) always() {
	v, wrote, s := w.view(), w.wrote, w.sku()
	if s.Reserved < 0 || s.Sold < 0 || s.Available() < 0 {
		w.f.Fatalf("I1: SQL has total %d, reserved %d, sold %d", s.Total, s.Reserved, s.Sold)
	}
	if v.Available < 0 || v.Held < 0 || v.Sold < 0 || v.Available+v.Held+v.Sold != v.Total {
		w.f.Fatalf("I2: the stock has total %d, available %d, held %d, sold %d", v.Total, v.Available, v.Held, v.Sold)
	}
	if v.Epoch == s.Epoch && v.Loaded && s.Epoch > w.lostAt && v.Available > s.Available() {
		w.f.Fatalf("I3: in epoch %d the stock offers %d, SQL has %d", s.Epoch, v.Available, s.Available())
	}
	if wrote {
		w.unread++
	}
	if w.unread >= booksEvery {
		w.unread = 0
		w.books()
	}
	if w.f.Failed() {
		w.f.Fatalf("the run ends here")
	}
}

// books checks that all tables of SQL say the same, at any moment.
func (w *world) books() {
	b, err := w.orders.Books(context.Background(), w.key)
	w.must(err)
	s := &b.State
	rows := b.ByState[flashsale.Reserved] + b.ByState[flashsale.Confirming]
	switch {
	case s.Reserved != rows || s.Sold != b.ByState[flashsale.Confirmed]:
		w.f.Errorf("I4: SQL counts %d reserved and %d sold, its rows come to %d and %d", s.Reserved, s.Sold, rows, b.ByState[flashsale.Confirmed])
	case s.Reserved != b.LedgerReserved-b.LedgerSold-b.LedgerReleased || s.Sold != b.LedgerSold:
		w.f.Errorf("I4: SQL counts %d reserved and %d sold, the ledger has %d reserved, %d sold, %d released", s.Reserved, s.Sold, b.LedgerReserved, b.LedgerSold, b.LedgerReleased)
	case s.Total != b.LedgerInitial+b.LedgerTopUp-b.LedgerWithdrawn:
		w.f.Errorf("I4: SQL has a total of %d, the ledger %d + %d − %d", s.Total, b.LedgerInitial, b.LedgerTopUp, b.LedgerWithdrawn)
	case b.Buyers != s.Reserved+s.Sold:
		w.f.Errorf("I4: the buyers have %d, and %d are reserved or sold", b.Buyers, s.Reserved+s.Sold)
	case b.DoubleSettled != 0:
		w.f.Errorf("I5: %d reservations are settled more than once", b.DoubleSettled)
	case b.OverLimit != 0:
		w.f.Errorf("I6: %d buyers have more than the purchase limit", b.OverLimit)
	}
}

// settled checks what holds once all is quiet.
func (w *world) settled() {
	ctx := context.Background()
	for _, e := range w.engines {
		report, err := e.Audit(ctx, w.key)
		w.must(err)
		if !report.OK() || report.UnderWay != "" {
			w.f.Fatalf("the audit: %s %s", report, report.UnderWay)
		}
	}
	w.wrote = true
	v, s := w.view(), w.sku()
	if v.Available != s.Available() || v.Held != s.Reserved || v.Sold != s.Sold {
		w.f.Fatalf("I3: quiescent, the stock has %d available, %d held, %d sold; SQL has %d, %d, %d", v.Available, v.Held, v.Sold, s.Available(), s.Reserved, s.Sold)
	}
	w.compare(s)
	w.payments()
	if w.f.Failed() {
		w.f.Fatalf("the run ends here")
	}
}

// compare has the simple model hear of all that happened, and compares what it has with SQL and with what shoppers were told.
func (w *world) compare(s *flashsale.SKUState) {
	m := newBookModel(&w.sale)
	for _, e := range w.told() {
		m.hear(e)
	}
	for _, wrong := range m.wrong {
		w.f.Errorf("%s", wrong)
	}
	if m.held[w.key] != s.Reserved || m.sold[w.key] != s.Sold {
		w.f.Errorf("I4: the model has %d held and %d sold, SQL %d and %d", m.held[w.key], m.sold[w.key], s.Reserved, s.Sold)
	}
	asked := map[string]bool{}
	for _, shopper := range w.shoppers {
		for _, t := range shopper.all() {
			asked[t.rid] = true
		}
		for rid, state := range shopper.told {
			if r := m.rids[rid]; r == nil || r.state != state {
				w.f.Errorf("I8: %s was told that %s is %s, and it is %+v", shopper.name, rid, state, r)
			}
		}
	}
	if !w.lossy {
		w.promised(m)
	}
	for r := range w.provider.Records() {
		asked[flashsale.DerivedRID(r.Intent.Key)] = true
	}
	for rid, r := range m.rids {
		if !r.state.Terminal() {
			w.f.Errorf("I9: %s is still %s", rid, r.state)
		}
		if !asked[rid] {
			w.f.Errorf("I16: nobody asked for %s, and it is %s", rid, r.state)
		}
	}
}

// promised checks that what shoppers were told is being decided was decided: only a loss of the Stock can make it unknown.
func (w *world) promised(m *bookModel) {
	for _, shopper := range w.shoppers {
		for rid := range shopper.waits {
			if m.rids[rid] == nil {
				w.f.Errorf("I9: %s was told that %s is being decided, and nobody knows of it", shopper.name, rid)
			}
		}
	}
}

// told are the events that the relay was given, each once, in the order in which SQL has committed them.
func (w *world) told() []*flashsale.Event {
	ids := map[string]int64{}
	byID := map[int64]*flashsale.Event{}
	last := int64(0)
	for i := range w.events.all {
		e := &w.events.all[i]
		if id, seen := ids[e.MessageID()]; seen && id != e.ID {
			w.f.Errorf("I5: %s was told under two ids, %d and %d", e.MessageID(), id, e.ID)
		}
		ids[e.MessageID()], byID[e.ID] = e.ID, e
		last = max(last, e.ID)
	}
	var told []*flashsale.Event
	for id := range last + 1 {
		if e := byID[id]; e != nil {
			told = append(told, e)
		}
	}
	return told
}

// payments checks I7: what was captured has paid for a reservation, or was refunded, and never both or twice.
func (w *world) payments() {
	ctx := context.Background()
	paid, charged := map[string]string{}, map[string]string{}
	for r := range w.provider.Records() {
		p, err := w.orders.Payment(ctx, r.Intent.Key)
		w.must(err)
		switch {
		case r.Captures > 1 || r.Refunds > 1 || r.Refunds > r.Captures:
			w.f.Errorf("I7: %s was captured %d times and refunded %d times", r.Intent.Key, r.Captures, r.Refunds)
		case r.Charged() && (p.State != flashsale.PaymentCaptured || p.AppliedTo == ""):
			w.f.Errorf("I7: %s was captured, and is %s here", r.Intent.Key, p.State)
		case r.Refunds > 0 && (p.Reason == "amount_mismatch" || p.Reason == "currency_mismatch") && r.Amount == r.Intent.Amount && r.Currency == r.Intent.Currency:
			w.f.Errorf("I7: %s was refunded for a %s, and was captured as it was asked for", r.Intent.Key, p.Reason)
		case !r.Charged() && p.AppliedTo != "":
			w.f.Errorf("I7: %s pays for %s, and its money is not here", r.Intent.Key, p.AppliedTo)
		}
		if r.Charged() {
			if other := charged[p.RID]; other != "" {
				w.f.Errorf("I7: the shopper was charged twice for %s, by %s and %s", p.RID, other, p.IntentKey)
			}
			charged[p.RID] = p.IntentKey
		}
		if p.AppliedTo == "" {
			continue
		}
		if other := paid[p.AppliedTo]; other != "" {
			w.f.Errorf("I7: %s and %s both pay for %s", other, p.IntentKey, p.AppliedTo)
		}
		paid[p.AppliedTo] = p.IntentKey
		row, err := w.orders.Reservation(ctx, p.AppliedTo)
		w.must(err)
		if row.State != flashsale.Confirmed || row.Amount != r.Amount || row.Currency != r.Currency {
			w.f.Errorf("I7: %s pays %d %s for %s, which is %s for %d %s", p.IntentKey, r.Amount, r.Currency, row.RID, row.State, row.Amount, row.Currency)
		}
	}
	for i := range w.events.all {
		if e := &w.events.all[i]; e.State == flashsale.Confirmed && paid[e.RID] == "" {
			w.f.Errorf("I7: %s is confirmed and nobody paid", e.RID)
		}
	}
}

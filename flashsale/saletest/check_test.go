package saletest

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
)

// always checks what holds between any two steps: I1 in SQL, I2 in the Stock, I3 between them as long as the Stock has lost nothing.
func (w *world) always() {
	w.t.Helper()
	v, err := w.stock.View(context.Background(), w.key)
	w.must(err)
	s, err := w.orders.SKU(context.Background(), w.key)
	w.must(err)
	if s.Reserved < 0 || s.Sold < 0 || s.Available() < 0 {
		w.fail1("I1: SQL has total %d, reserved %d, sold %d", s.Total, s.Reserved, s.Sold)
	}
	if v.Available < 0 || v.Available+v.Held+v.Sold != v.Total {
		w.fail1("I2: the stock has total %d, available %d, held %d, sold %d", v.Total, v.Available, v.Held, v.Sold)
	}
	if !w.lossy && v.Epoch == s.Epoch && v.Loaded && v.Available > s.Available() {
		w.fail1("I3: the stock offers %d, SQL has %d", v.Available, s.Available())
	}
}

func (w *world) fail1(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf(format+"\n%s", append(args, w.history())...)
}

// heal ends all faults and lets engines, provider and time do their work until nothing is under way, then until all that can expire
// has.
func (w *world) heal() {
	w.t.Helper()
	w.finish()
	w.skews.stock, w.skews.sql = 0, 0
	quiet := false
	for round := 0; round < 400 && !quiet; round++ {
		w.now = w.now.Add(time.Duration(1+round) * time.Second)
		w.round()
		quiet = w.quiet()
	}
	if !quiet {
		_, what, err := w.engines[0].Quiescent(context.Background(), w.key)
		w.fail1("it does not become quiescent: %s, %v; open payments %+v", what, err, w.openPayments())
	}
}

// round lets every job run once.
func (w *world) round() {
	ctx := context.Background()
	w.provider.Step(ctx)
	for len(w.hooks) > 0 {
		h := w.hooks[0]
		w.hooks = w.hooks[1:]
		_ = w.engines[0].Webhook(ctx, h.header, h.body) // one that tells what is not true is refused
	}
	for i, e := range w.engines {
		jobs := []func(ctx context.Context) (int, error){e.WatchOnce, e.DeliverOnce, e.SweepOnce, e.PollOnce, e.ReconcileOnce, e.RelayOnce, func(ctx context.Context) (int, error) {
			return e.ConsumeOnce(ctx, w.key, "healer")
		}, func(ctx context.Context) (int, error) {
			// A provider that captures what it has called void tells of it in its list alone, if the webhook is lost.
			_, err := e.MatchOnce(ctx, w.sale.OpensAt)
			return 0, err
		}}
		for j, job := range jobs {
			if _, err := job(ctx); err != nil {
				w.note("while healing, engine %d, job %d: %v", i, j, err)
			}
		}
	}
}

// quiet tells whether nothing is under way, nothing is held and no payment is open.
func (w *world) quiet() bool {
	w.t.Helper()
	quiet, _, err := w.engines[0].Quiescent(context.Background(), w.key)
	w.must(err)
	v, err := w.stock.View(context.Background(), w.key)
	w.must(err)
	untold, err := w.orders.Unsent(context.Background(), flashsale.LaneRelay, 0, 1)
	w.must(err)
	return quiet && len(untold) == 0 && v.Held == 0 && len(w.openPayments()) == 0 && len(w.hooks) == 0
}

func (w *world) openPayments() []flashsale.Payment {
	w.t.Helper()
	var open []flashsale.Payment
	for _, s := range []flashsale.PaymentState{flashsale.PaymentLive, flashsale.PaymentCaptured, flashsale.PaymentRefunding} {
		cursor := ""
		for {
			page, next, err := w.orders.OpenPayments(context.Background(), s, 0, cursor, 100)
			w.must(err)
			open = append(open, page...)
			if cursor = next; next == "" {
				break
			}
		}
	}
	return open
}

// settled checks what holds once all is quiet.
func (w *world) settled() {
	w.t.Helper()
	ctx := context.Background()
	for _, e := range w.engines {
		report, err := e.Audit(ctx, w.key)
		w.must(err)
		if !report.OK() || report.UnderWay != "" {
			w.fail1("the audit: %s %s", report, report.UnderWay)
		}
	}
	v, err := w.stock.View(ctx, w.key)
	w.must(err)
	s, err := w.orders.SKU(ctx, w.key)
	w.must(err)
	if v.Available != s.Available() || v.Held != s.Reserved || v.Sold != s.Sold {
		w.fail1("I3: quiescent, the stock has %d available, %d held, %d sold; SQL has %d, %d, %d", v.Available, v.Held, v.Sold, s.Available(), s.Reserved, s.Sold)
	}
	w.model(s)
	w.payments()
}

// model has the simple model hear of all that happened.
func (w *world) model(s *flashsale.SKUState) {
	w.t.Helper()
	seen := map[string]bool{}
	byID := map[int64]*flashsale.Event{}
	last := int64(0)
	for i := range w.events {
		e := &w.events[i]
		if seen[e.MessageID()] && (byID[e.ID] == nil || byID[e.ID].MessageID() != e.MessageID()) {
			w.fail1("I5: %s was told twice, under two ids", e.MessageID())
		}
		seen[e.MessageID()], byID[e.ID] = true, e
		last = max(last, e.ID)
	}
	m := newBookModel(&w.sale)
	for id := range last + 1 {
		if e := byID[id]; e != nil {
			m.hear(e)
		}
	}
	for _, wrong := range m.wrong {
		w.t.Errorf("%s", wrong)
	}
	if m.held[w.key] != s.Reserved || m.sold[w.key] != s.Sold {
		w.t.Errorf("I4: the model has %d held and %d sold, SQL %d and %d", m.held[w.key], m.sold[w.key], s.Reserved, s.Sold)
	}
	rids := map[string]bool{}
	for _, shopper := range w.shoppers {
		for _, ticket := range shopper.tokens {
			rids[ticket.rid] = true
		}
	}
	for rid, r := range m.rids {
		if !r.state.Terminal() {
			w.t.Errorf("I9: %s is still %s", rid, r.state)
		}
		if !rids[rid] && r.first.Quantity == 0 {
			w.t.Errorf("I16: nobody asked for %s", rid)
		}
	}
	for _, shopper := range w.shoppers {
		for rid, state := range shopper.told {
			if r := m.rids[rid]; r == nil || r.state != state {
				w.t.Errorf("%s was told that %s is %s, and it is %+v", shopper.name, rid, state, r)
			}
		}
	}
	if w.t.Failed() {
		w.fail1("the model differs")
	}
}

// payments checks I7: what was captured has paid for a reservation, or was refunded, and never both or twice.
func (w *world) payments() {
	w.t.Helper()
	paid := map[string]string{}
	for r := range w.provider.Records() {
		p, err := w.orders.Payment(context.Background(), r.Intent.Key)
		w.must(err)
		switch {
		case r.Captures > 1 || r.Refunds > 1 || r.Refunds > r.Captures:
			w.t.Errorf("I7: %s was captured %d times and refunded %d times", r.Intent.Key, r.Captures, r.Refunds)
		case r.Charged() && (p.State != flashsale.PaymentCaptured || p.AppliedTo == ""):
			w.t.Errorf("I7: %s was captured, and is %s here", r.Intent.Key, p.State)
		case !r.Charged() && p.AppliedTo != "":
			w.t.Errorf("I7: %s pays for %s, and its money is not here", r.Intent.Key, p.AppliedTo)
		}
		if p.AppliedTo == "" {
			continue
		}
		if other := paid[p.AppliedTo]; other != "" {
			w.t.Errorf("I7: %s and %s both pay for %s", other, p.IntentKey, p.AppliedTo)
		}
		paid[p.AppliedTo] = p.IntentKey
		row, err := w.orders.Reservation(context.Background(), p.AppliedTo)
		w.must(err)
		if row.State != flashsale.Confirmed || row.Amount != r.Amount || row.Currency != r.Currency {
			w.t.Errorf("I7: %s pays %d %s for %s, which is %s for %d %s", p.IntentKey, r.Amount, r.Currency, row.RID, row.State, row.Amount, row.Currency)
		}
	}
	for i := range w.events {
		if e := &w.events[i]; e.State == flashsale.Confirmed && paid[e.RID] == "" {
			w.t.Errorf("I7: %s is confirmed and nobody paid", e.RID)
		}
	}
	if w.t.Failed() {
		w.fail1("payments differ")
	}
}

// flushed checks I12: a stock that has lost everything is loaded with the same.
func (w *world) flushed() {
	w.t.Helper()
	ctx := context.Background()
	before, err := w.stock.View(ctx, w.key)
	w.must(err)
	users := w.limits()
	w.stock.lose(len(w.stock.writes))
	w.lossy = true
	w.must2(w.engines[1].WatchOnce(ctx))
	after, err := w.stock.View(ctx, w.key)
	w.must(err)
	if after.Available != before.Available || after.Held != before.Held || after.Sold != before.Sold || after.Total != before.Total {
		w.fail1("I12: before %+v, after %+v", before, after)
	}
	for user, left := range w.limits() {
		if left != users[user] {
			w.fail1("I12: the user %s could have %d more units, and now %d", user, users[user], left)
		}
	}
}

// limits tells how many units more each shopper could have, by asking a copy of the stock.
func (w *world) limits() map[string]int64 {
	w.t.Helper()
	left := map[string]int64{}
	s, err := w.orders.SKU(context.Background(), w.key)
	w.must(err)
	for _, shopper := range w.shoppers {
		for n := w.sale.SKUs[0].PurchaseLimit; n > 0; n-- {
			probe := newLossyStock(w.stock.clock)
			probe.writes = append(probe.writes, w.stock.writes...)
			probe.lose(0)
			settings := s.Settings
			settings.Version, settings.Status = settings.Version+1, flashsale.Open
			w.must(probe.Configure(context.Background(), w.key, s.Epoch, &settings))
			w.must2(probe.Adjust(context.Background(), w.key, s.Epoch, "probe", n))
			a, err := probe.Reserve(context.Background(), w.key, s.Epoch, &flashsale.Ask{RID: "probe", User: shopper.name, Quantity: n, Body: "b"})
			w.must(err)
			if a.Accepted {
				left[shopper.name] = n
				break
			}
		}
	}
	return left
}

// sellOut checks I15: with demand that lasts, and shoppers who pay, every unit is sold.
func (w *world) sellOut() {
	w.t.Helper()
	ctx := context.Background()
	behaviour := w.drawBehaviour()
	behaviour.Capture, behaviour.Fail, behaviour.WrongCapture, behaviour.FailBefore, behaviour.FailAfter = 1, 0, 0, 0, 0
	behaviour.VoidTooLate, behaviour.Undone = 0, 0
	w.provider.SetBehaviour(behaviour)
	w.now = w.sale.OpensAt.Add(max(w.now.Sub(w.sale.OpensAt), 0))
	if s, err := w.orders.SKU(ctx, w.key); err != nil || s.Settings.Status == flashsale.Paused {
		w.must(err)
		w.must2(w.engines[0].ResumeSale(ctx, engine.Command{ID: "resume", Sale: "s", Reason: "to sell out", By: "op"}))
	}
	for i := 0; ; i++ {
		s, err := w.orders.SKU(ctx, w.key)
		w.must(err)
		if s.Sold == s.Total {
			return
		}
		if i > 200 {
			w.fail1("I15: %d of %d units are sold", s.Sold, s.Total)
		}
		late := &shopper{name: "late-" + string(rune('A'+i%26)) + string(rune('a'+i/26))}
		w.shoppers = append(w.shoppers, late)
		err = w.buys(w.engines[i%len(w.engines)], late)(ctx)
		if err != nil && flashsale.CodeOf(err) != flashsale.CodeSoldOut {
			w.note("late shopper: %v", err)
		}
		w.round()
		if n := len(late.tokens); n > 0 {
			if _, err := w.engines[0].Pay(ctx, late.tokens[n-1].rid, late.name); err != nil {
				w.note("late payer: %v", err)
			}
		}
		w.now = w.now.Add(10 * time.Second)
		w.round()
	}
}

// summary tells what came of a run, so that one who reads it sees that something did.
func (w *world) summary() string {
	ends := map[flashsale.State]int{}
	refunds := 0
	for i := range w.events {
		if e := &w.events[i]; e.State.Terminal() {
			ends[e.State]++
		}
	}
	for r := range w.provider.Records() {
		refunds += int(r.Refunds)
	}
	s, err := w.orders.SKU(context.Background(), w.key)
	w.must(err)
	return fmt.Sprintf("%d steps, total %d, epoch %d, ends %v, refunds %d, operations %d, paying %d ok", w.steps, s.Total, s.Epoch, ends, refunds, w.begun, w.ends["pays ok"])
}

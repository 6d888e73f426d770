package model

import (
	"context"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/flashsale/simpay"
)

// healWithin bounds how long it takes, once all faults are over, until nothing is under way, nothing held, and all money where it
// belongs. Reservations last for a quarter of an hour at most, payments for some minutes more, webhooks are late by ten.
const healWithin = 90 * time.Minute

// heal ends all faults and lets engines, provider and time do their work until nothing is under way, and all that can expire has.
func (w *world) heal() {
	w.before = nil
	w.finish()
	w.skews.stock.Store(0)
	w.skews.sql.Store(0)
	w.provider.SetOutage(simpay.Up)
	w.down = 0
	began := w.now()
	// The first wait is for clocks that were ahead: what was written by them is of the future.
	for wait := 3 * maxSkew; w.now().Sub(began) < healWithin; wait = min(2*wait, 5*time.Minute) {
		w.pass(wait)
		w.round()
		w.always()
		if !w.quiet() {
			continue
		}
		// A provider that captures what it has called void tells of it in its list alone, if the webhook is lost.
		if _, err := w.engines[0].MatchOnce(context.Background(), w.sale.OpensAt); err == nil && w.quiet() {
			return
		}
	}
	_, what, err := w.engines[0].Quiescent(context.Background(), w.key)
	w.f.Fatalf("it does not become quiescent: %s, %v; the stock holds %d; open payments %+v", what, err, w.view().Held, w.openPayments())
}

// round lets every job run once, the slower ones now and then.
func (w *world) round() {
	ctx := context.Background()
	w.wrote = true
	w.beats.Add(1)
	w.provider.Step(ctx)
	for len(w.hooks) > 0 {
		h := w.hooks[0]
		w.hooks = w.hooks[1:]
		_ = w.engines[0].Webhook(ctx, h.header, h.body) // one that tells what is not true is refused
	}
	w.rounds++
	e := w.engines[w.rounds%len(w.engines)]
	jobs := []func(ctx context.Context) (int, error){e.WatchOnce, e.DeliverOnce, e.SweepOnce, e.PollOnce, e.RelayOnce, func(ctx context.Context) (int, error) {
		return e.ConsumeOnce(ctx, w.key, "healer")
	}}
	if w.rounds%4 == 0 {
		jobs = append(jobs, e.ReconcileOnce)
	}
	for i, job := range jobs {
		if _, err := job(ctx); err != nil {
			w.note("while healing, job %d: %v", i, err)
		}
	}
}

// quiet tells whether nothing is under way, nothing is held and no payment is open.
func (w *world) quiet() bool {
	quiet, _, err := w.engines[0].Quiescent(context.Background(), w.key)
	w.must(err)
	if !quiet || w.view().Held != 0 || len(w.hooks) > 0 {
		return false
	}
	untold, err := w.orders.Unsent(context.Background(), flashsale.LaneRelay, 0, 0, 1)
	w.must(err)
	return len(untold) == 0 && len(w.openPayments()) == 0 && w.provider.Stats().Planned == 0
}

func (w *world) openPayments() []flashsale.Payment {
	var open []flashsale.Payment
	for _, s := range []flashsale.PaymentState{flashsale.PaymentLive, flashsale.PaymentCaptured, flashsale.PaymentRefunding} {
		cursor := ""
		for {
			page, next, err := w.orders.OpenPayments(context.Background(), s, 0, cursor, 100)
			w.must(err)
			open = append(open, page...)
			if cursor = next; cursor == "" {
				break
			}
		}
	}
	return open
}

// flushed checks I12: a stock that has lost everything is loaded with the same.
func (w *world) flushed() {
	before := w.view()
	users := w.limits()
	w.stock.lose(len(w.stock.writes))
	w.lostAt, w.lossy = w.sku().Epoch, true
	w.must2(w.engines[1].WatchOnce(context.Background()))
	w.wrote = true
	after := w.view()
	if after.Available != before.Available || after.Held != before.Held || after.Sold != before.Sold || after.Total != before.Total {
		w.f.Fatalf("I12: before %+v, after %+v", before, after)
	}
	for user, left := range w.limits() {
		if left != users[user] {
			w.f.Fatalf("I12: the user %s could have %d more units, and now %d", user, users[user], left)
		}
	}
}

// limits tells how many units more each shopper could have, by asking a copy of the stock.
func (w *world) limits() map[string]int64 {
	left := map[string]int64{}
	ctx := context.Background()
	s := w.sku()
	settings := s.Settings
	settings.Version, settings.Status = settings.Version+1, flashsale.Open
	limit := w.sale.SKUs[0].PurchaseLimit
	for _, shopper := range w.shoppers {
		probe := newLossyStock(w.stock.clock)
		probe.writes = append(probe.writes, w.stock.writes...)
		probe.lose(0)
		w.must(probe.Configure(ctx, w.key, s.Epoch, &settings))
		w.must2(probe.Adjust(ctx, w.key, s.Epoch, "probe", limit))
		for n := limit; n > 0; n-- {
			// A refusal leaves no trace, so that one copy does.
			ask := flashsale.Ask{RID: "probe", User: shopper.name, Quantity: n, Body: "b", Origin: "probe:1"} // a lull does not hold it up
			a, err := probe.Reserve(ctx, w.key, s.Epoch, &ask)
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
	ctx := context.Background()
	w.provider.SetBehaviour(simpay.Behaviour{Capture: 1, Shopper: simpay.Range{Max: 4 * time.Second}})
	switch w.sku().Settings.Status {
	case flashsale.Draining, flashsale.Closed:
		return
	case flashsale.Paused:
		w.operator("resume")
	case flashsale.Draft:
		w.operator("open")
	}
	for i := 0; ; i++ {
		w.wrote = true
		s := w.sku()
		if s.Sold == s.Total {
			return
		}
		if i > 100 {
			w.f.Fatalf("I15: %d of %d units are sold", s.Sold, s.Total)
		}
		late := newShopper("late-" + string(rune('A'+i%26)) + string(rune('a'+i/26)))
		w.shoppers = append(w.shoppers, late)
		err := w.buys(w.engines[i%len(w.engines)], late)(ctx)
		if err != nil && flashsale.CodeOf(err) != flashsale.CodeSoldOut {
			w.note("late shopper: %v", err)
		}
		w.round()
		for _, t := range late.all() {
			if _, err := w.engines[0].Pay(ctx, t.rid, late.name); err != nil {
				w.note("late payer: %v", err)
			}
		}
		w.pass(10 * time.Second)
		w.round()
	}
}

// operator does something to its end, without faults.
func (w *world) operator(kind string) {
	defer func() { w.wrote = true }()
	w.begun++
	c := engine.Command{ID: "last-" + kind, Sale: w.key.Sale, SKU: w.key.SKU, Reason: "to its end", By: "op"}
	ops, err := command(context.Background(), w.engines[0], &c, kind, 1)
	w.must(err)
	w.countOps(kind, ops)
}

// closes drains the sale and closes it, which it can be now that nothing is under way; then it takes nothing any more.
func (w *world) closes() {
	if w.sku().Settings.Status != flashsale.Closed {
		if w.sku().Settings.Status == flashsale.Draft {
			w.operator("open")
		}
		if w.sku().Settings.Status != flashsale.Draining {
			w.operator("drain")
		}
		w.operator("close")
	}
	if s, v := w.sku(), w.view(); s.Settings.Status != flashsale.Closed || v.Settings.Status != flashsale.Closed {
		w.f.Fatalf("the sale is closed, SQL says %s, the stock %s", s.Settings.Status, v.Settings.Status)
	}
	late := newShopper("too-late")
	if err := w.buys(w.engines[0], late)(context.Background()); flashsale.CodeOf(err) != flashsale.CodeNotOpen {
		w.f.Fatalf("a sale that is closed answers %v", err)
	}
}

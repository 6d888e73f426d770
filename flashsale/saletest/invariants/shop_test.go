package invariants

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
)

// token is a new order token of a user.
func (w *world) token(user string) string {
	w.Helper()
	token, _, err := w.engine(0).Token(w.Context(), engine.TokenRequest{Key: phone, User: user})
	w.must(err)
	return token
}

func request(token, user string, quantity int64) engine.ReserveRequest {
	return engine.ReserveRequest{Token: token, Key: phone, User: user, Quantity: quantity}
}

// ask takes units in the Stock, which must be there.
func (w *world) ask(user string, quantity int64) (rid string) {
	w.Helper()
	a, err := w.engine(0).Reserve(w.Context(), request(w.token(user), user, quantity))
	if err != nil || a.State != flashsale.Pending || a.Known {
		w.Fatalf("%s asks for %d: %+v, %v", user, quantity, a, err)
	}
	return a.RID
}

// reserve takes units, down to SQL.
func (w *world) reserve(user string, quantity int64) (rid string) {
	w.Helper()
	rid = w.ask(user, quantity)
	w.consume()
	w.is(rid, flashsale.Reserved)
	return rid
}

// pay begins to pay, and returns the intent's key.
func (w *world) pay(rid, user string) (intent string) {
	w.Helper()
	a, err := w.engine(0).Pay(w.Context(), rid, user)
	if err != nil || a.State != flashsale.Confirming || a.URL == "" {
		w.Fatalf("%s pays: %+v, %v", rid, a, err)
	}
	return a.IntentKey
}

// capture has the shopper's payment go through at the provider. Nobody is told before bankSteps.
func (w *world) capture(intent string) {
	w.Helper()
	w.must(w.bank.Pay(intent, flashsale.PayCaptured))
}

// bankSteps has the provider do what is due, and send its webhooks.
func (w *world) bankSteps() { w.bank.Step(w.Context()) }

// buy is all of it.
func (w *world) buy(user string, quantity int64) (rid string) {
	w.Helper()
	rid = w.reserve(user, quantity)
	w.capture(w.pay(rid, user))
	w.bankSteps()
	w.is(rid, flashsale.Confirmed)
	return rid
}

// cancel gives a reservation back.
func (w *world) cancel(rid, user string) {
	w.Helper()
	r, err := w.engine(0).Cancel(w.Context(), rid, user)
	if err != nil || r.State != flashsale.Cancelled {
		w.Fatalf("%s cancels: %+v, %v", user, r, err)
	}
}

// consume decides what waits, and returns how many that were.
func (w *world) consume() (n int) {
	w.Helper()
	for {
		did, err := w.engine(0).ConsumeOnce(w.Context(), phone, "c")
		if n += did; flashsale.CodeOf(err) == flashsale.CodeRebuilding {
			return n
		}
		if w.must(err); did == 0 {
			return n
		}
	}
}

// sweep makes one pass of the sweeper.
func (w *world) sweep() int { w.Helper(); return w.did(w.engine(0).SweepOnce(w.Context())) }

// poll makes one pass of the poller.
func (w *world) poll() int { w.Helper(); return w.did(w.engine(0).PollOnce(w.Context())) }

// watch makes one pass of the watcher.
func (w *world) watch() int { w.Helper(); return w.did(w.engine(0).WatchOnce(w.Context())) }

// rebuild rebuilds the Stock, as an operator asks for it.
func (w *world) rebuild() {
	w.Helper()
	ops, err := w.engine(0).Rebuild(w.Context(), w.command("rebuild-"+strconv.FormatInt(w.ids.Add(1), 10)))
	if err != nil || len(ops) != 1 || ops[0].State != flashsale.OpDone {
		w.Fatalf("rebuild: %+v, %v", ops, err)
	}
}

// settle has an engine that lives do what there is to do, second by second, until nothing is under way.
func (w *world) settle() {
	w.Helper()
	why := ""
	for range 40 {
		w.clock.advance(1100 * time.Millisecond)
		w.bankSteps()
		ctx, e := w.Context(), w.engine(0)
		for name, once := range map[string]func(context.Context) (int, error){
			"watch": e.WatchOnce, "deliver": e.DeliverOnce, "sweep": e.SweepOnce, "poll": e.PollOnce, "relay": e.RelayOnce,
		} {
			if _, err := once(ctx); err != nil {
				w.Fatalf("settling, %s: %v", name, err)
			}
		}
		w.consume()
		quiet, what, err := e.Quiescent(ctx, phone)
		w.must(err)
		if quiet && !w.paymentsOpen() {
			return
		}
		why = what
	}
	w.Fatalf("it does not become quiescent: %s", why)
}

// paymentsOpen reports whether something was captured, or is to be refunded, and waits for the poller.
func (w *world) paymentsOpen() bool {
	w.Helper()
	for _, state := range []flashsale.PaymentState{flashsale.PaymentCaptured, flashsale.PaymentRefunding} {
		open, _, err := w.sql.OpenPayments(w.Context(), state, 0, "", 1)
		w.must(err)
		if len(open) > 0 {
			return true
		}
	}
	return false
}

// sound settles, and checks all that must hold of both stores and of the provider, with figures of its own and with the engine's audit.
func (w *world) sound() {
	w.Helper()
	w.settle()
	for _, wrong := range w.wrong() {
		w.Error(wrong)
	}
	report, err := w.engine(0).Audit(w.Context(), phone)
	w.must(err)
	if !report.OK() || report.UnderWay != "" || !report.Still {
		w.Errorf("%s(under way: %q, still: %v)", report, report.UnderWay, report.Still)
	}
	v, b := w.view(), w.books()
	if v.Available != b.total-b.reserved-b.sold || v.Held != b.reserved || v.Sold != b.sold || v.Total != b.total {
		w.Errorf("I3: quiescent, the stock has %d, available %d, held %d, sold %d; SQL %d, reserved %d, sold %d", v.Total, v.Available, v.Held, v.Sold, b.total, b.reserved, b.sold)
	}
	if w.Failed() {
		w.FailNow()
	}
}

// wrong is what does not hold of I1, I4, I5, I6 and I7, which hold at any time, whatever the Stock says.
func (w *world) wrong() []string {
	w.Helper()
	b := w.books()
	return append(append(append(append(b.units(), b.sums()...), b.once()...), b.limits(w.limit)...), w.payments()...)
}

// atOnce calls f with 0 to n−1, all at the same time.
func (w *world) atOnce(n int, f func(i int) error) {
	w.Helper()
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			if err := f(i); err != nil {
				w.Errorf("number %d: %v", i, err)
			}
		})
	}
	close(start)
	all.Wait()
}

// expireAll lets the time of all that is held pass, and be taken back.
func (w *world) expireAll() {
	w.Helper()
	w.clock.advance(hold + payTime + grace)
	w.sweep()
}

// breathe is for those who ask again: they wait.
func (w *world) breathe(d time.Duration) {
	select {
	case <-w.Context().Done():
	case <-time.After(d):
	}
}

// forgets lets a day pass, after which the Stock knows nothing more of what has ended, so that the next case does not carry it along.
func (w *world) forgets() {
	w.Helper()
	w.clock.advance(flashsale.Retention + time.Second)
	w.sweep()
	w.sweep()
}

// everything leaves a sale with users in every state, some with several reservations, with units topped up and withdrawn, and with one that
// was had again for a late payment. It returns intents that are live.
func (w *world) everything() (live []string) {
	w.Helper()
	w.buy("paid", 2)
	w.buy("paid and holding", 1)
	w.reserve("paid and holding", 2)
	w.reserve("holding", 1)
	paying := w.reserve("paying", 3)
	live = append(live, w.pay(paying, "paying"))
	w.cancel(w.reserve("cancelled", 3), "cancelled")
	w.reserve("expired", 2)
	late := w.reserve("late", 1)
	intent := w.pay(late, "late")
	lie := w.ask("rejected", 1)
	_, err := w.sql.Tombstone(w.Context(), phone, []flashsale.Entry{{RID: lie, User: "rejected", Quantity: 1}})
	w.must(err)
	w.consume()
	_, err = w.engine(0).TopUp(w.Context(), w.command("more"), 7)
	w.must(err)
	_, err = w.engine(0).Withdraw(w.Context(), w.command("less"), 4)
	w.must(err)
	w.clock.advance(hold + grace)
	w.sweep() // all that is not paid goes
	w.must(w.bank.Capture(intent, price, currency))
	w.bankSteps()
	w.consume()
	w.poll()
	w.is(flashsale.DerivedRID(intent), flashsale.Confirmed)
	w.reserve("holding", 1)
	w.reserve("paid and holding", 1)
	again := w.reserve("paying", 2)
	live = append(live[:0], w.pay(again, "paying"))
	return live
}

package invariants

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/simpay"
)

// event sends a message as the provider would.
func (w *world) event(i int, id, intent string, status flashsale.PayStatus) error {
	body := fmt.Appendf(nil, `{"id":%q,"data":{"intent":%q,"status":%q,"amount":%d,"currency":%q}}`, id, intent, status, price, currency)
	header := http.Header{simpay.SignatureHeader: {simpay.Sign([][]byte{secretOfBank}, w.clock.Now(), body)}}
	return w.engine(i).Webhook(w.Context(), header, body)
}

// tally fails unless tables have so many rows.
func (w *world) tally(want map[string]int64) {
	w.Helper()
	for table, n := range want {
		if got := w.count("SELECT COUNT(*) FROM " + table); got != n {
			w.Errorf("I5: %d rows of %s, want %d", got, table, n)
		}
	}
}

// TestI5_OnceEach: a rid, an order and an event of the provider are there once each, and a reservation is settled once, however many say
// the same thing at the same time to two instances.
func TestI5_OnceEach(t *testing.T) {
	const many = 12
	eachPair(t, func(t *testing.T, pair string) {
		w := newWorld(t, pair, plan{total: 10})
		w.faults.set(&hooks{before: lose(3, "stock.Reserve", "orders.Decide"), after: lose(6, "stock.Reserve", "orders.Decide", "stock.Apply")})
		rid := w.reserveAtOnce(many, "ann")
		w.decideAtOnce(6, rid)
		w.faults.set(nil)
		w.tally(map[string]int64{"reservation": 1, "orders": 1, "stock_ledger WHERE phase = 'reserve'": 1, "outbox": 1})
		w.payAtOnce(many, rid, "ann")
		w.is(rid, flashsale.Confirmed)
		w.tally(map[string]int64{"payment": 1, "payment_event": 2, "orders WHERE state = 'paid'": 1, "stock_ledger WHERE phase = 'settle'": 1, "outbox": 3})
		w.sound()
		if v := w.view(); v.Available != 9 || v.Held != 0 || v.Sold != 1 {
			t.Errorf("the stock has %d, %d held, %d sold; want 9, 0, 1", v.Available, v.Held, v.Sold)
		}
	})
}

// reserveAtOnce spends one token many times at once.
func (w *world) reserveAtOnce(n int, user string) (rid string) {
	w.Helper()
	token, rids := w.token(user), make([]string, n)
	w.atOnce(n, func(i int) error {
		for {
			a, err := w.engine(i).Reserve(w.Context(), request(token, user, 1))
			if rids[i] = a.RID; flashsale.CodeOf(err) != flashsale.CodeUnavailable {
				return err
			}
		}
	})
	for _, other := range rids {
		if other != rids[0] {
			w.Fatalf("I5: one token has made %s and %s", rids[0], other)
		}
	}
	if v := w.view(); v.Available != v.Total-1 || v.Queue.Depth != 1 {
		w.Fatalf("I5: the stock has %d of %d available and %d jobs; want one less, and 1", v.Available, v.Total, v.Queue.Depth)
	}
	return rids[0]
}

// payAtOnce begins a payment many times at once, and then has the poller and two webhooks, many times each, tell at once that it went through.
func (w *world) payAtOnce(n int, rid, user string) {
	w.Helper()
	intents := make([]string, n)
	w.atOnce(n, func(i int) error {
		a, err := w.engine(i).Pay(w.Context(), rid, user)
		intents[i] = a.IntentKey
		return err
	})
	intent := intents[0]
	w.deaf.Store(true)
	w.capture(intent)
	w.clock.advance(time.Minute)
	w.atOnce(n, func(i int) error {
		switch i % 4 {
		case 0:
			_, err := w.engine(i / 4).PollOnce(w.Context())
			return err
		case 1:
			return w.event(i/4, "another", intent, flashsale.PayCaptured)
		}
		return w.event(i, "one", intent, flashsale.PayCaptured)
	})
	w.deaf.Store(false)
}

// decideAtOnce has several consumers decide a job that each of them was handed out.
func (w *world) decideAtOnce(n int, rid string) {
	w.Helper()
	w.atOnce(n, func(i int) error {
		for range 5 {
			w.clock.advance(100 * time.Millisecond) // the job is taken over from whoever has it
			_, err := w.engine(i).ConsumeOnce(w.Context(), phone, fmt.Sprint("c", i))
			if err != nil && flashsale.CodeOf(err) != flashsale.CodeUnavailable {
				return err
			}
		}
		return nil
	})
	w.is(rid, flashsale.Reserved)
}

// TestI5_GivenBackOnce: of many that give a reservation back in different ways at the same time, one does.
func TestI5_GivenBackOnce(t *testing.T) {
	eachPair(t, func(t *testing.T, pair string) {
		w := newWorld(t, pair, plan{total: 10, limit: 10})
		for round := range int64(4) {
			rid := w.reserve("ann", 2)
			w.clock.advance(hold + grace)
			w.atOnce(12, func(i int) error {
				var err error
				switch i % 3 {
				case 0:
					_, err = w.engine(i).SweepOnce(t.Context())
				case 1:
					_, err = w.engine(i).Cancel(t.Context(), rid, "ann")
				default:
					_, err = w.engine(i).CancelFor(t.Context(), rid, "op", "a test")
				}
				if flashsale.CodeOf(err) == flashsale.CodeInvalidState { // it has expired
					return nil
				}
				return err
			})
			w.tally(map[string]int64{"stock_ledger WHERE phase = 'settle' AND kind = 'released'": round + 1, "outbox": 2 * (round + 1)})
			if s, v := w.counters(), w.view(); s.reserved != 0 || v.Available != 10 {
				t.Fatalf("round %d: SQL has %d reserved, the stock %d available; want 0 and 10", round, s.reserved, v.Available)
			}
		}
		w.sound()
	})
}

package invariants

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/simpay"
)

const tick = time.Microsecond // of all clocks

// TestI9_PendingEnds: whatever became of its job, a pending reservation has ended with the first sweep at its deadline, and not with one
// before.
func TestI9_PendingEnds(t *testing.T) {
	eachPair(t, func(t *testing.T, pair string) {
		w := newWorld(t, pair, plan{total: 400})
		ctx, epoch := t.Context(), w.sku().Epoch
		began := w.clock.Now()
		want := map[string]flashsale.State{}
		pulled := func(consumer string) flashsale.Job {
			t.Helper()
			jobs, err := w.stock().Pull(ctx, phone, epoch, consumer, 1, time.Hour)
			if err != nil || len(jobs) != 1 {
				t.Fatalf("pulled %+v, %v", jobs, err)
			}
			return jobs[0]
		}
		// Its consumer has died.
		gone := w.ask("gone", 1)
		pulled("dead")
		want[gone] = flashsale.Rejected
		// SQL has decided, and the consumer has died before anybody knew.
		untold := w.ask("untold", 1)
		job := pulled("dead, too")
		_, err := w.sql.Decide(ctx, &flashsale.Batch{Key: phone, Epoch: epoch, Jobs: []flashsale.Job{job}})
		w.must(err)
		want[untold] = flashsale.Reserved
		// It lies among the dead letters.
		buried := w.ask("buried", 1)
		job = pulled("c")
		w.must(w.stock().Bury(ctx, phone, epoch, &job, "a test"))
		want[buried] = flashsale.Rejected
		// Nobody consumes; there are more than a page of the sweeper.
		for i := range 300 {
			want[w.ask(fmt.Sprint("waiting-", i), 1)] = flashsale.Rejected
		}
		w.clock.set(began.Add(flashsale.PendingFor - tick))
		w.sweep()
		if v := w.view(); v.Queue.Pending != 303 {
			t.Fatalf("I9: before the deadline %d are pending; want 303", v.Queue.Pending)
		}
		w.clock.set(began.Add(flashsale.PendingFor))
		w.sweep()
		if v := w.view(); v.Queue.Pending != 0 || v.Available != 399 || v.Held != 1 {
			t.Errorf("I9: one sweep after the deadline %d are pending, %d available, %d held; want 0, 399, 1", v.Queue.Pending, v.Available, v.Held)
		}
		for rid, state := range want {
			if r := w.row(rid); r.State != state || state == flashsale.Rejected && r.Reason != flashsale.ReasonDeadline {
				t.Fatalf("I9: %s of %s is %s (%s); want %s", rid, r.User, r.State, r.Reason, state)
			}
		}
		w.clock.advance(time.Second) // what was pulled is handed out again
		if n := w.consume(); n != 302 {
			t.Errorf("%d late jobs met their tombstones; want 302", n)
		}
		w.sound()
	})
}

// TestI9_WhileOthersDecide: at the deadline two sweepers and two consumers meet; each reservation has ended in one way.
func TestI9_WhileOthersDecide(t *testing.T) {
	eachPair(t, func(t *testing.T, pair string) {
		w := newWorld(t, pair, plan{total: 100})
		for i := range 80 {
			w.ask(fmt.Sprint("user-", i), 1)
		}
		w.clock.advance(flashsale.PendingFor)
		w.faults.set(&hooks{after: lose(4, "orders.Decide", "orders.Tombstone", "stock.Apply")})
		w.atOnce(4, func(i int) error {
			var err error
			if i%2 == 0 {
				_, err = w.engine(i/2).ConsumeOnce(t.Context(), phone, fmt.Sprint("c", i))
			} else {
				_, err = w.engine(i / 2).SweepOnce(t.Context())
			}
			if flashsale.CodeOf(err) == flashsale.CodeUnavailable {
				err = nil
			}
			return err
		})
		w.faults.set(nil)
		w.sweep()
		if v := w.view(); v.Queue.Pending != 0 {
			t.Errorf("I9: one sweep after the faults %d are pending", v.Queue.Pending)
		}
		w.sound()
		if n := w.count("SELECT COUNT(*) FROM reservation WHERE state IN (2, 7)"); n != 80 {
			t.Errorf("I9: %d of 80 are decided", n)
		}
	})
}

// edge is a moment before which a reservation must not have expired, and by which one sweep must have it expire.
type edge struct {
	*world
	rid string
}

// holdsUntil fails unless sweeps one tick before a moment leave the reservation in a state, and one at the moment has it expire.
func (e *edge) holdsUntil(moment time.Time, state flashsale.State) {
	e.Helper()
	e.clock.set(moment.Add(-tick))
	e.atOnce(2, func(i int) error { _, err := e.engine(i).SweepOnce(e.Context()); return err })
	e.poll()
	if r := e.row(e.rid); r.State != state {
		e.Fatalf("I10: a microsecond before its end it is %s, not %s", r.State, state)
	}
	e.clock.set(moment)
	e.sweep()
	e.is(e.rid, flashsale.Expired)
}

// TestI10_NeverTooEarlyNorTooLate: a reservation expires neither before its time to pay is over nor later than the grace and one sweep.
func TestI10_NeverTooEarlyNorTooLate(t *testing.T) {
	fails := func(w *world, intent string, status flashsale.PayStatus) {
		w.must(w.bank.Pay(intent, status))
		w.bankSteps()
	}
	cases := map[string]func(e *edge, began time.Time){
		"not paid": func(e *edge, began time.Time) {
			e.holdsUntil(began.Add(hold+grace), flashsale.Reserved)
		},
		"paying from the beginning": func(e *edge, began time.Time) {
			e.pay(e.rid, "ann")
			e.holdsUntil(began.Add(hold), flashsale.Confirming) // the intent is void then: nobody is to pay any more
		},
		"paying from the last microsecond": func(e *edge, began time.Time) {
			e.clock.set(began.Add(hold - tick))
			e.pay(e.rid, "ann")
			e.holdsUntil(began.Add(hold-tick+payTime), flashsale.Confirming)
		},
		"too late to pay": func(e *edge, began time.Time) {
			e.clock.set(began.Add(hold))
			_, err := e.engine(0).Pay(e.Context(), e.rid, "ann")
			e.wantCode("paying", err, flashsale.CodePastDeadline)
			e.holdsUntil(began.Add(hold+grace), flashsale.Reserved)
		},
		"failed in time": func(e *edge, began time.Time) {
			e.clock.set(began.Add(hold - tick))
			intent := e.pay(e.rid, "ann")
			e.clock.set(began.Add(hold - 2*tick + payTime))
			fails(e.world, intent, flashsale.PayFailed)
			e.is(e.rid, flashsale.Reserved)
			e.holdsUntil(began.Add(hold-tick+payTime+grace), flashsale.Reserved)
		},
		"time to pay is granted once": func(e *edge, began time.Time) {
			e.clock.set(began.Add(hold - tick))
			intent := e.pay(e.rid, "ann")
			e.clock.set(began.Add(hold + time.Minute))
			fails(e.world, intent, flashsale.PayFailed)
			e.pay(e.rid, "ann")
			e.holdsUntil(began.Add(hold-tick+payTime), flashsale.Confirming)
		},
		"the provider is down": func(e *edge, began time.Time) {
			e.pay(e.rid, "ann")
			e.bank.SetOutage(simpay.DownBefore)
			e.clock.set(began.Add(hold + time.Hour))
			if _, err := e.engine(0).SweepOnce(e.Context()); flashsale.CodeOf(err) != flashsale.CodeUnavailable {
				e.Errorf("a sweep without the provider: %v", err)
			}
			e.is(e.rid, flashsale.Confirming)
			if !e.told.alarmed("provider") {
				e.Error("nobody is told that it is held")
			}
			e.bank.SetOutage(simpay.Up)
			e.sweep()
			e.is(e.rid, flashsale.Expired)
		},
		"the void takes its time": func(e *edge, began time.Time) {
			e.bank.SetBehaviour(simpay.Behaviour{VoidLater: 1, VoidTime: simpay.Range{Min: time.Minute, Max: time.Minute}})
			e.pay(e.rid, "ann")
			e.clock.set(began.Add(hold))
			e.sweep()
			e.is(e.rid, flashsale.Confirming)
			e.deaf.Store(true)
			e.clock.set(began.Add(hold + time.Minute))
			e.bankSteps()
			e.sweep()
			e.is(e.rid, flashsale.Expired)
			e.deaf.Store(false)
			e.bank.SetBehaviour(simpay.Behaviour{})
		},
	}
	eachPair(t, func(t *testing.T, pair string) {
		w := newWorld(t, pair, plan{total: 2, limit: 2})
		for name, c := range cases {
			if !t.Run(name, func(t *testing.T) {
				was := w.T
				w.T = t
				defer func() { w.T = was }()
				began := w.clock.Now()
				e := &edge{world: w, rid: w.reserve("ann", 1)}
				c(e, began)
				if v, s := w.view(), w.counters(); v.Available != 2 || s.reserved != 0 {
					t.Errorf("it has expired, and the stock has %d, SQL %d reserved", v.Available, s.reserved)
				}
			}) {
				return
			}
		}
		w.sound()
	})
}

// TestI10_AtTheEdge: many begin to pay in the last microsecond, while two sweepers are at work: nobody loses what they pay for.
func TestI10_AtTheEdge(t *testing.T) {
	const shoppers = 20
	eachPair(t, func(t *testing.T, pair string) {
		w := newWorld(t, pair, plan{total: shoppers})
		began := w.clock.Now()
		rids := make([]string, shoppers)
		for i := range rids {
			rids[i] = w.ask(fmt.Sprint("user-", i), 1)
		}
		w.consume()
		w.clock.set(began.Add(hold - tick))
		w.atOnce(shoppers+2, func(i int) error {
			if i >= shoppers {
				_, err := w.engine(i).SweepOnce(t.Context())
				return err
			}
			_, err := w.engine(i).Pay(t.Context(), rids[i], fmt.Sprint("user-", i))
			return err
		})
		w.clock.set(began.Add(hold - 2*tick + payTime))
		w.atOnce(2, func(i int) error { _, err := w.engine(i).SweepOnce(t.Context()); return err })
		for _, rid := range rids {
			w.is(rid, flashsale.Confirming)
			w.capture(flashsale.IntentKey(rid, 1))
		}
		w.bankSteps()
		w.sound()
		if b := w.books(); b.sold != shoppers {
			t.Errorf("I10: %d of %d are sold", b.sold, shoppers)
		}
	})
}

package invariants

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// subject is a reservation on which every operation is tried.
type subject struct {
	*world
	user, token, rid string
	// intent is that of its last payment, or of none.
	intent string
}

// subjectIn makes a reservation in a state. Tried has the reservation with a payment that has failed.
func (w *world) subjectIn(state flashsale.State, tried bool) *subject {
	w.Helper()
	s := &subject{world: w, user: fmt.Sprint("user-", w.ids.Add(1))}
	s.token = w.token(s.user)
	a, err := w.engine(0).Reserve(w.Context(), request(s.token, s.user, 1))
	w.must(err)
	s.rid, s.intent = a.RID, flashsale.IntentKey(a.RID, 1)
	switch state {
	case flashsale.Pending:
		return s
	case flashsale.Rejected:
		_, err := w.sql.Tombstone(w.Context(), phone, []flashsale.Entry{{RID: s.rid, User: s.user, Quantity: 1}})
		w.must(err)
		w.consume()
		return s
	}
	w.consume()
	if tried {
		w.pay(s.rid, s.user)
		w.must(w.bank.Pay(s.intent, flashsale.PayFailed))
		w.bankSteps()
	}
	switch state {
	case flashsale.Confirming:
		s.intent = w.pay(s.rid, s.user)
	case flashsale.Confirmed:
		s.intent = w.pay(s.rid, s.user)
		w.capture(s.intent)
		w.bankSteps()
	case flashsale.Cancelled:
		w.cancel(s.rid, s.user)
	case flashsale.Expired:
		w.clock.advance(hold + payTime + grace)
		w.sweep()
	}
	w.is(s.rid, state)
	return s
}

func (s *subject) job() flashsale.Job {
	return flashsale.Job{ID: "1-1", RID: s.rid, User: s.user, Quantity: 1}
}

func (s *subject) outcome(status flashsale.PayStatus) func() error {
	return func() error {
		_, err := s.sql.Outcome(s.Context(), "", &flashsale.ProviderPayment{IntentKey: s.intent, Status: status, Amount: price, Currency: currency})
		return err
	}
}

// operations are all that can be done to a reservation, by name.
func (s *subject) operations() map[string]func() error {
	ctx := s.Context()
	of := map[string]func() error{
		"T0": func() error { _, err := s.engine(0).Reserve(ctx, request(s.token, s.user, 1)); return err },
		"T1": func() error {
			_, err := s.sql.Decide(ctx, &flashsale.Batch{Key: phone, Epoch: s.sku().Epoch, Jobs: []flashsale.Job{s.job()}})
			return err
		},
		"T2": func() error {
			_, err := s.sql.Tombstone(ctx, phone, []flashsale.Entry{{RID: s.rid, User: s.user, Quantity: 1}})
			return err
		},
		"T3":                func() error { _, _, err := s.sql.BeginPayment(ctx, s.rid, s.user); return err },
		"T5":                func() error { _, err := s.sql.Cancel(ctx, s.rid, s.user, ""); return err },
		"T5 by an operator": func() error { _, err := s.sql.Cancel(ctx, s.rid, "", "a test"); return err },
		"T6":                func() error { _, err := s.sql.Expire(ctx, s.rid); return err },
		"captured":          s.outcome(flashsale.PayCaptured),
		"failed":            s.outcome(flashsale.PayFailed),
		"void":              s.outcome(flashsale.PayVoid),
		"refunded":          s.outcome(flashsale.PayRefunded),
		"open":              s.outcome(flashsale.PayOpen),
		"apply the capture": func() error { _, err := s.sql.ApplyCapture(ctx, s.intent); return err },
		"refuse it":         func() error { _, err := s.sql.RefuseCapture(ctx, s.intent, ""); return err },
		"the refund":        func() error { return s.sql.Refunded(ctx, s.intent) },
		"cancel":            func() error { _, err := s.engine(0).Cancel(ctx, s.rid, s.user); return err },
		"cancel by others":  func() error { _, err := s.engine(0).Cancel(ctx, s.rid, "mallory"); return err },
		"pay":               func() error { _, err := s.engine(0).Pay(ctx, s.rid, s.user); return err },
		"sweep":             func() error { _, err := s.engine(0).SweepOnce(ctx); return err },
		"poll":              func() error { _, err := s.engine(0).PollOnce(ctx); return err },
	}
	return of
}

// effects tell the Stock of every state, older and newer than what it has.
func (s *subject) effects(version int64) map[string]func() error {
	of := map[string]func() error{}
	for state := flashsale.Reserved; state <= flashsale.Rejected; state++ {
		for _, v := range []int64{1, version, version + 1, version + 100} {
			e := flashsale.Effect{RID: s.rid, User: s.user, Quantity: 1, State: state, Version: v}
			of[fmt.Sprintf("the stock hears of %s, version %d", state, v)] = func() error {
				applied, err := s.stock().Apply(s.Context(), phone, s.sku().Epoch, []flashsale.Effect{e}, nil)
				if err == nil && applied[0] != flashsale.AppliedOld {
					s.Errorf("I8: the stock has followed: %d", applied[0])
				}
				return err
			}
		}
	}
	return of
}

// passes tells errors that an operation may have from faults.
func (s *subject) passes(what string, err error) {
	s.Helper()
	switch flashsale.CodeOf(err) {
	case "":
		if err == nil {
			return
		}
	case flashsale.CodeInvalidState, flashsale.CodeNotFound, flashsale.CodePastDeadline, flashsale.CodeUnknownPayment, flashsale.CodeTokenExpired, flashsale.CodeRebuilding:
		return
	}
	s.Errorf("%s: %v", what, err)
}

// TestI8_NoWayOut: whatever is done to a reservation that has ended, one after the other and all at once, it stays as it is, in SQL and in
// the Stock, and moves no unit.
func TestI8_NoWayOut(t *testing.T) {
	eachPair(t, func(t *testing.T, pair string) {
		w := newWorld(t, pair, plan{total: 1000, lasts: 30 * 24 * time.Hour})
		for _, state := range []flashsale.State{flashsale.Confirmed, flashsale.Cancelled, flashsale.Expired, flashsale.Rejected} {
			for _, tried := range []bool{false, true} {
				if tried && state == flashsale.Rejected {
					continue
				}
				s := w.subjectIn(state, tried)
				w.settle()
				row, entry := *s.row(s.rid), s.entry(s.rid)
				reserved := w.counters().reserved
				same := func(what string) {
					t.Helper()
					if got := *s.row(s.rid); got != row {
						t.Fatalf("I8: %s, then %s: SQL has %+v, and had %+v", state, what, got, row)
					}
					if got := s.entry(s.rid); got != entry {
						t.Fatalf("I8: %s, then %s: the stock has %+v, and had %+v", state, what, got, entry)
					}
				}
				all := s.operations()
				for what, do := range s.effects(row.Version) {
					all[what] = do
				}
				var list []func() error
				for what, do := range all {
					s.passes(what, do())
					same(what)
					list = append(list, do)
				}
				w.atOnce(len(list), func(i int) error { s.passes("at once", list[i]()); return nil })
				same("all of it at once")
				w.settle() // T8 may have had a unit for what was captured
				same("all jobs")
				if got := w.counters(); got.reserved != reserved || state == flashsale.Confirmed && got.sold == 0 {
					t.Fatalf("I8: %s: SQL has %d reserved, and had %d", state, got.reserved, reserved)
				}
			}
		}
		w.rebuild()
		report, err := w.engine(0).Audit(t.Context(), phone)
		if err != nil || !report.OK() {
			t.Errorf("%s, %v", report, err)
		}
	})
}

// ways are all ways out of the states that have some: of each operation, where it leads, in time and past it. What is not there stays.
var ways = map[flashsale.State]struct{ inTime, past map[string]flashsale.State }{
	flashsale.Pending: {
		inTime: map[string]flashsale.State{"T1": flashsale.Reserved, "T2": flashsale.Rejected},
	},
	flashsale.Reserved: {
		inTime: map[string]flashsale.State{
			"T3": flashsale.Confirming, "pay": flashsale.Confirming, "T5": flashsale.Cancelled, "T5 by an operator": flashsale.Cancelled,
			"cancel": flashsale.Cancelled, "captured": flashsale.Confirmed,
		},
		past: map[string]flashsale.State{
			"T5": flashsale.Cancelled, "T5 by an operator": flashsale.Cancelled, "cancel": flashsale.Cancelled, "captured": flashsale.Confirmed,
			"T6": flashsale.Expired, "sweep": flashsale.Expired,
		},
	},
	flashsale.Confirming: {
		inTime: map[string]flashsale.State{
			"captured": flashsale.Confirmed, "failed": flashsale.Reserved, "void": flashsale.Reserved, "refunded": flashsale.Reserved, "cancel": flashsale.Cancelled,
		},
		past: map[string]flashsale.State{
			"captured": flashsale.Confirmed, "failed": flashsale.Expired, "void": flashsale.Expired, "refunded": flashsale.Expired, "cancel": flashsale.Expired,
			"sweep": flashsale.Expired, "poll": flashsale.Expired,
		},
	},
}

// TestI8_TheWaysThereAre: every operation on every state that is not the last leads where the table says, and nowhere else.
func TestI8_TheWaysThereAre(t *testing.T) {
	eachPair(t, func(t *testing.T, pair string) {
		w := newWorld(t, pair, plan{total: 1000, lasts: 300 * 24 * time.Hour})
		for from, of := range ways {
			for _, past := range []bool{false, true} {
				if past && of.past == nil {
					continue
				}
				for _, what := range operationNames() {
					s := w.subjectIn(from, from == flashsale.Reserved)
					leads := of.inTime
					if past {
						leads = of.past
						w.clock.advance(hold + payTime + grace)
					}
					s.passes(what, s.operations()[what]())
					want, moves := leads[what]
					if !moves {
						want = from
					}
					if got := s.stands(); got != want {
						t.Errorf("I8: %s, then %s (past its time: %v): %s, want %s", from, what, past, got, want)
					}
				}
			}
		}
		w.expireAll()
		w.settle()
		if b := w.books(); b.reserved != 0 || len(b.units())+len(b.sums())+len(b.once()) > 0 {
			t.Errorf("%d are reserved: %v %v %v", b.reserved, b.units(), b.sums(), b.once())
		}
	})
}

func operationNames() (names []string) {
	for name := range (&subject{world: &world{T: &testing.T{}}}).operations() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// stands is where the reservation stands: in SQL, or in the Stock if SQL has no row of it.
func (s *subject) stands() flashsale.State {
	s.Helper()
	rows, err := s.sql.Reservations(s.Context(), []string{s.rid})
	s.must(err)
	if len(rows) == 0 {
		return s.entry(s.rid).State
	}
	return rows[0].State
}

package sqlorders

import (
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

func TestBeginPayment(t *testing.T) {
	eachShop(t, func(s *shop) {
		until := s.reserve("r").Until
		s.pass(time.Minute)
		p, d, err := s.o.BeginPayment(s.Context(), "r", "user of r")
		noError(t, "BeginPayment", err)
		want := flashsale.Payment{IntentKey: "r:1", RID: "r", Attempt: 1, Amount: 199_00, Currency: "CNY", State: flashsale.PaymentLive, CreatedAt: s.at(), ChangedAt: s.at()}
		if *p != want || d.State != flashsale.Confirming || d.Version != 2 || d.Replayed || d.Outbox == 0 {
			t.Errorf("got %+v, %+v", p, d)
		}
		s.pass(time.Minute)
		again, d, err := s.o.BeginPayment(s.Context(), "r", "user of r")
		noError(t, "BeginPayment again", err)
		if *again != want || !d.Replayed || d.Version != 2 || d.Outbox != 0 {
			t.Errorf("again %+v, %+v", again, d)
		}
		if r := s.reservation("r"); !r.Until.Equal(until) || !r.PayGranted {
			t.Errorf("it can be paid until %s, want %s; granted: %v", r.Until, until, r.PayGranted)
		}
		for _, c := range []struct {
			rid, user string
			code      flashsale.Code
		}{
			{"r", "another", flashsale.CodeNotFound}, {"r", "", flashsale.CodeNotFound}, {"no", "user of r", flashsale.CodeNotFound},
			{"", "user of r", flashsale.CodeNotFound}, {"\x00\xff", "user of r", flashsale.CodeNotFound},
		} {
			_, _, err := s.o.BeginPayment(s.Context(), c.rid, c.user)
			wantCode(t, c.rid+" of "+c.user, err, c.code)
		}
	})
}

// TestTimeToPay walks through the one deadline of a reservation: a hold of 15 min, a time to pay of 5 min that is granted once.
func TestTimeToPay(t *testing.T) {
	eachShop(t, func(s *shop) {
		hold := s.reserve("r").Until
		s.pass(15*time.Minute - time.Microsecond) // the last moment
		s.begin("r")
		granted := s.at().Add(5 * time.Minute)
		if r := s.reservation("r"); !r.Until.Equal(granted) || !r.Until.After(hold) {
			t.Fatalf("it can be paid until %s, want %s", r.Until, granted)
		}
		s.outcome("r:1", flashsale.PayFailed) // T3b: before its time is over
		s.is("r", flashsale.Reserved, 3)
		s.pass(5*time.Minute - 2*time.Microsecond)
		if p := s.begin("r"); p.IntentKey != "r:2" {
			t.Fatalf("the second attempt is %+v", p)
		}
		if r := s.reservation("r"); !r.Until.Equal(granted) {
			t.Fatalf("time to pay was granted twice: until %s, was %s", r.Until, granted)
		}
		s.pass(2 * time.Microsecond)
		_, err := s.o.Expire(s.Context(), "r") // T6 is not for what is being paid
		wantCode(t, "Expire", err, flashsale.CodeInvalidState)
		out := s.outcome("r:2", flashsale.PayVoid) // T7: now it is
		if got := brief(out.Decided); got != "r:expired(payment_void)" {
			t.Errorf("decided %s", got)
		}
		_, _, err = s.o.BeginPayment(s.Context(), "r", "user of r")
		wantCode(t, "BeginPayment", err, flashsale.CodeInvalidState)
		s.units(testKey, 0, 0)

		s.reserve("late")
		s.pass(15 * time.Minute)
		_, _, err = s.o.BeginPayment(s.Context(), "late", "user of late")
		wantCode(t, "BeginPayment at its end", err, flashsale.CodePastDeadline)
		s.is("late", flashsale.Reserved, 1)
	})
}

func TestAttemptsAreBounded(t *testing.T) {
	eachShop(t, func(s *shop) {
		s.reserve("r")
		mustExec(t, s.o, "INSERT INTO payment (intent_key, rid, attempt, amount, currency, state, reason, created_at, changed_at) VALUES ('r:100', 'r', 100, 1, 'CNY', 'void', '', 1, 1)")
		_, _, err := s.o.BeginPayment(s.Context(), "r", "user of r")
		wantCode(t, "BeginPayment", err, flashsale.CodeInvalidState)
		s.is("r", flashsale.Reserved, 1)
	})
}

func TestPaid(t *testing.T) {
	eachShop(t, func(s *shop) {
		s.reserve("r")
		s.begin("r")
		out := s.outcome("r:1", flashsale.PayCaptured)
		if got := brief(out.Decided); got != "r:confirmed" || out.Payment.AppliedTo != "r" {
			t.Errorf("decided %s, %+v", got, out.Payment)
		}
		s.units(testKey, 0, 1)
		if got := s.decide(job("again", "user of r", 2)); got[0].Reason != flashsale.ReasonPurchaseLimit {
			t.Errorf("what was bought does not count: %+v", got)
		}
		_, err := s.o.Cancel(s.Context(), "r", "user of r", "")
		wantCode(t, "Cancel", err, flashsale.CodeInvalidState)
		_, err = s.o.Expire(s.Context(), "r")
		wantCode(t, "Expire", err, flashsale.CodeInvalidState)
		_, _, err = s.o.BeginPayment(s.Context(), "r", "user of r")
		wantCode(t, "BeginPayment", err, flashsale.CodeInvalidState)
		wantCode(t, "Refunded", s.o.Refunded(s.Context(), "r:1"), flashsale.CodeInvalidState)
		s.is("r", flashsale.Confirmed, 3)
		s.paymentIs("r:1", flashsale.PaymentCaptured, "r", "")
	})
}

func TestSecondCaptureIsRefunded(t *testing.T) {
	eachShop(t, func(s *shop) {
		s.reserve("r")
		s.begin("r")
		s.outcome("r:1", flashsale.PayFailed)
		s.begin("r")
		s.outcome("r:1", flashsale.PayCaptured) // the provider had a second try of its own
		s.is("r", flashsale.Confirmed, 5)
		s.paymentIs("r:1", flashsale.PaymentCaptured, "r", "")
		s.paymentIs("r:2", flashsale.PaymentLive, "", "")
		s.outcome("r:2", flashsale.PayCaptured)
		s.paymentIs("r:2", flashsale.PaymentRefunding, "", "paid_twice")
		noError(t, "Refunded", s.o.Refunded(s.Context(), "r:2"))
		noError(t, "Refunded again", s.o.Refunded(s.Context(), "r:2"))
		s.paymentIs("r:2", flashsale.PaymentRefunded, "", "paid_twice")
		s.is("r", flashsale.Confirmed, 5)
		if got, err := s.o.PaymentsOf(s.Context(), "r"); err != nil || len(got) != 2 || got[0].IntentKey != "r:1" || got[1].IntentKey != "r:2" {
			t.Errorf("payments: %+v, %v", got, err)
		}
	})
}

func TestRefundedNeedsADebt(t *testing.T) {
	eachShop(t, func(s *shop) {
		s.reserve("r")
		s.begin("r")
		wantCode(t, "of a live one", s.o.Refunded(s.Context(), "r:1"), flashsale.CodeInvalidState)
		wantCode(t, "of none", s.o.Refunded(s.Context(), "r:2"), flashsale.CodeUnknownPayment)
		_, err := s.o.Payment(s.Context(), "r:2")
		wantCode(t, "Payment", err, flashsale.CodeNotFound)
		_, err = s.o.Payment(s.Context(), "\x00\xff")
		wantCode(t, "Payment", err, flashsale.CodeNotFound)
	})
}

// loose brings a payment to where it waits for T8: captured, and its reservation cancelled.
func (s *shop) loose(rid string) string {
	s.Helper()
	s.reserve(rid)
	s.begin(rid)
	key := flashsale.IntentKey(rid, 1)
	s.outcome(key, flashsale.PayFailed)
	_, err := s.o.Cancel(s.Context(), rid, "user of "+rid, "")
	noError(s.T, "Cancel", err)
	s.outcome(key, flashsale.PayCaptured)
	s.paymentIs(key, flashsale.PaymentCaptured, "", "")
	return key
}

func (s *shop) derived(key, user string) flashsale.Job {
	j := job(flashsale.DerivedRID(key), user, 1)
	j.Origin = key
	return j
}

func TestApplyCapture(t *testing.T) {
	eachShop(t, func(s *shop) {
		key := s.loose("r")
		_, err := s.o.ApplyCapture(s.Context(), key)
		wantCode(t, "before there is a unit", err, flashsale.CodeInvalidState)
		s.decide(s.derived(key, "user of r"))
		_, _, err = s.o.BeginPayment(s.Context(), flashsale.DerivedRID(key), "user of r")
		wantCode(t, "to pay again for what is paid", err, flashsale.CodeInvalidState)
		_, err = s.o.RefuseCapture(s.Context(), key, "x")
		wantCode(t, "RefuseCapture of what has a unit", err, flashsale.CodeInvalidState)
		for i, want := range []string{flashsale.DerivedRID(key) + ":confirmed", ""} {
			out, err := s.o.ApplyCapture(s.Context(), key)
			noError(t, "ApplyCapture", err)
			if got := brief(out.Decided); got != want || out.Reservation.RID != "r" || out.Payment.AppliedTo != flashsale.DerivedRID(key) {
				t.Errorf("call %d: %s, want %s; %+v", i+1, got, want, out)
			}
		}
		s.units(testKey, 0, 1)
		s.is("r", flashsale.Cancelled, 4)
		out, err := s.o.RefuseCapture(s.Context(), key, "x")
		if err != nil || out.Payment.State != flashsale.PaymentCaptured || len(out.Decided) > 0 {
			t.Errorf("RefuseCapture of what was applied: %+v, %v", out, err)
		}
	})
}

// TestTwoCapturesAfterTheEnd: of two attempts that are both captured once their reservation has ended, one has its T8.
func TestTwoCapturesAfterTheEnd(t *testing.T) {
	for _, atOnce := range []bool{false, true} {
		eachShop(t, func(s *shop) {
			s.reserve("r")
			for range 2 {
				s.outcome(s.begin("r").IntentKey, flashsale.PayVoid)
			}
			_, err := s.o.Cancel(s.Context(), "r", "user of r", "")
			noError(t, "Cancel", err)
			s.outcome("r:1", flashsale.PayCaptured)
			if atOnce {
				s.outcome("r:2", flashsale.PayCaptured)
				s.decide(s.derived("r:2", "user of r"))
			}
			s.decide(s.derived("r:1", "user of r"))
			_, err = s.o.ApplyCapture(s.Context(), "r:1")
			noError(t, "ApplyCapture", err)
			if atOnce {
				out, err := s.o.ApplyCapture(s.Context(), "r:2")
				noError(t, "ApplyCapture", err)
				if got, want := brief(out.Decided), flashsale.DerivedRID("r:2")+":cancelled(paid_twice)"; got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			} else {
				s.outcome("r:2", flashsale.PayCaptured)
			}
			s.paymentIs("r:1", flashsale.PaymentCaptured, flashsale.DerivedRID("r:1"), "")
			s.paymentIs("r:2", flashsale.PaymentRefunding, "", "paid_twice")
			s.units(testKey, 0, 1)
		})
	}
}

// TestApplyCaptureToWhatHasEnded: the unit was had again and is gone again, or was never had.
func TestApplyCaptureToWhatHasEnded(t *testing.T) {
	eachShop(t, func(s *shop) {
		ends := map[string]func(rid string){
			flashsale.ReasonByOwner: func(rid string) {
				_, err := s.o.Cancel(s.Context(), rid, "", flashsale.ReasonByOwner)
				noError(t, "Cancel", err)
			},
			flashsale.ReasonUnpaid: func(rid string) {
				s.pass(16 * time.Minute)
				_, err := s.o.Expire(s.Context(), rid)
				noError(t, "Expire", err)
			},
		}
		for reason, end := range ends {
			key := s.loose("r." + reason)
			s.decide(s.derived(key, "user of r."+reason))
			end(flashsale.DerivedRID(key))
			for range 2 {
				out, err := s.o.ApplyCapture(s.Context(), key)
				if err != nil || len(out.Decided) > 0 {
					t.Errorf("%s: %+v, %v", reason, out, err)
				}
				s.paymentIs(key, flashsale.PaymentRefunding, "", reason)
			}
		}
		key := s.loose("full")
		mustExec(t, s.o, "UPDATE sale_sku SET total = reserved + sold")
		if d := s.decide(s.derived(key, "user of full")); d[0].Reason != flashsale.ReasonSoldOut {
			t.Fatalf("%+v", d)
		}
		_, err := s.o.ApplyCapture(s.Context(), key)
		noError(t, "ApplyCapture", err)
		s.paymentIs(key, flashsale.PaymentRefunding, "", flashsale.ReasonSoldOut)
	})
}

func TestApplyCaptureToAnothersReservation(t *testing.T) {
	eachShop(t, func(s *shop) {
		key := s.loose("r")
		s.decide(job(flashsale.DerivedRID(key), "user of r", 1)) // with that rid, and not for it
		_, err := s.o.ApplyCapture(s.Context(), key)
		wantCode(t, "ApplyCapture", err, flashsale.CodeConflict)
		s.paymentIs(key, flashsale.PaymentCaptured, "", "")
	})
}

func TestRefuseCapture(t *testing.T) {
	eachShop(t, func(s *shop) {
		key := s.loose("r")
		for i, want := range []string{flashsale.DerivedRID(key) + ":rejected(sold_out)", ""} {
			out, err := s.o.RefuseCapture(s.Context(), key, flashsale.ReasonSoldOut)
			noError(t, "RefuseCapture", err)
			if got := brief(out.Decided); got != want || out.Payment.State != flashsale.PaymentRefunding || out.Payment.Reason != flashsale.ReasonSoldOut {
				t.Errorf("call %d: %s, want %s; %+v", i+1, got, want, out.Payment)
			}
		}
		if got := brief(s.decide(s.derived(key, "user of r"))); got != flashsale.DerivedRID(key)+":rejected(sold_out) again" {
			t.Errorf("a job that is late: %s", got)
		}
		out, err := s.o.ApplyCapture(s.Context(), key)
		if err != nil || out.Payment.State != flashsale.PaymentRefunding {
			t.Errorf("ApplyCapture: %+v, %v", out, err)
		}
		s.reserve("live")
		s.begin("live")
		_, err = s.o.RefuseCapture(s.Context(), "live:1", "x")
		wantCode(t, "of a live one", err, flashsale.CodeInvalidState)
		_, err = s.o.ApplyCapture(s.Context(), "live:1")
		wantCode(t, "ApplyCapture of a live one", err, flashsale.CodeInvalidState)
		_, err = s.o.ApplyCapture(s.Context(), "live:2")
		wantCode(t, "ApplyCapture of none", err, flashsale.CodeUnknownPayment)
	})
}

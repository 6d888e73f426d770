package sqlorders

import (
	"slices"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// TestPages walks through lists that are longer than a page, with equal times across its ends.
func TestPages(t *testing.T) {
	eachShop(t, func(s *shop) {
		var want []string
		for i := range 7 {
			if i%3 == 0 {
				s.pass(time.Second)
			}
			rid := string(rune('a' + i))
			s.reserve(rid)
			want = append(want, s.begin(rid).IntentKey)
		}
		s.pass(time.Second)
		open := func(cursor string) ([]flashsale.Payment, string, error) {
			return s.o.OpenPayments(s.Context(), flashsale.PaymentLive, 0, cursor, 3)
		}
		since := func(cursor string) ([]flashsale.Payment, string, error) {
			return s.o.PaymentsSince(s.Context(), time.Time{}, cursor, 3)
		}
		keyOf := func(p flashsale.Payment) string { return p.IntentKey }
		if got := walk(t, open, keyOf); !slices.Equal(got, want) {
			t.Errorf("open: got %v, want %v", got, want)
		}
		if got := walk(t, since, keyOf); !slices.Equal(got, want) {
			t.Errorf("since: got %v, want %v", got, want)
		}
		aged := func(cursor string) ([]flashsale.Payment, string, error) {
			return s.o.OpenPayments(s.Context(), flashsale.PaymentLive, 2*time.Second, cursor, 3)
		}
		if got := walk(t, aged, keyOf); !slices.Equal(got, want[:6]) {
			t.Errorf("of 2 s and older: got %v, want %v", got, want[:6])
		}
		recent := func(cursor string) ([]flashsale.Payment, string, error) {
			return s.o.PaymentsSince(s.Context(), s.at().Add(-2*time.Second), cursor, 3)
		}
		if got := walk(t, recent, keyOf); !slices.Equal(got, want[3:]) {
			t.Errorf("since 2 s: got %v, want %v", got, want[3:])
		}
		for _, cursor := range []string{"x", "|", "x|y", "1", "1|\x00", "1|\xff"} {
			_, _, err := since(cursor)
			wantCode(t, "cursor "+cursor, err, flashsale.CodeInvalidArgument)
		}
		_, _, err := s.o.PaymentsSince(s.Context(), time.Time{}, "", 0)
		wantCode(t, "a limit of 0", err, flashsale.CodeInvalidArgument)
	})
}

// walk reads all pages.
func walk[T any](t *testing.T, page func(cursor string) ([]T, string, error), id func(T) string) []string {
	t.Helper()
	var ids []string
	cursor := ""
	for range 100 {
		rows, next, err := page(cursor)
		noError(t, "a page", err)
		for _, r := range rows {
			ids = append(ids, id(r))
		}
		if next == "" {
			return ids
		}
		cursor = next
	}
	t.Fatal("the pages do not end")
	return nil
}

func TestOpenPaymentsByState(t *testing.T) {
	eachShop(t, func(s *shop) {
		loose, paid, failed, refunding := s.loose("loose"), "paid:1", "failed:1", s.loose("refunding")
		for _, rid := range []string{"paid", "failed", "live"} {
			s.reserve(rid)
			s.begin(rid)
		}
		s.outcome(paid, flashsale.PayCaptured)
		s.outcome(failed, flashsale.PayFailed)
		_, err := s.o.RefuseCapture(s.Context(), refunding, "x")
		noError(t, "RefuseCapture", err)
		for state, want := range map[flashsale.PaymentState]string{
			flashsale.PaymentLive: "live:1", flashsale.PaymentCaptured: loose, flashsale.PaymentFailed: failed, flashsale.PaymentRefunding: refunding,
		} {
			got, next, err := s.o.OpenPayments(s.Context(), state, 0, "", 10)
			if err != nil || next != "" || len(got) != 1 || got[0].IntentKey != want {
				t.Errorf("%s: %+v, %q, %v; want %s", state, got, next, err, want)
			}
		}
	})
}

func TestPaidSince(t *testing.T) {
	eachShop(t, func(s *shop) {
		want := []string{"a", "b", "c", "d", "e"}
		for i, rid := range want {
			if i%2 == 0 {
				s.pass(time.Second)
			}
			s.reserve(rid)
			s.begin(rid)
			s.outcome(rid+":1", flashsale.PayCaptured)
		}
		s.loose("not")
		ridOf := func(p flashsale.Paid) string { return p.Reservation.RID }
		all := func(cursor string) ([]flashsale.Paid, string, error) {
			return s.o.PaidSince(s.Context(), time.Time{}, cursor, 2)
		}
		if got := walk(t, all, ridOf); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		rows, _, err := s.o.PaidSince(s.Context(), s.at(), "", 10)
		noError(t, "PaidSince", err)
		full := flashsale.Paid{Reservation: *s.reservation("e"), OrderPaid: true, LedgerSold: 1, IntentKey: "e:1", PaymentState: flashsale.PaymentCaptured}
		if len(rows) != 1 || rows[0] != full {
			t.Errorf("since now: %+v, want %+v", rows, full)
		}
	})
}

// TestPaidSinceTellsContradictions has each table alone say that something is paid.
func TestPaidSinceTellsContradictions(t *testing.T) {
	for name := range urls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, name, Config{})
			for _, rid := range []string{"order", "ledger", "payment"} {
				s.reserve(rid)
			}
			s.begin("payment")
			s.pass(time.Second)
			mustExec(t, s.o, "UPDATE orders SET state = 'paid', changed_at = ? WHERE rid = 'order'", s.now.Load())
			mustExec(t, s.o, "INSERT INTO stock_ledger (id, phase, sale, sku, quantity, kind, at) VALUES ('ledger', 'settle', 'sale', 'sku', 3, 'sold', ?)", s.now.Load())
			mustExec(t, s.o, "INSERT INTO stock_ledger (id, phase, sale, sku, quantity, kind, at) VALUES ('nobody', 'settle', 'sale', 'sku', 4, 'sold', ?)", s.now.Load())
			mustExec(t, s.o, "UPDATE payment SET state = 'captured', live = NULL, applied_to = 'payment', changed_at = ? WHERE rid = 'payment'", s.now.Load())
			rows, _, err := s.o.PaidSince(s.Context(), s.at(), "", 10)
			noError(t, "PaidSince", err)
			want := []flashsale.Paid{
				{Reservation: *s.reservation("ledger"), LedgerSold: 3},
				{Reservation: flashsale.Reservation{RID: "nobody"}, LedgerSold: 4},
				{Reservation: *s.reservation("order"), OrderPaid: true},
				{Reservation: *s.reservation("payment"), IntentKey: "payment:1", PaymentState: flashsale.PaymentCaptured},
			}
			if !slices.Equal(rows, want) {
				t.Errorf("got  %+v\nwant %+v", rows, want)
			}
		})
	}
}

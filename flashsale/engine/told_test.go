package engine

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/headgate-io/headgate/flashsale"
)

// TestWhatWasToldIsNotTakenBack: a Stock that does not follow SQL says "pending" of what has been told to be decided, in whatever way it was
// told; nobody hears it.
func TestWhatWasToldIsNotTakenBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		how  string
		tell func(s *shop, rid string) (Result, error)
	}{
		{"by a result while the stock was away", func(s *shop, rid string) (Result, error) {
			s.faults.set(lose(-1, "stock.Find"), nil)
			return s.engine.Result(s.t.Context(), phone, rid, "u")
		}},
		{"by a wait", func(s *shop, rid string) (Result, error) {
			return s.engine.resultOfSQL(s.t.Context(), reservationID{phone, rid}, "u", nil)
		}},
		{"by the orders", func(s *shop, _ string) (Result, error) {
			list, err := s.engine.Orders(s.t.Context(), phone.Sale, "u")
			if len(list) != 1 {
				s.t.Fatalf("%d orders", len(list))
			}
			return list[0], err
		}},
	} {
		t.Run(c.how, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, shopPlan{total: 10})
			request := s.request("u")
			first, err := s.engine.Reserve(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			s.faults.set(lose(-1, "stock.Apply"), nil)
			_, err = s.engine.ConsumeOnce(t.Context(), phone, "c")
			wantCode(t, "the stock cannot follow", err, flashsale.CodeUnavailable)
			if r, err := s.engine.Result(t.Context(), phone, first.RID, "u"); err != nil || r.State != flashsale.Pending {
				t.Fatalf("before anybody was told: %+v, %v", r, err)
			}
			told, err := c.tell(s, first.RID)
			if err != nil || told.State != flashsale.Reserved {
				t.Fatalf("what is told: %+v, %v", told, err)
			}
			s.faults.set(nil, nil)
			if r, err := s.engine.Result(t.Context(), phone, first.RID, "u"); err != nil || r != told {
				t.Errorf("the result afterwards: %+v, %v; want %+v", r, err, told)
			}
			if r, err := s.engine.Reserve(t.Context(), request); err != nil || !r.Known || r.Result != told {
				t.Errorf("the same call afterwards: %+v, %v; want %+v", r, err, told)
			}
			r, err := s.engine.Reserve(t.Context(), s.request("u"))
			if wantCode(t, "one more", err, flashsale.CodePurchaseLimit); len(r.Holds) != 1 || r.Holds[0] != told {
				t.Errorf("what fills the limit: %+v; want %+v", r.Holds, told)
			}
			s.faults.set(lose(-1, "orders.Reservations"), nil)
			_, err = s.engine.Result(t.Context(), phone, first.RID, "u")
			wantCode(t, "the result while SQL is away", err, flashsale.CodeUnavailable)
			_, err = s.engine.Reserve(t.Context(), request)
			wantCode(t, "the same call while SQL is away", err, flashsale.CodeUnavailable)
			_, err = s.engine.Result(t.Context(), phone, first.RID, "v")
			wantCode(t, "another's", err, flashsale.CodeUnavailable)
		})
	}
}

// TestTheStockFollowsBeforeAnybodyIsTold: who is told asks again, maybe another instance, which has the Stock's word alone.
func TestTheStockFollowsBeforeAnybodyIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 1})
		id := reservationID{phone, s.reserve("u")}
		told, leave, _ := s.engine.waiters.join(id)
		defer leave()
		s.faults.set(func(call string) error {
			if call == "stock.Apply" && len(told) > 0 {
				t.Error("a waiter is told before the stock follows")
			}
			return nil
		}, nil)
		s.consume(1)
		if len(told) != 1 {
			t.Error("the waiter is not told")
		}
	})
}

func TestTellingsAreBounded(t *testing.T) {
	t.Parallel()
	var all tellings
	for i := range 3 * toldPlaces {
		rid := fmt.Sprint("rid-", i)
		if all.has(rid) {
			t.Fatalf("%s was told before it was", rid)
		}
		if all.note(rid); !all.has(rid) {
			t.Fatalf("%s was just told", rid)
		}
	}
}

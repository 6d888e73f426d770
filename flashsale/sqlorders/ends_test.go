package sqlorders

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

func TestCancel(t *testing.T) {
	eachShop(t, func(s *shop) {
		s.reserve("r")
		for i, replayed := range []bool{false, true, true} {
			d, err := s.o.Cancel(s.Context(), "r", "user of r", "")
			noError(t, "Cancel", err)
			if got := brief([]flashsale.Decided{d}); strings.HasSuffix(got, "again") != replayed || d.Version != 2 || (d.Outbox == 0) != replayed {
				t.Errorf("call %d: %+v", i+1, d)
			}
		}
		r := s.reservation("r")
		if r.State != flashsale.Cancelled || r.Reason != flashsale.ReasonByOwner || !r.EndedAt.Equal(s.at()) {
			t.Errorf("%+v", r)
		}
		s.units(testKey, 0, 0)
		if d := s.decide(job("r2", "user of r", 2)); d[0].State != flashsale.Reserved {
			t.Errorf("what was given back still counts: %+v", d)
		}
		d, err := s.o.Cancel(s.Context(), "r2", "", "seen as a \xff bot\x00")
		if err != nil || d.Reason != "seen as a \uFFFD bot\uFFFD" {
			t.Errorf("an operator's words: %+v, %v", d, err)
		}
	})
}

func TestCancelRefused(t *testing.T) {
	eachShop(t, func(s *shop) {
		s.reserve("r")
		s.reserve("paying")
		s.begin("paying")
		_, err := s.o.Tombstone(s.Context(), testKey, []flashsale.Entry{{RID: "rejected", User: "u", Quantity: 1}})
		noError(t, "Tombstone", err)
		for _, c := range []struct {
			rid, user, reason string
			code              flashsale.Code
		}{
			{"r", "another", "", flashsale.CodeNotFound}, {"no", "", "", flashsale.CodeNotFound}, {"\x00", "", "", flashsale.CodeNotFound},
			{"paying", "user of paying", "", flashsale.CodeInvalidState}, {"paying", "", "x", flashsale.CodeInvalidState},
			{"rejected", "u", "", flashsale.CodeInvalidState}, {"r", "", strings.Repeat("x", 501), flashsale.CodeInvalidArgument},
		} {
			_, err := s.o.Cancel(s.Context(), c.rid, c.user, c.reason)
			wantCode(t, fmt.Sprintf("%+v", c), err, c.code)
		}
		s.is("r", flashsale.Reserved, 1)
		s.is("paying", flashsale.Confirming, 2)
	})
}

func TestExpire(t *testing.T) {
	eachShop(t, func(s *shop) {
		s.reserve("r")
		s.pass(15*time.Minute + 10*time.Second - time.Microsecond)
		_, err := s.o.Expire(s.Context(), "r")
		wantCode(t, "before the grace is over", err, flashsale.CodeInvalidState)
		s.pass(time.Microsecond)
		for i := range 2 {
			d, err := s.o.Expire(s.Context(), "r")
			if err != nil || d.State != flashsale.Expired || d.Reason != flashsale.ReasonUnpaid || d.Version != 2 || d.Replayed != (i > 0) {
				t.Errorf("call %d: %+v, %v", i+1, d, err)
			}
		}
		_, err = s.o.Cancel(s.Context(), "r", "user of r", "")
		wantCode(t, "Cancel", err, flashsale.CodeInvalidState)
		_, err = s.o.Expire(s.Context(), "no")
		wantCode(t, "of none", err, flashsale.CodeNotFound)
		s.units(testKey, 0, 0)
	})
}

func TestExpiring(t *testing.T) {
	eachShop(t, func(s *shop) {
		for i := range 4 {
			for _, kind := range []string{"unpaid", "paying"} {
				rid := fmt.Sprintf("%s%d", kind, i)
				s.reserve(rid)
				if kind == "paying" {
					s.begin(rid)
				}
			}
			s.pass(time.Second)
		}
		list := func(limit int) []string {
			t.Helper()
			rows, err := s.o.Expiring(s.Context(), limit)
			noError(t, "Expiring", err)
			var rids []string
			for i := range rows {
				rids = append(rids, rows[i].RID)
			}
			return rids
		}
		want := func(limit int, rids ...string) {
			t.Helper()
			if got := list(limit); !slices.Equal(got, rids) {
				t.Errorf("%d: got %v, want %v", limit, got, rids)
			}
		}
		s.pass(15*time.Minute - 4*time.Second - time.Microsecond)
		want(10)
		s.pass(time.Microsecond)
		want(10, "paying0") // the grace is the unpaid one's alone
		s.pass(10 * time.Second)
		want(10, "paying0", "unpaid0", "paying1", "paying2", "paying3")
		want(2, "paying0", "unpaid0")
		s.pass(10 * time.Second)
		want(0)
		want(1, "unpaid0")
		want(4, "paying0", "unpaid0", "paying1", "unpaid1")
		want(5, "paying0", "unpaid0", "paying1", "unpaid1", "unpaid2")
		want(8, "paying0", "unpaid0", "paying1", "unpaid1", "paying2", "unpaid2", "paying3", "unpaid3")
		for _, rid := range list(8) {
			if _, err := s.o.Expire(s.Context(), rid); err != nil {
				s.outcome(rid+":1", flashsale.PayVoid)
			}
		}
		want(8)
		s.units(testKey, 0, 0)
	})
}

func TestReservations(t *testing.T) {
	eachShop(t, func(s *shop) {
		for i := range 5 {
			s.decide(job(fmt.Sprintf("r%d", i), fmt.Sprintf("u%d", i%3), 1))
			s.pass(time.Second)
		}
		found, err := s.o.Reservations(s.Context(), []string{"r1", "no", "", "\x00\xff", "r3", "r1"})
		noError(t, "Reservations", err)
		slices.SortFunc(found, func(a, b flashsale.Reservation) int { return strings.Compare(a.RID, b.RID) })
		if len(found) != 2 || found[0].RID != "r1" || found[1] != *s.reservation("r3") {
			t.Errorf("%+v", found)
		}
		if found, err := s.o.Reservations(s.Context(), nil); err != nil || len(found) != 0 {
			t.Errorf("of nothing: %v, %v", found, err)
		}
		for limit, want := range map[int]string{0: "", 1: "r3", 5: "r3 r0"} {
			found, err := s.o.OfUser(s.Context(), "sale", "u0", limit)
			noError(t, "OfUser", err)
			var rids []string
			for i := range found {
				rids = append(rids, found[i].RID)
			}
			if got := strings.Join(rids, " "); got != want {
				t.Errorf("%d: got %q, want %q", limit, got, want)
			}
		}
		for _, c := range [][2]string{{"no", "u0"}, {"\x00", "u0"}, {"sale", ""}, {"sale", "nobody"}} {
			if found, err := s.o.OfUser(s.Context(), c[0], c[1], 5); err != nil || len(found) != 0 {
				t.Errorf("%q: %v, %v", c, found, err)
			}
		}
	})
}

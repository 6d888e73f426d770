package sqlorders

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

func TestPruneOutbox(t *testing.T) {
	for name := range urls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, name, Config{}) // the books miss rows that were removed
			var ids []int64
			for _, d := range s.decide(jobs("r", 5)...) {
				ids = append(ids, d.Outbox)
			}
			prune := func(age time.Duration, limit int, want int64) {
				t.Helper()
				if n, err := s.o.PruneOutbox(s.Context(), age, limit); err != nil || n != want {
					t.Fatalf("pruned %d, %v; want %d", n, err, want)
				}
			}
			s.pass(time.Minute)
			noError(t, "Sent", s.o.Sent(s.Context(), flashsale.LaneStock, 1, ids[:4]))
			noError(t, "Sent", s.o.Sent(s.Context(), flashsale.LaneRelay, 1, ids[1:]))
			prune(time.Minute+time.Microsecond, 10, 0)
			prune(time.Minute, 0, 0)
			prune(time.Minute, 2, 1) // of r0 and r1
			prune(time.Minute, 2, 2) // of r2 and r3
			prune(time.Minute, 2, 0) // of r4, which is the last
			prune(time.Minute, 2, 0)
			s.wantUnsent(flashsale.LaneStock, "r4:1")
			s.wantUnsent(flashsale.LaneRelay, "r0:1")
		})
	}
}

// TestPruneOutboxPassesWhatWaits: rows that wait for a broker, and young ones, neither hide the others nor are read again and again.
func TestPruneOutboxPassesWhatWaits(t *testing.T) {
	for _, name := range heavyDBs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, name, Config{})
			var ids []int64
			for _, d := range s.decide(jobs("old", 30)...) {
				ids = append(ids, d.Outbox)
			}
			s.pass(time.Hour)
			for _, d := range s.decide(jobs("young", 30)...) {
				ids = append(ids, d.Outbox)
			}
			noError(t, "Sent", s.o.Sent(s.Context(), flashsale.LaneStock, 1, ids))
			noError(t, "Sent", s.o.Sent(s.Context(), flashsale.LaneRelay, 1, ids[25:]))
			pruned := func(passes int) (n int64) {
				t.Helper()
				for range passes {
					some, err := s.o.PruneOutbox(s.Context(), time.Hour, 10)
					noError(t, "PruneOutbox", err)
					n += some
				}
				return n
			}
			if n := pruned(2); n != 0 {
				t.Fatalf("%d of those that wait are pruned", n)
			}
			if n := pruned(1); n != 5 {
				t.Fatalf("%d are pruned behind 25 that wait, want 5", n)
			}
			noError(t, "Sent", s.o.Sent(s.Context(), flashsale.LaneRelay, 1, ids[:25]))
			if n := pruned(4); n != 25 { // three pages, the last of which ends among the young; and the walk has begun anew before them
				t.Fatalf("%d are pruned, want 25", n)
			}
			s.pass(time.Hour)
			if n := pruned(4); n != 30 {
				t.Fatalf("%d are pruned an hour later, want 30", n)
			}
		})
	}
}

// TestPruneEvents: what is forgotten of a payment that has come to its end changes nothing when it comes again.
func TestPruneEvents(t *testing.T) {
	eachShop(t, func(s *shop) {
		s.stock(6)
		for i, c := range []struct {
			status flashsale.PayStatus
			amount int64
		}{
			{flashsale.PayCaptured, 199_00}, {flashsale.PayFailed, 199_00}, {flashsale.PayVoid, 199_00}, {flashsale.PayOpen, 199_00}, {flashsale.PayCaptured, 1}, {flashsale.PayVoid, 199_00},
		} {
			if i == 5 { // a capture of what was cancelled: it waits for T8
				s.outcome(flashsale.IntentKey("r5", 1), flashsale.PayVoid)
				_, err := s.o.Cancel(s.Context(), "r5", "", "")
				noError(t, "Cancel", err)
				c.status = flashsale.PayCaptured
			}
			_, err := s.o.Outcome(s.Context(), fmt.Sprint("e", i), s.said(i, c.status, c.amount))
			noError(t, "Outcome", err)
			s.pass(time.Second)
		}
		prune := func(age time.Duration, limit int, want int64) {
			t.Helper()
			if n, err := s.o.PruneEvents(s.Context(), age, limit); err != nil || n != want {
				t.Fatalf("%d are forgotten, %v; want %d", n, err, want)
			}
		}
		prune(6*time.Second+time.Microsecond, 10, 0)
		prune(0, 0, 0)
		prune(6*time.Second, 10, 1)
		prune(0, 1, 1)
		prune(0, 10, 1)
		prune(0, 10, 0) // of those that are left one is live, one to be refunded, one waits for T8
		for i, want := range []bool{false, false, false, true, true, true} {
			if seen, err := s.o.SeenEvent(s.Context(), fmt.Sprint("e", i)); err != nil || seen != want {
				t.Errorf("event %d is remembered: %v, %v; want %v", i, seen, err, want)
			}
		}
		noError(t, "Refunded", s.o.Refunded(s.Context(), flashsale.IntentKey("r4", 1)))
		prune(0, 10, 1)
		for i, status := range []flashsale.PayStatus{flashsale.PayCaptured, flashsale.PayFailed, flashsale.PayVoid} {
			was, row := s.payment(flashsale.IntentKey(fmt.Sprint("r", i), 1)), s.reservation(fmt.Sprint("r", i))
			out, err := s.o.Outcome(s.Context(), fmt.Sprint("e", i), s.said(i, status, 199_00))
			if err != nil || len(out.Decided) > 0 || out.Payment != *was || out.Reservation != *row {
				t.Errorf("event %d again: %+v, %v", i, out, err)
			}
		}
	})
}

// stock reserves r0 to rn−1 and begins to pay for each.
func (s *shop) stock(n int) {
	s.Helper()
	for i := range n {
		rid := fmt.Sprint("r", i)
		s.reserve(rid)
		s.begin(rid)
	}
}

func (s *shop) said(i int, status flashsale.PayStatus, amount int64) *flashsale.ProviderPayment {
	return &flashsale.ProviderPayment{IntentKey: flashsale.IntentKey(fmt.Sprint("r", i), 1), Status: status, Amount: amount, Currency: "CNY"}
}

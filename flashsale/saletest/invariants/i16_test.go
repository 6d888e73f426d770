package invariants

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// spent is a token, and what it has made.
type spent struct {
	*world
	user, token, rid string
}

// isSpent fails unless the token answers as before, to one and to many at once, and refuses any other body; and SQL has one row, or none.
func (s *spent) isSpent(when string, state flashsale.State, rows int64) {
	s.Helper()
	s.atOnce(8, func(i int) error {
		a, err := s.engine(i).Reserve(s.Context(), request(s.token, s.user, 1))
		if err != nil || !a.Known || a.RID != s.rid || a.State != state {
			return fmt.Errorf("I16: %s the token makes %+v, known: %v, %w; want %s, %s", when, a.Result, a.Known, err, s.rid, state)
		}
		_, err = s.engine(i).Reserve(s.Context(), request(s.token, s.user, 2))
		if flashsale.CodeOf(err) != flashsale.CodeConflict {
			return fmt.Errorf("I16: %s the token for another quantity: %w", when, err)
		}
		_, err = s.engine(i).Reserve(s.Context(), request(s.token, "mallory", 1))
		if flashsale.CodeOf(err) != flashsale.CodeInvalidToken {
			return fmt.Errorf("I16: %s the token of another: %w", when, err)
		}
		return nil
	})
	if n := s.count("SELECT COUNT(*) FROM reservation WHERE rid = '" + s.rid + "'"); n != rows || s.Failed() {
		s.Fatalf("I16: %s SQL has %d reservations of the token, want %d", when, n, rows)
	}
}

// spend makes a token and spends it, by many at once.
func (w *world) spend(user string) *spent {
	w.Helper()
	s := &spent{world: w, user: user, token: w.token(user)}
	var fresh atomic.Int64
	rids := make([]string, 20)
	w.atOnce(len(rids), func(i int) error {
		a, err := w.engine(i).Reserve(w.Context(), request(s.token, user, 1))
		if rids[i] = a.RID; err == nil && !a.Known {
			fresh.Add(1)
		}
		return err
	})
	s.rid = rids[0]
	for _, rid := range rids {
		if rid != s.rid {
			w.Fatalf("I16: one token has made %s and %s", s.rid, rid)
		}
	}
	if fresh.Load() != 1 {
		w.Fatalf("I16: %d calls have made the reservation", fresh.Load())
	}
	return s
}

// TestI16_ATokenIsSpentOnce: whatever becomes of the reservation, of the Stock and of what the Stock knows, a token makes no second one.
func TestI16_ATokenIsSpentOnce(t *testing.T) {
	ends := map[string]struct {
		state flashsale.State
		end   func(s *spent)
	}{
		"paid": {flashsale.Confirmed, func(s *spent) {
			s.capture(s.pay(s.rid, s.user))
			s.bankSteps()
		}},
		"cancelled": {flashsale.Cancelled, func(s *spent) { s.cancel(s.rid, s.user) }},
		"expired": {flashsale.Expired, func(s *spent) {
			s.clock.advance(hold + grace)
			s.sweep()
		}},
	}
	eachPair(t, func(t *testing.T, pair string) {
		w := newWorld(t, pair, plan{total: 10, limit: 2, lasts: 30 * 24 * time.Hour})
		for name, end := range ends {
			s := w.spend(name)
			s.isSpent("pending,", flashsale.Pending, 0)
			w.consume()
			s.isSpent("reserved,", flashsale.Reserved, 1)
			w.loseStock()
			w.watch()
			s.isSpent("reserved, and after a rebuild,", flashsale.Reserved, 1)
			end.end(s)
			s.isSpent(name+",", end.state, 1)
			w.loseStock()
			w.watch()
			s.isSpent(name+", and after a rebuild,", end.state, 1)
			w.clock.advance(flashsale.Retention + time.Second)
			w.sweep()
			if got := w.entry(s.rid).State; got != flashsale.None {
				t.Fatalf("the stock still knows it as %s", got)
			}
			s.isSpent(name+", and forgotten by the stock,", end.state, 1)
			w.loseStock()
			w.watch()
			s.isSpent(name+", forgotten, and after a rebuild,", end.state, 1)
		}
		w.sound()
	})
}

// TestI16_LateJobsOfATokenAreRejected: a token whose reservation was refused is spent too, and its job, should it come late, makes nothing.
func TestI16_LateJobsOfATokenAreRejected(t *testing.T) {
	eachPair(t, func(t *testing.T, pair string) {
		w := newWorld(t, pair, plan{total: 10, limit: 2})
		s := w.spend("ann")
		w.clock.advance(flashsale.PendingFor)
		w.sweep()
		s.isSpent("refused,", flashsale.Rejected, 1)
		if n := w.consume(); n != 1 {
			t.Fatalf("%d jobs were late", n)
		}
		s.isSpent("refused, and its job late,", flashsale.Rejected, 1)
		w.loseStock()
		w.watch()
		s.isSpent("refused, and after a rebuild,", flashsale.Rejected, 1)
		w.sound()
		if v := w.view(); v.Available != 10 {
			t.Errorf("the stock has %d", v.Available)
		}
	})
}

// TestI16_LostBeforeSQL: the Stock has lost a reservation that SQL had not decided. Its token may be used again, and makes one; and the job,
// should it turn up, makes no other.
func TestI16_LostBeforeSQL(t *testing.T) {
	eachPair(t, func(t *testing.T, pair string) {
		w := newWorld(t, pair, plan{total: 10, limit: 2})
		s := w.spend("ann")
		jobs, err := w.stock().Pull(t.Context(), phone, w.sku().Epoch, "slow", 10, time.Hour)
		w.must(err)
		w.loseStock()
		w.watch()
		a, err := w.engine(0).Reserve(t.Context(), request(s.token, "ann", 1))
		if err != nil || a.RID != s.rid || a.Known {
			t.Fatalf("after the loss: %+v, %v", a, err)
		}
		w.consume()
		_, err = w.sql.Decide(t.Context(), &flashsale.Batch{Key: phone, Epoch: w.sku().Epoch - 1, Jobs: jobs})
		w.wantCode("the job of before the loss", err, flashsale.CodeStaleEpoch)
		late, err := w.sql.Decide(t.Context(), &flashsale.Batch{Key: phone, Epoch: w.sku().Epoch, Jobs: jobs})
		if err != nil || len(late) != 1 || !late[0].Replayed {
			t.Errorf("the job in the epoch of after: %+v, %v", late, err)
		}
		s.isSpent("reserved,", flashsale.Reserved, 1)
		w.sound()
	})
}

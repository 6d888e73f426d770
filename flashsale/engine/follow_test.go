package engine

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// cancelled has an instance tell of a cancellation that it has written.
func (s *shop) cancelled(by *Engine, rid string) {
	s.book.mu.Lock()
	row := *s.book.rows[rid]
	row.State, row.Version = flashsale.Cancelled, row.Version+1
	s.book.rows[rid] = &row
	s.book.mu.Unlock()
	by.deliverNow(s.t.Context(), row.Key, []flashsale.Decided{{RID: rid, User: row.User, Quantity: row.Quantity, State: row.State, Version: row.Version}})
}

// TestFollow sees at once what this process does.
func TestFollow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 10})
		rid := s.reserve("u")
		last, err := s.engine.Follow(t.Context(), phone, rid, "u", Result{})
		if err != nil || last.State != flashsale.Pending {
			t.Fatalf("at first: %+v, %v", last, err)
		}
		for _, step := range []struct {
			do   func()
			want flashsale.State
		}{
			{func() { s.consume(1) }, flashsale.Reserved},
			{func() { s.cancelled(s.engine, rid) }, flashsale.Cancelled},
		} {
			var came Result
			var all sync.WaitGroup
			all.Go(func() {
				if came, err = s.engine.Follow(t.Context(), phone, rid, "u", last); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
			began := time.Now()
			step.do()
			all.Wait()
			if came.State != step.want || time.Since(began) != 0 {
				t.Fatalf("%s after %s; want %s at once", came.State, time.Since(began), step.want)
			}
			last = came
		}
		_, err = s.engine.Follow(t.Context(), phone, rid, "v", Result{})
		wantCode(t, "another's", err, flashsale.CodeNotFound)
		_, err = s.engine.Follow(t.Context(), phone, "nothing", "u", last)
		wantCode(t, "none", err, flashsale.CodeNotFound)
		if s.engine.waiters.count != 0 {
			t.Errorf("%d still wait", s.engine.waiters.count)
		}
	})
}

// TestFollowSparesSQL: who waits for a payment asks the Stock, in growing intervals, and hears of what another instance does.
func TestFollowSparesSQL(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 10})
		rid := s.reserve("u")
		s.consume(1)
		last, err := s.engine.Result(t.Context(), phone, rid, "u")
		if err != nil {
			t.Fatal(err)
		}
		finds, rows := s.faults.count("stock.Find"), s.faults.count("orders.Reservations")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if r, err := s.engine.Follow(ctx, phone, rid, "u", last); flashsale.CodeOf(err) != flashsale.CodeUnavailable || r != last {
			t.Errorf("nothing happens: %+v, %v", r, err)
		}
		if n := s.faults.count("orders.Reservations") - rows; n != 0 {
			t.Errorf("SQL is asked %d times", n)
		}
		if n := s.faults.count("stock.Find") - finds; n < 15 || n > 40 {
			t.Errorf("the stock is asked %d times in a minute", n)
		}
		began := time.Now()
		go func() {
			time.Sleep(10 * time.Second)
			s.cancelled(s.another(nil), rid)
		}()
		r, err := s.engine.Follow(t.Context(), phone, rid, "u", last)
		if err != nil || r.State != flashsale.Cancelled || time.Since(began) > 10*time.Second+2*lastLook {
			t.Errorf("cancelled by another: %+v, %v after %s", r, err, time.Since(began))
		}
	})
}

// TestFollowWaitsForAStore: a store that is away for a while ends nothing.
func TestFollowWaitsForAStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 10})
		rid := s.reserve("u")
		s.faults.set(lose(20, "stock.Find", "orders.Reservations"), nil)
		go func() {
			time.Sleep(30 * time.Second)
			s.consume(1)
		}()
		last := Result{State: flashsale.Pending}
		if r, err := s.engine.Follow(t.Context(), phone, rid, "u", last); err != nil || r.State != flashsale.Reserved {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

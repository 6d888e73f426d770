package engine

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

func TestResult(t *testing.T) {
	t.Parallel()
	s := openShop(t, shopPlan{total: 10, skus: 2})
	rid := s.reserve("u")
	want := func(what string, state flashsale.State) Result {
		t.Helper()
		r, err := s.engine.Result(t.Context(), phone, rid, "u")
		if err != nil || r.State != state || r.RID != rid || r.Key != phone || r.Quantity != 1 || r.Until.IsZero() {
			t.Errorf("%s: %+v, %v; want %s", what, r, err, state)
		}
		return r
	}
	want("before the decision", flashsale.Pending)
	for _, bad := range []struct {
		what, rid, user string
		key             flashsale.Key
	}{
		{"another's, pending", rid, "v", phone}, {"another's sku", rid, "u", s.keys[1]}, {"no such rid", "nothing", "u", phone},
		{"no rid", "", "u", phone}, {"a rid that none can be", "a:b}{", "u", phone}, {"nobody's", rid, "", phone},
	} {
		r, err := s.engine.Result(t.Context(), bad.key, bad.rid, bad.user)
		if wantCode(t, bad.what, err, flashsale.CodeNotFound); err != nil && err.Error() != "not reserved, try again" || r != (Result{}) {
			t.Errorf("%s: %q, %+v", bad.what, err, r)
		}
	}
	s.consume(1)
	if r := want("after it", flashsale.Reserved); r.OrderID == "" || r.Amount != 100 || r.Currency != "CNY" || r.Version != 1 {
		t.Errorf("of a reserved one it says %+v", r)
	}
	_, err := s.engine.Result(t.Context(), phone, rid, "v")
	wantCode(t, "another's, reserved", err, flashsale.CodeNotFound)
	_, err = s.engine.Result(t.Context(), flashsale.Key{Sale: "twelve", SKU: "x"}, rid, "u")
	wantCode(t, "unknown sale", err, flashsale.CodeUnknownSale)
}

// TestResultWhenAStoreIsAway: nobody is told "not reserved" while a store that might know better does not answer, and nothing tells another's
// reservation from one that does not exist.
func TestResultWhenAStoreIsAway(t *testing.T) {
	t.Parallel()
	s := openShop(t, shopPlan{total: 10})
	decided := s.reserve("u")
	s.consume(1)
	pending := s.reserve("v")
	for _, c := range []struct {
		away, rid, user string
		state           flashsale.State
		want            flashsale.Code
	}{
		{"stock.Find", decided, "u", flashsale.Reserved, ""},
		{"stock.Find", decided, "v", 0, flashsale.CodeUnavailable},
		{"stock.Find", pending, "v", 0, flashsale.CodeUnavailable},
		{"stock.Find", "nothing", "v", 0, flashsale.CodeUnavailable},
		{"orders.Reservations", pending, "v", flashsale.Pending, ""},
		{"orders.Reservations", decided, "u", 0, flashsale.CodeUnavailable},
		{"orders.Reservations", decided, "v", 0, flashsale.CodeUnavailable},
		{"orders.Reservations", "nothing", "v", 0, flashsale.CodeUnavailable},
	} {
		s.faults.set(lose(-1, c.away), nil)
		r, err := s.engine.Result(t.Context(), phone, c.rid, c.user)
		wantCode(t, c.away+" is away, "+c.user+" asks for "+c.rid, err, c.want)
		if r.State != c.state {
			t.Errorf("%s is away: %s, want %s", c.away, r.State, c.state)
		}
	}
}

// slowStock takes a second to say that it cannot be reached, but for one sku.
type slowStock struct {
	Stock
	quick flashsale.Key
}

func (s *slowStock) Find(ctx context.Context, key flashsale.Key, epoch int64, rids []string) ([]flashsale.Entry, error) {
	if key == s.quick {
		return s.Stock.Find(ctx, key, epoch, rids)
	}
	time.Sleep(time.Second)
	return nil, errorf(flashsale.CodeUnavailable, "the node of %s does not answer", key)
}

// TestResultBehindANodeThatIsDown: who asks for a reservation of a sku that answers does not wait for all that do not, one after the other.
func TestResultBehindANodeThatIsDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 10, skus: 2 * lookupKeys})
		last := s.keys[len(s.keys)-1]
		e := s.another(func(c *Config) { c.Stock = &slowStock{Stock: c.Stock, quick: last} })
		ids := make([]reservationID, len(s.keys))
		for i, key := range s.keys {
			ids[i] = reservationID{key, "rid"}
		}
		began := time.Now()
		answers, err := e.readEntries(t.Context(), ids)
		if took := time.Since(began); err != nil || took > 2*time.Second {
			t.Errorf("%v after %s", err, took)
		}
		for _, id := range ids {
			want := flashsale.CodeUnavailable
			if id.key == last {
				want = ""
			}
			answer, ok := answers[id]
			if wantCode(t, id.key.String(), answer.err, want); !ok {
				t.Errorf("%s has no answer", id.key)
			}
		}
	})
}

func TestAwaitIsToldAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 1})
		rid := s.reserve("u")
		s.book.change(phone, func(s *flashsale.SKUState) { s.Total = 0 }) // SQL has less than the stock thought
		began := time.Now()
		results := make(chan Result, 1)
		go func() {
			r, err := s.engine.Await(t.Context(), phone, rid, "u")
			if err != nil || !time.Now().Equal(began) {
				t.Errorf("it took %s: %v", time.Since(began), err)
			}
			results <- r
		}()
		synctest.Wait()
		s.consume(1)
		r := <-results
		if r.State != flashsale.Rejected || r.Reason != flashsale.ReasonSoldOut {
			t.Errorf("the answer is %+v", r)
		}
		if n := s.faults.count("stock.Find"); n != 1 {
			t.Errorf("the stock was asked %d times, want once", n)
		}
	})
}

// TestAwaitOfAnotherInstance: what another instance decides is found by looking, ever less often.
func TestAwaitOfAnotherInstance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 1})
		other := s.another(nil)
		rid := s.reserve("u")
		const after = 20 * time.Second
		time.AfterFunc(after, func() {
			if n, err := other.ConsumeOnce(t.Context(), phone, "other"); n != 1 || err != nil {
				t.Errorf("%d, %v", n, err)
			}
		})
		began := time.Now()
		r, err := s.engine.Await(t.Context(), phone, rid, "u")
		took := time.Since(began)
		if err != nil || r.State != flashsale.Reserved || took < after || took > after+lastPoll*5/4 {
			t.Errorf("%+v, %v after %s", r, err, took)
		}
		if n := s.faults.count("stock.Find"); n < 20 || n > 40 {
			t.Errorf("the stock was asked %d times in 20 s", n)
		}
	})
}

func TestAwaitOutlastsFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 1})
		rid := s.reserve("u")
		s.faults.set(lose(3, "stock.Find"), nil)
		time.AfterFunc(time.Second, func() { s.consume(1) })
		r, err := s.engine.Await(t.Context(), phone, rid, "u")
		if err != nil || r.State != flashsale.Reserved {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 1})
		rid := s.reserve("u")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		r, err := s.engine.Await(ctx, phone, rid, "u")
		wantCode(t, "the context has ended", err, flashsale.CodeUnavailable)
		if r.State != flashsale.Pending || time.Since(began) != 3*time.Second {
			t.Errorf("%+v after %s", r, time.Since(began))
		}
		_, err = s.engine.Await(t.Context(), phone, "nothing", "u")
		wantCode(t, "nothing to wait for", err, flashsale.CodeNotFound)
		if s.engine.waiters.count != 0 || len(s.engine.waiters.of) != 0 {
			t.Errorf("%d still wait", s.engine.waiters.count)
		}
	})
}

func TestAwaitIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 100, config: func(c *Config) { c.MaxWaiting = 10 }})
		var all sync.WaitGroup
		refused := make(chan string, 100)
		wait := func(rid, user string) {
			all.Go(func() {
				_, err := s.engine.Await(t.Context(), phone, rid, user)
				if flashsale.CodeOf(err) == flashsale.CodeBusy {
					refused <- user
				} else if err != nil {
					t.Error(err)
				}
			})
		}
		rid := s.reserve("u")
		for range maxWaitingFor + 2 {
			wait(rid, "u")
		}
		synctest.Wait()
		if len(refused) != 2 {
			t.Errorf("%d calls for one reservation were refused, want 2", len(refused))
		}
		for i := range 3 {
			user := fmt.Sprint("v", i)
			wait(s.reserve(user), user)
		}
		synctest.Wait()
		if len(refused) != 3 {
			t.Errorf("%d calls were refused, want 3", len(refused))
		}
		s.consume(4)
		all.Wait()
	})
}

func TestOrders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 10, limit: 2})
		first := s.reserve("u")
		s.reserve("v")
		s.consume(2)
		time.Sleep(time.Second)
		second := s.reserve("u")
		s.consume(1)
		list, err := s.engine.Orders(t.Context(), "eleven", "u")
		if err != nil || len(list) != 2 || list[0].RID != second || list[1].RID != first || list[0].State != flashsale.Reserved {
			t.Errorf("%+v, %v", list, err)
		}
		if list, err = s.engine.Orders(t.Context(), "eleven", "w"); err != nil || len(list) != 0 {
			t.Errorf("of a stranger: %+v, %v", list, err)
		}
		_, err = s.engine.Orders(t.Context(), "twelve", "u")
		wantCode(t, "another sale", err, flashsale.CodeUnknownSale)
		_, err = s.engine.Orders(t.Context(), "eleven", "")
		wantCode(t, "nobody", err, flashsale.CodeInvalidArgument)
	})
}

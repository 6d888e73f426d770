package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// TestOneOfAThousand: a user with a limit of 1 gets one, however many tokens are tried at once.
func TestOneOfAThousand(t *testing.T) {
	t.Parallel()
	s := openShop(t, shopPlan{total: 5000})
	var accepted atomic.Int64
	var all sync.WaitGroup
	for range 1000 {
		r := s.request("one")
		all.Go(func() {
			answer, err := s.engine.Reserve(t.Context(), r)
			switch {
			case err == nil && answer.State == flashsale.Pending && !answer.Known:
				accepted.Add(1)
			case flashsale.CodeOf(err) != flashsale.CodePurchaseLimit:
				t.Errorf("another one: %+v, %v", answer, err)
			case len(answer.Holds) != 1 || answer.Holds[0].State != flashsale.Pending:
				t.Errorf("at the limit the shopper is shown %+v", answer.Holds)
			}
		})
	}
	all.Wait()
	if v := s.view(); accepted.Load() != 1 || v.Held != 1 || v.Queue.Depth != 1 {
		t.Errorf("%d were accepted, %d are held", accepted.Load(), v.Held)
	}
	if n := s.told.count("reserved eleven/phone-0 purchase_limit"); n != 999 {
		t.Errorf("the observer was told of %d refusals, want 999", n)
	}
	s.consume(1)
	s.agree(phone)
}

func TestReserveAtTheLimitShowsWhatIsHeld(t *testing.T) {
	t.Parallel()
	s := openShop(t, shopPlan{total: 10, limit: 2})
	first := s.reserve("u")
	s.consume(1)
	second := s.reserve("u")
	answer, err := s.engine.Reserve(t.Context(), s.request("u"))
	wantCode(t, "a third", err, flashsale.CodePurchaseLimit)
	got := map[string]flashsale.State{}
	for _, h := range answer.Holds {
		got[h.RID] = h.State
		if h.State == flashsale.Reserved && (h.Until.IsZero() || h.OrderID == "" || h.Amount != 100) {
			t.Errorf("of the reserved one, SQL knows more than %+v", h)
		}
	}
	if len(got) != 2 || got[first] != flashsale.Reserved || got[second] != flashsale.Pending {
		t.Errorf("the shopper is shown %v", got)
	}
	// Without SQL it is shown from the stock.
	s.faults.set(lose(-1, "orders.Reservations"), nil)
	if answer, _ = s.engine.Reserve(t.Context(), s.request("u")); len(answer.Holds) != 2 {
		t.Errorf("without SQL the shopper is shown %+v", answer.Holds)
	}
}

// forged is a token with another character in its signature, whatever that was.
func forged(token string) string {
	at := len(token) - 2
	other := byte('A')
	if token[at] == other {
		other = 'B'
	}
	return token[:at] + string(other) + token[at+1:]
}

func TestReserveBadInput(t *testing.T) {
	t.Parallel()
	s := openShop(t, shopPlan{total: 10, limit: 3, skus: 2})
	good := s.request("u")
	for name, c := range map[string]struct {
		change func(*ReserveRequest)
		want   flashsale.Code
	}{
		"forged":          {func(r *ReserveRequest) { r.Token = forged(r.Token) }, flashsale.CodeInvalidToken},
		"no token":        {func(r *ReserveRequest) { r.Token = "" }, flashsale.CodeInvalidToken},
		"another's":       {func(r *ReserveRequest) { r.User = "v" }, flashsale.CodeInvalidToken},
		"another device":  {func(r *ReserveRequest) { r.Device = "d" }, flashsale.CodeInvalidToken},
		"another sku":     {func(r *ReserveRequest) { r.Key.SKU = "phone-1" }, flashsale.CodeInvalidToken},
		"unknown sale":    {func(r *ReserveRequest) { r.Key.Sale = "twelve" }, flashsale.CodeInvalidToken},
		"a sale like no":  {func(r *ReserveRequest) { r.Key.Sale = "a:b" }, flashsale.CodeInvalidArgument},
		"none":            {func(r *ReserveRequest) { r.Quantity = 0 }, flashsale.CodeInvalidQuantity},
		"negative":        {func(r *ReserveRequest) { r.Quantity = -1 }, flashsale.CodeInvalidQuantity},
		"over the limit":  {func(r *ReserveRequest) { r.Quantity = 4 }, flashsale.CodeInvalidQuantity},
		"huge":            {func(r *ReserveRequest) { r.Quantity = 1 << 62 }, flashsale.CodeInvalidQuantity},
		"no user":         {func(r *ReserveRequest) { r.User = "" }, flashsale.CodeInvalidArgument},
		"user of a space": {func(r *ReserveRequest) { r.User = "u " }, flashsale.CodeInvalidToken},
	} {
		r := good
		c.change(&r)
		_, err := s.engine.Reserve(t.Context(), r)
		wantCode(t, name, err, c.want)
	}
	if v := s.view(); v.Available != 10 || v.Queue.Depth != 0 {
		t.Errorf("bad input has changed something: %+v", v)
	}
	if s.told.count("reserved a:b/phone-0 invalid_argument") != 0 || s.told.count("reserved  invalid_argument") != 1 {
		t.Errorf("what clients write comes to the observer: %v", s.told.lines)
	}
	if _, err := s.engine.Reserve(t.Context(), good); err != nil {
		t.Errorf("after all that the token is good for %v", err)
	}
}

func TestReserveAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 10, limit: 3})
		r := s.request("u")
		first, err := s.engine.Reserve(t.Context(), r)
		if err != nil || first.Known || first.State != flashsale.Pending || time.Until(first.Until) != flashsale.PendingFor {
			t.Fatalf("first %+v, %v", first, err)
		}
		again := func(what string, state flashsale.State) ReserveAnswer {
			t.Helper()
			answer, err := s.engine.Reserve(t.Context(), r)
			if err != nil || !answer.Known || answer.RID != first.RID || answer.State != state {
				t.Errorf("%s: %+v, %v; want %s, known", what, answer, err, state)
			}
			return answer
		}
		again("again", flashsale.Pending)
		other := r
		other.Quantity = 2
		_, err = s.engine.Reserve(t.Context(), other)
		wantCode(t, "another quantity", err, flashsale.CodeConflict)
		s.consume(1)
		if answer := again("decided", flashsale.Reserved); answer.OrderID == "" || time.Until(answer.Until) != flashsale.DefaultHold {
			t.Errorf("it says no more than %+v", answer)
		}
		time.Sleep(3 * time.Minute) // the token has expired
		again("expired", flashsale.Reserved)
		if v := s.view(); v.Available != 9 {
			t.Errorf("%d are left of 10", v.Available)
		}
	})
}

func TestReserveWithAnExpiredToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 10, limit: 3})
		spent, unspent := s.request("u"), s.request("v")
		s.reserve("w")
		first, err := s.engine.Reserve(t.Context(), spent)
		if err != nil {
			t.Fatal(err)
		}
		s.consume(2)
		time.Sleep(2 * time.Minute) // at its very end it is over
		_, err = s.engine.Reserve(t.Context(), unspent)
		wantCode(t, "never spent", err, flashsale.CodeTokenExpired)

		// The stock of the next epoch was loaded without what ended long ago; SQL has it.
		s.book.change(phone, func(s *flashsale.SKUState) { s.Epoch = 2 })
		s.load(phone, 2)
		answer, err := s.engine.Reserve(t.Context(), spent)
		if err != nil || !answer.Known || answer.RID != first.RID || answer.State != flashsale.Reserved {
			t.Errorf("known to SQL alone: %+v, %v", answer, err)
		}
		other := spent
		other.Quantity = 2
		_, err = s.engine.Reserve(t.Context(), other)
		wantCode(t, "another quantity", err, flashsale.CodeConflict)
		s.faults.set(lose(-1, "orders.Reservations"), nil)
		answer, err = s.engine.Reserve(t.Context(), spent)
		wantCode(t, "nobody to ask", err, flashsale.CodeUnavailable)
		if answer.RetryAfter < time.Second/2 {
			t.Errorf("it is to ask again after %s", answer.RetryAfter)
		}
	})
}

func TestReserveRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plan   shopPlan
		before func(s *shop)
		want   flashsale.Code
		detail string
		retry  bool
	}{
		"sold out": {plan: shopPlan{total: 0}, want: flashsale.CodeSoldOut},
		"paused": {plan: shopPlan{total: 1}, want: flashsale.CodeNotOpen, detail: "paused", before: func(s *shop) {
			set := s.view().Settings
			set.Status, set.Version = flashsale.Paused, 2
			if err := s.stock.Configure(s.t.Context(), phone, 1, &set); err != nil {
				s.t.Fatal(err)
			}
		}},
		"ended": {plan: shopPlan{total: 1}, want: flashsale.CodeNotOpen, detail: "ended", before: func(*shop) { time.Sleep(time.Hour) }},
		"not yet": {plan: shopPlan{total: 1}, want: flashsale.CodeNotOpen, detail: "not_yet", retry: true, before: func(s *shop) {
			set := s.view().Settings
			set.OpensAt, set.Version = time.Now().Add(time.Minute), 2
			if err := s.stock.Configure(s.t.Context(), phone, 1, &set); err != nil {
				s.t.Fatal(err)
			}
		}},
		"busy": {plan: shopPlan{total: 1000, rate: 1}, want: flashsale.CodeBusy, retry: true, before: func(s *shop) {
			for i := range 45 {
				s.reserve(fmt.Sprint("b", i))
			}
		}},
		"SQL does not keep up": {plan: shopPlan{total: 1000}, want: flashsale.CodeBusy, retry: true, before: func(s *shop) {
			s.reserve("b")
			time.Sleep(46 * time.Second)
		}},
		"rebuilding": {plan: shopPlan{total: 1}, want: flashsale.CodeRebuilding, retry: true, before: func(s *shop) {
			s.book.change(phone, func(s *flashsale.SKUState) { s.Epoch, s.Rebuilding = 2, true })
			if _, err := s.stock.Point(s.t.Context(), phone, 2); err != nil {
				s.t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := openShop(t, c.plan)
				if c.plan.total > 0 {
					s.engine.cfg.TokenLife = 2 * time.Hour
				}
				r := s.request("u")
				if c.before != nil {
					c.before(s)
				}
				answer, err := s.engine.Reserve(t.Context(), r)
				wantCode(t, name, err, c.want)
				if answer.Detail != c.detail || (answer.RetryAfter > 0) != c.retry || answer.RID != "" {
					t.Errorf("the answer is %+v", answer)
				}
				if s.told.count("reserved eleven/phone-0 "+string(c.want)) != 1 {
					t.Errorf("the observer was told %v", s.told.lines)
				}
			})
		})
	}
}

func TestReserveWhenAnswersAreLost(t *testing.T) {
	t.Parallel()
	cut := func(n int) func(string) error { return lose(n, "stock.Reserve") }
	for name, c := range map[string]struct {
		before, after func(string) error
		want          flashsale.Code
		known         bool
		calls         int
		held          int64
	}{
		"none":               {nil, nil, "", false, 1, 1},
		"it never came":      {cut(1), nil, "", false, 2, 1},
		"the answer is lost": {nil, cut(1), "", true, 2, 1},
		"both answers":       {nil, cut(2), flashsale.CodeUnavailable, false, 2, 1},
		"the stock is away":  {cut(-1), nil, flashsale.CodeUnavailable, false, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := openShop(t, shopPlan{total: 10})
				r := s.request("u")
				s.faults.set(c.before, c.after)
				answer, err := s.engine.Reserve(t.Context(), r)
				wantCode(t, "the call", err, c.want)
				if answer.Known != c.known || s.faults.count("stock.Reserve") != c.calls || (answer.RetryAfter > 0) != (err != nil) {
					t.Errorf("%+v after %d calls, want known %v after %d", answer, s.faults.count("stock.Reserve"), c.known, c.calls)
				}
				s.faults.set(nil, nil)
				if v := s.view(); v.Held != c.held {
					t.Errorf("%d are held, want %d", v.Held, c.held)
				}
				if answer, err = s.engine.Reserve(t.Context(), r); err != nil || answer.State != flashsale.Pending {
					t.Errorf("the shopper asks again and gets %+v, %v", answer, err)
				}
			})
		})
	}
}

// TestReserveGivenUp: nothing is repeated for who has gone.
func TestReserveGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, shopPlan{total: 10})
		r := s.request("u")
		ctx, cancel := context.WithCancel(t.Context())
		s.faults.set(nil, func(call string) error {
			cancel()
			return lose(1, "stock.Reserve")(call)
		})
		_, err := s.engine.Reserve(ctx, r)
		wantCode(t, "the call", err, flashsale.CodeUnavailable)
		if n := s.faults.count("stock.Reserve"); n != 1 {
			t.Errorf("the stock was asked %d times", n)
		}
	})
}

// TestReserveInAnotherEpoch: an instance that has not heard of a rebuild reads the epoch and goes on.
func TestReserveInAnotherEpoch(t *testing.T) {
	t.Parallel()
	s := openShop(t, shopPlan{total: 10})
	s.reserve("u")
	s.consume(1)
	s.book.change(phone, func(s *flashsale.SKUState) { s.Epoch = 2 })
	s.load(phone, 2)
	s.reserve("v")
	s.consume(1)
	if n := s.book.count(flashsale.Reserved); n != 2 {
		t.Errorf("%d are reserved, want 2", n)
	}
}

package invariants

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
)

// season is a sale with more demand than units until it closes. Of those who get a unit early, three in four let it go in one way or
// another; those who come late pay.
type season struct {
	*world
	closes time.Time
	// margin is how long jobs may take, while lines are cut, to give back what was let go.
	margin time.Duration
	came   atomic.Int64
	mu     sync.Mutex
	// waiting are those who have no final answer yet, guarded by mu.
	waiting []visitor
	// let counts how many have let a unit go.
	let [4]atomic.Int64
}

const seasonLasts = 50 * time.Minute

// seasonOf is how many units there are, how many shoppers come in a step, and how long that is.
func seasonOf() (total int64, shoppers int, step time.Duration) {
	if underRace {
		return 20, 3, time.Minute
	}
	return 40, 6, 30 * time.Second
}

// TestI15_SoldOut: demand that lasts to the close and shoppers who pay sell the last unit, though others have walked away, lines are cut,
// engines die and the Stock is lost on the way.
func TestI15_SoldOut(t *testing.T) {
	eachPair(t, func(t *testing.T, pair string) {
		total, shoppers, wait := seasonOf()
		s := &season{world: newWorld(t, pair, plan{total: total, lasts: seasonLasts}), margin: 10 * wait}
		s.closes = s.clock.Now().Add(seasonLasts)
		s.faults.set(&hooks{before: flaky(11, 40), after: flaky(12, 40)})
		for step := 0; s.clock.Now().Before(s.closes); step++ {
			switch step {
			case 10: // early: a rebuild would mend what is not given back as it should be
				s.loseStock()
			case 20:
				s.boot(2)
			}
			all := s.visitors(shoppers)
			s.atOnce(len(all), func(i int) error { return s.visit(i, all[i]) })
			s.work()
			s.clock.advance(wait)
		}
		s.faults.set(nil)
		_, _, err := s.engine(0).Token(t.Context(), engine.TokenRequest{Key: phone, User: "late"})
		s.wantCode("after the close", err, flashsale.CodeNotOpen)
		s.settle()
		s.sound()
		b, v := s.books(), s.view()
		if b.sold != total || b.reserved != 0 || v.Available != 0 || v.Sold != total {
			t.Errorf("I15: %d of %d are sold, %d reserved; the stock has %d", b.sold, total, b.reserved, v.Available)
		}
		if b.ledgerReleased < total/2 || s.charged() != total {
			t.Errorf("only %d units came back on the way; %d are charged", b.ledgerReleased, s.charged())
		}
	})
}

// work is what the jobs do in a step; what a cut line leaves undone, the next step does.
func (s *season) work() {
	ctx := s.Context()
	for i := range 2 {
		e := s.engine(i)
		_, _ = e.WatchOnce(ctx)
		_, _ = e.ConsumeOnce(ctx, phone, fmt.Sprint("c", i))
		_, _ = e.SweepOnce(ctx)
		_, _ = e.DeliverOnce(ctx)
		_, _ = e.PollOnce(ctx)
	}
	s.bankSteps()
}

// visitor is a shopper, who comes again with the same token until the answer is final.
type visitor struct {
	n           int64
	user, token string
}

// visitors are those who wait for an answer, and the new ones of a step.
func (s *season) visitors(fresh int) []visitor {
	s.Helper()
	all := s.waiting
	s.waiting = nil
	for range fresh {
		n := s.came.Add(1)
		v := visitor{n: n, user: fmt.Sprint("user-", n)}
		var err error
		v.token, err = s.keys.Issue(s.random(), flashsale.TokenScope{Key: phone, User: v.user}, s.clock.Now().Add(flashsale.MaxTokenLife))
		s.must(err)
		all = append(all, v)
	}
	return all
}

// visit is what a shopper does in a step.
func (s *season) visit(i int, v visitor) error {
	e, ctx := s.engine(i), s.Context()
	var r engine.ReserveAnswer
	var result engine.Result
	err := patient(func() (err error) { r, err = e.Reserve(ctx, request(v.token, v.user, 1)); return err })
	if err == nil {
		_, _ = e.ConsumeOnce(ctx, phone, fmt.Sprint("c", i))
		err = patient(func() (err error) { result, err = e.Result(ctx, phone, r.RID, v.user); return err })
	}
	switch code := flashsale.CodeOf(err); {
	case err == nil && result.State == flashsale.Reserved:
		return s.decides(e, v.n, r.RID, v.user)
	case err == nil && result.State == flashsale.Pending, code == flashsale.CodeUnavailable, code == flashsale.CodeRebuilding, code == flashsale.CodeBusy, code == flashsale.CodeNotFound:
		s.mu.Lock()
		s.waiting = append(s.waiting, v)
		s.mu.Unlock()
		return nil
	case code == flashsale.CodeSoldOut:
		return nil
	}
	return err
}

// decides is what a shopper does who has got a unit. Whoever comes when what is let go could not be sold again any more, pays.
func (s *season) decides(e *engine.Engine, n int64, rid, user string) error {
	late := s.closes.Sub(s.clock.Now()) <= hold+payTime+grace+s.margin
	way := n % 4
	if late {
		way = 0
	}
	s.let[way].Add(1)
	if way == 1 { // walks away
		return nil
	}
	if way == 2 {
		_ = patient(func() error { _, err := e.Cancel(s.Context(), rid, user); return err })
		return nil
	}
	var a engine.PayAnswer
	if err := patient(func() (err error) { a, err = e.Pay(s.Context(), rid, user); return err }); err != nil {
		return err
	}
	if way == 3 {
		return s.bank.Pay(a.IntentKey, flashsale.PayFailed)
	}
	return s.bank.Pay(a.IntentKey, flashsale.PayCaptured)
}

// patient makes a call again where a line was cut, up to 50 times.
func patient(call func() error) (err error) {
	for range 50 {
		if err = call(); flashsale.CodeOf(err) != flashsale.CodeUnavailable {
			return err
		}
	}
	return err
}

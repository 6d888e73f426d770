package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// TestSoldOutAndToken: what comes before sold out comes before it from memory too.
func TestSoldOutAndToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := openFleet(t, 1, shopPlan{total: 1}, time.Millisecond)
		winner := f.request("winner")
		won, err := f.engines[0].Reserve(t.Context(), winner)
		if err != nil {
			t.Fatal(err)
		}
		late := f.request("late")
		f.sellOut()
		_, err = f.click(0, "winner", 1)
		wantCode(t, "a winner with another token", err, flashsale.CodePurchaseLimit)
		other := winner
		other.Quantity = 2
		f.set(func(s *flashsale.Settings) { s.PurchaseLimit = 2 })
		_, _ = f.engines[0].skus.read(t.Context(), phone)
		_, err = f.engines[0].Reserve(t.Context(), other)
		wantCode(t, "a winner's token for another quantity", err, flashsale.CodeConflict)
		time.Sleep(3 * time.Minute)
		_, err = f.engines[0].Reserve(t.Context(), late)
		wantCode(t, "an expired token", err, flashsale.CodeTokenExpired)
		if again, err := f.engines[0].Reserve(t.Context(), winner); err != nil || !again.Known || again.RID != won.RID {
			t.Errorf("a winner's expired token: %+v, %v", again, err)
		}
	})
}

// TestSoldOutButNotOpen: paused, reopened, closed, ended: within the lull of 50 ms the answer is the right one again.
func TestSoldOutButNotOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := openFleet(t, 1, shopPlan{total: 1, closes: time.Now().Add(time.Minute)}, time.Millisecond)
		f.sellOut()
		request := f.request("u")
		after := func(wait time.Duration, what string, want flashsale.Code, detail string) {
			t.Helper()
			time.Sleep(wait)
			for range 3 {
				answer, err := f.engines[0].Reserve(t.Context(), request)
				wantCode(t, what, err, want)
				if answer.Detail != detail {
					t.Errorf("%s: the detail is %q", what, answer.Detail)
				}
			}
		}
		after(time.Second, "open", flashsale.CodeSoldOut, "")
		f.set(func(s *flashsale.Settings) { s.Status = flashsale.Paused })
		after(flashsale.LullFor, "paused", flashsale.CodeNotOpen, "paused")
		f.set(func(s *flashsale.Settings) { s.Status = flashsale.Open })
		after(0, "open again", flashsale.CodeSoldOut, "")
		before := f.far.reserves.Load()
		after(10*time.Millisecond, "open again", flashsale.CodeSoldOut, "")
		if n := f.far.reserves.Load() - before; n != 0 {
			t.Errorf("learnt again, %d calls are made", n)
		}
		f.set(func(s *flashsale.Settings) { s.Status = flashsale.Draining })
		after(flashsale.LullFor, "draining", flashsale.CodeNotOpen, "draining")
		f.set(func(s *flashsale.Settings) { s.Status = flashsale.Open })
		after(0, "open", flashsale.CodeSoldOut, "")
		after(time.Minute, "ended", flashsale.CodeNotOpen, "ended")
	})
}

// TestSoldOutInTheNextEpoch: a rebuild knows who holds something, and gives back what was lost.
func TestSoldOutInTheNextEpoch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := openFleet(t, 2, shopPlan{total: 2}, time.Millisecond)
		f.sellOut()
		winner := flashsale.Entry{RID: "won", User: "winner", Quantity: 2, State: flashsale.Reserved, Version: 1, At: time.Now()}
		f.book.change(phone, func(s *flashsale.SKUState) { s.Epoch, s.Reserved = 2, 2 })
		if _, err := f.stock.Point(t.Context(), phone, 2); err != nil {
			t.Fatal(err)
		}
		time.Sleep(flashsale.LullFor)
		_, err := f.click(0, "u", 1)
		wantCode(t, "while it is loaded", err, flashsale.CodeRebuilding)
		part := &flashsale.LoadPart{
			Entries: []flashsale.Entry{winner}, Buyers: []flashsale.Buyer{{User: "winner", Quantity: 2, RIDs: []string{"won"}}}, Last: true, Total: 2, Reserved: 2,
		}
		if err := f.stock.Load(t.Context(), phone, 2, part); err != nil {
			t.Fatal(err)
		}
		f.set(func(s *flashsale.Settings) {
			*s = flashsale.Settings{Version: 9, Status: flashsale.Open, OpensAt: time.Now().Add(-time.Hour), ClosesAt: time.Now().Add(time.Hour), PurchaseLimit: 2, Rate: 1000}
		})
		for i := range f.engines {
			for n := range 3 {
				_, err = f.click(i, fmt.Sprint("u-", n), 1)
				wantCode(t, "loaded", err, flashsale.CodeSoldOut)
			}
			_, err = f.click(i, "winner", 1)
			wantCode(t, "a buyer of before", err, flashsale.CodePurchaseLimit)
		}
		before := f.far.reserves.Load()
		_, err = f.click(0, "v", 1)
		wantCode(t, "loaded", err, flashsale.CodeSoldOut)
		if n := f.far.reserves.Load() - before; n != 0 {
			t.Errorf("%d calls", n)
		}
	})
}

// TestSoldOutWithoutAnswer: a stock that does not answer is not taken for one that is sold out for longer than a lull, and not
// everybody asks it.
func TestSoldOutWithoutAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := openFleet(t, 1, shopPlan{total: 1}, time.Millisecond)
		rids := f.sellOut()
		f.far.down.Store(true)
		time.Sleep(flashsale.LullFor)
		crowd := func(n int) *sync.Map {
			codes := &sync.Map{}
			var all sync.WaitGroup
			for i := range n {
				r := f.request(fmt.Sprint("u-", i))
				all.Go(func() {
					answer, err := f.engines[0].Reserve(t.Context(), r)
					if retriable(err) && answer.RetryAfter < time.Second/2 {
						t.Errorf("%v: it is to ask again after %s", err, answer.RetryAfter)
					}
					codes.Store(flashsale.CodeOf(err), true)
				})
			}
			all.Wait()
			return codes
		}
		before := f.far.calls()
		codes := crowd(1000)
		codes.Range(func(code, _ any) bool {
			if code != flashsale.CodeUnavailable {
				t.Errorf("without an answer they are told %s", code)
			}
			return true
		})
		if n := f.far.calls() - before; n > 4 { // two of the look, two of one who asks himself
			t.Errorf("%d calls of a stock that does not answer", n)
		}
		f.far.down.Store(false)
		codes = crowd(1000)
		if _, ok := codes.Load(flashsale.CodeSoldOut); !ok {
			t.Error("it answers, and is not sold out")
		}
		f.far.down.Store(true)
		time.Sleep(flashsale.LullFor)
		for range maxFailed {
			crowd(10)
		}
		if f.engines[0].soldOut.get(phone).calm.Load() != nil {
			t.Error("after all that there is still a memory")
		}
		f.far.down.Store(false)
		f.giveBack(rids...)
		time.Sleep(flashsale.LullFor)
		if _, err := f.click(0, "at last", 1); err != nil {
			t.Errorf("nobody gets the unit that came back: %v", err)
		}
	})
}

// TestSoldOutWithoutLulls: a stock whose looks fail sells as before.
func TestSoldOutWithoutLulls(t *testing.T) {
	t.Parallel()
	for name, bend := range map[string]func(*flashsale.Lull){
		"too many marks": func(l *flashsale.Lull) { l.Count, l.For = flashsale.MaxMarks, 0 },
		"no page":        func(l *flashsale.Lull) { l.Marks, l.Count, l.For = nil, 5, 0 },
	} {
		synctest.Test(t, func(t *testing.T) {
			f := openFleet(t, 1, shopPlan{total: 2}, time.Millisecond)
			f.far.bend = bend
			rids := f.sellOut()
			before := f.far.reserves.Load()
			for i := range 10 {
				_, err := f.click(0, fmt.Sprint("u", i), 1)
				wantCode(t, name, err, flashsale.CodeSoldOut)
			}
			if n := f.far.reserves.Load() - before; n != 10 {
				t.Errorf("%s: %d calls of 10 reach the stock", name, n)
			}
			f.giveBack(rids...)
			time.Sleep(flashsale.LullFor)
			if _, err := f.click(0, "u", 1); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// TestAskAlways: nothing is answered from memory, and no look is made.
func TestAskAlways(t *testing.T) {
	t.Parallel()
	s := openShop(t, shopPlan{total: 0, config: func(c *Config) { c.AskAlways = true }})
	for range 5 {
		_, err := s.engine.Reserve(t.Context(), s.request("u"))
		wantCode(t, "none", err, flashsale.CodeSoldOut)
	}
	if s.faults.count("stock.Reserve") != 5 || s.faults.count("stock.Lull") != 0 {
		t.Errorf("%d reserve calls and %d looks", s.faults.count("stock.Reserve"), s.faults.count("stock.Lull"))
	}
}

// TestWhoLeavesWhileLooking is told so, and the others are answered.
func TestWhoLeavesWhileLooking(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := openFleet(t, 1, shopPlan{total: 1}, 100*time.Millisecond)
		f.sellOut()
		time.Sleep(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		leaves, stays := f.request("leaves"), f.request("stays")
		var all sync.WaitGroup
		all.Go(func() {
			_, err := f.engines[0].Reserve(ctx, leaves)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("who leaves: %v", err)
			}
		})
		all.Go(func() {
			_, err := f.engines[0].Reserve(t.Context(), stays)
			wantCode(t, "who stays", err, flashsale.CodeSoldOut)
		})
		time.Sleep(10 * time.Millisecond)
		cancel()
		all.Wait()
	})
}

// TestIdleMemoriesGiveWay: the thousand and first sku finds room once another was not asked for in a minute, and what gave way is learnt
// anew.
func TestIdleMemoriesGiveWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := openFleet(t, 1, shopPlan{total: 1}, time.Millisecond)
		f.sellOut()
		f.consume(1)
		o := &f.engines[0].soldOut
		for i := range maxMemories - 1 {
			if o.open(flashsale.Key{Sale: "many", SKU: fmt.Sprint(i)}) == nil {
				t.Fatalf("no room for %d", i)
			}
		}
		late := flashsale.Key{Sale: "many", SKU: "late"}
		if o.open(late) != nil || o.open(phone) == nil {
			t.Error("the skus are not bounded, or one that is known has no room")
		}
		old := o.get(phone)
		if n := o.marks.Load(); n != 2 {
			t.Errorf("%d marks", n)
		}
		time.Sleep(idleMemory + time.Millisecond)
		if o.open(late) == nil || o.get(phone) != nil || o.marks.Load() != 0 {
			t.Errorf("what is idle has not given way: %d marks", o.marks.Load())
		}
		if v, err := f.engines[0].recall(t.Context(), old, 1, &flashsale.Ask{RID: "r", User: "u", Quantity: 1}); v != askStock || err != nil {
			t.Errorf("what has given way still says %d, %v", v, err)
		}
		for range 3 {
			_, err := f.click(0, "u", 1)
			wantCode(t, "learnt anew", err, flashsale.CodeSoldOut)
		}
		if m := o.get(phone); m == nil || m == old || o.marks.Load() != 2 {
			t.Error("it is not learnt anew")
		}
	})
}

// TestSoldOutOfAnotherEpoch: what is remembered of one epoch is void as soon as this instance knows of the next, within the lull too.
func TestSoldOutOfAnotherEpoch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := openFleet(t, 1, shopPlan{total: 1}, 0)
		f.sellOut()
		f.book.change(phone, func(s *flashsale.SKUState) { s.Epoch, s.Total = 2, 2 })
		f.load(phone, 2)
		if _, err := f.engines[0].skus.read(t.Context(), phone); err != nil {
			t.Fatal(err)
		}
		if _, err := f.click(0, "u", 1); err != nil {
			t.Errorf("in the next epoch: %v", err)
		}
	})
}

// TestLooksAloneFail: of those who wait for a look that fails one asks for himself, so that not all are turned away where the Stock sells.
func TestLooksAloneFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := openFleet(t, 1, shopPlan{total: 1}, time.Millisecond)
		f.giveBack(f.sellOut()...)
		time.Sleep(flashsale.LullFor)
		f.far.blind.Store(true)
		var won, failed atomic.Int64
		var all sync.WaitGroup
		for i := range 50 {
			r := f.request(fmt.Sprint("u-", i))
			all.Go(func() {
				switch _, err := f.engines[0].Reserve(t.Context(), r); flashsale.CodeOf(err) {
				case "":
					won.Add(1)
				case flashsale.CodeUnavailable:
					failed.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 || failed.Load() != 49 {
			t.Errorf("%d have won and %d could not be answered", won.Load(), failed.Load())
		}
	})
}

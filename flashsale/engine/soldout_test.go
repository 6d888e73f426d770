package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// TestAMillionClicks on a thousand units, by 100,000 users on three instances that are a millisecond away from the stock: fewer than
// 20,000 calls, every unit is sold, and whoever has won is told so again however often and wherever they click.
func TestAMillionClicks(t *testing.T) {
	t.Parallel()
	const instances, shoppers, users = 3, 5000, 20
	rounds := 10
	if underRace || testing.Short() {
		rounds = 1
	}
	synctest.Test(t, func(t *testing.T) {
		f := openFleet(t, instances, shopPlan{total: 1000}, time.Millisecond)
		var clicks, won, again, refused atomic.Int64
		var all sync.WaitGroup
		for i := range shoppers {
			all.Go(func() {
				for u := range users {
					r := f.request(fmt.Sprint("user-", i, "-", u))
					for range rounds {
						time.Sleep(rand.N(300 * time.Millisecond))
						answer, err := f.engines[rand.IntN(instances)].Reserve(t.Context(), r)
						clicks.Add(1)
						switch {
						case err == nil && !answer.Known:
							won.Add(1)
							if !f.far.wasTaken(answer.RID, time.Now()) {
								t.Error("accepted, and not by the stock")
							}
						case err == nil:
							again.Add(1)
						case flashsale.CodeOf(err) != flashsale.CodeSoldOut || f.far.wasTaken(answer.RID, time.Now()):
							t.Errorf("a click: %+v, %v", answer, err)
						default:
							refused.Add(1)
						}
					}
				}
			})
		}
		all.Wait()
		if v := f.view(); v.Available != 0 || won.Load() != 1000 || v.Held != 1000 {
			t.Errorf("%d of 1000 have been sold, %d are left", won.Load(), v.Available)
		}
		if again.Load() == 0 && rounds > 1 {
			t.Error("nobody who has won clicks again")
		}
		t.Logf("%d clicks: %d won, %d won already, %d refused; %d reserve calls and %d looks in %d calls of the stock",
			clicks.Load(), won.Load(), again.Load(), refused.Load(), f.far.reserves.Load(), f.far.lulls.Load(), f.far.calls())
		if n := f.far.calls(); n >= 20_000 {
			t.Errorf("%d clicks made %d calls of the stock", clicks.Load(), n)
		}
	})
}

// TestWinnersClickAgain: while the last units go, on all instances at once, no repetition of a call that has won is refused.
func TestWinnersClickAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := openFleet(t, 3, shopPlan{total: 50}, 2*time.Millisecond)
		rids := f.sellOut()
		var all sync.WaitGroup
		done := make(chan struct{})
		var won atomic.Int64
		for i := range 100 {
			all.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-done:
						return
					case <-time.After(rand.N(20 * time.Millisecond)):
					}
					r := f.request(fmt.Sprint("user-", i, "-", n))
					first := rand.IntN(3)
					answer, err := f.engines[first].Reserve(t.Context(), r)
					if err != nil {
						continue
					}
					won.Add(1)
					for k := range 3 {
						retry, err := f.engines[(first+k)%3].Reserve(t.Context(), r)
						if err != nil || !retry.Known || retry.RID != answer.RID {
							t.Errorf("a win is repeated: %+v, %v", retry, err)
						}
					}
				}
			})
		}
		for _, rid := range rids {
			time.Sleep(rand.N(60 * time.Millisecond))
			f.giveBack(rid)
		}
		time.Sleep(200 * time.Millisecond)
		close(done)
		all.Wait()
		if v := f.view(); won.Load() != 50 || v.Available != 0 {
			t.Errorf("%d of 50 units were sold again", won.Load())
		}
	})
}

// TestGiveBackIsSoldAgain within 100 ms, while somebody asks: one click each 3 ms, on two instances in turn.
func TestGiveBackIsSoldAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := openFleet(t, 2, shopPlan{total: 40}, time.Millisecond)
		rids := f.sellOut()
		sold := make(chan time.Time, len(rids))
		var all sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		all.Go(func() {
			for n := 0; pause(ctx, 3*time.Millisecond); n++ {
				all.Go(func() {
					if _, err := f.click(n%2, fmt.Sprint("u-", n), 1); err == nil {
						sold <- time.Now()
					} else if flashsale.CodeOf(err) != flashsale.CodeSoldOut {
						t.Error(err)
					}
				})
			}
		})
		for _, rid := range rids {
			time.Sleep(150*time.Millisecond + rand.N(70*time.Millisecond))
			back := time.Now()
			f.giveBack(rid)
			select {
			case at := <-sold:
				if took := at.Sub(back); took > 100*time.Millisecond {
					t.Errorf("sold again after %s", took)
				}
			case <-time.After(time.Second):
				t.Fatal("not sold again")
			}
		}
		time.Sleep(2 * glanceEvery) // those who were let through have come back
		before, lulls := f.far.reserves.Load(), f.far.lulls.Load()
		time.Sleep(time.Second) // 333 clicks, all from memory
		if n, looks := f.far.reserves.Load()-before, f.far.lulls.Load()-lulls; n != 0 || looks > 2*29 {
			t.Errorf("a quiet second has made %d reserve calls and %d looks", n, looks)
		}
		cancel()
		all.Wait()
		lulls = f.far.lulls.Load()
		time.Sleep(time.Minute)
		if n := f.far.lulls.Load() - lulls; n > 0 {
			t.Errorf("%d looks while nobody asks", n)
		}
	})
}

// TestHerd: 20,000 who wait for one unit do not all ask for it. It is sold, and whoever has come in vain is told so.
func TestHerd(t *testing.T) {
	t.Parallel()
	crowd := 20_000
	if underRace {
		crowd = 4000
	}
	synctest.Test(t, func(t *testing.T) {
		f := openFleet(t, 2, shopPlan{total: 3}, 10*time.Millisecond)
		rids := f.sellOut()
		time.Sleep(time.Second) // what was learnt is old
		f.giveBack(rids[0])
		before := f.far.calls()
		var won, lost atomic.Int64
		var all sync.WaitGroup
		for i := range crowd {
			r := f.request(fmt.Sprint("u-", i))
			all.Go(func() {
				switch _, err := f.engines[i%2].Reserve(t.Context(), r); flashsale.CodeOf(err) {
				case "":
					won.Add(1)
				case flashsale.CodeSoldOut:
					lost.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := f.far.calls() - before; n > 20 {
			t.Errorf("a unit that came back has made %d calls", n)
		}
		if won.Load() != 1 || int(lost.Load()) != crowd-1 {
			t.Errorf("%d won and %d lost", won.Load(), lost.Load())
		}
	})
}

// TestNothingStaysUnsold: those who are let through come to nothing, and others get what they have left.
func TestNothingStaysUnsold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := openFleet(t, 1, shopPlan{total: 2}, 10*time.Millisecond)
		f.giveBack(f.sellOut()...)
		time.Sleep(time.Second)
		var all sync.WaitGroup
		for i := range 200 {
			ctx, cancel := context.WithCancel(t.Context())
			r := f.request(fmt.Sprint("leaves-", i))
			all.Go(func() { _, _ = f.engines[0].Reserve(ctx, r) })
			all.Go(func() { time.Sleep(12 * time.Millisecond); cancel() }) // let through, on the way
		}
		all.Wait()
		if v := f.view(); v.Available != 2 {
			t.Fatalf("who has left has taken something: %d are left of 2", v.Available)
		}
		won, tries := 0, 0
		for ; won < 2 && tries < 10; tries++ {
			if _, err := f.click(0, fmt.Sprint("stays-", tries), 1); err == nil {
				won++
			}
		}
		if won != 2 {
			t.Errorf("%d of 2 are sold in %d tries", won, tries)
		}
	})
}

// TestCrowdIsNotToldSoldOut where there are units: it is to ask again.
func TestCrowdIsNotToldSoldOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := openFleet(t, 1, shopPlan{total: 100}, time.Millisecond)
		f.giveBack(f.sellOut()...)
		time.Sleep(46 * time.Second) // the jobs are too old: SQL does not keep up
		var busy atomic.Int64
		var all sync.WaitGroup
		for i := range 5000 {
			r := f.request(fmt.Sprint("u-", i))
			all.Go(func() {
				answer, err := f.engines[0].Reserve(t.Context(), r)
				if flashsale.CodeOf(err) == flashsale.CodeBusy && answer.RetryAfter >= time.Second/2 {
					busy.Add(1)
				} else {
					t.Errorf("%+v, %v", answer, err)
				}
			})
		}
		before := f.far.calls()
		all.Wait()
		if n := f.far.calls() - before; busy.Load() != 5000 || n > maxGlances*(herd*100+1) {
			t.Errorf("%d are busy, in %d calls", busy.Load(), n)
		}
	})
}

// TestQuantitiesApart: with one unit left nobody gets two from memory, and one is still sold.
func TestQuantitiesApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := openFleet(t, 2, shopPlan{total: 3, limit: 3}, time.Millisecond)
		if _, err := f.click(0, "first", 2); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			for n := range 2 {
				_, err := f.click(i, fmt.Sprint("two-", n), 2)
				wantCode(t, "two of one", err, flashsale.CodeSoldOut)
			}
		}
		before := f.far.reserves.Load()
		for n := range 1000 {
			_, err := f.click(n%2, fmt.Sprint("more-", n), int64(2+n%2))
			wantCode(t, "more than one", err, flashsale.CodeSoldOut)
			time.Sleep(time.Millisecond)
		}
		if n := f.far.reserves.Load() - before; n != 0 {
			t.Errorf("refusing two has made %d reserve calls", n)
		}
		if _, err := f.click(0, "one", 1); err != nil {
			t.Errorf("one of one: %v", err)
		}
		time.Sleep(glanceEvery)
		_, _ = f.click(1, "x", 1) // begins a look
		synctest.Wait()
		time.Sleep(glanceEvery)
		before = f.far.reserves.Load()
		_, err := f.click(1, "another", 1)
		wantCode(t, "one of none", err, flashsale.CodeSoldOut)
		if n := f.far.reserves.Load() - before; n != 0 {
			t.Errorf("%d calls", n)
		}
	})
}

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

// TestSoldOutTopUp: what is added is sold within 100 ms, all of it.
func TestSoldOutTopUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := openFleet(t, 2, shopPlan{total: 1}, time.Millisecond)
		f.sellOut()
		if r, err := f.stock.Adjust(t.Context(), phone, 1, "op-1", 500); err != nil || !r.Done {
			t.Fatalf("%+v, %v", r, err)
		}
		began := time.Now()
		var won atomic.Int64
		var all sync.WaitGroup
		for i := range 1000 {
			r := f.request(fmt.Sprint("u-", i))
			all.Go(func() {
				for {
					if _, err := f.engines[i%2].Reserve(t.Context(), r); err == nil {
						won.Add(1)
						if took := time.Since(began); took > 100*time.Millisecond {
							t.Errorf("sold after %s", took)
						}
						return
					} else if f.view().Available == 0 {
						return
					}
					time.Sleep(5 * time.Millisecond)
				}
			})
		}
		all.Wait()
		if won.Load() != 500 {
			t.Errorf("%d of 500 are sold", won.Load())
		}
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

package engine

import (
	"context"
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

// TestEveryHolderGoesToTheStock, on every instance, with the token that has won and with another one.
func TestEveryHolderGoesToTheStock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const total = 50
		f := openFleet(t, 2, shopPlan{total: total}, time.Millisecond)
		winners := make([]ReserveRequest, total)
		for i := range winners {
			winners[i] = f.request(fmt.Sprint("early-", i))
			if _, err := f.engines[0].Reserve(t.Context(), winners[i]); err != nil {
				t.Fatal(err)
			}
		}
		f.sellOut()
		for n := range 2 * total {
			r := winners[n/2]
			if again, err := f.engines[n%2].Reserve(t.Context(), r); err != nil || !again.Known {
				t.Errorf("the same token: %+v, %v", again, err)
			}
			_, err := f.click(n%2, r.User, 1)
			wantCode(t, "another token", err, flashsale.CodePurchaseLimit)
		}
	})
}

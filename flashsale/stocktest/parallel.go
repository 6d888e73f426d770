package stocktest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

func parallelTests() []test {
	return []test{
		{"1,000 reserves by one user with a limit of 1 give one", oneOfAThousand},
		{"1,000 repeats of one rid take once", oneRID},
		{"200 users want 50 units", oversell},
		{"effects, twice each and in any order", parallelEffects},
		{"consumers share the jobs", parallelPull},
		{"an adjustment by many", parallelAdjust},
	}
}

// together runs f for 0 to n-1, all at the same time.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-begin
			f(i)
		})
	}
	close(begin)
	wg.Wait()
}

// tally counts what became of parallel reserves.
type tally struct{ accepted, known, refused, wrong atomic.Int64 }

func (c *tally) count(a *flashsale.Answer, code flashsale.Code) {
	switch {
	case a.Accepted && !a.Known && a.Code == "":
		c.accepted.Add(1)
	case a.Known && !a.Accepted && a.Code == "":
		c.known.Add(1)
	case a.Code == code:
		c.refused.Add(1)
	default:
		c.wrong.Add(1)
	}
}

func (c *tally) are(d *desk, accepted, known, refused int64) {
	d.Helper()
	got := [4]int64{c.accepted.Load(), c.known.Load(), c.refused.Load(), c.wrong.Load()}
	equal(d, "accepted, known, refused and wrong", got, [4]int64{accepted, known, refused, 0})
}

// try reserves out of a goroutine: it cannot end the test, but make it fail.
func (d *desk) try(stock Stock, ask *flashsale.Ask) flashsale.Answer {
	a, err := stock.Reserve(d.ctx, d.key, d.epoch, ask)
	if err != nil {
		d.Errorf("Reserve: %v", err)
	}
	return a
}

func oneOfAThousand(d *desk) {
	d.settings.PurchaseLimit = 1
	d.sell(1000)
	var c tally
	together(1000, func(i int) {
		a := d.try(d.stock, d.ask(fmt.Sprint("r", i), "u1", 1))
		c.count(&a, flashsale.CodePurchaseLimit)
	})
	c.are(d, 1, 0, 999)
	d.figures(999, 1, 0)
	d.depth(1, 0, 0)
}

func oneRID(d *desk) {
	d.sell(1000)
	var c tally
	together(1000, func(int) {
		a := d.try(d.stock, d.ask("r1", "u1", 2))
		c.count(&a, "")
	})
	c.are(d, 1, 999, 0)
	d.figures(998, 2, 0)
	d.depth(1, 0, 0)
}

func oversell(d *desk) {
	d.sell(50)
	var c tally
	together(200, func(i int) {
		for n := range 5 {
			a := d.try(d.stock, d.ask(fmt.Sprint("r", i, "-", n), fmt.Sprint("u", i), 1))
			c.count(&a, flashsale.CodeSoldOut)
		}
	})
	c.are(d, 50, 0, 950)
	d.figures(0, 50, 0)
	d.depth(50, 0, 0)
	equal(d, "entries", d.countEntries(), 50)
}

func parallelEffects(d *desk) {
	d.settings.PurchaseLimit = 1
	d.sell(100)
	for i := range 60 {
		d.accept(fmt.Sprint("r", i), fmt.Sprint("u", i), 1)
	}
	var moved atomic.Int64
	together(8, func(worker int) {
		for n := range 60 {
			i := (n*7 + worker*13) % 60
			rid, user := fmt.Sprint("r", i), fmt.Sprint("u", i)
			end := []flashsale.State{flashsale.Confirmed, flashsale.Cancelled, flashsale.Expired}[i%3]
			effects := []flashsale.Effect{effect(rid, user, 1, end, 3), effect(rid, user, 1, flashsale.Reserved, 1)}
			if worker%2 == 0 {
				effects[0], effects[1] = effects[1], effects[0]
			}
			applied, err := d.stock.Apply(d.ctx, d.key, d.epoch, effects, nil)
			if err != nil {
				d.Errorf("Apply: %v", err)
				return
			}
			for k, a := range applied {
				if a == flashsale.AppliedMoved && effects[k].State == end {
					moved.Add(1)
				}
			}
		}
	})
	equal(d, "ends that moved", moved.Load(), 60)
	d.figures(80, 0, 20)
}

func parallelPull(d *desk) {
	d.settings.Rate = flashsale.MaxRate
	d.sell(10_000)
	for i := range 500 {
		d.accept(fmt.Sprint("r", i), fmt.Sprint("u", i), 1)
	}
	var mu sync.Mutex
	seen := map[string]int{}
	together(8, func(worker int) {
		for {
			jobs, err := d.stock.Pull(d.ctx, d.key, d.epoch, fmt.Sprint("c", worker), 7, time.Hour)
			if err != nil {
				d.Errorf("Pull: %v", err)
			}
			if len(jobs) == 0 {
				return
			}
			mu.Lock()
			for _, j := range jobs {
				seen[j.RID]++
			}
			mu.Unlock()
		}
	})
	equal(d, "jobs", len(seen), 500)
	for rid, n := range seen {
		if n != 1 {
			d.Errorf("%s was handed out %d times", rid, n)
		}
	}
	d.depth(500, 500, 0)
}

func parallelAdjust(d *desk) {
	d.sell(10)
	var done atomic.Int64
	together(64, func(i int) {
		r, err := d.stock.Adjust(d.ctx, d.key, d.epoch, fmt.Sprint("op-", i%4), -3)
		if err != nil {
			d.Errorf("Adjust: %v", err)
		}
		if r.Done {
			done.Add(1)
		}
	})
	equal(d, "done", done.Load(), 48)
	d.figures(1, 0, 0)
}

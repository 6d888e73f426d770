package stocktest

import (
	"fmt"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

func operateTests() []test {
	return []test{
		{"top-up, once for each id", topUp},
		{"withdrawal, once for each id", withdraw},
		{"a refused withdrawal stays refused", refusedStays},
		{"the higher version of settings holds", versions},
		{"a higher rate holds at once", higherRate},
		{"a lower rate waits for the queue", lowerRate},
		{"a lower rate that waits is replaced", replacedRate},
		{"a lower rate holds at once where the queue fits it", lowerRateAtOnce},
	}
}

func (d *desk) adjust(id string, delta int64, done bool, available int64) {
	d.Helper()
	before := d.view()
	r, err := d.stock.Adjust(d.ctx, d.key, d.epoch, id, delta)
	d.check("Adjust", err)
	equal(d, "adjusting "+id, r, flashsale.AdjustResult{Done: done, Available: available})
	after := d.view()
	equal(d, "available after "+id, after.Available, available)
	if moved := after.Available != before.Available; moved && after.Seq <= before.Seq {
		d.Fatalf("%s: seq stays at %d", id, after.Seq)
	}
}

func topUp(d *desk) {
	d.sell(0)
	d.refuse(d.ask("r1", "u1", 1), flashsale.CodeSoldOut)
	d.adjust("op-1", 5, true, 5)
	d.adjust("op-1", 5, true, 5)
	d.accept("r1", "u1", 2)
	d.adjust("op-1", 5, true, 3)
	d.adjust("op-2", 5, true, 8)
	d.adjust("op-3", flashsale.MaxTotal/2, true, flashsale.MaxTotal/2+8)
	d.figures(flashsale.MaxTotal/2+8, 2, 0)
}

func withdraw(d *desk) {
	d.sell(10)
	d.accept("r1", "u1", 4)
	d.adjust("op-1", -6, true, 0)
	d.adjust("op-1", -6, true, 0)
	d.refuse(d.ask("r2", "u2", 1), flashsale.CodeSoldOut)
	d.adjust("op-2", 1, true, 1)
	d.adjust("op-1", -6, true, 1)
	d.adjust("op-3", -1, true, 0)
	d.figures(0, 4, 0)
	d.apply(effect("r1", "u1", 4, flashsale.Rejected, 1), flashsale.AppliedMoved)
	d.figures(4, 0, 0)
}

func refusedStays(d *desk) {
	d.sell(10)
	d.accept("r1", "u1", 4)
	d.adjust("op-1", -7, false, 6)
	d.adjust("op-1", -7, false, 6)
	d.apply(effect("r1", "u1", 4, flashsale.Rejected, 1), flashsale.AppliedMoved)
	d.adjust("op-1", -7, false, 10)
	d.adjust("op-2", -7, true, 3)
	d.adjust("op-1", -7, false, 3)
	d.figures(3, 0, 0)
}

func versions(d *desk) {
	d.settings.Version = 5
	d.sell(10)
	had := d.view().Settings
	equal(d, "settings", had, d.settings)
	for _, version := range []int64{-1, 0, 4, 5} {
		s := d.settings
		s.Version, s.Status, s.PurchaseLimit, s.Rate = version, flashsale.Closed, 1, 7
		before := d.view()
		d.check("Configure", d.stock.Configure(d.ctx, d.key, d.epoch, &s))
		equal(d, "the view", d.view(), before)
	}
	seq := d.view().Seq
	s := flashsale.Settings{
		Version: 1 << 50, Status: flashsale.Paused, OpensAt: start().Add(-time.Hour), ClosesAt: start().Add(time.Microsecond * 3),
		PurchaseLimit: flashsale.MaxPurchaseLimit, Rate: flashsale.MaxRate,
	}
	for range 2 {
		d.check("Configure", d.stock.Configure(d.ctx, d.key, d.epoch, &s))
		v := d.view()
		equal(d, "settings", v.Settings, s)
		if v.Seq <= seq {
			d.Errorf("seq stays at %d", v.Seq)
		}
	}
}

// fill accepts jobs until the queue has n.
func (d *desk) fill(n int) {
	d.Helper()
	for i := int(d.view().Queue.Depth); i < n; i++ {
		d.accept(fmt.Sprintf("fill%d", i), fmt.Sprint("u", i), 1)
	}
}

func (d *desk) rates(rate, next int64) {
	d.Helper()
	v := d.view()
	if v.Settings.Rate != rate || v.NextRate != next || v.Settings.Version != d.settings.Version {
		d.Fatalf("rate %d and next %d at version %d, want %d and %d at %d", v.Settings.Rate, v.NextRate, v.Settings.Version, rate, next, d.settings.Version)
	}
}

func higherRate(d *desk) {
	d.settings.Rate = 1
	d.sell(1000)
	d.fill(45)
	d.busy("more")
	d.set(func(s *flashsale.Settings) { s.Rate = 100 })
	d.rates(100, 0)
	d.accept("more", "u-more", 1)
	equal(d, "pulled after a second", len(d.pullAfter(time.Second, 10)), 10)
}

func lowerRate(d *desk) {
	d.settings.Rate = 1000
	d.sell(1000)
	d.fill(100)
	d.set(func(s *flashsale.Settings) { s.Rate, s.PurchaseLimit = 2, 4 }) // 90 jobs fit
	d.rates(1000, 2)
	equal(d, "what else came with it", d.view().Settings.PurchaseLimit, 4)
	d.busy("more")
	jobs := d.pulls("c1", 9, "fill0", "fill1", "fill2", "fill3", "fill4", "fill5", "fill6", "fill7", "fill8")
	d.ack(ids(jobs)...)
	d.rates(1000, 2)
	d.busy("more")
	d.ack(ids(d.pullAfter(time.Second, 1))...)
	d.depth(90, 0, 0)
	d.rates(2, 0)
	d.busy("more") // at the new bound
	d.ack(ids(d.pullAfter(time.Second, 1))...)
	d.accept("more", "u-more", 1)
}

func replacedRate(d *desk) {
	d.settings.Rate = 1000
	d.sell(1000)
	d.fill(200)
	d.set(func(s *flashsale.Settings) { s.Rate = 2 })
	d.rates(1000, 2)
	d.set(func(s *flashsale.Settings) { s.Rate = 3 })
	d.rates(1000, 3)
	d.set(func(s *flashsale.Settings) { s.Status = flashsale.Paused }) // SQL still says 3
	d.rates(1000, 3)
	d.set(func(s *flashsale.Settings) { s.Status, s.Rate = flashsale.Open, 1000 })
	d.rates(1000, 0)
	d.accept("more", "u-more", 1)
	d.set(func(s *flashsale.Settings) { s.Rate = 4 })
	d.rates(1000, 4)
	d.set(func(s *flashsale.Settings) { s.Rate = 5 }) // 225 jobs fit
	d.rates(5, 0)
	d.accept("again", "u-again", 1)
}

func lowerRateAtOnce(d *desk) {
	d.settings.Rate = 1000
	d.sell(1000)
	d.fill(90)
	d.set(func(s *flashsale.Settings) { s.Rate = 2 })
	d.rates(2, 0)
	d.busy("more")
	d.ack(ids(d.pullAfter(2*time.Second, 1))...)
	d.accept("more", "u-more", 1)
}

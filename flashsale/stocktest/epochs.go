package stocktest

import (
	"fmt"
	"slices"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

func epochTests() []test {
	return []test{
		{"nothing runs without a pointer", noPointer},
		{"nothing runs in another epoch", staleEpoch},
		{"nothing runs before the keys are loaded", notLoaded},
		{"nobody reserves before there are settings", noSettings},
		{"the pointer only rises", pointerRises},
		{"pointing again while it is not loaded", pointsAgain},
		{"older epochs are drained in order", drains},
		{"an older epoch is dropped, and no other", drops},
		{"an epoch knows nothing of another", epochsApart},
		{"several older epochs", manyOlder},
		{"what is removed was never there", removes},
	}
}

// calls are all calls that need an epoch with keys.
func (d *desk) calls() map[string]func(epoch int64) error {
	return map[string]func(epoch int64) error{
		"Reserve":   func(e int64) error { _, err := d.stock.Reserve(d.ctx, d.key, e, d.ask("x", "ux", 1)); return err },
		"Configure": func(e int64) error { s := d.settings; s.Version += 9; return d.stock.Configure(d.ctx, d.key, e, &s) },
		"Adjust":    func(e int64) error { _, err := d.stock.Adjust(d.ctx, d.key, e, "op-x", 1); return err },
		"Find":      func(e int64) error { _, err := d.stock.Find(d.ctx, d.key, e, []string{"x"}); return err },
		"Holds":     func(e int64) error { _, err := d.stock.Holds(d.ctx, d.key, e, "ux"); return err },
		"Lull":      func(e int64) error { _, err := d.stock.Lull(d.ctx, d.key, e, flashsale.LullAsk{Limit: 1}); return err },
		"Due":       func(e int64) error { _, err := d.stock.Due(d.ctx, d.key, e, 1); return err },
		"Entries":   func(e int64) error { _, _, err := d.stock.Entries(d.ctx, d.key, e, "", 1); return err },
		"Forget":    func(e int64) error { _, err := d.stock.Forget(d.ctx, d.key, e, []string{"x"}); return err },
		"Pull":      func(e int64) error { _, err := d.stock.Pull(d.ctx, d.key, e, "c", 1, reclaim); return err },
		"Dead":      func(e int64) error { _, err := d.stock.Dead(d.ctx, d.key, e, 1); return err },
		"Revive":    func(e int64) error { _, err := d.stock.Revive(d.ctx, d.key, e, []string{"x"}); return err },
		"Bury": func(e int64) error {
			return d.stock.Bury(d.ctx, d.key, e, &flashsale.Job{ID: "1-1", RID: "x"}, "r")
		},
		"Apply": func(e int64) error {
			_, err := d.stock.Apply(d.ctx, d.key, e, []flashsale.Effect{effect("x", "ux", 1, flashsale.Rejected, 1)}, []string{"1-1"})
			return err
		},
	}
}

// allFail fails the test unless all calls fail with a code and change nothing.
func (d *desk) allFail(epoch int64, code flashsale.Code) {
	d.Helper()
	before := d.view()
	for name, call := range d.calls() {
		d.fails(fmt.Sprintf("%s in epoch %d", name, epoch), call(epoch), code)
		equal(d, "the view after "+name, d.view(), before)
	}
}

// loaderFails is that for the loader's calls, which work before there are keys.
func (d *desk) loaderFails(epoch int64) {
	d.Helper()
	_, err := d.stock.Drain(d.ctx, d.key, epoch, epoch-1, "", 1)
	d.fails("Drain", err, flashsale.CodeStaleEpoch)
	d.fails("Load", d.stock.Load(d.ctx, d.key, epoch, &flashsale.LoadPart{Last: true, Total: 1}), flashsale.CodeStaleEpoch)
	d.fails("Drop", d.stock.Drop(d.ctx, d.key, epoch, epoch-1), flashsale.CodeStaleEpoch)
}

func noPointer(d *desk) {
	for _, epoch := range []int64{0, 1, 2} {
		d.allFail(epoch, flashsale.CodeStaleEpoch)
		d.loaderFails(epoch)
	}
	for _, epoch := range []int64{0, -1} {
		_, err := d.stock.Point(d.ctx, d.key, epoch)
		d.fails(fmt.Sprint("Point ", epoch), err, flashsale.CodeStaleEpoch)
	}
	equal(d, "the pointer", d.view().Epoch, 0)
}

func staleEpoch(d *desk) {
	d.epoch = 5
	d.sell(10)
	d.accept("r1", "u1", 1)
	for _, epoch := range []int64{0, 1, 4, 6, 1 << 40} {
		d.allFail(epoch, flashsale.CodeStaleEpoch)
		d.loaderFails(epoch)
	}
	d.figures(9, 1, 0)
	d.repeat(d.ask("r1", "u1", 1), flashsale.Pending, 0)
}

func notLoaded(d *desk) {
	equal(d, "older epochs", len(d.point()), 0)
	check := func() {
		d.Helper()
		d.allFail(1, flashsale.CodeRebuilding)
		v := d.view()
		equal(d, "the view", fmt.Sprint(v.Epoch, v.Loaded, v.Total, []flashsale.Status{v.Settings.Status}), "1 false 0 []")
	}
	check()
	d.load(flashsale.LoadPart{
		Entries: []flashsale.Entry{{RID: "r1", User: "u1", Quantity: 1, State: flashsale.Reserved, Version: 1, At: start()}},
		Buyers:  []flashsale.Buyer{{User: "u1", Quantity: 1, RIDs: []string{"r1"}}},
	})
	check()
	d.load(flashsale.LoadPart{Last: true, Total: 10, Reserved: 1})
	equal(d, "loaded", d.view().Loaded, true)
	d.figures(9, 1, 0)
	d.is("r1", flashsale.Reserved, 1)
}

func noSettings(d *desk) {
	d.point()
	d.load(flashsale.LoadPart{Last: true, Total: 10})
	v := d.view()
	equal(d, "the status", v.Settings.Status, "")
	if v.Settings.Version >= 0 {
		d.Errorf("the version of no settings is %d: SQL's first one could not follow", v.Settings.Version)
	}
	_, err := d.stock.Reserve(d.ctx, d.key, d.epoch, d.ask("r1", "u1", 1))
	d.fails("Reserve", err, flashsale.CodeRebuilding)
	d.is("r1", flashsale.None, 0)
	d.apply(effect("r2", "u2", 1, flashsale.Rejected, 1), flashsale.AppliedStored) // the others work
	d.settings.Version = 0
	d.configure()
	d.accept("r1", "u1", 1)
}

func pointerRises(d *desk) {
	d.epoch = 3
	d.sell(10)
	for _, epoch := range []int64{-1, 0, 1, 2, 3} {
		_, err := d.stock.Point(d.ctx, d.key, epoch)
		d.fails(fmt.Sprint("Point ", epoch), err, flashsale.CodeStaleEpoch)
	}
	equal(d, "the pointer", d.view().Epoch, 3)
	d.accept("r1", "u1", 1)
	d.epoch = 10
	equal(d, "older", fmt.Sprint(d.point()), "[3]")
	for _, epoch := range []int64{3, 4, 9} {
		_, err := d.stock.Point(d.ctx, d.key, epoch)
		d.fails(fmt.Sprint("Point ", epoch), err, flashsale.CodeStaleEpoch)
	}
	equal(d, "the pointer", d.view().Epoch, 10)
}

func pointsAgain(d *desk) {
	d.sell(10)
	d.epoch = 2
	for range 3 {
		equal(d, "older", fmt.Sprint(d.point()), "[1]")
	}
	d.load(flashsale.LoadPart{Adjusted: []string{"op-1"}})
	equal(d, "older", fmt.Sprint(d.point()), "[1]")
	d.load(flashsale.LoadPart{Last: true, Total: 10})
	_, err := d.stock.Point(d.ctx, d.key, d.epoch)
	d.fails("Point to what is loaded", err, flashsale.CodeStaleEpoch)
	equal(d, "loaded", d.view().Loaded, true)
	d.configure()
	d.adjust("op-1", 5, true, 10) // pointing again has not thrown away what was loaded
}

// drain returns the rids of an older epoch's queue, read in pages.
func (d *desk) drain(older int64, limit int) []flashsale.Job {
	d.Helper()
	var all []flashsale.Job
	for after := ""; ; after = all[len(all)-1].ID {
		jobs, err := d.stock.Drain(d.ctx, d.key, d.epoch, older, after, limit)
		d.check("Drain", err)
		if len(jobs) > limit {
			d.Fatalf("%d jobs drained, at most %d were asked for", len(jobs), limit)
		}
		if len(all) > 10_000 {
			d.Fatal("the drain does not end")
		}
		if len(jobs) == 0 {
			return all
		}
		all = append(all, jobs...)
	}
}

func rids(jobs []flashsale.Job) string {
	out := make([]string, len(jobs))
	for i := range jobs {
		out[i] = jobs[i].RID
	}
	return fmt.Sprint(out)
}

func drains(d *desk) {
	d.sell(100)
	d.acceptAll("a", "b", "c", "d", "e", "f", "g")
	jobs := d.pulls("c1", 4, "a", "b", "c", "d")
	d.ack(jobs[1].ID)
	d.bury(jobs[3], "poison")
	d.clock.advance(reclaim + time.Millisecond)
	again := d.pulls("c2", 1, "a")
	d.bury(d.pulls("c2", 1, "c")[0], "revived")
	for _, l := range d.dead(10) {
		if l.RID == "c" {
			d.revive(1, l.ID)
		}
	}
	d.epoch = 2
	d.point()
	for _, limit := range []int{1, 2, 100} {
		got := d.drain(1, limit)
		equal(d, "drained", rids(got), "[a e f g c]")
		if got[0].User != "u-a" || got[0].Quantity != 1 || got[0].ID != again[0].ID || got[0].Seq != again[0].Seq {
			d.Errorf("drained %+v, pulled was %+v", got[0], again[0])
		}
	}
	equal(d, "an epoch that never was", len(d.drain(0, 10)), 0)
	for _, older := range []int64{2, 3} {
		_, err := d.stock.Drain(d.ctx, d.key, 2, older, "", 10)
		d.fails(fmt.Sprint("Drain of ", older), err, flashsale.CodeInvalidArgument)
	}
	d.load(flashsale.LoadPart{Last: true, Total: 100})
	equal(d, "drained when loaded", rids(d.drain(1, 100)), "[a e f g c]")
	d.configure()
	d.pulls("c1", 10) // nothing has gone over by itself
}

func drops(d *desk) {
	d.sell(100)
	d.acceptAll("a")
	for _, older := range []int64{1, 2} {
		d.fails("Drop", d.stock.Drop(d.ctx, d.key, 1, older), flashsale.CodeInvalidArgument)
	}
	d.is("a", flashsale.Pending, 0)
	d.epoch = 2
	d.sell(50)
	d.acceptAll("b")
	for range 2 {
		d.check("Drop", d.stock.Drop(d.ctx, d.key, 2, 1))
		equal(d, "drained", len(d.drain(1, 10)), 0)
	}
	d.is("b", flashsale.Pending, 0)
	d.figures(49, 1, 0)
	d.epoch = 3
	equal(d, "older", fmt.Sprint(d.point()), "[2]")
}

func epochsApart(d *desk) {
	d.settings.PurchaseLimit = 1
	d.sell(10)
	d.accept("r1", "u1", 1)
	d.adjust("op-1", 5, true, 14)
	d.bury(d.pulls("c1", 1, "r1")[0], "poison")
	d.epoch = 2
	d.sell(10)
	d.is("r1", flashsale.None, 0)
	d.depth(0, 0, 0)
	d.accept("r2", "u1", 1)
	d.accept("r1", "u3", 1)
	d.adjust("op-1", 5, true, 13)
	d.pulls("c1", 10, "r2", "r1")
	d.figures(13, 2, 0)
}

func manyOlder(d *desk) {
	for epoch := int64(1); epoch <= 4; epoch++ {
		d.epoch = epoch * 10
		older := d.point()
		if !slices.IsSorted(older) || len(older) != int(epoch-1) {
			d.Fatalf("older than %d: %v", d.epoch, older)
		}
		d.load(flashsale.LoadPart{Last: true, Total: 10})
		d.settings.Version++
		d.configure()
		d.accept(fmt.Sprint("r", d.epoch), "u", 1)
	}
	for _, older := range []int64{20, 10, 30} {
		equal(d, "drained", rids(d.drain(older, 10)), fmt.Sprintf("[r%d]", older))
		d.check("Drop", d.stock.Drop(d.ctx, d.key, d.epoch, older))
	}
	d.epoch = 50
	equal(d, "older", fmt.Sprint(d.point()), "[40]")
}

// removes: a sku is as new afterwards, with older epochs and without them; whoever is behind or ahead removes nothing.
func removes(d *desk) {
	other := d.on(newKey())
	other.sell(10)
	other.accept("r1", "u1", 1)
	remove := func(epoch int64) error { return d.stock.Remove(d.ctx, d.key, epoch) }
	d.check("Remove of nothing", remove(1))
	for _, older := range []int64{0, 1, 2} {
		for d.epoch = 1; d.epoch <= older; d.epoch++ { // each is left behind with its keys
			d.sell(10)
			d.acceptAll("r1", "r2")
		}
		d.sell(20)
		d.acceptAll("r1", "r2", "r3")
		d.bury(d.pulls("c1", 2, "r1", "r2")[0], "bad")
		d.apply(effect("r3", "u-r3", 1, flashsale.Confirmed, 1), flashsale.AppliedMoved)
		_, err := d.stock.Adjust(d.ctx, d.key, d.epoch, "op", 1)
		d.check("Adjust", err)
		before := d.view()
		for _, epoch := range []int64{d.epoch - 1, d.epoch + 1} {
			if epoch > 0 {
				d.fails(fmt.Sprint("Remove in epoch ", epoch), remove(epoch), flashsale.CodeStaleEpoch)
			}
		}
		equal(d, "the view", d.view(), before)
		for range 2 {
			d.check("Remove", remove(d.epoch))
			v := d.view()
			equal(d, "the view", v, flashsale.StockView{Run: v.Run, Now: v.Now})
		}
		d.allFail(d.epoch, flashsale.CodeStaleEpoch)
		d.epoch = 1
	}
	d.sell(5)
	d.figures(5, 0, 0)
	d.is("r3", flashsale.None, 0)
	d.depth(0, 0, 0)
	_, err := d.stock.Adjust(d.ctx, d.key, d.epoch, "op", 1)
	d.check("Adjust", err)
	d.figures(6, 0, 0)
	d.accept("r1", "u-r3", 5) // nobody has bought anything
	other.figures(9, 1, 0)
}

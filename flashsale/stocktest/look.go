package stocktest

import (
	"fmt"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

func lookTests() []test {
	return []test{
		{"find", finds},
		{"what a user holds", holds},
		{"due, oldest first", dueInOrder},
		{"entries, by cursor", walks},
		{"entries while others come and go", walksWhileChanging},
		{"forget what has ended long ago", forgets},
		{"the view of a key that nobody knows", viewOfNothing},
	}
}

func finds(d *desk) {
	d.sell(10)
	d.acceptAll("a", "b")
	rids := []string{"b", "none", "a", "b"}
	found, err := d.stock.Find(d.ctx, d.key, d.epoch, rids)
	d.check("Find", err)
	equal(d, "found", len(found), 4)
	for i, e := range found {
		equal(d, "the rid", e.RID, rids[i])
		want := flashsale.Pending
		if e.RID == "none" {
			want = flashsale.None
		}
		equal(d, "the state of "+e.RID, e.State, want)
	}
	equal(d, "the unknown one", found[1], flashsale.Entry{RID: "none"})
	none, err := d.stock.Find(d.ctx, d.key, d.epoch, nil)
	d.check("Find", err)
	equal(d, "found of none", len(none), 0)
}

// holds: what is pending, reserved or sold is told, and what was given back is not; of many the latest.
func holds(d *desk) {
	d.settings.PurchaseLimit = 50
	d.sell(100)
	want := func(user string, rids ...string) {
		d.Helper()
		got, err := d.stock.Holds(d.ctx, d.key, d.epoch, user)
		d.check("Holds", err)
		equal(d, fmt.Sprintf("what %q holds", user), fmt.Sprintf("%q", got), fmt.Sprintf("%q", rids))
	}
	want("ann")
	want("")
	for _, rid := range []string{"a", "b", "c"} {
		d.accept(rid, "ann", 1)
	}
	d.accept("x", "an", 1)
	d.accept("y", "\x00\xff,", 2)
	want("ann", "a", "b", "c")
	want("an", "x")
	want("\x00\xff,", "y")
	d.apply(effect("b", "ann", 1, flashsale.Reserved, 1), flashsale.AppliedMoved)
	d.apply(effect("c", "ann", 1, flashsale.Confirmed, 3), flashsale.AppliedMoved)
	want("ann", "a", "b", "c")
	d.apply(effect("a", "ann", 1, flashsale.Rejected, 1), flashsale.AppliedMoved)
	want("ann", "b", "c")
	d.apply(effect("x", "an", 1, flashsale.Rejected, 1), flashsale.AppliedMoved)
	want("an")
	var latest []string
	for i := range 18 {
		rid := fmt.Sprint("m", i)
		d.accept(rid, "many", 1)
		if latest = append(latest, rid); len(latest) > 16 {
			latest = latest[1:]
		}
	}
	want("many", latest...)
}

func (d *desk) due(limit int, rids ...string) {
	d.Helper()
	due, err := d.stock.Due(d.ctx, d.key, d.epoch, limit)
	d.check("Due", err)
	got := make([]string, len(due))
	for i, e := range due {
		got[i] = e.RID
		sameEntry(d, e, d.find(e.RID))
	}
	equal(d, "due", fmt.Sprint(got), fmt.Sprint(rids))
}

func dueInOrder(d *desk) {
	d.sell(100)
	for i := range 9 {
		d.accept(fmt.Sprint("r", 9-i), fmt.Sprint("u", i), 1)
		d.clock.advance(time.Second)
	}
	d.due(10)
	d.clock.advance(flashsale.PendingFor - 9*time.Second - time.Millisecond)
	d.due(10)
	d.clock.advance(time.Millisecond)
	d.due(10, "r9")
	d.clock.advance(8 * time.Second)
	d.due(3, "r9", "r8", "r7")
	d.apply(effect("r9", "u0", 1, flashsale.Rejected, 1), flashsale.AppliedMoved)
	d.apply(effect("r6", "u3", 1, flashsale.Reserved, 1), flashsale.AppliedMoved)
	d.apply(effect("r1", "u8", 1, flashsale.Rejected, 1), flashsale.AppliedMoved)
	d.due(3, "r8", "r7", "r5")
	d.due(10, "r8", "r7", "r5", "r4", "r3", "r2")
	d.due(0)
}

// walk returns what a walk through all entries meets, and how often.
func (d *desk) walk(limit int, between func()) map[string]int {
	d.Helper()
	met := map[string]int{}
	cursor := ""
	for pages := 0; ; pages++ {
		page, next, err := d.stock.Entries(d.ctx, d.key, d.epoch, cursor, limit)
		d.check("Entries", err)
		for _, e := range page {
			met[e.RID]++
			if e.State != flashsale.Pending && e.State != flashsale.Rejected {
				d.Errorf("met %+v", e)
			}
		}
		if next == "" {
			return met
		}
		if cursor = next; pages > 10_000 {
			d.Fatal("the walk does not end")
		}
		between()
	}
}

func walks(d *desk) {
	d.sell(1000)
	equal(d, "nothing", len(d.walk(10, func() {})), 0)
	for i := range 300 {
		d.accept(fmt.Sprint("r", i), fmt.Sprint("u", i), 1)
	}
	for _, limit := range []int{1, 7, 100, 10_000} {
		met := d.walk(limit, func() {})
		equal(d, "met", len(met), 300)
	}
	page, _, err := d.stock.Entries(d.ctx, d.key, d.epoch, "", 1000)
	d.check("Entries", err)
	for _, e := range page[:3] {
		sameEntry(d, e, d.find(e.RID))
	}
}

func walksWhileChanging(d *desk) {
	d.settings.ClosesAt = start().Add(1000 * time.Hour)
	d.sell(10_000)
	for i := range 200 {
		d.accept(fmt.Sprint("stay", i), fmt.Sprint("u", i), 1)
		d.apply(effect(fmt.Sprint("gone", i), "g", 1, flashsale.Rejected, 1), flashsale.AppliedStored)
	}
	d.clock.advance(flashsale.Retention + time.Second)
	n := 0
	met := d.walk(20, func() {
		for range 10 {
			_, err := d.stock.Forget(d.ctx, d.key, d.epoch, []string{fmt.Sprint("gone", n)})
			d.check("Forget", err)
			d.apply(effect(fmt.Sprint("new", n), "n", 1, flashsale.Rejected, 1), flashsale.AppliedStored)
			n++
		}
	})
	for i := range 200 {
		if met[fmt.Sprint("stay", i)] == 0 {
			d.Errorf("the walk does not meet stay%d", i)
		}
	}
}

func (d *desk) forget(want int, rids ...string) {
	d.Helper()
	before := d.view()
	n, err := d.stock.Forget(d.ctx, d.key, d.epoch, rids)
	d.check("Forget", err)
	equal(d, "forgotten", n, want)
	after := d.view()
	after.Seq = before.Seq
	equal(d, "the figures", after, before)
}

func forgets(d *desk) {
	d.settings.ClosesAt = start().Add(1000 * time.Hour)
	d.settings.PurchaseLimit = 1
	d.sell(100)
	d.acceptAll("pending", "held", "sold", "expired", "rejected")
	d.ack(ids(d.pull("c1", 5))...) // else busy later
	for rid, state := range map[string]flashsale.State{
		"held": flashsale.Confirming, "sold": flashsale.Confirmed, "expired": flashsale.Expired, "rejected": flashsale.Rejected,
	} {
		d.apply(effect(rid, "u-"+rid, 1, state, 1), flashsale.AppliedMoved)
	}
	d.clock.advance(time.Hour)
	d.apply(effect("later", "u", 1, flashsale.Cancelled, 3), flashsale.AppliedStored)
	all := []string{"pending", "held", "sold", "expired", "rejected", "later", "unknown"}
	d.clock.advance(flashsale.Retention - time.Hour - time.Millisecond)
	d.forget(0, all...)
	d.clock.advance(2 * time.Millisecond)
	d.forget(2, "sold", "expired")
	d.forget(1, all...)
	d.forget(0, all...)
	for _, rid := range []string{"sold", "expired", "rejected"} {
		d.is(rid, flashsale.None, 0)
	}
	d.is("pending", flashsale.Pending, 0)
	d.is("held", flashsale.Confirming, 1)
	d.is("later", flashsale.Cancelled, 3)
	d.figures(97, 2, 1)
	d.refuse(d.ask("new", "u-sold", 1), flashsale.CodePurchaseLimit) // what is paid stays counted
	d.accept("expired", "u-expired", 1)                              // a rid that is forgotten is new
}

func viewOfNothing(d *desk) {
	v, err := d.stock.View(d.ctx, newKey())
	d.check("View", err)
	if v.Run == "" || !v.Now.Equal(d.clock.now()) {
		d.Errorf("the run is %q and the time %s", v.Run, v.Now)
	}
	v.Run, v.Now = "", time.Time{}
	equal(d, "the view", v, flashsale.StockView{})
	equal(d, "the same run for all keys", d.view().Run, d.view().Run)
}

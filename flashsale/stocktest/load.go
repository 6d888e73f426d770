package stocktest

import (
	"fmt"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

func loadTests() []test {
	return []test{
		{"counters, entries, buyers and adjustments", loadsAll},
		{"in parts, each of them twice", loadsInParts},
		{"a loaded epoch takes no part", loadedIsClosed},
		{"a part for a lower epoch comes too late", lateLoad},
		{"what was loaded in part is gone with its epoch", partlyLoaded},
		{"what is loaded goes on", loadedGoesOn},
	}
}

// snapshot is of 100 units: 3 reserved, 2 confirming, 7 sold of which 3 are known.
func snapshot() flashsale.LoadPart {
	entry := func(rid, user string, quantity int64, state flashsale.State, version int64) flashsale.Entry {
		return flashsale.Entry{RID: rid, User: user, Quantity: quantity, State: state, Version: version, At: start().Add(-time.Minute)}
	}
	return flashsale.LoadPart{
		Entries: []flashsale.Entry{
			entry("res", "u1", 3, flashsale.Reserved, 1), entry("conf", "u2", 2, flashsale.Confirming, 2), entry("sold", "u3", 3, flashsale.Confirmed, 3),
			entry("can", "u1", 1, flashsale.Cancelled, 2), entry("exp", "u4", 1, flashsale.Expired, 4), entry("rej", "u4", 2, flashsale.Rejected, 1),
		},
		Buyers: []flashsale.Buyer{
			{User: "u1", Quantity: 3, RIDs: []string{"res"}}, {User: "u2", Quantity: 2, RIDs: []string{"conf"}},
			{User: "u3", Quantity: 5, RIDs: []string{"sold", "older"}}, {User: "u5", Quantity: 2},
		},
		Adjusted: []string{"op-1", "op-2"},
		Last:     true, Total: 100, Reserved: 5, Sold: 7,
	}
}

// snapshotHolds fails the test unless the stock has what the snapshot says.
func (d *desk) snapshotHolds() {
	d.Helper()
	d.figures(88, 5, 7)
	for _, e := range snapshot().Entries {
		sameEntry(d, d.find(e.RID), e)
		d.repeat(d.ask(e.RID, e.User, e.Quantity), e.State, e.Version)
		d.refuse(d.ask(e.RID, e.User, e.Quantity+1), flashsale.CodeConflict)
		d.refuse(d.ask(e.RID, e.User+"x", e.Quantity), flashsale.CodeConflict)
	}
	sameSet(d, "holds", d.refuse(d.ask("new", "u3", 1), flashsale.CodePurchaseLimit).Holds, "sold", "older")
	sameSet(d, "holds", d.refuse(d.ask("new", "u1", 3), flashsale.CodePurchaseLimit).Holds, "res")
	sameSet(d, "holds", d.refuse(d.ask("new", "u5", 4), flashsale.CodePurchaseLimit).Holds)
	d.adjust("op-1", 5, true, 88)
	d.adjust("op-2", 5, true, 88)
	d.depth(0, 0, 0)
	equal(d, "pending", d.view().Queue.Pending, 0)
	equal(d, "entries", d.countEntries(), 6)
}

func (d *desk) countEntries() int {
	d.Helper()
	page, next, err := d.stock.Entries(d.ctx, d.key, d.epoch, "", 100_000)
	d.check("Entries", err)
	n := len(page)
	for next != "" {
		page, next, err = d.stock.Entries(d.ctx, d.key, d.epoch, next, 100_000)
		d.check("Entries", err)
		n += len(page)
	}
	return n
}

func loadsAll(d *desk) {
	d.point()
	d.load(snapshot())
	d.configure()
	d.snapshotHolds()
	d.adjust("op-3", 5, true, 93)
}

func loadsInParts(d *desk) {
	d.epoch = 4
	d.point()
	all := snapshot()
	for i := range all.Entries {
		for range 2 {
			d.load(flashsale.LoadPart{Entries: all.Entries[i : i+1]})
		}
	}
	for range 2 {
		d.load(flashsale.LoadPart{Buyers: all.Buyers[:1], Adjusted: all.Adjusted[:1]})
		d.load(flashsale.LoadPart{Buyers: all.Buyers[1:], Adjusted: all.Adjusted})
		d.load(flashsale.LoadPart{})
	}
	all.Entries, all.Buyers, all.Adjusted = nil, nil, nil
	for range 2 {
		d.load(all)
	}
	d.configure()
	d.snapshotHolds()
}

func loadedIsClosed(d *desk) {
	d.sell(10)
	d.accept("r1", "u1", 1)
	before := d.view()
	part := snapshot()
	d.load(part)
	part.Last = false
	d.load(part)
	equal(d, "the view", d.view(), before)
	d.is("res", flashsale.None, 0)
	d.is("r1", flashsale.Pending, 0)
	d.accept("r2", "u3", 5)
	d.adjust("op-1", 5, true, 9)
}

func lateLoad(d *desk) {
	d.point()
	d.load(flashsale.LoadPart{Adjusted: []string{"op-9"}})
	d.epoch = 2
	d.point()
	part := snapshot()
	for _, last := range []bool{false, true} {
		part.Last = last
		d.fails("Load", d.stock.Load(d.ctx, d.key, 1, &part), flashsale.CodeStaleEpoch)
	}
	equal(d, "loaded", d.view().Loaded, false)
	d.load(snapshot())
	part.Total = 1000
	d.fails("Load", d.stock.Load(d.ctx, d.key, 1, &part), flashsale.CodeStaleEpoch)
	d.configure()
	d.snapshotHolds()
}

func partlyLoaded(d *desk) {
	d.point()
	part := snapshot()
	part.Last = false
	d.load(part)
	d.epoch = 2
	older := d.point()
	equal(d, "older", fmt.Sprint(older), "[1]")
	equal(d, "drained", len(d.drain(1, 10)), 0)
	d.check("Drop", d.stock.Drop(d.ctx, d.key, 2, 1))
	d.load(flashsale.LoadPart{Last: true, Total: 10})
	d.configure()
	for _, e := range snapshot().Entries {
		d.is(e.RID, flashsale.None, 0)
	}
	d.accept("r1", "u3", 5)
	d.figures(5, 5, 0)
}

// loadedGoesOn: what came from SQL follows SQL as what was taken here does.
func loadedGoesOn(d *desk) {
	d.point()
	d.load(snapshot())
	d.configure()
	d.apply(effect("res", "u1", 3, flashsale.Reserved, 1), flashsale.AppliedOld)
	d.apply(effect("res", "u1", 3, flashsale.Cancelled, 2), flashsale.AppliedMoved)
	d.figures(91, 2, 7)
	d.apply(effect("conf", "u2", 2, flashsale.Confirmed, 3), flashsale.AppliedMoved)
	d.figures(91, 0, 9)
	d.accept("n1", "u1", 5)
	d.accept("n2", "u2", 3)
	d.refuse(d.ask("n3", "u2", 1), flashsale.CodePurchaseLimit)
	d.clock.advance(flashsale.Retention - time.Minute + time.Millisecond)
	d.forget(4, "sold", "can", "exp", "rej", "res", "conf", "n1")
	d.refuse(d.ask("sold", "u3", 1), flashsale.CodeBusy) // forgotten: not known, and n1 waits
}

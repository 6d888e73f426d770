package stocktest

import (
	"fmt"
	"slices"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

func reserveTests() []test {
	return []test{
		{"takes units and appends a job", takes},
		{"a rid takes once", takesOnce},
		{"a rid from another user or of another quantity is a conflict", conflicts},
		{"what is known is answered in every state", knownInEveryState},
		{"what is known is answered whatever else refuses", knownFirst},
		{"the last unit can be taken", takesTheLast},
		{"several reservations of one user up to the limit", upToTheLimit},
		{"what a user is told to hold follows what is given back", holdsFollow},
		{"a user's units come back with what was given back", limitComesBack},
		{"the origin goes with the job", origin},
		{"seq grows with every reservation and is the job's", seqGrows},
	}
}

func takes(d *desk) {
	d.sell(10)
	a := d.accept("r1", "u1", 3)
	want := flashsale.Entry{RID: "r1", User: "u1", Quantity: 3, State: flashsale.Pending, At: d.clock.now(), Deadline: d.clock.now().Add(flashsale.PendingFor)}
	sameEntry(d, a.Entry, want)
	sameEntry(d, d.find("r1"), want)
	equal(d, "available", a.Available, 7)
	d.figures(7, 3, 0)
	d.depth(1, 0, 0)
	equal(d, "pending", d.view().Queue.Pending, 1)
	job := d.pulls("c1", 10, "r1")[0]
	if job.User != "u1" || job.Quantity != 3 || job.Origin != "" || job.Deliveries != 1 || job.Seq != a.Seq || job.ID == "" {
		d.Errorf("the job: %+v", job)
	}
	if !job.At.Equal(want.At) || !job.Deadline.Equal(want.Deadline) {
		d.Errorf("the job is of %s and due %s, want %s and %s", job.At, job.Deadline, want.At, want.Deadline)
	}
}

// sameEntry compares all of an entry; the deadline counts while it is pending.
func sameEntry(d *desk, got, want flashsale.Entry) {
	d.Helper()
	if diff := entryDiff(got, want); diff != "" {
		d.Fatal(diff)
	}
}

func entryDiff(got, want flashsale.Entry) string {
	if got.RID == want.RID && got.User == want.User && got.Quantity == want.Quantity && got.State == want.State && got.Version == want.Version &&
		got.At.Equal(want.At) && (want.State != flashsale.Pending || got.Deadline.Equal(want.Deadline)) {
		return ""
	}
	return fmt.Sprintf("the entry:\ngot  %+v\nwant %+v", got, want)
}

func takesOnce(d *desk) {
	d.sell(10)
	ask := d.ask("r1", "u1", 2)
	d.accept("r1", "u1", 2)
	for range 3 {
		d.repeat(ask, flashsale.Pending, 0)
		d.clock.advance(time.Second)
	}
	d.figures(8, 2, 0)
	d.depth(1, 0, 0)
}

func conflicts(d *desk) {
	d.sell(10)
	d.accept("r1", "u1", 2)
	d.refuse(d.ask("r1", "u1", 1), flashsale.CodeConflict)
	d.refuse(d.ask("r1", "u2", 2), flashsale.CodeConflict)
	onlyKnown := d.ask("r1", "u2", 2)
	onlyKnown.OnlyKnown = true
	d.refuse(onlyKnown, flashsale.CodeConflict)
	d.set(func(s *flashsale.Settings) { s.Status = flashsale.Paused })
	d.refuse(d.ask("r1", "u1", 1), flashsale.CodeConflict)
	d.repeat(d.ask("r1", "u1", 2), flashsale.Pending, 0)
}

func knownInEveryState(d *desk) {
	d.sell(10)
	for n, way := range [][]flashsale.State{
		{flashsale.Reserved, flashsale.Confirming, flashsale.Confirmed},
		{flashsale.Reserved, flashsale.Cancelled},
		{flashsale.Reserved, flashsale.Confirming, flashsale.Expired},
		{flashsale.Rejected},
	} {
		rid := fmt.Sprint("r", n)
		ask := d.ask(rid, "u-"+rid, 1)
		d.accept(rid, "u-"+rid, 1)
		for i, state := range way {
			d.apply(effect(rid, ask.User, 1, state, int64(i+1)), flashsale.AppliedMoved)
			d.repeat(ask, state, int64(i+1))
		}
	}
	d.figures(9, 0, 1)
}

func knownFirst(d *desk) {
	d.sell(1)
	ask := d.ask("r1", "u1", 1)
	d.set(func(s *flashsale.Settings) { s.PurchaseLimit = 1 })
	d.accept("r1", "u1", 1)
	known := func() {
		d.Helper()
		d.repeat(ask, flashsale.Pending, 0)
		onlyKnown := *ask
		onlyKnown.OnlyKnown = true
		d.repeat(&onlyKnown, flashsale.Pending, 0)
	}
	known() // sold out, and the user is at the limit
	for _, status := range []flashsale.Status{flashsale.Paused, flashsale.Draining, flashsale.Closed, flashsale.Draft} {
		d.set(func(s *flashsale.Settings) { s.Status = status })
		known()
	}
	d.set(func(s *flashsale.Settings) { s.Status, s.ClosesAt = flashsale.Open, d.clock.now() })
	known() // ended
	d.set(func(s *flashsale.Settings) { s.ClosesAt = start().Add(time.Hour) })
	d.clock.advance(flashsale.PendingFor + time.Minute)
	known() // busy, and past its own deadline
}

func takesTheLast(d *desk) {
	d.sell(3)
	d.accept("r1", "u1", 2)
	d.accept("r2", "u2", 1)
	d.figures(0, 3, 0)
	d.refuse(d.ask("r3", "u3", 1), flashsale.CodeSoldOut)
	d.apply(effect("r2", "u2", 1, flashsale.Rejected, 1), flashsale.AppliedMoved)
	d.refuse(d.ask("r3", "u3", 2), flashsale.CodeSoldOut)
	d.accept("r3", "u3", 1)
	d.figures(0, 3, 0)
}

func upToTheLimit(d *desk) {
	d.sell(100)
	d.accept("r1", "u1", 2)
	d.accept("r2", "u1", 2)
	a := d.refuse(d.ask("r3", "u1", 2), flashsale.CodePurchaseLimit)
	sameSet(d, "holds", a.Holds, "r1", "r2")
	d.accept("r4", "u1", 1)
	a = d.refuse(d.ask("r5", "u1", 1), flashsale.CodePurchaseLimit)
	sameSet(d, "holds", a.Holds, "r1", "r2", "r4")
	a = d.refuse(d.ask("r6", "u2", 6), flashsale.CodePurchaseLimit)
	sameSet(d, "holds", a.Holds)
	d.accept("r7", "u2", 5)
	d.set(func(s *flashsale.Settings) { s.PurchaseLimit = 40 })
	held := map[string]bool{"r1": true, "r2": true, "r4": true}
	for i := range 35 {
		rid := fmt.Sprint("more", i)
		d.accept(rid, "u1", 1)
		held[rid] = true
	}
	a = d.refuse(d.ask("r8", "u1", 1), flashsale.CodePurchaseLimit)
	equal(d, "rids that are told", len(a.Holds), 16)
	for _, rid := range a.Holds {
		if !held[rid] {
			d.Errorf("%q is told, and not held, or twice", rid)
		}
		delete(held, rid)
	}
}

func sameSet(d *desk, what string, got []string, want ...string) {
	d.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		d.Fatalf("%s: got %q, want %q", what, got, want)
	}
}

// holdsFollow gives back the first, the last and one from the middle.
func holdsFollow(d *desk) {
	d.sell(100)
	rids := []string{"r1", "r2", "r3", "r4", "r5"}
	for _, rid := range rids {
		d.accept(rid, "u1", 1)
	}
	for i, gone := range []string{"r1", "r5", "r3", "r2"} {
		d.apply(effect(gone, "u1", 1, flashsale.Rejected, 1), flashsale.AppliedMoved)
		rids = slices.DeleteFunc(rids, func(r string) bool { return r == gone })
		a := d.refuse(d.ask("more", "u1", int64(i+2)), flashsale.CodePurchaseLimit)
		sameSet(d, "holds", a.Holds, rids...)
	}
	d.apply(effect("r4", "u1", 1, flashsale.Cancelled, 2), flashsale.AppliedMoved)
	sameSet(d, "holds", d.refuse(d.ask("more", "u1", 6), flashsale.CodePurchaseLimit).Holds)
	d.accept("more", "u1", 5)
}

func limitComesBack(d *desk) {
	d.sell(10)
	d.set(func(s *flashsale.Settings) { s.PurchaseLimit = 1 })
	version := map[string]int64{}
	apply := func(rid string, state flashsale.State) {
		d.Helper()
		version[rid]++
		d.apply(effect(rid, "u1", 1, state, version[rid]), flashsale.AppliedMoved)
	}
	for i, end := range []flashsale.State{flashsale.Rejected, flashsale.Cancelled, flashsale.Expired, flashsale.Confirmed} {
		rid := fmt.Sprint("r", i)
		d.accept(rid, "u1", 1)
		if end != flashsale.Rejected {
			apply(rid, flashsale.Reserved)
			a := d.refuse(d.ask("other", "u1", 1), flashsale.CodePurchaseLimit)
			sameSet(d, "holds", a.Holds, rid)
		}
		apply(rid, end)
	}
	a := d.refuse(d.ask("last", "u1", 1), flashsale.CodePurchaseLimit)
	sameSet(d, "holds of what is paid", a.Holds, "r3")
	d.figures(9, 0, 1)
}

func origin(d *desk) {
	d.sell(10)
	ask := d.ask("re.r1", "u1", 1)
	ask.Origin = "r1:2"
	equal(d, "accepted", d.reserve(ask).Accepted, true)
	d.accept("r2", "u2", 1)
	jobs := d.pulls("c1", 10, "re.r1", "r2")
	equal(d, "the origin", jobs[0].Origin, "r1:2")
	equal(d, "no origin", jobs[1].Origin, "")
}

func seqGrows(d *desk) {
	d.sell(100)
	last := d.view().Seq
	var seqs []int64
	for i := range 20 {
		a := d.accept(fmt.Sprint("r", i), fmt.Sprint("u", i), 1)
		if a.Seq <= last {
			d.Fatalf("seq %d follows %d", a.Seq, last)
		}
		last = a.Seq
		seqs = append(seqs, last)
	}
	for i, job := range d.pull("c1", 20) {
		equal(d, "the job's seq", job.Seq, seqs[i])
	}
}

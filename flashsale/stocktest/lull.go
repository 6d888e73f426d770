package stocktest

import (
	"fmt"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

func lullTests() []test {
	return []test{
		{"marks of all that was ever known", marksOfAll},
		{"marks, by pages", marksByPages},
		{"marks after others than those that are there", marksAfterLoss},
		{"marks of what was loaded", marksOfLoaded},
		{"nobody new gets more than a lull gives", lullHolds},
		{"a lull is prolonged", lullProlonged},
		{"units that come back end it", lullEnds},
		{"the capture of a payment does not wait for it", lullPromised},
		{"no lull while it is not on sale", noLull},
		{"a clock that goes back ends it", lullAndClock},
	}
}

// lull asks for a lull with all marks in one page, and fails the test unless it is this one.
func (d *desk) lull(lasts time.Duration, above int64) flashsale.Lull {
	d.Helper()
	before := d.view()
	l, err := d.stock.Lull(d.ctx, d.key, d.epoch, flashsale.LullAsk{Limit: 10_000})
	d.check("Lull", err)
	after := d.view()
	equal(d, "the view after a lull", after, before)
	if l.For != lasts || l.Above != above && lasts > 0 || l.Available != after.Available || l.Seq != after.Seq || !l.Complete() {
		d.Fatalf("a lull of %s above %d is wanted, got %+v at %+v", lasts, above, l, after)
	}
	return l
}

// marks reads all marks by pages, with the last of them.
func (d *desk) marks(limit int) (marks map[uint64]bool, l flashsale.Lull) {
	d.Helper()
	marks = map[uint64]bool{}
	ask := flashsale.LullAsk{Limit: limit}
	for {
		var err error
		l, err = d.stock.Lull(d.ctx, d.key, d.epoch, ask)
		d.check("Lull", err)
		if l.From != ask.After || len(l.Marks) > limit || int64(len(l.Marks)) != min(int64(limit), l.Count-l.From) {
			d.Fatalf("a page of %d after %d: got %d from %d of %d", limit, ask.After, len(l.Marks), l.From, l.Count)
		}
		for _, m := range l.Marks {
			marks[m] = true
			ask.Last = m
		}
		ask.After += int64(len(l.Marks))
		if l.Complete() {
			return marks, l
		}
		equal(d, "a lull before the last page", l.For, 0)
	}
}

// known fails the test unless the marks are those of these names.
func (d *desk) known(names ...string) {
	d.Helper()
	marks, _ := d.marks(100_000)
	for _, name := range names {
		if !marks[flashsale.Mark(name)] {
			d.Fatalf("%q has no mark", name)
		}
		delete(marks, flashsale.Mark(name))
	}
	equal(d, "marks of nobody", len(marks), 0)
}

func marksOfAll(d *desk) {
	d.settings.ClosesAt = start().Add(1000 * time.Hour)
	d.sell(10)
	d.known()
	d.accept("r1", "u1", 1)
	d.accept("r2", "u1", 1)
	d.refuse(d.ask("r3", "u3", 11), flashsale.CodePurchaseLimit)
	d.repeat(d.ask("r1", "u1", 1), flashsale.Pending, 0)
	d.known("r1", "r2", "u1")
	d.apply(effect("r4", "u4\x00\xff", 1, flashsale.Rejected, 1), flashsale.AppliedStored)
	d.apply(effect("r5", "u5", 1, flashsale.Reserved, 1), flashsale.AppliedLost)
	d.apply(effect("r1", "u1", 1, flashsale.Cancelled, 2), flashsale.AppliedMoved)
	d.known("r1", "r2", "u1", "r4", "u4\x00\xff")
	d.apply(effect("r2", "u1", 1, flashsale.Confirmed, 2), flashsale.AppliedMoved)
	d.clock.advance(flashsale.Retention + time.Second)
	d.forget(3, "r1", "r2", "r4")
	d.known("r1", "r2", "u1", "r4", "u4\x00\xff")
}

func marksByPages(d *desk) {
	d.sell(1000)
	for i := range 100 {
		d.accept(fmt.Sprint("r", i), fmt.Sprint("u", i), 1)
	}
	for _, limit := range []int{1, 7, 200, 1000} {
		marks, l := d.marks(limit)
		equal(d, "marks", len(marks), 200)
		equal(d, "the count", l.Count, 200)
	}
	all, err := d.stock.Lull(d.ctx, d.key, d.epoch, flashsale.LullAsk{Limit: 1000})
	d.check("Lull", err)
	equal(d, "the first", all.Marks[0], flashsale.Mark("r0"))
	equal(d, "the last", all.Marks[199], flashsale.Mark("u99"))
	none, err := d.stock.Lull(d.ctx, d.key, d.epoch, flashsale.LullAsk{After: 200, Last: all.Marks[199]})
	d.check("Lull", err)
	equal(d, "nothing new", fmt.Sprint(none.From, none.Count, len(none.Marks), none.For), "200 200 0 50ms")
	d.accept("new", "u-new", 1)
	some, err := d.stock.Lull(d.ctx, d.key, d.epoch, flashsale.LullAsk{After: 200, Last: all.Marks[199], Limit: 2})
	d.check("Lull", err)
	equal(d, "two new ones", fmt.Sprint(some.From, some.Marks), fmt.Sprint(200, []uint64{flashsale.Mark("new"), flashsale.Mark("u-new")}))
}

// marksAfterLoss: whoever has marks that are not those of the stock is told all from the beginning.
func marksAfterLoss(d *desk) {
	d.sell(10)
	d.acceptAll("a", "b")
	for _, ask := range []flashsale.LullAsk{
		{After: 5, Last: flashsale.Mark("u-b")}, {After: 4, Last: flashsale.Mark("b")}, {After: 3, Last: 0}, {After: -1}, {After: 1 << 60, Last: 1},
	} {
		ask.Limit = 10
		l, err := d.stock.Lull(d.ctx, d.key, d.epoch, ask)
		d.check("Lull", err)
		equal(d, fmt.Sprintf("from and marks after %+v", ask), fmt.Sprint(l.From, len(l.Marks)), "0 4")
	}
}

func marksOfLoaded(d *desk) {
	d.point()
	part := snapshot()
	d.load(flashsale.LoadPart{Entries: part.Entries})
	d.load(flashsale.LoadPart{Entries: part.Entries, Buyers: part.Buyers})
	d.load(part)
	_, err := d.stock.Lull(d.ctx, d.key, d.epoch, flashsale.LullAsk{Limit: 10})
	d.fails("Lull without settings", err, flashsale.CodeRebuilding)
	d.configure()
	d.known("res", "conf", "sold", "can", "exp", "rej", "u1", "u2", "u3", "u4", "u5")
	d.epoch++
	d.point()
	d.load(flashsale.LoadPart{Last: true, Total: 10})
	d.configure()
	d.known()
}

func lullHolds(d *desk) {
	d.sell(3)
	d.accept("r1", "u1", 2)
	d.lull(flashsale.LullFor, 1)
	d.refuse(d.ask("r2", "u2", 2), flashsale.CodeSoldOut)
	d.apply(effect("r1", "u1", 2, flashsale.Rejected, 1), flashsale.AppliedMoved)
	d.figures(3, 0, 0)
	d.refuse(d.ask("r2", "u2", 2), flashsale.CodeSoldOut) // though there are three
	d.refuse(d.ask("r2", "u2", 6), flashsale.CodePurchaseLimit)
	d.repeat(d.ask("r1", "u1", 2), flashsale.Rejected, 1)
	d.accept("r3", "u3", 1)
	d.clock.advance(flashsale.LullFor - time.Millisecond)
	d.refuse(d.ask("r2", "u2", 2), flashsale.CodeSoldOut)
	d.clock.advance(time.Millisecond)
	d.accept("r2", "u2", 2)
}

func lullProlonged(d *desk) {
	d.sell(2)
	d.accept("r1", "u1", 1)
	d.lull(flashsale.LullFor, 1)
	d.clock.advance(flashsale.LullFor / 2)
	d.lull(flashsale.LullFor, 1)
	d.accept("r2", "u2", 1)
	d.clock.advance(flashsale.LullFor / 2)
	d.lull(flashsale.LullFor, 0) // less than it gave
	d.apply(effect("r1", "u1", 1, flashsale.Rejected, 1), flashsale.AppliedMoved)
	d.clock.advance(flashsale.LullFor - time.Millisecond)
	d.refuse(d.ask("r3", "u3", 1), flashsale.CodeSoldOut)
	d.clock.advance(time.Millisecond)
	d.accept("r3", "u3", 1)
}

// lullEnds: what comes back is sold when the lull ends, however often others ask for one.
func lullEnds(d *desk) {
	d.sell(1)
	d.accept("r1", "u1", 1)
	d.lull(flashsale.LullFor, 0)
	d.clock.advance(20 * time.Millisecond)
	d.apply(effect("r1", "u1", 1, flashsale.Rejected, 1), flashsale.AppliedMoved)
	for left := 30 * time.Millisecond; left > 0; left -= 10 * time.Millisecond {
		d.lull(left, 0)
		d.refuse(d.ask("r2", "u2", 1), flashsale.CodeSoldOut)
		d.clock.advance(10 * time.Millisecond)
	}
	d.lull(flashsale.LullFor, 1)
	d.accept("r2", "u2", 1)
}

func lullPromised(d *desk) {
	d.sell(1)
	d.accept("r1", "u1", 1)
	d.lull(flashsale.LullFor, 0)
	d.apply(effect("r1", "u1", 1, flashsale.Rejected, 1), flashsale.AppliedMoved)
	d.refuse(d.ask("r2", "u2", 1), flashsale.CodeSoldOut)
	ask := d.ask("r3", "u1", 1)
	ask.Origin = "r1:1"
	if a := d.reserve(ask); !a.Accepted {
		d.Fatalf("for an intent: %+v", a)
	}
}

func noLull(d *desk) {
	d.sell(0)
	for _, status := range []flashsale.Status{flashsale.Paused, flashsale.Draining, flashsale.Closed} {
		d.set(func(s *flashsale.Settings) { s.Status = status })
		l := d.lull(0, 0)
		equal(d, "why", fmt.Sprint(l.Code, " ", l.Detail), "not_open "+string(status))
	}
	d.set(func(s *flashsale.Settings) { s.Status, s.OpensAt = flashsale.Open, start().Add(time.Hour) })
	equal(d, "why", d.lull(0, 0).Detail, "not_yet")
	d.set(func(s *flashsale.Settings) { s.ClosesAt, s.OpensAt = start(), start() })
	equal(d, "why", d.lull(0, 0).Detail, "ended")
	d.set(func(s *flashsale.Settings) { s.ClosesAt = start().Add(time.Hour) })
	equal(d, "why", d.lull(flashsale.LullFor, 0).Code, "")
}

func lullAndClock(d *desk) {
	d.clock.advance(time.Hour)
	d.sell(1)
	d.accept("r1", "u1", 1)
	d.lull(flashsale.LullFor, 0)
	d.apply(effect("r1", "u1", 1, flashsale.Rejected, 1), flashsale.AppliedMoved)
	d.clock.advance(-time.Minute)
	d.accept("r2", "u2", 1)
	d.lull(flashsale.LullFor, 0)
}

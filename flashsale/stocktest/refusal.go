package stocktest

import (
	"fmt"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

func refusalTests() []test {
	return []test{
		{"only known", onlyKnown},
		{"not open by status", notOpenByStatus},
		{"not open by time", notOpenByTime},
		{"busy at the bound of the queue", busyAtTheBound},
		{"busy while the oldest job waits for too long", busyWhileOld},
		{"a dead letter keeps nobody waiting", notBusyForTheDead},
		{"the order of refusals", refusalOrder},
		{"a refused rid can try again", refusedCanRetry},
		{"quantities out of bounds", badQuantities},
	}
}

func onlyKnown(d *desk) {
	d.sell(10)
	ask := d.ask("r1", "u1", 1)
	ask.OnlyKnown = true
	d.refuse(ask, flashsale.CodeTokenExpired)
	d.accept("r1", "u1", 1)
	d.repeat(ask, flashsale.Pending, 0)
}

func notOpenByStatus(d *desk) {
	d.sell(10)
	for _, status := range []flashsale.Status{flashsale.Draft, flashsale.Paused, flashsale.Draining, flashsale.Closed} {
		d.set(func(s *flashsale.Settings) { s.Status = status })
		equal(d, "detail", d.refuse(d.ask("r1", "u1", 1), flashsale.CodeNotOpen).Detail, string(status))
	}
	d.set(func(s *flashsale.Settings) { s.Status = flashsale.Open })
	d.accept("r1", "u1", 1)
}

func notOpenByTime(d *desk) {
	d.sell(10)
	d.set(func(s *flashsale.Settings) { s.OpensAt, s.ClosesAt = start().Add(time.Hour), start().Add(2*time.Hour) })
	early := func() {
		d.Helper()
		a := d.refuse(d.ask("r1", "u1", 1), flashsale.CodeNotOpen)
		equal(d, "detail", a.Detail, "not_yet")
		if a.RetryAfter <= 0 {
			d.Errorf("before the opening RetryAfter is %s", a.RetryAfter)
		}
	}
	early()
	d.clock.advance(time.Hour - time.Millisecond)
	early()
	d.clock.advance(time.Millisecond)
	d.accept("r1", "u1", 1)
	d.ack(d.pulls("c1", 1, "r1")[0].ID)
	d.apply(effect("r1", "u1", 1, flashsale.Rejected, 1), flashsale.AppliedMoved)
	d.clock.advance(time.Hour - time.Millisecond)
	d.accept("r2", "u1", 1)
	d.clock.advance(time.Millisecond)
	equal(d, "detail", d.refuse(d.ask("r3", "u1", 1), flashsale.CodeNotOpen).Detail, "ended")
	d.clock.advance(24 * time.Hour)
	equal(d, "detail", d.refuse(d.ask("r3", "u1", 1), flashsale.CodeNotOpen).Detail, "ended")
}

func (d *desk) busy(rid string) {
	d.Helper()
	if a := d.refuse(d.ask(rid, "u-"+rid, 1), flashsale.CodeBusy); a.RetryAfter <= 0 {
		d.Errorf("busy with RetryAfter %s", a.RetryAfter)
	}
}

func busyAtTheBound(d *desk) {
	d.settings.Rate = 2
	d.sell(1000)
	for i := range 90 { // 45 s at 2 a second
		d.accept(fmt.Sprint("r", i), fmt.Sprint("u", i), 1)
	}
	d.depth(90, 0, 0)
	d.busy("more")
	job := d.pulls("c1", 1, "r0")[0]
	d.busy("more") // pulled is not acknowledged
	d.apply(effect("r1", "u1", 1, flashsale.Rejected, 1), flashsale.AppliedMoved)
	d.busy("more") // decided is not acknowledged
	d.ack(job.ID)
	d.accept("more", "u-more", 1)
	d.busy("again")
	d.check("Bury", d.stock.Bury(d.ctx, d.key, d.epoch, &d.pullAfter(time.Second, 1)[0], "poison"))
	d.accept("again", "u-again", 1)
}

// pullAfter pulls some time later.
func (d *desk) pullAfter(wait time.Duration, limit int) []flashsale.Job {
	d.Helper()
	d.clock.advance(wait)
	jobs := d.pull("c1", limit)
	if len(jobs) != limit {
		d.Fatalf("%d jobs pulled, want %d", len(jobs), limit)
	}
	return jobs
}

func busyWhileOld(d *desk) {
	d.sell(100)
	d.accept("old", "u1", 1)
	d.clock.advance(10 * time.Second)
	d.accept("young", "u2", 1)
	d.clock.advance(flashsale.PendingFor/2 - 10*time.Second - time.Millisecond)
	d.accept("r3", "u3", 1)
	d.clock.advance(2 * time.Millisecond)
	d.busy("more")
	jobs := d.pulls("c1", 3, "old", "young", "r3")
	d.busy("more") // pulled is not acknowledged
	d.apply(effect("old", "u1", 1, flashsale.Reserved, 1), flashsale.AppliedMoved)
	d.busy("more") // decided is not acknowledged
	d.ack(jobs[0].ID)
	d.accept("more", "u4", 1)
	d.clock.advance(10 * time.Second)
	d.busy("again") // now young is the oldest
	d.ack(jobs[1].ID)
	d.accept("again", "u5", 1) // young is pending still, and older than that: what has no job waits for nobody
}

// notBusyForTheDead: a job that cannot be decided costs its own shopper a long wait, and nobody else. Once it is revived it is a job
// like any other, as old as its revival.
func notBusyForTheDead(d *desk) {
	d.sell(100)
	d.accept("poison", "u1", 1)
	d.bury(d.pulls("c1", 1, "poison")[0], "bad")
	d.clock.advance(flashsale.PendingFor - 10*time.Second)
	d.accept("r2", "u2", 1)
	d.ack(d.pulls("c1", 1, "r2")[0].ID)
	d.revive(1, d.dead(1)[0].ID)
	equal(d, "the age of the oldest", d.view().Queue.Oldest, 0)
	d.accept("r3", "u3", 1)
	d.clock.advance(flashsale.PendingFor/2 + time.Millisecond) // its deadline is past
	d.busy("more")
	equal(d, "the age of the oldest", d.view().Queue.Oldest, flashsale.PendingFor/2+time.Millisecond)
	for _, job := range d.pulls("c1", 2, "poison", "r3") {
		d.bury(job, "worse")
	}
	d.accept("more", "u-more", 1)
}

// refusalOrder takes one reason away after the other.
func refusalOrder(d *desk) {
	d.sell(1)
	d.set(func(s *flashsale.Settings) { s.PurchaseLimit = 1 })
	d.accept("first", "u1", 1)
	d.clock.advance(flashsale.PendingFor/2 + time.Millisecond) // busy
	d.set(func(s *flashsale.Settings) { s.Status = flashsale.Paused })
	again := func() *flashsale.Ask { return d.ask("r2", "u1", 1) }
	expired := again()
	expired.OnlyKnown = true
	d.refuse(d.ask("first", "u1", 2), flashsale.CodeConflict)
	d.refuse(expired, flashsale.CodeTokenExpired)
	d.refuse(again(), flashsale.CodeNotOpen)
	d.set(func(s *flashsale.Settings) { s.Status, s.ClosesAt = flashsale.Open, d.clock.now() })
	equal(d, "detail", d.refuse(again(), flashsale.CodeNotOpen).Detail, "ended")
	d.set(func(s *flashsale.Settings) { s.ClosesAt = start().Add(time.Hour) })
	d.refuse(again(), flashsale.CodeBusy)
	d.ack(d.pulls("c1", 1, "first")[0].ID)
	d.apply(effect("first", "u1", 1, flashsale.Reserved, 1), flashsale.AppliedMoved)
	d.refuse(again(), flashsale.CodePurchaseLimit)
	d.refuse(d.ask("r2", "u2", 2), flashsale.CodePurchaseLimit) // not "sold out": no number of units would help
	d.refuse(d.ask("r2", "u2", 1), flashsale.CodeSoldOut)
	d.apply(effect("first", "u1", 1, flashsale.Cancelled, 2), flashsale.AppliedMoved)
	d.accept("r2", "u1", 1)
}

func refusedCanRetry(d *desk) {
	d.sell(2)
	d.set(func(s *flashsale.Settings) { s.PurchaseLimit = 1 })
	d.refuse(d.ask("r1", "u1", 2), flashsale.CodePurchaseLimit)
	equal(d, "state", d.find("r1").State, flashsale.None)
	d.accept("r1", "u1", 1) // the same rid with another body: the refusal has left no trace
	d.accept("r2", "u2", 1)
	d.refuse(d.ask("r3", "u3", 1), flashsale.CodeSoldOut)
	d.apply(effect("r2", "u2", 1, flashsale.Rejected, 1), flashsale.AppliedMoved)
	d.accept("r3", "u3", 1)
}

func badQuantities(d *desk) {
	d.sell(10)
	d.set(func(s *flashsale.Settings) { s.PurchaseLimit = 1 << 62 })
	before := d.view()
	for _, q := range []int64{0, -1, -1 << 63, flashsale.MaxTotal + 1, 1<<63 - 1} {
		_, err := d.stock.Reserve(d.ctx, d.key, d.epoch, d.ask("r1", "u1", q))
		d.fails(fmt.Sprint("quantity ", q), err, flashsale.CodeInvalidQuantity)
		equal(d, "the view", d.view(), before)
	}
	d.refuse(d.ask("r1", "u1", flashsale.MaxTotal), flashsale.CodeSoldOut)
}

package stocktest

import (
	"fmt"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

func pullTests() []test {
	return []test{
		{"in order, each job once, over all consumers", pullsInOrder},
		{"at the rate, with a burst of a tenth of a second", pullsAtTheRate},
		{"slow rates hand out one at a time", pullsSlowly},
		{"what was not used is not saved up", noSavings},
		{"what another consumer has had for too long", reclaims},
		{"what the same consumer has had for too long", reclaimsOwn},
		{"a job that comes again counts towards the rate", reclaimCountsForRate},
		{"acknowledged jobs do not come again", ackedNeverAgain},
		{"a long queue, acknowledged in any order", longQueue},
		{"a job comes though its reservation has ended", jobOfEnded},
		{"pulled while paused, draining and closed", pullsInEveryStatus},
		{"the figures of the queue", queueFigures},
	}
}

func (d *desk) acceptAll(rids ...string) {
	d.Helper()
	for _, rid := range rids {
		d.accept(rid, "u-"+rid, 1)
	}
}

func pullsInOrder(d *desk) {
	d.sell(100)
	d.pulls("c1", 10)
	d.acceptAll("a", "b", "c", "d", "e")
	first := d.pulls("c1", 2, "a", "b")
	second := d.pulls("c2", 2, "c", "d")
	d.acceptAll("f")
	third := d.pulls("c1", 10, "e", "f")
	d.pulls("c2", 10)
	d.depth(6, 6, 0)
	seen := map[string]bool{}
	for _, id := range append(append(ids(first), ids(second)...), ids(third)...) {
		if seen[id] {
			d.Errorf("the id %q is given twice", id)
		}
		seen[id] = true
	}
	d.pulls("c2", 0)
}

func pullsAtTheRate(d *desk) {
	d.settings.Rate = 100
	d.sell(10_000)
	d.fill(200)
	equal(d, "at first", len(d.pull("c1", 200)), 10)
	equal(d, "at once again", len(d.pull("c2", 200)), 0)
	d.clock.advance(10 * time.Millisecond)
	equal(d, "after 10 ms", len(d.pull("c2", 200)), 1)
	d.clock.advance(55 * time.Millisecond)
	equal(d, "after 55 ms, by one", len(d.pull("c1", 3)), 3)
	equal(d, "after 55 ms, by the other", len(d.pull("c2", 200)), 2)
	d.clock.advance(5 * time.Millisecond)
	equal(d, "the rest of a job is not lost", len(d.pull("c2", 200)), 1)
	pulled := 17
	for range 100 {
		d.clock.advance(10 * time.Millisecond)
		pulled += len(d.pull("c1", 200))
	}
	equal(d, "a second later", pulled, 117)
}

func pullsSlowly(d *desk) {
	d.settings.Rate = 1
	d.sell(100)
	d.fill(20)
	equal(d, "at first", len(d.pull("c1", 20)), 1)
	d.clock.advance(999 * time.Millisecond)
	equal(d, "after 999 ms", len(d.pull("c1", 20)), 0)
	d.clock.advance(time.Millisecond)
	equal(d, "after a second", len(d.pull("c1", 20)), 1)
	d.set(func(s *flashsale.Settings) { s.Rate = 5 })
	d.clock.advance(3 * time.Second)
	equal(d, "at 5 a second", len(d.pull("c1", 20)), 1)
	d.clock.advance(199 * time.Millisecond)
	equal(d, "after 199 ms", len(d.pull("c1", 20)), 0)
	d.clock.advance(time.Millisecond)
	equal(d, "after 200 ms", len(d.pull("c1", 20)), 1)
}

func noSavings(d *desk) {
	d.settings.Rate = 100
	d.sell(1000)
	d.clock.advance(time.Hour)
	d.fill(200)
	equal(d, "after an hour", len(d.pull("c1", 200)), 10)
	d.clock.advance(time.Minute)
	d.apply(effect("fill0", "u0", 1, flashsale.Rejected, 1), flashsale.AppliedMoved)
	equal(d, "after a minute", len(d.pull("c1", 200)), 10)
	d.clock.advance(500 * time.Millisecond)
	equal(d, "after half a second", len(d.pull("c1", 200)), 10)
}

func reclaims(d *desk) {
	d.sell(100)
	d.acceptAll("a", "b", "c", "d")
	had := d.pulls("dead", 2, "a", "b")
	d.clock.advance(reclaim - time.Millisecond)
	d.pulls("c2", 1, "c")
	d.clock.advance(2 * time.Millisecond)
	again := d.pulls("c2", 3, "a", "b", "d")
	for i := range had {
		equal(d, "the id", again[i].ID, had[i].ID)
		equal(d, "deliveries", again[i].Deliveries, 2)
		equal(d, "the time it was appended", again[i].At.Equal(had[i].At), true)
	}
	equal(d, "deliveries", again[2].Deliveries, 1)
	d.pulls("c3", 10)
	d.clock.advance(reclaim - time.Millisecond) // c is late, and nothing else
	d.pulls("c3", 10, "c")
	d.depth(4, 4, 0)
	d.ack(had[0].ID) // the id that the dead one had
	d.depth(3, 3, 0)
}

func reclaimsOwn(d *desk) {
	d.sell(100)
	d.acceptAll("a", "b")
	d.pulls("c1", 10, "a", "b")
	for n := int64(2); n < 5; n++ {
		d.clock.advance(reclaim - time.Millisecond)
		d.pulls("c1", 10)
		d.clock.advance(2 * time.Millisecond)
		for _, job := range d.pulls("c1", 10, "a", "b") {
			equal(d, "deliveries", job.Deliveries, n)
		}
	}
}

func reclaimCountsForRate(d *desk) {
	d.settings.Rate = 10
	d.sell(100)
	d.fill(12)
	for range 3 {
		equal(d, "pulled", len(d.pullAfter(100*time.Millisecond, 1)), 1)
	}
	d.clock.advance(reclaim + time.Millisecond)
	d.pulls("c2", 10, "fill0")
	d.pulls("c2", 10)
	d.clock.advance(100 * time.Millisecond)
	d.pulls("c2", 10, "fill1")
}

func ackedNeverAgain(d *desk) {
	d.sell(100)
	d.acceptAll("a", "b", "c", "d")
	jobs := d.pulls("c1", 2, "a", "b")
	d.ack(jobs[0].ID)
	d.ack(jobs[0].ID)
	d.depth(3, 1, 0)
	d.clock.advance(reclaim + time.Millisecond)
	d.pulls("c2", 10, "b", "c", "d")
	d.ack(ids(jobs)...)
	d.depth(2, 2, 0)
	d.is("a", flashsale.Pending, 0) // acknowledged is not decided
}

// longQueue acknowledges some of what was pulled and some of what was not, and pulls the rest in order.
func longQueue(d *desk) {
	const n = 400
	d.settings.Rate = flashsale.MaxRate
	d.sell(n + 1)
	d.fill(n)
	jobs := d.pull("c1", n)
	equal(d, "jobs", len(jobs), n)
	var left, acks []string
	for i := range jobs {
		if k := i * 181 % n; k%7 == 3 { // an order without a pattern
			left = append(left, jobs[k].RID)
		} else if acks = append(acks, jobs[k].ID); len(acks)%50 == 0 {
			d.ack(acks...)
			d.depth(n-int64(len(acks)), n-int64(len(acks)), 0)
		}
	}
	d.ack(acks...)
	d.depth(int64(len(left)), int64(len(left)), 0)
	d.accept("late", "u-late", 1)
	d.pulls("c2", n, "late")
	d.clock.advance(reclaim + time.Millisecond)
	again := d.pull("c3", n)
	got := make([]string, 0, n)
	for _, j := range again {
		got = append(got, j.RID)
	}
	sameSet(d, "pulled again", got, append(left, "late")...)
}

func jobOfEnded(d *desk) {
	d.sell(100)
	d.accept("a", "u1", 2)
	d.apply(effect("a", "u1", 2, flashsale.Rejected, 1), flashsale.AppliedMoved)
	d.depth(1, 0, 0)
	job := d.pulls("c1", 10, "a")[0]
	equal(d, "quantity", job.Quantity, 2)
	equal(d, "user", job.User, "u1")
	if job.Deadline.IsZero() || !job.Deadline.Equal(start().Add(flashsale.PendingFor)) {
		d.Errorf("the deadline of the job is %s", job.Deadline)
	}
	d.ack(job.ID)
	d.depth(0, 0, 0)
}

func pullsInEveryStatus(d *desk) {
	d.sell(100)
	d.acceptAll("a", "b", "c")
	for i, status := range []flashsale.Status{flashsale.Paused, flashsale.Draining, flashsale.Closed} {
		d.set(func(s *flashsale.Settings) { s.Status = status })
		d.pulls("c1", 1, string(rune('a'+i)))
	}
}

func queueFigures(d *desk) {
	d.sell(100)
	equal(d, "an empty queue", d.view().Queue, flashsale.QueueView{})
	d.acceptAll("a")
	d.clock.advance(1500 * time.Millisecond)
	d.acceptAll("b")
	d.clock.advance(500 * time.Millisecond)
	equal(d, "two jobs", d.view().Queue, flashsale.QueueView{Depth: 2, Oldest: 2 * time.Second, Pending: 2})
	a := d.pulls("c1", 1, "a")
	equal(d, "one is pulled", d.view().Queue, flashsale.QueueView{Depth: 2, Pulled: 1, Oldest: 2 * time.Second, Pending: 2})
	_, err := d.stock.Apply(d.ctx, d.key, d.epoch, []flashsale.Effect{effect("a", "u-a", 1, flashsale.Reserved, 1)}, ids(a))
	d.check("Apply", err)
	equal(d, "it is decided", d.view().Queue, flashsale.QueueView{Depth: 1, Oldest: 500 * time.Millisecond, Pending: 1})
	d.ack(ids(d.pulls("c1", 1, "b"))...)
	equal(d, "the other is acknowledged", d.view().Queue, flashsale.QueueView{Pending: 1})
	v := d.view()
	equal(d, "the clock", v.Now.Equal(d.clock.now()), true)
	equal(d, "epoch", fmt.Sprint(v.Epoch, v.Loaded), "1 true")
	if v.Run == "" {
		d.Error("the run has no name")
	}
}

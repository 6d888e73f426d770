package stocktest

import (
	"strings"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

func deadTests() []test {
	return []test{
		{"a buried job is a dead letter, once", buries},
		{"a job that is not in the queue is not buried", buriesNothing},
		{"dead letters, oldest first", deadInOrder},
		{"a revived one is in the queue again", revives},
		{"past its deadline, or not pending: dropped", revivesNothing},
	}
}

func (d *desk) bury(job flashsale.Job, reason string) {
	d.Helper()
	d.check("Bury", d.stock.Bury(d.ctx, d.key, d.epoch, &job, reason))
}

func (d *desk) dead(limit int) []flashsale.DeadJob {
	d.Helper()
	dead, err := d.stock.Dead(d.ctx, d.key, d.epoch, limit)
	d.check("Dead", err)
	return dead
}

func (d *desk) revive(want int, ids ...string) {
	d.Helper()
	n, err := d.stock.Revive(d.ctx, d.key, d.epoch, ids)
	d.check("Revive", err)
	equal(d, "revived", n, want)
}

func buries(d *desk) {
	d.sell(10)
	d.acceptAll("a", "b")
	job := d.pulls("c1", 1, "a")[0]
	d.clock.advance(time.Second)
	reason := "bad: \x00\xff \"'|, " + strings.Repeat("x", 400)
	d.bury(job, reason)
	died := d.clock.now()
	d.clock.advance(time.Second)
	d.bury(job, "again")
	d.depth(1, 0, 1)
	dead := d.dead(10)
	equal(d, "dead letters", len(dead), 1)
	if l := dead[0]; l.RID != "a" || l.User != "u-a" || l.Quantity != 1 || l.Seq != job.Seq || l.Reason != reason || !l.DiedAt.Equal(died) || l.ID == "" {
		d.Errorf("the dead letter: %+v", l)
	}
	d.is("a", flashsale.Pending, 0)
	d.figures(8, 2, 0)
	equal(d, "pending", d.view().Queue.Pending, 2)
	d.clock.advance(reclaim + time.Millisecond)
	d.pulls("c2", 10, "b")
}

func buriesNothing(d *desk) {
	d.sell(10)
	d.acceptAll("a", "b")
	jobs := d.pulls("c1", 2, "a", "b")
	d.ack(jobs[0].ID)
	d.bury(jobs[0], "too late")
	d.depth(1, 1, 0)
	equal(d, "dead letters", len(d.dead(10)), 0)
	d.revive(0, jobs[0].ID, jobs[1].ID, "nothing", "")
	d.depth(1, 1, 0)
}

func deadInOrder(d *desk) {
	d.sell(10)
	d.acceptAll("a", "b", "c")
	jobs := d.pulls("c1", 3, "a", "b", "c")
	for _, i := range []int{1, 2, 0} {
		d.clock.advance(time.Millisecond)
		d.bury(jobs[i], "r")
	}
	equal(d, "none", len(d.dead(0)), 0)
	equal(d, "two", len(d.dead(2)), 2)
	for i, l := range d.dead(10) {
		equal(d, "a dead letter", l.RID, []string{"b", "c", "a"}[i])
	}
	d.depth(0, 0, 3)
}

func revives(d *desk) {
	d.sell(10)
	d.acceptAll("a", "b", "c")
	for _, job := range d.pulls("c1", 2, "a", "b") {
		d.bury(job, "poison")
	}
	dead := d.dead(10)
	d.clock.advance(time.Second)
	d.revive(1, dead[0].ID)
	d.depth(2, 0, 1)
	d.revive(0, dead[0].ID)
	d.depth(2, 0, 1)
	jobs := d.pulls("c2", 10, "c", "a")
	if j := jobs[1]; j.User != "u-a" || j.Quantity != 1 || j.Seq != dead[0].Seq || !j.Deadline.Equal(start().Add(flashsale.PendingFor)) {
		d.Errorf("revived: %+v, dead: %+v", j, dead[0])
	}
	d.bury(jobs[1], "again") // it can die again
	d.depth(1, 1, 2)
	dead = d.dead(10)
	equal(d, "the first", dead[0].RID, "b")
	equal(d, "the second", dead[1].RID, "a")
	d.revive(2, dead[0].ID, dead[1].ID)
	d.depth(3, 1, 0)
}

func revivesNothing(d *desk) {
	d.sell(10)
	d.acceptAll("late", "decided", "ended")
	for _, job := range d.pulls("c1", 3, "late", "decided", "ended") {
		d.bury(job, "poison")
	}
	d.apply(effect("decided", "u-decided", 1, flashsale.Reserved, 1), flashsale.AppliedMoved)
	d.apply(effect("ended", "u-ended", 1, flashsale.Rejected, 1), flashsale.AppliedMoved)
	d.clock.advance(flashsale.PendingFor - time.Second)
	dead := d.dead(10)
	d.revive(0, dead[1].ID, dead[2].ID)
	d.depth(0, 0, 1)
	d.clock.advance(time.Second)
	d.revive(0, dead[0].ID)
	d.depth(0, 0, 0)
	equal(d, "dead letters", len(d.dead(10)), 0)
	d.is("late", flashsale.Pending, 0)
	due, err := d.stock.Due(d.ctx, d.key, d.epoch, 10)
	d.check("Due", err)
	equal(d, "due", len(due), 1)
}

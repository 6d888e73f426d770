package stocktest

import (
	"fmt"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

func applyTests() []test {
	return []test{
		{"every way through the states", everyWay},
		{"twice, and out of order", outOfOrder},
		{"versions may be skipped", skipVersions},
		{"an end is the end", endIsTheEnd},
		{"unknown rids", unknownRIDs},
		{"a stored end keeps its rid from taking", storedEnd},
		{"several effects and acknowledgements in one step", manyAtOnce},
		{"time of the state", timeOfTheState},
	}
}

func everyWay(d *desk) {
	d.sell(100)
	taken := int64(0) // sold by earlier ways
	for i, way := range [][]flashsale.State{
		{flashsale.Reserved, flashsale.Confirming, flashsale.Confirmed},
		{flashsale.Reserved, flashsale.Confirmed},
		{flashsale.Reserved, flashsale.Confirming, flashsale.Reserved, flashsale.Confirming, flashsale.Expired},
		{flashsale.Reserved, flashsale.Confirming, flashsale.Reserved, flashsale.Cancelled},
		{flashsale.Reserved, flashsale.Expired},
		{flashsale.Rejected},
	} {
		rid, user := fmt.Sprint("r", i), fmt.Sprint("u", i)
		d.accept(rid, user, 3)
		for v, state := range way {
			d.apply(effect(rid, user, 3, state, int64(v+1)), flashsale.AppliedMoved)
			d.is(rid, state, int64(v+1))
			switch state.Class() {
			case flashsale.Held:
				d.figures(97-taken, 3, taken)
			case flashsale.Sold:
				taken += 3
				d.figures(100-taken, 0, taken)
			case flashsale.Free:
				d.figures(100-taken, 0, taken)
			}
		}
	}
	equal(d, "pending", d.view().Queue.Pending, 0)
}

func outOfOrder(d *desk) {
	d.sell(10)
	d.accept("r1", "u1", 2)
	steps := []flashsale.Effect{
		effect("r1", "u1", 2, flashsale.Reserved, 1), effect("r1", "u1", 2, flashsale.Confirming, 2),
		effect("r1", "u1", 2, flashsale.Reserved, 3), effect("r1", "u1", 2, flashsale.Cancelled, 4),
	}
	for i, step := range steps {
		d.apply(step, flashsale.AppliedMoved)
		for _, old := range steps[:i+1] {
			d.apply(old, flashsale.AppliedOld)
		}
		d.is("r1", step.State, step.Version)
	}
	d.figures(10, 0, 0)
}

func skipVersions(d *desk) {
	d.sell(10)
	d.accept("r1", "u1", 2)
	d.apply(effect("r1", "u1", 2, flashsale.Confirmed, 7), flashsale.AppliedMoved)
	d.apply(effect("r1", "u1", 2, flashsale.Reserved, 1), flashsale.AppliedOld)
	d.apply(effect("r1", "u1", 2, flashsale.Confirming, 6), flashsale.AppliedOld)
	d.figures(8, 0, 2)
	d.accept("r2", "u2", 2)
	d.apply(effect("r2", "u2", 2, flashsale.Expired, 1<<40), flashsale.AppliedMoved)
	d.apply(effect("r2", "u2", 2, flashsale.Confirming, 1<<40-1), flashsale.AppliedOld)
	d.is("r2", flashsale.Expired, 1<<40)
	d.figures(8, 0, 2)
}

// endIsTheEnd: SQL never says so, and a stock that hears it must not sell a unit twice.
func endIsTheEnd(d *desk) {
	d.sell(10)
	for i, end := range []flashsale.State{flashsale.Rejected, flashsale.Cancelled, flashsale.Expired, flashsale.Confirmed} {
		rid := fmt.Sprint("r", i)
		d.accept(rid, rid, 1)
		d.apply(effect(rid, rid, 1, end, 3), flashsale.AppliedMoved)
		for _, next := range []flashsale.State{flashsale.Reserved, flashsale.Confirming, flashsale.Confirmed, flashsale.Expired} {
			d.apply(effect(rid, rid, 1, next, 9), flashsale.AppliedOld)
		}
		d.is(rid, end, 3)
	}
	d.figures(9, 0, 1)
}

func unknownRIDs(d *desk) {
	d.sell(10)
	for _, state := range []flashsale.State{flashsale.Reserved, flashsale.Confirming, flashsale.Confirmed} {
		d.apply(effect("lost", "u1", 2, state, 4), flashsale.AppliedLost)
		d.is("lost", flashsale.None, 0)
	}
	for i, state := range []flashsale.State{flashsale.Rejected, flashsale.Cancelled, flashsale.Expired} {
		rid := fmt.Sprint("r", i)
		d.apply(effect(rid, "u1", 2, state, 2), flashsale.AppliedStored)
		d.is(rid, state, 2)
		d.apply(effect(rid, "u1", 2, state, 2), flashsale.AppliedOld)
		d.apply(effect(rid, "u1", 2, flashsale.Reserved, 1), flashsale.AppliedOld)
	}
	d.figures(10, 0, 0)
	d.accept("r9", "u1", 5) // what has ended does not count for the user
}

func storedEnd(d *desk) {
	d.sell(10)
	d.apply(effect("r1", "u1", 2, flashsale.Rejected, 1), flashsale.AppliedStored)
	d.repeat(d.ask("r1", "u1", 2), flashsale.Rejected, 1)
	d.refuse(d.ask("r1", "u2", 2), flashsale.CodeConflict)
	d.refuse(d.ask("r1", "u1", 1), flashsale.CodeConflict)
	d.figures(10, 0, 0)
	d.depth(0, 0, 0)
}

func manyAtOnce(d *desk) {
	d.sell(10)
	for i := range 4 {
		d.accept(fmt.Sprint("r", i), fmt.Sprint("u", i), 1)
	}
	jobs := d.pulls("c1", 3, "r0", "r1", "r2")
	effects := []flashsale.Effect{
		effect("r0", "u0", 1, flashsale.Reserved, 1), effect("r1", "u1", 1, flashsale.Rejected, 1), effect("lost", "u", 1, flashsale.Reserved, 1),
		effect("r0", "u0", 1, flashsale.Confirmed, 2), effect("r0", "u0", 1, flashsale.Reserved, 1), effect("gone", "u", 1, flashsale.Expired, 2),
		effect("r2", "u2", 1, flashsale.Reserved, 1),
	}
	acks := append(ids(jobs), ids(jobs)[0], "no-such-job", "0-0", "18446744073709551615-1", "")
	want := []flashsale.Applied{
		flashsale.AppliedMoved, flashsale.AppliedMoved, flashsale.AppliedLost, flashsale.AppliedMoved, flashsale.AppliedOld,
		flashsale.AppliedStored, flashsale.AppliedMoved,
	}
	for i := range 2 {
		got, err := d.stock.Apply(d.ctx, d.key, d.epoch, effects, acks)
		d.check("Apply", err)
		equal(d, "applied", fmt.Sprint(got), fmt.Sprint(want))
		d.figures(7, 2, 1)
		d.depth(1, 0, 0)
		if i == 0 {
			want = []flashsale.Applied{
				flashsale.AppliedOld, flashsale.AppliedOld, flashsale.AppliedLost, flashsale.AppliedOld, flashsale.AppliedOld,
				flashsale.AppliedOld, flashsale.AppliedOld,
			}
		}
	}
	d.pulls("c1", 10, "r3")
}

func timeOfTheState(d *desk) {
	d.sell(10)
	d.accept("r1", "u1", 1)
	for i, state := range []flashsale.State{flashsale.Reserved, flashsale.Confirming, flashsale.Confirmed} {
		d.clock.advance(1234 * time.Millisecond)
		d.apply(effect("r1", "u1", 1, state, int64(i+1)), flashsale.AppliedMoved)
		sameEntry(d, d.find("r1"), flashsale.Entry{RID: "r1", User: "u1", Quantity: 1, State: state, Version: int64(i + 1), At: d.clock.now()})
	}
	at := d.clock.now()
	d.clock.advance(time.Second)
	d.apply(effect("r1", "u1", 1, flashsale.Confirmed, 3), flashsale.AppliedOld)
	equal(d, "the time of the state", d.find("r1").At.Equal(at), true)
	d.apply(effect("r2", "u2", 4, flashsale.Cancelled, 2), flashsale.AppliedStored)
	sameEntry(d, d.find("r2"), flashsale.Entry{RID: "r2", User: "u2", Quantity: 4, State: flashsale.Cancelled, Version: 2, At: d.clock.now()})
}

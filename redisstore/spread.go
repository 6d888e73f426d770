package redisstore

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// A take whose charges lie in several shards of a cluster is one take for each of them, at the same time. If any denies,
// the others have charged what must be given back, in a second round trip; so is what settling and shadow charges took in a
// shard that passed while the whole did not. A charge is therefore never missing when the take is allowed, and quota may
// be held for the time of a denied take: never more is admitted than the limits say.
//
// It runs in a goroutine of its own, which outlives a caller that leaves: what was charged for nobody is given back too.

// spread is such a take.
type spread struct {
	v       *view
	charges []headgate.Charge
	groups  []group
	state   atomic.Int32
	done    chan struct{} // closed when everything is over

	// Written before state becomes spreadJudged.
	decision headgate.Decision
	err      *headgate.Error // written before done is closed
}

// The states of a spread take.
const (
	spreadRuns   int32 = iota
	spreadJudged       // the verdict is there; what must be given back may be on its way
	spreadLeft         // the caller has left before there was a verdict
)

// group is the part of a take in one shard.
type group struct {
	indexes []int // of the take's charges
	a       answerer
	err     *headgate.Error
}

func (v *view) takeSpread(ctx context.Context, charges []headgate.Charge, groups map[int][]int, d *headgate.Decision) *headgate.Error {
	if ctx.Err() != nil {
		return newError(headgate.CodeTimeout, ctx.Err(), "the time was up before anything was sent; nothing was charged")
	}
	if err := v.s.admit(&v.s.spreads, int64(v.s.cfg.MaxQueue), "takes over several shards"); err != nil {
		return err
	}
	t := &spread{v: v, done: make(chan struct{}), charges: copyCharges(charges)}
	for _, indexes := range groups {
		g := group{indexes: indexes}
		for _, i := range indexes {
			g.a.charges = append(g.a.charges, t.charges[i])
		}
		t.groups = append(t.groups, g)
	}
	go t.run()
	return t.await(ctx, d)
}

// admit notes a goroutine that Close waits for, and that counter counts up to most.
func (s *Store) admit(counter *atomic.Int64, most int64, what string) *headgate.Error {
	s.lanes[0].mu.Lock()
	defer s.lanes[0].mu.Unlock()
	switch {
	case s.lanes[0].closed:
		return newError(headgate.CodeClosed, nil, "the store is closed")
	case counter.Add(1) > most:
		counter.Add(-1)
		return newError(headgate.CodeOverloaded, nil, "%d %s are under way already; nothing was charged", most, what)
	}
	s.senders.Add(1)
	return nil
}

func copyCharges(charges []headgate.Charge) []headgate.Charge {
	own := append([]headgate.Charge(nil), charges...)
	for i := range own {
		if own[i].Lockout != nil {
			l := *own[i].Lockout
			own[i].Lockout = &l
		}
	}
	return own
}

// await waits for the end, or for the verdict if time is up.
func (t *spread) await(ctx context.Context, d *headgate.Decision) *headgate.Error {
	timer := time.NewTimer(t.v.s.cfg.Timeout)
	defer timer.Stop()
	var own error
	select {
	case <-t.done:
	case <-ctx.Done():
		own = ctx.Err()
	case <-timer.C:
	}
	if t.state.CompareAndSwap(spreadRuns, spreadLeft) {
		select {
		case <-t.done: // it failed before the caller left
			return t.err
		default:
			return leaveError(true, own, nil)
		}
	}
	d.Reset(len(t.decision.Outcomes))
	copy(d.Outcomes, t.decision.Outcomes)
	d.Allowed, d.Binding = t.decision.Allowed, t.decision.Binding
	return nil
}

// run asks every shard, judges, and gives back what must be.
func (t *spread) run() {
	s := t.v.s
	defer s.senders.Done()
	defer s.spreads.Add(-1)
	defer close(t.done)
	t.each(func(g *group) {
		g.err = t.v.ask(s.base, &g.a)
	})
	if t.err = t.failure(); t.err != nil {
		if !t.giveBack(func(*group, int) bool { return true }) {
			t.err = newError(headgate.CodeIndeterminate, t.err, "a part of the take failed and another could not be given back")
		}
		return
	}
	if err := t.judge(); err != nil {
		t.err = err
		t.giveBack(func(*group, int) bool { return true })
		return
	}
	left := !t.state.CompareAndSwap(spreadRuns, spreadJudged)
	t.giveBack(func(g *group, i int) bool { return left || !g.a.through(i) })
}

// each runs f on every group at the same time.
func (t *spread) each(f func(*group)) {
	var wg sync.WaitGroup
	for i := range t.groups[1:] {
		wg.Go(func() { f(&t.groups[1+i]) })
	}
	f(&t.groups[0])
	wg.Wait()
}

// failure is the error of a take of which a part has none: that which says least of what was charged.
func (t *spread) failure() (worst *headgate.Error) {
	for i := range t.groups {
		err := t.groups[i].err
		if err != nil && (worst == nil || err.Code == headgate.CodeIndeterminate) {
			worst = err
		}
	}
	return worst
}

// judge makes the decision of the whole from its parts.
func (t *spread) judge() *headgate.Error {
	paid, shadow := true, true
	for i := range t.groups {
		a := &t.groups[i].a
		a.judge()
		paid, shadow = paid && a.paid, shadow && a.shadow
	}
	t.decision.Reset(len(t.charges))
	for gi := range t.groups {
		g := &t.groups[gi]
		g.a.paid, g.a.shadow = paid, shadow
		for j, i := range g.indexes {
			amount := g.a.charged(j)
			if !g.a.through(j) {
				amount = 0
			}
			if err := g.a.outcome(j, amount, &t.decision.Outcomes[i]); err != nil {
				return err
			}
			t.v.s.noteNew(&g.a.charges[j], &g.a.parts[j])
		}
	}
	t.decision.Conclude(t.charges)
	return nil
}

// giveBack refunds the charges that which names, and reports whether all of it worked.
func (t *spread) giveBack(which func(*group, int) bool) bool {
	var failed atomic.Bool
	t.each(func(g *group) {
		owed, marks := g.owed(which)
		if len(owed) == 0 {
			return
		}
		if _, err := t.v.refund(t.v.s.base, owed, marks); err != nil {
			failed.Store(true)
			t.v.s.complain(err)
		}
	})
	return !failed.Load()
}

// owed returns what a group charged, as refunds.
func (g *group) owed(which func(*group, int) bool) (owed []headgate.Charge, marks []int64) {
	if g.err != nil {
		return nil, nil
	}
	for j := range g.a.charges {
		amount := g.a.charged(j)
		if amount == 0 || g.a.keptSlot(j) || !which(g, j) {
			continue
		}
		var o headgate.Outcome
		if err := g.a.outcome(j, amount, &o); err != nil {
			continue
		}
		c := g.a.charges[j]
		c.Cost, c.Mode, c.Lockout = amount, headgate.Settle, nil
		owed, marks = append(owed, c), append(marks, o.Receipt.Mark)
	}
	return owed, marks
}

// keptSlot tells of a holder who had its slot before the take: the take gave it nothing, so there is nothing to give back.
func (a *answerer) keptSlot(i int) bool {
	p := &a.parts[i]
	return kindOf(a.charges[i].Limit) == kindHolders && p.state != "" && p.state[0] == formatHolders && p.state[14]&holderHasSlot != 0
}

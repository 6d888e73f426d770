package faults

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// floodCallers is how many calls of a flood are under way at a time.
const floodCallers = 64

// flood is a new client at each request, so many a second, at the three flood rules in turn. With it comes one client who
// asks at each of them all the time, and whom the flood must not help.
func (i *instance) flood(ctx context.Context, perSecond int) {
	var n, decided, failed atomic.Int64
	began := time.Now()
	gap := time.Second / time.Duration(perSecond)
	var callers sync.WaitGroup
	for range floodCallers {
		callers.Go(func() {
			pause := time.NewTimer(0)
			defer pause.Stop()
			for ctx.Err() == nil {
				number := n.Add(1)
				if early := time.Until(began.Add(time.Duration(number) * gap)); early > time.Millisecond {
					pause.Reset(early)
					<-pause.C
				}
				v := i.stack.engine.Decide(context.Background(), request(floodStrict+uint8(number%3), uint32(number)))
				decided.Add(1)
				if v.Kind != httpverdict.Allow && v.Kind != httpverdict.Limited {
					failed.Add(1)
				}
				if v.Done != nil {
					v.Done(context.Background(), httpverdict.Result{Status: 200})
				}
			}
		})
	}
	callers.Go(func() { i.besiege(ctx) })
	callers.Wait()
	now := time.Now()
	i.write(&record{Kind: flooded, Began: began.UnixMicro(), Ended: now.UnixMicro(), A: decided.Load(), B: failed.Load()})
}

// besiege has the one client ask.
func (i *instance) besiege(ctx context.Context) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
		for rule := floodStrict; rule < allRules; rule++ {
			i.request(rule)
		}
	}
}

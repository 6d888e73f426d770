package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/memstock"
)

// farStock is a stock behind a network: each call takes half of away there and half of it back. It counts what reaches it.
type farStock struct {
	*memstock.Stock
	away     time.Duration
	down     atomic.Bool
	blind    atomic.Bool // looks fail
	reserves atomic.Int64
	lulls    atomic.Int64
	finds    atomic.Int64
	// bend, if there is one, changes what a look finds.
	bend func(*flashsale.Lull)
	// accepted is told of what is taken, as it is.
	accepted func(*flashsale.Answer)

	mu    sync.Mutex
	taken map[string]time.Time // when rids were taken
	users map[string]time.Time // when users first took something
}

// far makes a shop's stock a far one for the engines that come after.
func (s *shop) far(away time.Duration) *farStock {
	return &farStock{Stock: s.stock, away: away, taken: map[string]time.Time{}, users: map[string]time.Time{}}
}

func (f *farStock) calls() int64 { return f.reserves.Load() + f.lulls.Load() + f.finds.Load() }

func (f *farStock) travel(ctx context.Context, counted *atomic.Int64) error {
	counted.Add(1)
	if f.down.Load() {
		pause(ctx, 100*time.Millisecond)
		return errorf(flashsale.CodeUnavailable, "the line is cut")
	}
	if f.away > 0 && !pause(ctx, f.away/2) {
		return interrupted(ctx)
	}
	return nil
}

func (f *farStock) Reserve(ctx context.Context, key flashsale.Key, epoch int64, ask *flashsale.Ask) (flashsale.Answer, error) {
	if err := f.travel(ctx, &f.reserves); err != nil {
		return flashsale.Answer{}, err
	}
	a, err := f.Stock.Reserve(ctx, key, epoch, ask)
	if a.Accepted {
		if f.accepted != nil {
			f.accepted(&a)
		}
		f.mu.Lock()
		f.taken[ask.RID] = time.Now()
		if _, ok := f.users[ask.User]; !ok {
			f.users[ask.User] = time.Now()
		}
		f.mu.Unlock()
	}
	if f.away > 0 {
		pause(ctx, f.away/2)
	}
	return a, err
}

func (f *farStock) Lull(ctx context.Context, key flashsale.Key, epoch int64, ask flashsale.LullAsk) (flashsale.Lull, error) {
	if err := f.travel(ctx, &f.lulls); err != nil {
		return flashsale.Lull{}, err
	}
	if f.blind.Load() {
		return flashsale.Lull{}, errorf(flashsale.CodeUnavailable, "nothing to be seen")
	}
	l, err := f.Stock.Lull(ctx, key, epoch, ask)
	if f.bend != nil {
		f.bend(&l)
	}
	if f.away > 0 {
		pause(ctx, f.away/2)
	}
	return l, err
}

func (f *farStock) Find(ctx context.Context, key flashsale.Key, epoch int64, rids []string) ([]flashsale.Entry, error) {
	if err := f.travel(ctx, &f.finds); err != nil {
		return nil, err
	}
	return f.Stock.Find(ctx, key, epoch, rids)
}

// wasTaken reports whether a rid had been taken before a moment.
func (f *farStock) wasTaken(rid string, before time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, ok := f.taken[rid]
	return ok && at.Before(before)
}

// fleet are instances on one far stock.
type fleet struct {
	*shop
	far     *farStock
	engines []*Engine
}

func openFleet(t *testing.T, n int, plan shopPlan, away time.Duration) *fleet {
	t.Helper()
	s := openShop(t, plan)
	t.Cleanup(func() { pause(context.Background(), 2*glanceTime) }) // in a bubble: looks that are under way come to their end
	f := &fleet{shop: s, far: s.far(away)}
	for range n {
		f.engines = append(f.engines, s.another(func(c *Config) { c.Stock, c.Observer = f.far, nobody{} }))
	}
	return f
}

// click is a call of a user on an instance, with a new token.
func (f *fleet) click(engine int, user string, quantity int64) (ReserveAnswer, error) {
	f.t.Helper()
	r := f.request(user)
	r.Quantity = quantity
	return f.engines[engine].Reserve(f.t.Context(), r)
}

// sellOut reserves all units, and lets all instances learn of it.
func (f *fleet) sellOut() (rids []string) {
	f.t.Helper()
	for i := int64(0); f.view().Available > 0; i++ {
		answer, err := f.click(0, fmt.Sprint("early-", i), 1)
		if err != nil {
			f.t.Fatal(err)
		}
		rids = append(rids, answer.RID)
	}
	for i := range f.engines {
		for range 2 { // the second waits for the look that the first has begun
			_, err := f.click(i, fmt.Sprint("late-", i), 1)
			wantCode(f.t, "after the last unit", err, flashsale.CodeSoldOut)
		}
	}
	return rids
}

// giveBack lets the stock follow a rejection.
func (f *fleet) giveBack(rids ...string) {
	f.t.Helper()
	effects := make([]flashsale.Effect, len(rids))
	for i, rid := range rids {
		effects[i] = flashsale.Effect{RID: rid, User: "early", Quantity: 1, State: flashsale.Rejected, Version: 1}
	}
	applied, err := f.stock.Apply(f.t.Context(), phone, f.view().Epoch, effects, nil)
	if err != nil || len(applied) != len(rids) || applied[0] != flashsale.AppliedMoved {
		f.t.Fatalf("given back: %v, %v", applied, err)
	}
}

// configure puts settings in force in the stock.
func (f *fleet) set(change func(*flashsale.Settings)) {
	f.t.Helper()
	set := f.view().Settings
	set.Version++
	change(&set)
	f.book.change(phone, func(s *flashsale.SKUState) { s.Settings = set })
	if err := f.stock.Configure(f.t.Context(), phone, f.view().Epoch, &set); err != nil {
		f.t.Fatal(err)
	}
}

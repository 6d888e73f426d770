package faults

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/internal/referee"
	"github.com/headgate-io/headgate/leasestore"
	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/policy"
)

// everyLimit has each algorithm, and for each the most that a step of the clock ahead may grant: what the limit admits at once.
func everyLimit() map[string]int64 {
	return map[string]int64{
		"token_bucket 90/s burst=45":             45,
		"token_bucket 100/1m burst=10":           10,
		"fixed_window 90/1s":                     90,
		"fixed_window 300/hour":                  300,
		"sliding_log 90/1s":                      90,
		"sliding_window 90/1s cells=5":           90,
		"sliding_window 300/1m":                  300,
		"leaky_bucket 45/s capacity=45":          45,
		"concurrency 20 ttl=1s":                  20,
		"fixed_window 300/day zone=Africa/Cairo": 300,
	}
}

// injected is a clock that a test sets, in virtual time.
type injected struct{ off atomic.Int64 }

func (c *injected) now() time.Time { return time.Now().Add(time.Duration(c.off.Load())) }

// injectedStep sets the clock of a store in memory, and of a policy, while three instances spend from it, with leases where the
// limit can be leased. What is admitted is judged by the time that really passed.
func injectedStep(by time.Duration) func(t *testing.T) *row {
	return func(t *testing.T) *row {
		sum := &row{}
		for text, capacity := range everyLimit() {
			for _, leases := range []bool{false, true} {
				limit := headgate.MustParseLimit(text)
				if leases && !leasestore.CanLease(limit) {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					j := stepUnderLoad(t, limit, leases, by)
					bound := int64(0)
					if by > 0 {
						bound = capacity
					}
					if over := j.Sum().Over; over > bound {
						t.Errorf("%s, leases %v: %d over the limit, %d are the bound", text, leases, over, bound)
					}
					sum.over, sum.bound = sum.over+j.Sum().Over, sum.bound+bound
					sum.decisions += int(steppedFor / steppedTick * fleetSize)
				})
			}
		}
		synctest.Test(t, func(t *testing.T) { sum.decisions += scheduleStepped(t, by) })
		return sum
	}
}

// How long a limit is asked for in virtual time, how often by each instance, and when the clock is set.
const (
	steppedFor  = 6 * time.Second
	steppedTick = 5 * time.Millisecond
	steppedAt   = 2500 * time.Millisecond
)

func stepUnderLoad(t *testing.T, limit headgate.Limit, leases bool, by time.Duration) *referee.Judge {
	t.Helper()
	clock := &injected{}
	upstream := memstore.New(memstore.Config{Now: clock.now})
	instances := make([]headgate.Limiter, fleetSize)
	var closers []func() error
	for i := range instances {
		instances[i] = upstream
		if leases {
			s := leasestore.New(upstream, leasestore.Config{})
			instances[i], closers = s, append(closers, s.Close)
		}
	}
	terms := referee.Terms{}
	if leases && limit.Algorithm() == headgate.AlgTokenBucket {
		terms.Early = leaseLife
	}
	j, err := referee.New(limit, terms)
	if err != nil {
		t.Fatal(err)
	}
	start, stepped := time.Now(), false
	for n := 0; time.Since(start) < steppedFor; n++ {
		if !stepped && time.Since(start) >= steppedAt {
			clock.off.Store(int64(by))
			stepped = true
		}
		for i, l := range instances {
			c := headgate.One("l", "", limit)
			if limit.Algorithm() == headgate.AlgConcurrency {
				c.Holder = fmt.Sprint(n, "-", i)
			}
			d, err := headgate.Take(context.Background(), l, c)
			if err != nil {
				t.Fatal(err)
			}
			if d.Allowed {
				j.Admit(referee.Admission{At: time.Now().UnixMicro(), Units: 1, By: i})
			}
		}
		time.Sleep(steppedTick)
	}
	for _, c := range append(closers, upstream.Close) {
		err = errors.Join(err, c())
	}
	if err != nil {
		t.Error(err)
	}
	return j
}

// scheduleStepped sets the clock of a policy, not that of the store, to and fro between the hours of two schedules. Each is a
// change of the limit, which grants nothing: what passes is never more than the larger limit grants.
func scheduleStepped(t *testing.T, by time.Duration) (decisions int) {
	t.Helper()
	const larger = "token_bucket 40/s burst=20"
	p, err := policy.Parse("policy", []byte(`
version: 1
rules:
  - name: r
    limits: [token_bucket 10/s burst=5]
    schedule: [{daily: '00:30-23:30', zone: UTC, limits: [`+larger+`]}]
`), policy.ParseConfig{})
	if err != nil {
		t.Fatal(err)
	}
	clock, store := &injected{}, memstore.New(memstore.Config{})
	e, err := policy.NewEngine(p, store, policy.EngineConfig{Now: clock.now})
	if err != nil {
		t.Fatal(err)
	}
	j, err := referee.New(headgate.MustParseLimit(larger), referee.Terms{})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 1200 { // synctest begins at midnight
		if n%40 == 0 {
			clock.off.Store(int64(by) * int64(n/40%2))
		}
		v := e.Decide(context.Background(), &httpverdict.Request{Method: "GET", Path: "/"})
		if v.Kind == httpverdict.Allow {
			j.Admit(referee.Admission{At: time.Now().UnixMicro(), Units: 1})
		}
		time.Sleep(steppedTick)
		decisions++
	}
	if over := j.Sum().Over; over > 0 || j.Sum().Admitted == 0 {
		t.Errorf("a schedule on a clock that steps: %+v", j.Sum())
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	return decisions
}

package policy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/memstore"
)

// TestViewsAtManyTimes: views of one engine at different times, used at once, each see the limits of their own time.
func TestViewsAtManyTimes(t *testing.T) {
	e := mustEngine(t, preamble+`
rules:
  - name: r
    limits: [token_bucket 10/s]
    schedule: [{daily: '12:00-13:00', limits: [token_bucket 70/s], ramp: 1m}, {daily: '14:00-15:00', limits: [token_bucket 5/s]}]
`, open{}, EngineConfig{})
	plan := e.policy.rules[0].plan
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(worker), 5))
			for range 500 {
				at := noon.Add(time.Duration(rnd.Int64N(int64(3*time.Hour))) - 10*time.Minute)
				view := *e
				view.still, view.at = true, at
				want, _, _ := plan.At(at, time.Time{})
				if v := view.Decide(context.Background(), request("GET /")); v.Limits[0].Limit != want[0] {
					t.Errorf("at %s: got %s, want %s", at, v.Limits[0].Limit, want[0])
				}
			}
		})
	}
	wg.Wait()
}

// stalling lets takes of the policy's coming into force stall and fail, for a time.
type stalling struct {
	*memstore.Store
	lost  atomic.Bool
	asked atomic.Int64
}

func (s *stalling) Take(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	if charges[0].Slot == forceSlot && s.lost.Load() {
		s.asked.Add(1)
		time.Sleep(200 * time.Millisecond)
		d.Reset(0)
		return errors.New("lost")
	}
	return s.Store.Take(ctx, charges, d)
}

// TestALostStoreStallsNobodyForLong: while nobody knows since when the policy is in force, one request in a second asks, and
// the others go on with whole limits; when the store is back, the warm-up begins.
func TestALostStoreStallsNobodyForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &stalling{Store: memstore.New(memstore.Config{})}
		defer store.Close()
		store.lost.Store(true)
		e := mustEngine(t, "version: 1\nrules: [{name: r, limits: [token_bucket 1000/s burst=1000], warmup: {from: 10%, over: 100s}}]", store, EngineConfig{})
		start := time.Now()
		var stalled atomic.Int64
		var wg sync.WaitGroup
		for i := range 300 { // one each 10 ms, from 1 s on
			wg.Go(func() {
				time.Sleep(time.Second + time.Duration(i)*10*time.Millisecond)
				asked := time.Now()
				if v := e.Decide(t.Context(), request("GET /")); !v.Allowed() || v.Limits[0].Limit.String() != "token_bucket 1000/s" {
					t.Errorf("got %s by %s", v.Kind, v.Limits[0].Limit)
				}
				if time.Since(asked) > 0 {
					stalled.Add(1)
				}
			})
		}
		wg.Go(func() { e.Decide(t.Context(), request("GET /")) })
		wg.Wait()
		if n := store.asked.Load(); n > 5 || stalled.Load() > n {
			t.Errorf("after %s, %d have asked and %d have stalled", time.Since(start), n, stalled.Load())
		}
		store.lost.Store(false)
		time.Sleep(time.Second)
		if v := e.Decide(t.Context(), request("GET /")); v.Limits[0].Limit.String() != "token_bucket 100/s" {
			t.Errorf("got %s", v.Limits[0].Limit)
		}
	})
}

// TestLimitsInForce: what is shown is what requests meet, whether or not a request has asked before.
func TestLimitsInForce(t *testing.T) {
	now := noon
	e := mustEngine(t, preamble+`
rules:
  - {name: plain, limits: [token_bucket 1/s]}
  - name: daily
    limits: [token_bucket 10/s, fixed_window 100/1m]
    schedule: [{daily: '13:00-14:00', limits: [token_bucket 20/s, fixed_window 200/1m]}]
  - {name: warm, limits: [token_bucket 100/s], warmup: {from: 10%, over: 10m}}
  - {name: off, mode: off, limits: [token_bucket 1/s]}
`, newMemory(t), EngineConfig{Now: func() time.Time { return now }})
	texts := func() string {
		var all []string
		for _, r := range e.LimitsInForce() {
			all = append(all, fmt.Sprint(r.Rule, r.Limits))
		}
		return strings.Join(all, " ")
	}
	const base = "plain[token_bucket 1/s] daily[token_bucket 10/s fixed_window 100/1m] "
	if got, want := texts(), base+"warm[token_bucket 100/s]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	e.Decide(t.Context(), request("GET /"))
	if got, want := texts(), base+"warm[token_bucket 10/s]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if now = noon.Add(90 * time.Minute); !strings.Contains(texts(), "daily[token_bucket 20/s fixed_window 200/1m] warm[token_bucket 100/s]") {
		t.Errorf("got %s", texts())
	}
}

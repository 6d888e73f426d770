package main

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/headgate-io/headgate/leasestore"
	"github.com/headgate-io/headgate/memstore"
)

// leases is the name of both sections on leases.
const leases = "leases"

// leasesInProcess measures what a decision costs when its units are in hand.
func leasesInProcess() section {
	return section{
		Name: leases, Title: "Leases in process: a prebuilt charge, one key",
		notes: "Takes of one charge through the Limiter interface. The memory store is what the leases are charged at, and what the same take costs " +
			"without them. Denied: the limit is at its end, and the answer is known. (n×) is how many times worse than the first. The processor's time is the measure where others are at work on the machine.",
		columns: []column{{"million decisions/s, 1 core", higher, 1}, {"2 cores", "", 1}, {"processor ns per decision, 1 core", lower, 1}, {"allocations per decision", "", 3}},
		open: func(testservers.TB) ([]contender, error) {
			const open, shut = "token_bucket 1000000000000/s burst=1000000000000", "fixed_window 10/day"
			return []contender{
				decider("leased token_bucket", open, true), decider("leased fixed_window", "fixed_window 1000000000000/day", true),
				decider("leased, denied", shut, true), decider("memory store, token_bucket", open, false), decider("memory store, denied", shut, false),
			}, nil
		},
	}
}

// decider makes one decision over and over.
func decider(name, text string, leased bool) contender {
	mem := memstore.New(memstore.Config{})
	var limiter headgate.Limiter = mem
	end := mem.Close
	if leased {
		store := leasestore.New(mem, leasestore.Config{})
		limiter, end = store, func() error { return errors.Join(store.Close(), mem.Close()) }
	}
	charge := headgate.One("site/0", "", headgate.MustParseLimit(text))
	return contender{name: name, close: end, try: func(d time.Duration) ([]float64, error) {
		one, err := decide(limiter, charge, 1, d/2)
		if err != nil {
			return nil, err
		}
		two, err := decide(limiter, charge, 2, d/2)
		return []float64{one.millions, two.millions, one.nanos, one.allocs}, err
	}}
}

// decisions is what was measured: millions in a second, and the processor's nanoseconds and the allocations of each.
type decisions struct{ millions, nanos, allocs float64 }

// decide takes a charge on so many cores for d, whatever the answer. What a lease needs to grow, the first tenth, is not counted.
func decide(l headgate.Limiter, charge headgate.Charge, cores int, d time.Duration) (decisions, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
	if _, err := decideFor(l, charge, cores, d/10); err != nil {
		return decisions{}, err
	}
	return decideFor(l, charge, cores, d)
}

func decideFor(l headgate.Limiter, charge headgate.Charge, cores int, d time.Duration) (decisions, error) {
	var stop atomic.Bool
	var total atomic.Int64
	var failure atomic.Value
	var wg sync.WaitGroup
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began, busy := time.Now(), cpuTime()
	for range cores {
		wg.Go(func() {
			w, ctx, n := new(caller), context.Background(), int64(0)
			w.d.Outcomes = w.outcomes[:0]
			w.charges[0] = charge
			for !stop.Load() {
				for range 256 {
					if err := l.Take(ctx, w.charges[:1], &w.d); err != nil {
						failure.Store(err)
						return
					}
				}
				n += 256
			}
			total.Add(n)
		})
	}
	timer := time.AfterFunc(d, func() { stop.Store(true) })
	wg.Wait()
	elapsed, used := time.Since(began), cpuTime()-busy
	timer.Stop()
	runtime.ReadMemStats(&after)
	err, _ := failure.Load().(error)
	n := float64(total.Load())
	return decisions{n / elapsed.Seconds() / 1e6, float64(used) / n, float64(after.Mallocs-before.Mallocs) / n}, err
}

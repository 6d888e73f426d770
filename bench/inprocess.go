package main

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v4"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	throttledmem "github.com/throttled/throttled/v2/store/memstore"
	ulule "github.com/ulule/limiter/v3"
	ululemem "github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"

	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/headgate-io/headgate/memstore"
)

const inProcessKeys = 16_384

func inProcess() section {
	return section{
		Name: "inprocess", Title: "In process, one limit, 16,384 keys",
		notes: "Nanoseconds of wall time per check with as many goroutines as cores; prebuilt charges, keys in random order, all allowed. " +
			"The floor is what any of them must at least do. (n×) is how many times worse than Headgate.",
		columns: []column{
			{"ns, 1 core", lower, 1}, {"ns, 2 cores", lower, 1}, {"throughput of 2 cores to 1", "", 2}, {"allocations per check", "", 2},
		},
		open: func(testservers.TB) ([]contender, error) {
			var list []contender
			for _, open := range []func([]string) (checker, error){openMemstore, openGoLimiter, openUlule, openThrottled, openTimeRate, openFloor} {
				c, err := open(keys(inProcessKeys))
				if err != nil {
					return list, err
				}
				list = append(list, contender{name: c.name, close: c.close, try: func(d time.Duration) ([]float64, error) {
					return tryInProcess(c, d/2)
				}})
				if err := touchAll(c); err != nil {
					return list, err
				}
			}
			return list, nil
		},
	}
}

// touchAll makes the state of every key, which is not what is measured.
func touchAll(c checker) error {
	do := c.worker()
	for i := range inProcessKeys {
		if err := do(i); err != nil {
			return err
		}
	}
	return nil
}

// tryInProcess measures on one core and then on two.
func tryInProcess(c checker, d time.Duration) ([]float64, error) {
	one, allocs, err := spin(c, 1, d)
	if err != nil {
		return nil, err
	}
	two, _, err := spin(c, 2, d)
	return []float64{one, two, one / two, allocs}, err
}

// spin runs checks on so many cores for d, and returns the nanoseconds and the allocations per check.
func spin(c checker, cores int, d time.Duration) (nanos, allocs float64, err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
	var stop atomic.Bool
	var total atomic.Int64
	var failure atomic.Value
	var wg sync.WaitGroup
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	for w := range cores {
		wg.Go(func() {
			n, err := spinOne(c.worker(), newScatter(w, cmp.Or(c.keys, inProcessKeys)), &stop)
			total.Add(n)
			if err != nil {
				failure.Store(err)
			}
		})
	}
	timer := time.AfterFunc(d, func() { stop.Store(true) })
	wg.Wait()
	elapsed := time.Since(began)
	timer.Stop()
	runtime.ReadMemStats(&after)
	err, _ = failure.Load().(error)
	n := float64(total.Load())
	return float64(elapsed) / n, float64(after.Mallocs-before.Mallocs) / n, err
}

func spinOne(do check, order *scatter, stop *atomic.Bool) (n int64, err error) {
	for !stop.Load() {
		for range 256 {
			if err := do(order.next()); err != nil {
				return n, err
			}
		}
		n += 256
	}
	return n, nil
}

func openMemstore(keys []string) (checker, error) {
	store := memstore.New(memstore.Config{})
	c, err := headgateChecks(store, keys, benchLimit)
	c.name, c.close = "Headgate memstore", store.Close
	return c, err
}

func openGoLimiter(keys []string) (checker, error) {
	store, err := memorystore.New(&memorystore.Config{Tokens: windowCount, Interval: window, InitialAlloc: len(keys)})
	if err != nil {
		return checker{}, err
	}
	ctx := context.Background()
	return checker{name: "sethvargo/go-limiter memorystore", worker: func() check {
		return func(i int) error {
			_, _, _, ok, err := store.Take(ctx, keys[i])
			return allowed(ok, err)
		}
	}, close: func() error { return store.Close(ctx) }}, nil
}

func openUlule(keys []string) (checker, error) {
	store := ululemem.NewStoreWithOptions(ulule.StoreOptions{Prefix: "bench", CleanUpInterval: time.Minute})
	return checker{name: "ulule/limiter memory store", worker: ululeChecks(store, keys)}, nil
}

func ululeChecks(store ulule.Store, keys []string) func() check {
	limiter := ulule.New(store, ulule.Rate{Period: window, Limit: windowCount})
	ctx := context.Background()
	return func() check {
		return func(i int) error {
			c, err := limiter.Get(ctx, keys[i])
			return allowed(!c.Reached, err)
		}
	}
}

func openThrottled(keys []string) (checker, error) {
	store, err := throttledmem.NewCtx(2 * len(keys))
	if err != nil {
		return checker{}, err
	}
	limiter, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerDuration(1, benchPeriod), MaxBurst: benchBurst})
	if err != nil {
		return checker{}, err
	}
	ctx := context.Background()
	return checker{name: "throttled/throttled memstore", worker: func() check {
		return func(i int) error {
			limited, _, err := limiter.RateLimitCtx(ctx, keys[i], 1)
			return allowed(!limited, err)
		}
	}}, nil
}

func openTimeRate(keys []string) (checker, error) {
	var limiters sync.Map
	return checker{name: "x/time rate.Limiter in a sync.Map", worker: func() check {
		return func(i int) error {
			l, ok := limiters.Load(keys[i])
			if !ok {
				l, _ = limiters.LoadOrStore(keys[i], rate.NewLimiter(rate.Every(benchPeriod), benchBurst))
			}
			return allowed(l.(*rate.Limiter).Allow(), nil) //nolint:forcetypeassert // the map holds nothing else
		}
	}}, nil
}

// openFloor is no limiter: a concurrent map, a compare-and-swap and a look at the clock.
func openFloor(keys []string) (checker, error) {
	cells := xsync.NewMap[string, *atomic.Int64]()
	epoch := time.Now()
	return checker{name: "(floor: concurrent map, CAS, clock)", worker: func() check {
		return func(i int) error {
			cell, ok := cells.Load(keys[i])
			if !ok {
				cell, _ = cells.LoadOrStore(keys[i], new(atomic.Int64))
			}
			for {
				old := cell.Load()
				if cell.CompareAndSwap(old, int64(time.Since(epoch))) {
					return nil
				}
			}
		}
	}}, nil
}

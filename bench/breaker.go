package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/redisstore"
	"github.com/headgate-io/headgate/resilience"
)

func breakerOpen() section {
	return section{
		Name: "breaker", Title: "The store is lost and its breaker open, one limit, 16,384 keys",
		notes: "Nanoseconds of wall time per check with as many goroutines as cores, all allowed, as in the section in process. Redis is dead, and the " +
			"breaker asks for it all the while. Where the store asks the breaker by itself, every check goes to the store first. (n×) is how many times worse " +
			"than the memory store alone.",
		columns: []column{
			{"ns, 1 core", lower, 1}, {"ns, 2 cores", lower, 1}, {"throughput of 2 cores to 1", "", 2}, {"allocations per check", "", 2},
		},
		open: func(tb testservers.TB) ([]contender, error) {
			server := testservers.Redis(tb)
			alone, err := openMemstore(keys(inProcessKeys))
			list := []contender{checkedInProcess(alone)}
			var orphans []orphan
			for _, live := range []int{1, 3} {
				for _, stores := range []bool{false, true} {
					o, failed := openOrphan(server, live, stores)
					if failed == nil {
						orphans, list = append(orphans, o), append(list, checkedInProcess(o.checker))
					}
					err = errors.Join(err, failed)
				}
			}
			server.Kill()
			for _, o := range orphans {
				err = errors.Join(err, o.awaitLost(10*time.Second), touchAll(o.checker))
			}
			return list, errors.Join(err, touchAll(alone))
		},
	}
}

func checkedInProcess(c checker) contender {
	return contender{name: c.name, close: c.close, try: func(d time.Duration) ([]float64, error) { return tryInProcess(c, d/2) }}
}

// orphan is a limiter whose store dies.
type orphan struct {
	checker
	lost func() bool
}

// openOrphan opens a limiter for one of so many instances that live. Its breaker is its own, or stores tells that the store reports
// its calls to breakers, and asks them, for each node.
func openOrphan(server *testservers.RedisServer, live int, stores bool) (orphan, error) {
	storeCfg := redisstore.Config{Addrs: []string{server.Addr()}}
	cfg := resilience.LimiterConfig{Live: func() int { return live }}
	name := fmt.Sprintf("Headgate resilience.Limiter, %d live", live)
	var store *redisstore.Store
	if stores {
		cfg.Breakers = resilience.NewBreakers(resilience.BreakersConfig{Probe: func(ctx context.Context, node string) error { return store.Probe(ctx, node) }})
		storeCfg.Breaker, storeCfg.Observer = cfg.Breakers, reporter{breakers: cfg.Breakers}
		name += ", the store asks the breaker"
	}
	store, err := redisstore.New(context.Background(), storeCfg)
	if err != nil {
		return orphan{}, err
	}
	local := memstore.New(memstore.Config{})
	limiter := resilience.NewLimiter(store, local, cfg)
	c, err := headgateChecks(limiter, keys(inProcessKeys), benchLimit)
	c.name, c.close = name, func() error {
		var ended error
		if cfg.Breakers != nil {
			ended = cfg.Breakers.Close()
		}
		return errors.Join(limiter.Close(), ended, store.Close(), local.Close())
	}
	return orphan{c, limiter.Lost}, err
}

// awaitLost asks until the breaker is open.
func (o *orphan) awaitLost(most time.Duration) error {
	do := o.worker()
	for deadline := time.Now().Add(most); !o.lost(); {
		if err := do(0); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: the breaker is not open %s after Redis has died", o.name, most)
		}
	}
	return nil
}

// reporter tells breakers of calls.
type reporter struct {
	nobody
	breakers *resilience.Breakers
}

func (r reporter) Call(node, _ string, _ int, took time.Duration, code headgate.Code) {
	r.breakers.Called(node, took, string(code))
}

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/headgate-io/headgate/leasestore"
	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/redisstore"
)

// deniedLimit denies for the whole comparison once it is spent.
const (
	deniedLimit = "token_bucket 10/1d burst=10"
	deniedBurst = 10
)

var errAllowed = errors.New("a check was allowed; the comparison needs all to be denied")

func denials() section {
	return section{
		Name: "denials", Title: "Denials, one limit, 1,000 keys that are over it",
		notes: "Nanoseconds of wall time per denial with as many goroutines as cores; prebuilt charges, keys in random order. The deny cache is " +
			"in front of the same Redis that is asked for each check without it. (n×) is how many times worse than the cache.",
		columns: []column{
			{"ns, 1 core", lower, 1}, {"ns, 2 cores", lower, 1}, {"throughput of 2 cores to 1", "", 2}, {"allocations per check", "", 2},
		},
		open: func(tb testservers.TB) ([]contender, error) {
			server := testservers.Redis(tb)
			redis, err := openCounted(server, "denials", nobody{})
			if err != nil {
				return nil, err
			}
			memory := memstore.New(memstore.Config{})
			var list []contender
			for _, c := range []checker{
				{name: "Headgate deny cache over redisstore", limiter: leasestore.NewDenyCache(redis, leasestore.DenyConfig{}), close: redis.Close},
				{name: "Headgate memstore", limiter: memory, close: memory.Close},
				{name: "Headgate redisstore", limiter: redis},
			} {
				c.keys = attackedKeys
				if err := exhaust(c.limiter, attackedKeys, deniedLimit); err != nil {
					return list, err
				}
				c.worker = deniedChecks(c.limiter, attackedKeys, deniedLimit)
				list = append(list, contender{name: c.name, close: c.close, try: func(d time.Duration) ([]float64, error) {
					return tryInProcess(c, d/2)
				}})
			}
			return list, nil
		},
	}
}

// exhaust takes all that the keys have and, once more, so that a cache learns of it, one.
func exhaust(l headgate.Limiter, n int, text string) error {
	charges := []headgate.Charge{headgate.One("bench/0", "", headgate.MustParseLimit(text))}
	var d headgate.Decision
	for _, key := range keys(n) {
		charges[0].Key = key
		for _, cost := range []int64{deniedBurst, 1} {
			charges[0].Cost = cost
			if err := l.Take(context.Background(), charges, &d); err != nil {
				return err
			}
		}
		if d.Allowed {
			return errAllowed
		}
	}
	return nil
}

// deniedChecks expects every check to be denied.
func deniedChecks(l headgate.Limiter, n int, text string) func() check {
	list, limit := keys(n), headgate.MustParseLimit(text)
	return func() check {
		w, ctx := new(caller), context.Background()
		w.charges[0] = headgate.One("bench/0", "", limit)
		charges := w.charges[:1]
		w.d.Outcomes = w.outcomes[:0]
		return func(i int) error {
			charges[0].Key = list[i]
			err := l.Take(ctx, charges, &w.d)
			if err == nil && w.d.Allowed {
				return errAllowed
			}
			return err
		}
	}
}

// nobody observes nothing.
type nobody struct{}

func (nobody) Call(string, string, int, time.Duration, headgate.Code) {}
func (nobody) Failed(headgate.Code, bool)                             {}
func (nobody) UnknownStates(int)                                      {}
func (nobody) NewKey(string)                                          {}

// callCounter counts the calls on the wire, and the takes in them.
type callCounter struct {
	nobody
	calls, takes atomic.Int64
}

func (c *callCounter) Call(_, _ string, takes int, _ time.Duration, _ headgate.Code) {
	c.calls.Add(1)
	c.takes.Add(int64(takes))
}

func openCounted(server *testservers.RedisServer, namespace string, o redisstore.Observer) (*redisstore.Store, error) {
	return redisstore.New(context.Background(), redisstore.Config{Addrs: []string{server.Addr()}, Namespace: namespace, Timeout: 5 * time.Second, Observer: o})
}

const (
	attackedKeys = 1_000
	// attackLimit is in force during an attack, which lasts a part of its window only.
	attackLimit  = "fixed_window 10/1m"
	attackWindow = time.Minute
	attackTime   = 20 * time.Second
	attackers    = 64
)

// attack counts what an attack costs Redis.
func attack() section {
	return section{
		Name: "attack", Title: "An attack on 1,000 denied keys, limit " + attackLimit + ", 64 concurrent callers",
		notes: "Requests at random keys that are over their limit, from the first of them on; with the cache 1,000,000, without it 100,000. Takes sent are " +
			"those that Redis had to decide, calls the script calls that brought them, which have up to 64 takes each.",
		columns: []column{{"takes sent, % of requests", lower, 3}, {"calls, % of requests", lower, 3}, {"requests/s", higher, 0}},
		open: func(tb testservers.TB) ([]contender, error) {
			server := testservers.Redis(tb)
			cached, err1 := attackContender(server, "Headgate deny cache over redisstore", 1_000_000, func(l headgate.Limiter) headgate.Limiter {
				return leasestore.NewDenyCache(l, leasestore.DenyConfig{})
			})
			plain, err2 := attackContender(server, "Headgate redisstore", 100_000, func(l headgate.Limiter) headgate.Limiter { return l })
			return []contender{cached, plain}, errors.Join(err1, err2)
		},
	}
}

func attackContender(server *testservers.RedisServer, name string, requests int64, front func(headgate.Limiter) headgate.Limiter) (contender, error) {
	counter := &callCounter{}
	store, err := openCounted(server, fmt.Sprint("attack:", requests), counter)
	if err != nil {
		return contender{}, err
	}
	return contender{name: name, close: store.Close, try: func(time.Duration) ([]float64, error) {
		awaitWindow(attackWindow, attackTime)
		// The keys are denied, and the cache, which is new, does not know of it.
		if err := exhaust(store, attackedKeys, attackLimit); err != nil {
			return nil, err
		}
		limiter := front(store)
		calls, takes, began := counter.calls.Load(), counter.takes.Load(), time.Now()
		if err := request(limiter, requests); err != nil {
			return nil, err
		}
		took := time.Since(began)
		share := func(n int64) float64 { return 100 * float64(n) / float64(requests) }
		return []float64{share(counter.takes.Load() - takes), share(counter.calls.Load() - calls), float64(requests) / took.Seconds()}, nil
	}}, nil
}

// awaitWindow waits until so much is left of a window that is aligned to the epoch.
func awaitWindow(window, left time.Duration) {
	if rest := window - time.Duration(time.Now().UnixNano())%window; rest < left {
		<-time.After(rest)
	}
}

// request sends so many requests from all attackers.
func request(l headgate.Limiter, requests int64) error {
	var sent atomic.Int64
	var failure atomic.Value
	var wg sync.WaitGroup
	worker := deniedChecks(l, attackedKeys, attackLimit)
	for w := range attackers {
		wg.Go(func() {
			do, order := worker(), newScatter(w, attackedKeys)
			for sent.Add(1) <= requests {
				if err := do(order.next()); err != nil {
					failure.Store(err)
					return
				}
			}
		})
	}
	wg.Wait()
	err, _ := failure.Load().(error)
	return err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/headgate-io/headgate/leasestore"
	"github.com/headgate-io/headgate/redisstore"
)

// leasesOnRedis measures how well several instances share one limit.
func leasesOnRedis() section {
	return section{
		Name: leases, Title: "Leases of one limit, shared by instances on one Redis",
		notes: "Each instance has a client and leases of its own; requests are paced, in all at the rate shown, and all above the limit. Of the limit: what was " +
			"admitted in the time measured, of what comes in it. Of all that is allowed: the same since the first request, of the burst (the first period) and what " +
			"has come since; over 100 is over the limit. Redis CPU and calls are what the server counts.",
		columns: []column{
			{"decisions/s", "", 0}, {"admitted, % of the limit", "", 2}, {"% of all that is allowed", "", 2}, {"calls, % of decisions", "", 3},
			{"Redis CPU, %", "", 1}, {"longest decision, ms", "", 1},
		},
		open: func(tb testservers.TB) ([]contender, error) {
			server := testservers.Redis(tb)
			const bucket, window = "token_bucket 100000/s", "sliding_window 1000000/1s cells=10"
			return []contender{
				sharing(server, crew{limit: bucket, perSecond: 100_000, instances: 4, busy: 4, demand: 200_000}),
				sharing(server, crew{limit: window, perSecond: 1_000_000, instances: 4, busy: 4, demand: 1_200_000}),
				sharing(server, crew{limit: bucket, perSecond: 100_000, instances: 10, busy: 1, demand: 200_000}),
				sharing(server, crew{limit: bucket, perSecond: 100_000, instances: 10, busy: 3, demand: 200_000}),
				sharing(server, crew{limit: window, perSecond: 1_000_000, instances: 10, busy: 1, demand: 1_200_000}),
			}, nil
		},
	}
}

// crew is a number of instances of which some are busy.
type crew struct {
	limit     string
	perSecond float64
	instances int
	busy      int
	demand    float64 // per second, in all
}

func (c crew) name() string {
	return fmt.Sprintf("%s, %d of %d instances busy, %.0fk/s", c.limit, c.busy, c.instances, c.demand/1e3)
}

func sharing(server *testservers.RedisServer, c crew) contender {
	var run atomic.Int64
	return contender{name: c.name(), try: func(d time.Duration) ([]float64, error) {
		// Never on the same states: each try begins with a limit that nobody has used.
		f, err := openFleet(server, c, fmt.Sprintf("try-%d", run.Add(1)))
		if err != nil {
			return nil, err
		}
		figures, err := f.measure(server, d)
		return figures, errors.Join(err, f.close())
	}}
}

// fleet is a crew at work.
type fleet struct {
	crew
	limit headgate.Limit
	key   string

	stores    []*leasestore.Store
	upstreams []*redisstore.Store
	stop      atomic.Bool
	decided   atomic.Int64
	admitted  atomic.Int64

	mu      sync.Mutex
	longest time.Duration // of a decision; guarded by mu
}

func openFleet(server *testservers.RedisServer, c crew, key string) (f *fleet, err error) {
	f = &fleet{crew: c, key: c.name() + key}
	if f.limit, err = headgate.ParseLimit(c.limit); err != nil {
		return f, err
	}
	for range c.instances {
		up, err := redisstore.New(context.Background(), redisstore.Config{Addrs: []string{server.Addr()}, Timeout: 5 * time.Second})
		if err != nil {
			return f, errors.Join(err, f.close())
		}
		f.upstreams = append(f.upstreams, up)
		f.stores = append(f.stores, leasestore.New(up, leasestore.Config{}))
	}
	return f, nil
}

func (f *fleet) close() (err error) {
	for i := range f.stores {
		err = errors.Join(err, f.stores[i].Close(), f.upstreams[i].Close())
	}
	return err
}

// reading is what was counted until a moment.
type reading struct {
	at                time.Time
	decided, admitted float64
	load              serverLoad
	scripts           float64
}

func (f *fleet) read(server *testservers.RedisServer) (r reading, err error) {
	r.load, err = readServerLoad(server)
	if err == nil {
		r.scripts, err = scriptCalls(server)
	}
	r.at, r.decided, r.admitted = time.Now(), float64(f.decided.Load()), float64(f.admitted.Load())
	return r, err
}

// scriptCalls is how many scripts Redis has been asked to run. What a script itself asks of Redis is not among them.
func scriptCalls(server *testservers.RedisServer) (n float64, err error) {
	stats, err := server.Info("commandstats")
	for _, name := range []string{"cmdstat_eval", "cmdstat_evalsha"} {
		if rest, ok := strings.CutPrefix(stats[name], "calls="); ok {
			calls, _, _ := strings.Cut(rest, ",")
			one, failed := strconv.ParseFloat(calls, 64)
			n, err = n+one, errors.Join(err, failed)
		}
	}
	return n, err
}

func (f *fleet) measure(server *testservers.RedisServer, d time.Duration) ([]float64, error) {
	var wg sync.WaitGroup
	var failures [64]error
	began := time.Now()
	for i := range f.busy {
		wg.Go(func() { failures[i] = f.request(f.stores[i], f.demand/float64(f.busy)) })
	}
	// The first two seconds use up the burst, and are another matter. Then whole periods count.
	warm, span := d, d
	if d >= time.Second {
		warm, span = 2*time.Second, d.Truncate(time.Second)
	}
	first, err1 := f.after(server, warm)
	last, err2 := f.after(server, span)
	f.stop.Store(true)
	wg.Wait()
	seconds, decided := last.at.Sub(first.at).Seconds(), last.decided-first.decided
	return []float64{
		decided / seconds, 100 * (last.admitted - first.admitted) / (f.perSecond * seconds),
		100 * last.admitted / (f.perSecond * (1 + last.at.Sub(began).Seconds())),
		100 * (last.scripts - first.scripts) / decided, 100 * (last.load.cpu - first.load.cpu) / seconds,
		float64(f.longest) / 1e6,
	}, errors.Join(append(failures[:], err1, err2)...)
}

// after waits and reads.
func (f *fleet) after(server *testservers.RedisServer, d time.Duration) (reading, error) {
	<-time.After(d)
	return f.read(server)
}

// request sends requests to one instance at a pace: what is due, every millisecond.
func (f *fleet) request(l headgate.Limiter, perSecond float64) error {
	w, ctx := new(caller), context.Background()
	w.d.Outcomes = w.outcomes[:0]
	w.charges[0] = headgate.One("shared", f.key, f.limit)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	began, sent, longest := time.Now(), 0.0, time.Duration(0)
	defer func() {
		f.mu.Lock()
		f.longest = max(f.longest, longest)
		f.mu.Unlock()
	}()
	for !f.stop.Load() {
		before := time.Since(began)
		due := before.Seconds() * perSecond
		var decided, admitted int64
		for ; sent < due; sent++ {
			if err := l.Take(ctx, w.charges[:1], &w.d); err != nil {
				f.stop.Store(true)
				return err
			}
			now := time.Since(began)
			longest, before = max(longest, now-before), now
			decided++
			if w.d.Allowed {
				admitted++
			}
		}
		f.decided.Add(decided)
		f.admitted.Add(admitted)
		<-tick.C
	}
	return nil
}

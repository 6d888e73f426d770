package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/go-redis/redis_rate/v10"
	goredis "github.com/redis/go-redis/v9"
	ulule "github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/headgate-io/headgate/internal/testservers"
)

const redisKeys = 10_000

func onRedis(callers int) section {
	return section{
		Name: fmt.Sprintf("redis%d", callers), Title: fmt.Sprintf("On Redis, one limit, 10,000 keys, %d concurrent callers", callers),
		notes: "Redis and the callers share the machine. Redis CPU is what the server itself counts. Pools of the peers' client have as many " +
			"connections as there are callers.",
		columns: redisColumns(),
		open: func(tb testservers.TB) ([]contender, error) {
			server := testservers.Redis(tb)
			var list []contender
			for _, open := range []func(*testservers.RedisServer, int) (checker, error){openHeadgateRedis, openRedisRate, openUluleRedis} {
				c, err := open(server, callers)
				if err != nil {
					return list, err
				}
				list = append(list, redisContender(server, c, callers))
			}
			return list, nil
		},
	}
}

func redisColumns() []column {
	return []column{
		{"checks/s", higher, 0}, {"Redis CPU µs per check", lower, 2}, {"commands per check", "", 3}, {"p50 µs", lower, 0}, {"p99 µs", lower, 0},
	}
}

func redisContender(server *testservers.RedisServer, c checker, callers int) contender {
	return contender{name: c.name, close: c.close, try: func(d time.Duration) ([]float64, error) {
		warm := min(d/4, 500*time.Millisecond)
		if _, _, err := crowd(c, callers, warm); err != nil {
			return nil, err
		}
		before, err := readServerLoad(server)
		if err != nil {
			return nil, err
		}
		n, latency, err := crowd(c, callers, d)
		if err != nil {
			return nil, err
		}
		after, err := readServerLoad(server)
		return []float64{
			n / d.Seconds(), (after.cpu - before.cpu) * 1e6 / n, (after.commands - before.commands) / n,
			float64(latency.ValueAtQuantile(50)) / 1e3, float64(latency.ValueAtQuantile(99)) / 1e3,
		}, err
	}}
}

// crowd has so many callers check random keys for d, and returns the number of checks and their times in nanoseconds.
func crowd(c checker, callers int, d time.Duration) (n float64, latency *hdrhistogram.Histogram, err error) {
	var stop atomic.Bool
	var mu sync.Mutex
	var wg sync.WaitGroup
	latency = newHistogram()
	for w := range callers {
		wg.Go(func() {
			own, failed := callUntil(c.worker(), newScatter(w, redisKeys), &stop)
			mu.Lock()
			defer mu.Unlock()
			latency.Merge(own)
			err = errors.Join(err, failed)
		})
	}
	timer := time.AfterFunc(d, func() { stop.Store(true) })
	wg.Wait()
	timer.Stop()
	return float64(latency.TotalCount()), latency, err
}

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(100, int64(10*time.Second), 3)
}

func callUntil(do check, order *scatter, stop *atomic.Bool) (*hdrhistogram.Histogram, error) {
	own := newHistogram()
	for !stop.Load() {
		began := time.Now()
		if err := do(order.next()); err != nil {
			stop.Store(true)
			return own, err
		}
		if err := own.RecordValue(int64(time.Since(began))); err != nil {
			return own, err
		}
	}
	return own, nil
}

// serverLoad is what Redis says of itself.
type serverLoad struct{ cpu, commands float64 }

func readServerLoad(server *testservers.RedisServer) (load serverLoad, err error) {
	cpu, err := server.Info("cpu")
	if err != nil {
		return load, err
	}
	stats, err := server.Info("stats")
	if err != nil {
		return load, err
	}
	user, err1 := strconv.ParseFloat(cpu["used_cpu_user"], 64)
	system, err2 := strconv.ParseFloat(cpu["used_cpu_sys"], 64)
	commands, err3 := strconv.ParseFloat(stats["total_commands_processed"], 64)
	return serverLoad{user + system, commands}, errors.Join(err1, err2, err3)
}

func goRedisClient(server *testservers.RedisServer, callers int) *goredis.Client {
	return goredis.NewClient(&goredis.Options{Addr: server.Addr(), PoolSize: callers, MinIdleConns: callers})
}

func openRedisRate(server *testservers.RedisServer, callers int) (checker, error) {
	client := goRedisClient(server, callers)
	limiter := redis_rate.NewLimiter(client)
	limit := redis_rate.Limit{Rate: 1, Burst: benchBurst, Period: benchPeriod}
	list, ctx := keys(redisKeys), context.Background()
	return checker{name: "go-redis/redis_rate", worker: func() check {
		return func(i int) error {
			r, err := limiter.Allow(ctx, list[i], limit)
			return allowed(err == nil && r.Allowed == 1, err)
		}
	}, close: client.Close}, nil
}

func openUluleRedis(server *testservers.RedisServer, callers int) (checker, error) {
	client := goRedisClient(server, callers)
	store, err := ululeredis.NewStoreWithOptions(client, ulule.StoreOptions{Prefix: "ulule"})
	return checker{name: "ulule/limiter redis store", worker: ululeChecks(store, keys(redisKeys)), close: client.Close}, err
}

package main

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
)

func memoryInProcess() section {
	return section{
		Name: "memory", Title: "Memory in process, one token bucket per key",
		notes:   "Live heap per key beside the key's own text of 16 bytes. (n×) is how many times worse than Headgate.",
		columns: []column{{"bytes per key, 100,000 keys", lower, 0}, {"bytes per key, 400,000 keys", lower, 0}},
		once:    true,
		open: func(testservers.TB) ([]contender, error) {
			return []contender{
				heapContender("Headgate memstore", openMemstore),
				heapContender("sethvargo/go-limiter memorystore", openGoLimiter),
				heapContender("ulule/limiter memory store", openUlule),
				heapContender("throttled/throttled memstore", openThrottled),
				heapContender("x/time rate.Limiter in a sync.Map", openTimeRate),
			}, nil
		},
	}
}

func heapContender(name string, open func([]string) (checker, error)) contender {
	return contender{name: name, try: func(time.Duration) ([]float64, error) {
		few, err1 := heapPerKey(open, 100_000)
		many, err2 := heapPerKey(open, 400_000)
		return []float64{few, many}, errors.Join(err1, err2)
	}}
}

// heapPerKey returns by how much the live heap grows with each key. The texts of the keys are alive before; afterwards only
// what the store keeps of them is, its own copies or ours: so that they cancel out either way.
func heapPerKey(open func([]string) (checker, error), n int) (perKey float64, err error) {
	list := keys(n)
	c, err := open(list)
	if err != nil {
		return 0, err
	}
	if c.close != nil {
		defer func() { err = errors.Join(err, c.close()) }()
	}
	do := c.worker()
	before := liveHeap()
	for i := range n {
		if err := do(i); err != nil {
			return 0, err
		}
	}
	clear(list)
	after := liveHeap()
	runtime.KeepAlive(do)
	return (float64(after) - float64(before)) / float64(n), nil
}

func liveHeap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools hold lives for one collection more
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func memoryInRedis() section {
	return section{
		Name: "redismemory", Title: "Memory in Redis, per key",
		notes: "MEMORY USAGE of the state of one caller's key of 16 bytes, and the same without the whole text of the Redis key; its entry in the " +
			"table of expiries is not in that figure, whoever the limiter is.",
		columns: []column{{"bytes", "", 0}, {"bytes beside the key's text", "", 0}},
		once:    true,
		open:    openRedisMemory,
	}
}

func openRedisMemory(tb testservers.TB) ([]contender, error) {
	server := testservers.Redis(tb)
	var list []contender
	for _, l := range []struct {
		text  string
		takes int
	}{
		{"token_bucket 100/s burst=200", 1}, {"token_bucket 0.7/s burst=200", 1}, {"fixed_window 1000/1m", 1},
		{"fixed_window 20000/day zone=Asia/Shanghai", 1}, {"sliding_log 5/5m", 5}, {"sliding_log 100/5m", 100},
		{"sliding_window 600/1m", 1}, {"sliding_window 600/1m cells=6", 1}, {"sliding_window 600/1m cells=60", 1},
		{"leaky_bucket 10/s capacity=20", 1}, {"concurrency 50 ttl=60s", 1},
	} {
		c, err := openHeadgateLimits(server, fmt.Sprintf("%s, after %d", l.text, l.takes), l.text)
		if err != nil {
			return list, err
		}
		list = append(list, usageContender(server, c, l.takes))
	}
	for _, open := range []func(*testservers.RedisServer, int) (checker, error){openRedisRate, openUluleRedis} {
		c, err := open(server, 1)
		if err != nil {
			return list, err
		}
		list = append(list, usageContender(server, c, 1))
	}
	return list, nil
}

// usageContender takes so often on one key of an empty Redis and weighs what is there then.
func usageContender(server *testservers.RedisServer, c checker, takes int) contender {
	return contender{name: c.name, close: c.close, try: func(time.Duration) ([]float64, error) {
		if _, err := server.Do("FLUSHALL"); err != nil {
			return nil, err
		}
		do := c.worker()
		for range takes {
			if err := do(0); err != nil {
				return nil, err
			}
		}
		return usage(server)
	}}
}

// usage adds up all keys of a Redis.
func usage(server *testservers.RedisServer) ([]float64, error) {
	answer, err := server.Do("KEYS", "*")
	if err != nil {
		return nil, err
	}
	list, _ := answer.([]any)
	if len(list) == 0 {
		return nil, errors.New("nothing is stored")
	}
	var total, text float64
	for _, key := range list {
		bytes, err := server.Do("MEMORY", "USAGE", key)
		if err != nil {
			return nil, err
		}
		n, _ := bytes.(int64)
		total += float64(n)
		text += float64(len(fmt.Sprint(key)))
	}
	return []float64{total, total - text}, nil
}

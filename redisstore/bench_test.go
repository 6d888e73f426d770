package redisstore_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/headgate-io/headgate/redisstore"
)

// keysOfBench is how many keys the benchmarks take in turn.
const keysOfBench = 10_000

// cpuOf returns the CPU time that a server has used, in µs.
func cpuOf(b *testing.B, srv *testservers.RedisServer) float64 {
	info, err := srv.Info("cpu")
	if err != nil {
		b.Fatal(err)
	}
	var sum float64
	for _, field := range []string{"used_cpu_user_main_thread", "used_cpu_sys_main_thread"} {
		seconds, err := strconv.ParseFloat(info[field], 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += 1e6 * seconds
	}
	return sum
}

// measure runs takes from so many callers and reports the CPU time of Redis for each.
func measure(b *testing.B, callers int, charges func(key string) []headgate.Charge) {
	calls := &callCounter{}
	s := open(b, redisstore.Config{Observer: calls})
	prepared := make([][]headgate.Charge, keysOfBench)
	for i := range prepared {
		prepared[i] = charges("user" + strconv.Itoa(i))
	}
	var next atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(max(1, callers/2))
	before := cpuOf(b, shared.Get(b))
	b.ResetTimer()
	one := func(d *headgate.Decision) {
		i := next.Add(1) * 7919 % keysOfBench
		if err := s.Take(context.Background(), prepared[i], d); err != nil {
			b.Error(err)
		}
	}
	if callers == 1 {
		var d headgate.Decision
		for b.Loop() {
			one(&d)
		}
	} else {
		b.RunParallel(func(pb *testing.PB) {
			var d headgate.Decision
			for pb.Next() {
				one(&d)
			}
		})
	}
	b.StopTimer()
	b.ReportMetric((cpuOf(b, shared.Get(b))-before)/float64(b.N), "redis-µs/take")
	b.ReportMetric(float64(calls.takes.Load())/float64(max(calls.calls.Load(), 1)), "takes/call")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "takes/s")
}

func limits(texts ...string) func(string) []headgate.Charge {
	parsed := make([]headgate.Limit, len(texts))
	for i, text := range texts {
		parsed[i] = headgate.MustParseLimit(text)
	}
	return func(key string) []headgate.Charge {
		charges := make([]headgate.Charge, len(parsed))
		for i, l := range parsed {
			charges[i] = headgate.One("l"+strconv.Itoa(i), key, l)
			charges[i].Holder = key
		}
		return charges
	}
}

var benchLimits = []string{
	"token_bucket 100/s burst=200",
	"token_bucket 70/m burst=200",
	"fixed_window 100/10s",
	"sliding_log 20/10s",
	"sliding_window 100/10s",
	"sliding_window 100/12s cells=6",
	"leaky_bucket 100/s capacity=200",
	"concurrency 100 ttl=10s",
}

func BenchmarkTake(b *testing.B) {
	for _, callers := range []int{1, 128} {
		for _, text := range benchLimits {
			b.Run("callers="+strconv.Itoa(callers)+"/"+text, func(b *testing.B) { measure(b, callers, limits(text)) })
		}
		b.Run("callers="+strconv.Itoa(callers)+"/four limits", func(b *testing.B) {
			measure(b, callers, limits("token_bucket 100/s burst=200", "fixed_window 100/10s", "sliding_window 100/10s", "leaky_bucket 100/s capacity=200"))
		})
	}
}

// callCounter counts calls and their takes.
type callCounter struct {
	redisstore.Observer
	calls, takes atomic.Int64
}

func (c *callCounter) Call(_, _ string, takes int, _ time.Duration, _ headgate.Code) {
	c.calls.Add(1)
	c.takes.Add(int64(takes))
}
func (c *callCounter) Failed(headgate.Code, bool) {}
func (c *callCounter) UnknownStates(int)          {}
func (c *callCounter) NewKey(string)              {}

package redisstock_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/redisstock"
	"github.com/headgate-io/headgate/internal/testservers"
)

// cpuOf returns the CPU time that a server has used, in µs.
func cpuOf(b *testing.B, srv *testservers.RedisServer) float64 {
	info, err := srv.Info("cpu")
	if err != nil {
		b.Fatal(err)
	}
	var sum float64
	for _, field := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds, err := strconv.ParseFloat(info[field], 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += 1e6 * seconds
	}
	return sum
}

// onSale makes a sku that sells for as long as anybody asks.
func onSale(tb testing.TB, s *redisstock.Stock) flashsale.Key {
	tb.Helper()
	ctx := context.Background()
	key := flashsale.Key{Sale: "bench", SKU: "sku"}
	if _, err := s.Point(ctx, key, 1); err != nil {
		tb.Fatal(err)
	}
	settings := flashsale.Settings{
		Version: 1, Status: flashsale.Open, OpensAt: time.Now().Add(-time.Hour), ClosesAt: time.Now().Add(time.Hour),
		PurchaseLimit: 1, Rate: flashsale.MaxRate,
	}
	if err := s.Load(ctx, key, 1, &flashsale.LoadPart{Last: true, Total: flashsale.MaxTotal, Settings: settings}); err != nil {
		tb.Fatal(err)
	}
	if err := s.Configure(ctx, key, 1, &settings); err != nil {
		tb.Fatal(err)
	}
	return key
}

// measure calls f from so many callers and reports the CPU time of Redis for each.
func measure(b *testing.B, callers int, srv *testservers.RedisServer, f func(i string) error) {
	var next atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(max(1, callers/2))
	before := cpuOf(b, srv)
	b.ResetTimer()
	one := func() {
		if err := f(strconv.FormatInt(next.Add(1), 10)); err != nil {
			b.Error(err)
		}
	}
	if callers == 1 {
		for b.Loop() {
			one()
		}
	} else {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				one()
			}
		})
	}
	b.StopTimer()
	b.ReportMetric((cpuOf(b, srv)-before)/float64(b.N), "redis-µs/op")
	if stats, err := srv.Info("commandstats"); err == nil {
		var calls float64
		if _, err := fmt.Sscanf(stats["cmdstat_evalsha"], "calls=%g", &calls); err == nil {
			b.ReportMetric(float64(b.N)/calls, "op/call")
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "op/s")
}

// BenchmarkReserve takes one unit for a user of its own each time, on a server with an append-only file.
func BenchmarkReserve(b *testing.B) {
	for _, callers := range []int{1, 16, 128} {
		b.Run("callers="+strconv.Itoa(callers), func(b *testing.B) {
			srv := testservers.Redis(b, testservers.AppendOnly())
			s := open(b, redisstock.Config{Addrs: []string{srv.Addr()}})
			key := onSale(b, s)
			measure(b, callers, srv, func(i string) error {
				ask := flashsale.Ask{RID: "AbCdEfGhIjKlMn" + i, User: "user-" + i, Quantity: 1, Body: "AbCdEfGhIjKlMnOpQrStUv"}
				_, err := s.Reserve(context.Background(), key, 1, &ask)
				return err
			})
		})
	}
}

// BenchmarkPair is what tutorials do, which keeps no promise: the counter, and a key for each user.
func BenchmarkPair(b *testing.B) {
	for _, callers := range []int{1, 16, 128} {
		b.Run("callers="+strconv.Itoa(callers), func(b *testing.B) {
			srv := testservers.Redis(b, testservers.AppendOnly())
			c, err := rueidis.NewClient(rueidis.ClientOption{
				InitAddress: []string{srv.Addr()}, DisableRetry: true, DisableCache: true, PipelineMultiplex: 1, ForceSingleClient: true,
			})
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			ctx := context.Background()
			measure(b, callers, srv, func(i string) error {
				if err := c.Do(ctx, c.B().Set().Key("bought:{sku}:user-"+i).Value("1").Nx().ExSeconds(600).Build()).Error(); err != nil {
					return err
				}
				return c.Do(ctx, c.B().Decr().Key("stock:{sku}").Build()).Error()
			})
		})
	}
}

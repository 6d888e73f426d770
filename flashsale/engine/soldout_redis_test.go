package engine

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/redisstock"
	"github.com/headgate-io/headgate/internal/testservers"
)

// scriptsOf counts the scripts that clients have called of a Redis.
func scriptsOf(t *testing.T, server *testservers.RedisServer) (n int64) {
	t.Helper()
	stats, err := server.Info("commandstats")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"cmdstat_evalsha", "cmdstat_eval", "cmdstat_evalsha_ro"} {
		if calls, ok := strings.CutPrefix(stats[command], "calls="); ok {
			calls, _, _ = strings.Cut(calls, ",")
			count, _ := strconv.ParseInt(calls, 10, 64)
			n += count
		}
	}
	return n
}

// TestSoldOutOnRedis: 100,000 clicks of 10,000 users on 200 units and two instances, each with a connection of its own. Winners are told
// so again, everything is sold, units that come back are sold within a moment, and Redis is called a few thousand times.
func TestSoldOutOnRedis(t *testing.T) {
	t.Parallel()
	rounds := 10
	if underRace {
		rounds = 2
	}
	server := testservers.Redis(t)
	s := openShop(t, shopPlan{total: 200})
	var engines []*Engine
	var stocks []*redisstock.Stock
	for range 2 {
		stock, err := redisstock.New(t.Context(), redisstock.Config{Addrs: []string{server.Addr()}, Timeout: patience, ConnectTimeout: patience})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = stock.Close() })
		stocks = append(stocks, stock)
		engines = append(engines, s.another(func(c *Config) { c.Stock, c.Observer = stock, nobody{} }))
	}
	settings := s.view().Settings
	_, err := stocks[0].Point(t.Context(), phone, 1)
	must(t, err)
	must(t, stocks[0].Load(t.Context(), phone, 1, &flashsale.LoadPart{Last: true, Total: 200, Settings: settings}))
	must(t, stocks[0].Configure(t.Context(), phone, 1, &settings))

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	before := scriptsOf(t, server)
	var won sync.Map
	var wins, unanswered atomic.Int64
	crowd := func(rounds, first, n int) {
		var all sync.WaitGroup
		for i := range 500 {
			all.Go(func() {
				for u := first + i; u < first+n; u += 500 {
					r := s.request(fmt.Sprint("user-", u))
					mine := ""
					for k := 0; k < rounds; k++ {
						answer, err := engines[(u+k)%2].Reserve(ctx, r)
						switch code := flashsale.CodeOf(err); {
						case code == flashsale.CodeUnavailable && pause(ctx, 10*time.Millisecond):
							k-- // the machine has stood still for longer than a look may take: who is not answered asks again
							unanswered.Add(1)
						case err == nil && !answer.Known && mine == "":
							mine = answer.RID
							won.Store(mine, r.User)
							wins.Add(1)
						case err == nil && answer.RID == mine:
						case code != flashsale.CodeSoldOut && code != flashsale.CodeBusy || mine != "":
							t.Errorf("%q of %s: %+v, %v", mine, r.User, answer, err)
						}
					}
				}
			})
		}
		all.Wait()
	}
	crowd(rounds, 0, 10_000)
	calls := scriptsOf(t, server) - before
	t.Logf("%d clicks made %d calls of Redis, and %d were not answered", 10_000*rounds, calls, unanswered.Load())
	if unanswered.Load() > int64(10_000*rounds/4) {
		t.Errorf("%d were not answered, of %d clicks", unanswered.Load(), 10_000*rounds)
	}
	if wins.Load() != 200 || calls > 6000 {
		t.Errorf("%d of 200 are sold, in %d calls of Redis", wins.Load(), calls)
	}

	for n := 1; n > 0; { // or whoever comes would be refused after 45 s, since SQL does not keep up
		n, err = engines[0].ConsumeOnce(ctx, phone, "c")
		must(t, err)
	}
	won.Range(func(rid, user any) bool { // one comes back
		_, err := stocks[1].Apply(t.Context(), phone, 1, []flashsale.Effect{
			{RID: rid.(string), User: user.(string), Quantity: 1, State: flashsale.Cancelled, Version: 2},
		}, nil)
		must(t, err)
		return false
	})
	for first := 20_000; wins.Load() < 201 && ctx.Err() == nil; first += 500 {
		crowd(1, first, 500)
	}
	if v, err := stocks[0].View(t.Context(), phone); err != nil || wins.Load() != 201 || v.Available != 0 || v.Held != 200 {
		t.Errorf("%d were sold; %+v, %v", wins.Load(), v, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/redisstock"
	"github.com/headgate-io/headgate/internal/testservers"
)

// chainOnRedis are instances whose stock and log are in a Redis, each with a connection of its own.
type chainOnRedis struct {
	*shop
	server *testservers.RedisServer
	stocks []*redisstock.Stock
}

func openChainOnRedis(t *testing.T, total int64) *chainOnRedis {
	t.Helper()
	c := &chainOnRedis{shop: openShop(t, shopPlan{total: total}), server: testservers.Redis(t)}
	c.load()
	return c
}

// load gives Redis the keys of the sku.
func (c *chainOnRedis) load() {
	c.t.Helper()
	stock := c.stock0()
	settings := c.view().Settings
	for _, err := range []error{
		func() error { _, err := stock.Point(context.Background(), phone, 1); return err }(),
		stock.Load(context.Background(), phone, 1, &flashsale.LoadPart{Last: true, Total: c.view().Total, Settings: settings}),
		stock.Configure(context.Background(), phone, 1, &settings),
	} {
		if err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *chainOnRedis) stock0() *redisstock.Stock {
	if len(c.stocks) == 0 {
		c.open()
	}
	return c.stocks[0]
}

func (c *chainOnRedis) open() *redisstock.Stock { return c.openWith(patience) }

// openWith is open with so much time for each call.
func (c *chainOnRedis) openWith(timeout time.Duration) *redisstock.Stock {
	c.t.Helper()
	cfg := redisstock.Config{Addrs: []string{c.server.Addr()}, Namespace: "ns", Timeout: timeout, ConnectTimeout: patience}
	s, err := redisstock.New(context.Background(), cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = s.Close() })
	c.stocks = append(c.stocks, s)
	return s
}

func (c *chainOnRedis) join(name string, change func(*Config)) *Engine {
	c.t.Helper()
	stock := c.open()
	return c.another(func(cfg *Config) {
		cfg.Stock, cfg.Instance, cfg.Observer = stock, name, nobody{}
		if change != nil {
			change(cfg)
		}
	})
}

// whole asks for a story, again where time was up before it was whole: there is little, and the machine may stand still for longer.
func whole(ctx context.Context, e *Engine, sale, user string) (r Refusals) {
	for range 20 {
		began := time.Now()
		if r = e.Refusals(ctx, sale, user); r.Fleet && len(r.Missing) == 0 || time.Since(began) < storyTime {
			break
		}
	}
	return r
}

// TestFleetOnRedis: two instances on one Redis know what the other has refused, and so does one that comes when they have gone; a Redis
// that has lost everything leaves what is remembered, and says since when it knows.
func TestFleetOnRedis(t *testing.T) {
	t.Parallel()
	c := openChainOnRedis(t, 1)
	ctx := t.Context()
	one, two := c.join("one", nil), c.join("two", nil)
	write(t, one)
	began := time.Now()
	if _, err := one.Reserve(ctx, c.request("ann")); err != nil {
		t.Fatal(err)
	}
	late := c.request("bob\x00\xff")
	for range 3 {
		for _, e := range []*Engine{one, two} {
			if _, err := e.Reserve(ctx, late); flashsale.CodeOf(err) != flashsale.CodeSoldOut {
				t.Fatal(err)
			}
		}
	}
	if _, err := two.Reserve(ctx, c.request("ann")); flashsale.CodeOf(err) != flashsale.CodePurchaseLimit {
		t.Fatal(err)
	}
	write(t, one)
	write(t, two)
	for _, e := range []*Engine{one, two, c.join("three", nil)} {
		wantStory(t, e.cfg.Instance+" of bob", whole(ctx, e, "eleven", late.User), "sold_out×6")
		wantStory(t, e.cfg.Instance+" of ann", whole(ctx, e, "eleven", "ann"), "purchase_limit×1")
		if since := e.Refusals(ctx, "", "ann").Since; since.Before(began.Add(-time.Minute)) || since.After(time.Now()) {
			t.Errorf("%s: since %s", e.cfg.Instance, since)
		}
	}
	if _, err := c.server.Do("FLUSHALL"); err != nil {
		t.Fatal(err)
	}
	lost := time.Now()
	r := whole(ctx, one, "", late.User)
	if lines(r) != "sold_out×3" || r.Since.Before(lost.Add(-time.Second)) {
		t.Errorf("when all is lost: %+v", r)
	}
	refuse(two, late.User, "busy", 1)
	write(t, two)
	if r = whole(ctx, one, "", late.User); lines(r) != "busy×1 sold_out×3" || !r.Fleet {
		t.Errorf("afterwards: %+v", r)
	}
}

// TestRedisIsAway: nobody waits for a Redis that stands still, and nothing is lost for it.
func TestRedisIsAway(t *testing.T) {
	t.Parallel()
	c := openChainOnRedis(t, 1)
	ctx := t.Context()
	one, two := c.join("one", func(cfg *Config) { cfg.RefusalLog = c.openWith(time.Second) }), c.join("two", nil)
	written := func() {
		t.Helper()
		if err := testservers.Poll(ctx, func() error { _, err := one.WriteRefusalsOnce(ctx); return err }); err != nil {
			t.Fatal(err)
		}
	}
	written()
	c.token("x")
	_, _ = one.skus.get(ctx, phone)
	refuse(one, "bob", "sold_out", 5)
	if err := c.server.Pause(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for range 1000 {
		refuse(one, "bob", "sold_out", 1)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("1000 refusals took %s", took)
	}
	if n, err := one.WriteRefusalsOnce(ctx); n != 0 || flashsale.CodeOf(err) != flashsale.CodeUnavailable {
		t.Errorf("%d, %v", n, err)
	}
	if r := one.Refusals(ctx, "", "bob"); lines(r) != "sold_out×1005" || r.Fleet || len(r.Missing) == 0 {
		t.Errorf("while it stands still: %+v", r)
	}
	if err := c.server.Resume(); err != nil {
		t.Fatal(err)
	}
	written()
	wantStory(t, "the other's", whole(ctx, two, "", "bob"), "sold_out×1005") // once, though the first try may have run
}

// TestFloodOfShoppers: a million shoppers are refused once each, while they are written. It takes some hundred calls of Redis and the memory
// that is granted, and whoever is missing is counted.
func TestFloodOfShoppers(t *testing.T) {
	t.Parallel()
	shoppers := 1_000_000
	if underRace {
		shoppers = 100_000
	}
	c := openChainOnRedis(t, 1)
	told := &counter{}
	one := c.join("one", func(cfg *Config) { cfg.RefusalLog, cfg.Observer = c.stock0(), told })
	_, _ = one.skus.get(t.Context(), phone)
	before := scriptsOf(t, c.server)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { one.runRefusals(ctx) })
	var crowd sync.WaitGroup
	const callers = 8
	for w := range callers {
		crowd.Go(func() {
			for i := w; i < shoppers; i += callers {
				refuse(one, fmt.Sprint("user-", i), "sold_out", 1)
			}
		})
	}
	crowd.Wait()
	refuse(one, "the last", "sold_out", 1)
	cancel()
	all.Wait()
	write(t, one) // whatever its end has left
	calls := scriptsOf(t, c.server) - before
	t.Logf("%d shoppers: %d calls, %d written, %d dropped", shoppers, calls, told.refusals, told.dropped)
	if told.refusals+told.dropped != int64(shoppers)+1 || calls > int64(shoppers/500) {
		t.Errorf("%d shoppers: %d calls, told %+v", shoppers, calls, told)
	}
	kept := 0
	for i := range one.refusals.shards {
		kept += len(one.refusals.shards[i].lines)
	}
	if kept > one.cfg.MaxRefusals+refusalShards {
		t.Errorf("%d lines are kept", kept)
	}
	two := c.join("two", nil)
	r := whole(t.Context(), two, "", "the last")
	if lines(r) != "sold_out×1" || !r.Fleet || r.Dropped != told.dropped {
		t.Errorf("the last: %+v", r)
	}
	if told.dropped == 0 {
		wantStory(t, "the first", whole(t.Context(), two, "", "user-0"), "sold_out×1")
	}
}

// TestClosedLog: an engine whose stock is closed says so.
func TestClosedLog(t *testing.T) {
	t.Parallel()
	f := openChain(t)
	one := f.join("one", func(c *Config) { c.RefusalLog = nil; c.Stock = f.stock })
	refuse(one, "bob", "busy", 1)
	_ = f.stock.Close()
	if n, err := one.WriteRefusalsOnce(t.Context()); n != 0 || !errors.Is(err, &flashsale.Error{Code: flashsale.CodeClosed}) {
		t.Errorf("%d, %v", n, err)
	}
	if r := one.Refusals(t.Context(), "", "bob"); lines(r) != "busy×1" || r.Fleet || !strings.Contains(strings.Join(r.Missing, ""), "closed") {
		t.Errorf("got %+v", r)
	}
}

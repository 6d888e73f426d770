package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/internal/testservers"
)

// clickSize is how many click for how much.
type clickSize struct{ clicks, shoppers, units, callers int }

// millionClicks are those that are aimed at.
var millionClicks = clickSize{clicks: 1_000_000, shoppers: 100_000, units: 1000, callers: saleCallers}

// clickCalls is how many calls to Redis there may be for them.
const clickCalls = 20_000

func saleClicks(size clickSize) section {
	return section{
		Name: "saleclicks", Title: fmt.Sprintf("%s clicks on %s units: what comes to Redis", grouped(float64(size.clicks), 0), grouped(float64(size.units), 0)),
		notes: fmt.Sprintf("In one process, without HTTP: %d callers click, each time for one of %s shoppers at random, who has the same order token each time. Who has a unit goes on clicking "+
			"and gets the same answer: from Redis, since that is what knows it. The engine runs with all its jobs, on a Redis and a PostgreSQL of its own, until every unit is decided. A script is one call; what it does "+
			"inside is not, and commands are both. (n×) is how many times worse than the goal; below 1 it is better.",
			size.callers, grouped(float64(size.shoppers), 0)),
		columns: []column{
			{"units sold", higher, 0}, {"calls to Redis", lower, 0}, {"commands, those inside scripts too", "", 0}, {"answered differently", lower, 0},
			{"errors", lower, 0}, {"clicks/s", "", 0}, {"CPU µs per click", "", 2},
		},
		goals: []float64{float64(size.units), clickCalls, noGoal, 0, 0, noGoal, noGoal},
		once:  true,
		open: func(tb testservers.TB) ([]contender, error) {
			redis, postgres := testservers.Redis(tb, testservers.AppendOnly()), testservers.Postgres(tb, testservers.DurableData())
			place := salePlace{"Headgate, Redis and PostgreSQL", onRedisStock(redis), postgres.Database(tb), redis.PID(), postgres.PID()}
			s, err := openSale(place, int64(size.units))
			if err != nil {
				return nil, err
			}
			c := &clicks{sale: s, size: size, redis: redis}
			return []contender{{name: place.name, try: c.try, close: s.close}}, nil
		},
	}
}

// clicks are those on one sale.
type clicks struct {
	*sale
	size      clickSize
	redis     *testservers.RedisServer
	shoppers  []clicker
	sold      atomic.Int64
	different atomic.Int64
	errors    atomic.Int64

	mu      sync.Mutex
	failure error
}

// clicker is a shopper. One click is done before the next is begun.
type clicker struct {
	mu  sync.Mutex
	ask engine.ReserveRequest
	has bool
}

func (c *clicks) try(time.Duration) ([]float64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*saleTimeout)
	defer cancel()
	if err := c.arrive(ctx); err != nil {
		return nil, err
	}
	calls, err := redisCalls(c.redis)
	if err != nil {
		return nil, err
	}
	load, err := readServerLoad(c.redis)
	if err != nil {
		return nil, err
	}
	before, err := c.cpu()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	n := float64(c.click(ctx))
	took := time.Since(began).Seconds()
	after, err := c.cpu()
	if err != nil {
		return nil, err
	}
	tellError(c.failure)
	if err := await(ctx, func() (bool, error) { return c.counts.jobs.Load() >= c.sold.Load(), nil }); err != nil {
		return nil, fmt.Errorf("%d of %d are decided: %w", c.counts.jobs.Load(), c.sold.Load(), err)
	}
	callsAfter, err1 := redisCalls(c.redis)
	loadAfter, err2 := readServerLoad(c.redis)
	perClick, _ := after.perJob(before, n)
	return []float64{
		float64(c.sold.Load()), callsAfter - calls, loadAfter.commands - load.commands, float64(c.different.Load()), float64(c.errors.Load()), n / took, perClick,
	}, errors.Join(err1, err2)
}

// arrive gives everybody a token.
func (c *clicks) arrive(ctx context.Context) error {
	c.shoppers = make([]clicker, c.size.shoppers)
	for i := range c.shoppers {
		var err error
		if c.shoppers[i].ask, err = c.request(ctx); err != nil {
			return err
		}
	}
	return nil
}

// click has shoppers click, and returns how many clicks there were.
func (c *clicks) click(ctx context.Context) int64 {
	var begun atomic.Int64
	all := int64(c.size.clicks)
	var group sync.WaitGroup
	for w := range c.size.callers {
		group.Go(func() {
			order := rand.New(rand.NewPCG(1, uint64(w)))
			for begun.Add(1) <= all && ctx.Err() == nil {
				c.clickOnce(ctx, &c.shoppers[order.IntN(len(c.shoppers))])
			}
		})
	}
	group.Wait()
	return min(begun.Load(), all)
}

func (c *clicks) clickOnce(ctx context.Context, s *clicker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := c.Reserve(ctx, s.ask)
	switch code := flashsale.CodeOf(err); {
	case err == nil && !s.has:
		s.has = true
		c.sold.Add(1)
	case code == flashsale.CodeSoldOut && s.has:
		c.different.Add(1)
	case err != nil && code != flashsale.CodeSoldOut:
		c.errors.Add(1)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.failure = err
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/flashsale/memstock"
	"github.com/headgate-io/headgate/flashsale/redisstock"
	"github.com/headgate-io/headgate/flashsale/sqlorders"
	"github.com/headgate-io/headgate/internal/testservers"
)

// saleTimeout bounds everything that a sale is waited for.
const saleTimeout = 60 * time.Second

// salePlace is where a sale runs: its name, its stock, the URL of its database, and the process ids of its servers, 0 for what is in this
// process.
type salePlace struct {
	name            string
	stock           func(ctx context.Context) (engine.Stock, error)
	url             string
	redis, database int
}

// onRedisStock is a stock on a Redis of its own.
func onRedisStock(server *testservers.RedisServer) func(ctx context.Context) (engine.Stock, error) {
	return func(ctx context.Context) (engine.Stock, error) {
		return redisstock.New(ctx, redisstock.Config{Addrs: []string{server.Addr()}, Timeout: 10 * time.Second})
	}
}

func inMemoryStock(context.Context) (engine.Stock, error) {
	return memstock.New(memstock.Config{}), nil
}

// sale is a whole sale in this process: its engine runs with the consumers and jobs of a production, on stores with durable commits.
type sale struct {
	*engine.Engine
	place  salePlace
	counts *saleCounts
	users  atomic.Int64
	stop   func()
	ended  chan error
	closes []func() error
}

// openSale opens a sale of so many units, and has it run.
func openSale(place salePlace, units int64) (s *sale, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), saleTimeout)
	defer cancel()
	s = &sale{place: place, counts: &saleCounts{commits: newHistogram()}}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", place.name, err), s.close())
		}
	}()
	stock, err := place.stock(ctx)
	if err != nil {
		return s, err
	}
	s.closes = append(s.closes, stock.Close)
	orders, err := sqlorders.Open(ctx, sqlorders.Config{
		URL: place.url, Timeout: saleTimeout, Retried: func(method string, tries int, why error) { s.Retried(method, tries, why) },
	})
	if err != nil {
		return s, err
	}
	s.closes = append(s.closes, orders.Close)
	keys, err := flashsale.NewTokenKeys(flashsale.TokenKey{ID: "bench", Secret: make([]byte, flashsale.MinKeyBytes)})
	if err != nil {
		return s, err
	}
	s.Engine, err = engine.New(engine.Config{
		Stock: stock, Orders: orders, Keys: keys, Observer: s.counts, TokenLife: flashsale.MaxTokenLife, MaxWaiting: 100_000,
	})
	if err != nil {
		return s, err
	}
	err = s.begin(ctx, stock, units)
	return s, err
}

// begin creates and opens the sale, and waits until it sells.
func (s *sale) begin(ctx context.Context, stock engine.Stock, units int64) error {
	now := time.Now()
	err := s.CreateSale(ctx, &flashsale.Sale{
		ID: saleKey.Sale, Title: "bench", Currency: "CNY", OpensAt: now.Add(-time.Hour), ClosesAt: now.Add(24 * time.Hour), Rate: flashsale.MaxRate,
		SKUs: []flashsale.SKU{{ID: saleKey.SKU, Title: "phone", Total: units, Price: 100}},
	})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(context.Background())
	s.stop, s.ended = stop, make(chan error, 1)
	go func() { s.ended <- s.Run(running) }()
	if _, err := s.OpenSale(ctx, engine.Command{ID: "open", Sale: saleKey.Sale, Reason: "bench", By: "bench"}); err != nil {
		return err
	}
	return await(ctx, func() (bool, error) {
		v, err := stock.View(ctx, saleKey)
		return v.Loaded && v.Settings.Status == flashsale.Open, err
	})
}

// await looks every millisecond until something is so.
func await(ctx context.Context, so func() (bool, error)) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		done, err := so()
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// close ends the engine, and then its stores.
func (s *sale) close() (err error) {
	if s.stop != nil {
		s.stop()
		err = <-s.ended
	}
	for i := len(s.closes) - 1; i >= 0; i-- {
		err = errors.Join(err, s.closes[i]())
	}
	s.stop, s.closes = nil, nil
	return err
}

// request is that of a shopper who has not been here yet.
func (s *sale) request(ctx context.Context) (engine.ReserveRequest, error) {
	user := fmt.Sprintf("user:%011d", s.users.Add(1))
	token, _, err := s.Token(ctx, engine.TokenRequest{Key: saleKey, User: user})
	return engine.ReserveRequest{Token: token, Key: saleKey, User: user, Quantity: 1}, err
}

// saleCounts counts what the consumers decide.
type saleCounts struct {
	jobs, batches, retries atomic.Int64

	mu      sync.Mutex
	commits *hdrhistogram.Histogram // times of the batches' transactions
}

// Batch counts a batch.
func (c *saleCounts) Batch(_ string, jobs, retries int, took, _ time.Duration) {
	c.jobs.Add(int64(jobs))
	c.batches.Add(1)
	c.retries.Add(int64(retries))
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.commits.RecordValue(int64(took)) // one of 10 s or more is left out of the histogram
}

// take returns what was counted since the last take.
func (c *saleCounts) take() (jobs, batches float64, commits *hdrhistogram.Histogram) {
	c.mu.Lock()
	defer c.mu.Unlock()
	commits, c.commits = c.commits, newHistogram()
	return float64(c.jobs.Swap(0)), float64(c.batches.Swap(0)), commits
}

// Reserved and the others tell what is not looked at here.
func (c *saleCounts) Reserved(string, string, time.Duration)                    {}
func (c *saleCounts) Moved(string, string, string, int64)                       {}
func (c *saleCounts) Backlog(string, int64, int64, int64, int64, time.Duration) {}
func (c *saleCounts) Workers(int, string)                                       {}
func (c *saleCounts) Leased(string, bool)                                       {}
func (c *saleCounts) Rebuilt(string, int64, time.Duration, string)              {}
func (c *saleCounts) Alarm(string, string, bool, float64, string)               {}
func (c *saleCounts) Job(string, int, time.Duration, string)                    {}

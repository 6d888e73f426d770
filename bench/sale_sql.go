package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
)

func saleSQL() section {
	return section{
		Name: "salesql", Title: "Reservations that SQL decides, one sku, everything on the same cores",
		notes: "128 callers reserve as fast as the stock takes it, and consumers have SQL decide until nothing waits: the time is from the first " +
			"call to the last commit. The engine runs with all its jobs, commits are durable, and callers, stock, consumers and database share the machine. CPU is that of all of them " +
			"together; SQLite's is this process's. (n×) is how many times worse than the first line.",
		columns: []column{
			{"reservations/s", higher, 0}, {"CPU µs each", lower, 0}, {"of that the database's", "", 0}, {"per commit", "", 0}, {"commit p50 ms", lower, 1},
			{"commit p99 ms", lower, 1},
		},
		open: func(tb testservers.TB) ([]contender, error) {
			return saleContenders(salePlaces(tb), func(s *sale) func(d time.Duration) ([]float64, error) { return (&backlog{sale: s}).try })
		},
	}
}

// salePlaces are the databases, each with a stock that goes with it.
func salePlaces(tb testservers.TB) []salePlace {
	postgres, mariadb := testservers.Postgres(tb, testservers.DurableData()), testservers.MariaDB(tb, testservers.DurableData())
	first, second := testservers.Redis(tb, testservers.AppendOnly()), testservers.Redis(tb, testservers.AppendOnly())
	return []salePlace{
		{"Headgate, Redis and PostgreSQL", onRedisStock(first), postgres.Database(tb), first.PID(), postgres.PID()},
		{"Headgate, Redis and MariaDB", onRedisStock(second), mariadb.Database(tb), second.PID(), mariadb.PID()},
		{"Headgate, memory and SQLite", inMemoryStock, "sqlite:" + filepath.Join(scratch(tb), "sale.db"), 0, 0},
	}
}

// scratch is a folder that goes with the servers.
func scratch(tb testservers.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "headgate-bench-")
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Logf("%v", err)
		}
	})
	return dir
}

// saleContenders opens a sale for each place.
func saleContenders(places []salePlace, try func(s *sale) func(d time.Duration) ([]float64, error)) ([]contender, error) {
	var list []contender
	for _, place := range places {
		s, err := openSale(place, endless)
		if err != nil {
			return list, err
		}
		list = append(list, contender{name: place.name, try: try(s), close: s.close})
	}
	return list, nil
}

// backlog measures how fast a backlog is decided. Rate is that of the last try, by which the next one is sized.
type backlog struct {
	sale *sale
	rate float64
}

const (
	// firstBacklog is how many jobs the first try has, which only finds out the rate.
	firstBacklog = 1000
	// maxBacklog bounds a try.
	maxBacklog = 200_000
)

func (b *backlog) try(d time.Duration) ([]float64, error) {
	if b.rate == 0 {
		if _, err := b.decide(firstBacklog); err != nil {
			return nil, err
		}
	}
	return b.decide(min(max(int64(b.rate*d.Seconds()), 100), maxBacklog))
}

// decide has n reservations made and decided.
func (b *backlog) decide(n int64) ([]float64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), saleTimeout)
	defer cancel()
	b.sale.counts.take()
	before, err := b.sale.cpu()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := b.sale.reserveAll(ctx, n); err != nil {
		return nil, err
	}
	if err := await(ctx, func() (bool, error) { return b.sale.counts.jobs.Load() >= n, nil }); err != nil {
		return nil, err
	}
	took := time.Since(began).Seconds()
	jobs, batches, commits := b.sale.counts.take()
	b.rate = jobs / took
	after, err := b.sale.cpu()
	all, database := after.perJob(before, jobs)
	return []float64{b.rate, all, database, jobs / batches, float64(commits.ValueAtQuantile(50)) / 1e6, float64(commits.ValueAtQuantile(99)) / 1e6}, err
}

// reserveAll has so many shoppers reserve, 128 at a time.
func (s *sale) reserveAll(ctx context.Context, n int64) error {
	var left atomic.Int64
	left.Store(n)
	var mu sync.Mutex
	var failed error
	var group sync.WaitGroup
	for range saleCallers {
		group.Go(func() {
			for left.Add(-1) >= 0 {
				if err := s.reserveOne(ctx); err != nil {
					left.Store(0)
					mu.Lock()
					failed = errors.Join(failed, err)
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	return failed
}

func (s *sale) reserveOne(ctx context.Context) error {
	r, err := s.request(ctx)
	if err != nil {
		return err
	}
	_, err = s.Reserve(ctx, r)
	return err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/internal/testservers"
)

// offeredRate is how many shoppers come in a second.
const offeredRate = 2000

func saleOffered() section {
	return section{
		Name: "saleoffered", Title: fmt.Sprintf("%s reserves/s offered to a whole sale, everything on the same cores", grouped(offeredRate, 0)),
		notes: "Shoppers come at a fixed rate whether or not the last ones have their answers, with their tokens, and every time is counted from when a " +
			"shopper was to come. Reserve is the answer \"processing\", answered is \"yours\", after the commit of SQL. The engine runs with all its jobs, commits are " +
			"durable, and shoppers, Redis, engine and database share the machine. CPU is that of all of them together. (n×) is how many times worse than the first line.",
		columns: []column{
			{"answered/s", higher, 0}, {"reserve p50 ms", lower, 2}, {"reserve p99 ms", lower, 2}, {"answered p50 ms", lower, 1}, {"answered p99 ms", lower, 1},
			{"CPU µs each", lower, 0},
		},
		open: func(tb testservers.TB) ([]contender, error) {
			return saleContenders(salePlaces(tb), func(s *sale) func(d time.Duration) ([]float64, error) { return s.offer })
		},
	}
}

// offered are the times of the shoppers of one try.
type offered struct {
	mu                sync.Mutex
	reserve, answered *hdrhistogram.Histogram
	failed            error
}

func (s *sale) offer(d time.Duration) ([]float64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d+saleTimeout)
	defer cancel()
	warm, n := offeredRate/4, int(d.Seconds()*offeredRate)
	requests := make([]engine.ReserveRequest, warm+n)
	for i := range requests {
		var err error
		if requests[i], err = s.request(ctx); err != nil {
			return nil, err
		}
	}
	if _, err := s.come(ctx, requests[:warm]); err != nil {
		return nil, err
	}
	before, err := s.cpu()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	o, err := s.come(ctx, requests[warm:])
	if err != nil {
		return nil, err
	}
	took := time.Since(began).Seconds()
	after, err := s.cpu()
	all, _ := after.perJob(before, float64(n))
	ms := func(h *hdrhistogram.Histogram, q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1e6 }
	return []float64{
		float64(o.answered.TotalCount()) / took,
		ms(o.reserve, 50), ms(o.reserve, 99), ms(o.answered, 50), ms(o.answered, 99), all,
	}, err
}

// come has shoppers come at the rate, and waits until all have their answers.
func (s *sale) come(ctx context.Context, requests []engine.ReserveRequest) (*offered, error) {
	o := &offered{reserve: hdrhistogram.New(1000, int64(saleTimeout), 3), answered: hdrhistogram.New(1000, int64(saleTimeout), 3)}
	var group sync.WaitGroup
	began := time.Now()
	for i := range requests {
		at := began.Add(time.Duration(i) * time.Second / offeredRate)
		// Shoppers come by the clock, whatever has become of those before: load that waits for answers would hide slow ones.
		if wait := time.Until(at); wait > 0 {
			time.Sleep(wait)
		}
		group.Go(func() { o.shop(ctx, s, &requests[i], at) })
	}
	group.Wait()
	return o, o.failed
}

// shop is one shopper, from the moment of coming.
func (o *offered) shop(ctx context.Context, s *sale, r *engine.ReserveRequest, at time.Time) {
	answer, err := s.Reserve(ctx, *r)
	reserved := time.Since(at)
	var result engine.Result
	if err == nil {
		result, err = s.Await(ctx, saleKey, answer.RID, r.User)
	}
	answered := time.Since(at)
	if err == nil && result.State != flashsale.Reserved {
		err = fmt.Errorf("a shopper's reservation is %s: %s", result.State, result.Reason)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failed = errors.Join(o.failed, err)
	_ = o.reserve.RecordValue(int64(reserved)) // what is longer than the histogram has failed by its context
	_ = o.answered.RecordValue(int64(answered))
}

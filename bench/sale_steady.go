package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/internal/testservers"
)

// steadyRate is how many shoppers come in a second.
const steadyRate = 2000

// maxVisitors bounds the shoppers at a time, of whom each has a connection. One more is an error: the shop does not keep up.
const maxVisitors = 8000

func saleSteady(rate int) section {
	return section{
		Name: "salesteady", Title: fmt.Sprintf("%s reserves/s over HTTP, everything on the same cores", grouped(float64(rate), 0)),
		notes: "The same process and stores as in the flood. Shoppers come at a fixed rate whether or not the last ones have their answers; each has a connection of their own, gets a token, " +
			"reserves, and waits for \"reserved\" by the reservation's event stream or by polling when Retry-After says, which is after 1 to 2 s. Reserve is the time of the reserve call, from when it could be " +
			"sent; answered is counted from when the shopper was to come, connection, token and reserve call included. The goals are for shoppers who follow events. (n×) is how many times worse than the goal; below 1 it is better.",
		columns: []column{
			{"reserves/s", higher, 0}, {"reserve p50 ms", "", 2}, {"reserve p99 ms", lower, 2}, {"answered p50 ms", "", 1}, {"answered p99 ms", lower, 1},
			{"turned away", lower, 0}, {"errors", lower, 0}, {"CPU µs each: Headgate", "", 0}, {"Redis", "", 0}, {"PostgreSQL", "", 0}, {"shoppers", "", 0},
			{"cores others took", "", 2},
		},
		goals: []float64{float64(rate), noGoal, 50, noGoal, 1000, 0, 0, noGoal, noGoal, noGoal, noGoal, noGoal},
		open: func(tb testservers.TB) ([]contender, error) {
			s, err := serve(tb)
			if err != nil {
				return nil, err
			}
			k, err := s.open(endless)
			if err != nil {
				return nil, err
			}
			var list []contender
			numbers := new(atomic.Int64)
			for _, way := range []struct {
				name string
				wait func(*visitor, context.Context, *wire, counter) (reply, error)
			}{{"Headgate, by event stream", (*visitor).follow}, {"Headgate, by polling", (*visitor).poll}} {
				list = append(list, contender{name: way.name, try: func(d time.Duration) ([]float64, error) {
					return (&steady{counter: k, rate: rate, wait: way.wait, numbers: numbers}).try(d)
				}})
			}
			return list, nil
		},
	}
}

// poll asks for the result as often as it may until it is final.
func (v *visitor) poll(ctx context.Context, w *wire, k counter) (r reply, err error) {
	for {
		r, err = v.look(ctx, w, k)
		if err != nil || !r.pending() {
			return r, err
		}
		if err := pause(ctx, r.after); err != nil {
			return r, err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// steady are shoppers who come at a rate.
type steady struct {
	counter
	rate    int
	wait    func(v *visitor, ctx context.Context, w *wire, k counter) (reply, error)
	numbers *atomic.Int64
	times   steadyTimes
}

// steadyTimes are what became of them.
type steadyTimes struct {
	mu                sync.Mutex
	reserve, answered *hdrhistogram.Histogram
	lastReserve       time.Time
	turned, errors    int
	failure           error
}

// try has them come for a quarter of d to warm up, and then for d.
func (s *steady) try(d time.Duration) ([]float64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*d+saleTimeout)
	defer cancel()
	s.come(ctx, d/4)
	before, err := s.cpu()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	n := s.come(ctx, d)
	took := time.Since(began)
	after, err := s.cpu()
	if err != nil {
		return nil, err
	}
	tellError(s.times.failure)
	t, cpu := &s.times, after.since(before)
	if t.reserve.TotalCount() == 0 {
		return nil, fmt.Errorf("nobody could reserve: %w", t.failure)
	}
	ms := func(h *hdrhistogram.Histogram, q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1e6 }
	each := func(c time.Duration) float64 { return float64(c) / 1e3 / float64(n) }
	return []float64{
		float64(t.reserve.TotalCount()) / t.lastReserve.Sub(began).Seconds(),
		ms(t.reserve, 50), ms(t.reserve, 99), ms(t.answered, 50), ms(t.answered, 99),
		float64(t.turned), float64(t.errors),
		each(cpu.headgate), each(cpu.redis), each(cpu.database), each(cpu.load), cpu.others(took),
	}, nil
}

// come has shoppers come for d, waits until all have gone, and returns how many there were.
func (s *steady) come(ctx context.Context, d time.Duration) int {
	s.times = steadyTimes{reserve: hdrhistogram.New(1000, int64(2*saleTimeout), 3), answered: hdrhistogram.New(1000, int64(2*saleTimeout), 3)}
	n := max(1, int(d.Seconds()*float64(s.rate)))
	places := make(chan struct{}, maxVisitors)
	var group sync.WaitGroup
	began := time.Now()
	for i := range n {
		at := began.Add(time.Duration(i) * time.Second / time.Duration(s.rate))
		// By the clock, whatever has become of those before: load that waits for answers would hide slow ones.
		if wait := time.Until(at); wait > 0 {
			time.Sleep(wait)
		}
		select {
		case places <- struct{}{}:
		default:
			s.times.failed(errors.New("too many shoppers wait at a time"))
			continue
		}
		v := newVisitor(int(s.numbers.Add(1)))
		group.Go(func() {
			s.times.failed(s.shop(ctx, &v, at))
			<-places
		})
	}
	group.Wait()
	return n
}

// shop is one shopper, from the moment of coming. Who is turned away comes again when they may.
func (s *steady) shop(ctx context.Context, v *visitor, at time.Time) error {
	w := &wire{addr: s.addr}
	defer w.close()
	_, err := s.persist(ctx, http.StatusCreated, func() (reply, error) { return v.askToken(ctx, w, s.counter) })
	if err != nil {
		return fmt.Errorf("token: %w", err)
	}
	_, err = s.persist(ctx, http.StatusAccepted, func() (reply, error) {
		began := time.Now()
		r, err := v.reserve(ctx, w, s.counter)
		s.times.reserved(began)
		return r, err
	})
	if err != nil {
		return fmt.Errorf("reserve: %w", err)
	}
	r, err := s.persist(ctx, http.StatusOK, func() (reply, error) { return s.wait(v, ctx, w, s.counter) })
	if err == nil && r.doc.State != flashsale.Reserved.String() {
		err = fmt.Errorf("it is %s", r.doc.State)
	}
	if err != nil {
		return fmt.Errorf("result: %w", err)
	}
	s.times.done(at)
	return nil
}

// persist asks until it is not turned away, and wants one status.
func (s *steady) persist(ctx context.Context, want int, ask func() (reply, error)) (reply, error) {
	for {
		r, err := ask()
		switch {
		case err != nil:
			return r, err
		case r.status == want, r.status == http.StatusOK:
			return r, nil
		case !r.turnedAway():
			return r, fmt.Errorf("it is answered %d %s", r.status, r.doc.Code)
		}
		s.times.away()
		if err := pause(ctx, max(r.after, time.Second)); err != nil {
			return r, err
		}
	}
}

func (t *steadyTimes) reserved(began time.Time) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.reserve.RecordValue(int64(now.Sub(began))) // what is longer than the histogram has failed by its context
	t.lastReserve = now
}

func (t *steadyTimes) done(at time.Time) {
	took := time.Since(at)
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.answered.RecordValue(int64(took))
}

func (t *steadyTimes) away() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turned++
}

func (t *steadyTimes) failed(err error) {
	if err == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.errors++
	if t.failure == nil {
		t.failure = err
	}
}

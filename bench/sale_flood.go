package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/internal/testservers"
)

// floodSize is how large a flood is.
type floodSize struct {
	shoppers, units, connections int
	// within is the time in which all shoppers come, evenly.
	within time.Duration
	// patience is when those without an answer are given up.
	patience time.Duration
}

// wholeFlood is the one that is aimed at.
var wholeFlood = floodSize{shoppers: 100_000, units: 10_000, connections: 256, within: 5 * time.Second, patience: 5 * time.Minute}

// floodGoal is the time in which everybody is to have an answer.
const floodGoal = 60 * time.Second

func saleFlood(size floodSize) section {
	return section{
		Name: "saleflood", Title: fmt.Sprintf("A flood over HTTP: %s shoppers ask for %s units within %s, everything on the same cores",
			grouped(float64(size.shoppers), 0), grouped(float64(size.units), 0), size.within),
		notes: fmt.Sprintf("`headgate serve --sale` is a process of its own, on a Redis with an append-only file and a PostgreSQL with durable commits; limits by user, device and address are "+
			"counted in its memory. Each shopper is a user with an address of their own, gets a token, reserves, and asks for the result until it is final: reserved, or sold out. "+
			"Who is told when to come again comes then, never sooner. After the final answer each sends the same request once more, when that is allowed, and compares. "+
			"The shoppers share %d connections, and who waits for one waits in the figures: times are from when the first, or the one, was to come. Sold out is when the first is told "+
			"so; sold is what SQL says in the end, of which every invariant holds. Turned away are answers 429 and 503, after which the same is asked again. A script is one call to Redis; "+
			"what it does inside is not. (n×) is how many times worse than the goal; below 1 it is better.", size.connections),
		columns: []column{
			{"units sold", higher, 0}, {"all answered s", lower, 1}, {"answer p50 s", "", 1}, {"answer p99 s", "", 1}, {"sold out s", "", 1}, {"last unit told s", "", 1},
			{"without an answer", lower, 0}, {"answered differently", lower, 0}, {"errors", lower, 0}, {"turned away", "", 0}, {"requests", "", 0},
			{"requests/s", "", 0}, {"calls to Redis", "", 0},
			{"CPU s: Headgate", "", 1}, {"Redis", "", 1}, {"PostgreSQL", "", 1}, {"shoppers", "", 1}, {"cores others took", "", 2},
		},
		goals: []float64{
			float64(size.units), floodGoal.Seconds(), noGoal, noGoal, noGoal, noGoal, 0, 0, 0, noGoal, noGoal, noGoal, noGoal, noGoal, noGoal, noGoal, noGoal, noGoal,
		},
		once: true,
		open: func(tb testservers.TB) ([]contender, error) {
			s, err := serve(tb)
			if err != nil {
				return nil, err
			}
			return []contender{{name: "Headgate, Redis and PostgreSQL", try: func(time.Duration) ([]float64, error) { return runFlood(s, size) }}}, nil
		},
	}
}

// flood is one sale under its flood.
type flood struct {
	counter
	size     floodSize
	began    time.Time
	requests atomic.Int64
	turned   atomic.Int64
	errors   atomic.Int64

	mu sync.Mutex
	// answered are the times of final answers.
	answered *hdrhistogram.Histogram
	// soldOut, unitTold, last and done are when somebody was told for the first time that nothing is left, when the last unit's shopper was
	// told, when the last one was told anything final, and when the last one had asked again.
	soldOut, unitTold, last, done time.Duration
	different                     int
	failure                       error
}

// floodShopper is one of them.
type floodShopper struct {
	visitor
	due    time.Time
	answer string // the final one, "" before it
}

func runFlood(s *served, size floodSize) ([]float64, error) {
	k, err := s.open(int64(size.units))
	if err != nil {
		return nil, err
	}
	f := &flood{counter: k, size: size, answered: hdrhistogram.New(1000, int64(size.patience), 3)}
	calls, err := redisCalls(s.redis)
	if err != nil {
		return nil, err
	}
	before, err := s.cpu()
	if err != nil {
		return nil, err
	}
	f.run()
	tellError(f.failure)
	after, err := s.cpu()
	if err != nil {
		return nil, err
	}
	callsAfter, err := redisCalls(s.redis)
	if err != nil {
		return nil, err
	}
	sold, err := k.sold()
	if err != nil {
		return nil, err
	}
	return f.figures(sold, callsAfter-calls, after.since(before)), nil
}

// run has them all come.
func (f *flood) run() {
	ctx, cancel := context.WithTimeout(context.Background(), f.size.patience)
	defer cancel()
	list := make([]visit[*floodShopper], f.size.shoppers)
	f.began = time.Now().Add(100 * time.Millisecond)
	for i := range list {
		at := f.began.Add(f.size.within * time.Duration(i) / time.Duration(f.size.shoppers))
		list[i] = visit[*floodShopper]{at, &floodShopper{visitor: newVisitor(i), due: at}}
	}
	c := comers[*floodShopper]{connections: f.size.connections, addr: f.addr, step: f.step}
	c.come(ctx, list)
	f.done = time.Since(f.began)
}

// step is all that a shopper does until they wait, or have done everything.
func (f *flood) step(ctx context.Context, w *wire, s *floodShopper) time.Time {
	for {
		r, err := f.ask(ctx, w, s)
		f.requests.Add(1)
		switch {
		case ctx.Err() != nil:
			return time.Time{}
		case err != nil:
			f.failed(fmt.Errorf("%s: %w", s.user, err))
			return time.Now().Add(time.Second + rand.N(time.Second)) // as the page does: it does not know when
		case r.turnedAway():
			f.turned.Add(1)
			return time.Now().Add(max(r.after, time.Second))
		case s.answer != "":
			f.compare(s, &r) // "processing" is another answer too, now
			return time.Time{}
		case r.status == http.StatusCreated: // a token; it is spent at once
		case r.pending():
			return time.Now().Add(r.after)
		case r.status != http.StatusOK && r.doc.Code != string(flashsale.CodeSoldOut):
			f.failed(fmt.Errorf("%s is answered %d %s", s.user, r.status, r.doc.Code))
			return time.Time{}
		default:
			f.final(s, &r)
			return time.Now().Add(r.after)
		}
	}
}

// ask sends what comes next. After the final answer it is the request to reserve again.
func (f *flood) ask(ctx context.Context, w *wire, s *floodShopper) (reply, error) {
	switch {
	case s.token == "":
		return s.askToken(ctx, w, f.counter)
	case s.rid == "" || s.answer != "":
		return s.reserve(ctx, w, f.counter)
	}
	return s.look(ctx, w, f.counter)
}

func (f *flood) failed(err error) {
	f.errors.Add(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failure == nil {
		f.failure = err
	}
}

// final notes somebody's final answer.
func (f *flood) final(s *floodShopper, r *reply) {
	s.answer = r.final()
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.answered.RecordValue(int64(now.Sub(s.due))) // patience is over before it is too long for the histogram
	f.last = now.Sub(f.began)
	switch {
	case r.doc.State == flashsale.Reserved.String():
		f.unitTold = f.last
	case f.soldOut == 0 && r.doc.Code == string(flashsale.CodeSoldOut):
		f.soldOut = f.last
	}
}

func (f *flood) compare(s *floodShopper, r *reply) {
	if r.final() == s.answer {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.different++
	if f.failure == nil {
		f.failure = fmt.Errorf("%s was told %q, and then %d %q", s.user, s.answer, r.status, r.final())
	}
}

func (f *flood) figures(sold int64, calls float64, cpu servedCPU) []float64 {
	requests := float64(f.requests.Load())
	return []float64{
		float64(sold), f.last.Seconds(), float64(f.answered.ValueAtQuantile(50)) / 1e9, float64(f.answered.ValueAtQuantile(99)) / 1e9,
		f.soldOut.Seconds(), f.unitTold.Seconds(), float64(int64(f.size.shoppers) - f.answered.TotalCount()), float64(f.different), float64(f.errors.Load()),
		float64(f.turned.Load()), requests, requests / f.done.Seconds(), calls,
		cpu.headgate.Seconds(), cpu.redis.Seconds(), cpu.database.Seconds(), cpu.load.Seconds(), cpu.others(f.done),
	}
}

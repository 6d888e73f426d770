package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

const (
	// lookEvery is the time between two looks at the stores, and lookTime how long one may take.
	lookEvery = time.Second
	lookTime  = 2 * time.Second
)

// runConsumers decides jobs until ctx ends, and returns when all its workers have finished what they had pulled.
func (e *Engine) runConsumers(ctx context.Context) {
	p := &pool{e: e, alarms: newAlarms(e.observer), working: map[int]bool{}}
	p.scaler = scaler{min: e.cfg.Consumers.Min, max: e.cfg.Consumers.Max, batch: e.cfg.Consumers.Batch, workers: e.cfg.Consumers.Min}
	p.resize(ctx, p.scaler.workers, "started")
	p.running.Go(func() { p.every(ctx, p.refresh) })
	p.running.Go(func() { p.every(ctx, p.look) })
	p.running.Wait()
	e.observer.Workers(0, "stopped")
}

// every calls f at once and then each second, until ctx ends.
func (p *pool) every(ctx context.Context, f func(context.Context)) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		_ = p.e.shielded("a look at the queues", func() error {
			f(ctx)
			return nil
		})
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// pool are the workers of this process.
type pool struct {
	e       *Engine
	alarms  *alarms
	scaler  scaler // of look alone, as is mute
	mute    int    // looks in a row that the Stock has not answered for all skus
	running sync.WaitGroup

	mu      sync.Mutex
	want    int
	working map[int]bool
	silent  int // looks in a row that SQL has not answered
}

// resize makes it n workers. Those that are too many leave when they have finished.
func (p *pool) resize(ctx context.Context, n int, why string) {
	p.mu.Lock()
	p.want = n
	for i := range n {
		if !p.working[i] {
			p.working[i] = true
			p.running.Go(func() { p.work(ctx, i) })
		}
	}
	p.mu.Unlock()
	p.e.observer.Workers(n, why)
}

// stays reports whether worker i is still wanted, and strikes it off if not.
func (p *pool) stays(ctx context.Context, i int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() == nil && i < p.want {
		return true
	}
	delete(p.working, i)
	return false
}

// work is a worker: it takes one turn after another.
func (p *pool) work(ctx context.Context, i int) {
	consumer := fmt.Sprintf("%s-%d", p.e.cfg.Instance, i)
	board := p.e.board
	for p.stays(ctx, i) {
		t, wait := board.next(time.Now())
		if t.seat != nil {
			p.take(ctx, t, consumer)
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-board.signal:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	board.look() // the signal may have been for this one
}

// take takes a turn.
func (p *pool) take(ctx context.Context, t turn, consumer string) {
	b, err := t.batch, error(nil)
	if b == nil {
		err = p.e.shielded("a consumer", func() (err error) {
			b, err = p.e.pull(ctx, t.seat.key, consumer)
			return err
		})
		if err == nil {
			full := len(b.jobs) >= p.e.cfg.Consumers.Batch
			p.e.measured.pulled(full)
			p.e.board.pulled(t, full)
		}
	}
	n := 0
	if err == nil && len(b.jobs) > 0 {
		n, err = p.finish(ctx, b)
	}
	var left *batch
	if err != nil && b != nil && len(b.jobs) > 0 {
		left = b
	}
	p.e.board.done(t, time.Now(), n, err, left)
}

// finish decides a batch even if the pool is told to stop meanwhile: within Reclaim, after which others have its jobs.
func (p *pool) finish(ctx context.Context, b *batch) (int, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.e.cfg.Consumers.Reclaim)
	defer cancel()
	n, err := p.e.consume(ctx, b)
	if err != nil {
		p.e.log.Debug("jobs could not be decided; they are tried again", slog.String("sku", b.key.String()), slog.Int("jobs", len(b.jobs)), slog.Any("error", err))
	}
	return n, err
}

// refresh reads from SQL which skus there are.
func (p *pool) refresh(ctx context.Context) {
	asked, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	states, err := p.e.orders.SKUs(asked)
	if ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	if err == nil {
		p.silent = 0
	} else {
		p.silent++
	}
	silent := p.silent
	p.mu.Unlock()
	p.alarms.step(AlarmSQL, "", float64(silent), fmt.Sprintf("%s without an answer of the database: %v", counted(silent, "look", "looks in a row"), err))
	if err != nil {
		return
	}
	keys, names := make([]flashsale.Key, len(states)), make(map[string]bool, len(states))
	for i := range states {
		keys[i] = states[i].Key
		names[states[i].Key.String()] = true
		p.e.skus.put(&states[i])
	}
	p.e.board.set(keys)
	p.alarms.only(names)
}

// look tells the figures of all queues, and has as many workers as they need.
func (p *pool) look(ctx context.Context) {
	asked, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	m := p.e.measured
	l := load{now: time.Now(), decided: m.jobs.Swap(0), full: m.full.Swap(0), short: m.short.Swap(0)}
	keys, mute := p.e.board.keys(), 0
	var why error // of the last that had no answer
	for _, key := range keys {
		began := p.e.cfg.Now()
		v, err := p.e.stock.View(asked, key)
		if err != nil {
			mute, why = mute+1, err
		}
		if err != nil || !v.Loaded {
			continue
		}
		m.ahead.Store(int64(v.Now.Sub(began.Add(p.e.cfg.Now().Sub(began) / 2))))
		p.lookAt(key, &v.Queue, &l)
	}
	if ctx.Err() != nil {
		return
	}
	p.stockAnswers(len(keys), mute, why)
	p.alarms.retries(m.turn(flashsale.Key{}))
	p.mu.Lock()
	l.failing = p.silent > 0
	p.mu.Unlock()
	if why := p.scaler.next(l); why != "" {
		p.resize(ctx, p.scaler.workers, why)
	}
}

// stockAnswers steps the alarm about skus of which the Stock does not tell anything.
func (p *pool) stockAnswers(of, mute int, why error) {
	if mute == 0 {
		p.mute = 0
	} else {
		p.mute++
	}
	p.alarms.step(AlarmStock, "", float64(p.mute), fmt.Sprintf("the stock does not answer for %d of %s: %v", mute, counted(int64(of), "sku", "skus"), why))
}

func (p *pool) lookAt(key flashsale.Key, q *flashsale.QueueView, l *load) {
	waiting := max(q.Depth-q.Pulled, 0)
	l.waiting += waiting
	l.lag = max(l.lag, q.Oldest)
	p.e.board.seen(key, waiting)
	p.e.observer.Backlog(key.String(), q.Depth, q.Pulled, q.Dead, q.Pending, q.Oldest)
	p.alarms.look(key, q, p.e.measured.turn(key))
}

package engine

import (
	"context"
	"errors"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

const (
	// repeats is how often a batch is decided again at once, after pauses that begin with firstRepeat and double, before its sku is left
	// alone for longer.
	repeats     = 3
	firstRepeat = 2 * time.Millisecond
)

// batch is what was pulled together and is to be decided.
type batch struct {
	key   flashsale.Key
	epoch int64
	jobs  []flashsale.Job
	// attempts counts the times that it was given up, blamed those of them in which each of its jobs failed alone.
	attempts, blamed int
}

// ConsumeOnce is one pass of a consumer over a sku: it pulls jobs, has SQL decide them (T1), and lets the Stock follow. It returns how
// many were decided. What fails stays pulled, and another pass gets it after Consumers.Reclaim; but a job that fails alone, where
// others succeed or for the third time, becomes a dead letter. Two consumers must not share a name.
func (e *Engine) ConsumeOnce(ctx context.Context, key flashsale.Key, consumer string) (int, error) {
	b, err := e.pull(ctx, key, consumer)
	if err != nil || len(b.jobs) == 0 {
		return 0, err
	}
	return e.consume(ctx, b)
}

func (e *Engine) pull(ctx context.Context, key flashsale.Key, consumer string) (*batch, error) {
	b := &batch{key: key}
	err := e.inEpoch(ctx, key, func(epoch int64) (err error) {
		b.epoch = epoch
		b.jobs, err = e.stock.Pull(ctx, key, epoch, consumer, e.cfg.Consumers.Batch, e.cfg.Consumers.Reclaim)
		return err
	})
	if isRetired(err) {
		err = nil // there is nothing to decide
	}
	return b, err
}

// consume decides a batch, and returns how many of its jobs were decided. Those that are to be decided again stay in it.
func (e *Engine) consume(ctx context.Context, b *batch) (int, error) {
	n := len(b.jobs)
	err := e.decideAgain(ctx, b, b.jobs)
	switch {
	case err == nil:
		b.jobs = nil
		return n, nil
	case isEpoch(err):
		return 0, e.outOfEpoch(ctx, b)
	case isPassing(err):
		b.attempts++
		return 0, err
	}
	return e.isolate(ctx, b, err)
}

// outOfEpoch leaves a batch to the rebuild, which reads the queue to its end.
func (e *Engine) outOfEpoch(ctx context.Context, b *batch) error {
	b.jobs = nil
	if _, err := e.skus.read(ctx, b.key); err != nil {
		return err
	}
	return rebuilding(b.key)
}

func isEpoch(err error) bool {
	code := flashsale.CodeOf(err)
	return code == flashsale.CodeStaleEpoch || code == flashsale.CodeRebuilding
}

// isPassing reports whether an error says nothing about the jobs: a store does not answer, or the consumer is to stop.
func isPassing(err error) bool {
	switch flashsale.CodeOf(err) {
	case flashsale.CodeUnavailable, flashsale.CodeBusy, flashsale.CodeClosed:
		return true
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// decideAgain decides jobs, and again if a store could not be reached or has undone the transaction.
func (e *Engine) decideAgain(ctx context.Context, b *batch, jobs []flashsale.Job) error {
	for try := 0; ; try++ {
		err := e.shielded("a consumer", func() error { return e.decide(ctx, b, jobs, try) })
		e.measured.tried(err != nil && isPassing(err))
		if err == nil || !isPassing(err) || try == repeats || !pause(ctx, e.random.jittered(firstRepeat<<try)) {
			return err
		}
	}
}

// decide has SQL decide jobs, and the Stock follow and forget them. If the second does not come about, the next try finds them decided.
func (e *Engine) decide(ctx context.Context, b *batch, jobs []flashsale.Job, retries int) error {
	began := e.cfg.Now()
	decided, err := e.orders.Decide(ctx, &flashsale.Batch{Key: b.key, Epoch: b.epoch, Jobs: jobs})
	if err != nil {
		return err
	}
	if len(decided) != len(jobs) {
		return errorf(flashsale.CodeInternal, "%s: %d jobs were decided as %d", b.key, len(jobs), len(decided))
	}
	e.noteBatch(b.key, jobs, decided, retries+b.attempts*(repeats+1), began)
	acks := make([]string, len(jobs))
	for i := range jobs {
		acks[i] = jobs[i].ID
	}
	return e.deliver(ctx, b.key, b.epoch, decided, acks)
}

// noteBatch tells observers and alarms of a batch that SQL has decided.
func (e *Engine) noteBatch(key flashsale.Key, jobs []flashsale.Job, decided []flashsale.Decided, retries int, began time.Time) {
	now := e.cfg.Now()
	stockNow := now.Add(e.measured.stockAhead())
	var oldest time.Duration
	latencies := make([]time.Duration, 0, len(jobs))
	for i := range jobs {
		age := max(stockNow.Sub(jobs[i].At), 0)
		oldest = max(oldest, age)
		if d := &decided[i]; !d.Replayed {
			latencies = append(latencies, age)
			e.observer.Moved(key.String(), transitionOf(d.State), d.Reason, d.Quantity)
		}
	}
	e.measured.decided(key, latencies)
	e.observer.Batch(key.String(), len(jobs), retries, now.Sub(began), oldest)
}

// Retried tells the engine that its database has repeated a transaction by itself, so that the alarm about retries counts it: the
// composition root gives it to whoever opens the database, which is before there is an engine: to none it may be told too. It is safe
// for concurrent use and does not block.
func (e *Engine) Retried(method string, _ int, _ error) {
	if e != nil && method == "Decide" {
		e.measured.tried(true)
	}
}

func transitionOf(state flashsale.State) string {
	if state == flashsale.Rejected {
		return "T1'"
	}
	return "T1"
}

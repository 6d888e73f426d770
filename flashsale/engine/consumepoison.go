package engine

import (
	"context"
	"log/slog"
	"strings"

	"github.com/headgate-io/headgate/flashsale"
)

// buryAfter is how often a batch is decided in vain, if nothing tells its jobs apart from a fault of the whole, before its jobs
// become dead letters.
const buryAfter = 3

// isolation finds, by halves, the jobs of a batch that fail alone.
type isolation struct {
	e       *Engine
	batch   *batch
	decided int
	poison  []poison
	// rest was not decided, because of stopped.
	rest    []flashsale.Job
	stopped error
}

type poison struct {
	job flashsale.Job
	err error
}

// isolate decides a batch that fails with an error of its jobs, all but those that fail alone, which it buries. If none succeeds, the
// fault may lie elsewhere: the batch is tried again before it is believed.
func (e *Engine) isolate(ctx context.Context, b *batch, cause error) (int, error) {
	i := isolation{e: e, batch: b}
	i.halve(ctx, b.jobs, cause)
	if i.stopped != nil && isEpoch(i.stopped) {
		return i.decided, e.outOfEpoch(ctx, b)
	}
	if i.decided == 0 && !i.believed() {
		b.attempts++
		b.blamed++
		return 0, cause
	}
	b.jobs = i.rest
	for _, p := range i.poison {
		if err := e.bury(ctx, b, &p); err != nil {
			b.jobs, i.stopped = append(b.jobs, p.job), err
		}
	}
	if i.stopped != nil {
		b.attempts++
	}
	return i.decided, i.stopped
}

// halve decides the halves of jobs that cannot be decided together.
func (i *isolation) halve(ctx context.Context, jobs []flashsale.Job, cause error) {
	if len(jobs) == 1 {
		i.poison = append(i.poison, poison{jobs[0], cause})
		return
	}
	for _, half := range [][]flashsale.Job{jobs[:len(jobs)/2], jobs[len(jobs)/2:]} {
		if i.stopped != nil {
			i.rest = append(i.rest, half...)
			continue
		}
		err := i.e.decideAgain(ctx, i.batch, half)
		switch {
		case err == nil:
			i.decided += len(half)
		case isEpoch(err) || isPassing(err):
			i.stopped = err
			i.rest = append(i.rest, half...)
		default:
			i.halve(ctx, half, err)
		}
	}
}

// believed reports whether jobs of which none was decided have been tried often enough.
func (i *isolation) believed() bool {
	if i.batch.blamed+1 >= buryAfter {
		return true
	}
	for _, job := range i.batch.jobs {
		if job.Deliveries < buryAfter {
			return false
		}
	}
	return true
}

func (e *Engine) bury(ctx context.Context, b *batch, p *poison) error {
	reason := p.err.Error()
	if len(reason) > flashsale.MaxReason {
		reason = strings.ToValidUTF8(reason[:flashsale.MaxReason], "")
	}
	if err := e.stock.Bury(ctx, b.key, b.epoch, &p.job, reason); err != nil {
		return err
	}
	e.log.Warn("a job cannot be decided and is a dead letter now; its reservation is refused at its deadline unless it is revived before",
		slog.String("sku", b.key.String()), slog.String("rid", p.job.RID), slog.Any("error", p.err))
	return nil
}

// DeadLetters lists the jobs of a sku that could not be decided, oldest first, with the reason.
func (e *Engine) DeadLetters(ctx context.Context, key flashsale.Key, limit int) (dead []flashsale.DeadJob, err error) {
	if limit < 1 || limit > 1000 {
		return nil, errorf(flashsale.CodeInvalidArgument, "a list of %d dead letters; ask for 1 to 1000", limit)
	}
	err = e.inEpoch(ctx, key, func(epoch int64) (err error) {
		dead, err = e.stock.Dead(ctx, key, epoch, limit)
		return err
	})
	return dead, err
}

// ReviveDead puts dead letters back into the queue, by the ids of their jobs, and returns how many. Those past their deadline are dropped:
// their reservations have been refused, or will be.
func (e *Engine) ReviveDead(ctx context.Context, key flashsale.Key, ids []string) (n int, err error) {
	if len(ids) > 1000 {
		return 0, errorf(flashsale.CodeInvalidArgument, "%d dead letters at a time; give at most 1000", len(ids))
	}
	err = e.inEpoch(ctx, key, func(epoch int64) (err error) {
		n, err = e.stock.Revive(ctx, key, epoch, ids)
		return err
	})
	if n > 0 {
		e.board.wake(key)
	}
	return n, err
}

package engine

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// leasePrefix is what the leases of jobs begin with.
const leasePrefix = "sale/"

// job is something that one of all instances does, again and again.
type job struct {
	// name is that of its lease, after leasePrefix.
	name  string
	every time.Duration
	once  func(ctx context.Context) (int, error)
	// now wakes it before its time; nil never does.
	now <-chan struct{}
	// over ends the alarms that it has raised, when another instance does it from now on, which raises its own; nil: there are none.
	over func()
}

func (e *Engine) jobs() []job {
	every := &e.cfg.Jobs
	jobs := []job{
		{name: "deliver", every: every.Deliver, once: e.DeliverOnce},
		{name: "relay", every: every.Relay, once: e.RelayOnce, over: e.endRelayAlarm},
		{name: "sweep", every: every.Sweep, once: e.SweepOnce},
		{name: "watch", every: every.Watch, once: e.WatchOnce, now: e.care.watchNow},
		{name: "reconcile", every: every.Reconcile, once: e.ReconcileOnce, over: func() { e.endDrifts(nil) }},
	}
	if e.payments != nil {
		jobs = append(jobs, job{name: "poll", every: every.Poll, once: e.PollOnce}, job{name: "match", every: every.Match, once: e.matchJob, over: e.endMisfits})
	}
	return jobs
}

// Run starts the consumers, the jobs that this instance gets the leases of, and the writing of refusals, and returns when the context has
// ended and all of them have; what is left to write is written then. A second Run while one goes on is CodeInvalidState.
func (e *Engine) Run(ctx context.Context) error {
	if !e.care.started.CompareAndSwap(false, true) {
		return &flashsale.Error{Code: flashsale.CodeInvalidState, Message: "engine: it runs already; end that Run first, or make another engine"}
	}
	defer e.care.started.Store(false)
	e.running.Go(func() { e.runConsumers(ctx) })
	e.running.Go(func() { e.runRefusals(ctx) })
	e.running.Go(func() { e.runMender(ctx) })
	for _, j := range e.jobs() {
		e.running.Go(func() { e.runJob(ctx, &j) })
	}
	<-ctx.Done()
	e.running.Wait()
	return nil
}

// runJob does a job whenever this instance has its lease, until the context ends.
func (e *Engine) runJob(ctx context.Context, j *job) {
	// Who does not have the lease asks again soon after it can have ended.
	again := time.NewTicker(e.cfg.Jobs.Lease / 3)
	defer again.Stop()
	last := ""
	for ctx.Err() == nil {
		_, err := e.underLease(ctx, leasePrefix+j.name, func(ctx context.Context, _ int64) error {
			e.observer.Leased(j.name, true)
			defer e.observer.Leased(j.name, false)
			e.repeat(ctx, j)
			if j.over != nil {
				j.over()
			}
			return nil
		})
		if code := codeOf(err); code != last && ctx.Err() == nil {
			if last = code; err != nil { // an error that stays the same is logged once
				e.log.Warn("a job's lease cannot be asked for; it is tried again", slog.String("job", j.name), slog.Any("error", err))
			}
		}
		select {
		case <-ctx.Done():
		case <-again.C:
		}
	}
}

// repeat makes passes of a job until the context ends.
func (e *Engine) repeat(ctx context.Context, j *job) {
	tick := time.NewTicker(j.every)
	defer tick.Stop()
	last := ""
	for ctx.Err() == nil {
		last = e.pass(ctx, j, last)
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-j.now:
		}
	}
}

// pass makes one pass, and returns the code of its error. An error that stays the same is logged once.
func (e *Engine) pass(ctx context.Context, j *job, last string) string {
	began := time.Now()
	did, err := e.guarded(ctx, j)
	if ctx.Err() != nil {
		return last
	}
	code := codeOf(err)
	e.observer.Job(j.name, did, time.Since(began), code)
	if code != last && err != nil {
		e.log.Warn("a job has failed; it is tried again", slog.String("job", j.name), slog.Any("error", err))
	}
	return code
}

// codeOf is the code of an error as observers are told it: "" if there is none, and never "" if there is.
func codeOf(err error) string {
	code := flashsale.CodeOf(err)
	if err != nil && code == "" {
		code = flashsale.CodeInternal
	}
	return string(code)
}

// guarded makes a pass that cannot end the process.
func (e *Engine) guarded(ctx context.Context, j *job) (did int, err error) {
	err = e.shielded("the job "+j.name, func() (err error) {
		did, err = j.once(ctx)
		return err
	})
	return did, err
}

// shielded keeps a panic from the process: a fault in one thing must not end the sale.
func (e *Engine) shielded(what string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			e.log.Error("a panic was caught; everything else goes on", slog.String("in", what), slog.Any("panic", r), slog.String("stack", string(debug.Stack())))
			err = &flashsale.Error{Code: flashsale.CodeInternal, Message: what + " has panicked"}
		}
	}()
	return f()
}

// allOf calls f with 0 to n−1, so many at a time, each shielded, and returns all errors.
func (e *Engine) allOf(n, parallel int, what string, f func(i int) error) error {
	errs := make([]error, n)
	inTurns(n, parallel, func(i int) {
		errs[i] = e.shielded(what, func() error { return f(i) })
	})
	return errors.Join(errs...)
}

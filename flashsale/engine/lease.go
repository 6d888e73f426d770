package engine

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// errLeaseLost is why the context of a job ends that another instance has taken over, or may have.
var errLeaseLost = errors.New("the lease of the job is lost")

// releaseFor bounds how long giving a lease back may take when all ends.
const releaseFor = time.Second

// lease is a lease that this engine has.
type lease struct {
	engine *Engine
	name   string
	holder string
	fence  int64
}

// underLease calls f once while this engine has the lease, and reports whether it had. The context of f ends when the lease is
// lost: when another has it, or when it could not be renewed in time.
func (e *Engine) underLease(ctx context.Context, name string, f func(ctx context.Context, fence int64) error) (held bool, err error) {
	l := &lease{engine: e, name: name, holder: e.cfg.Instance + "/" + strconv.FormatInt(e.care.holders.Add(1), 10)}
	asked := time.Now()
	if l.fence, held, err = e.orders.Lease(ctx, name, l.holder, e.cfg.Jobs.Lease); err != nil || !held {
		return false, err
	}
	under, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.renew(under, cancel, asked)
	}()
	defer l.release(ctx)
	defer func() { cancel(nil); <-ended }()
	err = f(under, l.fence)
	if cause := context.Cause(under); err != nil && errors.Is(cause, errLeaseLost) {
		err = &flashsale.Error{Code: flashsale.CodeFenced, Message: "another instance may have taken over " + name, Err: err}
	}
	return true, err
}

// renew keeps the lease, at a third of its time, until the context ends. Its time counts from before each call, so that it never
// believes to have what the database has given away.
func (l *lease) renew(ctx context.Context, cancel context.CancelCauseFunc, asked time.Time) {
	ttl := l.engine.cfg.Jobs.Lease
	over := time.AfterFunc(ttl-time.Since(asked), func() { cancel(errLeaseLost) })
	defer over.Stop()
	tick := time.NewTicker(ttl / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if ctx.Err() != nil { // both have come, and who has to stop must not ask for the lease again
			return
		}
		asked = time.Now()
		fence, held, err := l.engine.orders.Lease(ctx, l.name, l.holder, ttl)
		switch {
		case err != nil:
			l.engine.log.Debug("a lease could not be renewed; it is tried again", slog.String("lease", l.name), slog.Any("error", err))
		case !held || fence != l.fence:
			cancel(errLeaseLost)
			return
		default:
			over.Reset(ttl - time.Since(asked))
		}
	}
}

// release gives the lease back, also when all ends, so that the next one need not wait for its time to pass.
func (l *lease) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseFor)
	defer cancel()
	if err := l.engine.orders.Release(ctx, l.name, l.holder); err != nil {
		l.engine.log.Debug("a lease was not given back; it ends by itself", slog.String("lease", l.name), slog.Any("error", err))
	}
}

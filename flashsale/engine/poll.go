package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

const pollPage = 100

// PollOnce goes on with the payments that wait for something: captured ones that are not applied (T8), refunds that are owed, and live
// ones whose webhook has not come. So no webhook has to. It returns how many of them moved. A provider that does not answer is no
// error of the poll: everything waits, and the alarm tells.
func (e *Engine) PollOnce(ctx context.Context) (int, error) {
	if e.payments == nil {
		return 0, nil
	}
	now, err := e.orders.Now(ctx)
	if err != nil {
		return 0, err
	}
	moved := 0
	var errs []error
	for _, state := range []flashsale.PaymentState{flashsale.PaymentCaptured, flashsale.PaymentRefunding, flashsale.PaymentLive} {
		p := &poll{e: e, state: state, now: now}
		if err := p.run(ctx); err != nil {
			errs = append(errs, err)
		}
		moved += int(p.moved.Load())
	}
	return moved, errors.Join(errs...)
}

// poll is one pass over the payments of one state.
type poll struct {
	e     *Engine
	state flashsale.PaymentState
	now   time.Time // by SQL's clock, as all times of payments

	moved   atomic.Int64
	silent  atomic.Int64 // calls of the provider in a row without an answer
	mu      sync.Mutex
	failure error // the first, of SQL
}

// run goes on after what the last poll saw, and begins again at the end.
func (p *poll) run(ctx context.Context) error {
	age := time.Duration(0)
	if p.state == flashsale.PaymentLive {
		age = p.e.cfg.Paying.Age
	}
	cursor := p.e.paying.cursor(p.state)
	for left := p.e.cfg.Paying.Batch; left > 0 && !p.stopped(ctx); {
		page, next, err := p.e.orders.OpenPayments(ctx, p.state, age, cursor, min(left, pollPage))
		if err != nil {
			return err
		}
		if err := p.look(ctx, page); err != nil {
			return err
		}
		left -= len(page)
		if cursor = next; cursor == "" {
			break
		}
	}
	p.e.paying.setCursor(p.state, cursor)
	return p.failure
}

// stopped reports whether the rest of the pass is of no use: nobody answers.
func (p *poll) stopped(ctx context.Context) bool {
	return ctx.Err() != nil || p.silent.Load() >= downAfter
}

// look goes on with the payments of a page, several at a time.
func (p *poll) look(ctx context.Context, page []flashsale.Payment) error {
	rids := make([]string, len(page))
	for i := range page {
		rids[i] = page[i].RID
	}
	rows, err := p.e.orders.Reservations(ctx, rids)
	if err != nil {
		return err
	}
	byRID := make(map[string]*flashsale.Reservation, len(rows))
	for i := range rows {
		byRID[rows[i].RID] = &rows[i]
	}
	inTurns(len(page), p.e.cfg.Paying.Parallel, func(i int) {
		if row := byRID[page[i].RID]; row != nil && !p.stopped(ctx) {
			p.one(ctx, &page[i], row)
		}
	})
	return nil
}

// one goes on with a payment. What fails holds up no other.
func (p *poll) one(ctx context.Context, pay *flashsale.Payment, row *flashsale.Reservation) {
	moved := false
	err := p.e.shielded("polling "+pay.IntentKey, func() (err error) {
		moved, err = p.step(ctx, pay, row)
		return err
	})
	if moved {
		p.moved.Add(1)
	}
	switch {
	case err == nil:
		p.silent.Store(0)
	case ctx.Err() != nil:
	case isSilence(err):
		p.silent.Add(1)
		p.e.logLater(ctx, pay, err)
	case flashsale.CodeOf(err) == flashsale.CodeRebuilding:
		p.e.logLater(ctx, pay, err)
	default:
		p.fail(err)
	}
}

func (p *poll) step(ctx context.Context, pay *flashsale.Payment, row *flashsale.Reservation) (bool, error) {
	if p.state != flashsale.PaymentLive {
		return p.e.carryOn(ctx, pay, row)
	}
	if row.State == flashsale.Confirming && p.now.Before(row.Until) {
		return p.e.askFor(ctx, pay, row)
	}
	// Its time is over (T7), or the reservation has gone on without it.
	status, err := p.e.endLive(ctx, pay, row)
	if isSilence(err) {
		p.e.paying.note(err, true)
	}
	return err == nil && status != flashsale.PayOpen, err
}

func (p *poll) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure == nil {
		p.failure = err
	}
}

// askFor asks where a payment stands of which nothing was heard. One that the provider does not know was never made: whoever began
// it has died.
func (e *Engine) askFor(ctx context.Context, pay *flashsale.Payment, row *flashsale.Reservation) (bool, error) {
	p, err := e.query(ctx, pay.IntentKey)
	made := false
	if flashsale.CodeOf(err) == flashsale.CodeUnknownPayment {
		made = true
		p, err = e.create(ctx, pay, row)
	}
	if err != nil || p.Status == flashsale.PayOpen {
		return made && err == nil, err
	}
	err = e.outcome(ctx, "", p)
	return err == nil, err
}

// inTurns calls f with 0 to n−1, so many at a time, and returns when all have.
func inTurns(n, parallel int, f func(i int)) {
	if parallel = min(parallel, n); parallel <= 1 {
		for i := range n {
			f(i)
		}
		return
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for range parallel {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	all.Wait()
}

package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// Paying says how the provider is asked.
type Paying struct {
	// Timeout bounds each call of the provider. Default 10 s.
	Timeout time.Duration
	// Age is for how long a live payment has not changed before the poller asks for it: until then its webhook is awaited. Default 10 s.
	Age time.Duration
	// Batch is how many payments of each state (live, captured and not applied, to be refunded) one poll looks at. The next poll goes on
	// after them. Default 500.
	Batch int
	// Parallel is how many payments, and skus, the jobs look at together. Default 8; at 1 they start no goroutine for it.
	Parallel int
}

func (c Paying) withDefaults() Paying {
	if c.Timeout <= 0 {
		c.Timeout = 10 * time.Second
	}
	if c.Age <= 0 {
		c.Age = 10 * time.Second
	}
	if c.Batch <= 0 {
		c.Batch = 500
	}
	if c.Parallel <= 0 {
		c.Parallel = 8
	}
	return c
}

// downAfter is after how many calls in a row without an answer the provider counts as down.
const downAfter = 3

// paying is what the engine remembers of the provider and of payments. All of it can be lost.
type paying struct {
	observer Observer

	mu       sync.Mutex
	failures int  // calls in a row without an answer
	alarmed  bool // AlarmProvider is on
	cursors  map[flashsale.PaymentState]string
	misfits  bool // AlarmPaymentsMatch is on
	matching matching

	telling sync.Mutex // of AlarmPaymentsMatch: what is told last is what holds
}

func newPaying(observer Observer) *paying {
	return &paying{observer: observer, cursors: map[flashsale.PaymentState]string{}}
}

// note takes account of a call. The alarm goes on when several in a row had no answer, or at once if a reservation is held for it, and
// off with the next answer.
func (p *paying) note(err error, held bool) {
	p.mu.Lock()
	p.failures++
	if err == nil {
		p.failures = 0
	} else if held {
		p.failures = max(p.failures, downAfter)
	}
	on, n := p.failures >= downAfter, p.failures
	changed := on != p.alarmed
	p.alarmed = on
	p.mu.Unlock()
	switch {
	case changed && on:
		p.observer.Alarm(AlarmProvider, "", true, float64(n), "the payment provider does not answer; what is being paid is held: "+err.Error())
	case changed:
		p.observer.Alarm(AlarmProvider, "", false, 0, "the payment provider answers")
	}
}

func (p *paying) cursor(state flashsale.PaymentState) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cursors[state]
}

func (p *paying) setCursor(state flashsale.PaymentState, cursor string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cursors[state] = cursor
}

// payable says that there is a provider.
func (e *Engine) payable() error {
	if e.payments == nil {
		return errorf(flashsale.CodeInvalidState, "engine: nothing can be paid: Config.Payments is missing")
	}
	return nil
}

// ask calls the provider, in its time. An error that is none of flashsale's counts as no answer.
func (e *Engine) ask(ctx context.Context, call func(ctx context.Context) (*flashsale.ProviderPayment, error)) (*flashsale.ProviderPayment, error) {
	limited, cancel := context.WithTimeout(ctx, e.cfg.Paying.Timeout)
	defer cancel()
	p, err := call(limited)
	if err != nil && flashsale.CodeOf(err) == "" {
		err = &flashsale.Error{Code: flashsale.CodeUnavailable, Message: "the payment provider does not answer; ask again", Err: err}
	}
	if flashsale.CodeOf(err) == flashsale.CodeUnavailable {
		err = &silence{err}
		if ctx.Err() == nil { // and not that nobody waits for the answer any more
			e.paying.note(err, false)
		}
		return nil, err
	}
	e.paying.note(nil, false)
	if err == nil && p == nil {
		err = errorf(flashsale.CodeInternal, "the payment provider answers nothing")
	}
	return p, err
}

// silence is an error of the provider's that leaves open what happened, told from one of a store.
type silence struct{ err error }

func (s *silence) Error() string { return s.err.Error() }
func (s *silence) Unwrap() error { return s.err }

func isSilence(err error) bool {
	_, ok := errors.AsType[*silence](err)
	return ok
}

// create makes the intent of a payment, or finds it.
func (e *Engine) create(ctx context.Context, pay *flashsale.Payment, r *flashsale.Reservation) (*flashsale.ProviderPayment, error) {
	in := &flashsale.Intent{Key: pay.IntentKey, Amount: pay.Amount, Currency: pay.Currency, OrderID: r.OrderID, User: r.User}
	return e.ask(ctx, func(ctx context.Context) (*flashsale.ProviderPayment, error) { return e.payments.Create(ctx, in) })
}

func (e *Engine) query(ctx context.Context, intentKey string) (*flashsale.ProviderPayment, error) {
	return e.ask(ctx, func(ctx context.Context) (*flashsale.ProviderPayment, error) { return e.payments.Query(ctx, intentKey) })
}

// void asks that a payment be not captured any more. An intent that the provider does not know is made and voided, since the call
// that makes it may still be on its way.
func (e *Engine) void(ctx context.Context, pay *flashsale.Payment, r *flashsale.Reservation) (*flashsale.ProviderPayment, error) {
	once := func(ctx context.Context) (*flashsale.ProviderPayment, error) {
		return e.payments.Void(ctx, pay.IntentKey)
	}
	p, err := e.ask(ctx, once)
	if flashsale.CodeOf(err) != flashsale.CodeUnknownPayment {
		return p, err
	}
	if _, err := e.create(ctx, pay, r); err != nil {
		return nil, err
	}
	return e.ask(ctx, once)
}

// outcome takes what the provider has said, and does at once what follows from it. What fails of that, the poller does.
func (e *Engine) outcome(ctx context.Context, eventID string, p *flashsale.ProviderPayment) error {
	out, err := e.orders.Outcome(ctx, eventID, p)
	if err != nil {
		return err
	}
	e.followStock(ctx, out, "")
	if out.Rival {
		// Whoever is at the provider's page with the other attempt must not pay once more.
		if _, err := e.endPayment(ctx, &out.Reservation); err != nil {
			e.logLater(ctx, &out.Payment, err)
		}
	}
	if _, err := e.carryOn(ctx, &out.Payment, &out.Reservation); err != nil {
		e.logLater(ctx, &out.Payment, err)
	}
	return nil
}

// carryOn does what a payment still needs by what SQL says of it: T8, or its refund. It reports whether anything has moved.
func (e *Engine) carryOn(ctx context.Context, pay *flashsale.Payment, r *flashsale.Reservation) (bool, error) {
	switch {
	case pay.State == flashsale.PaymentCaptured && pay.AppliedTo == "":
		return e.acquireAgain(ctx, pay, r)
	case pay.State == flashsale.PaymentRefunding:
		return e.refund(ctx, pay, r)
	}
	return false, nil
}

// followStock lets the Stock follow what a payment has moved, and tells of it. The transition is known by where it led, unless it is
// a part of another one.
func (e *Engine) followStock(ctx context.Context, out *flashsale.PaymentOutcome, transition string) {
	for i := range out.Decided {
		d := &out.Decided[i]
		name := transition
		if name == "" {
			name = paidTransition(d.State)
		}
		e.moved(out.Key, d, name)
	}
	e.deliverNow(ctx, out.Key, out.Decided)
}

func paidTransition(to flashsale.State) string {
	switch to {
	case flashsale.Reserved:
		return "T3b"
	case flashsale.Expired:
		return "T7"
	}
	return "T4"
}

// logLater notes what the poller has to do again.
func (e *Engine) logLater(ctx context.Context, pay *flashsale.Payment, err error) {
	e.log.LogAttrs(ctx, slog.LevelDebug, "a payment has to wait; the poller goes on with it",
		slog.String("intent", pay.IntentKey), slog.String("state", string(pay.State)), slog.Any("error", err))
}

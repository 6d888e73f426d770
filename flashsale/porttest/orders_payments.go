package porttest

import (
	"context"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// BeginPayment asks the gate before and after.
func (g *Orders) BeginPayment(ctx context.Context, rid string, user string) (r0 *flashsale.Payment, r1 flashsale.Decided, err error) {
	err = g.gate.pass(ctx, "orders.BeginPayment", func() (err error) {
		r0, r1, err = g.inner.BeginPayment(ctx, rid, user)
		return err
	})
	return r0, r1, err
}

// Outcome asks the gate before and after.
func (g *Orders) Outcome(ctx context.Context, eventID string, p *flashsale.ProviderPayment) (r0 *flashsale.PaymentOutcome, err error) {
	err = g.gate.pass(ctx, "orders.Outcome", func() (err error) {
		r0, err = g.inner.Outcome(ctx, eventID, p)
		return err
	})
	return r0, err
}

// SeenEvent asks the gate before and after.
func (g *Orders) SeenEvent(ctx context.Context, eventID string) (r0 bool, err error) {
	err = g.gate.pass(ctx, "orders.SeenEvent", func() (err error) {
		r0, err = g.inner.SeenEvent(ctx, eventID)
		return err
	})
	return r0, err
}

// PruneEvents asks the gate before and after.
func (g *Orders) PruneEvents(ctx context.Context, age time.Duration, limit int) (r0 int64, err error) {
	err = g.gate.pass(ctx, "orders.PruneEvents", func() (err error) {
		r0, err = g.inner.PruneEvents(ctx, age, limit)
		return err
	})
	return r0, err
}

// ApplyCapture asks the gate before and after.
func (g *Orders) ApplyCapture(ctx context.Context, intentKey string) (r0 *flashsale.PaymentOutcome, err error) {
	err = g.gate.pass(ctx, "orders.ApplyCapture", func() (err error) {
		r0, err = g.inner.ApplyCapture(ctx, intentKey)
		return err
	})
	return r0, err
}

// RefuseCapture asks the gate before and after.
func (g *Orders) RefuseCapture(ctx context.Context, intentKey string, reason string) (r0 *flashsale.PaymentOutcome, err error) {
	err = g.gate.pass(ctx, "orders.RefuseCapture", func() (err error) {
		r0, err = g.inner.RefuseCapture(ctx, intentKey, reason)
		return err
	})
	return r0, err
}

// Refunded asks the gate before and after.
func (g *Orders) Refunded(ctx context.Context, intentKey string) error {
	return g.gate.pass(ctx, "orders.Refunded", func() error { return g.inner.Refunded(ctx, intentKey) })
}

// Payment asks the gate before and after.
func (g *Orders) Payment(ctx context.Context, intentKey string) (r0 *flashsale.Payment, err error) {
	err = g.gate.pass(ctx, "orders.Payment", func() (err error) {
		r0, err = g.inner.Payment(ctx, intentKey)
		return err
	})
	return r0, err
}

// PaymentsOf asks the gate before and after.
func (g *Orders) PaymentsOf(ctx context.Context, rid string) (r0 []flashsale.Payment, err error) {
	err = g.gate.pass(ctx, "orders.PaymentsOf", func() (err error) {
		r0, err = g.inner.PaymentsOf(ctx, rid)
		return err
	})
	return r0, err
}

// OpenPayments asks the gate before and after.
func (g *Orders) OpenPayments(ctx context.Context, state flashsale.PaymentState, age time.Duration, cursor string, limit int) (r0 []flashsale.Payment, r1 string, err error) {
	err = g.gate.pass(ctx, "orders.OpenPayments", func() (err error) {
		r0, r1, err = g.inner.OpenPayments(ctx, state, age, cursor, limit)
		return err
	})
	return r0, r1, err
}

// PaymentsSince asks the gate before and after.
func (g *Orders) PaymentsSince(ctx context.Context, since time.Time, cursor string, limit int) (r0 []flashsale.Payment, r1 string, err error) {
	err = g.gate.pass(ctx, "orders.PaymentsSince", func() (err error) {
		r0, r1, err = g.inner.PaymentsSince(ctx, since, cursor, limit)
		return err
	})
	return r0, r1, err
}

// PaidSince asks the gate before and after.
func (g *Orders) PaidSince(ctx context.Context, since time.Time, cursor string, limit int) (r0 []flashsale.Paid, r1 string, err error) {
	err = g.gate.pass(ctx, "orders.PaidSince", func() (err error) {
		r0, r1, err = g.inner.PaidSince(ctx, since, cursor, limit)
		return err
	})
	return r0, r1, err
}

// MatchSince asks the gate before and after.
func (g *Orders) MatchSince(ctx context.Context) (r0 time.Time, err error) {
	err = g.gate.pass(ctx, "orders.MatchSince", func() (err error) {
		r0, err = g.inner.MatchSince(ctx)
		return err
	})
	return r0, err
}

// Matched asks the gate before and after.
func (g *Orders) Matched(ctx context.Context, was, from time.Time) (r0 bool, err error) {
	err = g.gate.pass(ctx, "orders.Matched", func() (err error) {
		r0, err = g.inner.Matched(ctx, was, from)
		return err
	})
	return r0, err
}

// MatchAgain asks the gate before and after.
func (g *Orders) MatchAgain(ctx context.Context, since time.Time) error {
	return g.gate.pass(ctx, "orders.MatchAgain", func() error { return g.inner.MatchAgain(ctx, since) })
}

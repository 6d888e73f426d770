package porttest

import (
	"context"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// Payments is a provider behind a gate.
type Payments struct {
	inner flashsale.Payments
	gate  *Gate
}

// NewPayments puts a provider behind a gate.
func NewPayments(inner flashsale.Payments, gate *Gate) *Payments {
	return &Payments{inner: inner, gate: gate}
}

// Relay is a broker behind a gate.
type Relay struct {
	inner flashsale.Relay
	gate  *Gate
}

// NewRelay puts a broker behind a gate.
func NewRelay(inner flashsale.Relay, gate *Gate) *Relay { return &Relay{inner: inner, gate: gate} }

// Create asks the gate before and after.
func (g *Payments) Create(ctx context.Context, in *flashsale.Intent) (r0 *flashsale.ProviderPayment, err error) {
	err = g.gate.pass(ctx, "payments.Create", func() (err error) {
		r0, err = g.inner.Create(ctx, in)
		return err
	})
	return r0, err
}

// Query asks the gate before and after.
func (g *Payments) Query(ctx context.Context, intentKey string) (r0 *flashsale.ProviderPayment, err error) {
	err = g.gate.pass(ctx, "payments.Query", func() (err error) {
		r0, err = g.inner.Query(ctx, intentKey)
		return err
	})
	return r0, err
}

// Void asks the gate before and after.
func (g *Payments) Void(ctx context.Context, intentKey string) (r0 *flashsale.ProviderPayment, err error) {
	err = g.gate.pass(ctx, "payments.Void", func() (err error) {
		r0, err = g.inner.Void(ctx, intentKey)
		return err
	})
	return r0, err
}

// Refund asks the gate before and after.
func (g *Payments) Refund(ctx context.Context, intentKey string) (r0 *flashsale.ProviderPayment, err error) {
	err = g.gate.pass(ctx, "payments.Refund", func() (err error) {
		r0, err = g.inner.Refund(ctx, intentKey)
		return err
	})
	return r0, err
}

// Webhook passes, since it makes no call.
func (g *Payments) Webhook(header map[string][]string, body []byte) (*flashsale.ProviderEvent, error) {
	return g.inner.Webhook(header, body)
}

// List asks the gate before and after.
func (g *Payments) List(ctx context.Context, since time.Time, cursor string, limit int) (r0 []flashsale.ProviderPayment, r1 string, err error) {
	err = g.gate.pass(ctx, "payments.List", func() (err error) {
		r0, r1, err = g.inner.List(ctx, since, cursor, limit)
		return err
	})
	return r0, r1, err
}

// Publish asks the gate before and after.
func (g *Relay) Publish(ctx context.Context, events []flashsale.Event) error {
	return g.gate.pass(ctx, "relay.Publish", func() error { return g.inner.Publish(ctx, events) })
}

// Close closes what is behind the gate.
func (g *Relay) Close() error { return g.inner.Close() }

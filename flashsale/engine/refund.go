package engine

import (
	"context"
	"log/slog"

	"github.com/headgate-io/headgate/flashsale"
)

// acquireAgain is T8, as far as it goes now: a payment was captured for a reservation that has ended, so the units are asked for again
// under a rid of the intent's own. Whoever repeats it finds how far it has come.
func (e *Engine) acquireAgain(ctx context.Context, pay *flashsale.Payment, r *flashsale.Reservation) (bool, error) {
	rid := flashsale.DerivedRID(pay.IntentKey)
	_, err := e.orders.Reservation(ctx, rid)
	switch {
	case err == nil:
		return e.applyCapture(ctx, pay)
	case flashsale.CodeOf(err) != flashsale.CodeNotFound:
		return false, err
	}
	ask := flashsale.Ask{
		RID: rid, User: r.User, Quantity: r.Quantity, Body: flashsale.BodyHash(r.Key, r.User, r.Quantity), Origin: pay.IntentKey,
	}
	a, err := e.take(ctx, r.Key, &ask)
	switch {
	case err != nil:
		return false, err
	case a.Accepted:
		return true, nil // SQL decides it like any other, and the poller goes on
	case a.Known && a.Entry.State == flashsale.Pending, a.Code == flashsale.CodeBusy:
		return false, nil
	case a.Known:
		return e.applyCapture(ctx, pay) // SQL has decided meanwhile
	}
	return e.refuseCapture(ctx, pay, string(a.Code))
}

// applyCapture pays for the reservation that was made again, or refunds if it was not to be had.
func (e *Engine) applyCapture(ctx context.Context, pay *flashsale.Payment) (bool, error) {
	out, err := e.orders.ApplyCapture(ctx, pay.IntentKey)
	if err != nil {
		return false, err
	}
	return true, e.acquired(ctx, out)
}

// refuseCapture gives up T8: there is no unit, and the money goes back; unless somebody else has had a unit for it meanwhile.
func (e *Engine) refuseCapture(ctx context.Context, pay *flashsale.Payment, reason string) (bool, error) {
	out, err := e.orders.RefuseCapture(ctx, pay.IntentKey, reason)
	if flashsale.CodeOf(err) == flashsale.CodeInvalidState {
		return e.applyCapture(ctx, pay)
	}
	if err != nil {
		return false, err
	}
	return true, e.acquired(ctx, out)
}

// acquired follows the end of T8.
func (e *Engine) acquired(ctx context.Context, out *flashsale.PaymentOutcome) error {
	e.followStock(ctx, out, "T8")
	if out.Payment.State != flashsale.PaymentRefunding {
		return nil
	}
	_, err := e.refund(ctx, &out.Payment, &out.Reservation)
	return err
}

// refund gives back what is owed. SQL has said so before, so that it is repeated until it is done; the provider does it once.
func (e *Engine) refund(ctx context.Context, pay *flashsale.Payment, r *flashsale.Reservation) (bool, error) {
	p, err := e.ask(ctx, func(ctx context.Context) (*flashsale.ProviderPayment, error) {
		return e.payments.Refund(ctx, pay.IntentKey)
	})
	if err != nil {
		return false, err
	}
	if p.Status != flashsale.PayRefunded {
		return false, nil // it is under way
	}
	if err := e.orders.Refunded(ctx, pay.IntentKey); err != nil {
		return false, err
	}
	e.observer.Moved(r.Key.String(), "T9", pay.Reason, r.Quantity)
	e.log.LogAttrs(ctx, slog.LevelInfo, "a payment was refunded", slog.String("intent", pay.IntentKey), slog.String("reason", pay.Reason))
	return true, nil
}

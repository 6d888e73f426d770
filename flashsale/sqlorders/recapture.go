package sqlorders

import (
	"context"

	"github.com/headgate-io/headgate/flashsale"
)

// ApplyCapture is T4 of T8: a captured payment, whose reservation had ended, pays for the one that was made for it. If another attempt
// to pay for the reservation that had ended was faster, that one is cancelled, and the payment is to be refunded.
func (o *Orders) ApplyCapture(ctx context.Context, intentKey string) (*flashsale.PaymentOutcome, error) {
	return o.pay(ctx, "ApplyCapture", intentKey, func(t *tx, out *flashsale.PaymentOutcome) error {
		p := &out.Payment
		if waits, err := waitsForUnit(p); !waits {
			return err
		}
		r, err := t.findReservation(flashsale.DerivedRID(intentKey))
		switch {
		case err != nil:
			return err
		case r == nil:
			return errorf(flashsale.CodeInvalidState, "payment %s has no reservation made for it yet", intentKey)
		case r.State.Terminal():
			return t.setPayment(p, flashsale.PaymentRefunding, "", endReason(r))
		case r.Origin != intentKey || r.Key != out.Key:
			return errorf(flashsale.CodeConflict, "reservation %s was not made for payment %s", r.RID, intentKey)
		case r.Amount != p.Amount:
			return t.setPayment(p, flashsale.PaymentRefunding, "", reasonAmount)
		case r.Currency != p.Currency:
			return t.setPayment(p, flashsale.PaymentRefunding, "", reasonCurrency)
		}
		twice, err := t.paidByAnother(p)
		if err != nil {
			return err
		}
		c, state, appliedTo := become(r, flashsale.Confirmed, ""), flashsale.PaymentCaptured, r.RID
		if twice {
			c, state, appliedTo = become(r, flashsale.Cancelled, reasonPaidTwice), flashsale.PaymentRefunding, ""
		}
		d, err := t.move(r, c)
		if err != nil {
			return err
		}
		out.Decided = append(out.Decided, d)
		return t.setPayment(p, state, appliedTo, c.reason)
	})
}

// RefuseCapture ends T8 without a unit. If one was reserved meanwhile the error's code is CodeInvalidState: it is to be applied.
func (o *Orders) RefuseCapture(ctx context.Context, intentKey, reason string) (*flashsale.PaymentOutcome, error) {
	if reason == "" {
		reason = reasonNoUnit
	}
	if err := flashsale.CheckReason(reason); err != nil {
		return nil, err
	}
	return o.pay(ctx, "RefuseCapture", intentKey, func(t *tx, out *flashsale.PaymentOutcome) error {
		if waits, err := waitsForUnit(&out.Payment); !waits {
			return err
		}
		r, err := t.findReservation(flashsale.DerivedRID(intentKey))
		if err != nil {
			return err
		}
		if r != nil && !r.State.Terminal() {
			return errorf(flashsale.CodeInvalidState, "payment %s has reservation %s, made for it meanwhile: apply it", intentKey, r.RID)
		}
		if err := t.refuseDerived(out, text(reason)); err != nil {
			return err
		}
		return t.setPayment(&out.Payment, flashsale.PaymentRefunding, "", text(reason))
	})
}

// waitsForUnit reports whether a payment waits for T8. One that has had its T8 is left as it is.
func waitsForUnit(p *flashsale.Payment) (bool, error) {
	switch p.State {
	case flashsale.PaymentCaptured:
		return p.AppliedTo == "", nil
	case flashsale.PaymentRefunding, flashsale.PaymentRefunded:
		return false, nil
	}
	return false, errorf(flashsale.CodeInvalidState, "payment %s is %s: nothing was captured", p.IntentKey, p.State)
}

// refuseDerived writes a tombstone for the rid that T8 would reserve under, if it has no row, so that a job of it that is still on its
// way is rejected.
func (t *tx) refuseDerived(out *flashsale.PaymentOutcome, reason string) error {
	rid := flashsale.DerivedRID(out.Payment.IntentKey)
	r, err := t.findReservation(rid)
	if err != nil || r != nil {
		return err
	}
	was, at := &out.Reservation, timeAt(t.now)
	tomb := flashsale.Reservation{RID: rid, Key: out.Key, User: was.User, Quantity: was.Quantity, State: flashsale.Rejected, Version: 1, Reason: reason,
		Currency: was.Currency, Origin: out.Payment.IntentKey, CreatedAt: at, ChangedAt: at, EndedAt: at}
	if err := t.insert(reservationTable(), "", [][]any{reservationValues(&tomb, 0, 0)}); err != nil {
		return err
	}
	d := standing(&tomb)
	if err := t.tell([]flashsale.Reservation{tomb}, func(_ string, id int64) { d.Outbox = id }); err != nil {
		return err
	}
	out.Decided = append(out.Decided, d)
	return nil
}

// endReason is why a reservation that was made for a capture cannot be paid by it.
func endReason(r *flashsale.Reservation) string {
	if r.Reason == "" {
		return reasonNoUnit
	}
	return r.Reason
}

// Refunded is the end of a refund.
func (o *Orders) Refunded(ctx context.Context, intentKey string) error {
	_, err := o.pay(ctx, "Refunded", intentKey, func(t *tx, out *flashsale.PaymentOutcome) error {
		p := &out.Payment
		switch p.State {
		case flashsale.PaymentRefunded:
			return nil
		case flashsale.PaymentRefunding:
			return t.setPayment(p, flashsale.PaymentRefunded, p.AppliedTo, p.Reason)
		}
		return errorf(flashsale.CodeInvalidState, "payment %s is %s: no refund of it is owed", p.IntentKey, p.State)
	})
	return err
}

package sqlorders

import (
	"context"

	"github.com/headgate-io/headgate/flashsale"
)

// isEvent reports whether a provider's event can have this id.
func isEvent(eventID string) bool {
	return eventID != "" && len(eventID) <= maxEvent && text(eventID) == eventID
}

const maxEvent = 255

// Outcome takes what the provider has decided of a payment, by the tables at settle.
func (o *Orders) Outcome(ctx context.Context, eventID string, said *flashsale.ProviderPayment) (*flashsale.PaymentOutcome, error) {
	if eventID != "" && !isEvent(eventID) {
		return nil, invalidf("the id of an event of the provider must be a text of 1 to %d bytes", maxEvent)
	}
	switch said.Status {
	case flashsale.PayOpen, flashsale.PayCaptured, flashsale.PayFailed, flashsale.PayVoid, flashsale.PayRefunded:
	default:
		return nil, invalidf("payment %.80q: the status %.32q is none of a provider's", said.IntentKey, string(said.Status))
	}
	return o.pay(ctx, "Outcome", said.IntentKey, func(t *tx, out *flashsale.PaymentOutcome) error {
		if eventID != "" {
			fresh, err := t.takeEvent(eventID, said)
			if err != nil || !fresh {
				return err
			}
		}
		r := out.Reservation
		f := facts{payment: &out.Payment, reservation: &r, said: said, late: micros(r.Until) <= t.now}
		if said.Status == flashsale.PayCaptured && r.State.Terminal() {
			var err error
			if f.twice, err = t.paidByAnother(&out.Payment); err != nil {
				return err
			}
		}
		s := settle(&f)
		out.Rival = s.reservation == flashsale.Confirmed && r.State == flashsale.Confirming && f.payment.State != flashsale.PaymentLive
		return t.settle(out, s)
	})
}

// pay runs a transition of a payment, with the sku of its reservation locked and both read.
func (o *Orders) pay(ctx context.Context, method, intentKey string, f func(t *tx, out *flashsale.PaymentOutcome) error) (*flashsale.PaymentOutcome, error) {
	var out *flashsale.PaymentOutcome
	err := o.write(ctx, method, func(t *tx) error {
		p, err := t.payment(intentKey)
		if err == nil && p == nil {
			err = noPayment(flashsale.CodeUnknownPayment, intentKey)
		}
		if err != nil {
			return err
		}
		_, r, err := t.lockReservation(p.RID)
		if err != nil {
			return err
		}
		if p, err = t.payment(intentKey); err != nil { // again, now that nobody else can change it
			return err
		}
		out = &flashsale.PaymentOutcome{Payment: *p, Key: r.Key, Reservation: *r}
		return f(t, out)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// takeEvent notes an event of the provider, and reports whether it is the first time.
func (t *tx) takeEvent(eventID string, said *flashsale.ProviderPayment) (bool, error) {
	seen, err := t.one("SELECT 1 FROM payment_event WHERE event_id = ?", []any{eventID}, new(int64))
	if err != nil || seen {
		return false, err
	}
	// Of two at the same time one meets the other's key, is repeated, and sees it.
	_, err = t.exec("INSERT INTO payment_event (event_id, intent_key, status, at) VALUES (?, ?, ?, ?)", eventID, said.IntentKey, string(said.Status), t.now)
	return err == nil, err
}

// settle writes what a payment and its reservation become.
func (t *tx) settle(out *flashsale.PaymentOutcome, s settled) error {
	p, r := &out.Payment, &out.Reservation
	if s.reservation != flashsale.None {
		reason := ""
		if s.reservation == flashsale.Expired {
			reason = flashsale.ReasonPaymentVoid
		}
		d, err := t.move(r, become(r, s.reservation, reason))
		if err != nil {
			return err
		}
		out.Decided = append(out.Decided, d)
	}
	if s.payment == "" {
		return nil
	}
	appliedTo := ""
	if s.reservation == flashsale.Confirmed {
		appliedTo = r.RID
	}
	if p.State == flashsale.PaymentCaptured && s.payment == flashsale.PaymentRefunded {
		if err := t.refuseDerived(out, s.reason); err != nil {
			return err
		}
	}
	return t.setPayment(p, s.payment, appliedTo, s.reason)
}

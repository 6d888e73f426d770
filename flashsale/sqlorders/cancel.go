package sqlorders

import (
	"context"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// Cancel is T5.
func (o *Orders) Cancel(ctx context.Context, rid, user, reason string) (flashsale.Decided, error) {
	if reason == "" {
		reason = flashsale.ReasonByOwner
		if user == "" {
			reason = flashsale.ReasonByOperator
		}
	}
	if err := flashsale.CheckReason(reason); err != nil {
		return flashsale.Decided{}, err
	}
	return o.transit(ctx, "Cancel", rid, func(_ *flashsale.SKUState, r *flashsale.Reservation, _ int64) (change, error) {
		switch {
		case user != "" && user != r.User:
			return change{}, noReservation(rid)
		case r.State == flashsale.Cancelled, r.State == flashsale.Reserved:
			return become(r, flashsale.Cancelled, text(reason)), nil
		case r.State == flashsale.Confirming:
			return change{}, invalidState(r, "be cancelled while its payment is under way")
		}
		return change{}, invalidState(r, "be cancelled")
	})
}

// Expire is T6.
func (o *Orders) Expire(ctx context.Context, rid string) (flashsale.Decided, error) {
	return o.transit(ctx, "Expire", rid, func(s *flashsale.SKUState, r *flashsale.Reservation, now int64) (change, error) {
		end := r.Until.Add(s.Grace)
		switch {
		case r.State == flashsale.Reserved && micros(end) > now:
			return change{}, errorf(flashsale.CodeInvalidState, "reservation %s is kept until %s", rid, end.Format(time.RFC3339))
		case r.State == flashsale.Reserved, r.State == flashsale.Expired:
			return become(r, flashsale.Expired, flashsale.ReasonUnpaid), nil
		}
		return change{}, invalidState(r, "expire")
	})
}

// transition chooses what a reservation becomes, at a time in microseconds.
type transition func(s *flashsale.SKUState, r *flashsale.Reservation, now int64) (change, error)

// transit makes the transition of one reservation that choose chooses; it has been made already if the reservation is in that state.
func (o *Orders) transit(ctx context.Context, method, rid string, choose transition) (d flashsale.Decided, err error) {
	err = o.write(ctx, method, func(t *tx) error {
		s, r, err := t.lockReservation(rid)
		if err != nil {
			return err
		}
		c, err := choose(s, r, t.now)
		if err != nil {
			return err
		}
		if c.to == r.State {
			d = replayed(r)
			return nil
		}
		d, err = t.move(r, c)
		return err
	})
	if err != nil {
		return flashsale.Decided{}, err
	}
	return d, nil
}

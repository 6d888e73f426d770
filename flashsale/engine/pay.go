package engine

import (
	"context"
	"log/slog"

	"github.com/headgate-io/headgate/flashsale"
)

// payAttempts bounds how often a call begins anew because something has happened meanwhile.
const payAttempts = 3

// PayAnswer is what a shopper who wants to pay is told.
type PayAnswer struct {
	// Result is where the reservation stands: confirming, or confirmed if it turned out to be paid already.
	Result
	IntentKey string
	// URL is where to pay, at the provider.
	URL string
}

// Pay is T3: it begins the payment of a reservation, or goes on with the one that is under way. With CodeUnavailable the payment may
// have begun: call it again. Other codes: CodeNotFound (there is none, or it is another's), CodeInvalidState (paid, or ended),
// CodePastDeadline.
func (e *Engine) Pay(ctx context.Context, rid, user string) (PayAnswer, error) {
	if err := e.payable(); err != nil {
		return PayAnswer{}, err
	}
	if err := checkOwner(rid, user); err != nil {
		return PayAnswer{}, err
	}
	for range payAttempts {
		answer, again, err := e.payOnce(ctx, rid, user)
		if !again {
			return answer, err
		}
	}
	return PayAnswer{}, errorf(flashsale.CodeBusy, "the payments of reservation %s end as fast as they are begun; ask again", rid)
}

// payOnce reports with again that the payment under way has failed or was void, so that another one can begin.
func (e *Engine) payOnce(ctx context.Context, rid, user string) (answer PayAnswer, again bool, err error) {
	pay, decided, err := e.orders.BeginPayment(ctx, rid, user)
	if err != nil {
		return PayAnswer{}, false, err
	}
	row, err := e.orders.Reservation(ctx, rid)
	if err != nil {
		return PayAnswer{}, false, err
	}
	if !decided.Replayed {
		e.moved(row.Key, &decided, "T3")
		e.deliverNow(ctx, row.Key, []flashsale.Decided{decided})
	}
	answer = PayAnswer{Result: e.resultOfRow(row), IntentKey: pay.IntentKey}
	p, err := e.create(ctx, pay, row)
	if err != nil {
		return answer, false, err
	}
	if p.Status == flashsale.PayOpen {
		answer.URL = p.URL
		return answer, false, nil
	}
	if err := e.outcome(ctx, "", p); err != nil {
		return answer, false, err
	}
	if row, err = e.orders.Reservation(ctx, rid); err != nil {
		return answer, false, err
	}
	answer.Result = e.resultOfRow(row)
	return answer, row.State == flashsale.Reserved, nil
}

// Cancel is T5: a shopper gives a reservation back. If its payment is under way, that is void at the provider first. Codes:
// CodeNotFound, CodeInvalidState (it is paid, or has ended otherwise), CodeBusy (the provider has not decided yet whether the payment
// is void), CodeUnavailable: with these two, ask again.
func (e *Engine) Cancel(ctx context.Context, rid, user string) (Result, error) {
	if err := checkOwner(rid, user); err != nil {
		return Result{}, err
	}
	return e.cancel(ctx, rid, user, flashsale.ReasonByOwner)
}

// CancelFor is Cancel by an operator, who says why. By names them in the log; the reason stays with the reservation, where its owner
// sees it.
func (e *Engine) CancelFor(ctx context.Context, rid, by, reason string) (Result, error) {
	if err := flashsale.CheckID("the id of a reservation", rid); err != nil {
		return Result{}, err
	}
	if err := flashsale.CheckReason(reason); err != nil {
		return Result{}, err
	}
	if by == "" || len(by) > flashsale.MaxUser {
		return Result{}, errorf(flashsale.CodeInvalidArgument, "who cancels is missing, or longer than %d bytes", flashsale.MaxUser)
	}
	result, err := e.cancel(ctx, rid, "", reason)
	if err == nil {
		e.log.LogAttrs(ctx, slog.LevelInfo, "an operator has cancelled a reservation", slog.String("rid", rid), slog.String("by", by), slog.String("reason", reason))
	}
	return result, err
}

func (e *Engine) cancel(ctx context.Context, rid, user, reason string) (Result, error) {
	for range payAttempts {
		row, err := e.orders.Reservation(ctx, rid)
		if err != nil {
			return Result{}, err
		}
		if user != "" && row.User != user {
			return Result{}, errorf(flashsale.CodeNotFound, "there is no reservation %q", rid)
		}
		if row.State == flashsale.Confirming {
			if err := e.voidToCancel(ctx, row); err != nil {
				return e.resultOfRow(row), err
			}
			continue
		}
		decided, err := e.orders.Cancel(ctx, rid, user, reason)
		if flashsale.CodeOf(err) == flashsale.CodeInvalidState && !row.State.Terminal() {
			continue // a payment has begun meanwhile
		}
		if err != nil {
			return e.resultOfRow(row), err
		}
		if !decided.Replayed {
			e.moved(row.Key, &decided, "T5")
			e.deliverNow(ctx, row.Key, []flashsale.Decided{decided})
		}
		result := e.resultOfRow(row)
		result.State, result.Version, result.Reason = decided.State, decided.Version, decided.Reason
		return result, nil
	}
	return Result{}, errorf(flashsale.CodeBusy, "reservation %s is being paid at the same time; ask again", rid)
}

// voidToCancel ends the payment that is under way, so that there is none when the reservation is cancelled.
func (e *Engine) voidToCancel(ctx context.Context, row *flashsale.Reservation) error {
	if err := e.payable(); err != nil {
		return err
	}
	status, err := e.endPayment(ctx, row)
	if err == nil && status == flashsale.PayOpen {
		err = errorf(flashsale.CodeBusy, "the payment provider has not decided yet whether the payment of %s is void; ask again", row.RID)
	}
	return err
}

// endPayment voids the live payment of a reservation, if it has one, and takes what the provider says: a payment may have been faster.
func (e *Engine) endPayment(ctx context.Context, row *flashsale.Reservation) (flashsale.PayStatus, error) {
	all, err := e.orders.PaymentsOf(ctx, row.RID)
	if err != nil {
		return "", err
	}
	for i := range all {
		if all[i].State == flashsale.PaymentLive {
			return e.endLive(ctx, &all[i], row)
		}
	}
	return "", nil // it has just ended
}

func (e *Engine) endLive(ctx context.Context, pay *flashsale.Payment, row *flashsale.Reservation) (flashsale.PayStatus, error) {
	p, err := e.void(ctx, pay, row)
	if err != nil {
		return "", err
	}
	if p.Status == flashsale.PayOpen {
		return p.Status, nil
	}
	return p.Status, e.outcome(ctx, "", p)
}

// settleOverdue is T7: the time of a reservation is over while its payment is under way. The payment is void at the provider first, and
// whatever the provider says then, is so; as long as it says nothing, the units are held.
func (e *Engine) settleOverdue(ctx context.Context, row *flashsale.Reservation) error {
	if err := e.payable(); err != nil {
		return err
	}
	status, err := e.endPayment(ctx, row)
	switch {
	case isSilence(err) && ctx.Err() == nil:
		e.paying.note(err, true)
	case status == flashsale.PayOpen:
		e.log.LogAttrs(ctx, slog.LevelInfo, "a reservation is past its time, and the provider has not decided yet whether its payment is void: it is held", slog.String("rid", row.RID))
	}
	return err
}

func checkOwner(rid, user string) error {
	if err := flashsale.CheckID("the id of a reservation", rid); err != nil {
		return err
	}
	return flashsale.CheckUser(user)
}

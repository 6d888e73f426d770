package engine

import (
	"context"
	"log/slog"

	"github.com/headgate-io/headgate/flashsale"
)

const (
	maxEventID = 255
	maxBody    = 64 << 10
)

// Webhook takes a message of the provider: nil tells the provider that it need not come again. Nothing has changed if there is an error:
//
//   - CodeInvalidSignature: it is not the provider's, was changed, or is too old;
//   - CodeInvalidArgument: it is, and says nothing that can be understood;
//   - CodeUnknownPayment: there is no such payment here;
//   - CodeAmountMismatch, CodeCurrencyMismatch: it says another amount or currency than was asked for, and the provider, asked again,
//     does not;
//   - CodeUnavailable: let it come again.
//
// A message that has been taken already, and one that comes too late, are fine and change nothing.
func (e *Engine) Webhook(ctx context.Context, header map[string][]string, body []byte) error {
	if err := e.payable(); err != nil {
		return err
	}
	if len(body) > maxBody {
		return errorf(flashsale.CodeInvalidArgument, "a webhook of %d bytes; %d are allowed", len(body), maxBody)
	}
	event, err := e.payments.Webhook(header, body)
	if err != nil {
		return err
	}
	if err := checkEvent(event); err != nil {
		return err
	}
	if seen, err := e.orders.SeenEvent(ctx, event.ID); err != nil || seen {
		return err
	}
	pay, err := e.orders.Payment(ctx, event.Payment.IntentKey)
	if err != nil {
		return unknownPayment(event.Payment.IntentKey, err)
	}
	if event.Payment.Status == flashsale.PayOpen {
		return nil // it exists, which is known
	}
	said := &event.Payment
	if differs(said, pay) != "" {
		if said, err = e.askAgain(ctx, event, pay); err != nil {
			return err
		}
	}
	return e.outcome(ctx, event.ID, said)
}

// askAgain asks the provider whether an amount or currency that nobody asked for is true. If it is, that is what has to be taken.
func (e *Engine) askAgain(ctx context.Context, event *flashsale.ProviderEvent, pay *flashsale.Payment) (*flashsale.ProviderPayment, error) {
	e.log.LogAttrs(ctx, slog.LevelWarn, "a webhook tells of another amount or currency; the provider is asked",
		slog.String("intent", pay.IntentKey), slog.String("event", event.ID), slog.Int64("amount", event.Payment.Amount), slog.String("currency", event.Payment.Currency))
	p, err := e.query(ctx, pay.IntentKey)
	if err != nil {
		return nil, err
	}
	if differs(p, pay) != "" {
		return p, nil
	}
	return nil, errorf(differs(&event.Payment, pay), "the webhook %s tells of %d %q for payment %s, and the provider, asked again, of %d %s: it is not taken",
		event.ID, event.Payment.Amount, event.Payment.Currency, pay.IntentKey, pay.Amount, pay.Currency)
}

// differs says what of a payment at the provider is not as it was asked for, "" if nothing is.
func differs(p *flashsale.ProviderPayment, pay *flashsale.Payment) flashsale.Code {
	switch {
	case p.Amount != pay.Amount:
		return flashsale.CodeAmountMismatch
	case p.Currency != pay.Currency:
		return flashsale.CodeCurrencyMismatch
	}
	return ""
}

func checkEvent(event *flashsale.ProviderEvent) error {
	if event == nil || event.ID == "" || len(event.ID) > maxEventID {
		return errorf(flashsale.CodeInvalidArgument, "a webhook without an id of 1 to %d bytes", maxEventID)
	}
	if key := event.Payment.IntentKey; key == "" || len(key) > maxEventID {
		return errorf(flashsale.CodeInvalidArgument, "the webhook names no payment: the key must have 1 to %d bytes", maxEventID)
	}
	switch event.Payment.Status {
	case flashsale.PayOpen, flashsale.PayCaptured, flashsale.PayFailed, flashsale.PayVoid, flashsale.PayRefunded:
		return nil
	}
	return errorf(flashsale.CodeInvalidArgument, "the webhook tells of a status that is none of the provider's")
}

// unknownPayment is the error of a payment that there is none of here.
func unknownPayment(intentKey string, err error) error {
	if !isNoPayment(err) {
		return err
	}
	return errorf(flashsale.CodeUnknownPayment, "there is no payment %.100q here", intentKey)
}

func isNoPayment(err error) bool {
	code := flashsale.CodeOf(err)
	return code == flashsale.CodeUnknownPayment || code == flashsale.CodeNotFound
}

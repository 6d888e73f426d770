package sqlorders

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// maxAttempts bounds how often one reservation can be tried to be paid.
const maxAttempts = 100

const paymentColumns = "p.intent_key, p.rid, p.attempt, p.amount, p.currency, p.state, p.applied_to, p.reason, p.created_at, p.changed_at"

// paymentRow is what a row is scanned into.
type paymentRow struct {
	p                flashsale.Payment
	state            string
	appliedTo        *string
	created, changed int64
}

func (w *paymentRow) dest() []any {
	p := &w.p
	return []any{&p.IntentKey, &p.RID, &p.Attempt, &p.Amount, &p.Currency, &w.state, &w.appliedTo, &p.Reason, &w.created, &w.changed}
}

func (w *paymentRow) result() flashsale.Payment {
	p := w.p
	p.State, p.CreatedAt, p.ChangedAt = flashsale.PaymentState(w.state), timeAt(w.created), timeAt(w.changed)
	if w.appliedTo != nil {
		p.AppliedTo = *w.appliedTo
	}
	return p
}

// isIntentKey reports whether a key can be that of an intent: "rid:attempt".
func isIntentKey(key string) bool {
	rid, attempt, ok := strings.Cut(key, ":")
	if !ok || !isID(rid) {
		return false
	}
	n, err := strconv.ParseInt(attempt, 10, 64)
	return err == nil && flashsale.IntentKey(rid, n) == key
}

func noPayment(code flashsale.Code, intentKey string) error {
	return errorf(code, "there is no payment %.80q", intentKey)
}

// payment reads a row, nil if there is none.
func (t *tx) payment(intentKey string) (*flashsale.Payment, error) {
	if !isIntentKey(intentKey) {
		return nil, nil
	}
	var row paymentRow
	found, err := t.one("SELECT "+paymentColumns+" FROM payment p WHERE p.intent_key = ?", []any{intentKey}, row.dest()...)
	if err != nil || !found {
		return nil, err
	}
	p := row.result()
	return &p, nil
}

func (t *tx) queryPayments(query string, args ...any) (found []flashsale.Payment, err error) {
	err = t.query("SELECT "+paymentColumns+" FROM payment p WHERE "+query, args, func(scan func(...any) error) error {
		var row paymentRow
		err := scan(row.dest()...)
		found = append(found, row.result())
		return err
	})
	return found, err
}

// paidByAnother reports whether another attempt to pay for the same reservation has paid, for it or by T8.
func (t *tx) paidByAnother(p *flashsale.Payment) (bool, error) {
	return t.one("SELECT 1 FROM payment WHERE rid = ? AND intent_key <> ? AND applied_to IS NOT NULL", []any{p.RID, p.IntentKey}, new(int64))
}

// BeginPayment is T3.
func (o *Orders) BeginPayment(ctx context.Context, rid, user string) (p *flashsale.Payment, d flashsale.Decided, err error) {
	err = o.write(ctx, "BeginPayment", func(t *tx) error {
		s, r, err := t.lockReservation(rid)
		if err != nil {
			return err
		}
		if r.User != user {
			return noReservation(rid)
		}
		p, d, err = t.beginPayment(s, r)
		return err
	})
	if err != nil {
		return nil, flashsale.Decided{}, err
	}
	return p, d, nil
}

func (t *tx) beginPayment(s *flashsale.SKUState, r *flashsale.Reservation) (*flashsale.Payment, flashsale.Decided, error) {
	if r.State == flashsale.Confirming {
		live, err := t.queryPayments("p.rid = ? AND p.live = 1", r.RID)
		if err == nil && len(live) != 1 {
			err = errorf(flashsale.CodeInternal, "sqlorders: reservation %s is confirming without a payment", r.RID)
		}
		if err != nil {
			return nil, flashsale.Decided{}, err
		}
		return &live[0], replayed(r), nil
	}
	now := timeAt(t.now)
	switch {
	case r.State != flashsale.Reserved:
		return nil, flashsale.Decided{}, invalidState(r, "be paid")
	case r.Origin != "":
		return nil, flashsale.Decided{}, errorf(flashsale.CodeInvalidState, "reservation %s is being paid by payment %s already", r.RID, r.Origin)
	case !now.Before(r.Until):
		return nil, flashsale.Decided{}, errorf(flashsale.CodePastDeadline, "reservation %s could be paid until %s", r.RID, r.Until.Format(time.RFC3339))
	}
	p, err := t.newPayment(r)
	if err != nil {
		return nil, flashsale.Decided{}, err
	}
	c := change{to: flashsale.Confirming, until: r.Until, granted: true}
	if until := now.Add(s.PayTime); !r.PayGranted && until.After(r.Until) {
		c.until = until
	}
	d, err := t.move(r, c)
	return p, d, err
}

// newPayment inserts the next attempt to pay for a reservation.
func (t *tx) newPayment(r *flashsale.Reservation) (*flashsale.Payment, error) {
	var last int64
	if _, err := t.one("SELECT COALESCE(MAX(attempt), 0) FROM payment WHERE rid = ?", []any{r.RID}, &last); err != nil {
		return nil, err
	}
	if last >= maxAttempts {
		return nil, errorf(flashsale.CodeInvalidState, "reservation %s was tried to be paid %d times, and that is the most", r.RID, last)
	}
	now := timeAt(t.now)
	p := &flashsale.Payment{IntentKey: flashsale.IntentKey(r.RID, last+1), RID: r.RID, Attempt: last + 1, Amount: r.Amount, Currency: r.Currency,
		State: flashsale.PaymentLive, CreatedAt: now, ChangedAt: now}
	_, err := t.exec("INSERT INTO payment (intent_key, rid, attempt, amount, currency, state, live, reason, created_at, changed_at) VALUES (?, ?, ?, ?, ?, ?, 1, '', ?, ?)",
		p.IntentKey, p.RID, p.Attempt, p.Amount, p.Currency, string(p.State), t.now, t.now)
	return p, err
}

// setPayment brings a payment, whose reservation's sku is locked, to another state: a compare-and-set on the one that was read. p follows.
func (t *tx) setPayment(p *flashsale.Payment, state flashsale.PaymentState, appliedTo, reason string) error {
	was := p.State
	p.State, p.AppliedTo, p.Reason, p.ChangedAt = state, appliedTo, reason, timeAt(t.now)
	var applied, live any
	if appliedTo != "" {
		applied = appliedTo
	}
	if state == flashsale.PaymentLive {
		live = int64(1)
	}
	return t.exactlyOne("payment "+p.IntentKey+" has changed under its lock",
		"UPDATE payment SET state = ?, live = ?, applied_to = ?, reason = ?, changed_at = ? WHERE intent_key = ? AND state = ?",
		string(state), live, applied, reason, t.now, p.IntentKey, string(was))
}

// Payment returns a row, CodeNotFound if there is none.
func (o *Orders) Payment(ctx context.Context, intentKey string) (p *flashsale.Payment, err error) {
	err = o.read(ctx, "Payment", func(t *tx) (err error) {
		if p, err = t.payment(intentKey); err == nil && p == nil {
			err = noPayment(flashsale.CodeNotFound, intentKey)
		}
		return err
	})
	return p, err
}

// PaymentsOf returns all attempts to pay for a reservation, in their order.
func (o *Orders) PaymentsOf(ctx context.Context, rid string) (found []flashsale.Payment, err error) {
	if !isID(rid) {
		return nil, nil
	}
	err = o.read(ctx, "PaymentsOf", func(t *tx) (err error) {
		found, err = t.queryPayments("p.rid = ? ORDER BY p.attempt", rid)
		return err
	})
	return found, err
}

// SeenEvent reports whether Outcome has taken this event.
func (o *Orders) SeenEvent(ctx context.Context, eventID string) (seen bool, err error) {
	if !isEvent(eventID) {
		return false, nil
	}
	err = o.read(ctx, "SeenEvent", func(t *tx) (err error) {
		seen, err = t.one("SELECT 1 FROM payment_event WHERE event_id = ?", []any{eventID}, new(int64))
		return err
	})
	return seen, err
}

package simpay

import (
	"context"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

const (
	// adoptSince is how far back payments are taken up whatever the match has seen of them, adoptBefore how much further than where the
	// match goes on, which looks some minutes further back itself.
	adoptSince  = 48 * time.Hour
	adoptBefore = time.Hour
	adoptPage   = 500
)

// AdoptAll takes up, as Adopt does, what a book says of the payments that a provider before this one had: those of the last two days, those
// that the next match of the engine looks at, however long ago that was, and all to which something is owed.
func (p *Provider) AdoptAll(ctx context.Context, book flashsale.PaymentBook) error {
	since := p.cfg.Now().Add(-adoptSince)
	matched, err := book.MatchSince(ctx)
	if err != nil {
		return err
	}
	if matched = matched.Add(-adoptBefore); matched.Before(since) {
		since = matched
	}
	pages := []func(cursor string) ([]flashsale.Payment, string, error){
		func(cursor string) ([]flashsale.Payment, string, error) {
			return book.PaymentsSince(ctx, since, cursor, adoptPage)
		},
	}
	for _, state := range []flashsale.PaymentState{flashsale.PaymentLive, flashsale.PaymentCaptured, flashsale.PaymentRefunding} {
		pages = append(pages, func(cursor string) ([]flashsale.Payment, string, error) {
			return book.OpenPayments(ctx, state, 0, cursor, adoptPage)
		})
	}
	for _, page := range pages {
		for cursor, more := "", true; more; more = cursor != "" {
			payments, next, err := page(cursor)
			if err != nil {
				return err
			}
			for i := range payments {
				if err := p.adoptOne(&payments[i]); err != nil {
					return err
				}
			}
			cursor = next
		}
	}
	return nil
}

func (p *Provider) adoptOne(of *flashsale.Payment) error {
	status := flashsale.PayOpen
	switch of.State {
	case flashsale.PaymentCaptured, flashsale.PaymentRefunding:
		status = flashsale.PayCaptured
	case flashsale.PaymentVoid:
		status = flashsale.PayVoid
	case flashsale.PaymentFailed:
		status = flashsale.PayFailed
	case flashsale.PaymentRefunded:
		status = flashsale.PayRefunded
	}
	in := flashsale.Intent{Key: of.IntentKey, Amount: of.Amount, Currency: of.Currency, OrderID: flashsale.OrderID(of.RID)}
	return p.Adopt(in, status, of.ChangedAt)
}

// Adopt takes up a payment that a provider in a process that has ended had told of: as it stood at that time. It tells nobody, and
// leaves alone what is known already. CodeUnavailable if there is no room.
func (p *Provider) Adopt(in flashsale.Intent, status flashsale.PayStatus, at time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.payments[in.Key] != nil {
		return nil
	}
	if !p.makeRoom(p.cfg.Now()) {
		return p.full()
	}
	pay := &payment{intent: in, status: status, took: in.Amount, currency: in.Currency, createdAt: at, changeAt: at}
	if status == flashsale.PayCaptured || status == flashsale.PayRefunded {
		pay.captures = 1
	}
	if status == flashsale.PayRefunded {
		pay.refunds = 1
	}
	p.payments[in.Key] = pay
	p.changes.add(p.payments, pay)
	return nil
}

func (p *Provider) full() error {
	return errorf(flashsale.CodeUnavailable, "this provider keeps %d payments, and none of them is old enough to be forgotten", p.cfg.MaxPayments)
}

package simpay

import (
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

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

package simpay

import (
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// Pay is the shopper's part: the payment of an open intent succeeds (PayCaptured) or fails (PayFailed). A void that was asked for
// and is not decided stops nobody. CodeInvalidState if the intent is not open any more, CodeUnknownPayment if there is none.
func (p *Provider) Pay(intentKey string, outcome flashsale.PayStatus) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	pay, err := p.find(intentKey)
	switch {
	case err != nil:
		return err
	case outcome != flashsale.PayCaptured && outcome != flashsale.PayFailed:
		return errorf(flashsale.CodeInvalidArgument, "a shopper's payment ends as %q or %q", flashsale.PayCaptured, flashsale.PayFailed)
	case pay.status != flashsale.PayOpen:
		return errorf(flashsale.CodeInvalidState, "payment %s is %s and cannot be paid", intentKey, pay.status)
	}
	p.end(pay, outcome, p.cfg.Now())
	return nil
}

// Capture takes money whatever the intent says: another amount or currency, or of a payment that is void or has failed. It is what
// real providers should not do, and do. CodeInvalidState if there was a capture already.
func (p *Provider) Capture(intentKey string, amount int64, currency string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	pay, err := p.find(intentKey)
	if err != nil {
		return err
	}
	if pay.captures > 0 {
		return errorf(flashsale.CodeInvalidState, "payment %s was captured already", intentKey)
	}
	pay.took, pay.currency = amount, currency
	p.move(pay, flashsale.PayCaptured, p.cfg.Now())
	return nil
}

// sendShopper has a shopper pay, fail, or walk away.
func (p *Provider) sendShopper(pay *payment, now time.Time) {
	b := &p.cfg.Behaviour
	if b.Capture <= 0 && b.Fail <= 0 {
		return
	}
	outcome := flashsale.PayCaptured
	switch chance := p.rng.Float64(); {
	case chance < b.Capture:
	case chance < b.Capture+b.Fail:
		outcome = flashsale.PayFailed
	default:
		return
	}
	p.at(now.Add(b.Shopper.pick(p.rng)), pay, func(now time.Time) {
		if pay.status == flashsale.PayOpen {
			p.end(pay, outcome, now)
		}
	})
}

// decideVoid ends a payment whose void was asked for, if nobody has paid meanwhile.
func (p *Provider) decideVoid(pay *payment, now time.Time) {
	switch {
	case pay.status != flashsale.PayOpen:
	case p.roll(p.cfg.Behaviour.VoidTooLate):
		p.end(pay, flashsale.PayCaptured, now)
	default:
		p.end(pay, flashsale.PayVoid, now)
	}
}

// end is the end of an open payment, if nothing undoes it.
func (p *Provider) end(pay *payment, status flashsale.PayStatus, now time.Time) {
	b := &p.cfg.Behaviour
	if status == flashsale.PayCaptured {
		if p.roll(b.WrongCapture) {
			pay.took, pay.currency = p.wrong(pay.took, pay.currency)
		}
		p.move(pay, status, now)
		return
	}
	p.move(pay, status, now)
	if p.roll(b.Undone) {
		p.at(now.Add(b.VoidTime.pick(p.rng)), pay, func(now time.Time) {
			if pay.captures == 0 {
				p.move(pay, flashsale.PayCaptured, now)
			}
		})
	}
}

// wrong returns an amount or a currency that is not the one.
func (p *Provider) wrong(amount int64, currency string) (otherAmount int64, otherCurrency string) {
	if amount > 0 && p.rng.IntN(2) == 0 {
		return amount - 1, currency
	}
	if currency == "XTS" {
		return amount, "XXX"
	}
	return amount, "XTS"
}

package sqlorders

import "github.com/headgate-io/headgate/flashsale"

// What a provider says of a payment, in whatever order it comes, is settled by three tables.
//
// First, what the payment's row makes of it (step):
//
//	row \ provider        open   failed       void       captured   refunded
//	live                  –      ends failed  ends void  capture    ends refunded
//	failed, void          –      –            –          capture    ends refunded
//	captured, applied     –      –            –          –          –
//	captured, not applied –      –            –          –          ends refunded, and so does T8
//	refunded              –      –            –          –          –
//	refunding             –      –            –          –          ends refunded
//
// A capture counts whatever the row said before, since the money has moved: a provider may tell of a failed attempt and then of
// a second one that went through, or of both in the wrong order. Once it has counted, only a refund undoes it.
//
// Second, what a capture pays for:
//
//	reservation                   as asked for                 another amount or currency
//	reserved, confirming          T4: it is paid by this one   refund
//	confirmed                     T9: refunding                refund
//	cancelled, expired, rejected  captured, kept for T8        refund
//	the same, and T8 has another  T9: refunding                refund
//	attempt paid for it again
//
// Third, what a live payment that ends without paying (failed, void, refunded, or to be refunded) leaves behind:
//
//	reservation   in its time    past its time
//	confirming    T3b: reserved  T7: expired
//	any other     –              –
//
// A payment that is not live leaves nothing behind: its reservation has gone on without it.

// step is what the row of a payment makes of a provider's word.
type step uint8

const (
	ignored step = iota
	endFailed
	endVoid
	endRefunded
	capture
)

// stepOf is the first table.
func stepOf(p *flashsale.Payment, status flashsale.PayStatus) step {
	applied := p.State == flashsale.PaymentCaptured && p.AppliedTo != ""
	if status == flashsale.PayRefunded && p.State != flashsale.PaymentRefunded && !applied {
		return endRefunded
	}
	switch p.State {
	case flashsale.PaymentLive:
		switch status {
		case flashsale.PayFailed:
			return endFailed
		case flashsale.PayVoid:
			return endVoid
		case flashsale.PayCaptured:
			return capture
		}
	case flashsale.PaymentFailed, flashsale.PaymentVoid:
		if status == flashsale.PayCaptured {
			return capture
		}
	}
	return ignored
}

// settled is what a payment and its reservation become. An empty payment and state None stay as they are.
type settled struct {
	payment     flashsale.PaymentState
	reservation flashsale.State
	reason      string
}

// Reasons why a payment is refunded.
const (
	reasonAmount     = "amount_mismatch"
	reasonCurrency   = "currency_mismatch"
	reasonPaidTwice  = "paid_twice"
	reasonByProvider = "refunded_by_provider"
	reasonNoUnit     = "no_unit"
)

// facts are what a provider's word meets.
type facts struct {
	payment     *flashsale.Payment
	reservation *flashsale.Reservation
	said        *flashsale.ProviderPayment
	// twice tells that another attempt has paid already, be it by T8.
	twice bool
	// late tells that the time to pay is over.
	late bool
}

// settle decides by all three tables.
func settle(f *facts) settled {
	var out settled
	switch stepOf(f.payment, f.said.Status) {
	case ignored:
		return settled{}
	case capture:
		out = captured(f)
	case endFailed:
		out.payment = flashsale.PaymentFailed
	case endVoid:
		out.payment = flashsale.PaymentVoid
	case endRefunded:
		out.payment = flashsale.PaymentRefunded
		out.reason = f.payment.Reason
		if out.reason == "" {
			out.reason = reasonByProvider
		}
	}
	if out.payment != flashsale.PaymentCaptured && f.payment.State == flashsale.PaymentLive && f.reservation.State == flashsale.Confirming {
		out.reservation = flashsale.Reserved
		if f.late {
			out.reservation = flashsale.Expired
		}
	}
	return out
}

// captured is the second table.
func captured(f *facts) settled {
	refund := func(reason string) settled { return settled{payment: flashsale.PaymentRefunding, reason: reason} }
	switch {
	case f.said.Amount != f.payment.Amount:
		return refund(reasonAmount)
	case f.said.Currency != f.payment.Currency:
		return refund(reasonCurrency)
	}
	switch state := f.reservation.State; {
	case state == flashsale.Reserved, state == flashsale.Confirming:
		return settled{payment: flashsale.PaymentCaptured, reservation: flashsale.Confirmed}
	case state == flashsale.Confirmed, f.twice:
		return refund(reasonPaidTwice)
	}
	return settled{payment: flashsale.PaymentCaptured}
}

package invariants

import (
	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/simpay"
)

// paid is a payment as SQL has it, with the reservation that it has paid for.
type paid struct {
	intent, rid, appliedTo string
	state                  flashsale.PaymentState
	amount                 int64
	currency               string
	reservation            flashsale.State
}

// paidBy are all payments of SQL, by intent.
func (w *world) paidBy() map[string]paid {
	w.Helper()
	rows, err := w.raw.QueryContext(w.Context(), `SELECT p.intent_key, p.rid, p.state, COALESCE(p.applied_to, ''), COALESCE(r.state, 0), COALESCE(r.amount, 0),
		COALESCE(r.currency, '') FROM payment p LEFT JOIN reservation r ON r.rid = p.applied_to`)
	w.must(err)
	defer func() { _ = rows.Close() }()
	all := map[string]paid{}
	for rows.Next() {
		var p paid
		w.must(rows.Scan(&p.intent, &p.rid, &p.state, &p.appliedTo, &p.reservation, &p.amount, &p.currency))
		all[p.intent] = p
	}
	w.must(rows.Err())
	return all
}

// payments is I7, and that nobody is charged twice, once nothing is under way: whoever's money is with the provider has a unit for it, and
// what a payment has paid for was charged.
func (w *world) payments() (f findings) {
	w.Helper()
	all, charged := w.paidBy(), map[string]string{}
	for r := range w.bank.Records() {
		p, known := all[r.Intent.Key]
		delete(all, r.Intent.Key)
		f.unless(known, "I7: the provider has %s, and SQL does not", r.Intent.Key)
		f.unless(r.Captures <= 1 && r.Refunds <= r.Captures, "I5: %s was captured %d times, and refunded %d", r.Intent.Key, r.Captures, r.Refunds)
		if !r.Charged() {
			f.unless(p.appliedTo == "" && p.state != flashsale.PaymentCaptured && p.state != flashsale.PaymentRefunding, "I7: nothing is charged by %s, which is %s, applied to %q", p.intent, p.state, p.appliedTo)
			continue
		}
		f.unless(charged[p.rid] == "", "I7: %s is charged by %s and by %s", p.rid, charged[p.rid], p.intent)
		charged[p.rid] = p.intent
		f = append(f, p.pays(&r)...)
	}
	for intent := range all {
		f.unless(all[intent].appliedTo == "", "I7: the provider does not know %s, which has paid for %s", intent, all[intent].appliedTo)
	}
	return f
}

// pays says what is wrong with a payment whose money is with the provider.
func (p *paid) pays(r *simpay.Record) (f findings) {
	f.unless(p.state == flashsale.PaymentCaptured && p.reservation == flashsale.Confirmed,
		"I7: %s is charged, and here it is %s, applied to %q, which is %s", p.intent, p.state, p.appliedTo, p.reservation)
	f.unless(p.amount == r.Amount && p.currency == r.Currency, "I7: %s has paid %d %s for what costs %d %s", p.intent, r.Amount, r.Currency, p.amount, p.currency)
	return f
}

package engine

import (
	"context"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

const (
	// matchBack is how much further back than asked a match looks, since three clocks are compared.
	matchBack = 5 * time.Minute
	matchPage = 500
	// maxSeen bounds the payments that a match remembers to have compared. Beyond it, the provider is asked for them one by one, at
	// most maxAsked times.
	maxSeen, maxAsked = 1_000_000, 1000
)

// MatchReport is what a match of provider, payments, and orders with their ledger has found.
type MatchReport struct {
	Since time.Time
	// Provider, Payments and Paid count what was compared of each side.
	Provider, Payments, Paid int
	// Repaired counts differences that are none any more: what the provider had decided and nobody had heard of, and refunds.
	Repaired int
	// Differences are those that remain, at most 1000; Omitted counts the others, and payments of which there were too many to ask for.
	Differences []Difference
	Omitted     int
}

// MatchOnce compares, of all that has changed since a time, 1970 at the earliest, what the provider has, what the payments say, and what is
// paid by orders, reservations and ledger. What the provider has decided and nobody here has heard of is taken, and refunds are made; what
// remains is reported. Differences that two matches in a row have found raise the alarm, until a match that looks as far back, or at what
// differed, finds them gone: one of the last minutes says nothing of yesterday. In an engine that runs, the alarm is of the instance that has
// the job of matching: it is asked to look as far back too, and at all that stands. An error ends the match; what it has found so far comes
// with it.
func (e *Engine) MatchOnce(ctx context.Context, since time.Time) (MatchReport, error) {
	if err := e.payable(); err != nil {
		return MatchReport{}, err
	}
	m, err := e.match(ctx, since)
	if err == nil && e.care.started.Load() {
		err = e.orders.MatchAgain(ctx, since)
	}
	return m.report, err
}

// matchJob matches what has changed since the last match that came to its end, whoever made it and however long ago. What stands as
// differing is not left behind: whoever takes the job over begins where it was found, and finds it too.
func (e *Engine) matchJob(ctx context.Context) (int, error) {
	noted, err := e.orders.MatchSince(ctx)
	if err != nil {
		return 0, err
	}
	began, err := e.orders.Now(ctx) // by the clock that times of payments are of
	if err != nil {
		return 0, err
	}
	m, err := e.match(ctx, e.paying.matchesFrom(noted))
	if err != nil {
		return m.report.Repaired, err
	}
	from := e.paying.oldest(began)
	last, err := e.orders.Matched(ctx, noted, from)
	if err == nil && last { // else somebody has asked to look again, and the next pass does
		e.paying.matched(from, began)
	}
	return m.report.Repaired, err
}

func (e *Engine) match(ctx context.Context, since time.Time) (*match, error) {
	if since.Unix() < 0 { // before anything was ever paid here; and not everybody can write each such time
		since = time.Unix(0, 0).UTC()
	}
	m := &match{e: e, report: MatchReport{Since: since}, from: since.Add(-matchBack), seed: maphash.MakeSeed(), seen: map[uint64]struct{}{}}
	m.open, m.looked = e.paying.spots(), map[spot]struct{}{}
	for _, side := range []func(context.Context) error{m.provider, m.payments, m.paid} {
		if err := side(ctx); err != nil {
			return m, err
		}
	}
	e.judgeMatch(m)
	return m, nil
}

// match is one match.
type match struct {
	e      *Engine
	report MatchReport
	from   time.Time
	// seen are hashes of the intents that were compared with the provider.
	seed  maphash.Seed
	seen  map[uint64]struct{}
	asked int
	// unnamed counts the differences that the report has no room for.
	unnamed int
	// open are the places where the matches before have found something, and looked those of them that this one comes to.
	open, looked map[spot]struct{}
}

func (m *match) look(p spot) {
	if _, ok := m.open[p]; ok {
		m.looked[p] = struct{}{}
	}
}

// provider compares each payment of the provider with the one here.
func (m *match) provider(ctx context.Context) error {
	for cursor := ""; ; {
		page, next, err := m.list(ctx, cursor)
		if err != nil {
			return err
		}
		for i := range page {
			if err := m.there(ctx, &page[i]); err != nil {
				return err
			}
		}
		if cursor = next; cursor == "" {
			return nil
		}
	}
}

func (m *match) list(ctx context.Context, cursor string) (page []flashsale.ProviderPayment, next string, err error) {
	_, err = m.e.ask(ctx, func(ctx context.Context) (*flashsale.ProviderPayment, error) {
		page, next, err = m.e.payments.List(ctx, m.from, cursor, matchPage)
		return &flashsale.ProviderPayment{}, err
	})
	return page, next, err
}

func (m *match) there(ctx context.Context, p *flashsale.ProviderPayment) error {
	m.report.Provider++
	m.look(spot{intent: p.IntentKey})
	if len(m.seen) < maxSeen {
		m.seen[maphash.String(m.seed, p.IntentKey)] = struct{}{}
	}
	pay, err := m.e.orders.Payment(ctx, p.IntentKey)
	switch {
	case err == nil:
		return m.compare(ctx, p, pay)
	case !isNoPayment(err):
		return err
	case p.Status == flashsale.PayCaptured:
		m.differ(UnknownHere, nil, p.IntentKey, "the provider has captured "+flashsale.FormatAmount(p.Amount, p.Currency))
	}
	return nil // where no money is, an unknown intent may be another's
}

// payments asks the provider for those that it has not listed and that here are said to be captured.
func (m *match) payments(ctx context.Context) error {
	for cursor := ""; ; {
		page, next, err := m.e.orders.PaymentsSince(ctx, m.from, cursor, matchPage)
		if err != nil {
			return err
		}
		m.report.Payments += len(page)
		for i := range page {
			if err := m.here(ctx, &page[i]); err != nil {
				return err
			}
		}
		if cursor = next; cursor == "" {
			return nil
		}
	}
}

func (m *match) here(ctx context.Context, pay *flashsale.Payment) error {
	switch pay.State {
	case flashsale.PaymentLive, flashsale.PaymentVoid, flashsale.PaymentFailed:
		return nil // a live one is the poller's, and the provider may know nothing of those that never were
	}
	if _, ok := m.seen[maphash.String(m.seed, pay.IntentKey)]; ok {
		return nil
	}
	if m.asked++; m.asked > maxAsked {
		m.report.Omitted++
		return nil
	}
	m.look(spot{intent: pay.IntentKey})
	p, err := m.e.query(ctx, pay.IntentKey)
	if flashsale.CodeOf(err) == flashsale.CodeUnknownPayment {
		m.differ(UnknownThere, pay, "", fmt.Sprintf("here it is %s, and the provider knows nothing of it", pay.State))
		return nil
	}
	if err != nil {
		return err
	}
	return m.compare(ctx, p, pay)
}

// remedy is what ends a difference, if anything does.
type remedy uint8

const (
	agreed      remedy = iota
	report             // nothing does: somebody has to look
	takeWord           // the provider has decided, and nobody here has heard of it
	goOn               // T8 or a refund is owed
	refundAgain        // it counts as refunded here, and is not
)

// judge holds a payment against what the provider has.
func judge(p *flashsale.ProviderPayment, pay *flashsale.Payment) (remedy, DifferenceKind) {
	charged, refunded := p.Status == flashsale.PayCaptured, p.Status == flashsale.PayRefunded
	switch pay.State {
	case flashsale.PaymentLive:
		return when(p.Status != flashsale.PayOpen, takeWord), ""
	case flashsale.PaymentVoid, flashsale.PaymentFailed:
		return when(charged || refunded, takeWord), ""
	}
	if !charged && !refunded {
		return report, NotCapturedThere
	}
	switch pay.State {
	case flashsale.PaymentRefunding:
		if refunded {
			return takeWord, ""
		}
		return goOn, ""
	case flashsale.PaymentRefunded:
		return when(charged, refundAgain), ""
	}
	return judgeCaptured(p, pay)
}

// judgeCaptured is judge for one that is captured here, and charged or refunded there.
func judgeCaptured(p *flashsale.ProviderPayment, pay *flashsale.Payment) (remedy, DifferenceKind) {
	applied := pay.AppliedTo != ""
	switch {
	case p.Status == flashsale.PayRefunded && applied:
		return report, RefundedThere
	case p.Status == flashsale.PayRefunded:
		return takeWord, ""
	case differs(p, pay) != "":
		return report, AmountDiffers
	}
	return when(!applied, goOn), ""
}

func when(differs bool, r remedy) remedy {
	if differs {
		return r
	}
	return agreed
}

// compare holds a payment against what the provider has, and repairs what can be. If that fails, it remains a difference; what only
// waits is none.
func (m *match) compare(ctx context.Context, p *flashsale.ProviderPayment, pay *flashsale.Payment) error {
	r, kind := judge(p, pay)
	moved, err := false, error(nil)
	switch r {
	case takeWord:
		err = m.e.outcome(ctx, "", p)
		moved = err == nil
	case goOn, refundAgain:
		moved, err = m.carryOn(ctx, pay, r == refundAgain)
	}
	detail := fmt.Sprintf("the provider has it as %s, %s, and here it is %s, %s", p.Status, flashsale.FormatAmount(p.Amount, p.Currency),
		pay.State, flashsale.FormatAmount(pay.Amount, pay.Currency))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		m.differ(NotRepaired, pay, "", detail+": "+err.Error())
	case r == report:
		m.differ(kind, pay, "", detail)
	case moved:
		m.report.Repaired++
	}
	return nil
}

// carryOn does what is owed to a payment.
func (m *match) carryOn(ctx context.Context, pay *flashsale.Payment, refund bool) (bool, error) {
	row, err := m.e.orders.Reservation(ctx, pay.RID)
	if err != nil {
		return false, err
	}
	if refund {
		return m.e.refund(ctx, pay, row)
	}
	return m.e.carryOn(ctx, pay, row)
}

// paid compares orders, reservations, ledger and payments.
func (m *match) paid(ctx context.Context) error {
	for cursor := ""; ; {
		page, next, err := m.e.orders.PaidSince(ctx, m.from, cursor, matchPage)
		if err != nil {
			return err
		}
		m.report.Paid += len(page)
		for i := range page {
			m.books(&page[i])
		}
		if cursor = next; cursor == "" {
			return nil
		}
	}
}

func (m *match) books(p *flashsale.Paid) {
	r := &p.Reservation
	m.look(spot{rid: r.RID})
	pay := &flashsale.Payment{IntentKey: p.IntentKey, RID: r.RID}
	confirmed := r.State == flashsale.Confirmed
	if !confirmed || !p.OrderPaid || p.LedgerSold != r.Quantity {
		m.differWith(BooksDiffer, pay, r.OrderID,
			fmt.Sprintf("the reservation of %d is %s, its order is paid: %t, and the ledger has sold %d", r.Quantity, r.State, p.OrderPaid, p.LedgerSold))
	}
	if p.IntentKey == "" || p.PaymentState != flashsale.PaymentCaptured {
		m.differWith(PaidOnce, pay, r.OrderID, fmt.Sprintf("the reservation is %s, its order is paid: %t, and its payment is %q", r.State, p.OrderPaid, p.PaymentState))
	}
}

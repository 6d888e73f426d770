package engine

import (
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

const (
	// matchBack is how much further back than asked a match looks, since three clocks are compared.
	matchBack = 5 * time.Minute
	matchPage = 500
	// maxDifferences bounds the differences that a report names; more are counted.
	maxDifferences = 1000
	// maxLogged bounds how many new ones a match logs.
	maxLogged = 20
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
	// Differences are those that remain, at most 1000; Omitted counts the others.
	Differences []Difference
	Omitted     int
}

// DifferenceKind says what differs.
type DifferenceKind string

// The kinds of differences.
const (
	UnknownHere      DifferenceKind = "unknown_here"       // the provider has captured what nobody here has begun
	UnknownThere     DifferenceKind = "unknown_there"      // it is captured here, and the provider does not know it
	NotCapturedThere DifferenceKind = "not_captured_there" // it is captured here, and not at the provider
	RefundedThere    DifferenceKind = "refunded_there"     // the order is paid, and the provider has given the money back
	AmountDiffers    DifferenceKind = "amount_differs"
	PaidOnce         DifferenceKind = "paid_without_payment" // the order is paid, and no captured payment is applied to it
	BooksDiffer      DifferenceKind = "books_differ"         // reservation, order and ledger do not say the same
	NotRepaired      DifferenceKind = "not_repaired"         // what would repair it has failed
)

// Difference is one thing on which the sides do not agree.
type Difference struct {
	Kind DifferenceKind
	// IntentKey, RID and OrderID name it, as far as there are such.
	IntentKey, RID, OrderID string
	// Detail says what each side has.
	Detail string
	// Again tells that the match before has found it too.
	Again bool
}

// differenceID tells differences of one match from those of another.
type differenceID struct {
	kind        DifferenceKind
	intent, rid string
}

// MatchOnce compares, of all that has changed since a time, what the provider has, what the payments say, and what is paid by orders,
// reservations and ledger. What the provider has decided and nobody here has heard of is taken, and refunds are made; what remains is
// reported. Differences that two matches in a row have found raise the alarm. An error ends the match; what it has found so far
// comes with it.
func (e *Engine) MatchOnce(ctx context.Context, since time.Time) (MatchReport, error) {
	if err := e.payable(); err != nil {
		return MatchReport{}, err
	}
	m := &match{e: e, report: MatchReport{Since: since}, from: since.Add(-matchBack), seed: maphash.MakeSeed(), seen: map[uint64]struct{}{}}
	for _, side := range []func(context.Context) error{m.provider, m.payments, m.paid} {
		if err := side(ctx); err != nil {
			return m.report, err
		}
	}
	e.judgeMatch(&m.report)
	return m.report, nil
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
		m.differ(UnknownHere, nil, p.IntentKey, fmt.Sprintf("the provider has captured %d %s", p.Amount, p.Currency))
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
	detail := fmt.Sprintf("the provider has it as %s, %d %s, and here it is %s, %d %s", p.Status, p.Amount, p.Currency, pay.State, pay.Amount, pay.Currency)
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

func (m *match) differ(kind DifferenceKind, pay *flashsale.Payment, intentKey, detail string) {
	if pay == nil {
		pay = &flashsale.Payment{IntentKey: intentKey}
	}
	m.differWith(kind, pay, "", detail)
}

func (m *match) differWith(kind DifferenceKind, pay *flashsale.Payment, orderID, detail string) {
	if len(m.report.Differences) == maxDifferences {
		m.report.Omitted++
		return
	}
	m.report.Differences = append(m.report.Differences, Difference{Kind: kind, IntentKey: pay.IntentKey, RID: pay.RID, OrderID: orderID, Detail: detail})
}

// judgeMatch marks what the match before has found too, and raises the alarm for it or ends it.
func (e *Engine) judgeMatch(report *MatchReport) {
	found := make(map[differenceID]bool, len(report.Differences))
	p := e.paying
	p.mu.Lock()
	again := 0
	for i := range report.Differences {
		d := &report.Differences[i]
		id := differenceID{d.Kind, d.IntentKey, d.RID}
		if d.Again = p.differed[id]; d.Again {
			again++
		}
		found[id] = true
	}
	p.differed = found
	on := again > 0
	changed := on || p.misfits
	p.misfits = on
	p.mu.Unlock()
	e.logDifferences(report)
	if changed {
		e.observer.Alarm(AlarmPaymentsMatch, "", on, float64(again), counted(again, "difference was found twice in a row", "differences were found twice in a row"))
	}
}

// endMisfits ends the alarm about what a match here has found.
func (e *Engine) endMisfits() {
	p := e.paying
	p.mu.Lock()
	on := p.misfits
	p.misfits, p.differed = false, map[differenceID]bool{}
	p.mu.Unlock()
	if on {
		e.observer.Alarm(AlarmPaymentsMatch, "", false, 0, "another instance compares them now")
	}
}

// logDifferences logs the first of those that are new.
func (e *Engine) logDifferences(report *MatchReport) {
	left := maxLogged
	for i := range report.Differences {
		d := &report.Differences[i]
		if d.Again || left == 0 {
			continue
		}
		left--
		e.log.Error("provider, payments and orders do not agree", slog.String("kind", string(d.Kind)), slog.String("intent", d.IntentKey),
			slog.String("rid", d.RID), slog.String("order", d.OrderID), slog.String("detail", d.Detail))
	}
}

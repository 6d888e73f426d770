package engine

import (
	"log/slog"

	"github.com/headgate-io/headgate/flashsale"
)

const (
	// maxDifferences bounds the differences that a report names; more are counted.
	maxDifferences = 1000
	// maxLogged bounds how many new ones a match logs.
	maxLogged = 20
)

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

func (d *Difference) id() differenceID { return differenceID{d.Kind, d.IntentKey, d.RID} }

// spot is what has to be looked at to see whether it is still there: a payment, or the books of a reservation.
func (d *Difference) spot() spot {
	if d.Kind == BooksDiffer || d.Kind == PaidOnce {
		return spot{rid: d.RID}
	}
	return spot{intent: d.IntentKey}
}

type spot struct{ intent, rid string }

func (m *match) differ(kind DifferenceKind, pay *flashsale.Payment, intentKey, detail string) {
	if pay == nil {
		pay = &flashsale.Payment{IntentKey: intentKey}
	}
	m.differWith(kind, pay, "", detail)
}

func (m *match) differWith(kind DifferenceKind, pay *flashsale.Payment, orderID, detail string) {
	if len(m.report.Differences) == maxDifferences {
		m.report.Omitted++
		m.unnamed++
		return
	}
	m.report.Differences = append(m.report.Differences, Difference{Kind: kind, IntentKey: pay.IntentKey, RID: pay.RID, OrderID: orderID, Detail: detail})
}

// judgeMatch marks what the match before has found too, and raises the alarm for it or ends it. Where the jobs are run, that is for the instance
// that has the one of matching.
func (e *Engine) judgeMatch(m *match) {
	report := &m.report
	p := e.paying
	run := e.care.started.Load()
	p.telling.Lock()
	defer p.telling.Unlock()
	p.mu.Lock()
	again := p.matching.judge(m)
	on := again > 0 && (p.matching.ours || !run)
	changed := on || p.misfits
	p.misfits = on
	p.mu.Unlock()
	e.logDifferences(report)
	if changed {
		e.observer.Alarm(AlarmPaymentsMatch, "", on, float64(again), counted(again, "difference remains after two matches", "differences remain after two matches"))
	}
}

// endMisfits ends the alarm about what a match here has found.
func (e *Engine) endMisfits() {
	p := e.paying
	p.telling.Lock()
	defer p.telling.Unlock()
	p.mu.Lock()
	on := p.misfits
	p.misfits, p.matching = false, matching{}
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

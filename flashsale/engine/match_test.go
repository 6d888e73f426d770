package engine

import (
	"context"
	"hash/maphash"
	"slices"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/simpay"
)

// match matches all, and returns what differs, as "kind intent".
func (c *till) match() (report MatchReport, differences []string) {
	c.t.Helper()
	report, err := c.e.MatchOnce(c.t.Context(), c.now.Add(-24*time.Hour))
	c.must(err)
	for _, d := range report.Differences {
		differences = append(differences, string(d.Kind)+" "+d.IntentKey)
	}
	slices.Sort(differences)
	return report, differences
}

func TestMatchWhereAllAgree(t *testing.T) {
	c := openTill(t, tillPlan{total: 5})
	for _, user := range []string{"ann", "bob", "eve"} {
		c.must(c.bank.Pay(c.begin(c.reserve(user, 1), user), flashsale.PayCaptured))
	}
	c.begin(c.reserve("dan", 1), "dan")
	c.reserve("joe", 1)
	c.pass(0)
	report, differences := c.match()
	if len(differences) != 0 || report.Repaired != 0 || report.Provider != 4 || report.Payments != 4 || report.Paid != 3 {
		t.Fatalf("%+v", report)
	}
	if on, told := c.told.alarms[AlarmPaymentsMatch]; on || told {
		t.Fatal("there is an alarm")
	}
}

// TestMatchRepairs what the provider has decided and nobody was told of, without any poll.
func TestMatchRepairs(t *testing.T) {
	c := openTill(t, tillPlan{total: 6})
	users := []string{"ann", "bob", "eve", "dan", "joe", "kim"}
	rids, intents := make([]string, len(users)), make([]string, len(users))
	for i, user := range users {
		rids[i] = c.reserve(user, 1)
		intents[i] = c.begin(rids[i], user)
	}
	c.must(c.bank.Pay(intents[4], flashsale.PayFailed)) // heard of
	c.must(c.bank.Pay(intents[5], flashsale.PayFailed))
	c.pass(0)
	again := c.begin(rids[5], "kim")
	c.must(c.bank.Pay(again, flashsale.PayCaptured))
	c.pass(0)
	c.deaf = true
	c.must(c.bank.Pay(intents[0], flashsale.PayCaptured))
	c.must(c.bank.Pay(intents[1], flashsale.PayFailed))
	c.must(c.bank.Capture(intents[2], 1, "EUR"))
	c.must(c.bank.Capture(intents[4], tillPrice, "EUR")) // failed, and captured after all
	c.must(c.bank.Capture(intents[5], tillPrice, "EUR")) // the same, and another attempt has paid
	report, differences := c.match()
	if len(differences) != 0 || report.Repaired != 5 {
		t.Fatalf("repaired %d; %v", report.Repaired, differences)
	}
	for i, want := range []flashsale.State{flashsale.Confirmed, flashsale.Reserved, flashsale.Reserved, flashsale.Confirming, flashsale.Confirmed, flashsale.Confirmed} {
		c.is(rids[i], want)
	}
	c.bankHas(intents[2], flashsale.PayRefunded)
	c.bankHas(intents[5], flashsale.PayRefunded)
	c.paid(again, flashsale.PaymentCaptured, rids[5])
	if report, _ = c.match(); report.Repaired != 0 {
		t.Fatalf("a second match repairs %d more", report.Repaired)
	}
}

// liar is a provider that says of some payments what is not so, and does not list others.
type liar struct {
	flashsale.Payments
	says   map[string]flashsale.ProviderPayment
	hides  map[string]bool
	failed bool // it does not refund
}

func (l *liar) Query(ctx context.Context, key string) (*flashsale.ProviderPayment, error) {
	if p, ok := l.says[key]; ok {
		return &p, nil
	}
	if l.hides[key] {
		return nil, errorf(flashsale.CodeUnknownPayment, "hidden")
	}
	return l.Payments.Query(ctx, key)
}

func (l *liar) Refund(ctx context.Context, key string) (*flashsale.ProviderPayment, error) {
	if l.failed {
		return nil, errorf(flashsale.CodeInvalidState, "no")
	}
	return l.Payments.Refund(ctx, key)
}

func (l *liar) List(ctx context.Context, since time.Time, cursor string, limit int) (page []flashsale.ProviderPayment, next string, err error) {
	all, next, err := l.Payments.List(ctx, since, cursor, limit)
	for _, p := range all {
		said, ok := l.says[p.IntentKey]
		switch {
		case l.hides[p.IntentKey]:
		case ok:
			page = append(page, said)
		default:
			page = append(page, p)
		}
	}
	return page, next, err
}

// TestMatchTellsWhatNothingRepairs, raises the alarm when it is there the second time, and ends it when it has gone.
func TestMatchTellsWhatNothingRepairs(t *testing.T) {
	for _, b := range []struct {
		name string
		lie  func(c *till, l *liar, intent string)
		want string
	}{
		{"captured by the provider alone", func(c *till, _ *liar, _ string) {
			in := flashsale.Intent{Key: "x:1", Amount: 5, Currency: "EUR"}
			_, err := c.bank.Create(c.t.Context(), &in)
			c.must(err)
			c.deaf = true
			c.must(c.bank.Pay("x:1", flashsale.PayCaptured))
		}, "unknown_here x:1"},
		{"unknown to the provider", func(_ *till, l *liar, intent string) { l.hides[intent] = true }, "unknown_there r1:1"},
		{"open at the provider", func(_ *till, l *liar, intent string) {
			l.says[intent] = flashsale.ProviderPayment{IntentKey: intent, Status: flashsale.PayOpen, Amount: tillPrice, Currency: "EUR"}
		}, "not_captured_there r1:1"},
		{"another amount", func(_ *till, l *liar, intent string) {
			l.says[intent] = flashsale.ProviderPayment{IntentKey: intent, Status: flashsale.PayCaptured, Amount: 1, Currency: "EUR"}
		}, "amount_differs r1:1"},
		{"another currency", func(_ *till, l *liar, intent string) {
			l.says[intent] = flashsale.ProviderPayment{IntentKey: intent, Status: flashsale.PayCaptured, Amount: tillPrice, Currency: "USD"}
		}, "amount_differs r1:1"},
		{"refunded by somebody at the provider", func(c *till, _ *liar, intent string) {
			_, err := c.bank.Refund(c.t.Context(), intent)
			c.must(err)
			c.pass(0)
		}, "refunded_there r1:1"},
	} {
		t.Run(b.name, func(t *testing.T) {
			c := openTill(t, tillPlan{total: 1})
			l := &liar{Payments: c.e.payments, says: map[string]flashsale.ProviderPayment{}, hides: map[string]bool{}}
			rid := c.reserve("ann", 1)
			intent := c.begin(rid, "ann")
			c.must(c.bank.Pay(intent, flashsale.PayCaptured))
			c.pass(0)
			c.e.payments = l
			b.lie(c, l, intent)
			report, differences := c.match()
			if !slices.Equal(differences, []string{b.want}) || report.Differences[0].Again || c.told.alarms[AlarmPaymentsMatch] {
				t.Fatalf("%v, %+v, alarm %t; want %s", differences, report, c.told.alarms[AlarmPaymentsMatch], b.want)
			}
			report, differences = c.match()
			if !slices.Equal(differences, []string{b.want}) || !report.Differences[0].Again || !c.told.alarms[AlarmPaymentsMatch] {
				t.Fatalf("again: %v, %+v, alarm %t", differences, report, c.told.alarms[AlarmPaymentsMatch])
			}
			c.is(rid, flashsale.Confirmed)
			c.now = c.now.Add(48 * time.Hour) // out of sight, and nobody has mended it
			if _, differences = c.match(); len(differences) != 0 || !c.told.alarms[AlarmPaymentsMatch] {
				t.Fatalf("out of sight: %v, alarm %t", differences, c.told.alarms[AlarmPaymentsMatch])
			}
		})
	}
}

// TestDifferencesStandUntilTheyAreGone: a match of the last minutes says nothing of a difference of yesterday. One that looks as far
// back ends it, or one that comes to it because it has changed.
func TestDifferencesStandUntilTheyAreGone(t *testing.T) {
	open := func(t *testing.T) (c *till, l *liar, began time.Time) {
		c = openTill(t, tillPlan{total: 1})
		l = &liar{Payments: c.e.payments, says: map[string]flashsale.ProviderPayment{}, hides: map[string]bool{}}
		intent := c.begin(c.reserve("ann", 1), "ann")
		c.must(c.bank.Pay(intent, flashsale.PayCaptured))
		c.pass(0)
		c.e.payments = l
		began = c.now
		_, err := c.bank.Create(t.Context(), &flashsale.Intent{Key: "x:1", Amount: 5, Currency: "EUR"})
		c.must(err)
		c.deaf = true
		c.must(c.bank.Pay("x:1", flashsale.PayCaptured))
		l.hides[intent] = true
		c.match()
		c.match()
		c.now = c.now.Add(48 * time.Hour)
		c.stands(2)
		return c, l, began
	}
	t.Run("a match that looks as far back", func(t *testing.T) {
		c, l, began := open(t)
		clear(l.hides)
		c.stands(2)
		if _, err := c.e.MatchOnce(t.Context(), began); err != nil {
			t.Fatal(err)
		}
		c.stands(1)
	})
	t.Run("a change", func(t *testing.T) {
		c, _, _ := open(t)
		_, err := c.bank.Refund(t.Context(), "x:1")
		c.must(err)
		c.stands(1)
		c.e.endMisfits()
		c.stands(0)
	})
}

// stands has the last day matched, in which nothing has happened, and wants the alarm to be on for so many.
func (c *till) stands(want float64) {
	c.t.Helper()
	if _, differences := c.match(); len(differences) != 0 {
		c.t.Fatalf("%v in the last day", differences)
	}
	c.standing(c.e, want)
	if c.told.alarms[AlarmPaymentsMatch] != (want > 0) {
		c.t.Fatalf("the alarm is told as %t, want it for %g", c.told.alarms[AlarmPaymentsMatch], want)
	}
}

// TestMatchOfTheBooks finds by its key what is paid without a payment, or not the same in all tables.
func TestMatchOfTheBooks(t *testing.T) {
	r := flashsale.Reservation{RID: "r1", OrderID: "o1", Quantity: 2, State: flashsale.Confirmed}
	expired := r
	expired.State = flashsale.Expired
	for name, b := range map[string]struct {
		paid flashsale.Paid
		want []DifferenceKind
	}{
		"all right":          {flashsale.Paid{Reservation: r, OrderPaid: true, LedgerSold: 2, IntentKey: "r1:1", PaymentState: flashsale.PaymentCaptured}, nil},
		"without a payment":  {flashsale.Paid{Reservation: r, OrderPaid: true, LedgerSold: 2}, []DifferenceKind{PaidOnce}},
		"refunded":           {flashsale.Paid{Reservation: r, OrderPaid: true, LedgerSold: 2, IntentKey: "r1:1", PaymentState: flashsale.PaymentRefunded}, []DifferenceKind{PaidOnce}},
		"order not paid":     {flashsale.Paid{Reservation: r, LedgerSold: 2, IntentKey: "r1:1", PaymentState: flashsale.PaymentCaptured}, []DifferenceKind{BooksDiffer}},
		"ledger has another": {flashsale.Paid{Reservation: r, OrderPaid: true, LedgerSold: 1, IntentKey: "r1:1", PaymentState: flashsale.PaymentCaptured}, []DifferenceKind{BooksDiffer}},
		"expired, and sold":  {flashsale.Paid{Reservation: expired, LedgerSold: 2}, []DifferenceKind{BooksDiffer, PaidOnce}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &match{}
			m.books(&b.paid)
			var kinds []DifferenceKind
			for _, d := range m.report.Differences {
				if d.RID != "r1" || d.OrderID != "o1" || d.Detail == "" {
					t.Errorf("%+v", d)
				}
				kinds = append(kinds, d.Kind)
			}
			if !slices.Equal(kinds, b.want) {
				t.Fatalf("%v; want %v", kinds, b.want)
			}
		})
	}
}

// TestMatchWhenARefundFails names it, and repairs it later.
func TestMatchWhenARefundFails(t *testing.T) {
	c := openTill(t, tillPlan{total: 1})
	l := &liar{Payments: c.e.payments, failed: true}
	c.e.payments = l
	intent := c.begin(c.reserve("ann", 1), "ann")
	c.must(c.bank.Capture(intent, 1, "EUR"))
	c.pass(0)
	if _, differences := c.match(); !slices.Equal(differences, []string{"not_repaired r1:1"}) {
		t.Fatalf("%v", differences)
	}
	l.failed = false
	if report, differences := c.match(); len(differences) != 0 || report.Repaired != 1 {
		t.Fatalf("%+v", report)
	}
	c.bankHas(intent, flashsale.PayRefunded)
}

func TestMatchWhileTheProviderIsAway(t *testing.T) {
	c := openTill(t, tillPlan{total: 1})
	c.bank.SetOutage(simpay.DownBefore)
	_, err := c.e.MatchOnce(t.Context(), c.now)
	codeIs(t, err, flashsale.CodeUnavailable)
}

func TestMatchNamesNoMoreThanItsBound(t *testing.T) {
	m := &match{}
	for range maxDifferences + 5 {
		m.differ(UnknownHere, nil, "x:1", "")
	}
	if len(m.report.Differences) != maxDifferences || m.report.Omitted != 5 {
		t.Fatalf("%d and %d", len(m.report.Differences), m.report.Omitted)
	}
}

// TestMatchWritesAmountsAsPeopleDo: an operator who compares them with a bank's page sees the same.
func TestMatchWritesAmountsAsPeopleDo(t *testing.T) {
	c := openTill(t, tillPlan{total: 1})
	m := &match{e: c.e, seed: maphash.MakeSeed(), seen: map[uint64]struct{}{}}
	theirs := &flashsale.ProviderPayment{IntentKey: "x:1", Status: flashsale.PayCaptured, Amount: 9900, Currency: "EUR"}
	c.must(m.there(t.Context(), theirs))
	c.must(m.compare(t.Context(), theirs, &flashsale.Payment{IntentKey: "x:1", State: flashsale.PaymentCaptured, AppliedTo: "r", Amount: 9900, Currency: "JPY"}))
	for i, want := range []string{"the provider has captured 99.00 EUR", "the provider has it as captured, 99.00 EUR, and here it is captured, 9900 JPY"} {
		if got := m.report.Differences[i].Detail; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestMatchGoesBackToTheLastOne: after an outage of days what the provider has captured meanwhile is found, of a payment that had failed and
// that nobody asks for any more. A match that fails is none: the next looks as far back.
func TestMatchGoesBackToTheLastOne(t *testing.T) {
	c := openTill(t, tillPlan{total: 5})
	rid := c.reserve("ann", 1)
	intent := c.begin(rid, "ann")
	c.must(c.bank.Pay(intent, flashsale.PayFailed))
	c.pass(0)
	c.did(c.e.matchJob(t.Context()))
	c.deaf = true
	c.pass(time.Hour)
	c.must(c.bank.Capture(intent, tillPrice, "EUR"))
	c.pass(5 * 24 * time.Hour)
	c.start()
	c.gate.Before = func(_ context.Context, call string) error {
		if call == "orders.PaidSince" {
			return errorf(flashsale.CodeUnavailable, "SQL does not answer")
		}
		return nil
	}
	for range 2 {
		_, err := c.e.matchJob(t.Context())
		wantCode(t, "a match that fails", err, flashsale.CodeUnavailable)
	}
	c.gate.Before = nil
	since, err := c.sql.MatchSince(t.Context())
	c.must(err)
	if ago := c.now.Sub(since); ago < 5*24*time.Hour {
		t.Errorf("a match that failed counts as one: the last was %s ago", ago)
	}
	c.did(c.e.matchJob(t.Context()))
	c.paid(intent, flashsale.PaymentCaptured, rid)
	if since, err := c.sql.MatchSince(t.Context()); err != nil || !since.Equal(c.now) {
		t.Errorf("the next looks back to %s, and it is %s: %v", since, c.now, err)
	}
}

package engine

import (
	"context"
	"fmt"
	"hash/maphash"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/simpay"
)

// openMatching is a till of which an instance runs the jobs. The provider has captured x:1, of which nobody here knows.
func openMatching(t *testing.T) (c *till, l *liar) {
	c = openTill(t, tillPlan{total: 1})
	l = &liar{Payments: c.bank, hides: map[string]bool{}}
	c.deaf = true
	_, err := c.bank.Create(t.Context(), &flashsale.Intent{Key: "x:1", Amount: 5, Currency: "EUR"})
	c.must(err)
	c.must(c.bank.Pay("x:1", flashsale.PayCaptured))
	c.instance(l)
	return c, l
}

// instance is another instance of the same sale, which runs.
func (c *till) instance(bank flashsale.Payments) *Engine {
	c.t.Helper()
	c.start()
	c.e.payments = bank
	c.e.care.started.Store(true)
	return c.e
}

// standing is for how many differences the alarm of an instance is on.
func (c *till) standing(e *Engine, want float64) {
	c.t.Helper()
	got := 0.0
	for _, a := range e.Alarms() {
		if a.Kind == AlarmPaymentsMatch {
			got = a.Value
		}
	}
	if got != want {
		c.t.Fatalf("the alarm is for %g, want %g", got, want)
	}
}

// noted is how long before now whoever takes the job over has to look.
func (c *till) noted() time.Duration {
	c.t.Helper()
	since, err := c.sql.MatchSince(c.t.Context())
	c.must(err)
	return c.now.Sub(since)
}

// TestWhatStandsIsHandedOver: whoever takes the job of matching over raises the alarm about what has differed for days, and no longer
// when it is mended; who has the job does not look at all these days again each time.
func TestWhatStandsIsHandedOver(t *testing.T) {
	c, l := openMatching(t)
	for range 2 {
		c.did(c.e.matchJob(t.Context()))
	}
	c.standing(c.e, 1)
	for range 48 {
		c.now = c.now.Add(time.Hour)
		c.did(c.e.matchJob(t.Context()))
		c.standing(c.e, 1)
	}
	since, err := c.sql.MatchSince(t.Context())
	c.must(err)
	if from := c.e.paying.matchesFrom(since); !from.Equal(c.now) {
		t.Fatalf("the next pass looks %s back", c.now.Sub(from))
	}
	c.e.endMisfits()
	c.standing(c.e, 0)
	second := c.instance(l)
	c.did(second.matchJob(t.Context()))
	c.standing(second, 0)
	c.did(second.matchJob(t.Context()))
	c.standing(second, 1)
	l.hides["x:1"] = true // the provider has mended its books
	third := c.instance(l)
	for range 2 {
		c.did(third.matchJob(t.Context()))
		c.standing(third, 0)
	}
	if ago := c.noted(); ago != 0 {
		t.Fatalf("nothing stands, and the next has to look %s back", ago)
	}
}

// TestMatchAtAnotherInstance: an operator's match comes to any instance. It raises no alarm there, which nobody would end, and has the
// one that matches look again at all that stands.
func TestMatchAtAnotherInstance(t *testing.T) {
	c, l := openMatching(t)
	has := c.e
	for range 2 {
		c.did(has.matchJob(t.Context()))
	}
	other := c.instance(l)
	for i := range 3 {
		report, err := other.MatchOnce(t.Context(), c.now.Add(-time.Hour))
		if err != nil || len(report.Differences) != 1 || report.Differences[0].Again != (i > 0) {
			t.Fatalf("%+v, %v", report, err)
		}
		c.standing(other, 0)
		c.standing(has, 1)
	}
	c.now = c.now.Add(48 * time.Hour)
	for range 2 {
		c.did(has.matchJob(t.Context()))
		c.standing(has, 1)
	}
	l.hides["x:1"] = true
	if _, err := other.MatchOnce(t.Context(), c.now.Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	c.standing(has, 1)
	c.did(has.matchJob(t.Context()))
	c.standing(has, 0)
	has.endMisfits()
	for range 2 { // what it has found itself, days ago, was judged by the one that had the job
		c.did(other.matchJob(t.Context()))
		c.standing(other, 0)
	}
}

// duringAlarm does something just before it is told that an alarm is on.
type duringAlarm struct {
	Observer
	do func()
}

func (o *duringAlarm) Alarm(kind, sku string, on bool, value float64, why string) {
	if on {
		o.do()
	}
	o.Observer.Alarm(kind, sku, on, value, why)
}

// TestLeaseLostWhileAnAlarmIsRaised: what is told last is what holds, and an alarm that nobody would end does not stay on.
func TestLeaseLostWhileAnAlarmIsRaised(t *testing.T) {
	c, _ := openMatching(t)
	c.did(c.e.matchJob(t.Context()))
	ended := make(chan struct{})
	c.e.observer = &duringAlarm{c.e.observer, func() {
		go func() {
			defer close(ended)
			c.e.endMisfits()
		}()
		select {
		case <-ended:
		case <-time.After(50 * time.Millisecond): // it waits for its turn
		}
	}}
	c.did(c.e.matchJob(t.Context()))
	<-ended
	c.standing(c.e, 0)
}

// TestMatchAskedForDuringAnother: the pass that is under way then does not hide that it was asked for.
func TestMatchAskedForDuringAnother(t *testing.T) {
	c, l := openMatching(t)
	has, other := c.e, c.instance(l)
	for range 2 {
		c.did(has.matchJob(t.Context()))
	}
	c.now = c.now.Add(48 * time.Hour)
	asked := false
	c.gate.After = func(_ context.Context, call string, _ error) error {
		if call == "orders.PaidSince" && !asked { // the pass has looked at the provider, and not yet noted how far it has come
			asked = true
			l.hides["x:1"] = true
			if _, err := other.MatchOnce(t.Context(), c.now.Add(-time.Minute)); err != nil {
				t.Error(err)
			}
		}
		return nil
	}
	c.did(has.matchJob(t.Context()))
	if c.standing(has, 1); !asked {
		t.Fatal("nobody has asked")
	}
	c.did(has.matchJob(t.Context()))
	c.standing(has, 0)
}

// TestMatchRemembersHowFarBackTheRestIs: of more differences than are remembered, what is not stands too, as far as where it was found.
func TestMatchRemembersHowFarBackTheRestIs(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	p := newPaying(&told{})
	p.matchesFrom(now)
	pass := func(from time.Time, name string, n int) (again int) {
		t.Helper()
		m := &match{from: from.Add(-matchBack)}
		for i := range n {
			m.differ(UnknownHere, nil, fmt.Sprintf("%s%d:1", name, i), "")
		}
		again = p.matching.judge(m)
		noted := p.oldest(now)
		p.matched(noted, now)
		return again
	}
	day := func(n int) time.Time { return now.Add(time.Duration(n) * 24 * time.Hour) }
	for _, step := range []struct {
		name        string
		from        time.Time
		finds       string
		n           int
		again       int
		noted, next time.Time
	}{
		{"more than it names", day(-5), "a", maxDifferences + 1, 0, day(-5), day(-5)},
		{"the same", day(-5), "a", maxDifferences + 1, maxDifferences, day(-5), day(-5)},
		{"an operator's, of the last minutes", now, "", 0, maxDifferences, day(-5), day(-5)},
		{"an operator's, of a day", day(-1), "b", 10, maxDifferences, day(-5), day(-5)},
		{"some are mended", day(-5), "a", 3, 3, day(-5), now},
		{"of the last minutes", now, "", 0, 3, day(-5), now},
		{"of the last minutes, full", now, "c", maxDifferences, 3, day(-5), day(-5)},
		{"all are mended", day(-5), "", 0, 0, now, now},
	} {
		if again := pass(step.from, step.finds, step.n); again != step.again {
			t.Errorf("%s: %d were known, want %d", step.name, again, step.again)
		}
		if noted, next := p.matching.noted, p.matching.from; !noted.Equal(step.noted) || !next.Equal(step.next) {
			t.Errorf("%s: noted %s back, goes on %s back; want %s and %s", step.name, now.Sub(noted), now.Sub(next), now.Sub(step.noted), now.Sub(step.next))
		}
	}
}

// TestMatchGoesOnWithoutWhatItHasNotAskedFor: of more payments than one match asks for nobody knows that they differ. If the next began there
// again, it would have as many, and so would all that follow.
func TestMatchGoesOnWithoutWhatItHasNotAskedFor(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	p := newPaying(&told{})
	p.matchesFrom(now)
	m := &match{from: now.Add(-30 * 24 * time.Hour), asked: maxAsked, seed: maphash.MakeSeed()}
	if err := m.here(t.Context(), &flashsale.Payment{IntentKey: "x:1", State: flashsale.PaymentCaptured}); err != nil || m.report.Omitted != 1 {
		t.Fatalf("%+v, %v", m.report, err)
	}
	p.matching.judge(m)
	p.matched(p.oldest(now), now)
	if s := &p.matching; !s.noted.Equal(now) || !s.from.Equal(now) {
		t.Fatalf("noted %s back, goes on %s back", now.Sub(s.noted), now.Sub(s.from))
	}
}

// TestMatchAfterTheSimulatedProviderWasAway: it takes up all that the match goes on with, though that was weeks ago.
func TestMatchAfterTheSimulatedProviderWasAway(t *testing.T) {
	c := openTill(t, tillPlan{total: 2})
	c.did(c.e.matchJob(t.Context()))
	rid := c.reserve("ann", 1)
	intent := c.begin(rid, "ann")
	c.must(c.bank.Pay(intent, flashsale.PayCaptured))
	c.pass(0)
	c.paid(intent, flashsale.PaymentCaptured, rid)
	c.now = c.now.Add(14 * 24 * time.Hour)
	c.bank = simpay.New(simpay.Config{Secrets: [][]byte{secretOfBank}, Now: func() time.Time { return c.now }, Deliver: c.webhook})
	c.must(c.bank.AdoptAll(t.Context(), c.sql))
	c.start()
	since, err := c.sql.MatchSince(t.Context())
	c.must(err)
	report, err := c.e.MatchOnce(t.Context(), since)
	if err != nil || report.Paid != 1 || len(report.Differences) != 0 {
		t.Fatalf("%+v, %v", report, err)
	}
}

// TestMatchSinceEver: a time that no calendar has is not handed on to those that match after it.
func TestMatchSinceEver(t *testing.T) {
	c, l := openMatching(t)
	early := &lists{Payments: l}
	c.e.payments = early
	c.did(c.e.matchJob(t.Context()))
	for _, since := range []time.Time{time.Date(0, 1, 1, 0, 5, 0, 0, time.UTC), time.Date(-300, 1, 1, 0, 0, 0, 0, time.UTC), {}} {
		if report, err := c.e.MatchOnce(t.Context(), since); err != nil || len(report.Differences) != 1 {
			t.Fatalf("%+v, %v", report, err)
		}
		for range 2 {
			c.did(c.e.matchJob(t.Context()))
		}
		c.instance(early)
		c.did(c.e.matchJob(t.Context()))
	}
	if y := early.since.UTC().Year(); y < 1969 {
		t.Fatalf("the provider is asked for what has changed since the year %d", y)
	}
}

// lists notes the earliest time that payments are listed since.
type lists struct {
	flashsale.Payments
	since time.Time
}

func (l *lists) List(ctx context.Context, since time.Time, cursor string, limit int) ([]flashsale.ProviderPayment, string, error) {
	if l.since.IsZero() || since.Before(l.since) {
		l.since = since
	}
	return l.Payments.List(ctx, since, cursor, limit)
}

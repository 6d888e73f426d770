package engine

import (
	"context"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/simpay"
)

// refuseCall refuses the first n calls of a name.
func refuseCall(name string, n int) func(context.Context, string) error {
	return func(_ context.Context, call string) error {
		if call != name || n == 0 {
			return nil
		}
		n--
		return errorf(flashsale.CodeUnavailable, "%s is away", name)
	}
}

// TestCaptureAfterTheEnd is T8: money comes for what is not reserved any more.
func TestCaptureAfterTheEnd(t *testing.T) {
	expire := func(c *till, _ string) { c.pass(hold + grace); c.jobs() }
	cancel := func(c *till, rid string) {
		_, err := c.e.Cancel(c.t.Context(), rid, "ann")
		c.must(err)
	}
	for _, b := range []struct {
		name   string
		end    func(c *till, rid string)
		ended  flashsale.State
		before func(c *till) // what happens before the capture
		reason string        // why it is refunded, "": it is not
	}{
		{"expired, with stock left", expire, flashsale.Expired, nil, ""},
		{"cancelled, with stock left", cancel, flashsale.Cancelled, nil, ""},
		{"expired, and sold to another", expire, flashsale.Expired, func(c *till) { c.reserve("bob", 1) }, "sold_out"},
		{"cancelled, and sold to another", cancel, flashsale.Cancelled, func(c *till) { c.reserve("bob", 1) }, "sold_out"},
		{"the user holds another", cancel, flashsale.Cancelled, func(c *till) { c.reserve("ann", 1) }, "purchase_limit"},
		{"the sale is paused", expire, flashsale.Expired, func(c *till) {
			_, err := c.e.PauseSale(c.t.Context(), Command{ID: "pause", Sale: c.key.Sale, Reason: "a look", By: "test"})
			c.must(err)
		}, "not_open"},
		{"the sale is over", expire, flashsale.Expired, func(c *till) { c.pass(31 * 24 * time.Hour) }, "not_open"},
	} {
		for _, deaf := range []bool{false, true} {
			t.Run(b.name+map[bool]string{true: ", no webhook"}[deaf], func(t *testing.T) {
				c := openTill(t, tillPlan{total: 1})
				rid := c.reserve("ann", 1)
				intent := c.begin(rid, "ann")
				b.end(c, rid)
				c.is(rid, b.ended)
				if b.before != nil {
					b.before(c)
				}
				c.pass(0)
				c.deaf = deaf
				c.must(c.bank.Capture(intent, tillPrice, "EUR"))
				c.pass(0)
				if deaf { // a payment that is void here is looked at by the match alone
					_, err := c.e.MatchOnce(t.Context(), c.now.Add(-time.Hour))
					c.must(err)
				}
				c.jobs()
				c.is(rid, b.ended)
				derived := flashsale.DerivedRID(intent)
				if b.reason == "" {
					c.is(derived, flashsale.Confirmed)
					c.paid(intent, flashsale.PaymentCaptured, derived)
					if r := c.row(derived); r.Origin != intent || r.User != "ann" || c.told.moved["T8"] != 1 {
						t.Fatalf("%+v, %v", r, c.told.moved)
					}
				} else {
					c.is(derived, flashsale.Rejected)
					c.paid(intent, flashsale.PaymentRefunded, "")
					c.bankHas(intent, flashsale.PayRefunded)
					if c.told.moved["T9 "+b.reason] != 1 {
						t.Fatalf("want a refund for %s: %v", b.reason, c.told.moved)
					}
				}
				c.holds()
			})
		}
	}
}

// TestSQLRefusesT8: the Stock has a unit and SQL says no, or nobody decides in time.
func TestSQLRefusesT8(t *testing.T) {
	c := openTill(t, tillPlan{total: 1})
	rid := c.reserve("ann", 1)
	intent := c.begin(rid, "ann")
	_, err := c.e.Cancel(t.Context(), rid, "ann")
	c.must(err)
	c.must(c.bank.Capture(intent, tillPrice, "EUR"))
	c.pass(0)
	derived := flashsale.DerivedRID(intent)
	c.paid(intent, flashsale.PaymentCaptured, "")
	for range 3 { // it waits, however often it is looked at
		c.did(c.e.PollOnce(t.Context()))
		c.paid(intent, flashsale.PaymentCaptured, "")
	}
	c.pass(flashsale.PendingFor + time.Second)
	c.did(c.e.SweepOnce(t.Context())) // T2
	c.is(derived, flashsale.Rejected)
	c.jobs()
	c.paid(intent, flashsale.PaymentRefunded, "")
	c.holds()
	c.reserve("bob", 1)
}

// TestT8WaitsWhileTheStockIsAway: a fault is no refusal.
func TestT8WaitsWhileTheStockIsAway(t *testing.T) {
	c := openTill(t, tillPlan{total: 1})
	rid := c.reserve("ann", 1)
	intent := c.begin(rid, "ann")
	_, err := c.e.Cancel(t.Context(), rid, "ann")
	c.must(err)
	c.gate.Before = refuseCall("stock.Reserve", 4) // each look asks twice
	c.must(c.bank.Capture(intent, tillPrice, "EUR"))
	c.pass(0)
	_, err = c.e.PollOnce(t.Context())
	codeIs(t, err, flashsale.CodeUnavailable)
	c.paid(intent, flashsale.PaymentCaptured, "")
	c.jobs()
	c.is(flashsale.DerivedRID(intent), flashsale.Confirmed)
	c.holds()
}

// TestPaidTwice is T9: two intents of one reservation are captured, and one of them is given back.
func TestPaidTwice(t *testing.T) {
	t.Run("the first one after the second", func(t *testing.T) {
		c := openTill(t, tillPlan{total: 2, limit: 2})
		rid, first, second := c.twoAttempts()
		c.must(c.bank.Pay(second, flashsale.PayCaptured))
		c.pass(0)
		c.must(c.bank.Capture(first, tillPrice, "EUR"))
		c.pass(0)
		c.is(rid, flashsale.Confirmed)
		c.paid(second, flashsale.PaymentCaptured, rid)
		c.paid(first, flashsale.PaymentRefunded, "")
		c.bankHas(first, flashsale.PayRefunded)
		c.holds()
	})
	for name, k := range map[string]struct {
		bank   simpay.Behaviour
		outage simpay.Outage
		atOnce flashsale.PayStatus // of the second, as soon as the first has paid
		then   flashsale.PayStatus
	}{
		"the first one while the second is open": {simpay.Behaviour{}, simpay.Up, flashsale.PayVoid, flashsale.PayVoid},
		"and the second as well":                 {simpay.Behaviour{VoidTooLate: 1}, simpay.Up, flashsale.PayRefunded, flashsale.PayRefunded},
		"and the void is not decided at once":    {simpay.Behaviour{VoidLater: 1, VoidTime: simpay.Range{Min: time.Minute}}, simpay.Up, flashsale.PayOpen, flashsale.PayVoid},
		"nor is it, and the second comes too": {
			simpay.Behaviour{VoidLater: 1, VoidTime: simpay.Range{Min: time.Minute}, VoidTooLate: 1}, simpay.Up, flashsale.PayOpen, flashsale.PayRefunded,
		},
		"while the provider is away":     {simpay.Behaviour{}, simpay.DownBefore, flashsale.PayOpen, flashsale.PayVoid},
		"while its answers are all lost": {simpay.Behaviour{}, simpay.DownAfter, flashsale.PayVoid, flashsale.PayVoid},
	} {
		t.Run(name, func(t *testing.T) {
			c := openTill(t, tillPlan{total: 2, limit: 2})
			rid, first, second := c.twoAttempts()
			c.bank.SetBehaviour(k.bank)
			c.must(c.bank.Capture(first, tillPrice, "EUR"))
			c.bank.SetOutage(k.outage)
			c.pass(0)
			c.is(rid, flashsale.Confirmed)
			c.paid(first, flashsale.PaymentCaptured, rid)
			c.bankHas(second, k.atOnce)
			c.bank.SetOutage(simpay.Up)
			c.pass(10 * time.Second)
			c.jobs()
			c.pass(2 * time.Minute)
			c.jobs()
			c.bankHas(second, k.then)
			c.paid(second, map[flashsale.PayStatus]flashsale.PaymentState{
				flashsale.PayVoid: flashsale.PaymentVoid, flashsale.PayRefunded: flashsale.PaymentRefunded,
			}[k.then], "")
			if n := c.told.moved["T9 paid_twice"]; (n == 1) != (k.then == flashsale.PayRefunded) {
				t.Errorf("%d refunds for paying twice", n)
			}
			c.holds()
		})
	}
}

// TestTheWebhooksOfTwoAttemptsAreLost: the match finds that the first attempt has paid, and the second is void at once.
func TestTheWebhooksOfTwoAttemptsAreLost(t *testing.T) {
	c := openTill(t, tillPlan{total: 2, limit: 2})
	rid, first, second := c.twoAttempts()
	c.deaf = true
	c.must(c.bank.Capture(first, tillPrice, "EUR"))
	c.pass(0)
	c.is(rid, flashsale.Confirming)
	report, err := c.e.MatchOnce(t.Context(), c.now)
	if err != nil || report.Repaired != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	c.is(rid, flashsale.Confirmed)
	c.bankHas(second, flashsale.PayVoid)
	c.paid(second, flashsale.PaymentVoid, "")
	c.holds()
}

// TestPaidTwiceAfterTheEnd: both attempts to pay for what has ended are captured after all. T8 is for one of them, whether the other
// comes later or both are under way.
func TestPaidTwiceAfterTheEnd(t *testing.T) {
	for _, between := range []bool{true, false} {
		t.Run(map[bool]string{true: "one after the other", false: "at once"}[between], func(t *testing.T) {
			c := openTill(t, tillPlan{total: 2, limit: 2})
			rid, first, second := c.twoAttempts()
			_, err := c.e.Cancel(t.Context(), rid, "ann")
			c.must(err)
			c.pass(0)
			c.must(c.bank.Capture(second, tillPrice, "EUR"))
			c.pass(0)
			if between {
				c.jobs()
			}
			c.must(c.bank.Capture(first, tillPrice, "EUR"))
			c.pass(0)
			c.jobs()
			if n := c.told.moved["T9 paid_twice"]; n != 1 {
				t.Fatalf("%d refunds for paying twice: %v", n, c.told.moved)
			}
			if between {
				c.paid(second, flashsale.PaymentCaptured, flashsale.DerivedRID(second))
			}
			c.holds()
		})
	}
}

func (c *till) twoAttempts() (rid, first, second string) {
	c.t.Helper()
	rid = c.reserve("ann", 1)
	first = c.begin(rid, "ann")
	c.must(c.bank.Pay(first, flashsale.PayFailed))
	c.pass(0)
	second = c.begin(rid, "ann")
	return rid, first, second
}

// TestARefundIsRepeatedUntilItIsMade while the provider is away, before or after it has done it.
func TestARefundIsRepeatedUntilItIsMade(t *testing.T) {
	for name, outage := range map[string]simpay.Outage{"before": simpay.DownBefore, "after": simpay.DownAfter} {
		t.Run(name, func(t *testing.T) {
			c := openTill(t, tillPlan{total: 2, limit: 2})
			_, first, second := c.twoAttempts()
			c.must(c.bank.Pay(second, flashsale.PayCaptured))
			c.pass(0)
			c.bank.SetOutage(outage)
			c.must(c.bank.Capture(first, tillPrice, "EUR"))
			c.deaf = outage == simpay.DownAfter // the webhook of the refund would tell it
			c.must(c.event("evt_1", first, flashsale.PayCaptured, tillPrice, "EUR"))
			c.paid(first, flashsale.PaymentRefunding, "")
			c.did(c.e.PollOnce(t.Context()))
			c.paid(first, flashsale.PaymentRefunding, "")
			c.bank.SetOutage(simpay.Up)
			c.did(c.e.PollOnce(t.Context()))
			c.paid(first, flashsale.PaymentRefunded, "")
			c.holds()
		})
	}
}

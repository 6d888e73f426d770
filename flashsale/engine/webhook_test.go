package engine

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/simpay"
)

// TestWebhooksMisbehave: whatever they do, a payment ends the same; with none of them, the poller alone does it.
func TestWebhooksMisbehave(t *testing.T) {
	for name, b := range map[string]simpay.Behaviour{
		"as they should": {},
		"twice":          {Twice: 1},
		"late":           {Late: 1, LateBy: 20 * time.Minute},
		"reordered":      {Reordered: 1, LateBy: 20 * time.Minute},
		"lost":           {Lost: 1},
		"all at once":    {Lost: 0.3, Twice: 0.5, Late: 0.5, LateBy: time.Minute, Reordered: 0.5, Webhook: simpay.Range{Max: time.Minute}, Misreport: 0.3},
	} {
		t.Run(name, func(t *testing.T) {
			c := openTill(t, tillPlan{total: 3, bank: b})
			ann, bob, eve := c.reserve("ann", 1), c.reserve("bob", 1), c.reserve("eve", 1)
			paid, failed := c.begin(ann, "ann"), c.begin(bob, "bob")
			c.begin(eve, "eve")
			c.must(c.bank.Pay(paid, flashsale.PayCaptured))
			c.must(c.bank.Pay(failed, flashsale.PayFailed))
			for range 8 {
				c.pass(5 * time.Minute)
				c.jobs()
			}
			c.is(ann, flashsale.Confirmed)
			c.is(bob, flashsale.Expired)
			c.is(eve, flashsale.Expired)
			c.pass(time.Hour)
			c.holds()
		})
	}
}

func TestAWebhookWithAnotherAmount(t *testing.T) {
	for name, b := range map[string]struct {
		amount   int64
		currency string
		code     flashsale.Code
	}{"amount": {tillPrice - 1, "EUR", flashsale.CodeAmountMismatch}, "currency": {tillPrice, "USD", flashsale.CodeCurrencyMismatch}} {
		t.Run(name+", and the provider says otherwise", func(t *testing.T) {
			c := openTill(t, tillPlan{total: 1})
			rid := c.reserve("ann", 1)
			intent := c.begin(rid, "ann")
			before := *c.row(rid)
			codeIs(t, c.event("evt_1", intent, flashsale.PayCaptured, b.amount, b.currency), b.code)
			if after := *c.row(rid); after != before {
				t.Fatalf("was %+v, is %+v", before, after)
			}
			c.paid(intent, flashsale.PaymentLive, "")
			if seen, err := c.sql.SeenEvent(t.Context(), "evt_1"); err != nil || seen {
				t.Fatalf("the event counts as taken: %v, %v", seen, err)
			}
			c.bank.SetOutage(simpay.DownAfter)
			codeIs(t, c.event("evt_1", intent, flashsale.PayCaptured, b.amount, b.currency), flashsale.CodeUnavailable)
			c.paid(intent, flashsale.PaymentLive, "")
		})
		t.Run(name+", and so says the provider", func(t *testing.T) {
			c := openTill(t, tillPlan{total: 1})
			rid := c.reserve("ann", 1)
			intent := c.begin(rid, "ann")
			c.must(c.bank.Capture(intent, b.amount, b.currency))
			c.pass(0)
			c.bankHas(intent, flashsale.PayRefunded)
			c.paid(intent, flashsale.PaymentRefunded, "")
			c.is(rid, flashsale.Reserved)
			again := c.begin(rid, "ann")
			c.must(c.bank.Pay(again, flashsale.PayCaptured))
			c.pass(0)
			c.is(rid, flashsale.Confirmed)
			c.jobs()
			c.holds()
		})
	}
}

func TestWebhookBadInput(t *testing.T) {
	c := openTill(t, tillPlan{total: 1})
	rid := c.reserve("ann", 1)
	intent := c.begin(rid, "ann")
	body := []byte(`{"id":"evt_1","data":{"intent":"` + intent + `","status":"captured","amount":500,"currency":"EUR"}}`)
	signed := func(secret string, at time.Time, body []byte) http.Header {
		return http.Header{simpay.SignatureHeader: {simpay.Sign([][]byte{[]byte(secret)}, at, body)}}
	}
	for _, b := range []struct {
		name   string
		header http.Header
		body   []byte
		code   flashsale.Code
	}{
		{"forged", signed("a guess", c.now, body), body, flashsale.CodeInvalidSignature},
		{"without a signature", nil, body, flashsale.CodeInvalidSignature},
		{"of another body", signed(string(secretOfBank), c.now, []byte("{}")), body, flashsale.CodeInvalidSignature},
		{"old", signed(string(secretOfBank), c.now.Add(-6*time.Minute), body), body, flashsale.CodeInvalidSignature},
		{"of tomorrow", signed(string(secretOfBank), c.now.Add(24*time.Hour), body), body, flashsale.CodeInvalidSignature},
		{"very long", nil, make([]byte, maxBody+1), flashsale.CodeInvalidArgument},
	} {
		t.Run(b.name, func(t *testing.T) { codeIs(t, c.e.Webhook(t.Context(), b.header, b.body), b.code) })
	}
	for _, b := range []struct {
		name, id, intent string
		status           flashsale.PayStatus
		code             flashsale.Code
	}{
		{"without an id", "", intent, flashsale.PayCaptured, flashsale.CodeInvalidArgument},
		{"without a payment", "evt_2", "", flashsale.PayCaptured, flashsale.CodeInvalidArgument},
		{"of no status", "evt_3", intent, "paid?", flashsale.CodeInvalidArgument},
		{"of an unknown payment", "evt_4", "nobody:1", flashsale.PayCaptured, flashsale.CodeUnknownPayment},
		{"of no payment's key", "evt_5", "'; drop table payment", flashsale.PayCaptured, flashsale.CodeUnknownPayment},
	} {
		t.Run(b.name, func(t *testing.T) { codeIs(t, c.event(b.id, b.intent, b.status, tillPrice, "EUR"), b.code) })
	}
	c.is(rid, flashsale.Confirming)
	c.paid(intent, flashsale.PaymentLive, "")
}

// TestAReplayedEventChangesNothing: the same event again, and old ones after newer ones.
func TestAReplayedEventChangesNothing(t *testing.T) {
	c := openTill(t, tillPlan{total: 1})
	rid := c.reserve("ann", 1)
	intent := c.begin(rid, "ann")
	c.deaf = true
	c.must(c.bank.Pay(intent, flashsale.PayCaptured))
	c.must(c.event("evt_2", intent, flashsale.PayCaptured, tillPrice, "EUR"))
	want := *c.row(rid)
	for _, e := range []struct {
		id     string
		status flashsale.PayStatus
	}{{"evt_2", flashsale.PayCaptured}, {"evt_3", flashsale.PayCaptured}, {"evt_1", flashsale.PayOpen}, {"evt_0", flashsale.PayFailed}, {"evt_4", flashsale.PayVoid}} {
		c.must(c.event(e.id, intent, e.status, tillPrice, "EUR"))
		if got := *c.row(rid); got != want {
			t.Fatalf("event %s (%s) makes %+v of %+v", e.id, e.status, got, want)
		}
	}
	c.jobs()
	c.holds()
}

// TestAWebhookComesAgainUntilSQLHasIt: nothing is lost while SQL is away.
func TestAWebhookComesAgainUntilSQLHasIt(t *testing.T) {
	c := openTill(t, tillPlan{total: 1})
	rid := c.reserve("ann", 1)
	intent := c.begin(rid, "ann")
	c.gate.Before = refuseCall("orders.Outcome", 2)
	c.must(c.bank.Pay(intent, flashsale.PayCaptured))
	c.pass(time.Minute)
	if len(c.refused) != 2 || !errors.Is(c.refused[1], &flashsale.Error{Code: flashsale.CodeUnavailable}) {
		t.Fatalf("%v", c.refused)
	}
	c.is(rid, flashsale.Confirmed)
}

// TestEventsAreForgotten once they are older than any message of a provider can be; one that comes even so, signed anew, changes nothing.
func TestEventsAreForgotten(t *testing.T) {
	c := openTill(t, tillPlan{total: 1})
	rid := c.reserve("ann", 1)
	intent := c.begin(rid, "ann")
	c.must(c.bank.Capture(intent, tillPrice, "EUR"))
	c.must(c.event("evt_1", intent, flashsale.PayCaptured, tillPrice, "EUR"))
	remembered := func() bool {
		t.Helper()
		seen, err := c.sql.SeenEvent(t.Context(), "evt_1")
		c.must(err)
		return seen
	}
	c.pass(flashsale.EventsFor - time.Second)
	c.jobs()
	if !remembered() {
		t.Fatal("it is forgotten too early")
	}
	c.pass(time.Second)
	c.jobs()
	if remembered() {
		t.Fatal("it is not forgotten")
	}
	before, moved := *c.row(rid), c.told.moved["T4"]
	for _, status := range []flashsale.PayStatus{flashsale.PayCaptured, flashsale.PayFailed, flashsale.PayVoid} {
		c.must(c.event("evt_1", intent, status, tillPrice, "EUR"))
		c.must(c.event("evt_"+string(status), intent, status, tillPrice, "EUR"))
	}
	if after := *c.row(rid); after != before || c.told.moved["T4"] != moved {
		t.Fatalf("was %+v, is %+v", before, after)
	}
	c.paid(intent, flashsale.PaymentCaptured, rid)
	c.holds()
}

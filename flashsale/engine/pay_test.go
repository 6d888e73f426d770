package engine

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/simpay"
)

func TestPay(t *testing.T) {
	c := openTill(t, tillPlan{total: 1})
	rid := c.reserve("ann", 1)
	intent := c.begin(rid, "ann")
	if again := c.begin(rid, "ann"); again != intent {
		t.Fatalf("a second call begins %s; %s is under way", again, intent)
	}
	_, err := c.e.Pay(t.Context(), rid, "bob")
	codeIs(t, err, flashsale.CodeNotFound)
	_, err = c.e.Pay(t.Context(), "nobody", "ann")
	codeIs(t, err, flashsale.CodeNotFound)
	_, err = c.e.Pay(t.Context(), "no id", "ann")
	codeIs(t, err, flashsale.CodeInvalidArgument)
	c.must(c.bank.Pay(intent, flashsale.PayCaptured))
	c.pass(0)
	c.is(rid, flashsale.Confirmed)
	c.paid(intent, flashsale.PaymentCaptured, rid)
	_, err = c.e.Pay(t.Context(), rid, "ann")
	codeIs(t, err, flashsale.CodeInvalidState)
	if c.told.moved["T3"] != 1 || c.told.moved["T4"] != 1 || len(c.refused) != 0 {
		t.Fatalf("%v, %v", c.told.moved, c.refused)
	}
	c.holds()
}

func TestPayPastItsTime(t *testing.T) {
	c := openTill(t, tillPlan{total: 1})
	rid := c.reserve("ann", 1)
	c.pass(hold)
	_, err := c.e.Pay(t.Context(), rid, "ann")
	codeIs(t, err, flashsale.CodePastDeadline)
}

func TestPayWithoutAProvider(t *testing.T) {
	c := openTill(t, tillPlan{total: 1})
	c.e.payments = nil
	_, err := c.e.Pay(t.Context(), "r1", "ann")
	codeIs(t, err, flashsale.CodeInvalidState)
	codeIs(t, c.e.Webhook(t.Context(), nil, nil), flashsale.CodeInvalidState)
	if n := c.did(c.e.PollOnce(t.Context())); n != 0 {
		t.Fatal(n)
	}
	_, err = c.e.MatchOnce(t.Context(), c.now)
	codeIs(t, err, flashsale.CodeInvalidState)
}

// TestPayAfterAFailure has a shopper fail, pay again at once, and the webhook of the failure not come.
func TestPayAfterAFailure(t *testing.T) {
	c := openTill(t, tillPlan{total: 1})
	c.deaf = true
	rid := c.reserve("ann", 1)
	first := c.begin(rid, "ann")
	c.must(c.bank.Pay(first, flashsale.PayFailed))
	second := c.begin(rid, "ann")
	if second == first {
		t.Fatal("a payment that has failed is gone on with")
	}
	c.must(c.bank.Pay(second, flashsale.PayCaptured))
	a, err := c.e.Pay(t.Context(), rid, "ann")
	if err != nil || a.State != flashsale.Confirmed || a.URL != "" {
		t.Fatalf("%+v, %v", a, err)
	}
	c.paid(first, flashsale.PaymentFailed, "")
	c.paid(second, flashsale.PaymentCaptured, rid)
	c.holds()
}

func TestPayWhileTheProviderIsAway(t *testing.T) {
	for name, outage := range map[string]simpay.Outage{"before": simpay.DownBefore, "after": simpay.DownAfter} {
		t.Run(name, func(t *testing.T) {
			c := openTill(t, tillPlan{total: 1})
			rid := c.reserve("ann", 1)
			c.bank.SetOutage(outage)
			a, err := c.e.Pay(t.Context(), rid, "ann")
			codeIs(t, err, flashsale.CodeUnavailable)
			if a.State != flashsale.Confirming || a.URL != "" {
				t.Fatalf("%+v", a)
			}
			c.bank.SetOutage(simpay.Up)
			if intent := c.begin(rid, "ann"); intent != a.IntentKey {
				t.Fatalf("%s begins anew; %s was begun", intent, a.IntentKey)
			}
		})
	}
}

// TestThePollerMakesWhatWasNotMade has whoever began a payment die before the provider heard of it.
func TestThePollerMakesWhatWasNotMade(t *testing.T) {
	c := openTill(t, tillPlan{total: 1})
	rid := c.reserve("ann", 1)
	c.bank.SetOutage(simpay.DownBefore)
	a, _ := c.e.Pay(t.Context(), rid, "ann")
	c.bank.SetOutage(simpay.Up)
	c.jobs()
	if _, ok := c.bank.Record(a.IntentKey); ok {
		t.Fatal("the poller did not wait")
	}
	c.pass(10 * time.Second)
	c.jobs()
	c.bankHas(a.IntentKey, flashsale.PayOpen)
	c.is(rid, flashsale.Confirming)
}

func TestCancel(t *testing.T) {
	c := openTill(t, tillPlan{total: 1})
	rid := c.reserve("ann", 1)
	_, err := c.e.Cancel(t.Context(), rid, "bob")
	codeIs(t, err, flashsale.CodeNotFound)
	for range 2 {
		r, err := c.e.Cancel(t.Context(), rid, "ann")
		if err != nil || r.State != flashsale.Cancelled || r.Reason != flashsale.ReasonByOwner {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if c.told.moved["T5"] != 1 {
		t.Fatalf("%v", c.told.moved)
	}
	c.reserve("bob", 1) // the stock has it back at once
	c.jobs()
	c.holds()
}

func TestCancelWhilePaying(t *testing.T) {
	later := simpay.Behaviour{VoidLater: 1, VoidTime: simpay.Range{Min: time.Minute}}
	for _, b := range []struct {
		name    string
		bank    simpay.Behaviour
		outage  simpay.Outage
		code    flashsale.Code // of the first call
		between func(c *till, intent string)
		again   flashsale.Code // of a second
		state   flashsale.State
		status  flashsale.PayStatus
	}{
		{"void", simpay.Behaviour{}, simpay.Up, "", nil, "", flashsale.Cancelled, flashsale.PayVoid},
		{"captured after the void was asked for", simpay.Behaviour{VoidTooLate: 1}, simpay.Up, flashsale.CodeInvalidState, nil, flashsale.CodeInvalidState, flashsale.Confirmed, flashsale.PayCaptured},
		{"void later", later, simpay.Up, flashsale.CodeBusy, func(c *till, _ string) { c.pass(time.Minute) }, "", flashsale.Cancelled, flashsale.PayVoid},
		{"void later, and paid", later, simpay.Up, flashsale.CodeBusy, func(c *till, intent string) { c.must(c.bank.Pay(intent, flashsale.PayCaptured)) }, flashsale.CodeInvalidState, flashsale.Confirmed, flashsale.PayCaptured},
		{"provider away", simpay.Behaviour{}, simpay.DownBefore, flashsale.CodeUnavailable, nil, "", flashsale.Cancelled, flashsale.PayVoid},
		{"answer lost", simpay.Behaviour{}, simpay.DownAfter, flashsale.CodeUnavailable, nil, "", flashsale.Cancelled, flashsale.PayVoid},
	} {
		t.Run(b.name, func(t *testing.T) {
			c := openTill(t, tillPlan{total: 1, bank: b.bank})
			rid := c.reserve("ann", 1)
			intent := c.begin(rid, "ann")
			c.bank.SetOutage(b.outage)
			_, err := c.e.Cancel(t.Context(), rid, "ann")
			if b.code == "" {
				c.must(err)
			} else {
				codeIs(t, err, b.code)
			}
			c.bank.SetOutage(simpay.Up)
			if b.between != nil {
				b.between(c, intent)
			}
			_, err = c.e.Cancel(t.Context(), rid, "ann")
			if b.again == "" {
				c.must(err)
			} else {
				codeIs(t, err, b.again)
			}
			c.is(rid, b.state)
			c.bankHas(intent, b.status)
			c.pass(time.Hour)
			c.jobs()
			c.holds()
		})
	}
}

// TestCancelBeforeTheIntentIsMade: the call that makes it may come later, and must find it void.
func TestCancelBeforeTheIntentIsMade(t *testing.T) {
	c := openTill(t, tillPlan{total: 1})
	rid := c.reserve("ann", 1)
	c.bank.SetOutage(simpay.DownBefore)
	a, _ := c.e.Pay(t.Context(), rid, "ann")
	c.bank.SetOutage(simpay.Up)
	_, err := c.e.Cancel(t.Context(), rid, "ann")
	c.must(err)
	late := flashsale.Intent{Key: a.IntentKey, Amount: tillPrice, Currency: "EUR"}
	p, err := c.bank.Create(t.Context(), &late)
	if err != nil || p.Status != flashsale.PayVoid {
		t.Fatalf("%+v, %v", p, err)
	}
	c.is(rid, flashsale.Cancelled)
}

func TestCancelByAnOperator(t *testing.T) {
	c := openTill(t, tillPlan{total: 1})
	rid := c.reserve("ann", 1)
	c.begin(rid, "ann")
	for _, bad := range []struct{ rid, by, reason string }{{rid, "", "r"}, {rid, "eve", ""}, {"no id", "eve", "r"}} {
		_, err := c.e.CancelFor(t.Context(), bad.rid, bad.by, bad.reason)
		codeIs(t, err, flashsale.CodeInvalidArgument)
	}
	c.is(rid, flashsale.Confirming)
	r, err := c.e.CancelFor(t.Context(), rid, "eve", "the shopper has called")
	if err != nil || r.State != flashsale.Cancelled || r.Reason != "the shopper has called" {
		t.Fatalf("%+v, %v", r, err)
	}
	_, err = c.e.CancelFor(t.Context(), "nobody", "eve", "r")
	codeIs(t, err, flashsale.CodeNotFound)
	c.jobs()
	c.holds()
}

// TestTheProviderIsDownForAnHour: what is being paid is neither sold nor given back, and somebody is told.
func TestTheProviderIsDownForAnHour(t *testing.T) {
	for name, b := range map[string]struct {
		shopper flashsale.PayStatus
		want    flashsale.State
	}{"nobody has paid": {"", flashsale.Expired}, "paid": {flashsale.PayCaptured, flashsale.Confirmed}, "failed": {flashsale.PayFailed, flashsale.Expired}} {
		t.Run(name, func(t *testing.T) {
			c := openTill(t, tillPlan{total: 1})
			c.deaf = true
			rid := c.reserve("ann", 1)
			intent := c.begin(rid, "ann")
			c.bank.SetOutage(simpay.DownBefore)
			for range 60 {
				c.pass(time.Minute)
				c.did(c.e.PollOnce(t.Context()))
				_, _ = c.e.SweepOnce(t.Context()) // it may say that it cannot settle
				c.is(rid, flashsale.Confirming)
			}
			if !c.told.alarms[AlarmProvider] {
				t.Fatal("nobody was told")
			}
			if b.shopper != "" {
				c.must(c.bank.Pay(intent, b.shopper))
			}
			c.bank.SetOutage(simpay.Up)
			c.did(c.e.SweepOnce(t.Context()))
			c.is(rid, b.want)
			if c.told.alarms[AlarmProvider] {
				t.Fatal("the alarm stays on")
			}
			c.jobs()
			c.holds()
		})
	}
}

// TestNothingExpiresBeforeTheTimeToPayIsOver: I10.
func TestNothingExpiresBeforeTheTimeToPayIsOver(t *testing.T) {
	c := openTill(t, tillPlan{total: 1})
	rid := c.reserve("ann", 1)
	c.pass(hold - time.Second)
	intent := c.begin(rid, "ann")
	until := c.row(rid).Until
	if left := until.Sub(c.now); left != flashsale.DefaultPayTime {
		t.Fatalf("%s to pay", left)
	}
	c.pass(flashsale.DefaultPayTime - time.Millisecond)
	c.jobs()
	c.is(rid, flashsale.Confirming)
	c.bankHas(intent, flashsale.PayOpen)
	c.pass(time.Millisecond + grace)
	c.jobs()
	c.is(rid, flashsale.Expired)
	c.bankHas(intent, flashsale.PayVoid)
	c.holds()
}

// TestAVoidThatIsNotDecidedHolds: T7 waits for the provider's word.
func TestAVoidThatIsNotDecidedHolds(t *testing.T) {
	for name, tooLate := range map[string]float64{"void": 0, "captured": 1} {
		t.Run(name, func(t *testing.T) {
			c := openTill(t, tillPlan{total: 1, bank: simpay.Behaviour{VoidLater: 1, VoidTime: simpay.Range{Min: time.Hour}, VoidTooLate: tooLate}})
			c.deaf = true
			rid := c.reserve("ann", 1)
			c.begin(rid, "ann")
			c.pass(hold + grace)
			for range 5 {
				c.jobs()
				c.is(rid, flashsale.Confirming)
				c.pass(10 * time.Minute)
			}
			c.pass(10 * time.Minute)
			c.jobs()
			c.is(rid, map[float64]flashsale.State{0: flashsale.Expired, 1: flashsale.Confirmed}[tooLate])
			c.holds()
		})
	}
}

// TestThePollerReachesEverybody: those who pay slowly do not hide the others, and refunds do not wait behind them.
func TestThePollerReachesEverybody(t *testing.T) {
	c := openTill(t, tillPlan{total: 30})
	c.deaf = true
	c.e.cfg.Paying.Batch = 4
	var rids, intents []string
	for range 20 {
		user := string(rune('a' + len(rids)))
		rids = append(rids, c.reserve(user, 1))
		intents = append(intents, c.begin(rids[len(rids)-1], user))
		c.pass(time.Second)
	}
	c.pass(10 * time.Second)
	c.must(c.bank.Pay(intents[19], flashsale.PayCaptured))
	c.must(c.bank.Capture(intents[0], 1, "EUR"))
	for range 5 {
		c.did(c.e.PollOnce(t.Context()))
	}
	c.is(rids[19], flashsale.Confirmed)
	c.bankHas(intents[0], flashsale.PayRefunded)
}

// TestManyAreLookedAtTogether by the poller and by the sweeper.
func TestManyAreLookedAtTogether(t *testing.T) {
	c := openTill(t, tillPlan{total: 40})
	c.deaf = true
	c.e.cfg.Paying.Parallel = 8
	var rids []string
	for i := range 40 {
		user := fmt.Sprint("u", i)
		rid := c.reserve(user, 1)
		rids = append(rids, rid)
		intent := c.begin(rid, user)
		if i%2 == 0 {
			c.must(c.bank.Pay(intent, flashsale.PayCaptured))
		}
	}
	c.pass(10 * time.Second)
	if n := c.did(c.e.PollOnce(t.Context())); n != 20 {
		t.Fatalf("%d payments moved; want 20", n)
	}
	c.pass(hold + grace)
	c.did(c.e.SweepOnce(t.Context()))
	for i, rid := range rids {
		c.is(rid, []flashsale.State{flashsale.Confirmed, flashsale.Expired}[i%2])
	}
	c.jobs()
	c.holds()
}

// panicking is a provider with a fault.
type panicking struct {
	flashsale.Payments
	known []flashsale.ProviderPayment
}

func (p panicking) Query(context.Context, string) (*flashsale.ProviderPayment, error) {
	return &p.known[0], nil // there is none
}

// TestAPanicOfTheProviderEndsNoPoll: the other payments go on.
func TestAPanicOfTheProviderEndsNoPoll(t *testing.T) {
	c := openTill(t, tillPlan{total: 3})
	c.deaf = true
	rid, first, _ := c.twoAttempts()
	c.must(c.bank.Capture(first, 1, "EUR")) // a refund is owed, and a live payment makes the poller panic
	c.must(c.event("evt_1", first, flashsale.PayCaptured, 1, "EUR"))
	c.pass(10 * time.Second)
	bank := c.e.payments
	c.e.payments = panicking{Payments: bank}
	_, err := c.e.PollOnce(t.Context())
	codeIs(t, err, flashsale.CodeInternal)
	c.e.payments = bank
	c.bankHas(first, flashsale.PayRefunded)
	c.is(rid, flashsale.Confirming)
}

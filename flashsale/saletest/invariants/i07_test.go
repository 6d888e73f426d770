package invariants

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/flashsale/simpay"
)

// pollAge is after how long without news the poller asks for a payment.
const pollAge = 10 * time.Second

// till is a payment of one unit, and what came of it.
type till struct {
	*world
	user, rid, intent string
}

// captured has the provider take the money, its webhook lost.
func (c *till) captured(amount int64, currency string) {
	c.Helper()
	c.deaf.Store(true)
	c.must(c.bank.Capture(c.intent, amount, currency))
	c.bankSteps()
	c.deaf.Store(false)
}

// expired lets the time of the payment pass, and has it void.
func (c *till) expired() {
	c.Helper()
	c.clock.advance(hold + grace)
	c.sweep()
	c.is(c.rid, flashsale.Expired)
	c.bankHas(flashsale.PayVoid)
}

func (c *till) bankHas(want flashsale.PayStatus) {
	c.Helper()
	if r, _ := c.bank.Record(c.intent); r.Status != want {
		c.Fatalf("the provider has %s as %s; want %s", c.intent, r.Status, want)
	}
}

// ends fails unless the payment has paid for a reservation, "" for one that was refunded.
func (c *till) ends(appliedTo string) {
	c.Helper()
	p, err := c.sql.Payment(c.Context(), c.intent)
	c.must(err)
	if appliedTo == "" {
		c.bankHas(flashsale.PayRefunded)
		if p.State != flashsale.PaymentRefunded || p.AppliedTo != "" {
			c.Fatalf("I7: %s is %s (%s), applied to %q; want it refunded", c.intent, p.State, p.Reason, p.AppliedTo)
		}
		return
	}
	c.bankHas(flashsale.PayCaptured)
	if p.State != flashsale.PaymentCaptured || p.AppliedTo != appliedTo {
		c.Fatalf("I7: %s is %s (%s), applied to %q; want %q", c.intent, p.State, p.Reason, p.AppliedTo, appliedTo)
	}
	c.is(appliedTo, flashsale.Confirmed)
}

// waits fails if the payment has come to its end already.
func (c *till) waits() {
	c.Helper()
	p, err := c.sql.Payment(c.Context(), c.intent)
	c.must(err)
	if p.State == flashsale.PaymentRefunded || p.AppliedTo != "" {
		c.Fatalf("%s is %s already", c.intent, p.State)
	}
}

// hear sends a webhook about the payment; each has an event of its own.
func (c *till) hear(status flashsale.PayStatus) {
	c.Helper()
	c.must(c.event(0, fmt.Sprint("event-", c.ids.Add(1)), c.intent, status))
}

// onePoll lets the webhooks' time pass, and polls once.
func (c *till) onePoll() {
	c.Helper()
	c.clock.advance(pollAge)
	c.waits()
	c.poll()
}

// payments are the ways of a payment that is captured, each of which ends with the webhook or with the first poll after the provider's answer. Where
// a unit has to be had again (T8), that poll asks for it, and the first one after SQL's decision pays for it.
var capturedWays = map[string]func(c *till){
	"a webhook": func(c *till) {
		c.capture(c.intent)
		c.bankSteps()
		c.ends(c.rid)
	},
	"a lost webhook": func(c *till) {
		c.captured(price, currency)
		c.onePoll()
		c.ends(c.rid)
	},
	"a late webhook": func(c *till) {
		c.captured(price, currency)
		c.onePoll()
		c.hear(flashsale.PayCaptured)
		c.ends(c.rid)
	},
	"webhooks twice": func(c *till) {
		c.captured(price, currency)
		for range 3 {
			c.must(c.event(0, "twice", c.intent, flashsale.PayCaptured))
		}
		c.ends(c.rid)
	},
	"webhooks out of order": func(c *till) {
		c.captured(price, currency)
		for _, status := range []flashsale.PayStatus{flashsale.PayCaptured, flashsale.PayFailed, flashsale.PayOpen, flashsale.PayVoid} {
			c.hear(status)
		}
		c.ends(c.rid)
	},
	"the failure first": func(c *till) {
		c.captured(price, currency)
		c.hear(flashsale.PayFailed)
		c.is(c.rid, flashsale.Reserved)
		c.hear(flashsale.PayCaptured)
		c.ends(c.rid)
	},
	"captured after a void was asked for": func(c *till) {
		c.bank.SetBehaviour(simpay.Behaviour{VoidTooLate: 1})
		_, err := c.engine(0).Cancel(c.Context(), c.rid, c.user)
		c.wantCode("the cancellation", err, flashsale.CodeInvalidState)
		c.ends(c.rid)
	},
	"captured while the void is under way": func(c *till) {
		c.bank.SetBehaviour(simpay.Behaviour{VoidLater: 1, VoidTime: simpay.Range{Min: time.Minute, Max: time.Minute}})
		_, err := c.engine(0).Cancel(c.Context(), c.rid, c.user)
		c.wantCode("the cancellation", err, flashsale.CodeBusy)
		c.captured(price, currency)
		c.onePoll()
		c.ends(c.rid)
	},
	"captured after the void": func(c *till) {
		c.cancel(c.rid, c.user)
		c.captured(price, currency)
		c.hear(flashsale.PayCaptured) // which asks for the unit again
		c.waits()
		c.consume()
		c.poll()
		c.ends(flashsale.DerivedRID(c.intent))
		c.is(c.rid, flashsale.Cancelled)
	},
	"captured after the end": func(c *till) {
		c.expired()
		c.captured(price, currency)
		c.hear(flashsale.PayCaptured)
		c.waits()
		c.consume()
		c.poll()
		c.ends(flashsale.DerivedRID(c.intent))
		c.is(c.rid, flashsale.Expired)
	},
	"captured after the end, and nothing is left": func(c *till) {
		c.expired()
		left := c.view().Available
		_, err := c.engine(0).Withdraw(c.Context(), c.command(fmt.Sprint("all-", c.ids.Add(1))), left)
		c.must(err)
		c.captured(price, currency)
		c.faults.set(&hooks{before: lose(1, "payments.Refund")}) // so that it is left to the poll
		c.hear(flashsale.PayCaptured)
		c.faults.set(nil)
		c.onePoll()
		c.ends("")
		_, err = c.engine(0).TopUp(c.Context(), c.command(fmt.Sprint("again-", c.ids.Add(1))), left)
		c.must(err)
	},
	"captured after the end, the shopper at the limit": func(c *till) {
		c.expired()
		c.buy(c.user, 1)
		c.captured(price, currency)
		c.hear(flashsale.PayCaptured)
		c.ends("")
	},
	"another amount": func(c *till) {
		c.captured(price-1, currency)
		c.onePoll()
		c.ends("")
		c.is(c.rid, flashsale.Reserved)
	},
	"another currency": func(c *till) {
		c.captured(price, "EUR")
		c.onePoll()
		c.ends("")
	},
	"paid twice": func(c *till) {
		first := c.intent
		c.must(c.bank.Pay(first, flashsale.PayFailed))
		c.bankSteps()
		second := c.pay(c.rid, c.user)
		c.capture(second)
		c.bankSteps()
		c.is(c.rid, flashsale.Confirmed)
		c.captured(price, currency)
		c.hear(flashsale.PayCaptured)
		c.ends("")
		c.intent = second
		c.ends(c.rid)
	},
	"a provider that is down": func(c *till) {
		c.captured(price-1, currency)
		c.bank.SetOutage(simpay.DownAfter)
		c.onePoll()
		c.waits()
		c.bank.SetOutage(simpay.Up)
		c.poll()
		c.ends("")
	},
}

// TestI7_CapturedIsConfirmedOrRefunded: whatever way a captured payment goes, it ends as a reservation that is paid or as money that is
// given back, by the webhook or within one poll of the provider's answer.
func TestI7_CapturedIsConfirmedOrRefunded(t *testing.T) {
	eachPair(t, func(t *testing.T, pair string) {
		w := newWorld(t, pair, plan{total: 100})
		for name, way := range capturedWays {
			if !t.Run(name, func(t *testing.T) {
				was := w.T
				w.T = t
				defer func() { w.T = was }()
				c := &till{world: w, user: name}
				c.rid = c.reserve(name, 1)
				c.intent = c.pay(c.rid, name)
				way(c)
				c.bank.SetBehaviour(simpay.Behaviour{})
			}) {
				return
			}
		}
		w.expireAll()
		w.sound()
	})
}

// TestI7_ABadProvider: many at once pay through a provider that does everything that providers should not, while lines are cut; in the
// end nobody is charged for nothing, or twice.
func TestI7_ABadProvider(t *testing.T) {
	bad := simpay.Behaviour{
		WrongCapture: 0.1, VoidLater: 0.3, VoidTime: simpay.Range{Max: time.Minute}, VoidTooLate: 0.3, Undone: 0.3, FailBefore: 0.1, FailAfter: 0.1,
		Webhook: simpay.Range{Max: time.Second}, LateBy: 3 * time.Minute, Lost: 0.3, Twice: 0.3, Late: 0.3, Reordered: 0.3, Misreport: 0.1,
	}
	eachPair(t, func(t *testing.T, pair string) {
		w := newWorld(t, pair, plan{total: 30, lease: 300 * time.Millisecond})
		w.bank.SetBehaviour(bad)
		var captured atomic.Int64
		w.faults.set(&hooks{before: flaky(5, 25), after: flaky(6, 25)})
		w.atOnce(24, func(i int) error { return w.payBadly(i, &captured) })
		w.faults.set(nil)
		for range 8 { // the provider, and time, go on
			w.clock.advance(time.Minute)
			w.bankSteps()
			w.atOnce(2, func(i int) error { _, err := w.engine(i).PollOnce(t.Context()); return err })
			w.consume()
		}
		w.bank.SetBehaviour(simpay.Behaviour{})
		w.clock.advance(2 * (hold + payTime))
		w.settle()
		// What a provider captures that it has called void before, with its webhook lost, it tells of in its list alone.
		_, err := w.engine(0).MatchOnce(t.Context(), w.clock.Now().Add(-24*time.Hour))
		w.must(err)
		w.sound()
		b := w.books()
		if charged := w.charged(); b.sold != charged || captured.Load() == 0 {
			t.Errorf("I7: %d are charged, and %d sold; %d shoppers have paid", charged, b.sold, captured.Load())
		}
	})
}

// payBadly is a shopper who pays, fails to, or cancels while paying.
func (w *world) payBadly(i int, captured *atomic.Int64) error {
	user, e, ctx := fmt.Sprint("user-", i), w.engine(i), w.Context()
	var r engine.ReserveAnswer
	var a engine.PayAnswer
	token := w.token(user)
	steps := []func() error{
		func() (err error) { r, err = e.Reserve(ctx, request(token, user, 1)); return err },
		func() error {
			if _, err := e.ConsumeOnce(ctx, phone, fmt.Sprint("c", i)); err != nil {
				return err
			}
			result, err := e.Result(ctx, phone, r.RID, user)
			if err == nil && result.State == flashsale.Pending { // another has its job
				w.clock.advance(100 * time.Millisecond)
				err = cut("the decision")
			}
			return err
		},
		func() (err error) { a, err = e.Pay(ctx, r.RID, user); return err },
	}
	for _, step := range steps {
		for err := step(); err != nil; err = step() {
			if code := flashsale.CodeOf(err); code != flashsale.CodeUnavailable && code != flashsale.CodeBusy {
				return err
			}
		}
	}
	switch i % 3 {
	case 0:
		_ = w.bank.Pay(a.IntentKey, flashsale.PayFailed)
	case 1:
		_, _ = e.Cancel(ctx, r.RID, user)
	default:
		if w.bank.Pay(a.IntentKey, flashsale.PayCaptured) == nil {
			captured.Add(1)
		}
	}
	w.bank.Step(ctx)
	return nil
}

// charged is how many units the provider holds the money of.
func (w *world) charged() (n int64) {
	for r := range w.bank.Records() {
		if r.Charged() {
			n += r.Amount / price
		}
	}
	return n
}

// wantCode fails unless an error has a code, "" for none.
func (w *world) wantCode(what string, err error, want flashsale.Code) {
	w.Helper()
	if got := flashsale.CodeOf(err); got != want || want == "" && err != nil {
		w.Errorf("%s: code %q (%v); want %q", what, got, err, want)
	}
	if err != nil && strings.Contains(err.Error(), string(secretOfBank)) {
		w.Errorf("%s: the error quotes a secret", what)
	}
}

package engine

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/simpay"
)

// crash is the death of an engine at a boundary of a call of a port: from there on it calls nothing more.
type crash struct {
	at   int  // which call
	late bool // after it, and not before
	n    int
	dead bool
	call string
}

func (k *crash) arm(c *till) {
	dead := func() error {
		k.dead = true
		return errorf(flashsale.CodeUnavailable, "this engine has died")
	}
	c.gate.Before = func(_ context.Context, call string) error {
		if k.dead {
			return dead()
		}
		if k.n++; k.n == k.at {
			k.call = call
			if !k.late {
				return dead()
			}
		}
		return nil
	}
	c.gate.After = func(_ context.Context, _ string, err error) error {
		if k.dead || k.late && k.n == k.at {
			return dead()
		}
		return err
	}
}

// crashScene is something that an engine may die of. Prepare is before it, run is it, and end what must come of it in the end.
type crashScene struct {
	name    string
	plan    tillPlan
	prepare func(c *till) (rid, intent string)
	run     func(c *till, rid, intent string)
	// shopper does what shoppers and the provider do meanwhile, whatever becomes of the engine.
	end func(c *till, rid, intent string)
}

func crashScenes() []crashScene {
	begin := func(c *till) (rid, intent string) {
		rid = c.reserve("ann", 1)
		return rid, c.begin(rid, "ann")
	}
	confirmed := func(c *till, rid, _ string) { c.is(rid, flashsale.Confirmed) }
	ctx := context.Background()
	return []crashScene{
		{
			name: "pay, and its webhook", plan: tillPlan{total: 1},
			prepare: func(c *till) (string, string) { rid := c.reserve("ann", 1); return rid, flashsale.IntentKey(rid, 1) },
			run: func(c *till, rid, intent string) {
				_, _ = c.e.Pay(ctx, rid, "ann")
				_ = c.bank.Pay(intent, flashsale.PayCaptured) // it may not have been made
				c.pass(0)
			},
			end: func(c *till, rid, intent string) {
				if r, _ := c.bank.Record(intent); r.Captures == 0 {
					c.is(rid, flashsale.Expired) // nobody has paid
					return
				}
				c.is(rid, flashsale.Confirmed)
			},
		},
		{
			name: "polled", plan: tillPlan{total: 1}, prepare: func(c *till) (rid, intent string) {
				rid, intent = begin(c)
				c.deaf = true
				c.must(c.bank.Pay(intent, flashsale.PayCaptured))
				c.pass(time.Minute)
				return rid, intent
			},
			run: func(c *till, _, _ string) { _, _ = c.e.PollOnce(ctx) }, end: confirmed,
		},
		{
			name: "cancelled while paying", plan: tillPlan{total: 1}, prepare: begin,
			run: func(c *till, rid, _ string) { _, _ = c.e.Cancel(ctx, rid, "ann") },
			end: func(c *till, rid, intent string) {
				if r := c.row(rid); r.State != flashsale.Cancelled && r.State != flashsale.Expired {
					c.t.Errorf("%s is %s", rid, r.State)
				}
				c.bankHas(intent, flashsale.PayVoid)
			},
		},
		{
			name: "captured after the void", plan: tillPlan{total: 1, bank: simpay.Behaviour{VoidTooLate: 1}}, prepare: begin,
			run: func(c *till, rid, _ string) { _, _ = c.e.Cancel(ctx, rid, "ann"); c.pass(0) },
			end: func(c *till, rid, intent string) {
				if r, _ := c.bank.Record(intent); r.Charged() {
					c.is(rid, flashsale.Confirmed)
				}
			},
		},
		{
			name: "past its time", plan: tillPlan{total: 1}, prepare: func(c *till) (rid, intent string) {
				rid, intent = begin(c)
				c.pass(hold + grace)
				return rid, intent
			},
			run: func(c *till, rid, _ string) { _ = c.e.settleOverdue(ctx, c.row(rid)) },
			end: func(c *till, rid, _ string) { c.is(rid, flashsale.Expired) },
		},
		{
			name: "captured after its time, with stock left", plan: tillPlan{total: 1}, prepare: lateCapture(false),
			run: runT8,
			end: func(c *till, rid, intent string) {
				c.is(rid, flashsale.Expired)
				c.is(flashsale.DerivedRID(intent), flashsale.Confirmed)
			},
		},
		{
			name: "captured after its time, without", plan: tillPlan{total: 1}, prepare: lateCapture(true), run: runT8,
			end: func(c *till, rid, intent string) {
				c.is(rid, flashsale.Expired)
				c.is(flashsale.DerivedRID(intent), flashsale.Rejected)
				c.bankHas(intent, flashsale.PayRefunded)
			},
		},
		{
			name: "paid twice", plan: tillPlan{total: 2, limit: 2}, prepare: func(c *till) (rid, intent string) {
				rid, first, second := c.twoAttempts()
				c.must(c.bank.Pay(second, flashsale.PayCaptured))
				c.pass(0)
				c.must(c.bank.Capture(first, tillPrice, "EUR"))
				return rid, first
			},
			run: func(c *till, _, _ string) { c.pass(0) },
			end: func(c *till, rid, first string) {
				c.is(rid, flashsale.Confirmed)
				c.bankHas(first, flashsale.PayRefunded)
			},
		},
		{
			name: "another amount", plan: tillPlan{total: 1}, prepare: func(c *till) (rid, intent string) {
				rid, intent = begin(c)
				c.must(c.bank.Capture(intent, 1, "EUR"))
				return rid, intent
			},
			run: func(c *till, _, _ string) { c.pass(0) },
			end: func(c *till, rid, intent string) {
				c.is(rid, flashsale.Expired)
				c.bankHas(intent, flashsale.PayRefunded)
			},
		},
	}
}

// lateCapture has a payment captured whose reservation has expired, and its unit sold to another or not.
func lateCapture(sold bool) func(c *till) (rid, intent string) {
	return func(c *till) (rid, intent string) {
		rid = c.reserve("ann", 1)
		intent = c.begin(rid, "ann")
		c.pass(hold + grace)
		c.jobs()
		if sold {
			bob := c.reserve("bob", 1)
			c.must(c.bank.Pay(c.begin(bob, "bob"), flashsale.PayCaptured))
		}
		c.pass(0)
		c.must(c.bank.Capture(intent, tillPrice, "EUR"))
		return rid, intent
	}
}

func runT8(c *till, _, _ string) {
	ctx := context.Background()
	c.pass(0)
	_, _ = c.e.ConsumeOnce(ctx, c.key, "c")
	_, _ = c.e.PollOnce(ctx)
}

// TestCrashes kills the engine at every call that it makes, before the one and after the next (HEADGATE_EVERY_CRASH=1: both of each),
// has another one take over, and looks at what has become of the payment: I7, and all books. The provider's webhooks go on, or are
// lost with the one that died.
func TestCrashes(t *testing.T) {
	for _, scene := range crashScenes() {
		t.Run(scene.name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			for at := 1; ; at++ {
				reached := false
				ways := []bool{at%2 == 0}
				if os.Getenv("HEADGATE_EVERY_CRASH") != "" {
					ways = []bool{false, true}
				}
				for _, late := range ways {
					k := &crash{at: at, late: late}
					reached = k.play(t, &scene) || reached
				}
				if !reached {
					break
				}
				calls++
			}
			if calls < 5 {
				t.Fatalf("%d calls of ports: that is no scene", calls)
			}
			t.Logf("it died at %d calls", calls)
		})
	}
}

// play reports whether the scene has come to the call.
func (k *crash) play(t *testing.T, scene *crashScene) bool {
	when := "before"
	if k.late {
		when = "after"
	}
	c := openTill(t, scene.plan)
	rid, intent := scene.prepare(c)
	k.arm(c)
	scene.run(c, rid, intent)
	c.gate.Before, c.gate.After = nil, nil
	c.deaf = k.at%4 < 2
	c.start()
	for _, d := range []time.Duration{0, 10 * time.Second, flashsale.PendingFor, hold} {
		c.pass(d)
		c.jobs()
	}
	if _, err := c.e.MatchOnce(t.Context(), c.now.Add(-time.Hour)); err != nil {
		t.Errorf("died %s call %d (%s): %v", when, k.at, k.call, err)
	}
	c.pass(time.Hour)
	c.jobs()
	failed := t.Failed()
	scene.end(c, rid, intent)
	c.holds()
	if t.Failed() && !failed {
		t.Errorf("that is when it died %s call %d, %s", when, k.at, k.call)
	}
	return k.dead
}

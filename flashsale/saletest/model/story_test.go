package model

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/flashsale/simpay"
)

// story is a sale in which everything happens once, one thing after the other, with one fault at a place of the caller's.
type story struct {
	*world
	people map[string]*shopper
	calls  int
	// at is the call before which the fault comes, counted from 1; 0: never.
	at    int
	fault func(c *call) verdict
}

// tell plays the story from its beginning to its end.
func (s *story) tell() {
	s.before = func(c *call, v verdict) verdict {
		if s.calls++; s.calls == s.at {
			return s.fault(c)
		}
		return v
	}
	s.people = map[string]*shopper{}
	s.provider.SetBehaviour(simpay.Behaviour{})
	s.opens()
	s.sells()
	s.pays1()
	s.givesBack()
	s.paysTooLate()
	s.operates()
	s.watchesOver()
	s.command("drain", 1)
	s.job("consume")
	s.job("deliver")
	s.command("close", 1)
	s.before = nil
}

// do has an engine do something to its end. If its process dies of it, another one does it again.
func (s *story) do(kind string, begin func(e *engine.Engine) op) {
	for range 2 {
		l := s.lives[0]
		s.start(l, kind, kind, begin(s.engines[0]))
		for s.step() {
			s.always()
		}
		if !l.dead.Load() {
			return
		}
		s.boot(0)
	}
}

func (s *story) job(kind string) {
	for _, m := range moves() {
		if m.kind == kind {
			s.do(kind, func(e *engine.Engine) op { return m.begin(s.world, 0, e) })
			return
		}
	}
	s.f.Fatalf("there is no job %s", kind)
}

func (s *story) command(kind string, units int64) {
	s.begun++
	s.do("operator", func(e *engine.Engine) op { return s.commands(e, kind, units) })
}

func (s *story) person(name string) *shopper {
	p := s.people[name]
	if p == nil {
		p = newShopper(name)
		s.people[name] = p
		s.shoppers = append(s.shoppers, p)
	}
	return p
}

// buys has somebody ask for units, with one token however often.
func (s *story) buys(name string, quantity int64) {
	p := s.person(name)
	s.do(name+" buys", func(e *engine.Engine) op {
		if all := p.all(); len(all) > 0 {
			return func(ctx context.Context) error { return s.reserves(ctx, e, p, all[0], quantity) }
		}
		return s.asks(e, p, quantity)
	})
}

func (s *story) rid(name string) string {
	if all := s.person(name).all(); len(all) > 0 {
		return all[0].rid
	}
	return "nothing"
}

// pays has somebody begin to pay.
func (s *story) pays(name string) {
	s.do(name+" pays", func(e *engine.Engine) op {
		return func(ctx context.Context) error { _, err := e.Pay(ctx, s.rid(name), name); return err }
	})
}

// provides has the provider decide an attempt, if there is one that it can decide.
func (s *story) provides(name string, attempt int64, status flashsale.PayStatus) {
	key := flashsale.IntentKey(s.rid(name), attempt)
	if r, ok := s.provider.Record(key); ok && r.Status == flashsale.PayOpen {
		s.must(s.provider.Pay(key, status))
	}
	s.pass(time.Second)
}

// captures has the provider capture an attempt, also what it has called void or failed, and more or less than was asked for.
func (s *story) captures(name string, attempt, more int64) {
	key := flashsale.IntentKey(s.rid(name), attempt)
	if r, ok := s.provider.Record(key); ok && r.Captures == 0 {
		s.must(s.provider.Capture(key, r.Intent.Amount+more, r.Intent.Currency))
	}
	s.pass(time.Second)
}

// hears has all webhooks that are on their way come.
func (s *story) hears() {
	s.provider.Step(context.Background())
	for len(s.hooks) > 0 {
		h := s.hooks[0]
		s.hooks = s.hooks[1:]
		s.do("webhook", func(e *engine.Engine) op {
			return func(ctx context.Context) error { return e.Webhook(ctx, h.header, h.body) }
		})
	}
}

func (s *story) opens() {
	s.job("watch")
	s.command("open", 1)
}

func (s *story) sells() {
	s.buys("ann", 2)
	for _, name := range []string{"ben", "cem", "dan"} {
		s.buys(name, 1)
	}
	s.job("consume")
	s.buys("ann", 2) // once more
}

// pays1 has three payments: one that goes well; one that fails, and is captured after all when another has paid; one of too little.
func (s *story) pays1() {
	s.pays("ann")
	s.provides("ann", 1, flashsale.PayCaptured)
	s.hears()
	s.pays("ben")
	s.provides("ben", 1, flashsale.PayFailed)
	s.hears()
	s.pays("ben")
	s.provides("ben", 2, flashsale.PayCaptured)
	s.pass(15 * time.Second)
	s.job("poll")
	s.captures("ben", 1, 0)
	s.hears()
	s.pays("dan")
	s.captures("dan", 1, -1)
	s.hears()
}

// givesBack has units given back by their owner, and by time.
func (s *story) givesBack() {
	s.do("cem cancels", func(e *engine.Engine) op {
		return func(ctx context.Context) error { _, err := e.Cancel(ctx, s.rid("cem"), "cem"); return err }
	})
	s.pass(s.sale.Hold + time.Minute)
	s.job("sweep")
}

// paysTooLate has one whose payment is void when its time is over, and captured after that; and one that is not decided in time.
func (s *story) paysTooLate() {
	s.buys("eve", 1)
	s.job("consume")
	s.pays("eve")
	s.pass(s.sale.Hold + s.sale.PayTime + time.Minute)
	s.job("sweep")
	s.captures("eve", 1, 0)
	s.hears()
	s.job("consume")
	s.job("poll")
	s.buys("fay", 1)
	s.pass(flashsale.PendingFor + time.Second)
	s.job("sweep")
}

func (s *story) operates() {
	s.command("top_up", 2)
	s.command("withdraw", 1)
	s.command("withdraw", 100)
	s.command("rate", 1)
	s.command("pause", 1)
	s.command("resume", 1)
	s.buys("gus", 1) // waits in the queue that the rebuild reads to its end
	s.command("rebuild", 1)
}

// watchesOver has one more order while all jobs run.
func (s *story) watchesOver() {
	s.buys("hal", 1)
	s.job("consume")
	s.pays("hal")
	s.provides("hal", 1, flashsale.PayCaptured)
	s.hears()
	for _, kind := range []string{"deliver", "relay", "reconcile", "match", "watch"} {
		s.job(kind)
	}
}

// storyTotal is how many units there are; with fewer, the payment that comes too late would have none.
const storyTotal = 8

// storyPlan is that of a story: nothing is drawn that matters.
func storyPlan() *plan {
	return &plan{seed: 1, draft: true, total: storyTotal}
}

// happens are all that a story must have in it.
func happens() []string {
	all := []string{"T0", "T1", "T2", "T3", "T3b", "T4", "T5", "T6", "T7", "T8", "T9", "T9 paid_twice", "T9 amount_mismatch", "rebuilt "}
	for _, kind := range []string{"open", "pause", "resume", "rate", "drain", "close", "top_up", "withdraw", "rebuild"} {
		all = append(all, fmt.Sprintf("operation %s done", kind))
	}
	return append(all, "operation withdraw refused")
}

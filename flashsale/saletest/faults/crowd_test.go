package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
)

// crowd are the shoppers of a sale: as many at a time as there are lanes, one after the other in each, until the sale is over.
type crowd struct {
	sale *sale
	seed uint64
	// hush is locked to have nobody call; a call holds it shared.
	hush sync.RWMutex
	// eager has those who come from now on pay at once.
	eager atomic.Bool
	// lossless tells that nothing was lost that a store has confirmed: what was pending once stays known.
	lossless bool

	answers, reserved, paid, retries, lost atomic.Int64

	mu   sync.Mutex
	all  []*shopper
	wg   sync.WaitGroup
	end  context.CancelFunc
	ctx  context.Context
	fail atomic.Int64
}

// lanes is how many shoppers there are at a time.
const lanes = 14

func newCrowd(s *sale, seed uint64) *crowd {
	c := &crowd{sale: s, seed: seed}
	c.ctx, c.end = context.WithCancel(context.Background())
	s.t.Cleanup(func() { c.end(); c.wg.Wait() })
	return c
}

// come sends the crowd.
func (c *crowd) come() {
	n := lanes
	if underRace {
		n = lanes / 2
	}
	for lane := range n {
		c.wg.Go(func() {
			for i := 0; c.ctx.Err() == nil && !c.visit(lane, i); i++ {
			}
		})
	}
}

// visit is one user, who has two tabs open now and then, and reports whether the sale is over.
func (c *crowd) visit(lane, i int) bool {
	rng := rand.New(rand.NewPCG(c.seed, uint64(lane)<<32|uint64(i)))
	tabs := 1
	if rng.IntN(10) == 0 {
		tabs = 2
	}
	var over atomic.Bool
	var open sync.WaitGroup
	for tab := range tabs {
		p := newShopper(c, fmt.Sprintf("u-%d-%d", lane, i), rand.New(rand.NewPCG(rng.Uint64(), uint64(tab))))
		p.twoTabs = tabs > 1
		if c.eager.Load() {
			p.kind = payer
		}
		c.mu.Lock()
		c.all = append(c.all, p)
		c.mu.Unlock()
		open.Go(func() {
			if p.shop() {
				over.Store(true)
			}
		})
	}
	open.Wait()
	return over.Load()
}

// shoppers are all that have come.
func (c *crowd) shoppers() []*shopper {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*shopper(nil), c.all...)
}

// errorf fails the test, and tells of the first few faults only.
func (c *crowd) errorf(format string, args ...any) {
	if c.fail.Add(1) <= 10 {
		c.sale.t.Errorf(format, args...)
	}
}

// kind is what a shopper has in mind.
type kind int

const (
	payer      kind = iota
	failsFirst      // whose card is refused at first
	latePayer       // who pays when the time is over, or nearly
	canceller       // who gives back what was reserved
	undecided       // who begins to pay and gives it back
	walksAway       // who is never seen again
)

// shopper is one try to buy.
type shopper struct {
	c        *crowd
	rng      *rand.Rand
	user     string
	kind     kind
	quantity int64
	twoTabs  bool // so that one of them may be told that the other one has it all

	token, rid string
	failed     bool          // the first card was refused
	seen       engine.Result // the last answer that was decided
	// final is the one that nothing may follow; away is why there is no reservation.
	final *engine.Result
	away  flashsale.Code
}

func newShopper(c *crowd, user string, rng *rand.Rand) *shopper {
	p := &shopper{c: c, user: user, rng: rng, quantity: 1 + int64(rng.IntN(perUser))}
	switch draw := rng.IntN(100); {
	case draw < 66:
		p.kind = payer
	case draw < 74:
		p.kind = failsFirst
	case draw < 80:
		p.kind = latePayer
	case draw < 88:
		p.kind = canceller
	case draw < 92:
		p.kind = undecided
	default:
		p.kind = walksAway
	}
	return p
}

// shop goes on until there is one final answer, and reports whether the sale is over.
func (p *shopper) shop() (over bool) {
	for p.final == nil && p.away == "" && p.c.ctx.Err() == nil {
		switch {
		case p.token == "":
			p.fetchToken()
		case p.rid == "":
			p.reserve()
		case !p.seen.Decided():
			p.follow("await")
		default:
			p.decide()
		}
	}
	return p.away == flashsale.CodeNotOpen
}

// try calls until there is an answer that is not "ask again"; nil if the crowd is sent home.
func (p *shopper) try(what string, c *call) *reply {
	c.Key, c.User = p.c.sale.key, p.user
	for wait := 10 * time.Millisecond; p.c.ctx.Err() == nil; wait = min(2*wait, 200*time.Millisecond) {
		p.c.hush.RLock()
		r, err := p.c.sale.askAnyone(p.c.ctx, what, c)
		p.c.hush.RUnlock()
		if err == nil && !r.again() {
			p.c.answers.Add(1)
			if r.Code == flashsale.CodeInternal {
				p.c.errorf("%s of %s: %v", what, p.user, r.err())
			}
			return r
		}
		p.c.retries.Add(1)
		p.pause(wait)
	}
	return nil
}

// pause is what a good client does before it asks again.
func (p *shopper) pause(d time.Duration) {
	timer := time.NewTimer(d/2 + time.Duration(p.rng.Int64N(int64(d))))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.c.ctx.Done():
	}
}

func (p *shopper) fetchToken() {
	r := p.try("token", &call{})
	switch {
	case r == nil:
	case r.Code == flashsale.CodeNotOpen:
		p.away = r.Code
	case r.Code == "":
		p.token = r.Token
	default:
		p.c.errorf("no token for %s: %v", p.user, r.err())
		p.away = r.Code
	}
}

func (p *shopper) reserve() {
	r := p.try("reserve", &call{Token: p.token, Quantity: p.quantity})
	switch {
	case r == nil:
	case r.Code == "":
		p.rid = r.Result.RID
		p.note("reserve", &r.Result)
	case r.Code == flashsale.CodeSoldOut:
		p.pause(100 * time.Millisecond) // units that are not paid come back
		if p.c.eager.Load() && p.quantity > 1 {
			p.away = r.Code // there may be one, for somebody who wants no more
		}
	case r.Code == flashsale.CodePurchaseLimit && p.twoTabs:
		p.away = r.Code
	case r.Code == flashsale.CodeTokenExpired:
		p.token = ""
	default:
		if r.Code != flashsale.CodeNotOpen {
			p.c.errorf("the reservation of %s: %v", p.user, r.err())
		}
		p.away = r.Code
	}
}

// follow asks where the reservation stands.
func (p *shopper) follow(what string) {
	r := p.try(what, &call{RID: p.rid})
	switch {
	case r == nil:
	case r.Code == "":
		p.note(what, &r.Result)
	case r.Code == flashsale.CodeNotFound && !p.seen.Decided():
		if p.c.lost.Add(1); p.c.lossless {
			p.c.errorf("%s was accepted as %s and is not known any more, though nothing was lost", p.user, p.rid)
		}
		p.rid = "" // "not reserved, try again": with the same token
	default:
		p.c.errorf("%s was told %s of %s, and now: %v", p.user, p.seen.State, p.rid, r.err())
		p.away = r.Code
	}
}

// note holds an answer to those before it.
func (p *shopper) note(what string, r *engine.Result) {
	switch {
	case p.final != nil && (r.State != p.final.State || r.Version != p.final.Version):
		p.c.errorf("%s of %s: the final answer was %s, version %d, and now it is %s, version %d", what, p.rid, p.final.State, p.final.Version, r.State, r.Version)
		return
	case !r.Decided():
		return
	case r.State == flashsale.Rejected && p.seen.Decided() && p.seen.State != flashsale.Rejected:
		p.c.errorf("%s of %s: it was %s, and is rejected now", what, p.rid, p.seen.State)
	}
	if !p.seen.Decided() && r.State != flashsale.Rejected {
		p.c.reserved.Add(1)
	}
	if r.Version >= p.seen.Version {
		p.seen = *r
	}
	if r.State.Terminal() && p.final == nil {
		final := *r
		p.final = &final
		if r.State == flashsale.Confirmed {
			p.c.paid.Add(1)
		}
	}
}

// decide does what the shopper has in mind with what is reserved.
func (p *shopper) decide() {
	begun := p.seen.State == flashsale.Confirming
	switch {
	case p.kind == walksAway:
	case p.kind == canceller || p.kind == undecided && begun:
		p.cancel()
		return
	default:
		p.pay()
	}
	p.pause(40 * time.Millisecond)
	p.follow("result")
}

func (p *shopper) cancel() {
	r := p.try("cancel", &call{RID: p.rid})
	switch {
	case r == nil:
	case r.Code == "":
		p.note("cancel", &r.Result)
	case r.Code == flashsale.CodeInvalidState: // it was paid, or has ended
		p.follow("result")
	default:
		p.c.errorf("%s cannot give %s back: %v", p.user, p.rid, r.err())
		p.kind = walksAway
	}
}

// pay begins to pay, or goes on, and then does it, at the provider.
func (p *shopper) pay() {
	r := p.try("pay", &call{RID: p.rid})
	switch {
	case r == nil:
		return
	case r.Code == flashsale.CodeInvalidState, r.Code == flashsale.CodePastDeadline:
		return // it has ended, or will
	case r.Code != "":
		p.c.errorf("%s cannot pay for %s: %v", p.user, p.rid, r.err())
		p.kind = walksAway
		return
	}
	p.note("pay", &r.Result)
	if r.Result.State != flashsale.Confirming || p.kind == undecided {
		return
	}
	if p.kind == latePayer {
		p.pause(max(time.Until(r.Result.Until), 0) + 100*time.Millisecond)
	}
	outcome := flashsale.PayCaptured
	if p.kind == failsFirst && !p.failed {
		p.failed, outcome = true, flashsale.PayFailed
	}
	err := p.c.sale.provider.Pay(r.Intent, outcome)
	if err != nil && flashsale.CodeOf(err) != flashsale.CodeInvalidState {
		p.c.errorf("%s at the provider: %v", p.user, err)
	}
}

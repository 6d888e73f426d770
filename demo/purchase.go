package demo

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

const (
	mostClicks = 6   // how often a hasty shopper presses "buy"
	mostLooks  = 200 // how often at most somebody looks for a result
	mostBills  = 3   // how often a shopper begins to pay
)

// The shares of those who hold something and do not simply pay for it.
const (
	givesBack   = 0.05 // cancels
	walksAway   = 0.07 // leaves without a word
	dallies     = 0.03 // goes to the bank and falls asleep there
	failsFirst  = 0.12 // has not enough money on the first card
	clicksTwice = 0.5  // of the hasty: a second tab, with a token of its own
)

// buy presses the button once the sale is open, and sees it through. What is begun goes on for a while when the doors have closed.
func (s *shopper) buy(ctx context.Context, w *world) {
	early := time.Duration(0)
	if s.hasty {
		early = s.dice.between(0, time.Second)
	}
	// People wait for the hour with a finger on the page, and are quick or slow when it strikes.
	if !s.await(ctx, w.opens.Add(-early)) || !pause(ctx, s.dice.pareto(s.pace/8, 1.1, 4*s.pace)) {
		return
	}
	for waited := false; ; waited = true { // as long as units may come back
		got, again := s.reserve(ctx)
		if got.RID != "" {
			s.seeThrough(w.late, got, waited)
			return
		}
		if again <= 0 || !pause(ctx, s.unhurried(again)) {
			return
		}
	}
}

// unhurried is how long somebody waits who is asked to wait so long.
func (s *shopper) unhurried(d time.Duration) time.Duration {
	if s.hasty {
		d /= 2
	}
	return max(time.Duration(float64(d)*s.quick), 50*time.Millisecond)
}

// reserve gets a token and spends it. Without a reservation it says when to come again, 0 if there is no use.
func (s *shopper) reserve(ctx context.Context) (result, time.Duration) {
	ask := s.sale.token(s.me)
	r, ok := s.try(ctx, ask)
	token := s.sale.read(ask, r)
	if !ok || token.Token == "" {
		return result{}, again(r, &token)
	}
	click := s.sale.reserve(s.me, token.Token)
	if s.hasty {
		return s.storm(ctx, click)
	}
	r, _ = s.try(ctx, click)
	got := s.sale.read(click, r)
	wait := again(r, &got)
	return mine(got), wait
}

// mine is a reservation that was got, or the one that somebody holds already who is refused another: the answer to it was lost.
func mine(got result) result {
	if got.RID == "" && len(got.Holds) > 0 {
		return got.Holds[0]
	}
	return got
}

// again is when it is worth coming back.
func again(r reply, said *result) time.Duration {
	switch {
	case r.retryAfter > 0:
		return r.retryAfter
	case r.fate != served || said.Code == flashsale.CodeTokenExpired:
		return time.Second
	}
	return 0
}

// storm is how the hasty buy: they press again and again, whether there was an answer or not, until they have one that ends it.
func (s *shopper) storm(ctx context.Context, click call) (got result, wait time.Duration) {
	type answer struct {
		result
		again time.Duration
	}
	answers := make(chan answer, mostClicks)
	var clicks sync.WaitGroup
	for range mostClicks {
		clicks.Go(func() {
			r := s.client.send(click)
			got := s.sale.read(click, r)
			answers <- answer{got, again(r, &got)}
		})
		if !pause(ctx, s.dice.pareto(100*time.Millisecond, 1.5, time.Second)) || len(answers) > 0 {
			break
		}
	}
	clicks.Wait()
	close(answers)
	for a := range answers {
		if m := mine(a.result); m.RID != "" {
			got = m
		}
		wait = max(wait, a.again)
	}
	if got.RID != "" && s.dice.happens(clicksTwice) {
		s.secondTab(ctx)
	}
	return got, wait
}

// secondTab tries for another unit, and gets none: one is enough for everybody.
func (s *shopper) secondTab(ctx context.Context) {
	ask := s.sale.token(s.me)
	r, ok := s.try(ctx, ask)
	if token := s.sale.read(ask, r); ok && token.Token != "" {
		click := s.sale.reserve(s.me, token.Token)
		s.sale.read(click, s.client.send(click))
	}
}

// seeThrough is everything from the click to the final answer. Who has waited for a unit to come back does not let it go.
func (s *shopper) seeThrough(ctx context.Context, got result, waited bool) {
	got = s.follow(ctx, got, !s.hasty, (*result).decided)
	if !got.is(flashsale.Reserved) {
		return
	}
	p := s.dice.r.Float64()
	if waited && p < givesBack+walksAway+dallies {
		p = 1
	}
	switch {
	case p < givesBack:
		if s.think(ctx) {
			q := s.sale.cancel(s.me, got.RID)
			r, _ := s.try(ctx, q)
			s.sale.read(q, r)
		}
	case p < givesBack+walksAway:
	case p < givesBack+walksAway+dallies:
		s.bill(ctx, got)
	case p < givesBack+walksAway+dallies+failsFirst:
		if s.settle(ctx, got, flashsale.PayFailed) {
			got.State = flashsale.Confirming.String() // until the shop has heard of it
			got = s.follow(ctx, got, false, func(r *result) bool { return r.is(flashsale.Reserved) || r.final() })
		}
		s.settle(ctx, got, flashsale.PayCaptured)
	default:
		s.settle(ctx, got, flashsale.PayCaptured)
	}
	s.follow(ctx, got, false, (*result).final)
}

// settle goes to the bank, and pays there, or fails to.
func (s *shopper) settle(ctx context.Context, got result, outcome flashsale.PayStatus) bool {
	for range mostBills {
		bill := s.bill(ctx, got)
		if bill.URL == "" || !pause(ctx, s.dice.pareto(s.pace/8, 1.5, s.pace)) {
			return false
		}
		if r, ok := s.try(ctx, s.sale.atBank(s.me, bill.URL, outcome)); !ok || r.status == http.StatusOK {
			return ok
		}
		// That bill cannot be paid any more: it was void before it came here.
	}
	return false
}

// bill begins to pay.
func (s *shopper) bill(ctx context.Context, got result) (bill result) {
	if !pause(ctx, s.dice.pareto(s.pace/8, 1.5, s.pace)) {
		return bill
	}
	q := s.sale.pay(s.me, got.RID)
	r, _ := s.try(ctx, q)
	return s.sale.read(q, r)
}

// follow waits for a result: by its events, or, without streams or if none come, by looking again as often as the answer asks for.
func (s *shopper) follow(ctx context.Context, got result, streams bool, enough func(*result) bool) result {
	for range mostLooks {
		if enough(&got) || got.final() || ctx.Err() != nil {
			return got
		}
		q := s.sale.look(s.me, got.RID)
		var r reply
		if streams {
			q.path += "/events"
			r = s.client.follow(ctx, q, func(event []byte) bool {
				got = s.newer(q, reply{body: event}, got)
				return enough(&got) || got.final()
			})
		} else {
			r = s.client.send(q)
			got = s.newer(q, r, got)
		}
		if enough(&got) || got.final() {
			return got
		}
		streams = streams && r.fate == served
		if !pause(ctx, s.unhurried(max(r.retryAfter, time.Second))) {
			return got
		}
	}
	return got
}

// newer is what an answer says of a reservation, or what was known before if it says nothing.
func (s *shopper) newer(q call, r reply, before result) result {
	if next := s.sale.read(q, r); next.RID == before.RID {
		return next
	}
	return before
}

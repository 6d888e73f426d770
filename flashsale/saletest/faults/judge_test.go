package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/flashsale/simpay"
)

// finish sells the rest to shoppers who pay, closes the sale, and judges it.
func (s *sale) finish() {
	s.t.Helper()
	s.crowd.eager.Store(true)
	s.provider.SetBehaviour(simpay.Behaviour{})
	s.await("every unit is sold", func() error {
		r, err := s.askAnyone(context.Background(), "audit", &call{Key: s.key})
		if err == nil {
			err = r.err()
		}
		if err != nil {
			return err
		}
		if !r.Report.OK() {
			s.t.Fatalf("%s", r.Report)
		}
		if b := &r.Report.Books.State; b.Sold != b.Total {
			return fmt.Errorf("%d of %d sold, %d reserved; the stock: %d available, %d held, %d pending", b.Sold, b.Total, b.Reserved,
				r.Report.Stock.Available, r.Report.Stock.Held, r.Report.Stock.Queue.Pending)
		}
		return nil
	})
	s.must("drain", s.command("drain"))
	s.crowd.wg.Wait()
	s.must("close", s.command("close"))
	s.judgePayments(s.judgeBooks())
	s.judgeAnswers()
	c := s.crowd
	s.t.Logf("%d shoppers had %d answers, and asked %d times again; %d reserved, %d paid, %d told to try again; %d units sold",
		len(c.shoppers()), c.answers.Load(), c.retries.Load(), c.reserved.Load(), c.paid.Load(), c.lost.Load(), s.total)
}

// judgeBooks: sold + available = total, to the unit, in both stores.
func (s *sale) judgeBooks() *engine.AuditReport {
	s.t.Helper()
	r := s.audit(func(r *engine.AuditReport) error {
		if b := &r.Books; b.State.Reserved != 0 || r.Stock.Held != 0 || b.CapturedLoose != 0 {
			return fmt.Errorf("%d reserved, %d held, %d captured payments without an end", b.State.Reserved, r.Stock.Held, b.CapturedLoose)
		}
		return nil
	})
	b := &r.Books.State
	if b.Total != s.total || b.Sold+b.Available() != s.total || r.Stock.Total != s.total || r.Stock.Sold+r.Stock.Available != s.total {
		s.t.Errorf("of %d units SQL has %d sold and %d available, the stock %d and %d", s.total, b.Sold, b.Available(), r.Stock.Sold, r.Stock.Available)
	}
	if b.Sold != s.total {
		s.t.Errorf("%d of %d units were sold, though there were always shoppers who pay", b.Sold, s.total)
	}
	return r
}

// judgePayments: whoever was charged has bought, and whoever has bought was charged once, by what the provider itself says.
func (s *sale) judgePayments(r *engine.AuditReport) {
	s.t.Helper()
	s.await("every payment has its end", func() error {
		for rec := range s.provider.Records() {
			if rec.Status == flashsale.PayOpen || rec.Voiding {
				return fmt.Errorf("payment %s is %s", rec.Intent.Key, rec.Status)
			}
		}
		return s.charges(r)
	})
}

// charges matches what the provider has been paid with what was sold.
func (s *sale) charges(r *engine.AuditReport) error {
	units, again, charged := int64(0), 0, map[string]int{}
	for rec := range s.provider.Records() {
		if rec.Captures > 1 || rec.Refunds > rec.Captures {
			s.t.Fatalf("payment %s was captured %d times and refunded %d times", rec.Intent.Key, rec.Captures, rec.Refunds)
		}
		if !rec.Charged() {
			continue
		}
		rid := ridOf(rec.Intent.Key)
		if a := s.stateOf(rid, rec.Intent.User); a != flashsale.Confirmed {
			if a := s.stateOf(flashsale.DerivedRID(rec.Intent.Key), rec.Intent.User); a != flashsale.Confirmed {
				return fmt.Errorf("%s was charged with %s, and has bought nothing", rec.Intent.User, rec.Intent.Key)
			}
			rid = flashsale.DerivedRID(rec.Intent.Key)
			again++
		}
		if charged[rid]++; charged[rid] > 1 {
			return fmt.Errorf("%s was charged twice for %s", rec.Intent.User, rid)
		}
		units += rec.Amount / unitPrice
	}
	if units != r.Books.State.Sold {
		return fmt.Errorf("%d units were paid, and %d sold", units, r.Books.State.Sold)
	}
	for _, p := range s.crowd.shoppers() {
		if p.final != nil && p.final.State == flashsale.Confirmed && charged[p.rid] != 1 {
			s.t.Fatalf("%s has bought %s without paying", p.user, p.rid)
		}
	}
	s.t.Logf("%d payments, %d of them bought units again that had been given back", len(charged), again)
	return nil
}

// ridOf is the reservation of an intent's key.
func ridOf(intentKey string) string {
	for i := range intentKey {
		if intentKey[i] == ':' {
			return intentKey[:i]
		}
	}
	return intentKey
}

func (s *sale) stateOf(rid, user string) (state flashsale.State) {
	s.t.Helper()
	s.await("an answer about "+rid, func() error {
		r, err := s.askAnyone(context.Background(), "result", &call{Key: s.key, RID: rid, User: user})
		if err != nil || r.again() {
			return errors.Join(err, errors.New("ask again"))
		}
		state = r.Result.State
		return nil
	})
	return state
}

// judgeAnswers: every shopper has one final answer, and asking again, in either way, does not change it.
func (s *sale) judgeAnswers() {
	s.t.Helper()
	all := s.crowd.shoppers()
	next := make(chan *shopper)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for p := range next {
				p.askAgain()
			}
		})
	}
	for _, p := range all {
		next <- p
	}
	close(next)
	wg.Wait()
}

func (p *shopper) askAgain() {
	switch {
	case p.final == nil && (p.away == flashsale.CodeNotOpen || p.away == flashsale.CodePurchaseLimit || p.away == flashsale.CodeSoldOut):
		if p.rid != "" {
			p.c.errorf("%s has a reservation %s and was told %s", p.user, p.rid, p.away)
		}
	case p.final == nil:
		p.c.errorf("%s has no final answer: %s, %q", p.user, p.seen.State, p.away)
	case p.rng.IntN(2) == 0:
		p.follow("result")
	default:
		p.reserve()
		if p.away != "" {
			p.c.errorf("%s was told %s, and now, with the same token, %s", p.user, p.final.State, p.away)
		}
	}
}

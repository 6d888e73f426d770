package engine

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// How far clocks may be apart, and how old a job may be with somebody who decides jobs.
const (
	skewWarns  = 500 * time.Millisecond
	skewFails  = 5 * time.Second
	lagFails   = 10 * time.Second
	lookupTime = 3 * time.Second
)

// Severity says what a finding means for a sale that is to open.
type Severity string

// The severities.
const (
	// Stops: it should not open like this.
	Stops Severity = "stops"
	// Warns: it can open, and somebody should look.
	Warns Severity = "warns"
)

// Finding is something that is not as it should be before a sale opens.
type Finding struct {
	Severity Severity
	// Check is what was looked at: "durable", "stock", "clocks", "equal", "consumers", "provider".
	Check string
	// SKU is "sale/sku", "" if it is about all.
	SKU  string
	Text string
}

// Checker is a Stock that can say, with an error, that it is not set up as a sale needs it.
type Checker interface {
	Check(ctx context.Context) error
}

// Preflight looks whether all is ready for the sales that there are: that commits last, that the Stock is set up as it must be and equal to
// SQL, that clocks agree, that somebody decides jobs, that the provider answers. It returns what is not as it should be; it changes nothing.
func (e *Engine) Preflight(ctx context.Context) ([]Finding, error) {
	p := &preflight{Engine: e}
	skus, err := e.orders.SKUs(ctx)
	if err != nil {
		return nil, err
	}
	p.durable(ctx)
	p.setUp(ctx, skus)
	p.provider(ctx)
	if len(skus) > 0 {
		p.allEqual(ctx, skus)
		p.clocks(ctx, skus[0].Key)
	}
	p.alive(ctx)
	return p.findings, nil
}

type preflight struct {
	*Engine
	findings []Finding
	// stockAway tells that the Stock does not answer. It is said once why; the checks that need the Stock are not made then, and say so.
	stockAway bool
}

// noStock is why a check was not made.
const noStock = "the stock does not answer"

// reach asks the Stock for a key, and notes if it does not answer.
func (p *preflight) reach(ctx context.Context, key flashsale.Key) error {
	_, err := p.stock.View(ctx, key)
	if flashsale.CodeOf(err) != flashsale.CodeUnavailable {
		return nil
	}
	p.stockAway = true
	return err
}

func (p *preflight) find(severity Severity, check, sku, format string, args ...any) {
	p.findings = append(p.findings, Finding{severity, check, sku, fmt.Sprintf(format, args...)})
}

func (p *preflight) durable(ctx context.Context) {
	if err := p.orders.Durable(ctx); err != nil {
		p.find(Stops, "durable", "", "%v", err)
	}
}

func (p *preflight) setUp(ctx context.Context, skus []flashsale.SKUState) {
	var err error
	if c, ok := p.stock.(Checker); ok {
		err = c.Check(ctx)
	}
	if len(skus) > 0 {
		err = cmp.Or(err, p.reach(ctx, skus[0].Key))
	}
	if err != nil {
		p.find(Stops, "stock", "", "%v", err)
	}
}

// provider asks about a payment that there cannot be.
func (p *preflight) provider(ctx context.Context) {
	if p.payments == nil {
		p.find(Warns, "provider", "", "there is no provider of payments: nothing can be paid")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	if _, err := p.payments.Query(ctx, flashsale.IntentKey("preflight", 1)); err != nil && flashsale.CodeOf(err) != flashsale.CodeUnknownPayment {
		p.find(Stops, "provider", "", "the provider of payments does not answer: %v", err)
	}
}

// allEqual looks at all keys, as long as the Stock answers: each call of one that is away takes its time, and has the same to say.
func (p *preflight) allEqual(ctx context.Context, skus []flashsale.SKUState) {
	for i := range skus {
		if !p.stockAway {
			p.equal(ctx, &skus[i])
		}
	}
	if p.stockAway {
		p.find(Stops, "equal", "", "whether stock and SQL are equal cannot be said: %s", noStock)
	}
}

// equal looks at one key.
func (p *preflight) equal(ctx context.Context, sku *flashsale.SKUState) {
	name := sku.Key.String()
	s, err := p.stand(ctx, sku.Key)
	if err != nil {
		p.find(Stops, "equal", name, "%v", err)
		_ = p.reach(ctx, sku.Key) // whether it was the Stock or SQL; the reason has been said
		return
	}
	if q := &s.view.Queue; q.Depth > 0 && q.Oldest > lagFails {
		p.find(Stops, "consumers", name, "%s, the oldest for %s: nobody decides them", counted(q.Depth, "job waits", "jobs wait"), q.Oldest.Round(time.Second))
	}
	if loss := p.lossOf(s.sku, &s.view); loss != "" {
		p.find(Stops, "equal", name, "the stock is not loaded: %s; a running instance loads it within seconds", loss)
		return
	}
	if what := s.underWay(); what != "" {
		p.find(Warns, "equal", name, "whether stock and SQL are equal cannot be said now: %s", what)
		return
	}
	if d := s.drift(); d != nil {
		p.find(Stops, "equal", name, "%s; rebuild it", d)
	}
	if left := s.sku.Settings.ClosesAt.Sub(s.view.Now); left <= 0 && s.sku.Settings.Status != flashsale.Closed {
		p.find(Warns, "equal", name, "its closing time has passed")
	}
}

// clocks compares those of the stores with that of this process. What a call takes is not held against them.
func (p *preflight) clocks(ctx context.Context, key flashsale.Key) {
	p.clock("the database", func() (time.Time, error) { return p.orders.Now(ctx) })
	if p.stockAway {
		p.find(Stops, "clocks", "", "the clock of the stock cannot be asked: %s", noStock)
		return
	}
	p.clock("the stock", func() (time.Time, error) {
		v, err := p.stock.View(ctx, key)
		return v.Now, err
	})
}

func (p *preflight) clock(whose string, ask func() (time.Time, error)) {
	before := p.cfg.Now()
	theirs, err := ask()
	after := p.cfg.Now()
	if err != nil {
		p.find(Stops, "clocks", "", "the clock of %s cannot be asked: %v", whose, err)
		return
	}
	skew := max(before.Sub(theirs), theirs.Sub(after), 0)
	switch {
	case skew > skewFails:
		p.find(Stops, "clocks", "", "the clocks of %s and of this process are %s apart", whose, skew.Round(time.Millisecond))
	case skew > skewWarns:
		p.find(Warns, "clocks", "", "the clocks of %s and of this process are %s apart", whose, skew.Round(time.Millisecond))
	}
}

// alive asks for the lease of a job: if nobody has it, nobody runs.
func (p *preflight) alive(ctx context.Context) {
	if p.care.started.Load() {
		return
	}
	held, err := p.underLease(ctx, leasePrefix+"sweep", func(context.Context, int64) error { return nil })
	if err == nil && held {
		p.find(Stops, "consumers", "", "no instance is running: nothing would be decided, swept or watched")
	}
}

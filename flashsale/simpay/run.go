package simpay

import (
	"context"
	"sync"
	"time"
)

// outbox are the webhooks that are due, while Run sends them.
type outbox struct {
	ready    []*delivery // in the order in which they were due
	underWay int
}

// Run does what Step does as time passes, until the context ends, and sends up to Config.Parallel webhooks at a time: those of one payment one after the
// other, in their order. It returns when none is under way. One Run at a time, and no Step beside it.
func (p *Provider) Run(ctx context.Context) error {
	var under sync.WaitGroup
	defer under.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-p.wake:
		}
		next := p.advance(ctx, &under)
		if next.IsZero() {
			timer.Stop()
			continue
		}
		timer.Reset(max(time.Millisecond, next.Sub(p.cfg.Now())))
	}
}

// advance makes the changes happen that are due, and begins to send what is due and has a place. It returns when the next is due.
func (p *Provider) advance(ctx context.Context, under *sync.WaitGroup) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, due := p.next(p.cfg.Now())
	for ; t != nil; t, due = p.next(p.cfg.Now()) {
		if t.delivery != nil {
			p.waiting++ // until it is sent
			p.outbox.ready = append(p.outbox.ready, t.delivery)
		}
	}
	for len(p.outbox.ready) > 0 && p.outbox.underWay < p.cfg.Parallel {
		d := p.outbox.ready[0]
		p.outbox.ready[0], p.outbox.ready = nil, p.outbox.ready[1:]
		if d.pay.sending {
			d.pay.behind = append(d.pay.behind, d)
			continue
		}
		p.waiting--
		p.outbox.underWay++
		d.pay.sending = true
		under.Go(func() {
			p.deliver(ctx, d)
			p.sent(d)
		})
	}
	return due
}

// sent gives the place of a webhook back, and the turn to the next one of its payment.
func (p *Provider) sent(d *delivery) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outbox.underWay--
	pay := d.pay
	pay.sending = false
	if len(pay.behind) > 0 {
		p.outbox.ready = append(p.outbox.ready, pay.behind[0])
		pay.behind[0], pay.behind = nil, pay.behind[1:]
	}
	p.rouse()
}

package simpay

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/paywire"
)

const maxRetry = time.Hour

// delivery is a webhook on its way.
type delivery struct {
	pay      *payment
	body     []byte
	attempts int
	gone     bool // it was sent, or given up
}

// Webhook implements [flashsale.Payments].
func (p *Provider) Webhook(header map[string][]string, body []byte) (*flashsale.ProviderEvent, error) {
	p.mu.Lock()
	v := paywire.Verifier{Secrets: p.secrets, Tolerance: p.cfg.Tolerance, Now: p.cfg.Now()}
	p.mu.Unlock()
	return paywire.ReadMessage(&v, header, body)
}

// tell puts the webhook of a change on its way.
func (p *Provider) tell(pay *payment, now time.Time) {
	if p.cfg.Deliver == nil {
		return
	}
	b := &p.cfg.Behaviour
	d := &delivery{pay: pay, body: p.message(pay)}
	if p.roll(b.Lost) {
		p.stats.Lost++
		return
	}
	at := now.Add(b.Webhook.pick(p.rng))
	if p.roll(b.Late) {
		at = at.Add(b.LateBy)
	}
	before := pay.withheld
	pay.withheld = nil
	if p.roll(b.Reordered) {
		pay.withheld = d
		p.send(d, at.Add(b.LateBy))
	} else {
		p.send(d, at)
	}
	if before != nil && !before.gone {
		p.send(before, at) // after this one: what is equally due goes in the order of the calls
	}
	if p.roll(b.Twice) {
		p.send(&delivery{pay: pay, body: d.body}, at.Add(b.Webhook.pick(p.rng)))
	}
}

// message is the body that tells where a payment stands now.
func (p *Provider) message(pay *payment) []byte {
	var id [16]byte
	for i := range id {
		id[i] = byte(p.rng.Uint32())
	}
	shown := pay.show(p.cfg.URL)
	if p.roll(p.cfg.Behaviour.Misreport) {
		shown.Amount, shown.Currency = p.wrong(shown.Amount, shown.Currency)
	}
	return paywire.Message("evt_"+hex.EncodeToString(id[:]), &shown)
}

// send schedules a delivery. A provider's memory has an end too: beyond it webhooks are lost.
func (p *Provider) send(d *delivery, at time.Time) {
	if p.waiting >= p.cfg.MaxWebhooks {
		p.stats.Lost++
		return
	}
	p.waiting++
	p.push(&task{at: at, delivery: d})
}

// deliver sends a webhook once, and puts it back if the receiver does not take it.
func (p *Provider) deliver(ctx context.Context, d *delivery) {
	p.mu.Lock()
	header := http.Header{"Content-Type": {"application/json"}, SignatureHeader: {Sign(p.secrets, p.cfg.Now(), d.body)}}
	p.stats.Sent++
	p.mu.Unlock()
	err := p.cfg.Deliver(ctx, header, d.body)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		return
	}
	p.stats.Refused++
	d.attempts++
	if d.attempts >= p.cfg.Attempts {
		p.stats.Lost++
		return
	}
	d.gone = false
	wait := p.cfg.RetryAfter << min(d.attempts-1, 30)
	if wait <= 0 || wait > maxRetry {
		wait = maxRetry
	}
	p.send(d, p.cfg.Now().Add(wait))
}

// Post returns a Deliver that posts webhooks to an address. Client must have a time-out.
func Post(client *http.Client, address string) Deliver {
	return func(ctx context.Context, header http.Header, body []byte) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header = header
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, paywire.MaxWebhook)) // so that the connection can be used again
		if res.StatusCode/100 != 2 {
			return errorf(flashsale.CodeUnavailable, "the receiver of webhooks answers %s", res.Status)
		}
		return nil
	}
}

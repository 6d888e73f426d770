package simpay

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/paywire"
)

// Provider is a simulated payment provider. It is safe for concurrent use; with concurrent calls, the order in which they come is
// what chance does not decide.
type Provider struct {
	cfg  Config
	wake chan struct{}

	mu       sync.Mutex // guards all below
	rng      *rand.Rand
	payments map[string]*payment
	changes  changes
	agenda   agenda
	waiting  int // webhooks in the agenda, and those that are due and not sent
	outbox   outbox
	secrets  [][]byte
	outage   Outage
	stats    Stats
}

var _ flashsale.Payments = (*Provider)(nil)

// payment is an intent and what has become of it.
type payment struct {
	intent  flashsale.Intent
	status  flashsale.PayStatus
	voiding bool // a void was asked for and is not decided
	// took and currency are what a capture has taken.
	took                int64
	currency            string
	captures, refunds   int64
	createdAt, changeAt time.Time
	change              int64 // its latest number in changes
	withheld            *delivery
	// sending tells that Run is sending a webhook of it; behind are those that wait for that.
	sending bool
	behind  []*delivery
}

// Outage is a way of not being there.
type Outage int

// The outages.
const (
	Up         Outage = iota // calls are answered
	DownBefore               // calls fail and have no effect
	DownAfter                // calls take effect, and nobody is told
)

// New returns a provider without payments.
func New(cfg Config) *Provider {
	cfg = cfg.withDefaults()
	return &Provider{
		cfg: cfg, rng: cfg.Rand, secrets: cloneSecrets(cfg.Secrets), payments: map[string]*payment{}, wake: make(chan struct{}, 1),
	}
}

// SetOutage begins or ends an outage. Webhooks go on, as they do at real providers.
func (p *Provider) SetOutage(o Outage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outage = o
}

// SetBehaviour changes how shoppers and the network misbehave from now on.
func (p *Provider) SetBehaviour(b Behaviour) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cfg.Behaviour = b
}

// SetSecrets changes the secrets. To rotate, have old and new in use together for a while.
func (p *Provider) SetSecrets(secrets ...[]byte) error {
	if len(secrets) == 0 || len(secrets) > paywire.MaxSecrets {
		return errorf(flashsale.CodeInvalidArgument, "%d secrets; give 1 to %d", len(secrets), paywire.MaxSecrets)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.secrets = cloneSecrets(secrets)
	return nil
}

// Create implements [flashsale.Payments]. The same key with another amount or currency is CodeConflict.
func (p *Provider) Create(ctx context.Context, in *flashsale.Intent) (*flashsale.ProviderPayment, error) {
	return p.call(ctx, func(now time.Time) (*payment, error) {
		if in.Key == "" || len(in.Key) > 255 || in.Amount < 0 || in.Currency == "" {
			return nil, errorf(flashsale.CodeInvalidArgument, "an intent needs a key of 1 to 255 bytes, a currency, and an amount of 0 or more")
		}
		if pay := p.payments[in.Key]; pay != nil {
			if pay.intent.Amount != in.Amount || pay.intent.Currency != in.Currency {
				return nil, errorf(flashsale.CodeConflict, "intent %s was made with another amount or currency", in.Key)
			}
			return pay, nil
		}
		if !p.makeRoom(now) {
			return nil, p.full()
		}
		pay := &payment{intent: *in, took: in.Amount, currency: in.Currency, createdAt: now}
		p.payments[in.Key] = pay
		p.move(pay, flashsale.PayOpen, now)
		p.sendShopper(pay, now)
		return pay, nil
	})
}

// Query implements [flashsale.Payments].
func (p *Provider) Query(ctx context.Context, intentKey string) (*flashsale.ProviderPayment, error) {
	return p.call(ctx, func(time.Time) (*payment, error) { return p.find(intentKey) })
}

// Void implements [flashsale.Payments]. Asking again while it is not decided changes nothing.
func (p *Provider) Void(ctx context.Context, intentKey string) (*flashsale.ProviderPayment, error) {
	return p.call(ctx, func(now time.Time) (*payment, error) {
		pay, err := p.find(intentKey)
		if err != nil || pay.status != flashsale.PayOpen || pay.voiding {
			return pay, err
		}
		pay.voiding = true
		if b := &p.cfg.Behaviour; p.roll(b.VoidLater) {
			p.at(now.Add(b.VoidTime.pick(p.rng)), pay, func(now time.Time) { p.decideVoid(pay, now) })
			return pay, nil
		}
		p.decideVoid(pay, now)
		return pay, nil
	})
}

// Refund implements [flashsale.Payments]. Of what was not captured it is CodeInvalidState.
func (p *Provider) Refund(ctx context.Context, intentKey string) (*flashsale.ProviderPayment, error) {
	return p.call(ctx, func(now time.Time) (*payment, error) {
		pay, err := p.find(intentKey)
		switch {
		case err != nil || pay.status == flashsale.PayRefunded:
			return pay, err
		case pay.status != flashsale.PayCaptured:
			return nil, errorf(flashsale.CodeInvalidState, "payment %s is %s: there is nothing to refund", intentKey, pay.status)
		}
		pay.refunds++
		p.move(pay, flashsale.PayRefunded, now)
		return pay, nil
	})
}

// List implements [flashsale.Payments], in the order of the changes.
func (p *Provider) List(ctx context.Context, since time.Time, cursor string, limit int) (page []flashsale.ProviderPayment, next string, err error) {
	_, err = p.call(ctx, func(time.Time) (*payment, error) {
		page, next, err = p.list(since, cursor, limit)
		return nil, err
	})
	if err != nil {
		return nil, "", err
	}
	return page, next, nil
}

// call runs one call of the provider's interface, unless there is an outage before it, and answers, unless there is one after it.
func (p *Provider) call(ctx context.Context, f func(now time.Time) (*payment, error)) (*flashsale.ProviderPayment, error) {
	if err := ctx.Err(); err != nil {
		return nil, &flashsale.Error{Code: flashsale.CodeUnavailable, Message: "the payment provider was not asked", Err: err}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.Calls++
	if p.outage == DownBefore || p.roll(p.cfg.Behaviour.FailBefore) {
		return nil, p.away()
	}
	pay, err := f(p.cfg.Now())
	if p.outage == DownAfter || p.roll(p.cfg.Behaviour.FailAfter) {
		return nil, p.away()
	}
	if err != nil || pay == nil {
		return nil, err
	}
	shown := pay.show(p.cfg.URL)
	return &shown, nil
}

func (p *Provider) away() error {
	p.stats.Failed++
	return errorf(flashsale.CodeUnavailable, "the payment provider does not answer")
}

func (p *Provider) find(key string) (*payment, error) {
	if pay := p.payments[key]; pay != nil {
		return pay, nil
	}
	return nil, errorf(flashsale.CodeUnknownPayment, "the payment provider knows no payment %q", key)
}

// move brings a payment to a status, and tells of it.
func (p *Provider) move(pay *payment, to flashsale.PayStatus, now time.Time) {
	pay.status, pay.changeAt = to, now
	if to != flashsale.PayOpen {
		pay.voiding = false
	}
	if to == flashsale.PayCaptured {
		pay.captures++
	}
	p.changes.add(p.payments, pay)
	p.tell(pay, now)
}

func (p *Provider) roll(chance float64) bool {
	return chance > 0 && (chance >= 1 || p.rng.Float64() < chance)
}

func (pay *payment) show(address string) flashsale.ProviderPayment {
	return flashsale.ProviderPayment{
		IntentKey: pay.intent.Key, Status: pay.status, Amount: pay.took, Currency: pay.currency,
		URL: address + url.PathEscape(pay.intent.Key), ChangedAt: pay.changeAt,
	}
}

func cloneSecrets(secrets [][]byte) [][]byte {
	out := make([][]byte, len(secrets))
	for i, s := range secrets {
		out[i] = append([]byte(nil), s...)
	}
	return out
}

func errorf(code flashsale.Code, format string, args ...any) error {
	return &flashsale.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

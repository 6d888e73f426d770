package app

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/httppay"
	"github.com/headgate-io/headgate/flashsale/simpay"
)

// till is who takes the money.
type till struct {
	payments flashsale.Payments // nil if nothing can be paid
	// simulated is the provider in this process, and pages is where its shoppers pay; nil if it is another.
	simulated *simpay.Provider
	pages     http.Handler
	// webhook takes the messages of the provider in this process.
	webhook func(ctx context.Context, header map[string][]string, body []byte) error
}

// checkPay refuses a way to pay that there is not. Of a payment service it returns the client, which has asked nothing of it yet.
func (c *SaleConfig) checkPay() (*httppay.Client, error) {
	switch {
	case c.Pay == "":
		return nil, usagef("sale: nobody says who takes the money; write --pay with the URL of a payment service, --pay %s, with which no money moves, or --pay %s",
			PaySimulated, PayNone)
	case (c.Pay == PaySimulated || c.Pay == PayNone) && c.PayReturn != "":
		return nil, usagef("sale: --pay-return is for a payment service, and --pay is %s", c.Pay)
	case c.Pay == PaySimulated && c.PaySecret != "": // a secret that is no good must not pass for one because no money moves yet
		_, err := checkedPaySecrets(c.PaySecret)
		return nil, err
	case c.Pay == PaySimulated, c.Pay == PayNone:
		return nil, nil
	case !strings.Contains(c.Pay, "://"):
		return nil, usagef("sale: --pay is neither the URL of a payment service, such as https://pay.example.com/v1, nor %s nor %s", PaySimulated, PayNone)
	}
	secrets, err := checkedPaySecrets(c.PaySecret)
	if err != nil {
		return nil, err
	}
	client, err := httppay.New(httppay.Config{URL: c.Pay, Secrets: secrets, ReturnURL: c.PayReturn})
	if err != nil {
		return nil, usagef("sale: --pay: %w", err)
	}
	return client, nil
}

// paySecrets reads the secrets that a sale and a payment service share: several with commas or line feeds between them, so that they can
// be rotated.
func paySecrets(text string) (secrets [][]byte, err error) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '\n' || r == '\r' }) {
		if word = strings.TrimSpace(word); word != "" {
			secrets = append(secrets, []byte(word))
		}
	}
	if len(secrets) == 0 {
		return nil, usagef("payments: there is no secret to sign with, which the sale and its payment service share; " +
			"set HEADGATE_PAY_SECRET or HEADGATE_PAY_SECRET_FILE, such as to the output of: openssl rand -base64 32")
	}
	return secrets, nil
}

// checkedPaySecrets reads secrets that nobody can guess.
func checkedPaySecrets(text string) ([][]byte, error) {
	secrets, err := paySecrets(text)
	if err != nil {
		return nil, err
	}
	if err := httppay.CheckSecrets(secrets...); err != nil {
		return nil, usagef("payments: HEADGATE_PAY_SECRET: %w", err)
	}
	for i, secret := range secrets {
		if Repetitive(string(secret)) {
			return nil, usagef("payments: HEADGATE_PAY_SECRET: secret %d repeats a few bytes, so that it can be guessed; give the output of: openssl rand -base64 32", i+1)
		}
	}
	return secrets, nil
}

// shownPay is the way to pay without what could be a password.
func (c *SaleConfig) shownPay() string {
	if u, err := url.Parse(c.Pay); err == nil && u.Host != "" {
		return u.Scheme + "://" + u.Host
	}
	return c.Pay
}

// openTill makes the way to pay. Nothing is asked of a payment service yet.
func (s *sale) openTill(ctx context.Context) (*till, error) {
	t := &till{}
	switch {
	case s.cfg.Pay == PaySimulated:
		return t, s.simulate(ctx, t)
	case s.pay != nil:
		t.payments = s.pay
	}
	return t, nil
}

// simulate makes a provider in this process. It goes on with the payments that the database knows of: so those of before a restart can
// still be paid, voided and refunded.
func (s *sale) simulate(ctx context.Context, t *till) error {
	cfg := simpay.Config{URL: PayPath, Deliver: func(ctx context.Context, header http.Header, body []byte) error { return t.webhook(ctx, header, body) }}
	if s.cfg.PaySecret != "" {
		var err error
		if cfg.Secrets, err = checkedPaySecrets(s.cfg.PaySecret); err != nil {
			return err
		}
	}
	t.simulated = simpay.New(cfg)
	t.payments, t.pages = t.simulated, NewPayPages(t.simulated, "")
	return t.simulated.AdoptAll(ctx, s.stores.orders)
}

// run runs the provider in this process until ctx ends.
func (t *till) run(ctx context.Context) error {
	if t.simulated == nil {
		return nil
	}
	return t.simulated.Run(ctx)
}

// PayPath is what the addresses begin with at which shoppers of the simulated provider pay: beside the sales, so that the rules for them
// hold here too. The intent's key follows.
const PayPath = "/_headgate/sales/~/pay/"

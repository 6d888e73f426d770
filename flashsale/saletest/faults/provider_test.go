package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/simpay"
)

// webhookSecret signs what the provider sends.
const webhookSecret = "a secret of the provider and of the shop"

// providerCall is what the provider is asked over the network.
type providerCall struct {
	Intent *flashsale.Intent
	Key    string
	Since  time.Time
	Cursor string
	Limit  int
}

type providerReply struct {
	Code    flashsale.Code
	Text    string
	Payment *flashsale.ProviderPayment
	Page    []flashsale.ProviderPayment
	Next    string
}

// serveProvider runs a provider behind HTTP until the test ends, and returns its address.
func serveProvider(t *testing.T, p *simpay.Provider) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serve(w, r, func(ctx context.Context, what string, c *providerCall) (*providerReply, error) {
			return askProvider(ctx, p, what, c)
		})
	})}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = p.Run(ctx) }) // it returns nil
	running.Go(func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("the provider: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); server.Close(); running.Wait() })
	return "http://" + l.Addr().String()
}

func askProvider(ctx context.Context, p *simpay.Provider, what string, c *providerCall) (*providerReply, error) {
	r := &providerReply{}
	var err error
	switch what {
	case "create":
		r.Payment, err = p.Create(ctx, c.Intent)
	case "query":
		r.Payment, err = p.Query(ctx, c.Key)
	case "void":
		r.Payment, err = p.Void(ctx, c.Key)
	case "refund":
		r.Payment, err = p.Refund(ctx, c.Key)
	case "list":
		r.Page, r.Next, err = p.List(ctx, c.Since, c.Cursor, c.Limit)
	default:
		return nil, fmt.Errorf("the provider cannot %q", what)
	}
	r.Code, r.Text = codeOf(err), textOf(err)
	return r, nil
}

// remoteProvider is the provider as an instance knows it.
type remoteProvider struct {
	url    string
	client *http.Client
	// words verifies and reads webhooks, and has no payments.
	words *simpay.Provider
}

func newRemoteProvider(url string) *remoteProvider {
	return &remoteProvider{url: url, client: newClient(2 * time.Second), words: simpay.New(simpay.Config{Secrets: [][]byte{[]byte(webhookSecret)}})}
}

func (p *remoteProvider) ask(ctx context.Context, what string, c *providerCall) (*providerReply, error) {
	var r providerReply
	if err := post(ctx, p.client, p.url+"/"+what, c, &r); err != nil {
		return nil, &flashsale.Error{Code: flashsale.CodeUnavailable, Message: "the provider", Err: err}
	}
	if r.Code != "" {
		return nil, &flashsale.Error{Code: r.Code, Message: r.Text}
	}
	return &r, nil
}

func (p *remoteProvider) payment(ctx context.Context, what string, c *providerCall) (*flashsale.ProviderPayment, error) {
	r, err := p.ask(ctx, what, c)
	if err != nil {
		return nil, err
	}
	return r.Payment, nil
}

func (p *remoteProvider) Create(ctx context.Context, in *flashsale.Intent) (*flashsale.ProviderPayment, error) {
	return p.payment(ctx, "create", &providerCall{Intent: in})
}

func (p *remoteProvider) Query(ctx context.Context, key string) (*flashsale.ProviderPayment, error) {
	return p.payment(ctx, "query", &providerCall{Key: key})
}

func (p *remoteProvider) Void(ctx context.Context, key string) (*flashsale.ProviderPayment, error) {
	return p.payment(ctx, "void", &providerCall{Key: key})
}

func (p *remoteProvider) Refund(ctx context.Context, key string) (*flashsale.ProviderPayment, error) {
	return p.payment(ctx, "refund", &providerCall{Key: key})
}

func (p *remoteProvider) Webhook(header map[string][]string, body []byte) (*flashsale.ProviderEvent, error) {
	return p.words.Webhook(header, body)
}

func (p *remoteProvider) List(ctx context.Context, since time.Time, cursor string, limit int) ([]flashsale.ProviderPayment, string, error) {
	r, err := p.ask(ctx, "list", &providerCall{Since: since, Cursor: cursor, Limit: limit})
	if err != nil {
		return nil, "", err
	}
	return r.Page, r.Next, nil
}

// newClient returns a client with a time-out and connections of its own.
func newClient(timeout time.Duration) *http.Client {
	return &http.Client{Timeout: timeout, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
}

package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/headgate-io/headgate/flashsale/httppay"
	"github.com/headgate-io/headgate/flashsale/simpay"
	"github.com/headgate-io/headgate/gateway"
)

// SimpayConfig says how a simulated payment service behaves, in a process of its own. Listen and Secret have no default.
type SimpayConfig struct {
	// Listen is its address.
	Listen string
	// URL is what shoppers' browsers reach it by; default http:// and the address.
	URL string
	// Webhook gets the messages that tell of changes, such as http://127.0.0.1:8080/_headgate/sales/~/webhook; "" for none.
	Webhook string
	// Secret is that of SaleConfig.PaySecret, and SecretFile the file that it comes from, whose changes are taken up within seconds; "" for none.
	Secret, SecretFile string
	// Parallel is how many webhooks are under way at a time, those of one payment one after the other; default DefaultWebhooks.
	Parallel int
	// Behaviour is how shoppers and the network misbehave, each chance 0 to 1 and each time 0 to an hour; the zero value is one at its best.
	Behaviour simpay.Behaviour
	// Log gets one line at the start and what goes wrong; nil discards it.
	Log *slog.Logger
}

// DefaultWebhooks is the default of SimpayConfig.Parallel.
const DefaultWebhooks = 16

const maxWebhooks = 1000

// Where things are at a simulated payment service, and how long it waits for whom it tells.
const (
	simpayAPI     = "/v1"
	simpayPages   = "/pay/"
	simpayTell    = 5 * time.Second
	simpayDrain   = 5 * time.Second
	maxSimpayTime = time.Hour
)

// Simpay runs a simulated payment service until ctx ends: no money moves, and all of it is forgotten at the end.
func Simpay(ctx context.Context, cfg SimpayConfig) error {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	secrets, err := cfg.check()
	if err != nil {
		return err
	}
	l, err := Listen(ctx, "listen", cfg.Listen)
	if err != nil {
		return err
	}
	defer l.Close()
	if cfg.URL == "" {
		cfg.URL = "http://" + reachable(l.Addr())
	}
	s, err := newSimpayService(cfg, secrets)
	if err != nil {
		return err
	}
	if cfg.Webhook == "" {
		cfg.Log.Warn("no webhooks are sent: a sale hears of its payments by asking alone; name its webhook with --webhook")
	}
	cfg.Log.Info("simulated payments: no money moves", "listen", l.Addr().String(), "api", cfg.URL+simpayAPI, "webhook", cfg.Webhook)
	return s.run(ctx, l)
}

// check refuses what makes no sense, and returns the secrets.
func (c *SimpayConfig) check() ([][]byte, error) {
	for _, address := range []struct{ flag, text string }{{"--url", c.URL}, {"--webhook", c.Webhook}} {
		if u, err := url.Parse(address.text); address.text != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "") {
			return nil, usagef("%s is no URL; write one such as http://127.0.0.1:8080/_headgate/sales/~/webhook", address.flag)
		}
	}
	c.URL = strings.TrimRight(c.URL, "/")
	if c.Parallel == 0 {
		c.Parallel = DefaultWebhooks
	}
	if c.Parallel < 1 || c.Parallel > maxWebhooks {
		return nil, usagef("%d webhooks at a time; write --parallel 1 to %d", c.Parallel, maxWebhooks)
	}
	if err := checkBehaviour(&c.Behaviour); err != nil {
		return nil, err
	}
	return checkedPaySecrets(c.Secret)
}

// checkBehaviour refuses chances and times that are none.
func checkBehaviour(b *simpay.Behaviour) error {
	for _, chance := range []float64{
		b.Capture, b.Fail, b.Capture + b.Fail, b.WrongCapture, b.VoidLater, b.VoidTooLate, b.Undone, b.FailBefore, b.FailAfter, b.Lost, b.Twice, b.Late, b.Reordered, b.Misreport,
	} {
		if !(chance >= 0 && chance <= 1) { // nor is what is no number
			return usagef("a chance of %g; write 0, never, to 1, always; that shoppers pay and that they fail are together no more than 1", chance)
		}
	}
	for _, d := range []time.Duration{b.Shopper.Min, b.Shopper.Max, b.VoidTime.Min, b.VoidTime.Max, b.Webhook.Min, b.Webhook.Max, b.LateBy} {
		if d < 0 || d > maxSimpayTime {
			return usagef("a time of %s; write 0s to %s", d, maxSimpayTime)
		}
	}
	return nil
}

// reachable is an address that this machine reaches a listener by.
func reachable(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return a.String()
}

// simpayService is a simulated provider behind HTTP.
type simpayService struct {
	secret   *liveSecret // nil if it does not come from a file
	api      *httppay.Handler
	provider *simpay.Provider
	server   *gateway.Server
	client   *http.Client
}

func newSimpayService(cfg SimpayConfig, secrets [][]byte) (*simpayService, error) {
	s := &simpayService{client: &http.Client{
		Timeout: simpayTell, Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: cfg.Parallel, IdleConnTimeout: time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	provider := simpay.Config{URL: cfg.URL + simpayPages, Secrets: secrets, Parallel: cfg.Parallel, Behaviour: cfg.Behaviour}
	if cfg.Webhook != "" {
		provider.Deliver = told(simpay.Post(s.client, cfg.Webhook), cfg.Log)
	}
	s.provider = simpay.New(provider)
	if cfg.SecretFile != "" {
		s.secret = newLiveSecret("HEADGATE_PAY_SECRET_FILE", cfg.SecretFile, cfg.Secret, cfg.Log, s.replaceSecrets)
	}
	var err error
	s.api, err = httppay.NewHandler(httppay.HandlerConfig{Payments: s.provider, Secrets: secrets, Prefix: simpayAPI, Logger: cfg.Log})
	if err != nil {
		return nil, &UsageError{fmt.Errorf("HEADGATE_PAY_SECRET: %w", err)}
	}
	mux := http.NewServeMux()
	mux.Handle(simpayAPI+"/", s.api)
	mux.Handle(simpayPages, payPagesAt(s.provider, simpayPages, ""))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })
	s.server, err = gateway.NewServer(gateway.ServerConfig{Handler: mux, Logger: cfg.Log, DrainTimeout: simpayDrain})
	return s, err
}

// told logs which messages nobody takes: that is what somebody who sets this up has to know.
func told(deliver simpay.Deliver, log *slog.Logger) simpay.Deliver {
	return func(ctx context.Context, header http.Header, body []byte) error {
		err := deliver(ctx, header, body)
		if err != nil && ctx.Err() == nil {
			log.Warn("a webhook was not taken; it is sent again later", "error", err)
		}
		return err
	}
}

// replaceSecrets puts other secrets in force for requests and webhooks alike.
func (s *simpayService) replaceSecrets(text string) ([]any, error) {
	secrets, err := checkedPaySecrets(text)
	if err == nil {
		err = errors.Join(s.api.SetSecrets(secrets...), s.provider.SetSecrets(secrets...))
	}
	return []any{"secrets", len(secrets)}, err
}

func (s *simpayService) run(ctx context.Context, l net.Listener) error {
	defer s.client.CloseIdleConnections()
	group, ctx := errgroup.WithContext(ctx)
	if s.secret != nil {
		group.Go(func() error {
			s.secret.run(ctx)
			return nil
		})
	}
	group.Go(func() error { return s.provider.Run(ctx) })
	group.Go(func() error {
		if err := s.server.Run(ctx, l); err != nil && !errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("simpay: %w", err)
		}
		return nil
	})
	return group.Wait()
}

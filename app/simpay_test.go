package app

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale/simpay"
)

// payService is a simulated payment service that runs.
type payService struct {
	api  string
	log  *logLines
	stop context.CancelFunc
	done chan error
}

func startSimpay(t *testing.T, cfg SimpayConfig) *payService {
	t.Helper()
	s := &payService{log: newLogLines(t), done: make(chan error, 1)}
	cfg.Log = s.log.logger()
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	if cfg.Secret == "" {
		cfg.Secret = paySecret
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.stop = cancel
	t.Cleanup(cancel)
	go func() {
		err := Simpay(ctx, cfg)
		_ = s.log.w.Close()
		s.done <- err
	}()
	at := regexp.MustCompile(`api=(\S+)`).FindStringSubmatch(s.log.await(t, "simulated payments"))
	if at == nil {
		t.Fatal("the first line says no address")
	}
	s.api = at[1]
	return s
}

func (s *payService) close(t *testing.T) {
	t.Helper()
	s.stop()
	if err := <-s.done; err != nil {
		t.Error(err)
	}
}

// postbox passes webhooks on to a shop whose address is known later.
func postbox(t *testing.T) (address string, to *atomic.Pointer[url.URL]) {
	t.Helper()
	to = new(atomic.Pointer[url.URL])
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to.Load()) }, Transport: &http.Transport{DisableKeepAlives: true}}
	s := httptest.NewServer(proxy)
	t.Cleanup(s.Close)
	return s.URL, to
}

// TestSaleThroughAPaymentService: a sale in one process, its payments in another, from the click to the order, a cancellation, a secret
// that is another's, and a service that ends.
func TestSaleThroughAPaymentService(t *testing.T) {
	t.Parallel()
	box, to := postbox(t)
	bank := startSimpay(t, SimpayConfig{Webhook: box + "/_headgate/sales/~/webhook"})
	s := openShop(t, ServeConfig{}, SaleConfig{DB: "sqlite::memory:", Pay: bank.api, PayReturn: "https://shop.example.com/orders/{order}"})
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	to.Store(u)
	s.sell(3)

	ann := s.reserve("ann", s.token("ann"))
	page := s.as("ann", "POST", ann+"/pay", "").str("url")
	if !strings.HasPrefix(page, strings.TrimSuffix(bank.api, "/v1")+"/pay/") {
		t.Fatalf("pay at %q", page)
	}
	if r := s.send("GET", page, ""); !strings.Contains(r.text, "12.50 EUR") || !strings.Contains(r.text, `href="https://shop.example.com/orders/o.`) {
		t.Errorf("the page: %d %s", r.status, r.text)
	}
	if r := s.send("POST", page, "outcome=captured", "Content-Type", "application/x-www-form-urlencoded"); r.status != http.StatusOK {
		t.Errorf("pay: %d %s", r.status, r.text)
	}
	s.until("confirmed", func() *reply { return s.as("ann", "GET", ann, "") }, state("confirmed"))

	ben := s.reserve("ben", s.token("ben"))
	page = s.as("ben", "POST", ben+"/pay", "").str("url")
	s.until("cancelled", func() *reply { return s.as("ben", "POST", ben+"/cancel", "") }, state("cancelled"))
	if r := s.send("POST", page, "outcome=captured", "Content-Type", "application/x-www-form-urlencoded"); r.status != http.StatusConflict || !strings.Contains(r.text, "void") {
		t.Errorf("pay what is void: %d %s", r.status, r.text)
	}
	if r := s.send("GET", bank.api+"/intents?since=2026-01-01T00:00:00Z", ""); r.status != http.StatusUnauthorized {
		t.Errorf("a stranger: %d %s", r.status, r.text)
	}
	s.report()

	cat := s.reserve("cat", s.token("cat"))
	bank.close(t)
	if r := s.as("cat", "POST", cat+"/pay", ""); r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "" || r.str("code") != "unavailable" {
		t.Errorf("pay at a service that has ended: %d %v %s", r.status, r.header, r.text)
	}
	s.close()
}

// TestSaleAndServiceHaveOtherSecrets: nothing is opened that could not be paid, and the operator is told why; who opens it all the same
// has shoppers told to try again.
func TestSaleAndServiceHaveOtherSecrets(t *testing.T) {
	t.Parallel()
	bank := startSimpay(t, SimpayConfig{Secret: strings.Repeat("another", 5)})
	s := openShop(t, ServeConfig{}, SaleConfig{DB: "sqlite::memory:", Pay: bank.api})
	s.create(1)
	if r := s.operate("POST", "/spring/open", `{"reason": "it is time"}`); r.status != http.StatusConflict || !strings.Contains(r.text, "have both sides the same secret") || strings.Contains(r.text, paySecret) {
		t.Errorf("open: %d %s", r.status, r.text)
	}
	s.until("open", func() *reply { return s.operate("POST", "/spring/open", `{"reason": "it is time", "force": true}`) }, status(http.StatusOK))
	ann := s.reserve("ann", s.token("ann"))
	if r := s.as("ann", "POST", ann+"/pay", ""); r.status != http.StatusServiceUnavailable || r.str("code") != "unavailable" {
		t.Errorf("pay: %d %s", r.status, r.text)
	}
	s.close()
	bank.close(t)
}

// TestSimpayShoppers pay by themselves, by chance.
func TestSimpayShoppers(t *testing.T) {
	t.Parallel()
	box, to := postbox(t)
	bank := startSimpay(t, SimpayConfig{Webhook: box + "/_headgate/sales/~/webhook", Behaviour: simpay.Behaviour{Capture: 1, Twice: 1}})
	s := openShop(t, ServeConfig{}, SaleConfig{DB: "sqlite::memory:", Pay: bank.api})
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	to.Store(u)
	s.sell(1)
	ann := s.reserve("ann", s.token("ann"))
	s.as("ann", "POST", ann+"/pay", "")
	s.until("confirmed", func() *reply { return s.as("ann", "GET", ann, "") }, state("confirmed"))
	s.close()
	bank.close(t)
}

// TestPayRefuses: what is wrong with a way to pay is said at once, in one line, without a secret.
func TestPayRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pay, secret, back, want string
	}{
		"no URL":         {"cash", paySecret, "", "--pay is neither the URL of a payment service"},
		"no secret":      {"https://pay.example.com/v1", "", "", "set HEADGATE_PAY_SECRET"},
		"commas":         {"https://pay.example.com/v1", " ,\n", "", "set HEADGATE_PAY_SECRET"},
		"a short secret": {"https://pay.example.com/v1", paySecret + ",hidden", "", "secret 2 for the payment service has 6 bytes"},
		"simulated":      {PaySimulated, "hidden", "", "secret 1 for the payment service has 6 bytes"},
		"guessable":      {PaySimulated, strings.Repeat("abc", 20), "", "secret 1 repeats a few bytes"},
		"plain HTTP":     {"http://pay.example.com/v1", paySecret, "", "for this machine alone"},
		"a password":     {"https://u:hidden@pay.example.com/v1", paySecret, "", "has a user"},
		"another scheme": {"ftp://hidden/", paySecret, "", "is no URL"},
		"back to hidden": {"https://pay.example.com/v1", paySecret, "hidden", "come back"},
		"back from none": {PayNone, paySecret, "https://hidden/", "--pay-return is for a payment service"},
	} {
		sale := SaleConfig{DB: "sqlite::memory:", Pay: c.pay, PaySecret: c.secret, PayReturn: c.back}
		err := Serve(t.Context(), ServeConfig{Policy: writePolicy(t, salePolicy), Listen: "127.0.0.1:0", Sale: &sale, Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	secrets, err := paySecrets(" one,two \nthree\r\n,")
	if err != nil || len(secrets) != 3 || string(secrets[0]) != "one" || string(secrets[1]) != "two" || string(secrets[2]) != "three" {
		t.Errorf("%q, %v", secrets, err)
	}
}

// TestSimpayRefuses what makes no sense.
func TestSimpayRefuses(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]SimpayConfig{
		"a chance of 1.1":               {Behaviour: simpay.Behaviour{Capture: .6, Fail: .5}},
		"a chance of -0.1":              {Behaviour: simpay.Behaviour{Lost: -.1}},
		"a time of 1h0m1s":              {Behaviour: simpay.Behaviour{LateBy: time.Hour + time.Second}},
		"--webhook is no URL":           {Webhook: "127.0.0.1:8080/hidden"},
		"--url is no URL":               {URL: "https://u:hidden@h/"},
		"there is no secret":            {},
		"listen: the address is empty":  {Secret: paySecret},
		"secret 1 for the payment serv": {Secret: "hidden", Listen: "127.0.0.1:0"},
	} {
		if err := Simpay(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

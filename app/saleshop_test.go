package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
)

// salePolicy believes the header of whoever is on loopback, as tests are.
const salePolicy = `version: 1
clients: {trusted_proxies: [127.0.0.0/8]}
dimensions:
  user: {header: X-User-Id, trusted: true}
  device: {cookie: did}
rules:
  - name: tries
    match: {methods: [POST], paths: ['/_headgate/sales/{sale}/skus/{sku}/token']}
    key: [user]
    missing: skip
    limits: [sliding_log 3/1h]
`

const (
	saleToken  = "the token of the admin listener"
	paySecret  = "what the payment service signs with"
	saleKeys   = "k1:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=" // 0123456789abcdef, twice
	saleWithin = 2 * time.Minute
)

// shop is a service that sells.
type shop struct {
	*running
	t *testing.T
}

func openShop(t *testing.T, cfg ServeConfig, sale SaleConfig) *shop {
	t.Helper()
	sale.PaySecret = paySecret
	if sale.Pay == "" {
		sale.Pay = PaySimulated
	}
	cfg.Sale, cfg.Admin, cfg.AdminToken = &sale, "127.0.0.1:0", saleToken
	if cfg.Policy == "" {
		cfg.Policy = writePolicy(t, salePolicy)
	}
	return &shop{start(t, cfg), t}
}

// reply is an answer.
type reply struct {
	status int
	header http.Header
	doc    map[string]any
	text   string
}

func (r *reply) str(name string) string {
	text, _ := r.doc[name].(string)
	return text
}

// send sends a request; a body is JSON unless a header says otherwise. The connection is not kept.
func (s *shop) send(method, url, body string, headers ...string) *reply {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Close = true
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := (&http.Client{Timeout: saleWithin}).Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	r := &reply{status: res.StatusCode, header: res.Header, text: string(text)}
	_ = json.Unmarshal(text, &r.doc) // a page is none
	return r
}

func (s *shop) as(user, method, path, body string) *reply {
	s.t.Helper()
	return s.send(method, s.url+"/_headgate/sales"+path, body, "X-User-Id", user)
}

func (s *shop) operate(method, path, body string) *reply {
	s.t.Helper()
	return s.send(method, s.admin+"/sales"+path, body, "Authorization", "Bearer "+saleToken)
}

// until asks again until the answer is as it should be.
func (s *shop) until(what string, ask func() *reply, good func(*reply) bool) *reply {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), saleWithin)
	defer cancel()
	var last *reply
	err := testservers.Poll(ctx, func() error {
		if last = ask(); good(last) {
			return nil
		}
		return fmt.Errorf("%d %s", last.status, last.text)
	})
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
	return last
}

func status(want int) func(*reply) bool { return func(r *reply) bool { return r.status == want } }

func state(want string) func(*reply) bool {
	return func(r *reply) bool { return r.str("state") == want }
}

// sell creates a sale of so many mugs and opens it.
func (s *shop) sell(units int) {
	s.t.Helper()
	s.create(units)
	s.until("open", func() *reply { return s.operate("POST", "/spring/open", `{"reason": "it is time"}`) }, status(http.StatusOK))
	s.until("shown as open", func() *reply { return s.as("", "GET", "/spring", "") }, func(r *reply) bool { return strings.Contains(r.text, `"status":"open"`) })
}

func (s *shop) create(units int) {
	s.t.Helper()
	sale := fmt.Sprintf(`{"reason": "spring", "sale": {"id": "spring", "title": "Spring", "currency": "EUR", "opens_at": %q,
		"closes_at": %q, "skus": [{"id": "mug", "title": "Mug", "total": %d, "purchase_limit": 2, "price": 1250}]}}`,
		time.Now().Add(-time.Hour).Format(time.RFC3339), time.Now().Add(time.Hour).Format(time.RFC3339), units)
	if r := s.operate("POST", "", sale); r.status/100 != 2 {
		s.t.Fatalf("create: %d %s", r.status, r.text)
	}
}

const mug = "/spring/skus/mug"

func (s *shop) token(user string) string {
	s.t.Helper()
	r := s.until("token of "+user, func() *reply { return s.as(user, "POST", mug+"/token", "") }, func(r *reply) bool {
		return r.status == http.StatusCreated || r.status == http.StatusTooManyRequests
	})
	if r.status != http.StatusCreated {
		s.t.Fatalf("token: %d %s", r.status, r.text)
	}
	return r.str("token")
}

// reserve spends a token and waits for what comes of it; it returns the path of the reservation.
func (s *shop) reserve(user, token string) string {
	s.t.Helper()
	body := fmt.Sprintf(`{"token": %q, "quantity": 1}`, token)
	r := s.until("reserve for "+user, func() *reply { return s.as(user, "POST", mug+"/reservations", body) }, func(r *reply) bool { return r.status/100 == 2 })
	path := mug + "/reservations/" + r.str("rid")
	s.until("result of "+user, func() *reply { return s.as(user, "GET", path, "") }, func(r *reply) bool { return r.status == http.StatusOK })
	return path
}

// pay pays for a reservation and waits until that is known.
func (s *shop) pay(user, path string) {
	s.t.Helper()
	r := s.as(user, "POST", path+"/pay", "")
	if r.status != http.StatusOK || r.str("url") == "" {
		s.t.Fatalf("pay: %d %s", r.status, r.text)
	}
	if page := s.send("POST", s.url+r.str("url"), "outcome=captured", "Content-Type", "application/x-www-form-urlencoded"); page.status != http.StatusOK {
		s.t.Fatalf("pay at %s: %d %s", r.str("url"), page.status, page.text)
	}
	s.until("confirmed", func() *reply { return s.as(user, "GET", path, "") }, state("confirmed"))
}

func (s *shop) close() {
	s.t.Helper()
	s.stop()
	if err := <-s.done; err != nil {
		s.t.Error(err)
	}
}

package salehttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"go.uber.org/goleak"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/flashsale/saletest/salerig"
	"github.com/headgate-io/headgate/flashsale/simpay"
	"github.com/headgate-io/headgate/internal/openapitest"
)

func TestMain(m *testing.M) {
	openapi3filter.RegisterBodyDecoder("text/event-stream", openapi3filter.PlainBodyDecoder)
	openapi3filter.RegisterBodyDecoder("text/javascript", openapi3filter.PlainBodyDecoder)
	goleak.VerifyTestMain(m)
}

const (
	price  = 500
	secret = "the secret that signs webhooks"
)

// shop is a sale behind a Handler. Nothing runs by itself.
type shop struct {
	*salerig.Rig
	key flashsale.Key
	h   *Handler
	log salerig.Log
}

type plan struct {
	total, limit int64
	opens        time.Duration // from now
	draft        bool
	config       func(*Config)
	engine       func(*engine.Config)
}

func (s *shop) path(parts string) string {
	return Prefix + "/" + s.key.Sale + "/skus/" + s.key.SKU + parts
}

func openShop(t testing.TB, p plan) *shop {
	t.Helper()
	s := &shop{key: flashsale.Key{Sale: "eleven", SKU: "phone"}}
	s.Rig = salerig.New(t, salerig.Config{Bank: simpay.Config{Secrets: [][]byte{[]byte(secret)}}, Engine: p.engine})
	s.create(s.key, &p)
	s.h = s.handler(p.config)
	return s
}

// create makes a sale, and opens it if it is not to be a draft.
func (s *shop) create(key flashsale.Key, p *plan) {
	s.Helper()
	sale := &flashsale.Sale{
		ID: key.Sale, Title: "Eleven", Currency: "EUR", Zone: "Asia/Shanghai", OpensAt: s.Clock.Now().Add(p.opens), ClosesAt: s.Clock.Now().Add(p.opens + 24*time.Hour), Rate: flashsale.MaxRate,
		SKUs: []flashsale.SKU{{ID: key.SKU, Title: "Phone", Total: p.total, PurchaseLimit: max(p.limit, 1), Price: price}},
	}
	s.Must(s.Engine.CreateSale(s.Context(), sale))
	s.Watch()
	if !p.draft {
		s.command((*engine.Engine).OpenSale, key.Sale)
	}
}

var commands atomic.Int64

func (s *shop) command(f func(*engine.Engine, context.Context, engine.Command) ([]flashsale.Operation, error), sale string) {
	s.Helper()
	id := "op" + time.Unix(commands.Add(1), 0).UTC().Format("150405")
	_, err := f(s.Engine, s.Context(), engine.Command{ID: id, Sale: sale, Reason: "a test", By: "test"})
	s.Must(err)
}

func (s *shop) handler(change func(*Config)) *Handler {
	s.Helper()
	cfg := Config{Sales: s.Engine, Identity: byHeader, Keys: s.Keys, Now: s.Clock.Now, Random: func() float64 { return 0 }, Logger: slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	if change != nil {
		change(&cfg)
	}
	h, err := New(cfg)
	s.Must(err)
	s.Cleanup(func() { _ = h.Close() })
	return h
}

// byHeader takes a header for who somebody is.
func byHeader(r *http.Request) (Shopper, error) {
	if r.Header.Get("X-User") == "broken" {
		return Shopper{}, errors.New("the token is not signed")
	}
	return Shopper{User: r.Header.Get("X-User"), Device: r.Header.Get("X-Device")}, nil
}

func (s *shop) consume() {
	s.Helper()
	s.Consume(s.key)
}

// fail has calls of a port fail before they take effect.
func (s *shop) fail(call string, code flashsale.Code) {
	s.Gate.Before = func(_ context.Context, name string) error {
		if name == call {
			return &flashsale.Error{Code: code, Message: "a fault of the test"}
		}
		return nil
	}
}

// view are the figures of the stock.
func (s *shop) view() flashsale.StockView {
	s.Helper()
	v, err := s.Stock.View(s.Context(), s.key)
	s.Must(err)
	v.Now = time.Time{}
	return v
}

// webhook sends a message as the provider would.
func (s *shop) webhook(id, intent, status string, amount int64, currency string) *reply {
	s.Helper()
	return s.webhookOf(fmt.Sprintf(`{"id":%q,"data":{"intent":%q,"status":%q,"amount":%d,"currency":%q}}`, id, intent, status, amount, currency))
}

// webhookOf signs a body and sends it.
func (s *shop) webhookOf(body string) *reply {
	s.Helper()
	signature := simpay.Sign([][]byte{[]byte(secret)}, s.Clock.Now(), []byte(body))
	return s.do(ask{method: "POST", path: Prefix + "/~/webhook", body: body, header: map[string]string{simpay.SignatureHeader: signature}})
}

// eventually waits for a condition.
func eventually(t testing.TB, what func() bool) {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for end := time.After(2 * time.Minute); !what(); {
		select {
		case <-again.C:
		case <-end:
			t.Fatal("it does not come")
		}
	}
}

// ask is a request.
type ask struct {
	method, path, user string
	body               string
	header             map[string]string
}

func (s *shop) request(k ask) *http.Request {
	r := httptest.NewRequestWithContext(s.Context(), k.method, k.path, strings.NewReader(k.body))
	if k.user != "" {
		r.Header.Set("X-User", k.user)
	}
	if k.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, value := range k.header {
		r.Header.Set(name, value)
	}
	return r
}

// do sends a request to the handler, and holds it and the answer to the document.
func (s *shop) do(k ask) *reply {
	s.Helper()
	return s.send(s.request(k), k.body)
}

func (s *shop) send(r *http.Request, body string) *reply {
	s.Helper()
	w := httptest.NewRecorder()
	s.h.ServeHTTP(w, r)
	got := &reply{t: s, status: w.Code, header: w.Header(), body: w.Body.Bytes()}
	if !document.Conforms(s, r, body, w) && w.Code != http.StatusNoContent { // of OPTIONS
		got.isProblem()
	}
	return got
}

func (s *shop) get(path, user string) *reply {
	s.Helper()
	return s.do(ask{method: "GET", path: path, user: user})
}

func (s *shop) post(path, user, body string) *reply {
	s.Helper()
	return s.do(ask{method: "POST", path: path, user: user, body: body})
}

// token gets an order token.
func (s *shop) token(user string) string {
	s.Helper()
	return s.post(s.path("/token"), user, "").is(201, "").text("token")
}

func reserveBody(token string, quantity int64) string {
	b, _ := json.Marshal(map[string]any{"token": token, "quantity": quantity})
	return string(b)
}

// pending reserves, and returns the path of the reservation.
func (s *shop) pending(user string) string {
	s.Helper()
	return s.post(s.path("/reservations"), user, reserveBody(s.token(user), 1)).is(202, "").header.Get("Location")
}

// reserved reserves, down to SQL.
func (s *shop) reserved(user string) string {
	s.Helper()
	path := s.pending(user)
	s.consume()
	s.get(path, user).is(200, "").has("state", "reserved")
	return path
}

// reply is an answer.
type reply struct {
	t      testing.TB
	status int
	header http.Header
	body   []byte
}

// is checks the status, and the code of a problem.
func (r *reply) is(status int, code flashsale.Code) *reply {
	r.t.Helper()
	if r.status != status || code != "" && r.text("code") != string(code) {
		r.t.Fatalf("status %d, %s; want %d %s", r.status, r.body, status, code)
	}
	return r
}

func (r *reply) member(name string) any {
	r.t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(r.body, &doc); err != nil {
		r.t.Fatalf("%s: %v", r.body, err)
	}
	return doc[name]
}

func (r *reply) text(name string) string {
	r.t.Helper()
	text, _ := r.member(name).(string)
	return text
}

func (r *reply) has(name string, want any) *reply {
	r.t.Helper()
	if got := r.member(name); got != want {
		r.t.Fatalf("%s is %v; want %v: %s", name, got, want, r.body)
	}
	return r
}

var document = openapitest.New(openAPI, "")

func (r *reply) isProblem() {
	r.t.Helper()
	var body any
	if err := json.Unmarshal(r.body, &body); err != nil && r.header.Get("Content-Length") == "" {
		r.t.Errorf("%d %s: %v", r.status, r.body, err)
		return
	}
	if body != nil {
		if err := document.Load(r.t).Components.Schemas["Problem"].Value.VisitJSON(body, openapi3.EnableJSONSchema2020()); err != nil {
			r.t.Errorf("%s: %v", r.body, err)
		}
	}
	if r.header.Get("Content-Type") != "application/problem+json" {
		r.t.Errorf("%d is a %s", r.status, r.header.Get("Content-Type"))
	}
}

package salehttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"go.uber.org/goleak"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/flashsale/memstock"
	"github.com/headgate-io/headgate/flashsale/porttest"
	"github.com/headgate-io/headgate/flashsale/simpay"
	"github.com/headgate-io/headgate/flashsale/sqlorders"
)

func TestMain(m *testing.M) {
	openapi3filter.RegisterBodyDecoder("text/event-stream", openapi3filter.PlainBodyDecoder)
	openapi3filter.RegisterBodyDecoder("text/javascript", openapi3filter.PlainBodyDecoder)
	if code := m.Run(); code != 0 {
		os.Exit(code)
	}
	if err := goleak.Find(); err != nil {
		panic(err)
	}
}

const (
	price  = 500
	secret = "the secret that signs webhooks"
)

// shop is a sale on a stock in memory, SQLite and a simulated provider, behind a Handler, at one virtual clock. Nothing runs by itself.
type shop struct {
	t      testing.TB
	clock  atomic.Int64 // ns
	key    flashsale.Key
	stock  *memstock.Stock
	sql    *sqlorders.Orders
	bank   *simpay.Provider
	gate   porttest.Gate
	engine *engine.Engine
	h      *Handler
	log    *logged
}

type plan struct {
	total, limit int64
	opens        time.Duration // from now
	draft        bool
	config       func(*Config)
	engine       func(*engine.Config)
}

func (s *shop) now() time.Time       { return time.Unix(0, s.clock.Load()) }
func (s *shop) pass(d time.Duration) { s.clock.Add(int64(d)) }
func (s *shop) path(parts string) string {
	return Prefix + "/" + s.key.Sale + "/skus/" + s.key.SKU + parts
}

func openShop(t testing.TB, p plan) *shop {
	t.Helper()
	s := &shop{t: t, key: flashsale.Key{Sale: "eleven", SKU: "phone"}, log: &logged{}}
	s.clock.Store(time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC).UnixNano())
	orders, err := sqlorders.Open(t.Context(), sqlorders.Config{URL: "sqlite::memory:", Now: s.now})
	s.must(err)
	t.Cleanup(func() { _ = orders.Close() })
	s.sql, s.stock = orders, memstock.New(memstock.Config{Now: s.now})
	t.Cleanup(func() { _ = s.stock.Close() })
	s.bank = simpay.New(simpay.Config{Secrets: [][]byte{[]byte(secret)}, Now: s.now, Rand: rand.New(rand.NewPCG(1, 7))})
	cfg := engine.Config{
		Stock: porttest.NewStock(s.stock, &s.gate), Orders: porttest.NewOrders(s.sql, &s.gate), Payments: porttest.NewPayments(s.bank, &s.gate),
		Keys: testKeys(t), Now: s.now, Paying: engine.Paying{Parallel: 1},
	}
	if p.engine != nil {
		p.engine(&cfg)
	}
	s.engine, err = engine.New(cfg)
	s.must(err)
	s.create(s.key, &p)
	s.h = s.handler(p.config)
	return s
}

// create makes a sale, and opens it if it is not to be a draft.
func (s *shop) create(key flashsale.Key, p *plan) {
	s.t.Helper()
	sale := &flashsale.Sale{
		ID: key.Sale, Title: "Eleven", Currency: "EUR", Zone: "Asia/Shanghai", OpensAt: s.now().Add(p.opens), ClosesAt: s.now().Add(p.opens + 24*time.Hour), Rate: flashsale.MaxRate,
		SKUs: []flashsale.SKU{{ID: key.SKU, Title: "Phone", Total: p.total, PurchaseLimit: max(p.limit, 1), Price: price}},
	}
	s.must(s.engine.CreateSale(s.t.Context(), sale))
	s.watch()
	if !p.draft {
		s.command((*engine.Engine).OpenSale, key.Sale)
	}
}

var commands atomic.Int64

func (s *shop) command(f func(*engine.Engine, context.Context, engine.Command) ([]flashsale.Operation, error), sale string) {
	s.t.Helper()
	id := "op" + time.Unix(commands.Add(1), 0).UTC().Format("150405")
	_, err := f(s.engine, s.t.Context(), engine.Command{ID: id, Sale: sale, Reason: "a test", By: "test"})
	s.must(err)
}

func (s *shop) handler(change func(*Config)) *Handler {
	s.t.Helper()
	cfg := Config{Sales: s.engine, Identity: byHeader, Keys: testKeys(s.t), Now: s.now, Random: func() float64 { return 0 }, Logger: slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	if change != nil {
		change(&cfg)
	}
	h, err := New(cfg)
	s.must(err)
	s.t.Cleanup(func() { _ = h.Close() })
	return h
}

// byHeader takes a header for who somebody is.
func byHeader(r *http.Request) (Shopper, error) {
	if r.Header.Get("X-User") == "broken" {
		return Shopper{}, errors.New("the token is not signed")
	}
	return Shopper{User: r.Header.Get("X-User"), Device: r.Header.Get("X-Device")}, nil
}

func testKeys(t testing.TB) *flashsale.TokenKeys {
	t.Helper()
	keys, err := flashsale.NewTokenKeys(flashsale.TokenKey{ID: "k1", Secret: []byte("0123456789abcdef0123456789abcdef")})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func (s *shop) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// watch, consume and the like make one pass of a job.
func (s *shop) watch() {
	s.t.Helper()
	_, err := s.engine.WatchOnce(s.t.Context())
	s.must(err)
}

func (s *shop) consume() {
	s.t.Helper()
	_, err := s.engine.ConsumeOnce(s.t.Context(), s.key, "c")
	s.must(err)
}

// fail has calls of a port fail before they take effect.
func (s *shop) fail(call string, code flashsale.Code) {
	s.gate.Before = func(_ context.Context, name string) error {
		if name == call {
			return &flashsale.Error{Code: code, Message: "a fault of the test"}
		}
		return nil
	}
}

// view are the figures of the stock.
func (s *shop) view() flashsale.StockView {
	s.t.Helper()
	v, err := s.stock.View(s.t.Context(), s.key)
	s.must(err)
	v.Now = time.Time{}
	return v
}

// webhook sends a message as the provider would.
func (s *shop) webhook(id, intent, status string, amount int64, currency string) *reply {
	s.t.Helper()
	return s.webhookOf(fmt.Sprintf(`{"id":%q,"data":{"intent":%q,"status":%q,"amount":%d,"currency":%q}}`, id, intent, status, amount, currency))
}

// webhookOf signs a body and sends it.
func (s *shop) webhookOf(body string) *reply {
	s.t.Helper()
	signature := simpay.Sign([][]byte{[]byte(secret)}, s.now(), []byte(body))
	return s.do(ask{method: "POST", path: Prefix + "/~/webhook", body: body, header: map[string]string{simpay.SignatureHeader: signature}})
}

// eventually waits for a condition.
func eventually(t testing.TB, what func() bool) {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for end := time.After(20 * time.Second); !what(); {
		select {
		case <-again.C:
		case <-end:
			t.Fatal("it does not come")
		}
	}
}

// logged is what was logged.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// ask is a request.
type ask struct {
	method, path, user string
	body               string
	header             map[string]string
}

func (s *shop) request(k ask) *http.Request {
	r := httptest.NewRequestWithContext(s.t.Context(), k.method, k.path, strings.NewReader(k.body))
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
	s.t.Helper()
	return s.send(s.request(k), k.body)
}

func (s *shop) send(r *http.Request, body string) *reply {
	s.t.Helper()
	w := httptest.NewRecorder()
	s.h.ServeHTTP(w, r)
	got := &reply{t: s.t, status: w.Code, header: w.Header(), body: w.Body.Bytes()}
	r.Body = io.NopCloser(strings.NewReader(body))
	conforms(s.t, s.h, r, got)
	return got
}

func (s *shop) get(path, user string) *reply {
	s.t.Helper()
	return s.do(ask{method: "GET", path: path, user: user})
}

func (s *shop) post(path, user, body string) *reply {
	s.t.Helper()
	return s.do(ask{method: "POST", path: path, user: user, body: body})
}

// token gets an order token.
func (s *shop) token(user string) string {
	s.t.Helper()
	return s.post(s.path("/token"), user, "").is(201, "").text("token")
}

func reserveBody(token string, quantity int64) string {
	b, _ := json.Marshal(map[string]any{"token": token, "quantity": quantity})
	return string(b)
}

// pending reserves, and returns the path of the reservation.
func (s *shop) pending(user string) string {
	s.t.Helper()
	return s.post(s.path("/reservations"), user, reserveBody(s.token(user), 1)).is(202, "").header.Get("Location")
}

// reserved reserves, down to SQL.
func (s *shop) reserved(user string) string {
	s.t.Helper()
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

var document = sync.OnceValues(func() (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromData(openAPI)
	if err == nil {
		err = doc.Validate(context.Background())
	}
	return doc, err
})

// conforms holds an answer to the document, and a request that was not refused too.
func conforms(t testing.TB, h *Handler, r *http.Request, got *reply) {
	t.Helper()
	doc, err := document()
	if err != nil {
		t.Fatal(err)
	}
	a := &answer{}
	found := h.find(r.URL.EscapedPath(), a)
	if found == nil || found.methods[r.Method] == nil {
		if got.status != http.StatusNoContent { // of OPTIONS
			isProblem(t, doc, got)
		}
		return
	}
	in := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: map[string]string{"sale": a.key.Sale, "sku": a.key.SKU, "rid": a.rid},
		Route:   &routers.Route{Spec: doc, Path: found.path, PathItem: doc.Paths.Value(found.path), Method: r.Method, Operation: operation(doc, found.path, r.Method)},
		Options: &openapi3filter.Options{IncludeResponseStatus: true, RejectWhenRequestBodyNotSpecified: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}
	if r.Body == http.NoBody || r.ContentLength == 0 {
		r.Body = nil
	}
	if got.status < 300 && r.Method != http.MethodHead {
		if err := openapi3filter.ValidateRequest(t.Context(), in); err != nil {
			t.Errorf("%s %s is answered %d, and the document does not allow it: %v", r.Method, r.URL.Path, got.status, err)
		}
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: got.status, Header: got.header, Options: in.Options}
	out.SetBodyBytes(got.body)
	if err := openapi3filter.ValidateResponse(t.Context(), out); err != nil {
		t.Errorf("the answer %d %s to %s %s is not what the document says: %v", got.status, got.body, r.Method, r.URL.Path, err)
	}
}

func operation(doc *openapi3.T, path, method string) *openapi3.Operation {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	item := doc.Paths.Value(path)
	if item == nil {
		return nil
	}
	return item.GetOperation(method)
}

func isProblem(t testing.TB, doc *openapi3.T, got *reply) {
	t.Helper()
	var body any
	if err := json.Unmarshal(got.body, &body); err != nil && got.header.Get("Content-Length") == "" {
		t.Errorf("%d %s: %v", got.status, got.body, err)
		return
	}
	if body != nil {
		if err := doc.Components.Schemas["Problem"].Value.VisitJSON(body, openapi3.EnableJSONSchema2020()); err != nil {
			t.Errorf("%s: %v", got.body, err)
		}
	}
	if got.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d is a %s", got.status, got.header.Get("Content-Type"))
	}
}

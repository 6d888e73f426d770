package saleadmin

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
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

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is one that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// rig is the API of a real engine on a stock in memory and SQLite, which does nothing that a test does not ask for.
type rig struct {
	testing.TB
	clock   *clock
	stock   *memstock.Stock
	orders  *sqlorders.Orders
	bank    *simpay.Provider
	engine  *engine.Engine
	gate    *porttest.Gate
	handler http.Handler
	log     *lockedBuffer
	// lax holds answers to no document, which takes long.
	lax bool
}

// lockedBuffer is a log.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{TB: t, clock: &clock{now: time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)}, gate: &porttest.Gate{}, log: &lockedBuffer{}}
	var err error
	r.orders, err = sqlorders.Open(t.Context(), sqlorders.Config{URL: "sqlite::memory:", Now: r.clock.Now})
	r.must(err)
	t.Cleanup(func() { _ = r.orders.Close() })
	r.stock = memstock.New(memstock.Config{Now: r.clock.Now})
	t.Cleanup(func() { _ = r.stock.Close() })
	r.bank = simpay.New(simpay.Config{Now: r.clock.Now})
	keys, err := flashsale.NewTokenKeys(flashsale.TokenKey{ID: "k", Secret: make([]byte, 32)})
	r.must(err)
	r.engine, err = engine.New(engine.Config{
		Stock: porttest.NewStock(r.stock, r.gate), Orders: porttest.NewOrders(r.orders, r.gate), Payments: r.bank, Keys: keys,
		Now: r.clock.Now, Instance: "one",
	})
	r.must(err)
	r.handler, err = New(Config{
		Sales: r.engine, Now: r.clock.Now, Logger: slog.New(slog.NewTextHandler(r.log, nil)),
		Actor: func(q *http.Request) (Actor, bool) {
			role, err := ParseRole(strings.TrimPrefix(q.Header.Get("Authorization"), "Bearer "))
			return Actor{Name: "the-" + role.String(), Role: role}, err == nil
		},
	})
	r.must(err)
	return r
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

const (
	sample = `{"id":"eleven","title":"11.11","currency":"CNY","zone":"Asia/Shanghai","opens_at":"2026-11-11T19:00:00","closes_at":"2026-11-11T22:00:00",` +
		`"skus":[{"id":"phone","title":"A phone","total":10,"price":399900,"purchase_limit":2},{"id":"case","total":1,"price":100}]}`
	sampleOrder = `{"reason":"the sale of the year","sale":` + sample + `}`
	why         = `{"reason":"a test"}`
)

// created is a rig with the sample sale, loaded, a draft.
func created(t testing.TB) *rig {
	t.Helper()
	r := newRig(t)
	r.post("admin", "/sales", sampleOrder).is(http.StatusCreated)
	r.watch()
	return r
}

// opened is created, and open.
func opened(t testing.TB) *rig {
	t.Helper()
	r := created(t)
	r.running()
	r.post("operator", "/sales/eleven/open", why).is(http.StatusOK)
	return r
}

// running has somebody else hold the sweeper's lease, as an instance that runs does.
func (r *rig) running() {
	r.Helper()
	_, held, err := r.orders.Lease(r.Context(), "sale/sweep", "another", 24*time.Hour)
	if err != nil || !held {
		r.Fatalf("the lease: %v, %v", held, err)
	}
}

func (r *rig) watch() {
	r.Helper()
	_, err := r.engine.WatchOnce(r.Context())
	r.must(err)
}

// decide decides what waits.
func (r *rig) decide(sku string) {
	r.Helper()
	r.clock.advance(time.Second)
	_, err := r.engine.ConsumeOnce(r.Context(), flashsale.Key{Sale: "eleven", SKU: sku}, "one")
	r.must(err)
}

// bury makes the job that waits a dead letter.
func (r *rig) bury(key flashsale.Key, reason string) {
	r.Helper()
	r.clock.advance(time.Second)
	sku, err := r.orders.SKU(r.Context(), key)
	r.must(err)
	jobs, err := r.stock.Pull(r.Context(), key, sku.Epoch, "one", 1, time.Minute)
	if err != nil || len(jobs) != 1 {
		r.Fatalf("%v, %v", jobs, err)
	}
	r.must(r.stock.Bury(r.Context(), key, sku.Epoch, &jobs[0], reason))
}

// reserve asks for a unit, and returns the code of the refusal.
func (r *rig) reserve(sku, user string) (rid string, code flashsale.Code) {
	r.Helper()
	key := flashsale.Key{Sale: "eleven", SKU: sku}
	token, _, err := r.engine.Token(r.Context(), engine.TokenRequest{Key: key, User: user})
	if err != nil {
		return "", flashsale.CodeOf(err)
	}
	a, err := r.engine.Reserve(r.Context(), engine.ReserveRequest{Token: token, Key: key, User: user, Quantity: 1})
	return a.RID, flashsale.CodeOf(err)
}

// reply is an answer.
type reply struct {
	*rig
	what   string
	status int
	header http.Header
	body   []byte
}

func (r *rig) get(role, path string) *reply { r.Helper(); return r.send(role, "GET", path, "", nil) }

// now is the sample sale as it is, to be compared with what it was.
func (r *rig) now() string {
	r.Helper()
	q := httptest.NewRequestWithContext(r.Context(), "GET", "/sales/eleven", nil)
	q.Header.Set("Authorization", "Bearer viewer")
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, q)
	return w.Body.String()
}

func (r *rig) post(role, path, body string) *reply {
	r.Helper()
	return r.send(role, "POST", path, body, nil)
}

// named is post with an Idempotency-Key.
func (r *rig) named(role, path, body, key string) *reply {
	r.Helper()
	return r.send(role, "POST", path, body, http.Header{IdempotencyKey: {key}})
}

func (r *rig) send(role, method, path, body string, header http.Header) *reply {
	r.Helper()
	q := httptest.NewRequestWithContext(r.Context(), method, path, strings.NewReader(body))
	if method == http.MethodPost {
		q.Header.Set("Content-Type", "application/json")
	}
	for name, values := range header {
		q.Header[name] = values
	}
	if role != "" {
		q.Header.Set("Authorization", "Bearer "+role)
	}
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, q)
	got := &reply{r, method + " " + path + " as " + role, w.Code, w.Header(), w.Body.Bytes()}
	if !r.lax {
		q.Body = io.NopCloser(strings.NewReader(body))
		got.conforms(q)
	}
	return got
}

func (g *reply) is(status int) *reply {
	g.Helper()
	if g.status != status {
		g.Fatalf("%s: got %d %s; want %d", g.what, g.status, g.body, status)
	}
	return g
}

// says reports whether the body has each of the texts.
func (g *reply) says(texts ...string) *reply {
	g.Helper()
	for _, text := range texts {
		if !strings.Contains(string(g.body), text) {
			g.Errorf("%s: got %s; want %s in it", g.what, g.body, text)
		}
	}
	return g
}

func (g *reply) into(v any) {
	g.Helper()
	d := json.NewDecoder(bytes.NewReader(g.body))
	d.DisallowUnknownFields()
	g.must(d.Decode(v))
}

var document = sync.OnceValues(func() (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromData(openAPIDocument)
	if err == nil {
		err = doc.Validate(context.Background())
	}
	return doc, err
})

// conforms holds an answer to the document, and a request that was not refused too.
func (g *reply) conforms(q *http.Request) {
	g.Helper()
	doc, err := document()
	g.must(err)
	path, item := find(doc, q.URL.EscapedPath())
	if item == nil || item.GetOperation(q.Method) == nil {
		if g.header.Get("Content-Type") != "application/problem+json" {
			g.Errorf("%s: %d is a %s", g.what, g.status, g.header.Get("Content-Type"))
		}
		return
	}
	in := &openapi3filter.RequestValidationInput{
		Request: q, PathParams: map[string]string{}, Route: &routers.Route{Spec: doc, Path: path, PathItem: item, Method: q.Method, Operation: item.GetOperation(q.Method)},
		Options: &openapi3filter.Options{IncludeResponseStatus: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}
	for i, part := range strings.Split(path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			in.PathParams[strings.TrimSuffix(name, "}")] = strings.Split(q.URL.EscapedPath(), "/")[i]
		}
	}
	if g.status < 300 {
		if err := openapi3filter.ValidateRequest(g.Context(), in); err != nil {
			g.Errorf("%s is answered %d, and the document does not allow it: %v", g.what, g.status, err)
		}
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: g.status, Header: g.header, Options: in.Options}
	out.SetBodyBytes(g.body)
	if err := openapi3filter.ValidateResponse(g.Context(), out); err != nil {
		g.Errorf("%s: the answer %d %s is not what the document says: %v", g.what, g.status, g.body, err)
	}
}

// find returns the path of the document that a request is for.
func find(doc *openapi3.T, path string) (string, *openapi3.PathItem) {
	if item := doc.Paths.Value(path); item != nil {
		return path, item
	}
	parts := strings.Split(path, "/")
	for _, pattern := range doc.Paths.InMatchingOrder() {
		want := strings.Split(pattern, "/")
		fits := len(want) == len(parts)
		for i := 0; fits && i < len(want); i++ {
			fits = want[i] == parts[i] || strings.HasPrefix(want[i], "{")
		}
		if fits {
			return pattern, doc.Paths.Value(pattern)
		}
	}
	return "", nil
}

package saleadmin

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/saletest/salerig"
	"github.com/headgate-io/headgate/internal/openapitest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is the API of a real engine, which does nothing that a test does not ask for.
type rig struct {
	*salerig.Rig
	handler http.Handler
	log     salerig.Log
	// lax holds answers to no document, which takes long.
	lax bool
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{Rig: salerig.New(t, salerig.Config{})}
	var err error
	r.handler, err = New(Config{
		Sales: r.Engine, Now: r.Clock.Now, Logger: slog.New(slog.NewTextHandler(&r.log, nil)),
		Actor: func(q *http.Request) (Actor, bool) {
			role, err := ParseRole(strings.TrimPrefix(q.Header.Get("Authorization"), "Bearer "))
			return Actor{Name: "the-" + role.String(), Role: role}, err == nil
		},
	})
	r.Must(err)
	return r
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
	r.Watch()
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
	_, held, err := r.Orders.Lease(r.Context(), "sale/sweep", "another", 24*time.Hour)
	if err != nil || !held {
		r.Fatalf("the lease: %v, %v", held, err)
	}
}

// decide decides what waits, a second later.
func (r *rig) decide(sku string) {
	r.Helper()
	r.Clock.Pass(time.Second)
	r.Consume(flashsale.Key{Sale: "eleven", SKU: sku})
}

// bury makes the job that waits a dead letter.
func (r *rig) bury(key flashsale.Key, reason string) {
	r.Helper()
	r.Clock.Pass(time.Second)
	sku, err := r.Orders.SKU(r.Context(), key)
	r.Must(err)
	jobs, err := r.Stock.Pull(r.Context(), key, sku.Epoch, "one", 1, time.Minute)
	if err != nil || len(jobs) != 1 {
		r.Fatalf("%v, %v", jobs, err)
	}
	r.Must(r.Stock.Bury(r.Context(), key, sku.Epoch, &jobs[0], reason))
}

// reserve asks for a unit, and returns the code of the refusal.
func (r *rig) reserve(sku, user string) (rid string, code flashsale.Code) {
	r.Helper()
	return r.Ask(flashsale.Key{Sale: "eleven", SKU: sku}, user)
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
	if !r.lax && !document.Conforms(r, q, body, w) && w.Header().Get("Content-Type") != "application/problem+json" {
		r.Errorf("%s: %d is a %s", got.what, got.status, w.Header().Get("Content-Type"))
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
	g.Must(d.Decode(v))
}

var document = openapitest.New(openAPIDocument, "")

package httppay

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"go.uber.org/goleak"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/simpay"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var secret = []byte("the secret that both sides sign with")

// clock is a virtual one.
type clock struct{ at atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.at.Store(time.Date(2026, 11, 11, 12, 0, 0, 123456789, time.UTC).UnixNano())
	return c
}

func (c *clock) now() time.Time       { return time.Unix(0, c.at.Load()).UTC() }
func (c *clock) pass(d time.Duration) { c.at.Add(int64(d)) }

// newBank is a simulated provider at a clock.
func newBank(c *clock, seed uint64, cfg simpay.Config) *simpay.Provider {
	cfg.Secrets, cfg.Now, cfg.Rand = [][]byte{secret}, c.now, rand.New(rand.NewPCG(seed, 3))
	return simpay.New(cfg)
}

// serve puts a handler of the protocol on a listener, each exchange held to the document.
func serve(t testing.TB, c *clock, payments flashsale.Payments, around ...func(http.Handler) http.Handler) *httptest.Server {
	t.Helper()
	h, err := NewHandler(HandlerConfig{Payments: payments, Secrets: [][]byte{secret}, Prefix: "/v1", Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	front := held(t, h)
	for _, wrap := range around {
		front = wrap(front)
	}
	return listen(t, front)
}

func listen(t testing.TB, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func connect(t testing.TB, c *clock, url string, more func(*Config)) *Client {
	t.Helper()
	cfg := Config{URL: url + "/v1", Secrets: [][]byte{secret}, Now: c.now}
	if more != nil {
		more(&cfg)
	}
	client, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func intent(key string) *flashsale.Intent {
	return &flashsale.Intent{Key: key, Amount: 1250, Currency: "EUR", OrderID: "o.1", User: "ann"}
}

func wantCode(t testing.TB, what string, err error, want flashsale.Code) {
	t.Helper()
	if got := flashsale.CodeOf(err); got != want || (err == nil) != (want == "") {
		t.Errorf("%s: error %v has code %q; want %q", what, err, got, want)
	}
}

var document = sync.OnceValues(func() (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromData(openAPI)
	if err == nil {
		err = doc.Validate(context.Background())
	}
	return doc, err
})

// held holds every exchange to the document.
func held(t testing.TB, h http.Handler) http.Handler {
	t.Helper()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(text))
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		r.Body = io.NopCloser(bytes.NewReader(text))
		conforms(t, r, rec)
		for name, values := range rec.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes())
	})
}

// conforms holds an answer to the document, and a request that was not refused too.
func conforms(t testing.TB, r *http.Request, got *httptest.ResponseRecorder) {
	t.Helper()
	doc, err := document()
	if err != nil {
		t.Error(err)
		return
	}
	path, key := "", ""
	for _, route := range routes() {
		byMethod, intent := find(r.URL.Path[len("/v1"):])
		if byMethod[r.Method] != nil && route.method == r.Method && pathOf(r.URL.Path[len("/v1"):], intent) == route.path {
			path, key = route.path, intent
		}
	}
	if path == "" {
		return
	}
	in := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: map[string]string{"intent": key},
		Route:   &routers.Route{Spec: doc, Path: path, PathItem: doc.Paths.Value(path), Method: r.Method, Operation: doc.Paths.Value(path).GetOperation(r.Method)},
		Options: &openapi3filter.Options{IncludeResponseStatus: true, RejectWhenRequestBodyNotSpecified: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}
	if r.ContentLength == 0 {
		r.Body = nil
	}
	if got.Code < 300 {
		if err := openapi3filter.ValidateRequest(context.Background(), in); err != nil {
			t.Errorf("%s %s is answered %d, and the document does not allow it: %v", r.Method, r.URL.Path, got.Code, err)
		}
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: got.Code, Header: got.Header(), Options: in.Options}
	out.SetBodyBytes(got.Body.Bytes())
	if err := openapi3filter.ValidateResponse(context.Background(), out); err != nil {
		t.Errorf("the answer %d %s to %s %s is not what the document says: %v", got.Code, got.Body.Bytes(), r.Method, r.URL.Path, err)
	}
}

func pathOf(path, key string) string {
	if key == "" {
		return path
	}
	return "/intents/{intent}" + path[len("/intents/"+key):]
}

package httppay

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/simpay"
	"github.com/headgate-io/headgate/internal/openapitest"
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
	cfg := Config{URL: url + "/v1", Secrets: [][]byte{secret}, Now: c.now, Timeout: time.Minute}
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

var document = openapitest.New(openAPI, "/v1")

// held holds every exchange to the document.
func held(t testing.TB, h http.Handler) http.Handler {
	t.Helper()
	document.Load(t) // here, since a server's goroutine may not end the test
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(text))
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		document.Conforms(t, r, string(text), rec)
		for name, values := range rec.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes())
	})
}

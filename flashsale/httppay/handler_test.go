package httppay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/paywire"
	"github.com/headgate-io/headgate/flashsale/porttest"
	"github.com/headgate-io/headgate/flashsale/simpay"
)

// ask is a request, signed as it says.
type ask struct {
	method, target, body string
	kind                 string
	at                   time.Duration
	secret               []byte
	as                   string // the target that is signed, if it is another
}

func (a *ask) send(t *testing.T, c *clock, h http.Handler) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), a.method, a.target, strings.NewReader(a.body))
	if a.kind == "" {
		a.kind = "application/json"
	}
	r.Header.Set("Content-Type", a.kind)
	if a.as == "" {
		a.as = a.target
	}
	if a.secret == nil {
		a.secret = secret
	}
	if len(a.secret) > 0 {
		signed := &paywire.Request{Method: a.method, Target: a.as, Body: []byte(a.body)}
		r.Header.Set(paywire.RequestHeader, paywire.SignRequest([][]byte{a.secret}, c.now().Add(a.at), signed))
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func newHandler(t *testing.T, c *clock, p flashsale.Payments, more func(*HandlerConfig)) *Handler {
	t.Helper()
	cfg := HandlerConfig{Payments: p, Secrets: [][]byte{secret}, Prefix: "/v1", Now: c.now}
	if more != nil {
		more(&cfg)
	}
	h, err := NewHandler(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestHandlerRefuses: who has not signed, or asks for what there is not, gets the right status and changes nothing.
func TestHandlerRefuses(t *testing.T) {
	t.Parallel()
	c := newClock()
	bank := newBank(c, 1, simpay.Config{})
	h := held(t, newHandler(t, c, bank, nil))
	const good = `{"amount":1250,"currency":"EUR","rid":"r"}`
	for name, tc := range map[string]struct {
		ask
		status int
		code   flashsale.Code
	}{
		"not signed":             {ask{method: "PUT", target: "/v1/intents/r:1", body: good, secret: []byte{}}, 401, "invalid_signature"},
		"another's secret":       {ask{method: "PUT", target: "/v1/intents/r:1", body: good, secret: []byte("another")}, 401, "invalid_signature"},
		"too old":                {ask{method: "PUT", target: "/v1/intents/r:1", body: good, at: -301 * time.Second}, 401, "invalid_signature"},
		"ahead":                  {ask{method: "PUT", target: "/v1/intents/r:1", body: good, at: 301 * time.Second}, 401, "invalid_signature"},
		"of another intent":      {ask{method: "PUT", target: "/v1/intents/r:1", body: good, as: "/v1/intents/r:2"}, 401, "invalid_signature"},
		"with another query":     {ask{method: "GET", target: "/v1/intents?since=2026-01-01T00:00:00Z", as: "/v1/intents"}, 401, "invalid_signature"},
		"in a long body":         {ask{method: "PUT", target: "/v1/intents/r:1", body: strings.Repeat(" ", maxBody+1)}, 413, "body_too_large"},
		"nothing there, unknown": {ask{method: "GET", target: "/v1/secrets", secret: []byte{}}, 401, "invalid_signature"},
		"nothing there":          {ask{method: "GET", target: "/v1/secrets"}, 404, "no_such_path"},
		"below an intent":        {ask{method: "POST", target: "/v1/intents/r:1/capture"}, 404, "no_such_path"},
		"deeper":                 {ask{method: "POST", target: "/v1/intents/r:1/void/void"}, 404, "no_such_path"},
		"elsewhere":              {ask{method: "GET", target: "/v2/intents/r:1"}, 404, "no_such_path"},
		"no key":                 {ask{method: "GET", target: "/v1/intents/"}, 404, "no_such_path"},
		"an escaped key":         {ask{method: "GET", target: "/v1/intents/a%2Fvoid"}, 404, "no_such_path"},
		"another method":         {ask{method: "DELETE", target: "/v1/intents/r:1"}, 405, "method_not_allowed"},
		"another kind":           {ask{method: "PUT", target: "/v1/intents/r:1", body: good, kind: "text/plain"}, 415, "unsupported_media_type"},
		"no JSON":                {ask{method: "PUT", target: "/v1/intents/r:1", body: "{"}, 400, "invalid_argument"},
		"no amount":              {ask{method: "PUT", target: "/v1/intents/r:1", body: `{"currency":"EUR"}`}, 400, "invalid_argument"},
		"an amount below 0":      {ask{method: "PUT", target: "/v1/intents/r:1", body: `{"amount":-1,"currency":"EUR"}`}, 400, "invalid_argument"},
		"no currency":            {ask{method: "PUT", target: "/v1/intents/r:1", body: `{"amount":1}`}, 400, "invalid_argument"},
		"unknown":                {ask{method: "GET", target: "/v1/intents/r:1"}, 404, "unknown_payment"},
		"unknown to void":        {ask{method: "POST", target: "/v1/intents/r:1/void"}, 404, "unknown_payment"},
		"unknown to refund":      {ask{method: "POST", target: "/v1/intents/r:1/refund"}, 404, "unknown_payment"},
		"since when":             {ask{method: "GET", target: "/v1/intents?since=yesterday"}, 400, "invalid_argument"},
		"no since":               {ask{method: "GET", target: "/v1/intents"}, 400, "invalid_argument"},
		"a page of none":         {ask{method: "GET", target: "/v1/intents?since=2026-01-01T00:00:00Z&limit=0"}, 400, "invalid_argument"},
		"a page of all":          {ask{method: "GET", target: "/v1/intents?since=2026-01-01T00:00:00Z&limit=1001"}, 400, "invalid_argument"},
		"a cursor of another":    {ask{method: "GET", target: "/v1/intents?since=2026-01-01T00:00:00Z&cursor=x"}, 400, "invalid_argument"},
		"a long cursor":          {ask{method: "GET", target: "/v1/intents?since=2026-01-01T00:00:00Z&cursor=" + strings.Repeat("1", 600)}, 400, "invalid_argument"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := tc.send(t, c, h)
			var p problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != tc.status || p.Code != tc.code || p.Status != tc.status || w.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("%d %v %s, want %d %s", w.Code, w.Header(), w.Body, tc.status, tc.code)
			}
			if tc.status == 405 && w.Header().Get("Allow") != "GET, PUT" {
				t.Errorf("Allow: %s", w.Header().Get("Allow"))
			}
		})
	}
	t.Cleanup(func() {
		if n := bank.Stats().Payments; n != 0 {
			t.Errorf("%d payments were made", n)
		}
	})
}

// TestHandlerFails: what fails within is not told to the outside, and what may be tried again says so.
func TestHandlerFails(t *testing.T) {
	t.Parallel()
	c := newClock()
	for name, tc := range map[string]struct {
		err    error
		status int
		code   flashsale.Code
	}{
		"unavailable": {&flashsale.Error{Code: flashsale.CodeUnavailable, Message: "the bank is away"}, 503, "unavailable"},
		"closed":      {&flashsale.Error{Code: flashsale.CodeClosed}, 503, "unavailable"},
		"internal":    {&flashsale.Error{Code: flashsale.CodeInternal, Message: "hunter2"}, 500, "internal"},
		"another":     {&flashsale.Error{Code: flashsale.CodeSoldOut, Message: "hunter2"}, 500, "internal"},
		"none":        {errors.New("hunter2"), 500, "internal"},
	} {
		gate := &porttest.Gate{Before: func(context.Context, string) error { return tc.err }}
		h := held(t, newHandler(t, c, porttest.NewPayments(newBank(c, 1, simpay.Config{}), gate), nil))
		for _, target := range []string{"/v1/intents/r:1", "/v1/intents?since=2026-01-01T00:00:00Z"} {
			w := (&ask{method: "GET", target: target}).send(t, c, h)
			if w.Code != tc.status || !strings.Contains(w.Body.String(), `"`+string(tc.code)+`"`) || strings.Contains(w.Body.String(), "hunter2") || (w.Code == 503) != (w.Header().Get("Retry-After") != "") {
				t.Errorf("%s: %d %v %s", name, w.Code, w.Header(), w.Body)
			}
		}
	}
}

// TestHandlerIsBounded: beyond its bound it refuses at once.
func TestHandlerIsBounded(t *testing.T) {
	t.Parallel()
	c := newClock()
	within, leave := make(chan struct{}), make(chan struct{})
	gate := &porttest.Gate{Before: func(context.Context, string) error {
		within <- struct{}{}
		<-leave
		return nil
	}}
	h := held(t, newHandler(t, c, porttest.NewPayments(newBank(c, 1, simpay.Config{}), gate), func(cfg *HandlerConfig) { cfg.MaxRequests = 1 }))
	client := connect(t, c, listen(t, h).URL, nil)
	done := make(chan error)
	go func() {
		_, err := client.Create(t.Context(), intent("r:1"))
		done <- err
	}()
	<-within
	_, err := client.Create(t.Context(), intent("r:1"))
	wantCode(t, "the second", err, flashsale.CodeUnavailable)
	close(leave)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestHandlerConfig: what is wrong is said at once.
func TestHandlerConfig(t *testing.T) {
	t.Parallel()
	bank := simpay.New(simpay.Config{})
	for name, cfg := range map[string]HandlerConfig{
		"no payments": {Secrets: [][]byte{secret}}, "no secret": {Payments: bank}, "a short one": {Payments: bank, Secrets: [][]byte{[]byte("short")}},
		"a prefix that is none": {Payments: bank, Secrets: [][]byte{secret}, Prefix: "v1"}, "one that ends with a slash": {Payments: bank, Secrets: [][]byte{secret}, Prefix: "/"},
	} {
		_, err := NewHandler(cfg)
		wantCode(t, name, err, flashsale.CodeInvalidArgument)
	}
}

// TestDocument: it is served to anybody, has every route and every code, and no other.
func TestDocument(t *testing.T) {
	t.Parallel()
	c := newClock()
	w := (&ask{method: "GET", target: "/v1/openapi.json", secret: []byte{}}).send(t, c, newHandler(t, c, newBank(c, 1, simpay.Config{}), nil))
	if w.Code != 200 || !bytes.Equal(w.Body.Bytes(), OpenAPI()) {
		t.Errorf("%d, %d bytes", w.Code, w.Body.Len())
	}
	doc := document.Load(t)
	left := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			left[method+" "+path] = true
		}
	}
	for _, code := range doc.Components.Schemas["Problem"].Value.Properties["code"].Value.Enum {
		left[code.(string)] = true
	}
	page, err := os.ReadFile("../../docs/payments.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `((?:GET|PUT|POST) [^`]+)` \\||^\\| \\d{3} \\| `(\\w+)` \\|").FindAllStringSubmatch(string(page), -1) {
		told[row[1]+row[2]] = true
	}
	want := []string{}
	for _, r := range routes() {
		want = append(want, r.method+" "+r.path)
	}
	for code := range statuses {
		want = append(want, string(code))
	}
	for _, what := range want {
		if !left[what] || !told[what] {
			t.Errorf("%s is in the document: %t, in the page: %t", what, left[what], told[what])
		}
		delete(left, what)
		delete(told, what)
	}
	if len(left)+len(told) > 0 {
		t.Errorf("not served: %v in the document, %v in the page", left, told)
	}
}

// TestVectors: the signatures of docs/payments.md are those that are made.
func TestVectors(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/payments.md")
	if err != nil {
		t.Fatal(err)
	}
	example := [][]byte{[]byte("an-example-secret-of-thirty-two-bytes")}
	at := time.Unix(1_800_000_000, 0)
	for _, want := range []string{
		"Request-Signature: " + paywire.SignRequest(example, at, &paywire.Request{Method: "PUT", Target: "/v1/intents/r:1", Body: []byte(`{"amount":1250,"currency":"EUR","rid":"r"}`)}),
		"Request-Signature: " + paywire.SignRequest(example, at, &paywire.Request{Method: "POST", Target: "/v1/intents/r:1/void"}),
		"Webhook-Signature: " + paywire.SignWebhook(example, at, []byte(`{"id":"evt_1"}`)),
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

// FuzzAnswers: whatever a service answers, there is a payment of that intent or an error, and never both.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{goodPayment, "", "null", "{}", `{"payments":[` + goodPayment + `],"next":"2"}`, `{"payments":[{}]}`} {
		f.Add([]byte(seed))
	}
	client, err := New(Config{URL: "https://pay.example.com", Secrets: [][]byte{secret}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := client.readPayment(text, "r:1")
		if (p == nil) == (err == nil) || p != nil && (p.IntentKey != "r:1" || p.Amount < 0 || p.Status == flashsale.PayOpen && !strings.HasPrefix(strings.ToLower(p.URL), "https://")) {
			t.Errorf("%+v, %v", p, err)
		}
		page, next, err := client.readPage(text, "1", 2)
		if len(page) > 2 || next == "1" || err != nil && (page != nil || next != "") {
			t.Errorf("%+v, %q, %v", page, next, err)
		}
	})
}

// TestHandlerBodiesThatDoNotCome: one that stalls has come too late, and one that breaks off is none. Neither can be verified.
func TestHandlerBodiesThatDoNotCome(t *testing.T) {
	t.Parallel()
	c := newClock()
	h := newHandler(t, c, newBank(c, 1, simpay.Config{}), nil)
	for _, tc := range []struct {
		err    error
		status int
		code   string
	}{{os.ErrDeadlineExceeded, 408, "body_timeout"}, {io.ErrUnexpectedEOF, 400, "invalid_argument"}} {
		r := httptest.NewRequestWithContext(t.Context(), "PUT", "/v1/intents/r:1", io.MultiReader(strings.NewReader(`{"am`), iotest.ErrReader(tc.err)))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.code) {
			t.Errorf("%v: %d %s", tc.err, w.Code, w.Body)
		}
	}
}

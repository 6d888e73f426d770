package httppay

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/paywire"
	"github.com/headgate-io/headgate/flashsale/simpay"
)

const goodPayment = `{"intent":"r:1","status":"captured","amount":1250,"currency":"EUR","url":"","changed_at":"2026-11-11T12:00:00Z"}`

// said is a service that always answers the same.
func said(status int, contentType, body string, header ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

// cut answers with what is not all that it says it is, or with nothing.
func cut(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, out, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = out.WriteString(text)
		_ = out.Flush()
		_ = conn.Close()
	})
}

// TestAnswersThatAreNone: what a service says that is not of the protocol leaves open what has happened; a refusal says that it has not.
func TestAnswersThatAreNone(t *testing.T) {
	t.Parallel()
	refuse := func(status int, code string) http.Handler {
		return said(status, "application/problem+json", fmt.Sprintf(`{"code":%q,"detail":"so it\n is"}`, code))
	}
	with := func(old, fresh string) http.Handler {
		return said(200, "application/json", strings.Replace(goodPayment, old, fresh, 1))
	}
	open := func(url string) http.Handler {
		return with(`"captured","amount":1250,"currency":"EUR","url":""`, fmt.Sprintf(`"open","amount":1250,"currency":"EUR","url":%q`, url))
	}
	for name, c := range map[string]struct {
		service http.Handler
		code    flashsale.Code
		says    string
	}{
		"good":                      {said(200, "application/json", goodPayment), "", ""},
		"made":                      {said(201, "application/json", goodPayment), "", ""},
		"more members":              {with(`{`, `{"more":[1],`), "", ""},
		"open":                      {open("https://pay.example.com/r:1"), "", ""},
		"refuses":                   {refuse(409, "invalid_state"), flashsale.CodeInvalidState, "refuses: so it is"},
		"knows none":                {refuse(404, "unknown_payment"), flashsale.CodeUnknownPayment, ""},
		"a code of another call":    {refuse(409, "conflict"), flashsale.CodeUnavailable, "answers 409: so it is"},
		"a code of another status":  {refuse(500, "unknown_payment"), flashsale.CodeUnavailable, "answers 500"},
		"a code in a page":          {said(404, "text/html", `{"code":"unknown_payment"}`), flashsale.CodeUnavailable, "is the URL that of the service?"},
		"another's secret":          {refuse(401, "invalid_signature"), flashsale.CodeUnavailable, "have both sides the same secret"},
		"500":                       {said(500, "text/plain", "oops"), flashsale.CodeUnavailable, "answers 500"},
		"502 with a page":           {said(502, "text/html", "<html>"), flashsale.CodeUnavailable, "answers 502"},
		"429":                       {said(429, "text/plain", ""), flashsale.CodeUnavailable, "answers 429"},
		"204":                       {said(204, "application/json", ""), flashsale.CodeUnavailable, "answers 204"},
		"a long problem":            {said(503, "application/problem+json", `{"detail":"`+strings.Repeat("x", 1000)+`"}`), flashsale.CodeUnavailable, "xxx…"},
		"a problem without an end":  {said(503, "application/problem+json", strings.Repeat("x", maxBody+1)), flashsale.CodeUnavailable, "more than"},
		"no end":                    {said(200, "application/json", strings.Repeat(" ", maxBody+1)+goodPayment), flashsale.CodeUnavailable, "more than 65536 bytes"},
		"headers without an end":    {said(200, "application/json", goodPayment, "X", strings.Repeat("x", 2*maxBody)), flashsale.CodeUnavailable, "does not answer"},
		"no JSON":                   {said(200, "application/json", "hello"), flashsale.CodeUnavailable, "cannot be used"},
		"nothing":                   {said(200, "application/json", ""), flashsale.CodeUnavailable, "cannot be used"},
		"null":                      {said(200, "application/json", "null"), flashsale.CodeUnavailable, "another intent"},
		"two":                       {said(200, "application/json", goodPayment+goodPayment), flashsale.CodeUnavailable, "cannot be used"},
		"of another intent":         {with("r:1", "r:2"), flashsale.CodeUnavailable, "another intent"},
		"another status":            {with("captured", "paid"), flashsale.CodeUnavailable, "its status"},
		"no amount":                 {with(`"amount":1250,`, ""), flashsale.CodeUnavailable, "its amount"},
		"a negative amount":         {with("1250", "-1"), flashsale.CodeUnavailable, "its amount"},
		"a broken amount":           {with("1250", "12.5"), flashsale.CodeUnavailable, "cannot be used"},
		"a text for an amount":      {with("1250", `"1250"`), flashsale.CodeUnavailable, "cannot be used"},
		"an amount beyond all":      {with("1250", "1000000000000001"), flashsale.CodeUnavailable, "its amount"},
		"no currency":               {with("EUR", ""), flashsale.CodeUnavailable, "its currency"},
		"no time":                   {with(`,"changed_at":"2026-11-11T12:00:00Z"`, ""), flashsale.CodeUnavailable, "changed_at"},
		"a number for a time":       {with(`"2026-11-11T12:00:00Z"`, "1"), flashsale.CodeUnavailable, "cannot be used"},
		"open and nowhere":          {open(""), flashsale.CodeUnavailable, "its url"},
		"open at a script":          {open("javascript:alert(1)"), flashsale.CodeUnavailable, "its url"},
		"open at a path":            {open("/pay/r:1"), flashsale.CodeUnavailable, "its url"},
		"open at a user":            {open("https://pay.example.com@evil.example/"), flashsale.CodeUnavailable, "its url"},
		"open at a very long place": {open("https://pay.example.com/" + strings.Repeat("x", maxURL)), flashsale.CodeUnavailable, "its url"},
		"cut at once":               {cut(""), flashsale.CodeUnavailable, "does not answer"},
		"cut in the header":         {cut("HTTP/1.1 200 OK\r\nContent-"), flashsale.CodeUnavailable, "does not answer"},
		"cut in the body":           {cut("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + goodPayment), flashsale.CodeUnavailable, "breaks off"},
		"no HTTP":                   {cut("SSH-2.0-service\r\n"), flashsale.CodeUnavailable, "does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := connect(t, newClock(), listen(t, c.service).URL, nil)
			p, err := client.Refund(t.Context(), "r:1")
			wantCode(t, "refund", err, c.code)
			if err == nil && (p.IntentKey != "r:1" || p.Amount != 1250) {
				t.Errorf("%+v", p)
			}
			if err != nil && (!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "/v1") || strings.Contains(err.Error(), "\n")) {
				t.Errorf("it says %q, want %q in one line, and no URL", err, c.says)
			}
		})
	}
}

// TestPagesThatAreNone: a list that would never end, or that has more than was asked for, is none.
func TestPagesThatAreNone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body string
		code flashsale.Code
	}{
		"none":               {`{"payments":[]}`, ""},
		"one":                {`{"payments":[` + goodPayment + `],"next":"2"}`, ""},
		"null":               {`{"payments":null}`, flashsale.CodeUnavailable},
		"another document":   {goodPayment, flashsale.CodeUnavailable},
		"more":               {`{"payments":[` + goodPayment + strings.Repeat(","+goodPayment, 2) + `]}`, flashsale.CodeUnavailable},
		"the same again":     {`{"payments":[` + goodPayment + `],"next":"1"}`, flashsale.CodeUnavailable},
		"nothing, and on":    {`{"payments":[],"next":"2"}`, flashsale.CodeUnavailable},
		"a very long cursor": {`{"payments":[` + goodPayment + `],"next":"` + strings.Repeat("x", 600) + `"}`, flashsale.CodeUnavailable},
		"one that is none":   {`{"payments":[` + goodPayment + `,{}]}`, flashsale.CodeUnavailable},
		"no end":             {strings.Repeat(" ", maxList+1), flashsale.CodeUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := connect(t, newClock(), listen(t, said(200, "application/json", c.body)).URL, nil)
			_, _, err := client.List(t.Context(), time.Unix(0, 0), "1", 2)
			wantCode(t, "list", err, c.code)
		})
	}
}

// TestBeforeAndAfter: a call that fails before it has come, and one whose answer is lost, are repeated, and nothing happens twice.
func TestBeforeAndAfter(t *testing.T) {
	t.Parallel()
	c := newClock()
	bank := newBank(c, 1, simpay.Config{})
	h, err := NewHandler(HandlerConfig{Payments: bank, Secrets: [][]byte{secret}, Prefix: "/v1", Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	faults := []http.Handler{ // before, and after
		said(503, "text/plain", ""), cut(""), said(307, "text/plain", "", "Location", "/x"), nil,
	}
	var next int
	service := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := next % (2*len(faults) - 1)
		next++
		switch {
		case i < len(faults)-1:
			faults[i].ServeHTTP(w, r)
		case i < 2*len(faults)-2:
			h.ServeHTTP(httptest.NewRecorder(), r)
			faults[i-len(faults)+1].ServeHTTP(w, r)
		default:
			h.ServeHTTP(w, r)
		}
	}))
	// No connection is kept, so that net/http makes no call twice by itself.
	client := connect(t, c, service.URL, func(cfg *Config) { cfg.Transport = &http.Transport{DisableKeepAlives: true} })
	until := func(what string, want flashsale.PayStatus, call func() (*flashsale.ProviderPayment, error)) {
		t.Helper()
		for i := range 2*len(faults) - 1 {
			p, err := call()
			if last := i == 2*len(faults)-2; last != (err == nil) || err == nil && p.Status != want {
				t.Fatalf("%s, call %d: %+v, %v; want %s at last", what, i, p, err, want)
			}
			if err != nil {
				wantCode(t, what, err, flashsale.CodeUnavailable)
			}
		}
	}
	ctx := t.Context()
	until("create", flashsale.PayOpen, func() (*flashsale.ProviderPayment, error) { return client.Create(ctx, intent("r:1")) })
	if err := bank.Pay("r:1", flashsale.PayCaptured); err != nil {
		t.Fatal(err)
	}
	until("void", flashsale.PayCaptured, func() (*flashsale.ProviderPayment, error) { return client.Void(ctx, "r:1") })
	until("refund", flashsale.PayRefunded, func() (*flashsale.ProviderPayment, error) { return client.Refund(ctx, "r:1") })
	until("query", flashsale.PayRefunded, func() (*flashsale.ProviderPayment, error) { return client.Query(ctx, "r:1") })
	if r, _ := bank.Record("r:1"); r.Captures != 1 || r.Refunds != 1 {
		t.Errorf("%+v", r)
	}
}

// TestSecretsRotate, on one side after the other, without a call that is refused.
func TestSecretsRotate(t *testing.T) {
	t.Parallel()
	fresh := []byte("the next secret that both sides sign with")
	c := newClock()
	bank := newBank(c, 1, simpay.Config{})
	var h atomic.Pointer[Handler]
	handler := func(secrets ...[]byte) {
		t.Helper()
		made, err := NewHandler(HandlerConfig{Payments: bank, Secrets: secrets, Prefix: "/v1", Now: c.now})
		if err != nil {
			t.Fatal(err)
		}
		h.Store(made)
	}
	handler(secret)
	client := connect(t, c, listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.Load().ServeHTTP(w, r) })).URL, nil)
	steps := []func(){
		func() {}, func() { handler(secret, fresh) }, func() { _ = client.SetSecrets(fresh, secret) }, func() { _ = client.SetSecrets(fresh) }, func() { handler(fresh) },
	}
	body := paywire.Message("evt_1", &flashsale.ProviderPayment{IntentKey: "r:1", Status: flashsale.PayCaptured})
	for i, step := range steps {
		step()
		if _, err := client.Create(t.Context(), intent("r:1")); err != nil {
			t.Errorf("step %d: %v", i, err)
		}
		signature := paywire.SignWebhook(h.Load().cfg.Secrets, c.now(), body)
		if e, err := client.Webhook(http.Header{paywire.WebhookHeader: {signature}}, body); err != nil || e.ID != "evt_1" {
			t.Errorf("webhook at step %d: %+v, %v", i, e, err)
		}
	}
	handler(secret)
	_, err := client.Create(t.Context(), intent("r:1"))
	wantCode(t, "the old secret alone", err, flashsale.CodeUnavailable)
	_, err = client.Webhook(http.Header{paywire.WebhookHeader: {paywire.SignWebhook([][]byte{secret}, c.now(), body)}}, body)
	wantCode(t, "a webhook of the old secret", err, flashsale.CodeInvalidSignature)
	_, err = client.Webhook(http.Header{paywire.WebhookHeader: {paywire.SignWebhook([][]byte{fresh}, c.now().Add(-301*time.Second), body)}}, body)
	wantCode(t, "an old webhook", err, flashsale.CodeInvalidSignature)
}

// TestConfig: what is wrong is said before anything is asked, and nothing of an address or a secret is quoted.
func TestConfig(t *testing.T) {
	t.Parallel()
	good := Config{URL: "https://pay.example.com/v1/", Secrets: [][]byte{secret}}
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"good":              {func(*Config) {}, ""},
		"http on loopback":  {func(c *Config) { c.URL = "http://127.0.0.1:9400" }, ""},
		"http by name":      {func(c *Config) { c.URL = "http://localhost:9400/v1" }, ""},
		"http on IPv6":      {func(c *Config) { c.URL = "http://[::1]:9400/v1" }, ""},
		"http elsewhere":    {func(c *Config) { c.URL = "http://hunter2.example.com/v1" }, "for this machine alone"},
		"http almost here":  {func(c *Config) { c.URL = "http://127.0.0.1.hunter2.example/v1" }, "for this machine alone"},
		"nothing":           {func(c *Config) { c.URL = "" }, "is no URL"},
		"no host":           {func(c *Config) { c.URL = "https:///hunter2" }, "is no URL"},
		"another scheme":    {func(c *Config) { c.URL = "ftp://hunter2" }, "is no URL"},
		"a password":        {func(c *Config) { c.URL = "https://u:hunter2@pay.example.com" }, "has a user"},
		"a query":           {func(c *Config) { c.URL = "https://pay.example.com/?k=hunter2" }, "has a user"},
		"control character": {func(c *Config) { c.URL = "https://pay.example.com/\nhunter2" }, "is no URL"},
		"no secret":         {func(c *Config) { c.Secrets = nil }, "0 secrets"},
		"a short secret":    {func(c *Config) { c.Secrets = [][]byte{secret, []byte("hunter2")} }, "secret 2 for the payment service has 7 bytes"},
		"9 secrets":         {func(c *Config) { c.Secrets = make([][]byte, 9) }, "9 secrets"},
		"come back nowhere": {func(c *Config) { c.ReturnURL = "hunter2" }, "come back"},
		"come back":         {func(c *Config) { c.ReturnURL = "https://shop.example.com/{rid}" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := good
			c.change(&cfg)
			client, err := New(cfg)
			if c.want == "" && err == nil {
				_ = client.Close()
				return
			}
			wantCode(t, "new", err, flashsale.CodeInvalidArgument)
			if err == nil || c.want == "" || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

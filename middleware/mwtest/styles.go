package mwtest

import (
	"encoding/json"
	"html/template"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// ask sends a GET with header fields, name and value in turn, and returns the answer with its body read.
func (b *bench) ask(t *testing.T, method, path string, fields ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, b.base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		req.Header.Add(fields[i], fields[i+1])
	}
	res, err := b.client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %s: read: %v", method, path, err)
	}
	return res, string(text)
}

// deny starts a policy that denies all in one way.
func (b *bench) deny(t *testing.T, shape func(*httpverdict.Verdict)) {
	b.start(t, func(*httpverdict.Request) *httpverdict.Verdict {
		v := &httpverdict.Verdict{Kind: httpverdict.Limited, ID: "id-denied", Code: "limited", RetryAfter: report(false)[0].Outcome.RetryAfter, Limits: report(false)}
		shape(v)
		return v
	}, unreached(t))
}

func testFallback(t *testing.T, b *bench) {
	b.deny(t, func(v *httpverdict.Verdict) {
		v.Fallback = &httpverdict.Fallback{Status: 200, ContentType: "text/plain; charset=utf-8", Body: []byte("soon")}
	})
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		want := "soon"
		if method == http.MethodHead {
			want = ""
		}
		res, body := b.ask(t, method, "/")
		h := res.Header
		if res.StatusCode != 200 || body != want || h.Get("Content-Type") != "text/plain; charset=utf-8" || h.Get("Content-Length") != "4" ||
			h.Get("Headgate-Id") != "id-denied" || h.Get("Cache-Control") != "no-store" || h.Get("RateLimit-Policy") == "" {
			t.Errorf("%s: %d %q %v", method, res.StatusCode, body, h)
		}
		if got := b.awaitDone(t); got.Status != 200 || got.Bytes != int64(len(want)) {
			t.Errorf("%s: Done got %+v", method, got)
		}
	}
}

// An allowed request's fallback is for a service that gives no answer; the one that it gives is passed on, a failure too.
func testFallbackOfAllowed(t *testing.T, b *bench) {
	b.start(t, func(*httpverdict.Request) *httpverdict.Verdict {
		return &httpverdict.Verdict{ID: "id-1", Binding: -1, Fallback: &httpverdict.Fallback{Status: 200, Body: []byte("soon")}}
	}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/busy" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		io.WriteString(w, "own")
	})
	for path, status := range map[string]int{"/": 200, "/busy": 503} {
		if res, body := b.ask(t, http.MethodGet, path); res.StatusCode != status || body != "own" {
			t.Errorf("%s: %d %q, want %d and the application's own", path, res.StatusCode, body, status)
		}
	}
}

func testTemplate(t *testing.T, b *bench) {
	b.deny(t, func(v *httpverdict.Verdict) {
		v.Response.Style = httpverdict.StyleTemplate
		v.Response.Template = template.Must(template.New("").Parse("<p lang={{.Lang}}>{{.Title}} {{.ID}} {{.RetryAfter}}</p>"))
	})
	res, body := b.ask(t, http.MethodGet, "/", "Accept-Language", "zh-CN")
	if res.StatusCode != 429 || body != "<p lang=zh>请求过多 id-denied 12</p>" || res.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("%d %q %v", res.StatusCode, body, res.Header)
	}
}

func testLanguages(t *testing.T, b *bench) {
	b.deny(t, func(*httpverdict.Verdict) {})
	for accepted, want := range map[string]string{"en-US,zh;q=0.5": "en", "zh-CN,zh;q=0.9,en;q=0.8": "zh", "fr": "en"} {
		res, body := b.ask(t, http.MethodGet, "/", "Accept-Language", accepted)
		var got struct{ Title, Detail string }
		err := json.Unmarshal([]byte(body), &got)
		title, message := httpverdict.Message("limited", httpverdict.Limited, want)
		if err != nil || got.Title != title || got.Detail != message || res.Header.Get("Content-Language") != want {
			t.Errorf("%s: %s %v (%v), want %s", accepted, body, res.Header, err, want)
		}
		if vary := strings.Join(res.Header["Vary"], ","); !strings.Contains(vary, "Accept-Language") {
			t.Errorf("%s: Vary %q", accepted, vary)
		}
	}
}

func testRestricted(t *testing.T, b *bench) {
	b.deny(t, func(v *httpverdict.Verdict) {
		v.Kind, v.Code, v.Limits, v.Binding = httpverdict.Unavailable, "restricted", nil, -1
	})
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	for _, c := range []struct{ accept, lang, mediaType, want string }{
		{browser, "en", "text/html; charset=utf-8", `<html lang="en">`},
		{browser, "zh-CN,zh;q=0.9", "text/html; charset=utf-8", `<html lang="zh-Hans">`},
		{"application/json", "zh", "application/problem+json", `"code":"restricted"`},
		{"*/*", "en", "application/problem+json", `"code":"restricted"`},
	} {
		res, body := b.ask(t, http.MethodGet, "/", "Accept", c.accept, "Accept-Language", c.lang)
		h, vary := res.Header, strings.Join(res.Header["Vary"], ",")
		if res.StatusCode != 503 || h.Get("Retry-After") != "12" || h.Get("Content-Type") != c.mediaType || h.Get("Headgate-Id") != "id-denied" ||
			!strings.Contains(body, c.want) || !strings.Contains(body, "id-denied") || !strings.Contains(vary, "Accept,") && !strings.HasSuffix(vary, "Accept") {
			t.Errorf("%s in %s: %d %v %.200s", c.accept, c.lang, res.StatusCode, h, body)
		}
		if got := b.awaitDone(t); got.Status != 503 || got.Bytes != int64(len(body)) {
			t.Errorf("%s in %s: Done got %+v", c.accept, c.lang, got)
		}
	}
	res, body := b.ask(t, http.MethodHead, "/", "Accept", browser)
	if res.StatusCode != 503 || body != "" || res.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("HEAD: %d %v %q", res.StatusCode, res.Header, body)
	}
}

func testOrigins(t *testing.T, b *bench) {
	const shop = "https://shop.example"
	b.deny(t, func(v *httpverdict.Verdict) { v.Response.Origins = []string{shop} })
	for origin, want := range map[string]string{shop: shop, "https://evil.example": "", "null": ""} {
		res, _ := b.ask(t, http.MethodGet, "/", "Origin", origin)
		exposed := res.Header.Get("Access-Control-Expose-Headers")
		if res.Header.Get("Access-Control-Allow-Origin") != want || strings.Contains(exposed, "Retry-After") != (want != "") ||
			!strings.Contains(strings.Join(res.Header["Vary"], ","), "Origin") {
			t.Errorf("%s: %v", origin, res.Header)
		}
	}
}

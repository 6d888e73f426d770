package httpverdict

import (
	"errors"
	"html/template"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
)

func TestLanguage(t *testing.T) {
	for text, want := range map[string]string{
		"":                                Language(nil),
		"en":                              "en",
		"zh":                              "zh",
		"zh-CN":                           "zh",
		"ZH-hans-cn":                      "zh",
		"zh-TW":                           "zh",
		"fr":                              "en",
		"fr, zh;q=0.1":                    "zh",
		"zh-CN,zh;q=0.9,en;q=0.8":         "zh",
		"en-US,en;q=0.9,zh-CN;q=0.8":      "en",
		"en;q=0.8,zh;q=0.9":               "zh",
		"en,zh":                           "en",
		"zh,en":                           "zh",
		"zh;q=0.5,en;q=0.500":             "zh",
		"zh;q=0.5,en;q=0.501":             "en",
		"*":                               "en",
		"en;q=0,*":                        "zh",
		"zh;q=0,*":                        "en",
		"*;q=0.5,en;q=0.4":                "zh",
		"zh;q=0":                          "en",
		"zh;q=0,en;q=0":                   "en",
		"zh;q=2":                          "en",
		"zh;q=-1":                         "en",
		"zh;q=0.1234":                     "en",
		"zh;q=x, en;q=0.1":                "en",
		"zh ; Q=0.7 , en;q=0.6":           "zh",
		"zhx":                             "en",
		"\x00\xff;;;=,,;q=":               "en",
		strings.Repeat("fr,", 31) + "zh":  "zh",
		strings.Repeat("fr,", 32) + "zh":  "en", // no more is looked at
		strings.Repeat(",", 1<<16) + "zh": "en",
	} {
		if got := Language(http.Header{"Accept-Language": {text}}); got != want {
			t.Errorf("%.80q: %s, want %s", text, got, want)
		}
	}
	if got := Language(http.Header{"Accept-Language": {"en;q=0.5", "zh"}}); got != "zh" {
		t.Errorf("over two lines: %s, want zh", got)
	}
}

func FuzzLanguage(f *testing.F) {
	f.Add("zh-CN,zh;q=0.9,en;q=0.8")
	f.Fuzz(func(t *testing.T, text string) {
		got := Language(http.Header{"Accept-Language": {text}})
		if got != English && got != Chinese || got == Chinese && !strings.ContainsAny(text, "zZ*") {
			t.Errorf("%q: %s", text, got)
		}
	})
}

func TestMessages(t *testing.T) {
	for kind := Allow; int(kind) <= len(kindTexts); kind++ {
		for _, code := range []string{"", "limited", "gone", "wait_timeout", "store_timeout"} {
			title, message := Message(code, kind, English)
			zhTitle, zhMessage := Message(code, kind, Chinese)
			for _, s := range []string{title, message, zhTitle, zhMessage} {
				if s == "" {
					t.Errorf("%s %s: a text is missing", kind, code)
				}
			}
			if !strings.HasSuffix(message, ".") || !strings.HasSuffix(zhMessage, "。") || title == zhTitle {
				t.Errorf("%s %s: %s %s / %s %s", kind, code, title, message, zhTitle, zhMessage)
			}
		}
	}
	if len(kindTexts) != len(outcomeKinds) {
		t.Errorf("%d kinds have texts, of %d", len(kindTexts), len(outcomeKinds))
	}
	if title, message := Message("wait_timeout", Overloaded, "fr"); title != "Overloaded" || !strings.Contains(message, "in vain") {
		t.Errorf("an unknown language: %s %s", title, message)
	}
}

// answered writes a denial for a request with these headers, name and value in turn.
func answered(v *Verdict, fields ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/login", nil)
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	w := httptest.NewRecorder()
	fixed.Write(w, r, v)
	return w
}

func TestAnswersInChinese(t *testing.T) {
	v := denied()
	v.Detail = ""
	w := answered(v, "Accept-Language", "zh-CN,zh;q=0.9")
	for _, part := range []string{`"title":"请求过多"`, `"detail":"请求过于频繁，请稍后再试。"`} {
		if !strings.Contains(w.Body.String(), part) {
			t.Errorf("%s lacks %s", w.Body, part)
		}
	}
	if w.Header().Get("Content-Language") != "zh" {
		t.Errorf("headers %v", w.Header())
	}
	v.Detail = "As the rule says."
	v.Response.Style = StyleEnvelope
	for lang, want := range map[string]string{"en": "As the rule says.", "fr": "As the rule says.", "zh": "请求过于频繁，请稍后再试。"} {
		if w = answered(v, "Accept-Language", lang); !strings.Contains(w.Body.String(), `"message":"`+want+`"`) {
			t.Errorf("in %s: %s, want %s", lang, w.Body, want)
		}
	}
}

func TestVaryIsAddedTo(t *testing.T) {
	w := httptest.NewRecorder()
	shared := make([]string, 1, 4)
	shared[0] = "Accept-Encoding"
	w.Header()["Vary"] = shared
	fixed.Write(w, httptest.NewRequest(http.MethodGet, "/", nil), denied())
	if got := w.Header()["Vary"]; !reflect.DeepEqual(got, []string{"Accept-Encoding", "Accept-Language"}) {
		t.Errorf("Vary %v", got)
	}
	if full := shared[:2]; full[1] != "" {
		t.Errorf("the caller's values were written to: %v", full)
	}
}

func TestFallback(t *testing.T) {
	v := denied()
	v.Fallback = &Fallback{Status: 200, ContentType: "text/html; charset=utf-8", Body: []byte("<p>soon</p>")}
	w := answered(v, "Accept-Language", "zh")
	want := http.Header{
		"Headgate-Id": {"id1"}, "Content-Type": {"text/html; charset=utf-8"}, "Cache-Control": {"no-store"}, "Content-Length": {"11"},
		"Ratelimit-Policy": {`"site";q=100;w=1, "login";q=5;w=300`}, "Ratelimit": {`"login";r=0`},
	}
	if got := w.Header(); w.Code != 200 || w.Body.String() != "<p>soon</p>" || !reflect.DeepEqual(got, want) {
		t.Errorf("got %d %q %v\nwant %v", w.Code, w.Body, got, want)
	}
	v.Fallback.Status = 503
	if w = answered(v); w.Code != 503 || w.Header().Get("Retry-After") != "12" {
		t.Errorf("503: got %d %v", w.Code, w.Header())
	}
	for _, status := range []int{0, 101, 600} {
		v.Fallback.Status = status
		if w = answered(v); w.Code != 429 {
			t.Errorf("status %d: got %d, want that of the kind", status, w.Code)
		}
	}
	for _, status := range []int{204, 205, 304} {
		v.Fallback = &Fallback{Status: status, ContentType: "text/plain", Body: []byte("none of this")}
		if w = answered(v); w.Code != status || w.Header()["Content-Length"] != nil || w.Header()["Content-Type"] != nil || w.Body.Len() != 0 {
			t.Errorf("%d: got %d %v %q", status, w.Code, w.Header(), w.Body)
		}
		if a := (Renderer{}).Answer(nil, v); a.Body != nil {
			t.Errorf("%d: other fronts get the body %q", status, a.Body)
		}
	}
}

func TestTemplate(t *testing.T) {
	v := denied()
	v.ID = "<script>"
	v.Response.Style = StyleTemplate
	v.Response.Template = template.Must(template.New("").Parse(
		`<html lang={{.Lang}}>{{.Status}} {{.Title}}|{{.Message}}|{{.Code}}|{{.ID}}|{{.RetryAfter}}`))
	w := answered(v, "Accept-Language", "zh")
	if got, want := w.Body.String(), `<html lang=zh>429 请求过多|请求过于频繁，请稍后再试。|limited|&lt;script&gt;|12`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if w.Code != 429 || w.Header().Get("Content-Type") != "text/html; charset=utf-8" || w.Header().Get("Content-Language") != "zh" {
		t.Errorf("got %d %v", w.Code, w.Header())
	}
}

type templateFunc func(io.Writer) error

func (f templateFunc) Execute(w io.Writer, _ any) error { return f(w) }

func TestTemplateThatFails(t *testing.T) {
	half := strings.Repeat("x", maxPage/2)
	write := func(parts ...string) templateFunc {
		return func(w io.Writer) error {
			for _, part := range parts {
				_, _ = io.WriteString(w, part)
			}
			return nil
		}
	}
	for name, c := range map[string]struct {
		template Template
		fits     bool
	}{
		"none":              {nil, false},
		"an error":          {templateFunc(func(w io.Writer) error { io.WriteString(w, "half"); return errors.New("broken") }), false},
		"just fits":         {write(half, half), true},
		"too long":          {write(half, half, "x"), false},
		"more after a lot":  {write(half, half+"x", "x"), false},
		"a missing field":   {template.Must(template.New("").Parse("{{.Nothing}}")), false},
		"an endless reader": {templateFunc(func(w io.Writer) error { _, err := io.Copy(w, endless{}); return err }), false},
	} {
		v := denied()
		v.Response.Style, v.Response.Template = StyleTemplate, c.template
		w := answered(v)
		if html := strings.HasPrefix(w.Header().Get("Content-Type"), "text/html"); html != c.fits || w.Code != 429 || w.Body.Len() > maxPage {
			t.Errorf("%s: got %d %v and %d bytes", name, w.Code, w.Header(), w.Body.Len())
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestOrigins(t *testing.T) {
	const shop = "https://shop.example"
	for _, c := range []struct {
		name    string
		origins []string
		sent    []string
		allowed string
		vary    []string
	}{
		{"none configured", nil, []string{shop}, "", []string{"Accept-Language"}},
		{"no origin", []string{shop}, nil, "", []string{"Accept-Language", "Origin"}},
		{"the one", []string{"https://a.example", shop}, []string{shop}, shop, []string{"Accept-Language", "Origin"}},
		{"another", []string{shop}, []string{"https://evil.example"}, "", []string{"Accept-Language", "Origin"}},
		{"a longer one", []string{shop}, []string{shop + ".evil.example"}, "", []string{"Accept-Language", "Origin"}},
		{"another port", []string{shop}, []string{shop + ":8443"}, "", []string{"Accept-Language", "Origin"}},
		{"another case", []string{shop}, []string{"https://SHOP.example"}, "", []string{"Accept-Language", "Origin"}},
		{"null", []string{shop}, []string{"null"}, "", []string{"Accept-Language", "Origin"}},
		{"twice", []string{shop}, []string{shop, shop}, "", []string{"Accept-Language", "Origin"}},
		{"null, configured", []string{"null"}, []string{"null"}, "", []string{"Accept-Language", "Origin"}},
		{"everybody", []string{"*"}, []string{"*"}, "", []string{"Accept-Language", "Origin"}},
		{"everybody else", []string{"*"}, []string{shop}, "", []string{"Accept-Language", "Origin"}},
	} {
		v := denied()
		v.Response.Origins = c.origins
		var fields []string
		for _, origin := range c.sent {
			fields = append(fields, "Origin", origin)
		}
		h := answered(v, fields...).Header()
		credentials, exposed := "", ""
		if c.allowed != "" {
			credentials, exposed = "true", "Retry-After, RateLimit, RateLimit-Policy, Headgate-Id"
		}
		if h.Get("Access-Control-Allow-Origin") != c.allowed || h.Get("Access-Control-Allow-Credentials") != credentials ||
			h.Get("Access-Control-Expose-Headers") != exposed || !reflect.DeepEqual(h["Vary"], c.vary) {
			t.Errorf("%s: got %v", c.name, h)
		}
	}
	v := denied()
	v.Response = ResponseStyle{Origins: []string{shop}, XRateLimit: true}
	v.Fallback = &Fallback{Status: 200}
	h := answered(v, "Origin", shop).Header()
	if !strings.Contains(h.Get("Access-Control-Expose-Headers"), "X-RateLimit-Reset") || !reflect.DeepEqual(h["Vary"], []string{"Origin"}) {
		t.Errorf("a fallback: got %v", h)
	}
}

func TestOverloadHasNoFallback(t *testing.T) {
	v := &Verdict{ID: "i", Wait: 90 * time.Second, Fallback: &Fallback{Status: 200}, Detail: "x"}
	o := v.Overload()
	want := Verdict{Kind: Overloaded, ID: "i", Code: "overloaded", Wait: 90 * time.Second, RetryAfter: headgate.Retry{After: 90 * time.Second}}
	if !reflect.DeepEqual(*o, want) || v.Kind != Allow || v.Fallback == nil {
		t.Errorf("got %+v of %+v", *o, *v)
	}
}

func TestUnservedHasTheFallback(t *testing.T) {
	v := &Verdict{ID: "i", Fallback: &Fallback{Status: 200, Body: []byte("ready")}, Detail: "x", RetryAfter: headgate.Retry{State: headgate.RetryNever}}
	u := v.Unserved(Unavailable, "upstream_unavailable", 0)
	want := Verdict{Kind: Unavailable, ID: "i", Code: "upstream_unavailable", RetryAfter: headgate.Retry{After: time.Second}, Fallback: v.Fallback}
	if !reflect.DeepEqual(*u, want) || v.Kind != Allow || v.Code != "" {
		t.Errorf("got %+v of %+v", *u, *v)
	}
	if a := fixed.Answer(http.Header{}, u); a.Status != 200 || string(a.Body) != "ready" || a.Header.Get("Retry-After") != "" {
		t.Errorf("with a fallback: %d %q %v", a.Status, a.Body, a.Header)
	}
	u.Fallback = nil
	if a := fixed.Answer(http.Header{}, u); a.Status != 503 || !strings.Contains(string(a.Body), "not available at the moment") || a.Header.Get("Retry-After") != "1" {
		t.Errorf("without one: %d %q %v", a.Status, a.Body, a.Header)
	}
}

func BenchmarkAnswer(b *testing.B) {
	v := denied()
	h := http.Header{"Accept-Language": {"zh-CN,zh;q=0.9,en;q=0.8"}}
	b.ReportAllocs()
	for b.Loop() {
		fixed.Answer(h, v)
	}
}

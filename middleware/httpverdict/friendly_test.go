package httpverdict

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
)

const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7"

func TestPrefersHTML(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]bool{
		browser: true, "text/html": true, "TEXT/HTML;charset=utf-8": true, "text/html; charset=utf-8; q=0.3": true, "text/*": true,
		"text/html, */*": true, "text/html, */*; q=0.01": true, "application/xhtml+xml": true, "application/json;q=0.5, text/html": true,
		"": false, "*/*": false, "application/json": false, "application/problem+json, text/html": false, "application/json, text/plain, */*": false,
		"text/html;q=0": false, "text/html;q=0.1, */*": false, "text/html;q=0.5, application/json": false, "text/html;q=2": false,
		"text/htmlx": false, ";;;,,": false, "application/*, text/html": false,
		strings.Repeat("a/b,", 100) + "text/html": false,
	} {
		h := http.Header{}
		if accept != "" {
			h["Accept"] = []string{accept}
		}
		if got := PrefersHTML(h); got != want {
			t.Errorf("%.80q: %t", accept, got)
		}
	}
}

func restricted() *Verdict {
	return &Verdict{Kind: Unavailable, Code: "restricted", ID: `id<"&'>1`, RetryAfter: headgate.Retry{After: time.Minute}, Binding: -1}
}

func TestFriendlyAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, lang, code string
		want             []string
	}{
		{"english", "en", "restricted", []string{`<html lang="en">`, "We will be right back", "open to some visitors only", "try again in a minute", ">Try again<"}},
		{"chinese", "zh-CN", "restricted", []string{`<html lang="zh-Hans">`, "我们马上回来", "只对部分用户开放", "请在 1 分钟后重试", ">重试<"}},
		{"shed", "en", "shed", []string{"It is busy here", "Nothing is wrong on your side"}},
		{"overloaded", "zh", "overloaded", []string{"访问人数较多"}},
		{"waited", "en", "wait_timeout", []string{"It is busy here"}},
		{"upstream", "en", "upstream_unavailable", []string{"cannot be reached"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := restricted()
			v.Code = c.code
			a := Renderer{}.Answer(http.Header{"Accept": {browser}, "Accept-Language": {c.lang}}, v)
			page := string(a.Body)
			if a.Status != 503 || a.Header.Get("Content-Type") != "text/html; charset=utf-8" || a.Header.Get("Retry-After") != "60" ||
				a.Header.Get("Cache-Control") != "no-store" || strings.Join(a.Header["Vary"], ", ") != "Accept-Language, Accept" ||
				!strings.HasPrefix(a.Header.Get("Content-Security-Policy"), "default-src 'none'") {
				t.Errorf("%d %v", a.Status, a.Header)
			}
			if !strings.Contains(page, "<code>id&lt;&#34;&amp;&#39;&gt;1</code>") {
				t.Error("the id is not there, or not escaped")
			}
			for _, text := range c.want {
				if !strings.Contains(page, text) {
					t.Errorf("the page has no %q", text)
				}
			}
			selfContained(t, page)
		})
	}
}

// selfContained tells of what a page would load or run, and of places that were not filled.
func selfContained(t *testing.T, page string) {
	t.Helper()
	for _, forbidden := range []string{"<script", "javascript:", "src=", "url(", "@import", "<link", "<iframe", "<form", "http:", "https:", "{{", "}}"} {
		if strings.Contains(page, forbidden) {
			t.Errorf("the page has %q", forbidden)
		}
	}
	if m := regexp.MustCompile(`<[^>]* on[a-z]+=`).FindString(page); m != "" {
		t.Errorf("the page has a handler: %s", m)
	}
}

func TestFriendlyDetail(t *testing.T) {
	t.Parallel()
	v := restricted()
	v.Detail = "Back at <b>20:00</b> {{id}}"
	page := string(Renderer{}.Answer(http.Header{"Accept": {browser}}, v).Body)
	if !strings.Contains(page, "<p>Back at &lt;b&gt;20:00&lt;/b&gt; {{id}}</p>") || strings.Contains(page, "some visitors") {
		t.Errorf("the detail is not shown as it is:\n%s", page)
	}
	if page := string(Renderer{}.Answer(http.Header{"Accept": {browser}, "Accept-Language": {"zh"}}, v).Body); strings.Contains(page, "20:00") {
		t.Error("the English detail is on a Chinese page")
	}
}

// TestFriendlyElsewhere: programs, other styles, ready answers and codes without a page get what they got before.
func TestFriendlyElsewhere(t *testing.T) {
	t.Parallel()
	header := http.Header{"Accept": {browser}}
	json503 := func(header http.Header, change func(*Verdict)) Answer {
		v := restricted()
		change(v)
		return Renderer{}.Answer(header, v)
	}
	for name, a := range map[string]Answer{
		"a program":       json503(http.Header{"Accept": {"*/*"}}, func(*Verdict) {}),
		"another code":    json503(header, func(v *Verdict) { v.Code = "store_unavailable" }),
		"a denial":        json503(header, func(v *Verdict) { v.Kind, v.Code = Limited, "limited" }),
		"a bad template":  json503(header, func(v *Verdict) { v.Response.Style = StyleTemplate }),
		"problem by name": json503(http.Header{}, func(v *Verdict) { v.Response.Style = StyleProblem }),
	} {
		if a.Header.Get("Content-Type") != "application/problem+json" || !json.Valid(a.Body) || a.Header["Content-Security-Policy"] != nil {
			t.Errorf("%s: %v %s", name, a.Header, a.Body)
		}
	}
	if a := json503(header, func(v *Verdict) { v.Response.Style = StyleEnvelope }); a.Header.Get("Content-Type") != "application/json" || len(a.Header["Vary"]) != 1 {
		t.Errorf("envelope: %v", a.Header)
	}
	ready := &Fallback{Status: 200, ContentType: "text/plain", Body: []byte("soon")}
	if a := json503(header, func(v *Verdict) { v.Fallback = ready }); string(a.Body) != "soon" || a.Header.Get("Content-Type") != "text/plain" {
		t.Errorf("fallback: %v %s", a.Header, a.Body)
	}
	a := json503(header, func(v *Verdict) {
		v.Response.Style = StyleProblem
		v.Response.Origins = []string{"https://shop.example"}
	})
	if vary := strings.Join(a.Header["Vary"], ", "); vary != "Accept-Language, Accept, Origin" || a.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("with origins: %q %v", vary, a.Header)
	}
}

func TestAgain(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[int64]phrase{
		0: {"Please come again a little later.", "请稍后再来。"}, 1: {"Please try again in a second.", "请在 1 秒后重试。"},
		59: {"Please try again in 59 seconds.", "请在 59 秒后重试。"}, 60: {"Please try again in a minute.", "请在 1 分钟后重试。"},
		61: {"Please try again in about 2 minutes.", "请在约 2 分钟后重试。"}, 600: {"Please try again in about 10 minutes.", "请在约 10 分钟后重试。"},
	} {
		if got := again(seconds); got != want {
			t.Errorf("%d: %+v", seconds, got)
		}
	}
}

// TestFriendlyTexts: every page has its texts in both languages, and its code is one that has a page.
func TestFriendlyTexts(t *testing.T) {
	t.Parallel()
	for code, text := range friendlyTexts {
		if !HasFriendlyPage(code) || text.title.en == "" || text.title.zh == "" || text.message.en == "" || text.message.zh == "" {
			t.Errorf("%s: %+v", code, text)
		}
	}
	if page, ok := FriendlyPage(http.Header{"Accept": {browser}}, &Page{Code: "unknown"}); ok {
		t.Errorf("a page for an unknown code: %s", page)
	}
}

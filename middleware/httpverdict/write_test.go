package httpverdict

import (
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
)

func TestQuotaOf(t *testing.T) {
	for text, want := range map[string]string{
		"token_bucket 100/s burst=200":              `"n";q=200;w=2`,
		"token_bucket 100/s":                        `"n";q=100;w=1`,
		"token_bucket 3/1m burst=1":                 `"n";q=1;w=20`,
		"token_bucket 7/1m burst=1":                 `"n";q=1;w=9`, // 8.57 s
		"token_bucket 1000000/s burst=1":            `"n";q=1;w=1`,
		"token_bucket 0/s":                          `"n";q=0`,
		"fixed_window 1000/1m":                      `"n";q=1000;w=60`,
		"fixed_window 10/500ms":                     `"n";q=10;w=1`,
		"fixed_window 10/1500ms":                    `"n";q=10;w=2`,
		"fixed_window 20/hour":                      `"n";q=20;w=3600`,
		"fixed_window 20/day zone=Asia/Shanghai":    `"n";q=20;w=86400`,
		"fixed_window 20/week":                      `"n";q=20;w=604800`,
		"fixed_window 20/month":                     `"n";q=20`,
		"sliding_log 5/5m":                          `"n";q=5;w=300`,
		"sliding_window 600/1m cells=6":             `"n";q=600;w=60`,
		"leaky_bucket 10/s capacity=25":             `"n";q=25;w=3`,
		"leaky_bucket 10/s max_wait=2s":             `"n";q=21;w=2`,
		"leaky_bucket 10/s max_wait=0s":             `"n";q=1;w=1`,
		"leaky_bucket 10/s capacity=20 max_wait=1s": `"n";q=20;w=2`,
		"leaky_bucket 0/s capacity=20":              `"n";q=0`,
		"concurrency 50 ttl=60s":                    `"n";q=50;qu="concurrent-requests"`,
		"token_bucket 1/36500d burst=1":             `"n";q=1;w=3153600000`,
	} {
		if got := PolicyItem("n", headgate.MustParseLimit(text)); got != want {
			t.Errorf("%s: got %s; want %s", text, got, want)
		}
	}
	if got := PolicyItem("a\"b\\c\né", headgate.MustParseLimit("sliding_log 5/5m")); got != `"a\"b\\c???";q=5;w=300` {
		t.Errorf("hostile name: %s", got)
	}
	if got := PolicyItem("zero", headgate.TokenBucket{}); got != `"zero";q=0` {
		t.Errorf("zero limit: %s", got)
	}
}

func TestRetrySeconds(t *testing.T) {
	after := func(d time.Duration) headgate.Retry { return headgate.Retry{After: d} }
	for _, c := range []struct {
		name           string
		retry          headgate.Retry
		jitter, random float64
		want           int64
		ok             bool
	}{
		{"nothing", after(0), 0, 0, 1, true},
		{"a microsecond", after(time.Microsecond), 0, 0, 1, true},
		{"exact", after(12 * time.Second), 0, 0, 12, true},
		{"rounded up", after(12*time.Second + time.Microsecond), 0, 0, 13, true},
		{"never", headgate.Retry{State: headgate.RetryNever}, 0.5, 0.9, 0, false},
		{"unknown", headgate.Retry{State: headgate.RetryUnknown}, 0, 0, 1, true},
		{"jitter lengthens", after(100 * time.Second), 0.1, 0.5, 105, true},
		{"no luck", after(100 * time.Second), 0.1, 0, 100, true},
		{"jitter never shortens", after(100 * time.Second), -1, 0.5, 100, true},
		{"random never shortens", after(100 * time.Second), 0.5, -1, 100, true},
		{"jitter is bounded", after(100 * time.Second), 9, 1, 200, true},
		{"longest", after(headgate.MaxPeriod), 1, math.Nextafter(1, 0), 2 * 3153600000, true},
	} {
		got, ok := RetrySeconds(c.retry, c.jitter, c.random)
		if got != c.want || ok != c.ok {
			t.Errorf("%s: got %d, %v; want %d, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

var fixed = Renderer{Now: func() time.Time { return time.UnixMilli(1_767_225_600_123) }, Random: func() float64 { return 0.5 }}

func denied() *Verdict {
	login := headgate.MustParseLimit("sliding_log 5/5m")
	return &Verdict{
		Kind: Limited, ID: "id1", Rule: "login", Code: "limited", Detail: "Too many requests.", Binding: 1,
		RetryAfter: headgate.Retry{After: 11500 * time.Millisecond},
		Limits: []LimitReport{
			{Name: "site", Limit: headgate.MustParseLimit("token_bucket 100/s"), Outcome: headgate.Outcome{Allowed: true, HasRemaining: true, Remaining: 99}},
			{Name: "login", Limit: login, Outcome: headgate.Outcome{Reason: headgate.ReasonLimited, HasRemaining: true,
				RetryAfter: headgate.Retry{After: 11500 * time.Millisecond}, ResetAfter: 250 * time.Second}},
		},
	}
}

func answer(v *Verdict, method string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	fixed.Write(w, httptest.NewRequest(method, "/login", nil), v)
	return w
}

func TestWriteProblem(t *testing.T) {
	w := answer(denied(), http.MethodPost)
	wantBody := `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too many requests","status":429,` +
		`"detail":"Too many requests.","code":"limited","id":"id1","retry_after":12,"violated-policies":["login"]}` + "\n"
	if w.Code != 429 || w.Body.String() != wantBody {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	want := http.Header{
		"Headgate-Id":      {"id1"},
		"Retry-After":      {"12"},
		"Ratelimit-Policy": {`"site";q=100;w=1, "login";q=5;w=300`},
		"Ratelimit":        {`"login";r=0;t=12`},
		"Content-Type":     {"application/problem+json"},
		"Content-Language": {"en"},
		"Vary":             {"Accept-Language"},
		"Cache-Control":    {"no-store"},
		"Content-Length":   {"220"},
	}
	if got := w.Header(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestWriteEnvelopeWithXHeaders(t *testing.T) {
	v := denied()
	v.Response = ResponseStyle{Style: StyleEnvelope, XRateLimit: true, RetryJitter: 1}
	w := answer(v, http.MethodPost)
	// 11.5 s lengthened by half of 100 % are 17.25 s.
	if got, want := w.Body.String(), `{"code":429,"message":"Too many requests.","data":null,"timestamp":1767225600123,"id":"id1"}`+"\n"; got != want {
		t.Errorf("got %s", got)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Retry-After": "18", "X-RateLimit-Limit": "5", "X-RateLimit-Remaining": "0",
		"X-RateLimit-Reset": "1767225618", "RateLimit": "", "RateLimit-Policy": "",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: got %q; want %q", name, got, want)
		}
	}
}

func TestWriteHeadHasNoBody(t *testing.T) {
	w := answer(denied(), http.MethodHead)
	if w.Body.Len() != 0 || w.Code != 429 || w.Header().Get("Content-Length") != "220" {
		t.Errorf("got %d %q %v", w.Code, w.Body, w.Header())
	}
}

func TestTableOfKinds(t *testing.T) {
	after := headgate.Retry{After: 30 * time.Second}
	for _, c := range []struct {
		kind    Kind
		name    string
		status  int
		retry   string
		problem string
	}{
		{Limited, "limited", 429, "30", "quota-exceeded"},
		{LockedOut, "locked_out", 429, "30", "abnormal-usage-detected"},
		{Forbidden, "forbidden", 403, "", "about:blank"},
		{BadRequest, "bad_request", 400, "", "about:blank"},
		{Unavailable, "unavailable", 503, "30", "about:blank"},
		{Overloaded, "overloaded", 503, "30", "temporary-reduced-capacity"},
		{Kind(99), "kind(?)", 500, "", "about:blank"},
	} {
		w := answer(&Verdict{Kind: c.kind, Binding: -1, RetryAfter: after}, http.MethodGet)
		if w.Code != c.status || w.Header().Get("Retry-After") != c.retry || !strings.Contains(w.Body.String(), c.problem) ||
			c.kind.String() != c.name || StatusOf(c.kind) != c.status {
			t.Errorf("%s: got %d %v %s", c.kind, w.Code, w.Header(), w.Body)
		}
	}
	if Allow.String() != "allow" || StatusOf(Allow) != 200 {
		t.Errorf("allow: %s %d", Allow, StatusOf(Allow))
	}
}

func TestNeverHasNoRetryAfter(t *testing.T) {
	v := denied()
	v.RetryAfter = headgate.Retry{State: headgate.RetryNever}
	w := answer(v, http.MethodGet)
	if h := w.Header(); h.Get("Retry-After") != "" || h.Get("RateLimit") != `"login";r=0` || strings.Contains(w.Body.String(), "retry_after") {
		t.Errorf("got %v %s", h, w.Body)
	}
}

func TestHeadersOfAnAllowedAnswer(t *testing.T) {
	for _, c := range []struct {
		limit   string
		outcome headgate.Outcome
		want    http.Header
	}{
		{"token_bucket 1/s burst=5", headgate.Outcome{Allowed: true, HasRemaining: true, Remaining: 3, ResetAfter: 1500 * time.Millisecond},
			http.Header{"Headgate-Id": {"i"}, "Ratelimit-Policy": {`"r";q=5;w=5`}, "Ratelimit": {`"r";r=3;t=2`}}},
		{"token_bucket 1/s burst=5", headgate.Outcome{Allowed: true, HasRemaining: true, Remaining: 5},
			http.Header{"Headgate-Id": {"i"}, "Ratelimit-Policy": {`"r";q=5;w=5`}, "Ratelimit": {`"r";r=5;t=0`}}},
		{"leaky_bucket 1/s max_wait=4s", headgate.Outcome{Allowed: true},
			http.Header{"Headgate-Id": {"i"}, "Ratelimit-Policy": {`"r";q=5;w=4`}}},
		{"concurrency 3 ttl=1m", headgate.Outcome{Allowed: true, HasRemaining: true, Remaining: 2, ResetAfter: time.Minute},
			http.Header{"Headgate-Id": {"i"}, "Ratelimit-Policy": {`"r";q=3;qu="concurrent-requests"`}, "Ratelimit": {`"r";r=2`}}},
	} {
		h := http.Header{}
		SetHeaders(h, &Verdict{ID: "i", Limits: []LimitReport{{Name: "r", Limit: headgate.MustParseLimit(c.limit), Outcome: c.outcome}}})
		if !reflect.DeepEqual(h, c.want) {
			t.Errorf("%s: got %v; want %v", c.limit, h, c.want)
		}
	}
	h := http.Header{}
	SetHeaders(h, &Verdict{ID: "i", Binding: -1})
	if want := (http.Header{"Headgate-Id": {"i"}}); !reflect.DeepEqual(h, want) {
		t.Errorf("nothing matched: got %v", h)
	}
}

func TestBothHeaderFamilies(t *testing.T) {
	v := denied()
	v.Response = ResponseStyle{IETF: true, XRateLimit: true}
	h := http.Header{}
	fixed.SetHeaders(h, v)
	if h.Get("RateLimit") == "" || h.Get("X-RateLimit-Limit") != "5" {
		t.Errorf("got %v", h)
	}
}

func TestNewID(t *testing.T) {
	seen := make(map[string]bool)
	for range 10_000 {
		id := NewID()
		if len(id) != 13 || strings.Trim(id, idDigits) != "" || seen[id] {
			t.Fatalf("id %q", id)
		}
		seen[id] = true
	}
}

package mwtest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

func hello(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }

func unreached(t *testing.T) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s reached the application", r.Method, r.URL)
	}
}

func testRequest(t *testing.T, b *bench) {
	b.start(t, allow, hello)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, b.base+"/a/b?q=1&r=%20", strings.NewReader("12345"))
	if err != nil {
		t.Fatal(err)
	}
	req.Host, req.Header["X-User"] = "Shop.Example:8080", []string{"u1", "u2"}
	res, err := b.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	seen := b.judge.requests()
	if len(seen) != 1 {
		t.Fatalf("the policy saw %d requests, want 1", len(seen))
	}
	got := seen[0]
	summary := fmt.Sprint(got.Method, got.Host, got.Path, got.RawQuery, got.ContentLength, got.Header["X-User"], got.Peer.IsLoopback())
	if want := fmt.Sprint("PUT", "shop.example", "/a/b", "q=1&r=%20", int64(5), []string{"u1", "u2"}, true); summary != want {
		t.Errorf("the policy saw %s, want %s", summary, want)
	}
}

func testJudgedPath(t *testing.T, b *bench) {
	var path, query string
	b.start(t, allow, func(_ http.ResponseWriter, r *http.Request) { path, query = r.URL.EscapedPath(), r.URL.RawQuery })
	for _, c := range []struct{ sent, want string }{
		{"/plain", "/plain"},
		{"/x/..//shop/./%6Cogin", "/shop/login"},
		{"/a%2Fb/c%2fd;p=1/", "/a%2Fb/c%2Fd;p=1/"},
		{"/%E6%B8%A0", "/%E6%B8%A0"},
	} {
		conn := b.dial(t)
		fmt.Fprintf(conn, "GET %s?q=%%2F HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", c.sent)
		if _, err := io.ReadAll(conn); err != nil {
			t.Fatal(err)
		}
		seen := b.judge.requests()
		if judged := seen[len(seen)-1].Path; judged != c.want || path != c.want || query != "q=%2F" {
			t.Errorf("%s: judged %s, handler saw %s?%s; want %s?q=%%2F", c.sent, judged, path, query, c.want)
		}
	}
}

func testMalformedPath(t *testing.T, b *bench) {
	b.start(t, allow, unreached(t))
	conn := b.dial(t)
	fmt.Fprint(conn, "GET /a%00b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusBadRequest {
		t.Errorf("status %d, want 400", res.StatusCode)
	}
	if n := len(b.judge.requests()); n != 0 {
		t.Errorf("the policy was asked %d times about a path that cannot be judged", n)
	}
}

func report(allowed bool) []httpverdict.LimitReport {
	o := headgate.Outcome{Allowed: allowed, HasRemaining: true, ResetAfter: 12 * time.Second}
	if !allowed {
		o.Reason, o.RetryAfter = headgate.ReasonLimited, headgate.Retry{After: 11500 * time.Millisecond}
	}
	return []httpverdict.LimitReport{{Name: "login", Limit: headgate.MustParseLimit("sliding_log 5/5m"), Outcome: o}}
}

func testAllowed(t *testing.T, b *bench) {
	b.start(t, func(*httpverdict.Request) *httpverdict.Verdict {
		return &httpverdict.Verdict{ID: "id-1", Limits: report(true), Shadow: []string{"quiet"}}
	}, hello)
	res, body := b.do(t, http.MethodGet, "/", "")
	if res.StatusCode != 200 || body != "hello" {
		t.Errorf("answer %d %q, want 200 hello", res.StatusCode, body)
	}
	for name, want := range map[string]string{
		"Headgate-Id": "id-1", "RateLimit-Policy": `"login";q=5;w=300`, "RateLimit": `"login";r=0;t=12`, "Retry-After": "",
	} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func testDenials(t *testing.T, b *bench) {
	retry := headgate.Retry{After: 11500 * time.Millisecond}
	for _, c := range []struct {
		kind   httpverdict.Kind
		status int
		retry  string
	}{
		{httpverdict.Limited, 429, "12"},
		{httpverdict.LockedOut, 429, "12"},
		{httpverdict.Forbidden, 403, ""},
		{httpverdict.BadRequest, 400, ""},
		{httpverdict.Unavailable, 503, "12"},
		{httpverdict.Overloaded, 503, "12"},
	} {
		t.Run(c.kind.String(), func(t *testing.T) {
			b.start(t, func(*httpverdict.Request) *httpverdict.Verdict {
				return &httpverdict.Verdict{Kind: c.kind, ID: "id-2", Code: "some_code", RetryAfter: retry, Limits: report(false)}
			}, unreached(t))
			res, body := b.do(t, http.MethodPost, "/login", "x")
			if res.StatusCode != c.status || res.Header.Get("Retry-After") != c.retry || res.Header.Get("Headgate-Id") != "id-2" {
				t.Errorf("answer %d %v, want %d, Retry-After %q, Headgate-Id id-2", res.StatusCode, res.Header, c.status, c.retry)
			}
			var problem struct {
				Status   int
				Code, ID string
			}
			if err := json.Unmarshal([]byte(body), &problem); err != nil || problem.Status != c.status || problem.Code != "some_code" || problem.ID != "id-2" {
				t.Errorf("body %s (%v)", body, err)
			}
			if got := res.Header.Get("Content-Type"); got != "application/problem+json" {
				t.Errorf("Content-Type %q", got)
			}
			if got := b.awaitDone(t); got.Status != c.status || got.Bytes != int64(len(body)) {
				t.Errorf("Done got %+v, want %d and %d bytes", got, c.status, len(body))
			}
		})
	}
}

func testDeniedHead(t *testing.T, b *bench) {
	b.start(t, func(*httpverdict.Request) *httpverdict.Verdict {
		return &httpverdict.Verdict{Kind: httpverdict.Limited, ID: "id-3", Binding: -1}
	}, unreached(t))
	res, body := b.do(t, http.MethodHead, "/", "")
	if res.StatusCode != 429 || body != "" {
		t.Errorf("answer %d with body %q, want 429 without", res.StatusCode, body)
	}
}

type demanding struct{ judge }

func (*demanding) Needs() []httpverdict.Need {
	return []httpverdict.Need{{Kind: "teleport", Rule: "far", Field: "limits[0]"}}
}

func testNeeds(t *testing.T, b *bench) {
	d := &demanding{judge{answer: allow}}
	if _, err := b.front.Start(t, Setup{Decider: d, App: http.HandlerFunc(hello), MaxHeld: 1}); err == nil {
		t.Fatal("the front accepts a policy that needs what it cannot give")
	} else if s := err.Error(); !strings.Contains(s, "far") || !strings.Contains(s, "limits[0]") || !strings.Contains(s, "teleport") {
		t.Errorf("the error %q does not name rule, field and need", s)
	}
	if _, err := b.front.Start(t, Setup{Decider: willing{d}, App: http.HandlerFunc(hello), MaxHeld: 1}); err != nil {
		t.Errorf("a policy that needs what every front gives is refused: %v", err)
	}
}

// willing needs what every front gives.
type willing struct{ *demanding }

func (willing) Needs() []httpverdict.Need {
	return []httpverdict.Need{
		{Kind: httpverdict.NeedWait, Rule: "a"}, {Kind: httpverdict.NeedRelease, Rule: "b"}, {Kind: httpverdict.NeedResult, Rule: "c"},
		{Kind: httpverdict.NeedBody, Rule: "d"}, {Kind: httpverdict.NeedMark, Rule: "e"}, {Kind: httpverdict.NeedStale, Rule: "f"},
	}
}

func (w willing) Decide(ctx context.Context, r *httpverdict.Request) *httpverdict.Verdict {
	return w.demanding.Decide(ctx, r)
}

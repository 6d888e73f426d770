package mwtest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// aging is a policy whose answers may be kept: it allows until it is told to deny. The header X-Identity says who asks.
type aging struct{ deny atomic.Bool }

func (a *aging) judge(r *httpverdict.Request) *httpverdict.Verdict {
	v := &httpverdict.Verdict{
		ID: "id-allowed", Limits: report(true), Over: r.Header.Get("X-Over"),
		Stale: &httpverdict.Stale{Identity: r.Header.Get("X-Identity"), MaxAge: time.Minute},
	}
	if a.deny.Load() {
		v.Kind, v.ID, v.Code, v.Limits, v.RetryAfter = httpverdict.Limited, "id-denied", "limited", report(false), report(false)[0].Outcome.RetryAfter
	}
	return v
}

// versions is an application whose every answer is another.
func versions(h http.Header) http.HandlerFunc {
	var n atomic.Int32
	return func(w http.ResponseWriter, r *http.Request) {
		for name, values := range h {
			w.Header()[name] = values
		}
		fmt.Fprintf(w, "%s %d", r.URL.Path, n.Add(1))
	}
}

func testStale(t *testing.T, b *bench) {
	var policy aging
	b.start(t, policy.judge, versions(http.Header{"Etag": {`"v"`}, "X-App": {"kept"}}))
	for _, want := range []string{"/a 1", "/a 2"} { // what is kept is not in the way of an allowed request
		if _, body := b.ask(t, http.MethodGet, "/a"); body != want {
			t.Errorf("allowed: %q, want %q", body, want)
		}
		b.awaitDone(t)
	}
	policy.deny.Store(true)
	for _, c := range []struct {
		name, method, path string
		fields             []string
		status             int
		body               string
	}{
		{"the same", http.MethodGet, "/a", nil, 200, "/a 2"},
		{"in another spelling", http.MethodGet, "/x/../%61", nil, 200, "/a 2"},
		{"HEAD", http.MethodHead, "/a", nil, 200, ""},
		{"a range", http.MethodGet, "/a", []string{"Range", "bytes=0-0"}, 200, "/a 2"},
		{"known already", http.MethodGet, "/a", []string{"If-None-Match", `"v"`}, 304, ""},
		{"another path", http.MethodGet, "/b", nil, 429, "*"},
		{"another query", http.MethodGet, "/a?x", nil, 429, "*"},
		{"somebody else", http.MethodGet, "/a", []string{"X-Identity", "u1"}, 429, "*"},
		{"with credentials", http.MethodGet, "/a", []string{"Authorization", "Bearer x"}, 429, "*"},
		{"POST", http.MethodPost, "/a", nil, 429, "*"},
	} {
		res, body := b.ask(t, c.method, c.path, c.fields...)
		if res.StatusCode != c.status || body != c.body && c.body != "*" {
			t.Errorf("%s: %d %q, want %d %q", c.name, res.StatusCode, body, c.status, c.body)
		}
		h := res.Header
		given := c.status != 429
		if (h.Get("Age") != "") != given || (h.Get("X-App") == "kept") != given || (h.Get("Retry-After") == "") != given ||
			strings.Contains(h.Get("Cache-Status"), "headgate; hit") != given {
			t.Errorf("%s: header %v", c.name, h)
		}
		if h.Get("Headgate-Id") != "id-denied" || h.Get("RateLimit") != `"login";r=0;t=12` {
			t.Errorf("%s: the verdict's headers are missing: %v", c.name, h)
		}
		if got := b.awaitDone(t); got.Status != c.status || given && got.Bytes != int64(len(c.body)) {
			t.Errorf("%s: Done got %+v", c.name, got)
		}
	}
}

func testNotKept(t *testing.T, b *bench) {
	for _, c := range []struct {
		name   string
		app    http.HandlerFunc
		fields []string
		status int
	}{
		{"a cookie", versions(http.Header{"Set-Cookie": {"a=b"}}), nil, 200},
		{"no-store", versions(http.Header{"Cache-Control": {"no-store"}}), nil, 200},
		{"private", versions(http.Header{"Cache-Control": {"private"}}), nil, 200},
		{"credentials", versions(nil), []string{"Authorization", "Bearer x"}, 200},
		{"a mark", versions(nil), []string{"X-Over", "v1;real"}, 200},
		{"not found", http.NotFound, nil, 404},
		{"too long", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x", 1<<20+1)) }, nil, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			var policy aging
			b.start(t, policy.judge, c.app)
			if res, _ := b.ask(t, http.MethodGet, "/", c.fields...); res.StatusCode != c.status {
				t.Errorf("allowed: %d, want %d", res.StatusCode, c.status)
			}
			policy.deny.Store(true)
			if res, body := b.ask(t, http.MethodGet, "/", c.fields...); res.StatusCode != 429 {
				t.Errorf("denied: %d %.40q", res.StatusCode, body)
			}
		})
	}
}

func testBrokenIsNotKept(t *testing.T, b *bench) {
	var policy aging
	b.start(t, policy.judge, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "9")
		io.WriteString(w, "hello")
		panic(http.ErrAbortHandler)
	})
	if res, err := b.client.Get(b.base); err == nil {
		if _, err := io.ReadAll(res.Body); err == nil && res.StatusCode == http.StatusOK {
			t.Error("half an answer is given as a whole one")
		}
		res.Body.Close()
	}
	policy.deny.Store(true)
	if res, body := b.ask(t, http.MethodGet, "/"); res.StatusCode != 429 {
		t.Errorf("denied: %d %q", res.StatusCode, body)
	}
}

func testCoalesce(t *testing.T, b *bench) {
	const clients = 50
	var policy aging
	var calls atomic.Int32
	release := make(chan struct{})
	b.start(t, policy.judge, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		<-release
		io.WriteString(w, "hello")
	})
	var all sync.WaitGroup
	var collapsed atomic.Int32
	for range clients {
		all.Go(func() {
			res, body := b.ask(t, http.MethodGet, "/")
			if res.StatusCode != 200 || body != "hello" || res.Header.Get("Headgate-Id") != "id-allowed" {
				t.Errorf("%d %q %v", res.StatusCode, body, res.Header)
			}
			if strings.Contains(res.Header.Get("Cache-Status"), "collapsed") {
				collapsed.Add(1)
			}
		})
	}
	b.until(t, "all but one wait", func() bool { return b.stale.Stats().Waiting == clients-1 })
	close(release)
	all.Wait()
	if calls.Load() != 1 || collapsed.Load() != clients-1 {
		t.Errorf("%d calls for %d clients, %d of which waited", calls.Load(), clients, collapsed.Load())
	}
	for range clients {
		if got := b.awaitDone(t); got.Status != 200 || got.Bytes != 5 {
			t.Errorf("Done got %+v", got)
		}
	}
}

// until awaits a condition that nothing announces.
func (b *bench) until(t *testing.T, what string, met func() bool) {
	t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(patience); !met(); <-look.C {
		if time.Now().After(end) {
			t.Fatalf("it never comes that %s", what)
		}
	}
}

// A stream goes on as it comes also where answers may be kept.
func testStaleStream(t *testing.T, b *bench) {
	var policy aging
	next := make(chan struct{})
	b.start(t, policy.judge, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "one\n")
		http.NewResponseController(w).Flush()
		<-next
		io.WriteString(w, "two\n")
	})
	end := sync.OnceFunc(func() { close(next) })
	defer end()
	res, err := b.client.Get(b.base)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	first := make([]byte, 4)
	if _, err := io.ReadFull(res.Body, first); err != nil || string(first) != "one\n" {
		t.Fatalf("%q %v before the rest is written", first, err)
	}
	end()
	if rest, err := io.ReadAll(res.Body); string(rest) != "two\n" || err != nil {
		t.Errorf("then %q %v", rest, err)
	}
	policy.deny.Store(true)
	if res, body := b.ask(t, http.MethodGet, "/"); res.StatusCode != 200 || body != "one\ntwo\n" {
		t.Errorf("kept: %d %q", res.StatusCode, body)
	}
}

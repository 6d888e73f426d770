package lookup_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/lookup"
)

func newHTTP(t *testing.T, cfg lookup.HTTPConfig) *lookup.HTTP {
	t.Helper()
	if cfg.Timeout == 0 { // a busy machine is no reason to give up
		cfg.Timeout = time.Minute
	}
	h := lookup.NewHTTP(cfg)
	t.Cleanup(h.Close)
	return h
}

func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	return srv
}

func TestHTTPAnswers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status      int
		body, field string
		header      map[string]string
		value       string
		found       bool
		err         string
	}{
		"text":               {status: 200, body: "vip", value: "vip", found: true},
		"text with space":    {status: 200, body: " \r\n vip  gold\n", value: "vip  gold", found: true},
		"empty":              {status: 200, body: "", value: "", found: true},
		"64 kB":              {status: 200, body: strings.Repeat("x", 64<<10), value: strings.Repeat("x", 64<<10), found: true},
		"more than 64 kB":    {status: 200, body: strings.Repeat("x", 64<<10+1), err: "the body has more than 65536 bytes"},
		"Chinese":            {status: 200, body: "大客户", value: "大客户", found: true},
		"GBK":                {status: 200, body: "\xb4\xf3\xbf\xcd\xbb\xa7", err: "the body is no UTF-8 text"},
		"encoded":            {status: 200, body: "vip", header: map[string]string{"Content-Encoding": "br"}, err: "the body is encoded"},
		"identity":           {status: 200, body: "vip", header: map[string]string{"Content-Encoding": "Identity"}, value: "vip", found: true},
		"JSON":               {status: 200, body: `{"tier":"vip"}`, field: "tier", value: "vip", found: true},
		"JSON inside":        {status: 200, body: ` { "data" : { "tier" : "vip" } } `, field: "data.tier", value: "vip", found: true},
		"JSON in a list":     {status: 200, body: `{"items":[{"tier":"a"},{"tier":"b"}]}`, field: "items.1.tier", value: "b", found: true},
		"JSON list at top":   {status: 200, body: `["a","b"]`, field: "1", value: "b", found: true},
		"JSON number":        {status: 200, body: `{"tier":3}`, field: "tier", value: "3", found: true},
		"JSON large number":  {status: 200, body: `{"id":12345678901234567890}`, field: "id", value: "12345678901234567890", found: true},
		"JSON fraction":      {status: 200, body: `{"id":-1.50e+3}`, field: "id", value: "-1.50e+3", found: true},
		"JSON true":          {status: 200, body: `{"vip":true}`, field: "vip", value: "true", found: true},
		"JSON escapes":       {status: 200, body: `{"ti\u0065r":"\u5927\u5ba2"}`, field: "tier", value: "大客", found: true},
		"JSON empty text":    {status: 200, body: `{"tier":""}`, field: "tier", value: "", found: true},
		"JSON null":          {status: 200, body: `{"tier":null}`, field: "tier"},
		"JSON null on way":   {status: 200, body: `{"data":null}`, field: "data.tier"},
		"JSON null at top":   {status: 200, body: `null`, field: "tier"},
		"JSON absent":        {status: 200, body: `{"Tier":"vip"}`, field: "tier"},
		"JSON beyond a list": {status: 200, body: `{"items":["a"]}`, field: "items.1"},
		"JSON object":        {status: 200, body: `{"tier":{}}`, field: "tier", err: `the field "tier" is an object or a list`},
		"JSON list":          {status: 200, body: `{"tier":[]}`, field: "tier", err: `the field "tier" is an object or a list`},
		"JSON in a text":     {status: 200, body: `{"a":{"b":"x"}}`, field: "a.b.c", err: `there is no field "a.b.c": "a.b" is neither an object nor a list`},
		"JSON list by name":  {status: 200, body: `[]`, field: "tier", err: `there is no field "tier": the body is a list; name a member by its number`},
		"JSON list by -1":    {status: 200, body: `["a"]`, field: "-1", err: `there is no field "-1": the body is a list`},
		"JSON list by 00":    {status: 200, body: `["a"]`, field: "00", err: `there is no field "00": the body is a list`},
		"JSON text at top":   {status: 200, body: `"vip"`, field: "tier", err: `there is no field "tier": the body is neither an object nor a list`},
		"no JSON":            {status: 200, body: `<html>`, field: "tier", err: "the body is no JSON"},
		"JSON and more":      {status: 200, body: `{"tier":"vip"}{}`, field: "tier", err: "the body is no JSON"},
		"JSON cut off":       {status: 200, body: `{"tier":"vip"`, field: "tier", err: "the body is no JSON"},
		"JSON of bytes":      {status: 200, body: "{\"tier\":\"\xff\"}", field: "tier", err: "the body is no UTF-8 text"},
		"JSON is deep":       {status: 200, body: strings.Repeat("[", 30_000) + strings.Repeat("]", 30_000), field: "0", err: "the body is no JSON"},
		"JSON of nothing":    {status: 200, body: "", field: "tier", err: "the body is no JSON"},
		"none":               {status: 404, body: "no such user", field: "tier"},
		"no content":         {status: 204},
		"created":            {status: 201, body: "vip", err: "the service answered 201"},
		"not modified":       {status: 304, err: "the service answered 304"},
		"bad request":        {status: 400, body: "vip", err: "the service answered 400"},
		"gone":               {status: 410, body: "vip", err: "the service answered 410"},
		"too many":           {status: 429, body: "vip", err: "the service answered 429"},
		"broken":             {status: 500, body: "vip", err: "the service answered 500"},
		"large header":       {status: 200, body: "vip", header: map[string]string{"X-Large": strings.Repeat("x", 64<<10)}, err: "net/http: HTTP/1.x transport connection broken: net/http: server response headers exceeded 16384 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				for name, value := range tc.header {
					w.Header().Set(name, value)
				}
				w.WriteHeader(tc.status)
				fmt.Fprint(w, tc.body)
			})
			value, found, err := newHTTP(t, lookup.HTTPConfig{}).Get(t.Context(), srv.URL+"/tier?user=u-1", tc.field)
			want := tc.err
			if want != "" {
				want = "lookup: GET " + srv.URL + ": " + want
			}
			if value != tc.value || found != tc.found || !matches(err, want) {
				t.Errorf("got %.80q, %v, %v\nwant %.80q, %v, %v", value, found, err, tc.value, tc.found, want)
			}
		})
	}
}

// TestHTTPRequest: what a service sees.
func TestHTTPRequest(t *testing.T) {
	t.Parallel()
	var last atomic.Pointer[http.Request]
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		last.Store(r)
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		fmt.Fprint(w, `{"tier":"vip"}`)
	})
	h := newHTTP(t, lookup.HTTPConfig{})
	withUser := strings.Replace(srv.URL, "http://", "http://gate:a%3Ab@", 1)
	for range 2 {
		if value, _, err := h.Get(t.Context(), withUser+"/u%2F1?q=1&q=2#part", "tier"); err != nil || value != "vip" {
			t.Fatal(value, err)
		}
	}
	seen := last.Load()
	seen.Header.Del("Authorization")
	want := http.Header{"User-Agent": {"headgate"}, "Accept": {"application/json"}}
	if fmt.Sprint(seen.Header) != fmt.Sprint(want) || seen.Method != "GET" || seen.RequestURI != "/u%2F1?q=1&q=2" {
		t.Errorf("%s %s %v", seen.Method, seen.RequestURI, seen.Header)
	}
	if _, _, err := h.Get(t.Context(), withUser, ""); err != nil {
		t.Fatal(err)
	}
	seen = last.Load()
	if user, password, ok := seen.BasicAuth(); user != "gate" || password != "a:b" || !ok || seen.RequestURI != "/" {
		t.Errorf("%q %q %v %s", user, password, ok, seen.RequestURI)
	}
}

// TestHTTPSlow: whatever part of an answer does not come, the caller leaves in time.
func TestHTTPSlow(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	slow := map[string]http.HandlerFunc{
		"/header": func(http.ResponseWriter, *http.Request) { <-hold },
		"/body":   func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "v"); w.(http.Flusher).Flush(); <-hold },
		"/redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/header", http.StatusFound)
		},
	}
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) { slow[r.URL.Path](w, r) })
	defer close(hold) // before the server is closed, which waits for its requests
	silent := silentListener(t)
	for name, tc := range map[string]struct {
		url     string
		timeout time.Duration // of the look-up; else of the context
	}{
		"header":   {url: srv.URL + "/header"},
		"body":     {url: srv.URL + "/body"},
		"redirect": {url: srv.URL + "/redirect"},
		"nothing":  {url: "http://" + silent},
		"TLS":      {url: "https://" + silent},
		"own time": {url: srv.URL + "/body", timeout: 50 * time.Millisecond},
	} {
		ctx, cancel := t.Context(), context.CancelFunc(func() {})
		if tc.timeout == 0 {
			ctx, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
			tc.timeout = time.Minute
		}
		start := time.Now()
		_, found, err := newHTTP(t, lookup.HTTPConfig{Timeout: tc.timeout}).Get(ctx, tc.url, "")
		cancel()
		if took := time.Since(start); found || !errors.Is(err, context.DeadlineExceeded) || took > 30*time.Second {
			t.Fatalf("%s: %v, %v after %s", name, found, err, took)
		}
	}
}

// silentListener takes connections and says nothing.
func silentListener(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

func TestHTTPBrokenOff(t *testing.T) {
	t.Parallel()
	srv := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "vip")
	})
	if _, found, err := newHTTP(t, lookup.HTTPConfig{}).Get(t.Context(), srv.URL, ""); found || !strings.Contains(fmt.Sprint(err), "reading the body: unexpected EOF") {
		t.Errorf("%v, %v", found, err)
	}
}

// TestHTTPBomb: a body that was compressed without being asked for is not taken apart.
func TestHTTPBomb(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(bytes.Repeat([]byte("x"), 1<<20))
	_ = z.Close()
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "" {
			t.Errorf("compression was asked for: %v", r.Header)
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	})
	if _, found, err := newHTTP(t, lookup.HTTPConfig{}).Get(t.Context(), srv.URL, ""); found || !strings.Contains(fmt.Sprint(err), "encoded") {
		t.Errorf("%v, %v", found, err)
	}
}

// TestHTTPKeepsAlive: answers of all kinds leave the connection for the next.
func TestHTTPKeepsAlive(t *testing.T) {
	t.Parallel()
	var opened atomic.Int64
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, _ := strconv.Atoi(r.URL.Path[1:])
		if status == 302 {
			w.Header().Set("Location", "/200")
		}
		w.WriteHeader(status)
		if status != 204 {
			fmt.Fprint(w, "short")
		}
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	srv.Start()
	t.Cleanup(srv.Close)
	h := newHTTP(t, lookup.HTTPConfig{})
	for range 6 {
		for _, status := range []int{200, 404, 204, 500, 302} {
			_, found, err := h.Get(t.Context(), srv.URL+"/"+strconv.Itoa(status), "")
			if found != (status == 200 || status == 302) || (err != nil) != (status == 500) {
				t.Errorf("%d: %v, %v", status, found, err)
			}
		}
	}
	// Of one kind that does not leave it there would be one more each time. net/http gives a connection up, too, if its own writer takes more
	// than 50 ms to say that it is done, which a busy machine can bring about.
	if n := opened.Load(); n > 4 {
		t.Errorf("%d connections", n)
	}
}

func TestHTTPConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int64
	started, hold := make(chan struct{}, 10), make(chan struct{})
	srv := serve(t, func(http.ResponseWriter, *http.Request) {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		started <- struct{}{}
		<-hold
	})
	h := newHTTP(t, lookup.HTTPConfig{MaxConns: 2})
	done := make(chan error, 5)
	for range 5 {
		go func() {
			_, _, err := h.Get(t.Context(), srv.URL, "")
			done <- err
		}()
	}
	<-started
	<-started
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := h.Get(ctx, srv.URL, ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one that waits for a connection: %v", err)
	}
	close(hold)
	for range 5 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := most.Load(); n != 2 {
		t.Errorf("%d connections at a time", n)
	}
}

// TestHTTPProxy: one that is configured is used, and none that is in the environment.
func TestHTTPProxy(t *testing.T) {
	var asked atomic.Pointer[string]
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) {
		line := r.Method + " " + r.RequestURI
		asked.Store(&line)
		fmt.Fprint(w, "vip")
	})
	where, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HTTP_PROXY", proxy.URL)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, found, err := newHTTP(t, lookup.HTTPConfig{}).Get(ctx, "http://tiers.invalid/u-1", ""); found || err == nil || asked.Load() != nil {
		t.Errorf("the environment's proxy was used: %v, %v", found, err)
	}
	value, found, err := newHTTP(t, lookup.HTTPConfig{Proxy: http.ProxyURL(where)}).Get(t.Context(), "http://tiers.invalid/u-1", "")
	if value != "vip" || !found || err != nil || asked.Load() == nil || *asked.Load() != "GET http://tiers.invalid/u-1" {
		t.Errorf("%q, %v, %v", value, found, err)
	}
}

func TestHTTPS(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) }))
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	trusting := srv.Client().Transport.(*http.Transport).TLSClientConfig
	if value, found, err := newHTTP(t, lookup.HTTPConfig{TLS: trusting}).Get(t.Context(), srv.URL, ""); value != "HTTP/1.1" || !found || err != nil {
		t.Errorf("%q, %v, %v", value, found, err)
	}
	if _, found, err := newHTTP(t, lookup.HTTPConfig{}).Get(t.Context(), srv.URL, ""); found || !strings.Contains(fmt.Sprint(err), "certificate") {
		t.Errorf("an authority that is not known: %v, %v", found, err)
	}
}

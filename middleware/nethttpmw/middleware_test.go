package nethttpmw

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

type decider func(*httpverdict.Request) *httpverdict.Verdict

func (d decider) Decide(_ context.Context, r *httpverdict.Request) *httpverdict.Verdict { return d(r) }

func always(v *httpverdict.Verdict) decider {
	return func(*httpverdict.Request) *httpverdict.Verdict { return v }
}

func mustNew(t testing.TB, d httpverdict.Decider, cfg Config) func(http.Handler) http.Handler {
	t.Helper()
	limit, err := New(d, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return limit
}

func TestNewRefuses(t *testing.T) {
	if _, err := New(nil, Config{}); err == nil || err.Error() != "nethttpmw: the decider is nil" {
		t.Errorf("nil decider: %v", err)
	}
	if _, err := New(always(&httpverdict.Verdict{}), Config{MaxHeld: -1}); err == nil || !strings.Contains(err.Error(), "MaxHeld") {
		t.Errorf("negative MaxHeld: %v", err)
	}
}

// Writers with every set of the optional interfaces.
type (
	bare    struct{ *httptest.ResponseRecorder }
	noFlush struct{ w *httptest.ResponseRecorder }
	canRead struct{ noFlush }
	canTake struct{ noFlush }
	flusher struct{ noFlush }
	readFl  struct{ flusher }
	takeFl  struct{ flusher }
	takeRd  struct{ canRead }
	all     struct{ readFl }
)

func (n noFlush) Header() http.Header         { return n.w.Header() }
func (n noFlush) Write(p []byte) (int, error) { return n.w.Write(p) }
func (n noFlush) WriteHeader(status int)      { n.w.WriteHeader(status) }
func (f flusher) Flush()                      { f.w.Flush() }

func (c canRead) ReadFrom(src io.Reader) (int64, error) { return io.Copy(c.w, src) }
func (r readFl) ReadFrom(src io.Reader) (int64, error)  { return io.Copy(r.w, src) }

// sink takes any answer; httptest.ResponseRecorder takes a 1xx for the final one.
type sink struct{ header http.Header }

func (s sink) Header() http.Header       { return s.header }
func (sink) Write(p []byte) (int, error) { return len(p), nil }
func (sink) WriteHeader(int)             {}

var errTaken = errors.New("taken")

func (canTake) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, errTaken }
func (takeFl) Hijack() (net.Conn, *bufio.ReadWriter, error)  { return nil, nil, errTaken }
func (takeRd) Hijack() (net.Conn, *bufio.ReadWriter, error)  { return nil, nil, errTaken }
func (all) Hijack() (net.Conn, *bufio.ReadWriter, error)     { return nil, nil, errTaken }

func TestOptionalInterfacesAreKept(t *testing.T) {
	rec := httptest.NewRecorder()
	n := noFlush{rec}
	for _, w := range []http.ResponseWriter{
		bare{rec}, n, canRead{n}, canTake{n}, flusher{n}, readFl{flusher{n}}, takeFl{flusher{n}}, takeRd{canRead{n}}, all{readFl{flusher{n}}},
	} {
		r, got := record(w)
		r.finish = &finisher{}
		if has(got) != has(w) {
			t.Errorf("%T has %s, its wrapper %s", w, has(w), has(got))
		}
		if f, ok := got.(http.Flusher); ok {
			rec.Flushed = false
			f.Flush()
			if !rec.Flushed || r.status != http.StatusOK {
				t.Errorf("%T: flushed %t, status %d", w, rec.Flushed, r.status)
			}
		}
		if f, ok := got.(io.ReaderFrom); ok {
			if n, err := f.ReadFrom(strings.NewReader("12345")); n != 5 || err != nil || r.bytes != 5 {
				t.Errorf("%T: ReadFrom %d %v, counted %d", w, n, err, r.bytes)
			}
		}
		if h, ok := got.(http.Hijacker); ok {
			if _, _, err := h.Hijack(); !errors.Is(err, errTaken) || r.finish.hijacked {
				t.Errorf("%T: Hijack %v, noted %t", w, err, r.finish.hijacked)
			}
		}
	}
}

func has(w http.ResponseWriter) string {
	_, flush := w.(http.Flusher)
	_, hijack := w.(http.Hijacker)
	_, read := w.(io.ReaderFrom)
	return fmt.Sprintf("flush %t, hijack %t, read %t", flush, hijack, read)
}

func TestInformationalStatusIsNotTheAnswer(t *testing.T) {
	var got httpverdict.Result
	v := &httpverdict.Verdict{Done: func(_ context.Context, res httpverdict.Result) { got = res }}
	h := mustNew(t, always(v), Config{})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusNotFound)
		w.WriteHeader(http.StatusOK) // superfluous
		io.WriteString(w, "gone")
	}))
	h.ServeHTTP(sink{http.Header{}}, httptest.NewRequest("GET", "/", nil))
	if want := (httpverdict.Result{Status: 404, Bytes: 4}); got.Status != want.Status || got.Bytes != want.Bytes {
		t.Errorf("Done got %+v, want %+v", got, want)
	}
}

func TestPanicGoesOnAndIsReported(t *testing.T) {
	var got []httpverdict.Result
	v := &httpverdict.Verdict{Done: func(_ context.Context, res httpverdict.Result) { got = append(got, res) }}
	h := mustNew(t, always(v), Config{})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "half")
		panic("broken")
	}))
	func() {
		defer func() {
			if p := recover(); p != "broken" {
				t.Errorf("recovered %v, want the handler's panic", p)
			}
		}()
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}()
	if want := (httpverdict.Result{Status: 200, Bytes: 4}); len(got) != 1 || got[0].Status != want.Status || got[0].Bytes != want.Bytes {
		t.Errorf("Done got %+v, want %+v once", got, want)
	}
}

// wrapped is a writer of another middleware that can only be unwrapped.
type wrapped struct{ w http.ResponseWriter }

func (w wrapped) Header() http.Header         { return w.w.Header() }
func (w wrapped) Write(p []byte) (int, error) { return w.w.Write(p) }
func (w wrapped) WriteHeader(status int)      { w.w.WriteHeader(status) }
func (w wrapped) Unwrap() http.ResponseWriter { return w.w }

// pipeTaken is a writer whose connection can be taken.
type pipeTaken struct {
	sink
	conn net.Conn
}

func (p pipeTaken) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return p.conn, bufio.NewReadWriter(bufio.NewReader(p.conn), bufio.NewWriter(p.conn)), nil
}

// A connection that is taken below another middleware's wrapper is waited for all the same, unless its handler panics.
func TestTakenConnectionIsAccountedFor(t *testing.T) {
	for _, panics := range []bool{false, true} {
		client, server := net.Pipe()
		t.Cleanup(func() { client.Close() })
		var done []httpverdict.Result
		v := &httpverdict.Verdict{Done: func(_ context.Context, res httpverdict.Result) { done = append(done, res) }}
		var taken net.Conn
		h := mustNew(t, always(v), Config{})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			var err error
			if taken, _, err = http.NewResponseController(w).Hijack(); err != nil {
				t.Fatal(err)
			}
			if panics {
				panic("broken")
			}
		}))
		func() {
			defer func() { recover() }()
			h.ServeHTTP(wrapped{pipeTaken{sink{http.Header{}}, server}}, httptest.NewRequest("GET", "/", nil))
		}()
		if panics != (len(done) == 1) {
			t.Errorf("panics %t: Done was called %d times with the connection open", panics, len(done))
		}
		taken.Close()
		if len(done) != 1 || done[0].Status != http.StatusSwitchingProtocols {
			t.Errorf("panics %t: Done got %+v, want 101 once", panics, done)
		}
	}
}

func TestHeadHasNoBytes(t *testing.T) {
	var got httpverdict.Result
	v := &httpverdict.Verdict{Done: func(_ context.Context, res httpverdict.Result) { got = res }}
	h := mustNew(t, always(v), Config{})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") }))
	h.ServeHTTP(sink{http.Header{}}, httptest.NewRequest("HEAD", "/", nil))
	if want := (httpverdict.Result{Status: 200}); got.Status != want.Status || got.Bytes != want.Bytes {
		t.Errorf("Done got %+v, want %+v", got, want)
	}
}

// Deadlines and full duplex are reached through the wrapper.
func TestControllerReachesTheServer(t *testing.T) {
	v := &httpverdict.Verdict{Done: func(context.Context, httpverdict.Result) {}}
	server := httptest.NewServer(mustNew(t, always(v), Config{})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c := http.NewResponseController(w)
		for name, err := range map[string]error{
			"SetReadDeadline":  c.SetReadDeadline(time.Now().Add(time.Minute)),
			"SetWriteDeadline": c.SetWriteDeadline(time.Now().Add(time.Minute)),
			"EnableFullDuplex": c.EnableFullDuplex(),
			"Flush":            c.Flush(),
		} {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})))
	defer server.Close()
	res, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	server.Client().CloseIdleConnections()
}

func TestRequestIsNotChanged(t *testing.T) {
	r := httptest.NewRequest("GET", "http://x/a/../b%2Fc", nil)
	var seen *http.Request
	h := mustNew(t, always(&httpverdict.Verdict{}), Config{})(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r }))
	h.ServeHTTP(httptest.NewRecorder(), r)
	if r.URL.Path != "/a/../b/c" || r.URL.RawPath != "/a/../b%2Fc" {
		t.Errorf("the caller's request became %q %q", r.URL.Path, r.URL.RawPath)
	}
	if seen.URL.Path != "/b/c" || seen.URL.RawPath != "/b%2Fc" {
		t.Errorf("the handler saw %q %q", seen.URL.Path, seen.URL.RawPath)
	}
	plain := httptest.NewRequest("GET", "http://x/%6Cogin", nil)
	h.ServeHTTP(httptest.NewRecorder(), plain)
	if seen.URL.Path != "/login" || seen.URL.RawPath != "" {
		t.Errorf("the handler saw %q %q, want /login alone", seen.URL.Path, seen.URL.RawPath)
	}
}

func TestOnVerdict(t *testing.T) {
	v := &httpverdict.Verdict{Kind: httpverdict.Limited, Binding: -1}
	var seen []*httpverdict.Verdict
	cfg := Config{OnVerdict: func(_ *http.Request, v *httpverdict.Verdict) { seen = append(seen, v) }}
	w := httptest.NewRecorder()
	mustNew(t, always(v), cfg)(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if len(seen) != 1 || seen[0] != v || w.Code != 429 {
		t.Errorf("OnVerdict got %v, status %d", seen, w.Code)
	}
}

// The middleware's own cost: the request it shows to the policy, and with Done the writer and the bounded context.
func BenchmarkMiddleware(b *testing.B) {
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for _, c := range []struct {
		name    string
		verdict *httpverdict.Verdict
	}{
		{"allow", &httpverdict.Verdict{}},
		{"allow with Done", &httpverdict.Verdict{Done: func(context.Context, httpverdict.Result) {}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			h := mustNew(b, always(c.verdict), Config{})(next)
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/shop/login", nil)
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
}

// TestSharedAnswersTellNothing holds what the suite cannot see: a policy that does not ask for the end of requests.
func TestSharedAnswersTellNothing(t *testing.T) {
	limit := mustNew(t, always(&httpverdict.Verdict{ID: "id-1", Binding: -1}), Config{})
	for what, handler := range map[string]http.HandlerFunc{
		"a body":    func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") },
		"a status":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) },
		"nothing":   func(http.ResponseWriter, *http.Request) {},
		"a flush":   func(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush() },
		"a reading": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, strings.NewReader("ok")) },
	} {
		for control, want := range map[string]string{"public": "", "private": "id-1"} {
			server := httptest.NewServer(limit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Cache-Control", control)
				handler(w, r)
			})))
			res, err := server.Client().Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			server.Close()
			if got := res.Header.Get("Headgate-Id"); got != want {
				t.Errorf("%s, %s: Headgate-Id %q, want %q", what, control, got, want)
			}
		}
	}
}

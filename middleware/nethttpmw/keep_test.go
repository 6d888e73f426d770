package nethttpmw

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/middleware/stale"
)

const patience = time.Minute

// staling is a policy whose answers are for everybody; it denies what asks for it.
func staling(r *httpverdict.Request) *httpverdict.Verdict {
	v := &httpverdict.Verdict{Binding: -1, Stale: &httpverdict.Stale{MaxAge: time.Minute}}
	if r.Header.Get("X-Deny") != "" {
		v.Kind = httpverdict.Limited
	}
	return v
}

func request(deny bool) *http.Request {
	r := httptest.NewRequest("GET", "http://shop.example/page", nil)
	if deny {
		r.Header.Set("X-Deny", "1")
	}
	return r
}

// However a handler writes its answer, the client gets it whole, and so does who is denied later.
func TestWaysOfWriting(t *testing.T) {
	long := strings.Repeat("0123456789", 200_000)
	for _, c := range []struct {
		name string
		app  http.HandlerFunc
		want string
		kept bool
	}{
		{"nothing", func(http.ResponseWriter, *http.Request) {}, "", true},
		{"status alone", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(203) }, "", true},
		{"strings", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "a"); io.WriteString(w, "b") }, "ab", true},
		{"bytes", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("ab")) }, "ab", true},
		{"copied", func(w http.ResponseWriter, _ *http.Request) { io.Copy(w, strings.NewReader("ab")) }, "ab", true},
		{"flushed", func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "a")
			w.(http.Flusher).Flush()
			io.WriteString(w, "b")
		}, "ab", true},
		{"flushed first", func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush(); io.WriteString(w, "ab") }, "ab", true},
		{"too long", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, long) }, long, false},
		{"too long in parts", func(w http.ResponseWriter, _ *http.Request) {
			for part := range 200 {
				io.WriteString(w, long[part*10_000:(part+1)*10_000])
			}
		}, long, false},
		{"too long, as it says", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "2000000")
			io.Copy(w, strings.NewReader(long))
		}, long, false},
		{"served", func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "a.txt", time.Time{}, strings.NewReader("ab"))
		}, "ab", true},
		{"header that comes too late", func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "ab")
			w.Header().Set("Set-Cookie", "late=1")
		}, "ab", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(mustNew(t, decider(staling), Config{})(c.app))
			defer server.Close()
			get := func(deny string) (*http.Response, string) {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("X-Deny", deny)
				res, err := server.Client().Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				text, err := io.ReadAll(res.Body)
				if err != nil {
					t.Fatal(err)
				}
				return res, string(text)
			}
			if res, text := get(""); text != c.want || res.Header.Get("Set-Cookie") != "" {
				t.Errorf("the first gets %d bytes and %v", len(text), res.Header)
			}
			res, text := get("1")
			if kept := res.StatusCode != 429; kept != c.kept || kept && text != c.want {
				t.Errorf("then %d %.20q, kept %t, want %t", res.StatusCode, text, kept, c.kept)
			}
		})
	}
}

// slowWriter is a client that takes nothing until it is told to.
type slowWriter struct {
	*httptest.ResponseRecorder
	takes chan struct{}
}

func (s slowWriter) Write(p []byte) (int, error) {
	<-s.takes
	return s.ResponseRecorder.Write(p)
}

// Who waits for an answer does not wait for the client that it was made for.
func TestSlowClientHoldsNobodyUp(t *testing.T) {
	cache, err := stale.New(stale.Config{Wait: patience})
	if err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int32
	h := mustNew(t, decider(staling), Config{Stale: cache})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		for range 100 {
			io.WriteString(w, strings.Repeat("x", 1000))
		}
	}))
	slow := slowWriter{httptest.NewRecorder(), make(chan struct{})}
	over := make(chan struct{})
	go func() {
		defer close(over)
		h.ServeHTTP(slow, request(false))
	}()
	for cache.Stats().Answers == 0 { // until the slow one's answer is there
		second := httptest.NewRecorder()
		if h.ServeHTTP(second, request(true)); second.Code == 200 && second.Body.Len() != 100_000 {
			t.Fatalf("%d bytes are kept", second.Body.Len())
		}
	}
	close(slow.takes)
	<-over
	if slow.Body.Len() != 100_000 || calls.Load() != 1 {
		t.Errorf("the slow client got %d bytes, the handler was called %d times", slow.Body.Len(), calls.Load())
	}
}

// A handler that stops because its client has left has not written an answer.
func TestClientThatLeavesLeavesNoAnswer(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	h := mustNew(t, decider(staling), Config{})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "half")
		leave()
		<-r.Context().Done()
	}))
	h.ServeHTTP(httptest.NewRecorder(), request(false).WithContext(ctx))
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, request(true)); w.Code != 429 {
		t.Errorf("%d %q is given", w.Code, w.Body)
	}
}

// The answers of several handlers behind one middleware are kept apart.
func TestHandlersAreKeptApart(t *testing.T) {
	limit := mustNew(t, decider(staling), Config{})
	one := limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "one") }))
	two := limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "two") }))
	one.ServeHTTP(httptest.NewRecorder(), request(false))
	w := httptest.NewRecorder()
	if two.ServeHTTP(w, request(true)); w.Code != 429 {
		t.Errorf("one handler's answer is given by another: %d %q", w.Code, w.Body)
	}
}

func TestHijackedAnswerIsNotKept(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	h := mustNew(t, decider(staling), Config{})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		conn.Close()
	}))
	h.ServeHTTP(pipeTaken{sink{http.Header{}}, server}, request(false))
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, request(true)); w.Code != 429 {
		t.Errorf("%d %q is given", w.Code, w.Body)
	}
}

var _ http.Hijacker = pipeTaken{}

// Trailers that are not announced come with the body, whoever has read it first.
func TestTrailersAfterALook(t *testing.T) {
	for _, announced := range []string{"", "Trailer: X-Sum\r\n"} {
		got := make(chan string, 1)
		look := decider(func(r *httpverdict.Request) *httpverdict.Verdict {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			if text, err := r.Body.Peek(ctx, 64); string(text) != "hello" || err != nil {
				t.Errorf("the policy saw %q %v", text, err)
			}
			return &httpverdict.Verdict{Binding: -1}
		})
		server := httptest.NewServer(mustNew(t, look, Config{})(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			early := r.Trailer.Get("X-Sum")
			text, _ := io.ReadAll(r.Body)
			got <- early + "|" + string(text) + "|" + r.Trailer.Get("X-Sum")
		})))
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\n"+announced+"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 5\r\n\r\n")
		if text := <-got; text != "|hello|5" {
			t.Errorf("announced %q: the handler got %q", announced, text)
		}
		if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
			t.Error(err)
		}
		conn.Close()
		server.Close()
	}
}

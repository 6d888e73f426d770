package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/middleware/stale"
)

// staling is a policy whose answers are for everybody; it denies what asks for it.
func staling(r *httpverdict.Request) *httpverdict.Verdict {
	v := &httpverdict.Verdict{ID: "id", Binding: -1, Stale: &httpverdict.Stale{MaxAge: time.Minute}}
	if r.Header.Get("X-Deny") != "" {
		v.Kind = httpverdict.Limited
	}
	return v
}

const (
	plainGet  = "GET /page HTTP/1.1\r\nHost: x\r\n\r\n"
	deniedGet = "GET /page HTTP/1.1\r\nHost: x\r\nX-Deny: 1\r\n\r\n"
)

func mustCache(t testing.TB, cfg stale.Config) *stale.Cache {
	t.Helper()
	c, err := stale.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// until awaits a condition that nothing announces.
func until(t testing.TB, what string, met func() bool) {
	t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(patience); !met(); <-look.C {
		if time.Now().After(end) {
			t.Fatalf("it never comes that %s", what)
		}
	}
}

func TestEmptyCacheDoesNotPierce(t *testing.T) {
	for _, protocol := range []string{"http", "h2c"} {
		const clients = 200
		var calls atomic.Int32
		release := make(chan struct{})
		service := protocolServer(t, func(w http.ResponseWriter, _ *http.Request) {
			calls.Add(1)
			<-release
			io.WriteString(w, strings.Repeat("0123456789", 5000)) // in chunks
		})
		cache := mustCache(t, stale.Config{Wait: patience})
		addr := served(t, Config{Upstream: protocol + "://" + service, Decider: decider(staling), Stale: cache}, ServerConfig{})
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				if got := see(t, addr, "GET", plainGet); got.summary() != "200" || len(got.body) != 50_000 {
					t.Errorf("%s, %d bytes", got.summary(), len(got.body))
				}
			})
		}
		until(t, "all but one wait", func() bool { return cache.Stats().Waiting == clients-1 })
		close(release)
		all.Wait()
		if n := calls.Load(); n != 1 {
			t.Errorf("%s: %d calls for %d clients", protocol, n, clients)
		}
	}
}

// A client that reads nothing leads the crowd; the others have its answer all the same.
func TestSlowLeaderHoldsNobodyUp(t *testing.T) {
	var calls atomic.Int32
	body := strings.Repeat("0123456789", 100_000) // more than what connections take without a reader, over HTTP/2
	service := upstreamServer(t, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		io.WriteString(w, body)
	})
	cache := mustCache(t, stale.Config{Wait: patience})
	addr := served(t, Config{Upstream: service, Decider: decider(staling), Stale: cache}, ServerConfig{})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/page", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "x"
	res, err := client(t, h2c).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	until(t, "the answer is kept", func() bool { return cache.Stats().Answers == 1 })
	if got := see(t, addr, "GET", deniedGet); got.summary() != "200" || got.body != body {
		t.Errorf("%s, %d bytes", got.summary(), len(got.body))
	}
	if text, err := io.ReadAll(res.Body); string(text) != body || err != nil || calls.Load() != 1 {
		t.Errorf("the slow one gets %d bytes %v after %d calls", len(text), err, calls.Load())
	}
}

// What is not whole, has trailers or fails is not kept, whoever leads.
func TestGatewayKeepsWholeAnswersOnly(t *testing.T) {
	for name, answer := range map[string]string{
		"cut":            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
		"a cut chunk":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"trailers":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 5\r\n\r\n",
		"nothing":        "",
		"no length":      "HTTP/1.1 200 OK\r\n\r\nhello",
		"no end":         "HTTP/1.0 200 OK\r\n\r\nhel",
		"503":            "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\nno",
		"a part of it":   "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-1/5\r\nContent-Length: 2\r\n\r\nhe",
		"a hidden range": "HTTP/1.1 200 OK\r\nContent-Range: bytes 0-1/5\r\nContent-Length: 2\r\n\r\nhe",
	} {
		t.Run(name, func(t *testing.T) {
			service := fakeService(t, func(conn net.Conn) {
				for in := bufio.NewReader(conn); ; {
					if _, err := http.ReadRequest(in); err != nil {
						return
					}
					io.WriteString(conn, answer)
					if name != "trailers" {
						return
					}
				}
			})
			cache := mustCache(t, stale.Config{})
			addr := served(t, Config{Upstream: service, Decider: decider(staling), Stale: cache}, ServerConfig{})
			see(t, addr, "GET", plainGet)
			if got := see(t, addr, "GET", deniedGet); got.summary() != "429" {
				t.Errorf("denied: %s %q", got.summary(), got.body)
			}
			if s := cache.Stats(); s != (stale.Stats{}) {
				t.Errorf("stats %+v", s)
			}
		})
	}
}

// A request that finds no place at the service gets the old answer too.
func TestOverloadIsAnsweredWithWhatIsKept(t *testing.T) {
	entered, release := make(chan struct{}, 1), make(chan struct{})
	service := upstreamServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			entered <- struct{}{}
			<-release
		}
		fmt.Fprint(w, "kept")
	})
	addr := served(t, Config{Upstream: service, Decider: decider(staling), MaxConcurrent: 1}, ServerConfig{})
	see(t, addr, "GET", plainGet)
	done := make(chan struct{})
	go func() {
		defer close(done)
		see(t, addr, "GET", "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
	}()
	<-entered
	if got := see(t, addr, "GET", plainGet); got.summary() != "200" || got.body != "kept" {
		t.Errorf("%s %q", got.summary(), got.body)
	}
	if got := see(t, addr, "GET", "GET /other HTTP/1.1\r\nHost: x\r\n\r\n"); got.summary() != "503" {
		t.Errorf("without one: %s %q", got.summary(), got.body)
	}
	close(release)
	<-done
}

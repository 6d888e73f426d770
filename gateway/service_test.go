package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// A service that is slow has the request; it must not get it a second time.
func TestSlowServiceIsNotAskedTwice(t *testing.T) {
	var requests atomic.Int32
	service := fakeService(t, func(conn net.Conn) {
		for in := bufio.NewReader(conn); ; {
			if _, err := http.ReadRequest(in); err != nil {
				return
			}
			if requests.Add(1) == 1 {
				io.WriteString(conn, whole)
			}
		}
	})
	g, addr := gatewayOf(t, Config{Upstream: service, ResponseTimeout: patience})
	for i, want := range []string{"200", "504"} {
		if got := see(t, addr, "GET", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); got.summary() != want {
			t.Errorf("answer %d is %s, want %s", i, got.summary(), want)
		}
		g.answersWithin(briefly)
	}
	if n := requests.Load(); n != 2 {
		t.Errorf("the service got %d requests, want 2", n)
	}
}

// The service closes kept connections at any time, also just as a request comes. None that may change something is sent twice.
func TestPostIsNeverSentTwice(t *testing.T) {
	var mu sync.Mutex
	got := map[string]int{}
	closed := 0 // connections closed between requests, without a word
	service := fakeService(t, func(conn net.Conn) {
		for in := bufio.NewReader(conn); ; {
			req, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			mu.Lock()
			got[req.URL.Path]++
			mu.Unlock()
			if rand.IntN(8) == 0 {
				return // without an answer
			}
			io.Copy(io.Discard, req.Body)
			shut := rand.IntN(3) == 0
			if shut {
				// Counted before the answer, since the client may count as
				// soon as it has the last one.
				mu.Lock()
				closed++
				mu.Unlock()
			}
			io.WriteString(conn, whole)
			if shut {
				return
			}
		}
	})
	// Five bad ends in a row are likely among so many: the service is not to be ejected for them.
	addr := served(t, Config{Upstream: service, Ejection: Ejection{Off: true}}, ServerConfig{})
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			for j := range 100 {
				body := strings.Repeat("x", j%2)
				see(t, addr, "POST", fmt.Sprintf("POST /%d-%d HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", i, j, len(body), body))
			}
		})
	}
	clients.Wait()
	mu.Lock()
	defer mu.Unlock()
	// A connection that was closed while it lay idle can cost one request and
	// no more; how often it does depends on who is quicker.
	if len(got)+closed < 800 {
		t.Errorf("%d of 800 requests reached the service, and %d connections were closed on it", len(got), closed)
	}
	for path, n := range got {
		if n > 1 {
			t.Errorf("%s was sent %d times", path, n)
		}
	}
}

// A service that refuses a body may take what comes next for it, so nothing comes next.
func TestRefusedBodyEndsTheConnection(t *testing.T) {
	var connections atomic.Int32
	service := fakeService(t, func(conn net.Conn) {
		connections.Add(1)
		for in := bufio.NewReader(conn); ; {
			if _, err := http.ReadRequest(in); err != nil {
				return
			}
			io.WriteString(conn, "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n")
		}
	})
	addr := served(t, Config{Upstream: service}, ServerConfig{})
	for range 3 {
		if got := see(t, addr, "POST", "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"); got.summary() != "417" {
			t.Errorf("answer %s", got)
		}
	}
	if n := connections.Load(); n != 3 {
		t.Errorf("3 refused bodies on %d connections", n)
	}
}

// The service says no and closes with most of the body unread, which resets the connection. Whether its answer or the reset
// is seen first is a matter of luck; the client gets an answer in either case.
func TestAnswerBeforeAReset(t *testing.T) {
	service := fakeService(t, func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReaderSize(conn, 16)); err == nil {
			io.WriteString(conn, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno")
		}
	})
	addr := served(t, Config{Upstream: service}, ServerConfig{})
	for range 10 {
		conn := dialGateway(t, addr)
		go func() {
			fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", 8<<20)
			io.Copy(conn, &zeros{8 << 20})
		}()
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || res.StatusCode != http.StatusRequestEntityTooLarge && res.StatusCode != http.StatusBadGateway {
			t.Fatalf("answer %v %v, want 413 or 502", res, err)
		}
		conn.Close()
	}
}

// Whatever a client is about when it leaves, its request ends: at the service, and in the policy's books, once.
func TestClientLeavesAtAnyTime(t *testing.T) {
	get, post := "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nx"
	for _, c := range []struct{ name, request, answer string }{
		{"connecting", get, ""},
		{"before the answer", get, ""},
		{"in the header", get, "HTTP/1.1 200 OK\r\n"},
		{"in the body", get, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"},
		{"in a chunk", get, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhello"},
		{"while it sends", post, ""},
		{"while it sends, answered", post, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"},
		{"while it sends chunks", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", ""},
		{"while it waits for 100", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n", ""},
		{"told to send", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			reached, ended := make(chan struct{}, 1), make(chan struct{}, 1)
			service := fakeService(t, func(conn net.Conn) {
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
					return
				}
				io.WriteString(conn, c.answer)
				reached <- struct{}{}
				io.Copy(io.Discard, conn)
				ended <- struct{}{}
			})
			done := make(chan httpverdict.Result, 2)
			g, err := New(Config{Upstream: service, Decider: decider(func(*httpverdict.Request) *httpverdict.Verdict {
				return &httpverdict.Verdict{Binding: -1, Done: func(_ context.Context, res httpverdict.Result) { done <- res }}
			})})
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			if c.name == "connecting" {
				dialled := make(chan struct{})
				defer close(dialled)
				g.pool.all[0].lanes.first().DialContext = func(context.Context, string, string) (net.Conn, error) {
					reached <- struct{}{}
					ended <- struct{}{}
					<-dialled // it goes on: the connection may serve another request
					return nil, net.ErrClosed
				}
			}
			addr, stop := runServer(t, ServerConfig{Handler: g})
			conn := dialGateway(t, addr)
			io.WriteString(conn, c.request)
			<-reached
			conn.SetLinger(0)
			conn.Close()
			<-ended
			<-done
			if err := stop(); err != nil {
				t.Error(err)
			}
			if s := g.Stats(); s.InFlight+s.Tunnels+s.Held+s.Upstreams[0].InFlight != 0 || s.Upstreams[0].Failures != 0 || len(done) != 0 {
				t.Errorf("stats %+v, Done %d times more", s, len(done))
			}
		})
	}
}

func TestHandshakes(t *testing.T) {
	const ask = "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
	for _, c := range []struct{ name, answer, want string }{
		{"agreed", "HTTP/1.1 101 Switching Protocols\r\nConnection: keep-alive, upgrade\r\nUpgrade: WebSocket\r\nContent-Length: 3\r\n\r\n", "101"},
		{"no Connection", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n", "502"},
		{"no Upgrade", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\n", "502"},
		{"another protocol", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", "502"},
		{"two protocols", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket, h2c\r\n\r\n", "502"},
		{"two Upgrades", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n\r\n", "502"},
		{"refused", "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno", "403"},
		{"ignored", whole, "200"},
		{"cut", "HTTP/1.1 101 Switching Protocols\r\nConnection: Up", "502"},
	} {
		for _, protocol := range []string{"http", "h2c"} { // a websocket begins in HTTP/1.1 there too
			t.Run(c.name+", "+protocol, func(t *testing.T) {
				service := fakeService(t, func(conn net.Conn) {
					if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
						io.WriteString(conn, c.answer)
					}
				})
				conn := dialGateway(t, served(t, Config{Upstream: protocol + strings.TrimPrefix(service, "http")}, ServerConfig{}))
				io.WriteString(conn, ask)
				res, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatal(err)
				}
				if got := fmt.Sprint(res.StatusCode); got != c.want {
					t.Errorf("answer %s, want %s", got, c.want)
				}
				if c.want == "101" && (res.Header.Get("Content-Length") != "" || res.Header.Get("Upgrade") != "websocket") {
					t.Errorf("101 with %v", res.Header)
				}
			})
		}
	}
}

func TestIdleConnectionsAreBounded(t *testing.T) {
	const most, clients = 2, 8
	gate := make(chan chan struct{})
	closed := make(chan struct{}, 2*clients)
	service := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-<-gate }))
	service.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	service.Start()
	t.Cleanup(service.Close)
	g, err := New(Config{Upstream: service.URL, Decider: decider(allowAll), MaxIdleConns: most})
	if err != nil {
		t.Fatal(err)
	}
	addr, _ := runServer(t, ServerConfig{Handler: g})
	ask := func() (finish func()) {
		release := make(chan struct{})
		var asked sync.WaitGroup
		for range clients {
			asked.Go(func() { see(t, addr, "GET", "GET / HTTP/1.1\r\nHost: x\r\n\r\n") })
			gate <- release
		}
		return func() {
			close(release)
			asked.Wait()
		}
	}
	ask()()
	for range clients - most { // the rest would be closed after a minute only
		<-closed
	}
	finish := ask() // on what was kept, and on new connections
	if n := len(closed); n != 0 {
		t.Errorf("%d connections more than needed were closed", n)
	}
	g.Close() // with requests under way
	finish()
	for range clients {
		<-closed
	}
}

// A client that speaks HTTP/1.0 knows the end of an answer by the end of the connection; a cut one must end in another way.
func TestCutAnswerOfHTTP10(t *testing.T) {
	service := fakeService(t, func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
		}
	})
	conn := dialGateway(t, served(t, Config{Upstream: service}, ServerConfig{}))
	io.WriteString(conn, "GET / HTTP/1.0\r\nHost: x\r\n\r\n")
	if all, err := io.ReadAll(conn); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read %q %v, want a reset", all, err)
	}
}

// The header of an answer is not held back by a chunk that has only begun.
func TestHeaderComesBeforeAChunk(t *testing.T) {
	for _, begun := range []string{"", "f", "f\r\n", "f\r\nabc", "f;x=\"\r\nabc", "0\r\n"} {
		hold := make(chan struct{})
		service := fakeService(t, func(conn net.Conn) {
			if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"+begun)
				<-hold
			}
		})
		conn := dialGateway(t, served(t, Config{Upstream: service}, ServerConfig{}))
		io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		conn.SetReadDeadline(time.Now().Add(patience))
		if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || res.StatusCode != 200 {
			t.Errorf("after %q: %v %v", begun, res, err)
		}
		close(hold)
	}
}

func TestLongBodyIsRefusedBeforeItIsForwarded(t *testing.T) {
	addr := served(t, Config{Upstream: "http://" + testservers.UnusedAddr(t), MaxRequestBody: 10}, ServerConfig{})
	conn := dialGateway(t, addr)
	io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n")
	if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || res.StatusCode != 413 || !res.Close {
		t.Errorf("answer %v %v, want 413 and the end", res, err)
	}
}

package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// soon ends ejections early enough for a test that awaits it.
var soon = Ejection{For: 20 * time.Millisecond, Most: 20 * time.Millisecond}

// gatewayOf starts a gateway and returns it with its address.
func gatewayOf(t testing.TB, cfg Config) (*Gateway, string) {
	t.Helper()
	if cfg.Decider == nil {
		cfg.Decider = decider(allowAll)
	}
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	addr, _ := runServer(t, ServerConfig{Handler: g})
	return g, addr
}

// hurry ends all ejections.
func (p *pool) hurry() {
	p.changes.Lock()
	defer p.changes.Unlock()
	for _, u := range p.all {
		u.timer.Reset(0)
	}
}

const plainPost = "POST /order HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"

// An upstream that fails in any way is ejected: then it is left alone, and clients know at once. It comes back by itself.
func TestFailingUpstreamIsEjectedAndComesBack(t *testing.T) {
	silent := func(conn net.Conn, _ *http.Request) { io.Copy(io.Discard, conn) }
	for _, c := range []struct {
		name    string
		timeout time.Duration
		fail    func(net.Conn, *http.Request)
		shown   string
		n       int // requests until it is ejected
	}{
		{"breaks before an answer", patience, func(net.Conn, *http.Request) {}, "502", 5},
		{"is no HTTP", patience, func(c net.Conn, _ *http.Request) { io.WriteString(c, "SSH-2.0\r\n") }, "502", 5},
		{"hangs", briefly, silent, "504", 5},
		{"hangs in the header", briefly, func(c net.Conn, r *http.Request) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nX:")
			silent(c, r)
		}, "504", 5},
		{"breaks off its answer", patience, func(c net.Conn, _ *http.Request) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhel")
		}, "cut", 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			var well atomic.Bool
			var requests atomic.Int32
			service := fakeService(t, func(conn net.Conn) {
				for in := bufio.NewReader(conn); ; {
					req, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					requests.Add(1)
					if !well.Load() {
						c.fail(conn, req)
						return
					}
					io.WriteString(conn, whole)
				}
			})
			rules := Ejection{For: time.Hour, Most: time.Hour}
			log := new(lockedBuffer)
			g, addr := gatewayOf(t, Config{Upstream: service, ResponseTimeout: c.timeout, Ejection: rules, Logger: jsonLog(log)})
			for range c.n {
				if got := see(t, addr, "GET", plainGet); got.summary() != c.shown {
					t.Fatalf("before: %s, want %s", got, c.shown)
				}
			}
			until(t, "it is ejected", func() bool { return g.Stats().Upstreams[0].Ejected }) // the client may have its answer a moment before
			for range 20 {
				got := see(t, addr, "GET", plainGet)
				if got.summary() != "503" || !strings.Contains(got.body, `"upstream_unavailable"`) || got.header.Get("Retry-After") == "" {
					t.Fatalf("while ejected: %s %v", got, got.header)
				}
			}
			if n := requests.Load(); n != int32(c.n) {
				t.Errorf("the service got %d requests, want %d", n, c.n)
			}
			if st := g.Stats().Upstreams[0]; st.Failures != uint64(c.n) || st.InFlight != 0 || st.Upstream != service || !strings.Contains(log.String(), "an upstream is ejected") {
				t.Errorf("%+v, log %s", st, log)
			}
			well.Store(true)
			g.pool.hurry()
			until(t, "it is back", func() bool { return see(t, addr, "GET", plainGet).summary() == "200" })
			if st := g.Stats().Upstreams[0]; st.Ejected || !strings.Contains(log.String(), "an upstream is back") {
				t.Errorf("%+v, log %s", st, log)
			}
		})
	}
}

func TestRefusingUpstreamIsEjectedAndComesBack(t *testing.T) {
	addr := testservers.UnusedAddr(t)
	var changes lockedBuffer
	g, front := gatewayOf(t, Config{Upstream: "http://" + addr, Ejection: soon, UpstreamChanged: func(upstream string, ejected bool, why string) {
		fmt.Fprintln(&changes, upstream, ejected, why)
	}})
	until(t, "it is ejected", func() bool { return see(t, front, "GET", plainGet).summary() == "503" })
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	service := http.Server{Handler: http.NotFoundHandler()}
	go service.Serve(l)
	defer service.Close()
	until(t, "it is back", func() bool { return see(t, front, "GET", plainGet).summary() == "404" })
	if st := g.Stats().Upstreams[0]; st.Ejected {
		t.Errorf("%+v", st)
	}
	text := changes.String()
	if !strings.HasPrefix(text, "http://"+addr+" true 5 failures in a row, the last: dial tcp") || !strings.Contains(text, "false a request on trial was answered") {
		t.Errorf("told %s", text)
	}
}

// first has the first of two upstreams drawn first.
func first() float64 { return 0 }

// A request whose connection cannot be made goes to another upstream, whole and once.
func TestDialFailureMovesOn(t *testing.T) {
	for _, c := range []struct {
		name  string
		decks func(*testing.T) (dead string, cfg Config)
	}{
		{"refused", func(t *testing.T) (string, Config) { return "http://" + testservers.UnusedAddr(t), Config{} }},
		{"refused, h2c", func(t *testing.T) (string, Config) { return "h2c://" + testservers.UnusedAddr(t), Config{} }},
		{"no certificate that is trusted", func(t *testing.T) (string, Config) {
			addr, _ := tlsServer(t, func(http.ResponseWriter, *http.Request) { t.Error("the service has it") })
			return "https://" + addr, Config{}
		}},
		{"no TLS at all", func(t *testing.T) (string, Config) {
			return "https" + fakeService(t, func(conn net.Conn) { io.WriteString(conn, "HTTP/1.0 400 Bad Request\r\n\r\n") })[len("http"):], Config{}
		}},
		{"a policy that has read the body", func(t *testing.T) (string, Config) {
			return "http://" + testservers.UnusedAddr(t), Config{Decider: decider(func(r *httpverdict.Request) *httpverdict.Verdict {
				if body, err := r.Body.Peek(context.Background(), 3); err == nil {
					t.Errorf("peeked %q", body)
				}
				return allowAll(r)
			})}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got atomic.Int32
			live := upstreamServer(t, func(w http.ResponseWriter, r *http.Request) {
				got.Add(1)
				io.Copy(w, r.Body)
			})
			dead, cfg := c.decks(t)
			events := make(chan string, 100)
			cfg.Upstreams, cfg.Random, cfg.Ejection.Off = []string{dead, live}, first, true
			cfg.Observe = func(e *Event) { events <- e.ServedBy }
			g, addr := gatewayOf(t, cfg)
			for range 10 {
				if s := see(t, addr, "POST", plainPost); s.summary() != "200" || s.body != "hello" {
					t.Errorf("%s", s)
				}
				if by := <-events; by != live {
					t.Errorf("served by %s, want %s", by, live)
				}
			}
			st := g.Stats().Upstreams
			if got.Load() != 10 || st[0].Failures != 10 || st[1].Requests != 10 {
				t.Errorf("the live one got %d; %+v", got.Load(), st)
			}
		})
	}
}

// What may have been sent is never sent to another.
func TestSentRequestDoesNotMove(t *testing.T) {
	for _, protocol := range []string{"http", "h2c"} {
		var broken, live atomic.Int32
		breaking := protocolServer(t, func(http.ResponseWriter, *http.Request) {
			broken.Add(1)
			panic(http.ErrAbortHandler)
		})
		other := protocolServer(t, func(http.ResponseWriter, *http.Request) { live.Add(1) })
		_, addr := gatewayOf(t, Config{Upstreams: []string{protocol + "://" + breaking, protocol + "://" + other}, Random: first, Ejection: Ejection{Off: true}})
		for _, request := range []string{plainPost, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", plainGet} {
			broken.Store(0)
			if s := see(t, addr, "POST", request); s.summary() != "502" || broken.Load() != 1 || live.Load() != 0 {
				t.Errorf("%s: %s; the first got it %d times, the other %d", protocol, s, broken.Load(), live.Load())
			}
		}
	}
}

// It does not go to the same one again, though that has fewer requests.
func TestMoveGoesToAnother(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	live := upstreamServer(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hang" {
			<-release
		}
	})
	g, addr := gatewayOf(t, Config{Upstreams: []string{"http://" + testservers.UnusedAddr(t), live}, Random: first, Ejection: Ejection{Off: true}})
	for n := 1; n <= 3; n++ {
		io.WriteString(dialGateway(t, addr), getWith("/hang", ""))
		until(t, "it hangs", func() bool { return g.Stats().Upstreams[1].InFlight == n })
	}
	if got := see(t, addr, "GET", plainGet); got.summary() != "200" {
		t.Errorf("%s %s", got.summary(), got.body)
	}
}

// Two upstreams that cannot be connected to are not tried in a circle.
func TestAtMostOneMove(t *testing.T) {
	g, addr := gatewayOf(t, Config{Upstreams: []string{"http://" + testservers.UnusedAddr(t), "http://" + testservers.UnusedAddr(t), "http://" + testservers.UnusedAddr(t)}, Random: first})
	if s := see(t, addr, "POST", plainPost); s.summary() != "502" || !strings.Contains(s.body, "upstream_unreachable") {
		t.Errorf("%s", s)
	}
	st := g.Stats().Upstreams
	if n := st[0].Requests + st[1].Requests + st[2].Requests; n != 2 {
		t.Errorf("%d attempts, want 2", n)
	}
}

// One of three dies under load: nobody but those who were at it notices.
func TestOneOfThreeDies(t *testing.T) {
	const clients = 32
	var all int32 = 10_000
	if underRace {
		all = 2_000
	}
	var urls []string
	dying, dead := make(chan struct{}), make(chan struct{})
	var reached atomic.Int32
	var die func()
	for i := range 3 {
		conns := newConnSet()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		service := &http.Server{ConnState: conns.note, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if i == 0 && reached.Add(1) == all/10 {
				close(dying)
				<-dead // this one is at it for certain
			}
			io.Copy(io.Discard, r.Body)
			io.WriteString(w, "hello")
		})}
		go service.Serve(l)
		t.Cleanup(func() { service.Close() })
		urls = append(urls, "http://"+l.Addr().String())
		if i == 0 {
			die = func() { l.Close(); conns.cut() }
		}
	}
	var failures sync.Map
	g, addr := gatewayOf(t, Config{Upstreams: urls, Observe: func(e *Event) {
		if e.Status != http.StatusOK {
			failures.Store(e.Request, e.ServedBy)
		}
	}})
	go func() {
		<-dying
		die()
		close(dead)
	}()
	var left, wrong atomic.Int32
	left.Store(all)
	var crowd sync.WaitGroup
	for range clients {
		crowd.Go(func() {
			var conn net.Conn
			var in *bufio.Reader
			for left.Add(-1) >= 0 {
				if conn == nil {
					conn = dialGateway(t, addr)
					conn.SetDeadline(time.Now().Add(6 * patience))
					in = bufio.NewReader(conn)
				}
				io.WriteString(conn, plainPost)
				res, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Error(err)
					return
				}
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
				if res.StatusCode != http.StatusOK {
					wrong.Add(1)
				}
				if res.Close { // the gateway has not read the whole body
					conn = nil
				}
			}
		})
	}
	crowd.Wait()
	failures.Range(func(_, by any) bool {
		if by != urls[0] {
			t.Errorf("one that was at %s has failed", by)
		}
		return true
	})
	st := g.Stats().Upstreams
	t.Logf("%d of %d failed; %+v", wrong.Load(), all, st)
	if n := wrong.Load(); n == 0 || n > clients {
		t.Errorf("%d failed, want 1 to %d, those that were at it", n, clients)
	}
	if !st[0].Ejected || st[1].Ejected || st[2].Ejected || min(st[1].Requests, st[2].Requests) < uint64(all)/4 {
		t.Errorf("%+v", st)
	}
}

// connSet cuts the connections of a server, as the end of its process does.
type connSet struct {
	mu    sync.Mutex
	conns map[net.Conn]bool
}

func newConnSet() *connSet { return &connSet{conns: make(map[net.Conn]bool)} }

func (s *connSet) note(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = state != http.StateClosed
}

func (s *connSet) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
}

// What a client can bring about is no failure of the service.
func TestClientsCannotEject(t *testing.T) {
	service := fakeService(t, func(conn net.Conn) { // refuses every body and closes, as services do
		req, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			return
		}
		if req.Method == http.MethodPost {
			io.WriteString(conn, "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
			conn.(*net.TCPConn).SetLinger(0)
			return
		}
		io.Copy(io.Discard, conn) // until the client leaves
	})
	over := make(chan int, 100)
	g, addr := gatewayOf(t, Config{Upstream: service, Stall: briefly, Observe: func(e *Event) { over <- e.Status }, Ejection: Ejection{Consecutive: 1}})
	for range 5 {
		conn := dialGateway(t, addr) // leaves
		io.WriteString(conn, plainGet)
		until(t, "it is there", func() bool { return g.Stats().InFlight == 1 })
		conn.Close()
		<-over
	}
	for range 3 {
		see(t, addr, "POST", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhel") // too slow
		<-over
		conn := dialGateway(t, addr) // a large body into a closed connection
		go io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n"+strings.Repeat("x", 8_000_000))
		<-over
		conn.Close()
	}
	if st := g.Stats().Upstreams[0]; st.Ejected || st.Failures != 0 {
		t.Errorf("%+v", st)
	}
}

package gateway

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
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// h2cServer is a service that speaks HTTP/2 alone.
func h2cServer(t *testing.T, prepare func(*http.Server), h http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	prepare(server.Config)
	server.Start()
	t.Cleanup(server.Close)
	return "h2c://" + server.Listener.Addr().String()
}

// What is refused before it is sent says nothing of the upstream: a header that is larger than an upstream of HTTP/2 takes, or a trailer
// that has no name.
func TestUnsendableRequestsDoNotEject(t *testing.T) {
	service := h2cServer(t, func(s *http.Server) { s.MaxHeaderBytes = 4 << 10 }, func(http.ResponseWriter, *http.Request) {})
	looks := decider(func(r *httpverdict.Request) *httpverdict.Verdict {
		if r.Body != nil {
			r.Body.Peek(context.Background(), 100)
		}
		return allowAll(r)
	})
	g, addr := gatewayOf(t, Config{Upstream: service, Decider: looks, Ejection: Ejection{Consecutive: 1}})
	for _, c := range []struct{ request, want, code string }{
		{plainGet, "200", ""},
		{"GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 20<<10) + "\r\n\r\n", "431", "header_too_large"},
		{"POST / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 20<<10) + "\r\nContent-Length: 1\r\n\r\nx", "431", "header_too_large"},
		{"POST / HTTP/1.1\r\nHost: x\r\nTrailer: a b\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", "400", "malformed_request"},
	} {
		if got := see(t, addr, "GET", c.request); got.summary() != c.want || !strings.Contains(got.body, c.code) {
			t.Errorf("%.60q: %s %s, want %s %s", c.request, got.summary(), got.body, c.want, c.code)
		}
		until(t, "it is over", func() bool { return g.Stats().InFlight == 0 })
		if st := g.Stats().Upstreams[0]; st.Ejected || st.Failures != 0 {
			t.Errorf("%.60q: %+v", c.request, st)
		}
	}
}

// A connection of HTTP/2 that is lost takes all its requests with it, but is one failure: a client that sends and leaves often enough
// can have a service close the connection that it shares with others.
func TestOneLostConnectionIsOneFailure(t *testing.T) {
	var there sync.WaitGroup
	conns := newConnSet()
	service := h2cServer(t, func(s *http.Server) { s.ConnState = conns.note }, func(_ http.ResponseWriter, r *http.Request) {
		there.Done()
		<-r.Context().Done()
	})
	g, addr := gatewayOf(t, Config{Upstream: service, Ejection: Ejection{Consecutive: 3}})
	for lost := 1; lost <= 3; lost++ {
		var all sync.WaitGroup
		there.Add(laneStreams)
		for range laneStreams {
			all.Go(func() {
				if got := see(t, addr, "GET", plainGet); got.summary() != "502" {
					t.Error(got.summary())
				}
			})
		}
		there.Wait()
		conns.cut()
		all.Wait()
		until(t, "all are over", func() bool { return g.Stats().InFlight == 0 })
		if st := g.Stats().Upstreams[0]; st.Ejected != (lost == 3) || st.Failures != uint64(lost*laneStreams) {
			t.Errorf("after %d lost connections: %+v", lost, st)
		}
	}
}

// Many requests at a time are spread over connections of the same kind.
func TestManyRequestsOverHTTP2(t *testing.T) {
	const requests = 3*laneStreams + 1
	var there sync.WaitGroup
	there.Add(requests)
	handler := func(w http.ResponseWriter, r *http.Request) {
		there.Done()
		there.Wait() // all at a time
		io.WriteString(w, r.Proto)
	}
	overTLS, trusted := tlsServer(t, handler)
	for name, cfg := range map[string]Config{"h2c": {Upstream: h2cServer(t, func(*http.Server) {}, handler)}, "https": {Upstream: "https://" + overTLS, UpstreamTLS: trusted}} {
		there = sync.WaitGroup{}
		there.Add(requests)
		g, addr := gatewayOf(t, cfg)
		var all sync.WaitGroup
		for range requests {
			all.Go(func() {
				if got := see(t, addr, "GET", plainGet); got.summary() != "200" || got.body != "HTTP/2.0" {
					t.Errorf("%s: %s %s", name, got.summary(), got.body)
				}
			})
		}
		all.Wait()
		until(t, "all are over", func() bool { return g.Stats().InFlight == 0 })
		lanes := g.pool.all[0].lanes
		lanes.mu.Lock()
		for i, one := range lanes.all {
			if one.requests != 0 {
				t.Errorf("%s: lane %d has %d requests", name, i, one.requests)
			}
		}
		if len(lanes.all) != 4 {
			t.Errorf("%s: %d lanes", name, len(lanes.all))
		}
		lanes.mu.Unlock()
	}
}

// Clients that take nothing of their large answers do not hold up the answers of others on the same connection.
func TestSlowClientsHoldUpNobody(t *testing.T) {
	var written atomic.Int64
	piece := make([]byte, 64<<10)
	service := h2cServer(t, func(*http.Server) {}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/small" {
			w.Write(piece)
			return
		}
		for range 512 {
			if _, err := w.Write(piece); err != nil {
				return
			}
			written.Add(1)
		}
	})
	g, addr := gatewayOf(t, Config{Upstream: service})
	for range laneStreams - 1 {
		conn := dialGateway(t, addr)
		conn.SetReadBuffer(1)
		io.WriteString(conn, getWith("/large", ""))
		bufio.NewReaderSize(conn, 16).ReadByte()
	}
	last, since := int64(-1), time.Now()
	until(t, "all windows are full", func() bool {
		if now := written.Load(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > 200*time.Millisecond
	})
	if got := see(t, addr, "GET", getWith("/small", "")); got.summary() != "200" || len(got.body) != len(piece) {
		t.Errorf("%s with %d bytes", got.summary(), len(got.body))
	}
	if n := len(g.pool.all[0].lanes.all); n != 1 {
		t.Errorf("%d lanes: the small answer had a connection of its own", n)
	}
}

// Clients that send their bodies slowly take no place within the adaptive limit from others.
func TestSlowUploadsTakeNoPlace(t *testing.T) {
	release := make(chan struct{})
	var bodies atomic.Int32
	service := upstreamServer(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			io.Copy(io.Discard, r.Body)
			bodies.Add(1)
			<-release
		}
	})
	g, addr := gatewayOf(t, Config{Upstream: service, Adaptive: &Adaptive{Initial: 2, Least: 2, Most: 2}})
	places := func() int {
		l := g.pool.all[0].limiter
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.inflight
	}
	var uploads []*net.TCPConn
	for range 4 {
		until(t, "there is a place", func() bool { return places() < 2 })
		conn := dialGateway(t, addr)
		io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nh")
		uploads = append(uploads, conn)
		until(t, "it is there", func() bool { return g.Stats().InFlight == len(uploads) })
	}
	until(t, "all have given their place back", func() bool { return places() == 0 })
	if got := see(t, addr, "GET", plainGet); got.summary() != "200" {
		t.Errorf("beside slow uploads: %s %s", got.summary(), got.body)
	}
	for _, conn := range uploads[:3] {
		io.WriteString(conn, "i")
	}
	until(t, "three are the upstream's", func() bool { return places() == 3 && bodies.Load() == 3 })
	if got := see(t, addr, "GET", plainGet); got.summary() != "503" {
		t.Errorf("beside three that the upstream works on: %s", got.summary())
	}
	uploads[3].Close()
	close(release)
	until(t, "all are over", func() bool { return g.Stats().InFlight == 0 })
	if n := places(); n != 0 {
		t.Errorf("%d places are taken by nobody", n)
	}
}

// Nor do they keep the place of an upstream on trial.
func TestSlowUploadKeepsNoTrial(t *testing.T) {
	service := upstreamServer(t, func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	g, addr := gatewayOf(t, Config{Upstream: service, Ejection: Ejection{For: time.Hour, Most: time.Hour}})
	u := g.pool.all[0]
	at, _ := u.health.admit(time.Now())
	g.pool.eject(time.Now(), &attempt{p: g.pool, u: u, admitted: at}, judgement{eject: "a test"})
	g.pool.hurry()
	until(t, "it is on trial", func() bool { return g.Stats().Upstreams[0].OnTrial })
	slow := dialGateway(t, addr)
	io.WriteString(slow, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nh")
	until(t, "it is there", func() bool { return g.Stats().InFlight == 1 })
	until(t, "another one is tried", func() bool { return see(t, addr, "GET", plainGet).summary() == "200" })
	if g.Stats().Upstreams[0].Ejected {
		t.Error("it is not back")
	}
	io.WriteString(slow, "i")
	if res, err := http.ReadResponse(bufio.NewReader(slow), nil); err != nil || res.StatusCode != 200 {
		t.Errorf("the slow one: %v %v", res, err)
	}
	until(t, "all are over", func() bool { return g.Stats().InFlight == 0 })
	u.health.mu.Lock()
	defer u.health.mu.Unlock()
	if u.health.pending != 0 {
		t.Errorf("%d places are taken by nobody", u.health.pending)
	}
}

// An upstream's words reach logs and pages in short, and without what a terminal obeys.
func TestBriefErrors(t *testing.T) {
	if got := brief(errors.New("it answered 503 \x1b[2J\r\n" + strings.Repeat("x", 1<<20))); len(got) > 2*maxBrief || !strings.HasPrefix(got, "it answered 503 \uFFFD[2J\uFFFD\uFFFDx") {
		t.Errorf("%.80q, %d bytes", got, len(got))
	}
	service := fakeService(t, func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			fmt.Fprintf(conn, "HTTP/1.1 503 %s\x1b[2J\r\nContent-Length: 0\r\n\r\n", strings.Repeat("x", 100<<10))
		}
	})
	log := new(lockedBuffer)
	g, addr := gatewayOf(t, Config{Upstreams: []string{service, "http://" + testservers.UnusedAddr(t)}, Random: first, Ejection: Ejection{Consecutive: 1}, Logger: jsonLog(log)})
	see(t, addr, "GET", plainGet)
	until(t, "it is ejected", func() bool { return g.Stats().Upstreams[0].Ejected })
	if why := g.Stats().Upstreams[0].Why; len(why) > 2*maxBrief || len(log.String()) > 4*maxBrief {
		t.Errorf("%d bytes of reason, %d of log", len(why), len(log.String()))
	}
}

// Upstreams that fail in every way, and clients that leave at any time, leave nothing behind: no place, no request, no connection.
func TestFlappingLeavesNothing(t *testing.T) {
	var well atomic.Bool
	var turn atomic.Int32
	fickle := fakeService(t, func(conn net.Conn) {
		for in := bufio.NewReader(conn); ; {
			req, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			io.Copy(io.Discard, req.Body)
			mood := turn.Add(1) % 6
			switch {
			case well.Load() || mood < 2:
				io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\n\r\n"+whole)
			case mood == 2:
				io.WriteString(conn, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
			case mood == 3:
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhel")
				return
			case mood == 4:
				io.Copy(io.Discard, conn)
				return
			default:
				return
			}
		}
	})
	over2 := h2cServer(t, func(*http.Server) {}, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if !well.Load() && turn.Add(1)%3 == 0 {
			panic(http.ErrAbortHandler)
		}
	})
	g, addr := gatewayOf(t, Config{
		Upstreams: []string{fickle, over2, "http://" + testservers.UnusedAddr(t)}, Adaptive: &Adaptive{Initial: 8}, ResponseTimeout: briefly, Stall: briefly,
		Ejection: Ejection{For: 10 * time.Millisecond, Most: 20 * time.Millisecond},
	})
	requests := []string{plainGet, plainPost, plainPost[:len(plainPost)-2], getWith("/", "Connection: Upgrade\r\nUpgrade: websocket\r\n")}
	var clients sync.WaitGroup
	for i := range 20 {
		clients.Go(func() {
			for j := range 12 {
				conn := dialGateway(t, addr)
				io.WriteString(conn, requests[(i+j)%len(requests)])
				if (i+j)%3 > 0 { // the others leave at once
					bufio.NewReader(conn).ReadString('\n')
				}
				conn.Close()
			}
		})
	}
	clients.Wait()
	until(t, "all are over", func() bool { return g.Stats().InFlight == 0 })
	for _, u := range g.pool.all {
		u.health.mu.Lock()
		u.limiter.mu.Lock()
		if u.health.pending != 0 || u.limiter.inflight != 0 || u.inflight.Load() != 0 || u.lanes.all[0].requests != 0 {
			t.Errorf("%s: %d on trial, %d in the limit, %d there, %d in the lane", u.name, u.health.pending, u.limiter.inflight, u.inflight.Load(), u.lanes.all[0].requests)
		}
		u.limiter.mu.Unlock()
		u.health.mu.Unlock()
	}
	well.Store(true)
	until(t, "all is well", func() bool { return strings.HasSuffix(see(t, addr, "GET", plainGet).summary(), "200") })
}

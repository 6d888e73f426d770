package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Upstreams may differ in protocol and path.
func TestUpstreamsOfAllKinds(t *testing.T) {
	say := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, name, " ", r.URL.Path) }
	}
	secure, trusted := tlsServer(t, say("https"))
	cfg := Config{UpstreamTLS: trusted, Upstreams: []string{
		"http://" + protocolServer(t, say("http")) + "/a", "h2c://" + protocolServer(t, say("h2c")), "https://" + secure + "/c/d/",
	}}
	g, addr := gatewayOf(t, cfg)
	got := map[string]int{}
	for range 60 {
		got[see(t, addr, "GET", plainGet).body]++
	}
	for _, want := range []string{"http /a/page", "h2c /page", "https /c/d/page"} {
		if got[want] == 0 {
			t.Errorf("nobody got %q: %v", want, got)
		}
	}
	var names []string
	for _, u := range g.Stats().Upstreams {
		names = append(names, u.Upstream)
	}
	cfg.Upstreams[2] = strings.TrimSuffix(cfg.Upstreams[2], "/")
	if !slices.Equal(names, cfg.Upstreams) {
		t.Errorf("names %v, want %v", names, cfg.Upstreams)
	}
}

// The probe asks for the health path, below the path of the upstream, and is content with 2xx alone.
func TestHealthPathIsProbed(t *testing.T) {
	for _, protocol := range []string{"http", "h2c"} {
		var well, failing atomic.Bool
		var probes atomic.Int32
		failing.Store(true)
		service := protocolServer(t, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/base/healthz" && r.Method == http.MethodGet:
				if probes.Add(1); !well.Load() {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			case failing.Load():
				panic(http.ErrAbortHandler)
			}
		})
		rules := soon
		rules.HealthPath = "/healthz"
		g, addr := gatewayOf(t, Config{Upstream: protocol + "://" + service + "/base", Ejection: rules})
		until(t, "it is ejected", func() bool { return see(t, addr, "GET", plainGet).summary() == "503" })
		failing.Store(false)
		until(t, "it is probed", func() bool { return probes.Load() >= 3 })
		if st := g.Stats().Upstreams[0]; !st.Ejected || st.OnTrial {
			t.Errorf("%s: one that says it is not well: %+v", protocol, st)
		}
		well.Store(true)
		until(t, "it is back", func() bool { return see(t, addr, "GET", plainGet).summary() == "200" })
		if st := g.Stats().Upstreams[0]; st.Ejected {
			t.Errorf("%s: %+v", protocol, st)
		}
	}
}

// An upstream that answers 503 makes room for another one, and stays if there is none.
func TestBusyUpstreamIsEjectedBesideAnother(t *testing.T) {
	var asked atomic.Int32
	busy := upstreamServer(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	fine := upstreamServer(t, func(http.ResponseWriter, *http.Request) {})
	g, addr := gatewayOf(t, Config{Upstreams: []string{busy, fine}, Random: first, Ejection: Ejection{For: time.Hour, Most: time.Hour}})
	for i := range 20 {
		if got, want := see(t, addr, "GET", plainGet).summary(), map[bool]string{true: "503", false: "200"}[i < 5]; got != want {
			t.Errorf("request %d: %s, want %s", i, got, want)
		}
		until(t, "it is counted", func() bool { return g.Stats().InFlight == 0 })
	}
	if st := g.Stats().Upstreams[0]; !st.Ejected || asked.Load() != 5 || !strings.Contains(st.Why, "it answered 503") {
		t.Errorf("%+v after %d", st, asked.Load())
	}
	_, addr = gatewayOf(t, Config{Upstream: busy})
	for range 20 {
		if got := see(t, addr, "GET", plainGet); got.summary() != "503" || got.body != "" {
			t.Errorf("the only one: %s", got)
		}
	}
}

// Over HTTP/2 one connection carries all requests: a request that hangs is a failure, and the others go on.
func TestHangingStreamIsAFailure(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	service := protocolServer(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hangs" {
			select {
			case <-end:
			case <-r.Context().Done():
			}
		}
	})
	g, addr := gatewayOf(t, Config{Upstream: "h2c://" + service, Ejection: Ejection{Consecutive: 2, For: time.Hour, Most: time.Hour}})
	for _, c := range []struct{ path, want string }{{"/hangs", "504"}, {"/", "200"}, {"/hangs", "504"}, {"/hangs", "504"}, {"/", "503"}} {
		g.answersWithin(map[string]time.Duration{"/hangs": briefly, "/": patience}[c.path])
		if got := see(t, addr, "GET", getWith(c.path, "")); got.summary() != c.want {
			t.Errorf("%s: %s, want %s", c.path, got, c.want)
		}
		until(t, "it is counted", func() bool { return g.Stats().InFlight == 0 })
	}
}

// A limit that follows the upstream counts requests until their header comes: not streams, and not websockets.
func TestAdaptiveLimitAtTheGateway(t *testing.T) {
	release := make(chan struct{})
	service := upstreamServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/stream":
			w.(http.Flusher).Flush()
		case "/socket":
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		}
		<-release
	})
	g, addr := gatewayOf(t, Config{Upstream: service, Adaptive: &Adaptive{Initial: 2, Least: 2, Most: 2}})
	begin := func(path, fields string) *net.TCPConn {
		conn := dialGateway(t, addr)
		io.WriteString(conn, getWith(path, fields))
		return conn
	}
	for range 3 {
		for path, fields := range map[string]string{"/stream": "", "/socket": "Connection: Upgrade\r\nUpgrade: websocket\r\n"} {
			if line, err := bufio.NewReader(begin(path, fields)).ReadString('\n'); err != nil || !strings.Contains(line, " 200 ") && !strings.Contains(line, " 101 ") {
				t.Errorf("%s: %q %v", path, line, err)
			}
		}
	}
	begin("/a", "")
	begin("/b", "")
	until(t, "all are there", func() bool { return g.Stats().Upstreams[0].InFlight == 8 })
	got := see(t, addr, "GET", plainGet)
	if got.summary() != "503" || !strings.Contains(got.body, `"upstream_busy"`) || got.header.Get("Retry-After") != "1" {
		t.Errorf("the third that waits: %s %v", got, got.header)
	}
	if st := g.Stats().Upstreams[0]; st.Limit != 2 || st.Failures != 0 {
		t.Errorf("%+v", st)
	}
	close(release)
	until(t, "there is a place", func() bool { return see(t, addr, "GET", plainGet).summary() == "200" })
}

func TestNewRefusesAdaptive(t *testing.T) {
	for want, a := range map[string]Adaptive{
		"Adaptive has a negative bound":                {Window: -1},
		"Adaptive wants Least ≤ Initial ≤ Most, not 9": {Least: 9, Initial: 5},
		"not 4, 50, 20": {Initial: 50, Most: 20},
	} {
		if _, err := New(Config{Upstream: "http://x", Decider: decider(allowAll), Adaptive: &a}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", a, err, want)
		}
	}
}

// A service may not be silent for ever within an answer of known length; a stream may.
func TestSilentAnswers(t *testing.T) {
	end := make(chan struct{})
	service := upstreamServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stops" {
			w.Header().Set("Content-Length", "9")
		}
		io.WriteString(w, "hello")
		w.(http.Flusher).Flush()
		<-end
	})
	g, addr := gatewayOf(t, Config{Upstream: service, AnswerIdle: briefly})
	stream := make(chan string)
	go func() { stream <- see(t, addr, "GET", getWith("/stream", "")).summary() }()
	until(t, "the stream is there", func() bool { return g.Stats().InFlight == 1 })
	for range 2 { // the second is given up when the stream has been silent for as long
		if got := see(t, addr, "GET", getWith("/stops", "")); got.summary() != "cut" {
			t.Errorf("%s, want it cut", got)
		}
	}
	if st := g.Stats(); st.InFlight != 1 || st.Upstreams[0].Failures != 2 {
		t.Errorf("%+v", st)
	}
	close(end)
	if got := <-stream; got != "200" {
		t.Errorf("the stream: %s", got)
	}
}

// The connections that were kept to an ejected upstream are closed, those of all lanes: it may come back as another process.
func TestEjectionClosesKeptConnections(t *testing.T) {
	const requests = 2*laneStreams + 1
	for _, protocol := range []string{"http", "h2c"} {
		var opened, closed atomic.Int32
		var there sync.WaitGroup
		there.Add(requests)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			there.Done()
			there.Wait() // all at a time
		}))
		server.Config.Protocols = new(http.Protocols)
		server.Config.Protocols.SetHTTP1(true)
		server.Config.Protocols.SetUnencryptedHTTP2(true)
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				opened.Add(1)
			case http.StateClosed:
				closed.Add(1)
			}
		}
		server.Start()
		t.Cleanup(server.Close)
		g, addr := gatewayOf(t, Config{Upstream: protocol + "://" + server.Listener.Addr().String(), Ejection: Ejection{For: time.Hour, Most: time.Hour}})
		var all sync.WaitGroup
		for range requests {
			all.Go(func() { see(t, addr, "GET", plainGet) })
		}
		all.Wait()
		until(t, "all are over", func() bool { return g.Stats().InFlight == 0 })
		at, _ := g.pool.pick(search{now: time.Now()})
		g.pool.eject(time.Now(), &at, judgement{eject: "a test"})
		until(t, "all connections are closed", func() bool { return opened.Load() >= 3 && closed.Load() == opened.Load() })
		at.leave()
	}
}

package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/middleware/mwtest"
)

// patience bounds what a test waits for; nothing is expected to take it, on a machine under load neither.
const patience = time.Minute

// A connection that net/http closes with a part of a request unread waits for half a second, longer than goleak does.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

type decider func(*httpverdict.Request) *httpverdict.Verdict

func (d decider) Decide(_ context.Context, r *httpverdict.Request) *httpverdict.Verdict { return d(r) }

func allowAll(*httpverdict.Request) *httpverdict.Verdict {
	return &httpverdict.Verdict{ID: "id-allow", Binding: -1}
}

// served starts a gateway on a real listener and returns its address.
func served(t testing.TB, cfg Config, sc ServerConfig) string {
	t.Helper()
	addr, _ := running(t, cfg, sc)
	return addr
}

// running also returns what stops the server; it ends with the test anyway.
func running(t testing.TB, cfg Config, sc ServerConfig) (addr string, stop func() error) {
	t.Helper()
	if cfg.Decider == nil {
		cfg.Decider = decider(allowAll)
	}
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	sc.Handler = g
	return runServer(t, sc)
}

func runServer(t testing.TB, sc ServerConfig) (addr string, stop func() error) {
	t.Helper()
	if sc.DrainTimeout == 0 {
		sc.DrainTimeout = -1
	}
	s, err := NewServer(sc)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, l) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return l.Addr().String(), stop
}

// upstreamServer is a real service behind the gateway.
func upstreamServer(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// client returns a client that keeps no connection beyond the test.
func client(t testing.TB, protocols ...func(*http.Protocols)) *http.Client {
	t.Helper()
	transport := &http.Transport{DisableCompression: true}
	if len(protocols) > 0 {
		transport.Protocols = new(http.Protocols)
		for _, set := range protocols {
			set(transport.Protocols)
		}
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

func h2c(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func jsonLog(l *lockedBuffer) *slog.Logger { return slog.New(slog.NewJSONHandler(l, nil)) }

func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name, protocol string
		cfg            Config
		upstreams      int
	}{
		{"http", "http", Config{}, 1},
		{"h2c", "h2c", Config{}, 1},
		{"three upstreams", "http", Config{Adaptive: &Adaptive{}}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			mwtest.Run(t, mwtest.Front{Start: func(t testing.TB, s mwtest.Setup) (string, error) {
				cfg := c.cfg
				for range c.upstreams {
					cfg.Upstreams = append(cfg.Upstreams, c.protocol+"://"+protocolServer(t, s.App.ServeHTTP))
				}
				cfg.Decider, cfg.MaxHeld, cfg.Stale = s.Decider, s.MaxHeld, s.Stale
				g, err := New(cfg)
				if err != nil {
					return "", err
				}
				t.Cleanup(func() { g.Close() })
				addr, _ := runServer(t, ServerConfig{Handler: g})
				return "http://" + addr, nil
			}})
		})
	}
}

// protocolServer is a service that speaks HTTP/1.1 and h2c; it returns its address.
func protocolServer(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// tlsServer is a service that speaks HTTP/1.1 and HTTP/2 over TLS; it returns its address and what trusts it.
func tlsServer(t testing.TB, h http.HandlerFunc) (addr string, trusted *tls.Config) {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String(), &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
}

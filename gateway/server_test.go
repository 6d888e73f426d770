package gateway

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// blocking is a service whose requests wait for release.
func blocking(t *testing.T) (addr string, reached chan struct{}, release chan struct{}) {
	reached, release = make(chan struct{}, 8), make(chan struct{})
	return protocolServer(t, func(w http.ResponseWriter, r *http.Request) {
		reached <- struct{}{}
		select {
		case <-release:
			io.WriteString(w, "whole")
		case <-r.Context().Done():
		}
	}), reached, release
}

type answer struct {
	status int
	body   string
	err    error
}

// get asks in the background.
func get(c *http.Client, url string) <-chan answer {
	out := make(chan answer, 1)
	go func() {
		res, err := c.Get(url)
		if err != nil {
			out <- answer{err: err}
			return
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		out <- answer{res.StatusCode, string(body), err}
	}()
	return out
}

func TestDrainLetsRequestsFinish(t *testing.T) {
	for _, d := range directions {
		t.Run(d.name, func(t *testing.T) {
			service, reached, release := blocking(t)
			addr, stop := running(t, Config{Upstream: d.service + "://" + service}, ServerConfig{DrainTimeout: patience})
			got := get(client(t, d.client...), "http://"+addr)
			<-reached
			stopped := make(chan error)
			go func() { stopped <- stop() }()
			awaitRefusal(t, addr)
			select {
			case err := <-stopped:
				t.Fatalf("the server stopped with a request under way: %v", err)
			default:
			}
			close(release)
			if a := <-got; a.err != nil || a.status != 200 || a.body != "whole" {
				t.Errorf("the request got %+v", a)
			}
			if err := <-stopped; err != nil {
				t.Error(err)
			}
		})
	}
}

// awaitRefusal waits until new connections are refused.
func awaitRefusal(t *testing.T, addr string) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		conn.Close()
	}
	t.Fatal("a server that drains still accepts")
}

func TestDrainCutsWhatTakesTooLong(t *testing.T) {
	service, reached, _ := blocking(t)
	log := new(lockedBuffer)
	addr, stop := running(t, Config{Upstream: "http://" + service}, ServerConfig{DrainTimeout: briefly, Logger: jsonLog(log)})
	got := get(client(t), "http://"+addr)
	<-reached
	if err := stop(); err != nil {
		t.Error(err)
	}
	if a := <-got; a.err == nil {
		t.Errorf("a request that was cut got %+v", a)
	}
	if !strings.Contains(log.String(), `"requests":1`) {
		t.Errorf("the log does not say what was cut: %s", log)
	}
}

func TestDrainCutsWebsockets(t *testing.T) {
	closed := make(chan struct{})
	service := upstreamServer(t, func(w http.ResponseWriter, r *http.Request) {
		lineEcho(t)(w, r)
		close(closed)
	})
	addr, stop := running(t, Config{Upstream: service}, ServerConfig{DrainTimeout: briefly})
	conn := dialGateway(t, addr)
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nping\n")
	in := bufio.NewReader(conn)
	if res, err := http.ReadResponse(in, nil); err != nil || res.StatusCode != 101 {
		t.Fatalf("answer %v %v", res, err)
	}
	if line, err := in.ReadString('\n'); err != nil || line != "ping\n" {
		t.Fatalf("echo %q %v", line, err)
	}
	start := time.Now()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took < briefly {
		t.Errorf("an open websocket was cut after %s, before the drain timeout", took)
	}
	if _, err := in.ReadByte(); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the websocket is still open: %v", err)
	}
	<-closed
}

func TestServeErrorNamesTheAddress(t *testing.T) {
	s, err := NewServer(ServerConfig{Handler: http.NotFoundHandler()})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := s.Run(t.Context(), l); err == nil || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("run on a closed listener: %v", err)
	}
}

func TestTLS(t *testing.T) {
	issuer := httptest.NewUnstartedServer(nil)
	issuer.StartTLS()
	defer issuer.Close()
	trusted := issuer.Client().Transport.(*http.Transport).TLSClientConfig
	secure, trustedService := tlsServer(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Proto, " ", r.Header.Get("X-Forwarded-Proto"))
	})
	addr := served(t, Config{Upstream: "https://" + secure, UpstreamTLS: trustedService},
		ServerConfig{TLS: &tls.Config{Certificates: issuer.TLS.Certificates}})
	for _, c := range []struct {
		name string
		set  func(*http.Protocols)
		want string
	}{
		{"HTTP/1.1", func(p *http.Protocols) { p.SetHTTP1(true) }, "HTTP/1.1"},
		{"HTTP/2", func(p *http.Protocols) { p.SetHTTP2(true) }, "HTTP/2.0"},
	} {
		cl := client(t, c.set)
		cl.Transport.(*http.Transport).TLSClientConfig = trusted
		res, err := cl.Get("https://" + addr)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.Proto != c.want || string(body) != "HTTP/2.0 https" {
			t.Errorf("%s: client saw %s, service %q", c.name, res.Proto, body)
		}
	}
}

func TestUntrustedServiceIsRefused(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secure.StartTLS()
	defer secure.Close()
	res, err := client(t).Get("http://" + served(t, Config{Upstream: secure.URL}, ServerConfig{}))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusBadGateway {
		t.Errorf("a service with an unknown certificate was used: %d", res.StatusCode)
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	service := upstreamServer(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })
	addr := served(t, Config{Upstream: service}, ServerConfig{MaxConns: 2})
	open := []net.Conn{dialGateway(t, addr), dialGateway(t, addr)}
	for _, conn := range open { // both are accepted once they are answered
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
			t.Fatal(err)
		}
	}
	third := dialGateway(t, addr)
	fmt.Fprint(third, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	third.SetReadDeadline(time.Now().Add(briefly))
	if _, err := third.Read(make([]byte, 1)); err == nil {
		t.Fatal("a third connection is served")
	}
	open[0].Close()
	third.SetReadDeadline(time.Now().Add(patience))
	if res, err := http.ReadResponse(bufio.NewReader(third), nil); err != nil || res.StatusCode != 200 {
		t.Errorf("the third, when there is room: %v %v", res, err)
	}
}

func TestTally(t *testing.T) {
	tally := newTally()
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for range 1000 {
				tally.add(1)
				tally.add(-1)
			}
		})
	}
	workers.Wait()
	<-tally.none()
	tally.add(1)
	select {
	case <-tally.none():
		t.Error("none with one under way")
	default:
	}
	if tally.count() != 1 {
		t.Errorf("count %d", tally.count())
	}
	tally.add(-1)
	<-tally.none()
}

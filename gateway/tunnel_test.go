package gateway

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

func TestWebsocket(t *testing.T) {
	for _, protocol := range []string{"http", "h2c", "https"} {
		t.Run(protocol, func(t *testing.T) {
			echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
				if err != nil {
					t.Error(err)
					return
				}
				defer c.CloseNow()
				c.SetReadLimit(1 << 20)
				for {
					kind, p, err := c.Read(r.Context())
					if err != nil {
						return
					}
					if err := c.Write(r.Context(), kind, p); err != nil {
						return
					}
				}
			})
			service, trusted := protocolServer(t, echo), (*tls.Config)(nil)
			if protocol == "https" {
				service, trusted = tlsServer(t, echo)
			}
			done := make(chan httpverdict.Result, 1)
			g, err := New(Config{Upstream: protocol + "://" + service, UpstreamTLS: trusted, Decider: decider(func(*httpverdict.Request) *httpverdict.Verdict {
				return &httpverdict.Verdict{ID: "id-ws", Binding: -1, Done: func(_ context.Context, res httpverdict.Result) { done <- res }}
			})})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { g.Close() })
			addr, _ := runServer(t, ServerConfig{Handler: g})
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			c, res, err := websocket.Dial(ctx, "ws://"+addr+"/chat", nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.CloseNow()
			if res.Header.Get("Headgate-Id") != "id-ws" {
				t.Errorf("the answer has no id: %v", res.Header)
			}
			c.SetReadLimit(1 << 20)
			for _, message := range []string{"hello", strings.Repeat("x", 300_000)} {
				if err := c.Write(ctx, websocket.MessageText, []byte(message)); err != nil {
					t.Fatal(err)
				}
				if _, p, err := c.Read(ctx); err != nil || string(p) != message {
					t.Fatalf("echo of %d bytes: %d bytes, %v", len(message), len(p), err)
				}
			}
			if s := g.Stats(); s.Tunnels != 1 || s.InFlight != 1 {
				t.Errorf("stats %+v, want one tunnel in flight", s)
			}
			if err := c.Close(websocket.StatusNormalClosure, ""); err != nil {
				t.Errorf("close: %v", err)
			}
			if res := <-done; res.Status != 101 || res.Bytes < 300_000 {
				t.Errorf("Done got %+v", res)
			}
		})
	}
}

// lineEcho is a service that agrees to a websocket and sends back what comes, without any frames.
func lineEcho(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		rw.Flush()
		io.Copy(conn, rw)
	}
}

// The bounds for answers are none for tunnels.
func TestTunnelMayBeSilentForLong(t *testing.T) {
	addr := served(t, Config{Upstream: upstreamServer(t, lineEcho(t)), ResponseTimeout: briefly / 2}, ServerConfig{HeaderTimeout: briefly, IdleTimeout: briefly})
	var conn *net.TCPConn
	var in *bufio.Reader
	until(t, "the tunnel stands", func() bool { // the bounds are short enough for a busy machine to run into one before that
		conn = dialGateway(t, addr)
		io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		in = bufio.NewReader(conn)
		res, err := http.ReadResponse(in, nil)
		return err == nil && res.StatusCode == 101
	})
	conn.SetReadDeadline(time.Now().Add(2 * briefly))
	if _, err := in.ReadByte(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("a silent tunnel: %v", err)
	}
	conn.SetReadDeadline(time.Now().Add(patience))
	io.WriteString(conn, "still here\n")
	if line, err := in.ReadString('\n'); err != nil || line != "still here\n" {
		t.Errorf("echo %q %v", line, err)
	}
}

func TestSilentTunnelIsClosed(t *testing.T) {
	service := upstreamServer(t, lineEcho(t))
	conn := dialGateway(t, served(t, Config{Upstream: service, TunnelIdle: 50 * time.Millisecond}, ServerConfig{}))
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	all, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 101 ") {
		t.Errorf("read %q %v, want 101 and the end", all, err)
	}
}

func TestProtocolThatWasNotAskedFor(t *testing.T) {
	service := upstreamServer(t, func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
		rw.Flush()
	})
	res, err := client(t).Get("http://" + served(t, Config{Upstream: service}, ServerConfig{}))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusBadGateway {
		t.Errorf("status %d, want 502", res.StatusCode)
	}
}

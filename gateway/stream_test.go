package gateway

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// directions names a protocol of the client and of the service.
var directions = []struct {
	name    string
	client  []func(*http.Protocols)
	service string
	proto   string // what the service sees
}{
	{"h1 to h1", nil, "http", "HTTP/1.1"},
	{"h2c to h1", []func(*http.Protocols){h2c}, "http", "HTTP/1.1"},
	{"h1 to h2c", nil, "h2c", "HTTP/2.0"},
	{"h2c to h2c", []func(*http.Protocols){h2c}, "h2c", "HTTP/2.0"},
}

func TestProtocols(t *testing.T) {
	for _, d := range directions {
		t.Run(d.name, func(t *testing.T) {
			service := protocolServer(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				fmt.Fprintf(w, "%s %s %s %s %s", r.Proto, r.Method, r.Host, r.URL.RequestURI(), body)
			})
			addr := served(t, Config{Upstream: d.service + "://" + service}, ServerConfig{})
			for _, body := range []string{"", "small", strings.Repeat("large", 50_000)} {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+addr+"/a%2Fb?q=%20", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				req.Host = "shop.example"
				res, err := client(t, d.client...).Do(req)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(res.Body)
				res.Body.Close()
				if want := d.proto + " PUT shop.example /a%2Fb?q=%20 " + body; err != nil || string(got) != want {
					t.Errorf("the service saw %.80q (%d bytes), %v; want %.80q", got, len(got), err, want)
				}
			}
		})
	}
}

func TestEventsArriveAsTheyAreWritten(t *testing.T) {
	for _, d := range directions {
		t.Run(d.name, func(t *testing.T) {
			next := make(chan int)
			service := protocolServer(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				w.(http.Flusher).Flush() // the header goes out before any event
				for i := range next {
					fmt.Fprintf(w, "data: %d\n\n", i)
					w.(http.Flusher).Flush()
				}
			})
			addr := served(t, Config{Upstream: d.service + "://" + service}, ServerConfig{})
			defer close(next)
			res, err := client(t, d.client...).Get("http://" + addr)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			events := bufio.NewReader(res.Body)
			for i := range 20 {
				next <- i // the header, and every event before, has arrived without this one
				if line, err := events.ReadString('\n'); err != nil || line != fmt.Sprintf("data: %d\n", i) {
					t.Fatalf("event %d: %q %v", i, line, err)
				}
				events.ReadString('\n')
			}
		})
	}
}

// An answer whose length is known must not wait for its end either. Its header goes with the first part.
func TestPartsOfAKnownLengthArrive(t *testing.T) {
	more := make(chan bool, 1)
	more <- true
	service := upstreamServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "6")
		w.(http.Flusher).Flush()
		<-more
		io.WriteString(w, "abc")
		w.(http.Flusher).Flush()
		<-more
		io.WriteString(w, "def")
	})
	res, err := client(t).Get("http://" + served(t, Config{Upstream: service}, ServerConfig{}))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for _, want := range []string{"abc", "def"} {
		part := make([]byte, 3)
		if _, err := io.ReadFull(res.Body, part); err != nil || string(part) != want {
			t.Fatalf("part %q %v, want %q", part, err, want)
		}
		more <- true
	}
}

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

// zeros is a body of any length that costs no memory.
type zeros struct{ left int64 }

func (z *zeros) Read(p []byte) (int, error) {
	if z.left <= 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), z.left))
	clear(p[:n])
	z.left -= int64(n)
	return n, nil
}

func TestLargeBodiesTakeNoMemory(t *testing.T) {
	for i, d := range directions {
		size := int64(100 << 20)
		if i > 0 {
			size = 32 << 20 // keeps the suite quick
		}
		t.Run(d.name, func(t *testing.T) {
			want := sha256.New()
			io.Copy(want, &zeros{size})
			service := protocolServer(t, func(w http.ResponseWriter, r *http.Request) {
				sum := sha256.New()
				n, err := io.Copy(sum, r.Body)
				if err != nil || n != size || !bytes.Equal(sum.Sum(nil), want.Sum(nil)) {
					t.Errorf("the service got %d bytes, %v", n, err)
				}
				io.Copy(w, &zeros{size})
			})
			addr := served(t, Config{Upstream: d.service + "://" + service}, ServerConfig{})
			before := heap()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr, &zeros{size})
			if err != nil {
				t.Fatal(err)
			}
			c := client(t, d.client...)
			c.Timeout = 5 * patience
			res, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			half, err := io.CopyN(io.Discard, res.Body, size/2)
			if err != nil {
				t.Fatalf("after %d bytes: %v", half, err)
			}
			// Client, gateway and service are in this process; a body that is kept anywhere would show.
			if grown := int64(heap()) - int64(before); grown > 16<<20 {
				t.Errorf("the heap grew by %d MB in the middle of a body of %d MB", grown>>20, size>>20)
			}
			if rest, err := io.Copy(io.Discard, res.Body); err != nil || half+rest != size {
				t.Errorf("%d bytes came back, %v", half+rest, err)
			}
		})
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestContinueIsAskedOfTheService(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		t.Run(fmt.Sprint("refused ", refuse), func(t *testing.T) {
			service := upstreamServer(t, func(w http.ResponseWriter, r *http.Request) {
				if refuse {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				io.Copy(w, r.Body)
			})
			conn := dialGateway(t, served(t, Config{Upstream: service}, ServerConfig{}))
			fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n")
			in := bufio.NewReader(conn)
			first, err := in.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if refuse {
				if first != "HTTP/1.1 401 Unauthorized\r\n" {
					t.Errorf("answer %q, want 401 before any body", first)
				}
				return
			}
			if first != "HTTP/1.1 100 Continue\r\n" {
				t.Fatalf("answer %q, want 100", first)
			}
			in.ReadString('\n')
			io.WriteString(conn, "hello")
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if body, _ := io.ReadAll(res.Body); res.StatusCode != 200 || string(body) != "hello" {
				t.Errorf("answer %d %q", res.StatusCode, body)
			}
		})
	}
}

// The service answers while the client is still sending: the answer must not wait.
func TestEarlyAnswer(t *testing.T) {
	service := upstreamServer(t, func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		rw.WriteString("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
		rw.Flush()
		io.Copy(io.Discard, conn)
	})
	conn := dialGateway(t, served(t, Config{Upstream: service}, ServerConfig{}))
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx")
	start := time.Now()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || res.StatusCode != http.StatusForbidden || !res.Close {
		t.Fatalf("answer %+v %v, want 403 and the end of the connection", res, err)
	}
	if _, err := io.ReadAll(conn); err != nil && !errors.Is(err, io.EOF) && !isReset(err) {
		t.Errorf("the connection ended with %v", err)
	}
	if took := time.Since(start); took > patience/2 {
		t.Errorf("the connection was held for %s by a body that does not come", took)
	}
}

func isReset(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && strings.Contains(err.Error(), "reset")
}

// dialGateway opens a raw connection with a deadline.
func dialGateway(t testing.TB, addr string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	return conn.(*net.TCPConn)
}

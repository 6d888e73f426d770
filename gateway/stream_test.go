package gateway

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
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

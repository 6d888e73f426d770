package gateway

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// FuzzLane has a service say anything. Whatever it says, the gateway answers or aborts, passes on what net/http's parser
// finds in it and nothing else, and keeps the lane only if the answer was whole and nothing was read beyond it.
func FuzzLane(f *testing.F) {
	for i, s := range scripts() {
		if len(s.raw) < 4<<10 {
			f.Add([]byte(s.raw), byte(len(s.method)), byte(i), s.end == "")
		}
	}
	g, err := New(Config{Upstream: "http://service:1", Decider: decider(allowAll)})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { g.Close() })
	f.Fuzz(func(t *testing.T, raw []byte, how, size byte, open bool) {
		method := []string{"GET", "HEAD", "POST", "OPTIONS"}[how%4]
		conn := &scriptedConn{rest: bytes.NewReader(raw), size: int(size) + 1, open: open}
		g.lanes.dial = func(context.Context) (net.Conn, error) { return conn, nil }
		r := httptest.NewRequest(method, "/", strings.NewReader(strings.Repeat("x", int(how))))
		w := &takesAll{header: http.Header{}}
		aborted := serveFuzzed(t, g, w, r)
		kept := takeIdle(g)
		want, body, used := oracle(raw, method)
		switch {
		case aborted:
			if want.whole && (!open || want.framed) {
				t.Fatalf("a whole answer was broken off: %q", raw)
			}
			return
		case want.status == 0:
			if w.status != 502 && w.status != 504 {
				t.Fatalf("answer %d to %q, want 502 or 504", w.status, raw)
			}
		case w.status != want.status || !bytes.Equal(w.body.Bytes(), body):
			t.Fatalf("answer %d %q, want %d %q of %q", w.status, w.body.Bytes(), want.status, body, raw)
		}
		if kept && (want.status == 0 || !want.whole || !want.framed || want.close || conn.read() != used) {
			t.Fatalf("the lane is kept after %q: read %d, the answer ends at %d (%+v)", raw, conn.read(), used, want)
		}
	})
}

func serveFuzzed(t *testing.T, g *Gateway, w http.ResponseWriter, r *http.Request) (aborted bool) {
	defer func() {
		if p := recover(); p != nil {
			if p != http.ErrAbortHandler {
				t.Fatalf("panic: %v", p)
			}
			aborted = true
		}
	}()
	g.ServeHTTP(w, r)
	return false
}

func takeIdle(g *Gateway) (kept bool) {
	for l := g.lanes.pop(); l != nil; l = g.lanes.pop() {
		kept = true
		l.close()
	}
	return kept
}

// answerEnd is what the oracle finds.
type answerEnd struct {
	status               int // 0 if there is no answer that can be passed on
	whole, framed, close bool
}

// oracle reads the same bytes from memory, without a lane.
func oracle(raw []byte, method string) (end answerEnd, body []byte, used int) {
	in := bufio.NewReaderSize(bytes.NewReader(raw), len(raw)+16)
	for range maxInformational + 1 {
		res, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil || res.StatusCode < 100 || res.StatusCode == http.StatusSwitchingProtocols {
			return answerEnd{}, nil, 0
		}
		if res.StatusCode < 200 {
			continue
		}
		body, err = io.ReadAll(res.Body)
		end = answerEnd{status: res.StatusCode, whole: err == nil, close: res.Close}
		end.framed = res.ContentLength >= 0 || len(res.TransferEncoding) > 0 || method == http.MethodHead
		rest, _ := io.ReadAll(in)
		return end, body, len(raw) - len(rest)
	}
	return answerEnd{}, nil, 0
}

// scriptedConn says what it is told in small pieces, and then nothing (open) or that it has ended. It takes everything.
type scriptedConn struct {
	net.Conn
	mu     sync.Mutex
	rest   *bytes.Reader
	size   int
	open   bool
	closed bool
}

func (c *scriptedConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, net.ErrClosed
	}
	n, err := c.rest.Read(p[:min(len(p), c.size)])
	if err == io.EOF && c.open {
		err = os.ErrDeadlineExceeded
	}
	return n, err
}

func (c *scriptedConn) Write(p []byte) (int, error) { return len(p), nil }

func (c *scriptedConn) SetReadDeadline(time.Time) error { return nil }

func (c *scriptedConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return nil
}

func (c *scriptedConn) read() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int(c.rest.Size()) - c.rest.Len()
}

// takesAll is a client that takes any answer, and panics where net/http does.
type takesAll struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *takesAll) Header() http.Header { return w.header }

func (w *takesAll) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic("invalid WriteHeader code") // as net/http does
	}
	if w.status == 0 && status >= 200 {
		w.status = status
	}
}

func (w *takesAll) Write(p []byte) (int, error) { return w.body.Write(p) }

package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// script is what a service does with the first request. The second is answered with "second".
type script struct {
	name, method string
	raw          string
	end          string // what follows: "" silence on an open connection, "close", "reset"
	want         string // what the client sees: statuses, or "cut" if the answer breaks off
	body         string // of the service's answer, where it is whole
	header       string // of it, without what frames it
	trailer      string
	fresh        bool // whether the connection must not be used again
}

const whole = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

func scripts() []script {
	chunked := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	many := func(n int) string { return strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", n) }
	return []script{
		// Where an answer ends.
		{name: "length", raw: whole, want: "200", body: "hello"},
		{name: "length 0", raw: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", want: "200"},
		{name: "length too long, closed", raw: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", end: "close", want: "cut", fresh: true},
		{name: "length too long, reset", raw: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", end: "reset", want: "cut", fresh: true},
		{name: "length too short", raw: "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhello", want: "200", body: "hel", fresh: true},
		{name: "length twice, the same", raw: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", want: "200", body: "hello"},
		{name: "length twice, another", raw: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 3\r\n\r\nhello", want: "502", fresh: true},
		{name: "length as a list", raw: "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello", want: "502", fresh: true},
		{name: "length with a sign", raw: "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello", want: "502", fresh: true},
		{name: "negative length", raw: "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", want: "502", fresh: true},
		{name: "huge length", raw: "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nhello", want: "502", fresh: true},
		{name: "chunks", raw: chunked + "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", want: "200", body: "hello world"},
		{name: "chunks, none", raw: chunked + "0\r\n\r\n", want: "200"},
		{name: "chunks with extensions", raw: chunked + "5;a=b\r\nhello\r\n0;c\r\n\r\n", want: "200", body: "hello"},
		{name: "chunks without their end", raw: chunked + "5\r\nhello\r\n", end: "close", want: "cut", fresh: true},
		{name: "chunks without the last line", raw: chunked + "5\r\nhello\r\n0\r\n", end: "close", want: "cut", fresh: true},
		{name: "half a chunk", raw: chunked + "5\r\nhel", end: "close", want: "cut", fresh: true},
		{name: "half a chunk, reset", raw: chunked + "5\r\nhel", end: "reset", want: "cut", fresh: true},
		{name: "chunk of no size", raw: chunked + "\r\nhello\r\n0\r\n\r\n", want: "cut", fresh: true},
		{name: "chunk size with a sign", raw: chunked + "+5\r\nhello\r\n0\r\n\r\n", want: "cut", fresh: true},
		{name: "chunk size beyond 64 bits", raw: chunked + "fffffffffffffffff\r\nhello\r\n0\r\n\r\n", want: "cut", fresh: true},
		{name: "chunk longer than it says", raw: chunked + "3\r\nhello\r\n0\r\n\r\n", want: "cut", fresh: true},
		{name: "trailers", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n", want: "200", body: "hello", trailer: "X-Sum: 1\n"},
		{name: "trailers without notice", raw: chunked + "5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n", want: "200", body: "hello", trailer: "X-Sum: 1\n"},
		{name: "trailers that frame", raw: chunked + "5\r\nhello\r\n0\r\nContent-Length: 1\r\nHeadgate-Id: other\r\n\r\n", want: "200", body: "hello"},
		{name: "trailers cut", raw: chunked + "5\r\nhello\r\n0\r\nX-Sum: 1\r\n", end: "close", want: "cut", fresh: true},
		{name: "trailers, huge", raw: chunked + "5\r\nhello\r\n0\r\nX-Sum: " + strings.Repeat("1", 64<<10) + "\r\n\r\n", want: "cut", fresh: true},
		{name: "length and chunks", raw: "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", want: "200", body: "hello"},
		{name: "unknown coding", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello", end: "close", want: "502", fresh: true},
		{name: "two codings", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", want: "502", fresh: true},
		{name: "to the end", raw: "HTTP/1.1 200 OK\r\n\r\nhello", end: "close", want: "200", body: "hello", fresh: true},
		{name: "to the end, empty", raw: "HTTP/1.1 200 OK\r\n\r\n", end: "close", want: "200", fresh: true},
		{name: "to the end, reset", raw: "HTTP/1.1 200 OK\r\n\r\nhello", end: "reset", want: "cut", fresh: true},
		{name: "close after a length", raw: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", want: "200", body: "hello", fresh: true},
		{name: "HTTP/1.0", raw: "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", want: "200", body: "hello", fresh: true},
		{name: "HTTP/1.0, kept", raw: "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello", want: "200", body: "hello"},
		{name: "HTTP/1.0, chunks", raw: "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nhello", want: "200", body: "hello", fresh: true},

		// Answers without a body.
		{name: "HEAD", method: "HEAD", raw: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", want: "200"},
		{name: "HEAD, chunks", method: "HEAD", raw: chunked, want: "200"},
		{name: "HEAD, no length", method: "HEAD", raw: "HTTP/1.1 200 OK\r\n\r\n", want: "200"},
		{name: "HEAD with a body", method: "HEAD", raw: whole, want: "200", fresh: true},
		{name: "204", raw: "HTTP/1.1 204 No Content\r\n\r\n", want: "204"},
		{name: "204 with a length", raw: "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", want: "204"},
		{name: "204 with a body", raw: "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", want: "204", fresh: true},
		{name: "204 with chunks", raw: "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", want: "204", fresh: true},
		{name: "304 with a length", raw: "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nETag: \"a\"\r\n\r\n", want: "304", header: "Etag: \"a\"\n"},
		{name: "304 with a body", raw: "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello", want: "304", fresh: true},
		{name: "205", raw: "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n", want: "205"},

		// Before the answer.
		{name: "100", raw: "HTTP/1.1 100 Continue\r\n\r\n" + whole, want: "200", body: "hello"},
		{name: "103", raw: many(1) + whole, want: "103 200", body: "hello"},
		{name: "102 and 103", raw: "HTTP/1.1 102 Processing\r\n\r\n" + many(1) + whole, want: "102 103 200", body: "hello"},
		{name: "103 with a length", raw: "HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\n" + whole, want: "103 200", body: "hello"},
		{name: "199", raw: "HTTP/1.1 199 What\r\n\r\n" + whole, want: "199 200", body: "hello"},
		{name: "as many as may be", raw: many(maxInformational) + whole, want: strings.Repeat("103 ", maxInformational) + "200", body: "hello"},
		{name: "too many", raw: many(maxInformational+1) + whole, want: strings.Repeat("103 ", maxInformational) + "502", fresh: true},
		{name: "103 and the end", raw: many(1), end: "close", want: "103 502", fresh: true},
		{name: "101 that nobody asked for", raw: "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", want: "502", fresh: true},
		{name: "101 to h2c", raw: "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n" + whole, want: "502", fresh: true},

		// Statuses and lines.
		{name: "status 0", raw: "HTTP/1.1 000 Zero\r\nContent-Length: 0\r\n\r\n", want: "502", fresh: true},
		{name: "status 99", raw: "HTTP/1.1 099 Below\r\nContent-Length: 0\r\n\r\n", want: "502", fresh: true},
		{name: "status 999", raw: "HTTP/1.1 999 Above\r\nContent-Length: 5\r\n\r\nhello", want: "999", body: "hello"},
		{name: "status of four digits", raw: "HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n", want: "502", fresh: true},
		{name: "negative status", raw: "HTTP/1.1 -20 OK\r\nContent-Length: 0\r\n\r\n", want: "502", fresh: true},
		{name: "no reason", raw: "HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello", want: "200", body: "hello"},
		{name: "not HTTP", raw: "220 mail.example ESMTP\r\n", want: "502", fresh: true},
		{name: "a line before the answer", raw: "\r\n" + whole, want: "502", fresh: true},
		{name: "nothing", raw: "", end: "close", want: "502", fresh: true},
		{name: "nothing, reset", raw: "", end: "reset", want: "502", fresh: true},
		{name: "silence", raw: "", want: "504", fresh: true},
		{name: "silence in the header", raw: "HTTP/1.1 200 OK\r\nX: y\r\n", want: "504", fresh: true},
		{name: "the end in the header", raw: "HTTP/1.1 200 OK\r\nX: y\r\n", end: "close", want: "502", fresh: true},
		{name: "bare LF", raw: "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", want: "200", body: "hello"},
		{name: "folded line", raw: "HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\nContent-Length: 5\r\n\r\nhello", want: "200", body: "hello", header: "X-A: b c\n"},
		{name: "space in a name", raw: "HTTP/1.1 200 OK\r\nX A: b\r\nContent-Length: 5\r\n\r\nhello", want: "200", body: "hello"},
		{name: "space before the colon", raw: "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello", end: "close", want: "200", body: "hello", fresh: true},
		{name: "no colon", raw: "HTTP/1.1 200 OK\r\nX-A\r\nContent-Length: 5\r\n\r\nhello", want: "502", fresh: true},
		{name: "Connection names headers", raw: "HTTP/1.1 200 OK\r\nConnection: X-A, x-b\r\nX-A: 1\r\nX-B: 2\r\nX-C: 3\r\nContent-Length: 5\r\n\r\nhello", want: "200", body: "hello", header: "X-C: 3\n"},
		{name: "large header", raw: "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", 100<<10) + "\r\nContent-Length: 5\r\n\r\nhello", want: "200", body: "hello", header: "X: " + strings.Repeat("y", 100<<10) + "\n"},
		{name: "huge header", raw: "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: yyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n", 64<<10) + "\r\n", want: "502", fresh: true},
		{name: "large body", raw: "HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + strings.Repeat("abc", 100_000), want: "200", body: strings.Repeat("abc", 100_000)},
		{name: "large chunk", raw: chunked + "493e0\r\n" + strings.Repeat("abc", 100_000) + "\r\n0\r\n\r\n", want: "200", body: strings.Repeat("abc", 100_000)},

		// More than an answer.
		{name: "a second answer", raw: whole + strings.Replace(whole, "hello", "other", 1), want: "200", body: "hello", fresh: true},
		{name: "a second answer after chunks", raw: chunked + "5\r\nhello\r\n0\r\n\r\n" + whole, want: "200", body: "hello", fresh: true},
		{name: "a line after the answer", raw: whole + "\r\n", want: "200", body: "hello", fresh: true},
		{name: "a late 100", raw: whole + "HTTP/1.1 100 Continue\r\n\r\n", want: "200", body: "hello", fresh: true},
		{name: "an answer to POST", method: "POST", raw: whole, want: "200", body: "hello"},
		{name: "nothing for POST", method: "POST", raw: "", end: "close", want: "502", fresh: true},
	}
}

// Whatever a service says, in pieces of any size, the client gets a whole answer or sees that it is none, and the next
// client gets an answer of its own.
func TestAnswers(t *testing.T) {
	for _, s := range scripts() {
		for _, size := range []int{1, 7, 1 << 20} {
			if size == 1 && len(s.raw) > 8<<10 {
				size = 1021
			}
			t.Run(fmt.Sprint(s.name, "/", size), func(t *testing.T) {
				t.Parallel()
				got, second := play(t, s, size)
				if got.summary() != s.want {
					t.Errorf("the client saw %q, want %q", got.summary(), s.want)
				}
				if second == 1 == s.fresh {
					t.Errorf("the next request came on connection %d, fresh %t", second, s.fresh)
				}
				if got.err != nil || strings.HasSuffix(s.want, "502") || s.want == "504" {
					return
				}
				if got.body != s.body {
					t.Errorf("the body is %.100q, want %.100q", got.body, s.body)
				}
				if header := fields(got.header); header != s.header {
					t.Errorf("the header is %.100q, want %.100q", header, s.header)
				}
				if trailer := fields(got.trailer); trailer != s.trailer {
					t.Errorf("the trailer is %q, want %q", trailer, s.trailer)
				}
			})
		}
	}
}

// play sends two requests to a gateway in front of the script. It returns the first answer, and the number of the
// connection to the service on which the second request came.
func play(t *testing.T, s script, size int) (first seen, second int32) {
	t.Helper()
	var connections, last atomic.Int32
	gone := make(chan struct{}, 2)
	service := fakeService(t, func(conn net.Conn) {
		defer func() { gone <- struct{}{} }()
		n := connections.Add(1)
		in := bufio.NewReader(conn)
		for {
			req, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			io.Copy(io.Discard, req.Body)
			if req.URL.Path == "/2" {
				last.Store(n)
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond")
				continue
			}
			io.WriteString(conn, s.raw)
			if s.end == "reset" {
				conn.(*net.TCPConn).SetLinger(0)
			}
			if s.end != "" {
				return
			}
		}
	})
	over, log := make(chan struct{}, 2), new(lockedBuffer)
	cfg := Config{
		Upstream: service, Decider: decider(allowAll), ResponseTimeout: patience,
		Observe: func(*Event) { over <- struct{}{} }, Logger: jsonLog(log),
	}
	if strings.HasSuffix(s.want, "504") {
		cfg.ResponseTimeout = 5 * briefly
	}
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	g.pool.all[0].lanes.first().DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return dialPieces(ctx, service, size) }
	addr, _ := runServer(t, ServerConfig{Handler: g})
	method := s.method
	if method == "" {
		method = "GET"
	}
	body := "\r\n"
	if method == "POST" {
		body = "Content-Length: 2\r\n\r\nhi"
	}
	first = see(t, addr, method, method+" / HTTP/1.1\r\nHost: x\r\n"+body)
	<-over // the connection is given back before that
	if s.fresh {
		select { // also where the excess of an answer comes when it is idle again
		case <-gone:
		case <-time.After(patience):
			t.Fatal("the connection is kept")
		}
	}
	if first.err != nil && s.want != "cut" {
		t.Errorf("the answer broke off after %d with %v: %s", first.status, first.err, log)
	}
	g.answersWithin(patience)
	if got := see(t, addr, "GET", "GET /2 HTTP/1.1\r\nHost: x\r\n\r\n"); got.summary() != "200" || got.body != "second" {
		t.Errorf("the next client saw %.300s", got)
	}
	return first, last.Load()
}

// pieceConn is a connection whose reads give a few bytes at a time.
type pieceConn struct {
	*net.TCPConn
	size int
}

func (c pieceConn) Read(p []byte) (int, error) { return c.TCPConn.Read(p[:min(len(p), c.size)]) }

func dialPieces(ctx context.Context, service string, size int) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(service, "http://"))
	if err != nil {
		return nil, err
	}
	return pieceConn{conn.(*net.TCPConn), size}, nil
}

// seen is what a client saw.
type seen struct {
	status  []int // 1xx and the answer
	header  http.Header
	trailer http.Header
	body    string
	err     error // if the answer broke off
}

func see(t *testing.T, addr, method, request string) seen {
	t.Helper()
	conn := dialGateway(t, addr)
	defer conn.Close()
	io.WriteString(conn, request)
	var s seen
	for in := bufio.NewReader(conn); ; {
		res, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			s.err = err
			break
		}
		s.status = append(s.status, res.StatusCode)
		if res.StatusCode < 200 {
			continue
		}
		body, err := io.ReadAll(res.Body)
		s.header, s.trailer, s.body, s.err = res.Header, res.Trailer, string(body), err
		break
	}
	if errors.Is(s.err, context.DeadlineExceeded) || s.err != nil && strings.Contains(s.err.Error(), "timeout") {
		t.Fatalf("the client waits for ever: %v", s.err)
	}
	return s
}

// summary is the statuses. How much of a broken answer arrives is a matter of luck.
func (s seen) summary() string {
	if s.err != nil {
		return "cut"
	}
	return strings.Trim(fmt.Sprint(s.status), "[]")
}

func (s seen) String() string { return fmt.Sprintf("%s %q %v", s.summary(), s.body, s.err) }

// fields writes what was passed on, without what frames the answer or is the server's and the policy's.
func fields(h http.Header) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(h)) {
		switch name {
		case "Date", "Content-Length", "Connection":
			continue
		case httpverdict.HeaderID:
			if h.Get(name) == "id-allow" {
				continue
			}
		}
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(h[name], " | "))
	}
	return b.String()
}

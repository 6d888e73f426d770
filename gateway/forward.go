package gateway

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// copyBuffer is the size of the pieces in which bodies are passed on.
const copyBuffer = 32 << 10

// forward sends the request to the service and its answer to the client.
func (x *exchange) forward() {
	out := x.outgoing()
	transport := x.g.transport
	if x.websock {
		transport = x.g.tunnels
	}
	hints := &earlyHints{x: x}
	out = out.WithContext(httptrace.WithClientTrace(out.Context(), &httptrace.ClientTrace{Got1xxResponse: hints.pass}))
	sent := time.Now()
	res, err := transport.RoundTrip(out)
	hints.end()
	answered := time.Now()
	x.upstreamTime = answered.Sub(sent)
	if err != nil {
		x.upstreamFailed(err)
		return
	}
	defer func() { x.rest = time.Since(answered) }()
	if res.StatusCode == http.StatusSwitchingProtocols {
		x.tunnel(res)
		return
	}
	x.respond(res)
}

// earlyHints passes 1xx answers on. They come on a goroutine of the transport, until the real answer is there.
type earlyHints struct {
	x    *exchange
	mu   sync.Mutex
	over bool
}

func (e *earlyHints) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
}

func (e *earlyHints) pass(status int, header textproto.MIMEHeader) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	// net/http sends 100 to the client by itself, when its body is read; 101 is an answer.
	if e.over || status == http.StatusContinue || status == http.StatusSwitchingProtocols {
		return nil
	}
	h := e.x.w.Header()
	copyHeader(h, http.Header(header))
	e.x.w.WriteHeader(status)
	clear(h)
	return nil
}

// respond passes the answer of the service on.
func (x *exchange) respond(res *http.Response) {
	defer res.Body.Close()
	h := x.Header()
	copyHeader(h, res.Header)
	httpverdict.SetHeaders(h, x.verdict)
	announced := len(res.Trailer)
	if announced > 0 {
		names := make([]string, 0, announced)
		for name := range res.Trailer {
			names = append(names, name)
		}
		h["Trailer"] = []string{strings.Join(names, ", ")}
	}
	x.WriteHeader(res.StatusCode)
	if err := x.copyBody(res); err != nil {
		if x.r.Context().Err() == nil && err != errClient {
			x.warn("the upstream broke off its answer", err)
		}
		x.abort()
	}
	x.copyTrailers(res, announced)
}

func (x *exchange) copyTrailers(res *http.Response, announced int) {
	if len(res.Trailer) == 0 {
		return
	}
	_ = http.NewResponseController(x.w).Flush() // trailers need chunks: keep net/http from counting a short body
	prefix := ""
	if len(res.Trailer) != announced {
		prefix = http.TrailerPrefix
	}
	h := x.Header()
	for name, values := range res.Trailer {
		if !hopByHop(name) {
			h[prefix+name] = values
		}
	}
}

// errClient says that the client, not the service, broke off.
var errClient = io.ErrClosedPipe

// copyBody passes a body on as it comes: what has been read is flushed before more is awaited, unless that was all.
func (x *exchange) copyBody(res *http.Response) error {
	left := res.ContentLength
	flush := func() error { return nil }
	if f, ok := x.w.(http.Flusher); ok {
		flush = func() error { f.Flush(); return nil }
	}
	if left < 0 && x.r.Method != http.MethodHead {
		flush() // the header at once: the first byte may be long in coming
	}
	buffer := x.g.buffers.Get().(*[copyBuffer]byte)
	defer x.g.buffers.Put(buffer)
	for {
		n, err := res.Body.Read(buffer[:])
		if n > 0 {
			if werr := x.send(buffer[:n]); werr != nil {
				return errClient
			}
			if left -= int64(n); left != 0 {
				flush()
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// send writes to the client. Over HTTP/2 a client that takes nothing stops its stream, not the connection, whose pace the
// server watches; so the stream has a pace of its own.
func (x *exchange) send(p []byte) error {
	if x.r.ProtoMajor < 2 {
		_, err := x.Write(p)
		return err
	}
	if x.writes == nil {
		pace := newPace(x.g.cfg.Stall, x.g.cfg.MinRate)
		x.writes = &pace
	}
	start := time.Now()
	if deadline, set := x.writes.arm(start); set {
		_ = http.NewResponseController(x.w).SetWriteDeadline(deadline)
	}
	n, err := x.Write(p)
	x.writes.spent(time.Since(start), n)
	return err
}

// copyHeader copies the headers of an answer that go on. Those of the gateway itself are set later and replace them.
func copyHeader(to, from http.Header) {
	for name, values := range from {
		if !hopByHop(name) && name != httpverdict.HeaderID {
			to[name] = values
		}
	}
	for _, line := range from["Connection"] {
		for option := range strings.SplitSeq(line, ",") {
			if option = textproto.TrimString(option); option != "" {
				to.Del(option)
			}
		}
	}
}

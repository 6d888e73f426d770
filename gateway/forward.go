package gateway

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"strings"
	"sync"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// copyBuffer is the size of the pieces in which bodies are passed on.
const copyBuffer = 32 << 10

// Bounds of what a service says before the body of its answer.
const (
	maxAnswerHead    = 1 << 20 // bytes of a header
	maxInformational = 16      // 1xx answers before the real one
)

var errInformational = errors.New("too many informational answers")

// earlyHints passes 1xx answers on. They come on a goroutine of the transport, until the real answer is there.
type earlyHints struct {
	x    *exchange
	mu   sync.Mutex
	over bool
	came int
}

func (e *earlyHints) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
}

func (e *earlyHints) pass(status int, header textproto.MIMEHeader) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.came++; e.came > maxInformational {
		return errInformational // the transport itself counts bytes only
	}
	// net/http sends 100 to the client by itself, when its body is read; 101 is an answer.
	if e.over || status == http.StatusContinue || status == http.StatusSwitchingProtocols {
		return nil
	}
	e.x.inform(status, http.Header(header))
	return nil
}

// inform passes a 1xx answer on to a client that knows them. One that waits for 100 gets no other: net/http may be writing
// that at the same time, from the goroutine that reads the body, and does not guard one against the other.
func (x *exchange) inform(status int, header http.Header) {
	if !x.r.ProtoAtLeast(1, 1) || x.r.Header["Expect"] != nil {
		return
	}
	h := x.w.Header()
	kept := maps.Clone(h)
	copyHeader(h, header)
	x.w.WriteHeader(status)
	clear(h)
	maps.Copy(h, kept)
}

// respond passes the answer of the service on.
func (x *exchange) respond(res *http.Response) {
	h := x.Header()
	copyHeader(h, res.Header)
	x.g.cfg.Renderer.SetHeaders(h, x.verdict)
	if _, given := h["Content-Type"]; !given {
		h["Content-Type"] = nil // else net/http would guess one
	}
	announced := len(res.Trailer)
	if announced > 0 {
		names := make([]string, 0, announced)
		for name := range res.Trailer {
			names = append(names, name)
		}
		h["Trailer"] = []string{strings.Join(names, ", ")}
		delete(h, "Content-Length") // HTTP/2 has both, HTTP/1.1 has trailers after chunks only
	}
	x.keep(res)
	x.WriteHeader(res.StatusCode)
	if err := x.copyBody(res); err != nil {
		if x.r.Context().Err() == nil && err != errClient {
			x.at.broke(err)
			x.warn("the upstream broke off its answer", err)
		}
		x.abort()
	}
	x.copyTrailers(res, announced)
}

// keep has an answer taken down that may be that of others.
func (x *exchange) keep(res *http.Response) {
	switch {
	case x.keeping == nil:
	case len(res.Trailer) > 0, endsWithConnection(res):
		x.keeping.Refuse()
	case x.keeping.Header(res.StatusCode, res.Header):
		res.Body = x.keeping.Body(res.Body)
	}
}

// endsWithConnection tells whether nothing but the end of the connection says where an answer ends, which a service that
// breaks off looks like as well.
func endsWithConnection(res *http.Response) bool {
	return res.ContentLength < 0 && res.ProtoMajor == 1 && len(res.TransferEncoding) == 0
}

func (x *exchange) copyTrailers(res *http.Response, announced int) {
	if len(res.Trailer) == 0 {
		return
	}
	x.Flush() // trailers need chunks: keep net/http from counting a short body
	prefix := ""
	if len(res.Trailer) != announced {
		prefix = http.TrailerPrefix
	}
	h := x.Header()
	for name, values := range res.Trailer {
		if !hopByHop(name) && name != "Content-Length" && name != httpverdict.HeaderID {
			h[prefix+name] = values
		}
	}
}

// errClient says that the client, not the service, broke off.
var errClient = errors.New("the client takes no more")

// copyBody passes a body on as it comes: what has come is flushed before more is awaited, unless that was all.
func (x *exchange) copyBody(res *http.Response) error {
	left := res.ContentLength
	if x.r.Method == http.MethodHead || left == 0 {
		return nil
	}
	if left < 0 {
		x.Flush() // the header at once: the first byte of a stream may be long in coming
	}
	buffer := x.g.buffers.Get().(*[copyBuffer]byte)
	defer x.g.buffers.Put(buffer)
	body := x.g.answers.begin(res)
	defer x.g.answers.end(body)
	for {
		n, err := body.Read(buffer[:])
		if n > 0 {
			if _, werr := x.Write(buffer[:n]); werr != nil {
				return errClient
			}
			left -= int64(n)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if left != 0 {
			x.Flush()
		}
	}
}

// copyHeader copies the headers of an answer that go on. Those of the gateway itself are set later and replace them.
func copyHeader(to, from http.Header) {
	for name, values := range from {
		if !hopByHop(name) && name != httpverdict.HeaderID && !isOption(from["Connection"], name) {
			to[name] = values
		}
	}
}

// isOption tells whether the lines of a Connection header name something.
func isOption(lines []string, name string) bool {
	for _, line := range lines {
		for option := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(textproto.TrimString(option), name) {
				return true
			}
		}
	}
	return false
}

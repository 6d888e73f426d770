package nethttpmw

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// recorder notes how a request was answered. The optional interfaces of the writer below it are kept by the types in
// combine.go, so that a type assertion in a handler says the truth.
type recorder struct {
	http.ResponseWriter
	status  int
	bytes   int64
	r       *http.Request
	verdict *httpverdict.Verdict // nil if its headers do not matter
	finish  *finisher            // nil if nobody wants to know how it was answered
	keep    *keep                // nil unless the answer may be that of others
}

// Unwrap lets http.ResponseController reach what the writer below can do.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *recorder) WriteHeader(status int) {
	// 1xx answers are followed by the real one; 101 is the real one.
	if r.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		r.begin(status)
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	r.answered()
	if r.keep != nil {
		held, err := r.take(p)
		switch {
		case err != nil:
			return 0, err
		case held:
			return len(p), nil
		}
	}
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	return n, err
}

// WriteString keeps io.WriteString from copying.
func (r *recorder) WriteString(s string) (int, error) {
	if r.keep != nil {
		return onlyWriter{r}.Write([]byte(s))
	}
	r.answered()
	n, err := io.WriteString(r.ResponseWriter, s)
	r.bytes += int64(n)
	return n, err
}

// answered notes the status that a write without a WriteHeader implies.
func (r *recorder) answered() {
	switch {
	case r.status != 0:
	case r.keep != nil:
		r.WriteHeader(http.StatusOK) // so that what the header is now is what is sent
	default:
		r.begin(http.StatusOK)
	}
}

// begin is called when the status is known and the header is what it will be. What caches give to others must not tell of who has asked.
func (r *recorder) begin(status int) {
	r.status = status
	if r.keep != nil {
		r.keep.begin(status, r.Header())
	}
	r.unshare(status)
}

func (r *recorder) unshare(status int) {
	if r.verdict != nil && httpverdict.Shared(r.r, status, r.Header()) {
		httpverdict.Unset(r.Header(), r.verdict)
	}
}

// over is called when the handler has returned: net/http answers for one that has written nothing.
func (r *recorder) over() {
	if r.status == 0 && (r.finish == nil || !r.finish.hijacked) {
		r.unshare(http.StatusOK)
	}
}

func (r *recorder) flush() error {
	r.answered()
	if r.keep != nil {
		if err := r.letGo(); err != nil {
			return err
		}
	}
	return http.NewResponseController(r.ResponseWriter).Flush()
}

func (r *recorder) readFrom(src io.Reader) (int64, error) {
	if r.keep != nil {
		return io.Copy(onlyWriter{r}, src)
	}
	r.answered()
	n, err := r.ResponseWriter.(io.ReaderFrom).ReadFrom(src)
	r.bytes += n
	return n, err
}

// hijack hands out the connection in a form that tells when it is closed: a handler may return long before.
func (r *recorder) hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(r.ResponseWriter).Hijack()
	if err != nil {
		return conn, rw, err
	}
	if r.keep != nil {
		r.keep.taking.Refuse()
	}
	if r.finish == nil {
		return conn, rw, nil
	}
	r.finish.hijacked = true
	r.finish.pending.Add(1)
	counted := &hijackedConn{Conn: conn, finish: r.finish}
	rw.Writer.Reset(counted)
	return counted, rw, nil
}

// finisher calls Done once: when the handler has returned and, if it took the connection over, that has been closed.
type finisher struct {
	verdict  *httpverdict.Verdict
	ctx      context.Context
	rec      *recorder
	body     *body
	head     bool // whether the answer has no body, whatever the handler writes
	returned bool // whether the handler came back rather than panicked
	hijacked bool
	once     sync.Once
	pending  atomic.Int32 // what is awaited beside the handler
	sent     atomic.Int64 // bytes written to a hijacked connection
}

// release is called when the handler is over and when a hijacked connection is closed; the last of them reports. It does
// not wait for the connection of a handler that panicked: nobody may be left to close it.
func (f *finisher) release() {
	if f.pending.Add(-1) < 0 {
		f.report()
	}
}

func (f *finisher) handlerOver() {
	if !f.returned {
		f.report()
	}
	f.release()
}

func (f *finisher) report() {
	f.once.Do(func() { f.verdict.Finish(f.ctx, f.result()) })
}

func (f *finisher) result() httpverdict.Result {
	res := httpverdict.Result{Status: f.rec.status, Bytes: f.rec.bytes, RequestBytes: f.body.came()}
	if f.head {
		res.Bytes = 0
	}
	switch {
	case f.hijacked:
		res.Status = http.StatusSwitchingProtocols
		res.Bytes += f.sent.Load()
	case res.Status == 0 && f.returned:
		res.Status = http.StatusOK // net/http answers for a handler that writes nothing
	}
	if res.Status != 0 && !f.hijacked {
		res.Header = f.rec.Header()
	}
	return res
}

// hijackedConn counts what is written and reports its first Close.
type hijackedConn struct {
	net.Conn
	finish *finisher
	once   sync.Once
}

// NetConn returns the connection below, as tls.Conn does.
func (c *hijackedConn) NetConn() net.Conn { return c.Conn }

func (c *hijackedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.finish.sent.Add(int64(n))
	return n, err
}

func (c *hijackedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.finish.release)
	return err
}

// CloseWrite closes the writing side where the connection can.
func (c *hijackedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return http.ErrNotSupported
}

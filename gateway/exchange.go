package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/middleware/stale"
)

// exchange is one request on its way. It is the ResponseWriter through which everything is answered, so that status and
// bytes are known.
type exchange struct {
	g       *Gateway
	w       http.ResponseWriter
	r       *http.Request
	judged  *httpverdict.Request
	verdict *httpverdict.Verdict
	body    *pacedBody // nil without a body, and until it is read
	writes  *pace      // of an HTTP/2 stream
	websock bool
	// reserved: it is for Config.Reserved, and no answer to it is kept.
	reserved bool
	keeping  *stale.Keeping // nil unless the answer may be that of others
	at       attempt        // at the upstream that has the request

	looks   sync.Mutex // guards what follows while the policy decides
	ahead   *httpverdict.PeekedBody
	decided bool

	start              time.Time
	upstreamTime, rest time.Duration
	servedBy           string
	status             int
	bytes              int64
	switched           http.Header // of the answer that began a tunnel
}

func (x *exchange) Header() http.Header { return x.w.Header() }

// Unwrap is for http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.w }

func (x *exchange) WriteHeader(status int) {
	if x.status == 0 && status >= 200 {
		x.status = status
		x.boundRest(false)
		if x.verdict != nil && httpverdict.Shared(x.r, status, x.Header()) {
			httpverdict.Unset(x.Header(), x.verdict)
		}
	}
	x.w.WriteHeader(status)
}

func (x *exchange) Write(p []byte) (int, error) {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	write := x.w.Write
	if x.r.ProtoMajor >= 2 {
		write = x.writeStream
	}
	n, err := write(p)
	x.bytes += int64(n)
	return n, err
}

// writeStream writes to a client of HTTP/2. One that takes nothing stops its stream, not the connection, whose pace the
// server watches; so the stream has a pace of its own.
func (x *exchange) writeStream(p []byte) (n int, err error) {
	return x.pacing().write(p, x.w.Write, http.NewResponseController(x.w).SetWriteDeadline)
}

func (x *exchange) pacing() *pace {
	if x.writes == nil {
		pace := newPace(x.g.cfg.Stall, x.g.cfg.MinRate)
		x.writes = &pace
	}
	return x.writes
}

// Flush is FlushError for those who ask for an http.Flusher.
func (x *exchange) Flush() { _ = x.FlushError() }

// FlushError sends what was written. The deadline of a stream of HTTP/2 ends the stream whether or not anything is being written
// when it comes: after a flush nobody waits for the client any more, and the stream may be silent.
func (x *exchange) FlushError() error {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	control := http.NewResponseController(x.w)
	if x.r.ProtoMajor < 2 {
		return control.Flush()
	}
	return x.pacing().flush(control.Flush, control.SetWriteDeadline)
}

func (x *exchange) serve() {
	if !x.r.ProtoAtLeast(1, 1) {
		// net/http ignores a transfer coding in HTTP/1.0, others do not: nothing after such a request can be trusted.
		x.Header().Set("Connection", "close")
	}
	if err := x.inspect(); err != nil {
		x.fail(err)
		return
	}
	req, err := httpverdict.FromHTTP(x.r)
	if err != nil {
		x.g.cfg.Renderer.Write(x, x.r, httpverdict.Malformed(err))
		return
	}
	x.judged = req
	if x.reserved = isReserved(req.Path); x.reserved && x.g.cfg.Reserved == nil {
		x.fail(faultNothingHere())
		return
	}
	if req.Path == "*" {
		x.fail(faultMalformed(words{"the path * has no meaning for " + x.r.Method, "路径 * 对 " + x.r.Method + " 没有意义"}))
		return
	}
	if hasBody(x.r) {
		req.Body = looking{x}
	}
	x.verdict = x.g.cfg.Decider.Decide(x.r.Context(), req)
	x.endLooks()
	if !x.verdict.Allowed() {
		x.deny(x.verdict)
		return
	}
	x.pass()
}

// deny answers with what is kept, or with the denial.
func (x *exchange) deny(v *httpverdict.Verdict) {
	if a := x.kept(x.g.cfg.Stale.Kept); a != nil {
		x.give(a)
		return
	}
	x.g.cfg.Renderer.Write(x, x.r, v)
}

// query is the request as it is told apart from others whose answers are kept.
func (x *exchange) query() *stale.Query {
	q := stale.QueryOf(x.g, x.r, x.judged, x.verdict.Stale)
	q.Believed = x.believed()
	return q
}

// give answers with what is kept.
func (x *exchange) give(a *stale.Answer) {
	h := x.Header()
	x.g.cfg.Renderer.SetHeaders(h, x.verdict)
	delete(h, "Retry-After") // here is the answer
	h["Content-Type"] = nil  // unless the service has given one
	a.Write(x, x.r)
}

// pass hands an allowed request on, after its wait.
func (x *exchange) pass() {
	v := x.verdict
	if err := x.g.holds.Wait(x.r.Context(), v.Wait); err != nil {
		x.deny(v.Overload())
		return
	}
	switch {
	case x.reserved:
		x.serveReserved()
		return
	case len(x.g.pool.all) == 0:
		x.fail(faultNothingHere())
		return
	}
	if v.Stale != nil && v.Over == "" { // what a marked request is told is for it alone
		a, keeping := x.g.cfg.Stale.Join(x.r.Context(), x.query())
		if a != nil {
			x.give(a)
			return
		}
		if keeping != nil {
			x.keeping = keeping
			defer keeping.Close()
		}
	}
	if !x.g.enter() {
		x.noPlace("overloaded", v.Wait)
		return
	}
	defer x.g.leave()
	x.forward()
}

func hasBody(r *http.Request) bool {
	return r.ContentLength != 0 && r.Body != nil && r.Body != http.NoBody
}

// finish reports a request that is over, also when the handler is aborted.
func (x *exchange) finish() {
	x.leaveBody()
	if x.verdict != nil {
		x.verdict.Finish(x.r.Context(), x.result())
	}
	if x.g.cfg.Observe == nil && x.g.cfg.AccessLog == nil {
		return
	}
	e := Event{
		Request: x.r, Verdict: x.verdict, Status: x.status, Bytes: x.bytes,
		ServedBy: x.servedBy, Duration: time.Since(x.start), Upstream: x.upstreamTime, Body: x.rest,
	}
	if x.verdict != nil {
		e.Judged = x.judged
	}
	if x.g.cfg.Observe != nil {
		x.g.cfg.Observe(&e)
	}
	if x.g.cfg.AccessLog != nil {
		x.log(&e)
	}
}

func (x *exchange) result() httpverdict.Result {
	res := httpverdict.Result{Status: x.status, Bytes: x.bytes, RequestBytes: x.body.read()}
	switch {
	case x.switched != nil:
		res.Header = x.switched
	case x.status != 0:
		res.Header = x.Header()
	}
	return res
}

func (x *exchange) log(e *Event) {
	attrs := make([]slog.Attr, 0, 13)
	attrs = append(attrs, slog.String("method", x.r.Method), slog.String("host", x.r.Host))
	if x.judged != nil {
		attrs = append(attrs, slog.String("path", x.judged.Path), slog.String("peer", x.judged.Peer.String()))
	}
	attrs = append(attrs, slog.String("proto", x.r.Proto), slog.Int("status", e.Status), slog.Int64("bytes", e.Bytes),
		slog.Duration("duration", e.Duration), slog.Duration("upstream", e.Upstream))
	if e.ServedBy != "" {
		attrs = append(attrs, slog.String("served_by", e.ServedBy))
	}
	if v := e.Verdict; v != nil {
		attrs = append(attrs, slog.String("verdict", v.Kind.String()), slog.String("rule", v.Rule), slog.String("id", v.ID))
		if v.ClientIP.IsValid() {
			attrs = append(attrs, slog.String("client", v.ClientIP.String()))
		}
	}
	x.g.cfg.AccessLog.LogAttrs(context.WithoutCancel(x.r.Context()), slog.LevelInfo, "request", attrs...)
}

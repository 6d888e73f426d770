package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// fault is an answer of the gateway itself: no verdict of the policy, and no answer of the service.
type fault struct {
	status int
	code   string // a stable word
	detail string // for the person at the other end
	close  bool   // whether the connection ends: what follows on it cannot be trusted
}

func faultMalformed(what string) *fault {
	return &fault{
		status: http.StatusBadRequest, code: string(httpverdict.CodeMalformedRequest),
		detail: "The request is malformed: " + what + ".", close: true,
	}
}

func faultLongBody() *fault {
	return &fault{
		status: http.StatusRequestEntityTooLarge, code: "body_too_large",
		detail: "The body of the request is too long.", close: true,
	}
}

// fail answers with a problem document (RFC 9457).
func (x *exchange) fail(f *fault) {
	id := httpverdict.NewID()
	if x.verdict != nil && x.verdict.ID != "" {
		id = x.verdict.ID
	}
	body, err := json.Marshal(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
		Code   string `json:"code"`
		ID     string `json:"id"`
	}{"about:blank", http.StatusText(f.status), f.status, f.detail, f.code, id})
	if err != nil { // cannot be: strings and integers only
		body = []byte("{}")
	}
	body = append(body, '\n')
	h := x.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	h.Set(httpverdict.HeaderID, id)
	if f.close && x.r.ProtoMajor == 1 { // another stream of an HTTP/2 connection is nobody's business here
		h.Set("Connection", "close")
	}
	x.WriteHeader(f.status)
	if x.r.Method != http.MethodHead {
		_, _ = x.Write(body) // the client has gone: nobody is left to tell
	}
}

// upstreamFailed answers for a service that has not. The fault may be the client's: its body is read while the request is
// sent.
func (x *exchange) upstreamFailed(err error) {
	switch failure := x.body.failure(); {
	case errors.Is(failure, errSlowBody): // before the context, which net/http ends when a read has failed
		x.fail(&fault{status: http.StatusRequestTimeout, code: "body_too_slow", detail: "The body of the request came too slowly.", close: true})
		return
	case errors.Is(failure, errLongBody):
		x.fail(faultLongBody())
		return
	case x.r.Context().Err() != nil:
		x.abort()
	case failure != nil:
		x.fail(faultMalformed("its body cannot be read"))
		return
	}
	f := &fault{status: http.StatusBadGateway, code: "upstream_unreachable", detail: "The service cannot be reached. Please try again later."}
	if isTimeout(err) {
		f = &fault{status: http.StatusGatewayTimeout, code: "upstream_timeout", detail: "The service does not answer. Please try again later."}
	}
	x.warn("the upstream did not answer", err)
	x.fail(f)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// warn logs a fault of the service.
func (x *exchange) warn(message string, err error) {
	x.g.cfg.Logger.LogAttrs(context.WithoutCancel(x.r.Context()), slog.LevelWarn, message,
		slog.String("upstream", x.g.up.host), slog.String("method", x.r.Method), slog.String("path", x.judged.Path),
		slog.String("id", x.verdict.ID), slog.Any("error", err))
}

// abort ends the connection, or stream, so that what was sent cannot be taken for a whole answer. net/http recovers the
// panic. HTTP/1.0 has no other end of a body than that of the connection, so there it must end in a reset.
func (x *exchange) abort() {
	if conn := connOf(x.r.Context()); conn != nil && !x.r.ProtoAtLeast(1, 1) {
		conn.reset()
	}
	panic(http.ErrAbortHandler) //nolint:forbidigo // the only way that net/http knows
}

package gateway

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// ReservedPrefix is the part of the path space that is never forwarded.
const ReservedPrefix = "/_headgate/"

func isReserved(path string) bool {
	return strings.HasPrefix(path, ReservedPrefix) || path == ReservedPrefix[:len(ReservedPrefix)-1]
}

// Judged is what a policy was asked about a request, and what it said.
type Judged struct {
	Request *httpverdict.Request
	Verdict *httpverdict.Verdict
}

// judgedKey is where a Gateway keeps the Judged in the context of what it hands to Config.Reserved.
type judgedKey struct{}

// JudgedOf returns what was judged of a request that Config.Reserved is handed; ok is false of any other request.
func JudgedOf(ctx context.Context) (j Judged, ok bool) {
	j, ok = ctx.Value(judgedKey{}).(Judged)
	return j, ok
}

// serveReserved hands an allowed request to Config.Reserved as a service would get it: with the judged path, the headers that
// pass, and a body at a pace.
func (x *exchange) serveReserved() {
	if most := x.g.cfg.MaxRequestBody; most > 0 && x.r.ContentLength > most {
		x.fail(faultLongBody())
		return
	}
	r := x.r.WithContext(context.WithValue(x.r.Context(), judgedKey{}, Judged{x.judged, x.verdict}))
	r.URL = &url.URL{RawQuery: x.r.URL.RawQuery}
	if err := httpverdict.SetPath(r.URL, x.judged.Path); err != nil {
		x.fail(faultMalformed(words{"its path cannot be read", "无法读取路径"}))
		return
	}
	r.Header = make(http.Header, len(x.r.Header)+6)
	x.outgoingHeader(r.Header)
	if x.openBody(); x.body != nil {
		r.Body = x.outgoingBody()
	}
	x.g.cfg.Renderer.SetHeaders(x.Header(), x.verdict)
	x.g.cfg.Reserved.ServeHTTP(x, r)
	if x.status == 0 {
		x.WriteHeader(http.StatusOK) // as net/http would, for a handler that writes nothing
	}
}

package gateway

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// outgoing returns the request to an upstream: the judged path and host, the headers that pass, the body as a stream.
func (x *exchange) outgoing(ctx context.Context, up *endpoint) *http.Request {
	r := x.r
	out := r.WithContext(ctx)
	out.URL = &url.URL{
		Scheme: up.scheme, Host: up.host, Opaque: up.base + x.judged.Path,
		RawQuery: r.URL.RawQuery, ForceQuery: r.URL.ForceQuery,
	}
	out.Header = make(http.Header, len(r.Header)+6)
	x.outgoingHeader(out.Header)
	out.RequestURI, out.TransferEncoding, out.Close, out.Trailer = "", nil, false, nil
	out.Body = nil // nil lets the transport repeat a request on a connection that the service had just closed
	if x.body != nil {
		out.Body = x.outgoingBody()
		if out.Trailer = x.body.trailer; out.Trailer != nil {
			out.ContentLength = -1 // HTTP/1.1 has trailers after chunks only
		}
		// A body that the service was asked about and refuses is sent all the same if the connection is to be kept.
		out.Close = x.r.Header["Expect"] != nil && up.scheme == "http" && !up.h2c
	}
	return out
}

// outgoingHeader fills an empty header: it shares the values of those that pass, and adds the gateway's own.
func (x *exchange) outgoingHeader(out http.Header) {
	in := x.r.Header
	peer := hostOnly(x.r.RemoteAddr)
	believed := x.believed()
	for name, values := range in {
		if x.g.passes(name, believed) {
			out[name] = values
		}
	}
	own := make([]string, 0, 8) // one allocation for all values
	set := func(name, value string) {
		own = append(own, value)
		out[name] = own[len(own)-1 : len(own) : len(own)]
	}
	setMissing := func(name, value string) {
		if _, given := out[name]; !given {
			set(name, value)
		}
	}
	if prior := out["X-Forwarded-For"]; len(prior) > 0 {
		set("X-Forwarded-For", strings.Join(prior, ", ")+", "+peer)
	} else {
		set("X-Forwarded-For", peer)
	}
	if prior := out["Forwarded"]; len(prior) > 0 {
		set("Forwarded", strings.Join(prior, ", ")+", for="+forwardedNode(x.judged.Peer))
	}
	if x.verdict.ClientIP.IsValid() {
		set("X-Real-Ip", x.verdict.ClientIP.String())
	} else {
		set("X-Real-Ip", peer)
	}
	setMissing("X-Forwarded-Host", x.r.Host)
	setMissing("X-Forwarded-Proto", scheme(x.r))
	if x.verdict.ID != "" {
		set(httpverdict.HeaderID, x.verdict.ID)
	}
	if x.verdict.Over != "" {
		set(httpverdict.HeaderOver, x.verdict.Over)
	}
	if asksForTrailers(in) {
		set("Te", "trailers")
	}
	if x.websock {
		set("Connection", "Upgrade")
		set("Upgrade", "websocket")
	}
	if _, given := out["User-Agent"]; !given {
		out["User-Agent"] = nil // else net/http would add its own
	}
}

// believed tells whether the policy believes what the peer says of where the request came from.
func (x *exchange) believed() bool {
	return x.verdict.ClientIP.IsValid() && x.verdict.ClientIP != x.judged.Peer
}

func scheme(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

func asksForTrailers(h http.Header) bool {
	for _, line := range h["Te"] {
		for coding := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(coding), "trailers") {
				return true
			}
		}
	}
	return false
}

// hostOnly returns the address without port, brackets and zone, without an allocation.
func hostOnly(remote string) string {
	if i := strings.LastIndexByte(remote, ':'); i >= 0 {
		remote = remote[:i]
	}
	remote = strings.TrimSuffix(strings.TrimPrefix(remote, "["), "]")
	remote, _, _ = strings.Cut(remote, "%")
	return remote
}

// forwardedNode writes an address as RFC 7239 wants it.
func forwardedNode(addr netip.Addr) string {
	switch {
	case !addr.IsValid():
		return "unknown"
	case addr.Is6():
		return `"[` + addr.String() + `]"`
	}
	return addr.String()
}

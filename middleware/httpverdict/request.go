package httpverdict

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	headgate "github.com/headgate-io/headgate"
)

// CodeMalformedRequest is the code of a request that cannot be judged, in errors of [FromHTTP] and in verdicts.
const CodeMalformedRequest headgate.Code = "malformed_request"

// FromHTTP returns what a policy needs to see of a request. It shares the request's header. The error, a
// [*headgate.Error] of [CodeMalformedRequest], says what cannot be judged; answer it with [Malformed].
func FromHTTP(r *http.Request) (*Request, error) {
	path, err := CleanPath(rawPath(r.URL))
	if err != nil {
		return nil, err
	}
	method := r.Method
	if method == "" {
		method = http.MethodGet
	}
	return &Request{
		Method:        method,
		Host:          CleanHost(r.Host),
		Path:          path,
		RawQuery:      r.URL.RawQuery,
		Peer:          PeerAddr(r.RemoteAddr),
		Header:        r.Header,
		ContentLength: r.ContentLength,
	}, nil
}

// Malformed returns the verdict for a request that [FromHTTP] refused.
func Malformed(err error) *Verdict {
	detail := "The request is malformed."
	if headgate.CodeOf(err) == CodeMalformedRequest {
		detail = "The request is malformed: " + err.Error() + "."
	}
	return &Verdict{Kind: BadRequest, ID: NewID(), Code: string(CodeMalformedRequest), Detail: detail, Binding: -1}
}

// rawPath returns the path as it was sent, as far as net/url still knows: EscapedPath alone would show a raw backslash
// only in its encoded form.
func rawPath(u *url.URL) string {
	if u.Path == "" && u.RawPath == "" {
		return "/"
	}
	if u.RawPath != "" {
		if plain, err := url.PathUnescape(u.RawPath); err == nil && plain == u.Path {
			return u.RawPath
		}
	}
	return u.EscapedPath()
}

// CleanHost returns a host in lower case, without its port, brackets and trailing dot.
func CleanHost(host string) string {
	switch {
	case strings.HasPrefix(host, "["):
		if end := strings.IndexByte(host, ']'); end > 0 {
			host = host[1:end]
		}
	case strings.Count(host, ":") == 1:
		host = host[:strings.IndexByte(host, ':')]
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// PeerAddr reads the address of a connection from a text such as "192.0.2.1:1234", with or without a port. An IPv4
// address in IPv6 form becomes IPv4, and a zone is dropped. The address is invalid if the text is none.
func PeerAddr(remote string) netip.Addr {
	if ap, err := netip.ParseAddrPort(remote); err == nil {
		return ap.Addr().Unmap().WithZone("")
	}
	host := remote
	if h, _, err := net.SplitHostPort(remote); err == nil {
		host = h
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}
	}
	return addr.Unmap().WithZone("")
}

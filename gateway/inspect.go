package gateway

import (
	"net/http"
	"net/textproto"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// inspect refuses what could be read in two ways by the policy, by this gateway and by the service behind it. net/http has
// refused malformed framing before.
func (x *exchange) inspect() *fault {
	r := x.r
	switch {
	case r.Method == http.MethodConnect || r.Method == http.MethodTrace:
		return &fault{status: http.StatusMethodNotAllowed, code: "method_not_allowed", close: true,
			detail: words{"The method " + r.Method + " is not forwarded.", "不转发 " + r.Method + " 方法。"}}
	case !plainMethod(r.Method):
		return faultMalformed(words{"the method is not a word of capital letters", "方法名须为大写字母"})
	case !plainHost(r.Host):
		return faultMalformed(words{"the host is missing or malformed", "主机名缺失或有误"})
	case r.URL.Opaque != "":
		return faultMalformed(words{"the target is neither a path nor a URL with a host", "请求目标既不是路径，也不是带主机名的网址"})
	case !plainQuery(r.URL.RawQuery):
		return faultMalformed(words{"the query has a space, a control character or a number sign", "查询串含有空格、控制字符或井号"})
	}
	for name := range r.Trailer {
		if !httpguts.ValidHeaderFieldName(name) {
			return faultMalformed(words{"Trailer names what is no header", "Trailer 中的名称不是合法的头部名"})
		}
	}
	upgrade, f := connectionOptions(r.Header)
	if f != nil {
		return f
	}
	x.websock = upgrade && isWebsocket(r)
	return nil
}

// plainMethod refuses small letters, for "post" is another method than POST for a policy and the same for some services,
// and what is no method at all: net/http's HTTP/2 passes spaces, which would end the request line of HTTP/1.1.
func plainMethod(method string) bool {
	for i := 0; i < len(method); i++ {
		if c := method[i]; (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return method != ""
}

// plainHost accepts names, addresses and ports: no user, path, list or space, in which services differ.
func plainHost(host string) bool {
	if host == "" {
		return false
	}
	for i := 0; i < len(host); i++ {
		c := host[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.', c == '_', c == ':':
		case c == '[' || c == ']' || c == '%' || c == '~':
		default:
			return false
		}
	}
	return true
}

// plainQuery refuses what would end or split the request line of HTTP/1.1. Over HTTP/2 a query can hold a space.
func plainQuery(query string) bool {
	for i := 0; i < len(query); i++ {
		if c := query[i]; c <= ' ' || c == 0x7f || c == '#' {
			return false
		}
	}
	return true
}

// connectionOptions tells whether an upgrade is asked for. An option that names a header of this request is refused:
// a proxy must remove that header, and whoever stands between client and policy must not lose what it vouches for.
func connectionOptions(h http.Header) (upgrade bool, f *fault) {
	for _, line := range h["Connection"] {
		for option := range strings.SplitSeq(line, ",") {
			option = textproto.TrimString(option)
			if option == "" || option == "close" || option == "keep-alive" {
				continue
			}
			name := textproto.CanonicalMIMEHeaderKey(option)
			if name == "Upgrade" {
				upgrade = true
				continue
			}
			if _, named := h[name]; (named && !hopByHop(name)) || name == "Host" {
				return false, faultMalformed(words{"Connection names the header " + name, "Connection 点名了请求头 " + name})
			}
		}
	}
	return upgrade, nil
}

// isWebsocket tells whether the one upgrade that is passed is what is asked for.
func isWebsocket(r *http.Request) bool {
	values := r.Header["Upgrade"]
	return r.ProtoMajor == 1 && r.ProtoMinor == 1 && r.Method == http.MethodGet && len(values) == 1 &&
		strings.EqualFold(values[0], "websocket") && r.ContentLength == 0
}

// hopByHop names the headers that end at this hop, in requests and answers.
func hopByHop(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade", "Http2-Settings":
		return true
	}
	return false
}

// passes tells whether a header of the request is forwarded. believed says that the policy believes the peer's forwarding
// headers.
func (g *Gateway) passes(name string, believed bool) bool {
	switch name {
	case "Content-Length", "Host", httpverdict.HeaderID, httpverdict.HeaderOver, "X-Real-Ip":
		return false // set anew
	case "Headgate_over", "Headgate_id": // whatever reads them as the real ones
		return false
	case "Forwarded", "X-Original-Url", "X-Rewrite-Url":
		return believed
	}
	switch {
	case hopByHop(name):
		return false
	case strings.HasPrefix(name, "X-Forwarded-"):
		return believed
	case strings.IndexByte(name, '_') >= 0:
		return g.cfg.KeepUnderscores
	}
	return true
}

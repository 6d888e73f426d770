package stale

import (
	"crypto/sha256"
	"encoding/binary"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// Query is a request with what its verdict says of stale answers.
type Query struct {
	Method string
	// Host is as the service sees it, with its port; TLS tells whether the client used it.
	Host string
	TLS  bool
	// Path and RawQuery are as they were judged.
	Path, RawQuery string
	// Header is read, never written.
	Header        http.Header
	ContentLength int64
	Stale         *httpverdict.Stale
	// Certificate is the client's, as it came in the handshake; "" for none.
	Certificate string
	// Believed tells that the service gets what the request says of where it came from, such as X-Forwarded-Host. A front that
	// takes it away from some requests has it false for these.
	Believed bool
	// Scope tells services apart that answer the same address differently; comparable, nil where there is but one.
	Scope any
}

// QueryOf returns the Query of a request that was judged.
func QueryOf(scope any, r *http.Request, judged *httpverdict.Request, s *httpverdict.Stale) *Query {
	q := &Query{
		Scope: scope, Method: judged.Method, Host: r.Host, TLS: r.TLS != nil, Path: judged.Path, RawQuery: judged.RawQuery,
		Header: r.Header, ContentLength: r.ContentLength, Stale: s, Believed: true,
	}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		q.Certificate = string(r.TLS.PeerCertificates[0].Raw)
	}
	return q
}

// key is what must be equal for one request to get the answer of another, beside what Vary names. It is of one size, however
// much a client writes: keys are remembered for a while.
type key struct {
	// address is a digest of host, path and query, of the identity with its credentials, and of where the request came from.
	address            [sha256.Size]byte
	public, authorized bool
	scope              any
}

func (q *Query) key() key {
	k := key{scope: q.Scope, public: q.Stale.Identity == ""}
	text := make(parts, 0, 512).add(strings.ToLower(q.Host)).add(q.Path).add(q.RawQuery).add(q.Stale.Identity)
	if q.TLS {
		text = text.add("tls")
	}
	if k.public {
		k.authorized = len(q.Header["Authorization"]) > 0
	} else {
		text = text.addFields(q.Header, "Authorization").addFields(q.Header, "Cookie").add(q.Certificate)
	}
	k.address = sha256.Sum256(q.addOrigin(text))
	return k
}

// parts is a text of parts, of which no two lists look alike.
type parts []byte

func (p parts) add(part string) parts {
	return append(binary.AppendUvarint(p, uint64(len(part))), part...)
}

func (p parts) addFields(h http.Header, name string) parts {
	p = p.add(name)
	for _, value := range h[name] {
		p = p.add(value)
	}
	return p
}

// addOrigin adds the headers that change what services write into links and redirects; few services name them in Vary.
func (q *Query) addOrigin(text parts) parts {
	names := make([]string, 0, 4)
	for name := range q.Header {
		if tellsOrigin(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	before := len(text)
	for _, name := range names {
		if name == "Forwarded" {
			text = text.addForwarded(q.Header[name])
		} else {
			text = text.addFields(q.Header, name)
		}
	}
	if len(text) > before && q.Believed {
		text = text.add("believed")
	}
	return text
}

// tellsOrigin names headers that say where a request came from, but for the address of who sent it.
func tellsOrigin(name string) bool {
	switch name = plain(name); name {
	case "Forwarded", "X-Forwarded", "X-Host", "X-Original-Host", "X-Original-Uri", "X-Original-Url", "X-Rewrite-Url", "X-Http-Host-Override",
		"X-Scheme", "X-Url-Scheme", "Front-End-Https":
		return true
	}
	return strings.HasPrefix(name, "X-Forwarded-") && name != "X-Forwarded-For"
}

// addForwarded leaves out whom a request came from and through whom: each client has its own.
func (p parts) addForwarded(lines []string) parts {
	for _, line := range lines {
		for pair := range strings.FieldsFuncSeq(line, func(c rune) bool { return c == ',' || c == ';' }) {
			if low := strings.ToLower(pair); strings.Contains(low, "host") || strings.Contains(low, "proto") {
				p = p.add("Forwarded").add(strings.TrimSpace(pair))
			}
		}
	}
	return p
}

// overrides names the headers by which a client has some services take a GET for another method.
var overrides = [...]string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}

func (q *Query) conditional() bool {
	return len(q.Header["If-None-Match"]) > 0 || len(q.Header["If-Modified-Since"]) > 0
}

// answerable tells whether a request can be given a kept answer.
func (q *Query) answerable() bool {
	if q.Stale == nil || q.Method != http.MethodGet && q.Method != http.MethodHead || q.ContentLength != 0 || len(q.Header["Upgrade"]) > 0 {
		return false
	}
	for name, values := range q.Header {
		if len(values) > 0 && slices.Contains(overrides[:], plain(name)) {
			return false
		}
	}
	return true
}

// plain is the name of a header as CGI and WSGI have it, which take X_Host for X-Host.
func plain(name string) string {
	if strings.IndexByte(name, '_') < 0 {
		return name
	}
	return textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "_", "-"))
}

// shareable tells whether the answer to a request may be that of others. HEAD has half an answer, and so has a range.
func (q *Query) shareable() bool {
	if !q.answerable() || q.Method != http.MethodGet {
		return false
	}
	for _, name := range [...]string{"Range", "If-Range", "If-Match", "If-Unmodified-Since"} {
		if len(q.Header[name]) > 0 {
			return false
		}
	}
	return true
}

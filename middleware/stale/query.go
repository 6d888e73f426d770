package stale

import (
	"crypto/sha256"
	"fmt"
	"net/http"
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
	// Scope tells services apart that answer the same address differently; comparable, nil where there is but one.
	Scope any
}

// QueryOf returns the Query of a request that was judged.
func QueryOf(scope any, r *http.Request, judged *httpverdict.Request, s *httpverdict.Stale) *Query {
	return &Query{
		Scope: scope, Method: judged.Method, Host: r.Host, TLS: r.TLS != nil, Path: judged.Path, RawQuery: judged.RawQuery,
		Header: r.Header, ContentLength: r.ContentLength, Stale: s,
	}
}

// key is what must be equal for one request to get the answer of another, beside what Vary names.
type key struct {
	host, path, query string
	identity          string // "" for everybody
	origin            string // where proxies say that the request came from
	credentials       [sha256.Size]byte
	tls, authorized   bool
	scope             any
}

// originHeaders change what services write into links and redirects, and few services name them in Vary.
var originHeaders = [...]string{
	"X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Scheme", "X-Forwarded-Server",
	"X-Host", "X-Original-Host", "X-Original-Url", "X-Rewrite-Url", "X-Http-Method-Override", "X-Method-Override",
}

func (q *Query) key() key {
	k := key{host: strings.ToLower(q.Host), path: q.Path, query: q.RawQuery, identity: q.Stale.Identity, tls: q.TLS, scope: q.Scope}
	if k.identity == "" {
		k.authorized = len(q.Header["Authorization"]) > 0
	} else {
		k.credentials = q.credentials()
	}
	for _, name := range originHeaders {
		for _, value := range q.Header[name] {
			k.origin += name + ":" + value + "\n"
		}
	}
	for _, value := range q.Header["Forwarded"] {
		if low := strings.ToLower(value); strings.Contains(low, "host=") || strings.Contains(low, "proto=") {
			k.origin += "Forwarded:" + value + "\n"
		}
	}
	return k
}

// credentials is a digest of what may tell one user from another: an identity can be an address that many share.
func (q *Query) credentials() (sum [sha256.Size]byte) {
	digest := sha256.New()
	for _, name := range [...]string{"Authorization", "Cookie"} {
		for _, value := range q.Header[name] {
			fmt.Fprintf(digest, "%s:%d:%s\n", name, len(value), value)
		}
	}
	digest.Sum(sum[:0])
	return sum
}

func (q *Query) conditional() bool {
	return len(q.Header["If-None-Match"]) > 0 || len(q.Header["If-Modified-Since"]) > 0
}

// answerable tells whether a request can be given a kept answer.
func (q *Query) answerable() bool {
	return q.Stale != nil && (q.Method == http.MethodGet || q.Method == http.MethodHead) && q.ContentLength == 0 &&
		len(q.Header["Upgrade"]) == 0
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

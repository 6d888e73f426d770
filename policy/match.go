package policy

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// match tells which requests a rule is about. Empty fields match everything.
type match struct {
	methods    methodSet
	hosts      []string // "example.com", or ".example.com" for every host below it
	paths      []pattern
	headers    []headerMatch
	ignoreCase bool
}

// headerMatch is a header that a request must have, in any of its lines.
type headerMatch struct {
	name, value string
	any         bool // any value but an empty one
}

// pattern is a path pattern.
type pattern struct {
	text     string
	segments []segment
	prefix   bool // ends in /**
}

// segment is a literal, decoded, or a parameter.
type segment struct {
	literal string
	param   bool
}

func (s scope) decodeMatch(n *node) match {
	var m match
	if n == nil {
		return m
	}
	s.where += ": match"
	fields := s.fields(n, matchMapping)
	m.ignoreCase = s.boolean(fields["ignore_case"], "ignore_case")
	if m.ignoreCase && fields["paths"] == nil {
		s.fail(fields["ignore_case"].pos, "ignore_case is about paths, and there are none")
	}
	for _, item := range s.notEmpty(fields["methods"], "methods", 32) {
		s.decodeMethod(item, &m)
	}
	for _, item := range s.notEmpty(fields["hosts"], "hosts", 1000) {
		s.decodeHost(item, &m)
	}
	for _, item := range s.notEmpty(fields["paths"], "paths", 1000) {
		s.decodePath(item, &m)
	}
	if n := fields["headers"]; n != nil {
		s.decodeHeaders(n, &m)
	}
	return m
}

func (s scope) decodeHeaders(n *node, m *match) {
	if n.kind == kindMapping && len(n.fields) == 0 {
		s.fail(n.pos, "headers is empty; remove it to match any")
	}
	for _, f := range s.entries(n, "header", 32) {
		value, ok := s.text(f.value, f.name)
		if !ok {
			continue
		}
		if trimmed := strings.Trim(value, " \t"); trimmed != value {
			s.fail(f.value.pos, "%q begins or ends with a space, which no request's value does", clip(value, 60))
		}
		h := headerMatch{name: s.sourceName(n, "header", f.name), value: value, any: value == "*"}
		if slices.ContainsFunc(m.headers, func(o headerMatch) bool { return o.name == h.name }) {
			s.fail(f.pos, "header %s is given twice; keep one", h.name)
		}
		m.headers = append(m.headers, h)
	}
}

// notEmpty is list for what must not be empty where it is given: [] could be read as any or as none.
func (s scope) notEmpty(n *node, name string, most int) []*node {
	return s.some(n, name, most, "remove it to match any")
}

// some is notEmpty with what to do about it.
func (s scope) some(n *node, name string, most int, instead string) []*node {
	if n != nil && n.kind == kindSequence && len(n.items) == 0 {
		s.fail(n.pos, "%s is empty; %s", name, instead)
	}
	return s.list(n, name, most)
}

// methodSet has a bit for each of methodNames.
type methodSet uint32

// methodNames are the methods that a rule can name: those of HTTP and of WebDAV.
var methodNames = [...]string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", "QUERY", "PROPFIND",
	"PROPPATCH", "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK", "REPORT", "SEARCH", "PURGE"}

// methodOf returns the method that a rule means: HEAD counts as GET, and small letters, which some services take for
// capitals, as capitals.
func methodOf(method string) string {
	if method = strings.ToUpper(method); method == http.MethodHead {
		return http.MethodGet
	}
	return method
}

func methodBit(method string) methodSet {
	for i, name := range methodNames {
		if name == method {
			return 1 << i
		}
	}
	return 0
}

func (s scope) decodeMethod(n *node, m *match) {
	text, ok := s.text(n, "methods")
	switch bit := methodBit(text); {
	case !ok:
	case text == http.MethodHead:
		s.fail(n.pos, "method HEAD counts as GET; write GET")
	case bit == 0:
		s.fail(n.pos, "method %q is unknown; nearest is %s", clip(text, 60), s.nearest(text, methodNames[:]))
	case m.methods&bit != 0:
		s.fail(n.pos, "method %s is given twice; keep one", text)
	default:
		m.methods |= bit
	}
}

func (s scope) decodeHost(n *node, m *match) {
	text, ok := s.text(n, "hosts")
	if !ok {
		return
	}
	name, wildcard := strings.CutPrefix(text, "*.")
	clean := httpverdict.CleanHost(name)
	switch _, err := netip.ParseAddr(clean); {
	case clean == "" || strings.Contains(name, "/") || strings.ContainsFunc(clean, badHostRune) && err != nil:
		s.fail(n.pos, "host %q is not a host such as shop.example.com or *.example.com", clip(text, 60))
		return
	case clean != strings.ToLower(strings.Trim(name, "[]")):
		s.fail(n.pos, "host %q: hosts are matched without a port and a trailing dot; nearest is %s", clip(text, 60), clean)
		return
	}
	if wildcard {
		clean = "." + clean
	}
	if slices.Contains(m.hosts, clean) {
		s.fail(n.pos, "host %q is given twice; keep one", clip(text, 60))
		return
	}
	m.hosts = append(m.hosts, clean)
}

func badHostRune(c rune) bool {
	return !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_')
}

func (s scope) decodePath(n *node, m *match) {
	text, ok := s.text(n, "paths")
	if !ok {
		return
	}
	p, problem := parsePattern(text)
	if problem != "" {
		s.fail(n.pos, "path %q %s", clip(text, 60), problem)
		return
	}
	if m.ignoreCase {
		for i := range p.segments {
			p.segments[i].literal = strings.ToLower(p.segments[i].literal)
		}
	}
	for _, other := range m.paths {
		if other.prefix == p.prefix && slices.Equal(other.segments, p.segments) {
			s.fail(n.pos, "path %q matches the same as %q; keep one", clip(text, 60), clip(other.text, 60))
			return
		}
	}
	m.paths = append(m.paths, p)
}

// parsePattern reads a path pattern, or returns what is wrong with it.
func parsePattern(text string) (p pattern, problem string) {
	if !strings.HasPrefix(text, "/") {
		return p, "does not begin with a slash; nearest is /" + clip(text, 60)
	}
	p.text = text
	words := strings.Split(strings.TrimSuffix(text[1:], "/"), "/")
	if words[0] == "" && len(words) == 1 {
		return p, ""
	}
	for i, word := range words {
		switch {
		case word == "**" && i == len(words)-1 && !strings.HasSuffix(text, "/"):
			p.prefix = true
		case strings.HasPrefix(word, "{") && strings.HasSuffix(word, "}") && validName(word[1:len(word)-1]):
			p.segments = append(p.segments, segment{param: true})
		case strings.ContainsAny(word, "*{}"):
			return p, "has a wildcard that is neither a whole segment '{name}' nor '/**' at the end"
		case strings.ContainsAny(word, ";?#"):
			return p, "has a ';', '?' or '#'; patterns are about the path without parameters and query"
		default:
			clean, err := httpverdict.CleanPath("/" + word)
			if err != nil {
				return p, strings.TrimPrefix(err.Error(), "the path ")
			}
			if clean == "/" || strings.Count(clean, "/") > 1 {
				return p, "has an empty or dot segment; write the path as it is after cleaning"
			}
			p.segments = append(p.segments, segment{literal: decodeSegment(clean[1:])})
		}
	}
	return p, ""
}

// decodeSegment returns a segment of a clean path as it is matched: without parameters, and decoded, so that no spelling of
// a segment escapes a pattern. A decoded %2F cannot be mistaken for a separator, since the path is cut already.
func decodeSegment(s string) string {
	s, _, _ = strings.Cut(s, ";")
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}

// matchedPath returns a clean path as it is matched: without parameters and a trailing slash, so that no spelling of a path
// is another value of the dimension path.
func matchedPath(clean string) string {
	if strings.IndexByte(clean, ';') >= 0 {
		words := strings.Split(clean, "/")
		for i, word := range words {
			words[i], _, _ = strings.Cut(word, ";")
		}
		clean = strings.Join(words, "/")
	}
	if len(clean) > 1 {
		clean = strings.TrimSuffix(clean, "/")
	}
	return clean
}

// describe fills in a listing.
func (m *match) describe(r *Rule) {
	r.Methods, r.Hosts, r.Paths = m.texts()
	for _, h := range m.headers {
		r.Headers = append(r.Headers, h.name+": "+h.value)
	}
	r.IgnoreCase = m.ignoreCase
}

func (m *match) texts() (methods, hosts, paths []string) {
	for i, name := range methodNames {
		if m.methods&(1<<i) != 0 {
			methods = append(methods, name)
		}
	}
	for _, h := range m.hosts {
		if strings.HasPrefix(h, ".") {
			h = "*" + h
		}
		hosts = append(hosts, h)
	}
	for _, p := range m.paths {
		paths = append(paths, p.text)
	}
	return methods, hosts, paths
}

// admits tells whether method, host and headers match; the path has been matched by the index.
func (m *match) admits(method methodSet, r *httpverdict.Request) bool {
	if m.methods != 0 && m.methods&method == 0 {
		return false
	}
	for i := range m.headers {
		if !m.headers[i].matches(r.Header) {
			return false
		}
	}
	return len(m.hosts) == 0 || m.admitsHost(r.Host)
}

func (h *headerMatch) matches(header http.Header) bool {
	for _, line := range header[h.name] {
		if line = trim(line); line == h.value || h.any && line != "" {
			return true
		}
	}
	return false
}

func (m *match) admitsHost(host string) bool {
	for _, h := range m.hosts {
		if h == host || h[0] == '.' && len(host) > len(h) && strings.HasSuffix(host, h) {
			return true
		}
	}
	return false
}

package policy

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/headgate-io/headgate/policy/internal/credential"
)

// Bounds of the body that is read for a dimension.
const (
	maxBody  = 64 << 10
	bodyTime = time.Second
)

// value returns the value of a dimension; ok is false if it is missing. The address of the client, which appendPart takes
// as it is, is made a text here.
func (s *scratch) value(index int) (text string, ok bool) {
	dim := &s.p.dims[index]
	if text, ok := s.req.Dimensions[dim.name]; ok && dim.kind != dimIP || ok && dim.name != "ip" {
		return text, text != ""
	}
	if dim.kind == dimRoute { // it is another one in another rule
		return s.route, s.route != ""
	}
	v := &s.values[index]
	if !v.known {
		v.text = s.lookUp(index, dim)
		if dim.fold {
			v.text = credential.Fold(v.text)
		}
		v.known, v.present = true, v.text != ""
	}
	return v.text, v.present
}

func (s *scratch) lookUp(index int, dim *dimension) string {
	switch dim.kind {
	case dimIP:
		text, _ := s.ipText(dim)
		return string(text)
	case dimMethod:
		return methodOf(s.req.Method)
	case dimPath:
		return matchedPath(s.req.Path)
	case dimHost:
		return s.req.Host
	case dimHeader:
		if dim.trusted && !s.peerTrusted {
			return ""
		}
		return headerValue(s.req.Header[dim.source])
	case dimCookie:
		return s.cookie(dim)
	case dimQuery:
		return queryValue(s.req.RawQuery, dim.source)
	case dimJSON:
		value, _ := credential.Field(s.body.read(s), dim.field)
		return value
	case dimJWT:
		value, _ := dim.jwt.Value(s.token(dim), s.now())
		return value
	case dimCEL:
		value, _ := dim.cel.Str(s) // one that fails is missing
		return value
	}
	return s.find(index, dim)
}

func (s *scratch) cookie(dim *dimension) string {
	text := cookieValue(s.req.Header["Cookie"], dim.source)
	if dim.keys == nil || text == "" {
		return text
	}
	value, _ := dim.keys.Verify(dim.source, text)
	return value
}

// token returns the text of a JSON Web Token.
func (s *scratch) token(dim *dimension) string {
	if dim.cookie {
		return cookieValue(s.req.Header["Cookie"], dim.source)
	}
	text := headerValue(s.req.Header[dim.source])
	if !dim.bearer {
		return text
	}
	if len(text) > 7 && strings.EqualFold(text[:7], "Bearer ") {
		return strings.TrimLeft(text[7:], " ")
	}
	return ""
}

// requestBody is the body of a request as far as dimensions need it.
type requestBody struct {
	known bool
	data  []byte // nil if it cannot be read
}

// read reads the body, once. A compressed one is not read: what it unfolds to has no bound.
func (b *requestBody) read(s *scratch) []byte {
	if b.known {
		return b.data
	}
	b.known = true
	if s.req.Body == nil || s.req.ContentLength > maxBody || encoded(s.req.Header["Content-Encoding"]) {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, bodyTime)
	defer cancel()
	if data, err := s.req.Body.Peek(ctx, maxBody); err == nil {
		b.data = data
	}
	return b.data
}

func encoded(lines []string) bool {
	for _, line := range lines {
		if line = strings.TrimSpace(line); line != "" && !strings.EqualFold(line, "identity") {
			return true
		}
	}
	return false
}

// A value that is there twice is missing: which of the two the service takes, nobody knows, so neither may be charged in
// place of the other.

// trim removes the spaces and tabs around a text. Nearly none has any.
func trim(text string) string {
	for text != "" && (text[0] == ' ' || text[0] == '\t') {
		text = text[1:]
	}
	for n := len(text) - 1; n >= 0 && (text[n] == ' ' || text[n] == '\t'); n-- {
		text = text[:n]
	}
	return text
}

func headerValue(lines []string) string {
	if len(lines) != 1 {
		return ""
	}
	return trim(lines[0])
}

func cookieValue(lines []string, name string) string {
	found, value := false, ""
	for _, line := range lines {
		for line != "" {
			var pair string
			pair, line, _ = strings.Cut(line, ";")
			key, v, ok := strings.Cut(trim(pair), "=")
			if !ok || strings.TrimRight(key, " \t") != name {
				continue
			}
			if found {
				return ""
			}
			found, value = true, trim(v)
		}
	}
	if len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"' {
		value = value[1 : len(value)-1]
	}
	return value
}

func queryValue(query, name string) string {
	found, value := false, ""
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		key, v, _ := strings.Cut(pair, "=")
		if plain, err := unescapeQuery(key); err != nil || plain != name {
			continue
		}
		plain, err := unescapeQuery(v)
		if found || err != nil {
			return ""
		}
		found, value = true, plain
	}
	return value
}

func unescapeQuery(s string) (string, error) {
	if !strings.ContainsAny(s, "%+") {
		return s, nil
	}
	return url.QueryUnescape(s)
}

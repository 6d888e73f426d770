package policy

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate-io/headgate/policy/internal/credential"
	"github.com/headgate-io/headgate/policy/internal/expr"
)

// Bounds of look-ups.
const (
	defaultKeep    = 10 * time.Second
	defaultTimeout = 50 * time.Millisecond
)

func (d *decoder) decodeDimensions(n *node) {
	d.p.dims = builtins(d.p.clients.ipv6Prefix)
	if n == nil {
		return
	}
	s := scope{d, "dimensions"}
	entries := s.entries(n, "dimension", 64)
	for _, f := range entries {
		// A misspelt dimension is still defined: what names it is not wrong as well.
		d.declared[f.name] = true
	}
	at := make(map[string]pos, len(entries))
	var rest []func()
	for _, f := range entries {
		inner := scope{d, "dimension " + strconv.Quote(f.name)}
		if d.dimensionIndex(f.name) >= 0 || f.name == "list" {
			inner.fail(f.pos, "the name is built in; choose another")
			continue
		}
		at[f.name] = f.pos
		if dim, fields, ok := inner.decodeDimension(f); ok {
			d.p.dims = append(d.p.dims, dim)
			index := len(d.p.dims) - 1
			rest = append(rest, func() { inner.decodeReferences(index, fields) })
		}
	}
	for _, decode := range rest { // now that every name is known
		decode()
	}
	d.closeDimensions(at)
}

// sources are the fields of which a dimension has one.
var sources = []struct {
	name string
	kind dimensionKind
}{{"header", dimHeader}, {"cookie", dimCookie}, {"query", dimQuery}, {"json", dimJSON}, {"jwt", dimJWT}, {"cel", dimCEL},
	{"redis", dimRedis}, {"http", dimHTTP}}

func (s scope) decodeDimension(f field) (dimension, map[string]*node, bool) {
	before := len(s.problems)
	fields := s.fields(f.value, dimensionMapping)
	dim := dimension{name: f.name, fold: s.boolean(fields["fold"], "fold")}
	found := 0
	for _, source := range sources {
		if n := fields[source.name]; n != nil {
			found++
			dim.kind = source.kind
			s.decodeSource(&dim, source.name, n)
		}
	}
	if found != 1 && len(s.problems) == before {
		s.fail(f.pos, "needs exactly one of header, cookie, query, json, jwt, cel, redis and http")
	}
	if found == 1 {
		s.decodeTrust(&dim, fields)
		s.decodeLookUp(&dim, fields)
	}
	return dim, fields, len(s.problems) == before
}

func (s scope) decodeSource(dim *dimension, name string, n *node) {
	switch dim.kind {
	case dimHeader, dimCookie, dimQuery:
		if text, ok := s.text(n, name); ok {
			dim.source = s.sourceName(n, name, text)
		}
	case dimJSON:
		if text, ok := s.text(n, name); ok {
			dim.field = s.fieldPath(n, name, text)
		}
	case dimJWT:
		s.decodeJWT(dim, n)
	}
}

// fieldPath reads user.phone.
func (s scope) fieldPath(n *node, name, text string) []string {
	words := strings.Split(text, ".")
	if len(words) > 8 || slices.Contains(words, "") {
		s.fail(n.pos, "%s %q is not a field such as phone or user.phone, up to 8 deep", name, clip(text, 60))
	}
	return words
}

// decodeTrust reads what makes a value believed.
func (s scope) decodeTrust(dim *dimension, fields map[string]*node) {
	if n := fields["trusted"]; n != nil {
		dim.trusted = s.boolean(n, "trusted")
		switch {
		case dim.kind != dimHeader:
			s.fail(n.pos, "trusted goes with header only: a client writes its cookies and queries itself")
		case dim.trusted && len(s.p.clients.trusted) == 0:
			s.fail(n.pos, "a trusted header is believed from clients.trusted_proxies only, and there are none; name them")
		}
	}
	n := fields["signed"]
	if n == nil {
		return
	}
	if dim.kind != dimCookie {
		s.fail(n.pos, "signed goes with cookie only")
		return
	}
	s.where += ": signed"
	inner := s.fields(n, signedMapping)
	data, ok := s.readFile(s.required(n, inner, "key_file"), "key_file")
	if !ok {
		return
	}
	keys, err := credential.NewCookieKeys(data)
	if err != nil {
		s.fail(inner["key_file"].pos, "key_file %q: %v", inner["key_file"].text, err)
	}
	dim.keys = keys
}

// required returns a field, and reports that it is not there.
func (s scope) required(n *node, fields map[string]*node, name string) *node {
	if fields != nil && fields[name] == nil && n.kind == kindMapping && !n.names(name) {
		s.fail(n.pos, "%s is missing", name)
	}
	return fields[name]
}

func (s scope) decodeJWT(dim *dimension, n *node) {
	s.where += ": jwt"
	before := len(s.problems)
	fields := s.fields(n, jwtMapping)
	if fields == nil {
		return
	}
	cfg := credential.JWTConfig{JWKS: fields["jwks_file"] != nil, Leeway: s.durationIn(fields["leeway"], "leeway", 30*time.Second, 0, 5*time.Minute)}
	cfg.Claim, _ = s.text(s.required(n, fields, "claim"), "claim")
	if cfg.Claim != "" {
		s.fieldPath(fields["claim"], "claim", cfg.Claim)
	}
	cfg.Issuer, _ = s.text(fields["issuer"], "issuer")
	cfg.Audience, _ = s.text(fields["audience"], "audience")
	for _, item := range s.some(fields["algorithms"], "algorithms", len(jwtAlgorithms), "remove it for those that the keys are for") {
		if text, ok := s.text(item, "algorithms"); ok && !slices.Contains(jwtAlgorithms, text) {
			s.fail(item.pos, "algorithm %q is unknown; nearest is %s", clip(text, 60), s.nearest(text, jwtAlgorithms))
		} else if ok {
			cfg.Algorithms = append(cfg.Algorithms, text)
		}
	}
	s.decodeToken(dim, fields)
	file, name := fields["jwks_file"], "jwks_file"
	if file == nil {
		file, name = fields["key_file"], "key_file"
	}
	if (fields["jwks_file"] == nil) == (fields["key_file"] == nil) && len(s.problems) == before {
		s.fail(n.pos, "needs exactly one of jwks_file and key_file")
		return
	}
	data, ok := s.readFile(file, name)
	if !ok || len(s.problems) > before {
		return
	}
	cfg.Keys = data
	jwt, err := credential.NewJWT(cfg)
	if err != nil {
		s.fail(file.pos, "%s %q: %v", name, file.text, err)
	}
	dim.jwt = jwt
}

// decodeToken reads where a token is.
func (s scope) decodeToken(dim *dimension, fields map[string]*node) {
	header, cookie := fields["header"], fields["cookie"]
	switch {
	case header != nil && cookie != nil:
		s.fail(cookie.pos, "header and cookie exclude each other; keep one")
	case header != nil:
		if text, ok := s.text(header, "header"); ok {
			dim.source = s.sourceName(header, "header", text)
		}
		dim.bearer = dim.source == "Authorization"
	case cookie != nil:
		dim.cookie = true
		if text, ok := s.text(cookie, "cookie"); ok {
			dim.source = s.sourceName(cookie, "cookie", text)
		}
	default:
		dim.source, dim.bearer = "Authorization", true
	}
}

func (s scope) decodeLookUp(dim *dimension, fields map[string]*node) {
	if dim.kind != dimRedis && dim.kind != dimHTTP {
		for _, name := range []string{"cache", "timeout", "default"} {
			if n := fields[name]; n != nil {
				s.fail(n.pos, "%s goes with redis and http only", name)
			}
		}
		return
	}
	l := &lookUp{
		keep:    s.durationIn(fields["cache"], "cache", defaultKeep, time.Second, time.Hour),
		timeout: s.durationIn(fields["timeout"], "timeout", defaultTimeout, time.Millisecond, 5*time.Second),
	}
	l.otherwise, _ = s.text(fields["default"], "default")
	dim.lookUp = l
	s.p.slowest = max(s.p.slowest, l.timeout)
}

// decodeReferences reads what names other dimensions.
func (s scope) decodeReferences(index int, fields map[string]*node) {
	dim := s.p.dims[index] // a copy: ip/N may be added while we are at it
	switch dim.kind {
	case dimCEL:
		dim.cel, dim.needs = s.expression(fields["cel"], "cel", expr.Text)
		if dim.cel != nil && dim.cel.UsesResponse() {
			s.fail(fields["cel"].pos, "a dimension is known before there is a response")
		}
		if slices.ContainsFunc(dim.needs, func(i int) bool { return s.p.dims[i].kind == dimRoute }) {
			s.fail(fields["cel"].pos, "route is known only within a rule; use path")
		}
		if dim.cel == nil {
			dim.kind = dimQuery // refused already; nothing asks it
		}
	case dimRedis:
		s.where += ": redis"
		n := fields["redis"]
		inner := s.fields(n, redisMapping)
		dim.lookUp.hash = s.template(s.required(n, inner, "hash"), "hash", &dim)
		dim.lookUp.field = s.template(s.required(n, inner, "field"), "field", &dim)
	case dimHTTP:
		s.where += ": http"
		n := fields["http"]
		inner := s.fields(n, httpMapping)
		at := s.required(n, inner, "url")
		dim.lookUp.url = s.template(at, "url", &dim)
		s.checkURL(at, &dim.lookUp.url)
		if dim.lookUp.json, _ = s.text(inner["json"], "json"); dim.lookUp.json != "" {
			s.fieldPath(inner["json"], "json", dim.lookUp.json)
		}
	}
	s.p.dims[index] = dim
}

// shownTemplate quotes a template, but for a URL, which may hold a password.
func shownTemplate(name, text string) string {
	if name == "url" {
		return name
	}
	return name + " " + strconv.Quote(clip(text, 60))
}

// checkURL refuses what could be made to lead elsewhere by what a client sends.
func (s scope) checkURL(n *node, t *template) {
	if n == nil || len(t.words) == 0 {
		return
	}
	u, err := url.Parse(strings.Join(t.words, "x"))
	first, _ := url.Parse(t.words[0])
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		s.fail(n.pos, "url is not an http or https address such as https://users.example.com/tier/{user}") // which may hold a password
	case first == nil || first.Host != u.Host || !strings.Contains(t.words[0][strings.Index(t.words[0], "://")+3:], "/"):
		s.fail(n.pos, "url %q has a dimension in its host; dimensions may stand after the host's slash only", clip(n.text, 60))
	case u.User != nil || u.Fragment != "":
		s.fail(n.pos, "url has a user, a password or a fragment; remove it")
	}
}

// template reads a text with {dimension} in it.
func (s scope) template(n *node, name string, dim *dimension) (t template) {
	text, ok := s.text(n, name)
	if !ok {
		return t
	}
	word := ""
	for rest := text; ; {
		before, after, found := strings.Cut(rest, "{")
		if word += before; !found {
			t.words = append(t.words, word)
			return t
		}
		inner, after, closed := strings.Cut(after, "}")
		if !closed || inner == "" {
			s.fail(n.pos, "%s has a brace without a dimension in it, such as {user}", shownTemplate(name, text))
			return template{}
		}
		i := s.findDimension(n.pos, inner)
		if i < 0 {
			return template{}
		}
		if len(t.dims) > 0 && word == "" {
			s.fail(n.pos, "%s has two dimensions side by side, and nobody can tell where one ends; put a character between them", shownTemplate(name, text))
			return template{}
		}
		if s.p.dims[i].kind == dimRoute {
			s.fail(n.pos, "route is known only within a rule; use path")
			return template{}
		}
		t.words, t.dims, word, rest = append(t.words, word), append(t.dims, i), "", after
		dim.needs = append(dim.needs, i)
	}
}

func (s scope) sourceName(n *node, kind, text string) string {
	if kind == "query" {
		return text
	}
	if strings.ContainsFunc(text, func(c rune) bool { return !tokenRune(c) }) {
		s.fail(n.pos, "%s %q is not the name of a %s", kind, clip(text, 60), kind)
		return text
	}
	if kind == "header" {
		if strings.EqualFold(text, "Host") {
			s.fail(n.pos, "the Host header is the built-in dimension host")
		}
		return http.CanonicalHeaderKey(text)
	}
	return text
}

// tokenRune tells whether a character may stand in the name of a header or a cookie.
func tokenRune(c rune) bool {
	return c > ' ' && c < 0x7f && !strings.ContainsRune(`()<>@,;:\"/[]?={}`, c)
}

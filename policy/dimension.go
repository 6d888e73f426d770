package policy

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

type dimensionKind uint8

const (
	dimIP dimensionKind = iota
	dimRoute
	dimMethod
	dimPath
	dimHost
	dimHeader
	dimCookie
	dimQuery
)

// dimension is what a part of a key, or of a list, is made of.
type dimension struct {
	name string
	kind dimensionKind
	// source is the name of the header, in canonical form, of the cookie or of the query parameter.
	source string
	// trusted: the header is believed from trusted proxies, and from nobody else.
	trusted bool
	// bits is how much of an IPv6 address counts.
	bits int
}

// forgeable tells whether a client can choose the value without meaning it: such a dimension may limit, and never lets
// pass. A path or a method is what is asked for; a host is only what the client says it is.
func (d *dimension) forgeable() bool {
	switch d.kind {
	case dimHeader:
		return !d.trusted
	case dimCookie, dimQuery, dimHost:
		return true
	}
	return false
}

// builtins are the dimensions that every policy has, beside ip/N.
func builtins(ipv6Prefix int) []dimension {
	return []dimension{
		{name: "ip", kind: dimIP, bits: ipv6Prefix},
		{name: "route", kind: dimRoute},
		{name: "method", kind: dimMethod},
		{name: "path", kind: dimPath},
		{name: "host", kind: dimHost},
	}
}

var dimensionSchema = schema{
	known: []string{"header", "trusted", "cookie", "query"},
	later: []string{"jwt", "json", "redis", "signed", "fold", "cache", "default"},
}

func (d *decoder) decodeDimensions(n *node) {
	d.p.dims = builtins(d.p.clients.ipv6Prefix)
	if n == nil {
		return
	}
	s := scope{d, "dimensions"}
	for _, f := range s.entries(n, "dimension", 64) {
		inner := scope{d, "dimension " + strconv.Quote(f.name)}
		// A misspelt dimension is still defined: what names it is not wrong as well.
		d.declared[f.name] = true
		if d.dimensionIndex(f.name) >= 0 {
			inner.fail(f.pos, "the name is built in; choose another")
			continue
		}
		if dim, ok := inner.decodeDimension(f); ok {
			d.p.dims = append(d.p.dims, dim)
		}
	}
}

func (s scope) decodeDimension(f field) (dimension, bool) {
	before := len(s.problems)
	fields := s.fields(f.value, dimensionSchema)
	dim := dimension{name: f.name}
	sources := 0
	for _, source := range []struct {
		name string
		kind dimensionKind
	}{{"header", dimHeader}, {"cookie", dimCookie}, {"query", dimQuery}} {
		n := fields[source.name]
		if n == nil {
			continue
		}
		sources++
		dim.kind = source.kind
		if text, ok := s.text(n, source.name); ok {
			dim.source = s.sourceName(n, source.name, text)
		}
	}
	if sources != 1 && len(s.problems) == before {
		s.fail(f.pos, "needs exactly one of header, cookie and query")
	}
	if n := fields["trusted"]; n != nil {
		dim.trusted = s.boolean(n, "trusted")
		switch {
		case sources == 1 && dim.kind != dimHeader:
			s.fail(n.pos, "trusted goes with header only: a client writes its cookies and queries itself")
		case dim.trusted && len(s.p.clients.trusted) == 0:
			s.fail(n.pos, "a trusted header is believed from clients.trusted_proxies only, and there are none; name them")
		}
	}
	return dim, len(s.problems) == before
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

// dimensionIndex finds a dimension by name, and makes ip/N when it is first named. It returns -1 if there is none.
func (d *decoder) dimensionIndex(name string) int {
	if i := slices.IndexFunc(d.p.dims, func(dim dimension) bool { return dim.name == name }); i >= 0 {
		return i
	}
	digits, ok := strings.CutPrefix(name, "ip/")
	bits, err := strconv.Atoi(digits)
	if !ok || err != nil || bits < 1 || bits > 128 || strconv.Itoa(bits) != digits {
		return -1
	}
	d.p.dims = append(d.p.dims, dimension{name: name, kind: dimIP, bits: bits})
	return len(d.p.dims) - 1
}

// findDimension is dimensionIndex with a report. It returns -1 for a dimension that is defined, but wrongly, too.
func (s scope) findDimension(at pos, name string) int {
	i := s.dimensionIndex(name)
	if i < 0 && !s.declared[name] {
		names := []string{"ip/48"}
		for _, dim := range s.p.dims {
			names = append(names, dim.name)
		}
		for name := range s.declared {
			names = append(names, name)
		}
		slices.Sort(names)
		s.fail(at, "dimension %q is not defined; nearest is %s", clip(name, 60), s.nearest(name, names))
	}
	return i
}

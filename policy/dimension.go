package policy

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate-io/headgate/policy/internal/credential"
	"github.com/headgate-io/headgate/policy/internal/expr"
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
	dimJSON
	dimJWT
	dimCEL
	dimRedis
	dimHTTP
)

var dimensionSources = [...]string{"ip", "route", "method", "path", "host", "header", "cookie", "query", "json", "jwt", "cel", "redis", "http"}

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
	// fold: the value has one spelling.
	fold bool

	field  []string               // of a JSON body
	keys   *credential.CookieKeys // of a signed cookie
	jwt    *credential.JWT
	bearer bool // the token is in the header Authorization, after Bearer
	cookie bool // the token is in a cookie
	cel    *expr.Expression
	lookUp *lookUp

	// needs are the dimensions that this one is made of.
	needs []int
	// forgeable: a client can choose the value without meaning it. Such a dimension may limit, and never lets pass.
	forgeable bool
	// body: the body of the request must be read for it.
	body bool
	// path: the path of the request is in it.
	path bool
}

// lookUp is where the value of a dimension is found.
type lookUp struct {
	hash, field, url template
	json             string
	keep, timeout    time.Duration
	// otherwise is the value if there is none, or nobody can tell; "" for missing.
	otherwise string
}

// forgeableSource tells whether a client can choose what a source says. A path or a method is what is asked for; a host
// is only what the client says it is.
func (d *dimension) forgeableSource() bool {
	switch d.kind {
	case dimHeader:
		return !d.trusted
	case dimCookie:
		return d.keys == nil
	case dimQuery, dimHost, dimJSON:
		return true
	case dimCEL:
		return slices.ContainsFunc(d.cel.Inputs(), forgeableInput)
	}
	return false
}

// forgeableInput tells the same of what an expression reads.
func forgeableInput(name string) bool {
	switch name {
	case "method", "path", "ip", "time":
		return false
	}
	return true
}

// builtins are the dimensions that every policy has, beside ip/N.
func builtins(ipv6Prefix int) []dimension {
	return []dimension{
		{name: "ip", kind: dimIP, bits: ipv6Prefix},
		{name: "route", kind: dimRoute},
		{name: "method", kind: dimMethod},
		{name: "path", kind: dimPath, path: true},
		{name: "host", kind: dimHost, forgeable: true},
	}
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

// template is a text with dimensions in it.
type template struct {
	// words and dims alternate: words[0], dims[0], words[1] …
	words []string
	dims  []int
}

// closeDimensions finds out what each dimension is made of in the end, and reports circles.
func (d *decoder) closeDimensions(at map[string]pos) {
	const (
		open = iota + 1
		done
	)
	state := make([]int, len(d.p.dims))
	var visit func(i int) bool
	visit = func(i int) bool {
		dim := &d.p.dims[i]
		switch state[i] {
		case done:
			return true
		case open:
			return false
		}
		state[i] = open
		dim.forgeable = dim.forgeable || dim.forgeableSource()
		dim.body = dim.kind == dimJSON
		dim.path = dim.kind == dimPath || dim.kind == dimCEL && slices.Contains(dim.cel.Inputs(), "path")
		for _, need := range dim.needs {
			if !visit(need) {
				scope{d, "dimension " + strconv.Quote(dim.name)}.fail(at[dim.name], "is made of itself; break the circle")
				dim.needs = nil
				break
			}
			dim.forgeable = dim.forgeable || d.p.dims[need].forgeable
			dim.body = dim.body || d.p.dims[need].body
			dim.path = dim.path || d.p.dims[need].path
		}
		state[i] = done
		return true
	}
	for i := range d.p.dims {
		visit(i)
	}
}

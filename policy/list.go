package policy

import (
	"bufio"
	"errors"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// Bounds of lists.
const (
	maxLists     = 256
	maxListWords = 10_000
	maxListFile  = 16 << 20
	maxListLines = 1_000_000
)

// list is a set of addresses, or of values of one dimension.
type list struct {
	name   string
	at     Position
	ips    ipSet
	dim    int // index of the dimension; -1: addresses
	values map[string]struct{}
}

func (d *decoder) decodeLists(n *node) {
	if n == nil {
		return
	}
	for _, f := range (scope{d, "lists"}).entries(n, "list", maxLists) {
		s := scope{d, "list " + strconv.Quote(f.name)}
		d.p.lists = append(d.p.lists, s.decodeList(f))
	}
}

func (s scope) decodeList(f field) list {
	l := list{name: f.name, at: Position{f.line, f.column}, dim: -1}
	before := len(s.problems)
	fields := s.fields(f.value, listMapping)
	cidrs, values, file, dim := fields["cidrs"], fields["values"], fields["file"], fields["dimension"]
	sources := 0
	for _, n := range []*node{cidrs, values, file} {
		if n != nil {
			sources++
		}
	}
	if sources != 1 {
		if len(s.problems) == before {
			s.fail(f.pos, "needs exactly one of cidrs, values and file")
		}
		return l
	}
	if dim != nil {
		if name, ok := s.text(dim, "dimension"); ok {
			l.dim = s.listDimension(dim, name)
		}
	}
	switch {
	case values != nil && dim == nil:
		s.fail(values.pos, "values need to say of what; add dimension: NAME")
	case cidrs != nil && dim != nil:
		s.fail(dim.pos, "cidrs are addresses; remove dimension, or write values")
	case cidrs != nil:
		l.ips = s.decodeCIDRs(cidrs, "cidrs")
	case values != nil:
		l.values = s.decodeValues(values, l.dim)
	default:
		s.decodeFile(file, &l, dim != nil)
	}
	return l
}

func (s scope) listDimension(n *node, name string) int {
	i := s.findDimension(n.pos, name)
	if i < 0 {
		return -1
	}
	switch s.p.dims[i].kind {
	case dimIP:
		s.fail(n.pos, "a list of addresses is written cidrs: [203.0.113.0/24]")
	case dimRoute:
		s.fail(n.pos, "route is known only within a rule; use path")
	}
	return i
}

func (s scope) decodeCIDRs(n *node, name string) ipSet {
	var prefixes []netip.Prefix
	for _, item := range s.list(n, name, maxListWords) {
		if item.kind == kindMapping {
			s.fail(item.pos, "%s: a colon makes this a mapping; put the IPv6 address in quotes", name)
			continue
		}
		text, ok := s.text(item, name)
		if !ok {
			continue
		}
		p, err := parsePrefix(text)
		if err != nil {
			s.fail(item.pos, "%q %v", clip(text, 60), err)
			continue
		}
		prefixes = append(prefixes, p)
	}
	return newIPSet(prefixes)
}

func (s scope) decodeValues(n *node, dim int) map[string]struct{} {
	values := make(map[string]struct{})
	for _, item := range s.list(n, "values", maxListWords) {
		text, ok := s.text(item, "values")
		if !ok {
			continue
		}
		value, problem := s.listValue(dim, text)
		if problem != "" {
			s.fail(item.pos, "value %q %s", clip(text, 60), problem)
		}
		values[value] = struct{}{}
	}
	return values
}

// listValue returns a value in the form that requests are compared in, or why no request could ever have it. A list that
// silently matches nothing would let everybody through.
func (s scope) listValue(dim int, text string) (value, problem string) {
	if dim < 0 {
		return text, "" // the dimension is wrong, and reported
	}
	if text = foldValue(&s.p.dims[dim], text); text == "" {
		return "", "is empty, which no request's value is"
	}
	switch s.p.dims[dim].kind {
	case dimPath:
		clean, err := httpverdict.CleanPath(text)
		if err != nil {
			return "", "is no path: it " + strings.TrimPrefix(err.Error(), "the path ")
		}
		if strings.ContainsRune(text, '?') {
			return "", "has a query; a path has none"
		}
		return matchedPath(clean), ""
	case dimHost:
		if strings.Contains(text, "*") {
			return "", "has a wildcard; a list names whole hosts"
		}
		return httpverdict.CleanHost(text), ""
	case dimMethod:
		return methodOf(text), ""
	case dimHeader, dimCookie, dimRedis, dimHTTP:
		if trimmed := strings.Trim(text, " \t"); trimmed != text {
			return "", "begins or ends with a space, which no request's value does"
		}
	}
	return text, ""
}

// decodeFile reads a list from a file beside the policy. Messages name the line and never quote it: what a list holds may
// be nobody's business.
func (s scope) decodeFile(n *node, l *list, values bool) {
	f, name, ok := s.openFile(n, "file")
	if !ok {
		return
	}
	defer f.Close()
	s.readLines(n, name, io.TeeReader(f, s.version), l, values)
}

func (s scope) readLines(n *node, name string, r io.Reader, l *list, values bool) {
	limited := &io.LimitedReader{R: r, N: maxListFile + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(nil, maxText)
	var prefixes []netip.Prefix
	set := make(map[string]struct{})
	count, wrong := 0, 0
	for lines.Scan() {
		count++
		text := strings.TrimSpace(lines.Text())
		if count == 1 {
			text = strings.TrimPrefix(text, "\ufeff")
		}
		if text == "" || text[0] == '#' {
			continue
		}
		problem := ""
		if values {
			var value string
			if value, problem = s.listValue(l.dim, text); problem == "" {
				set[value] = struct{}{}
			}
		} else if p, err := parsePrefix(text); err == nil {
			prefixes = append(prefixes, p)
		} else {
			problem = "is not an address or a prefix without bits beyond it"
		}
		if problem != "" {
			if wrong++; wrong <= 3 {
				s.fail(n.pos, "file %q line %d %s", clip(name, 60), count, problem)
			}
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		s.fail(n.pos, "file %q line %d has more than %d bytes", clip(name, 60), count+1, maxText)
	case err != nil:
		s.fail(n.pos, "file %q cannot be read: %v", clip(name, 60), cause(err))
	case limited.N == 0 || count > maxListLines:
		s.fail(n.pos, "file %q is too large; %d bytes and %d lines are allowed", clip(name, 60), maxListFile, maxListLines)
	}
	if values {
		l.values = set
	} else {
		l.ips = newIPSet(prefixes)
	}
}

// listRefs reads the names of lists. safe asks for lists that no client can put itself on.
func (s scope) listRefs(n *node, name string, safe bool) []int {
	var refs []int
	for _, item := range s.list(n, name, maxLists) {
		text, ok := s.text(item, name)
		if !ok {
			continue
		}
		i := slices.IndexFunc(s.p.lists, func(l list) bool { return l.name == text })
		switch {
		case i < 0:
			s.failList(item.pos, text)
		case slices.Contains(refs, i):
			s.fail(item.pos, "%s names list %q twice; keep one", name, text)
		case safe && s.p.lists[i].forgeable(s.p.dims):
			s.fail(item.pos, "%s may not use list %q: a client can forge its dimension %s, and so let itself pass",
				name, text, s.p.dims[s.p.lists[i].dim].name)
		case safe && s.p.lists[i].hasDefault(s.p.dims):
			dim := &s.p.dims[s.p.lists[i].dim]
			s.fail(item.pos, "%s may not use list %q: it has %q, the default of dimension %s, so everybody would pass while the look-up fails",
				name, text, clip(dim.lookUp.otherwise, 60), dim.name)
		default:
			refs = append(refs, i)
		}
	}
	return refs
}

func (s scope) failList(at pos, name string) {
	if len(s.p.lists) == 0 {
		s.fail(at, "list %q is not defined; there are no lists", clip(name, 60))
		return
	}
	names := make([]string, len(s.p.lists))
	for i, l := range s.p.lists {
		names[i] = l.name
	}
	s.fail(at, "list %q is not defined; nearest is %s", clip(name, 60), s.nearest(name, names))
}

func (l *list) forgeable(dims []dimension) bool { return l.dim >= 0 && dims[l.dim].forgeable }

// hasDefault tells whether what a look-up that fails answers is on the list.
func (l *list) hasDefault(dims []dimension) bool {
	if l.dim < 0 || dims[l.dim].lookUp == nil || dims[l.dim].lookUp.otherwise == "" {
		return false
	}
	_, on := l.values[foldValue(&dims[l.dim], dims[l.dim].lookUp.otherwise)]
	return on
}

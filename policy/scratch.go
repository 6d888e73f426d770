package policy

import (
	"net/netip"
	"net/url"
	"strings"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// scratch is what one decision works with; it is pooled. Nothing of it outlives the decision.
type scratch struct {
	p           *Policy
	req         *httpverdict.Request
	client      netip.Addr
	peerTrusted bool

	values  []dimensionValue // by dimension
	onList  []verdictOnList  // by list
	keys    []builtKey       // by key spec
	seen    []uint32         // by rule: the epoch in which it was met
	epoch   uint32
	route   string // the most specific of all patterns
	found   []candidate
	charges []headgate.Charge
	// rules has the rule of each charge.
	rules    []int32
	path     splitPath
	decision headgate.Decision
	ip       [64]byte
	buf      []byte
}

type dimensionValue struct {
	known, present bool
	text           string
}

type builtKey struct {
	known, lacking bool
	text           string
}

type verdictOnList uint8

const (
	listUnknown verdictOnList = iota
	listed
	notListed
)

func newScratch(p *Policy) *scratch {
	return &scratch{
		p:      p,
		values: make([]dimensionValue, len(p.dims)),
		onList: make([]verdictOnList, len(p.lists)),
		keys:   make([]builtKey, len(p.specs)),
		seen:   make([]uint32, len(p.rules)),
	}
}

// begin takes up a request.
func (s *scratch) begin(r *httpverdict.Request) {
	if s.epoch++; s.epoch == 0 { // wrapped around after 2^32 requests
		clear(s.seen)
		s.epoch = 1
	}
	s.req = r
	s.peerTrusted = s.p.TrustsPeer(r.Peer)
	if text, ok := r.Dimensions["ip"]; ok {
		a, _ := netip.ParseAddr(text) // what is no address is no client address
		s.client = a.Unmap().WithZone("")
	} else {
		s.client = s.p.clients.address(r.Peer, r.Header)
	}
}

// end drops every reference to the request.
func (s *scratch) end() {
	s.req = nil
	clear(s.values)
	clear(s.onList)
	clear(s.keys)
	clear(s.charges)
	clear(s.found)
	s.path.clear()
	s.charges, s.rules, s.found = s.charges[:0], s.rules[:0], s.found[:0]
	s.route = ""
	if cap(s.buf) > 1<<14 {
		s.buf = nil
	}
}

// member tells whether the request is on a list.
func (s *scratch) member(index int) bool {
	if s.onList[index] == listUnknown {
		s.onList[index] = notListed
		if s.judgeList(&s.p.lists[index]) {
			s.onList[index] = listed
		}
	}
	return s.onList[index] == listed
}

func (s *scratch) judgeList(l *list) bool {
	if l.dim < 0 {
		return l.ips.contains(s.client)
	}
	text, ok := s.value(l.dim, "")
	if !ok {
		return false
	}
	_, on := l.values[text]
	return on
}

// anyPassing is anyMember for lists that let pass: a path with parameters, which the service may take for another one, is
// on no list of paths.
func (s *scratch) anyPassing(lists []int) int {
	for _, l := range lists {
		if dim := s.p.lists[l].dim; dim >= 0 && s.p.dims[dim].kind == dimPath && strings.IndexByte(s.req.Path, ';') >= 0 {
			continue
		}
		if s.member(l) {
			return l
		}
	}
	return -1
}

// anyMember returns the first of the lists that the request is on, -1 if there is none.
func (s *scratch) anyMember(lists []int) int {
	for _, l := range lists {
		if s.member(l) {
			return l
		}
	}
	return -1
}

// ipText returns the address of the client as far as it counts. It is valid until the next call.
func (s *scratch) ipText(dim *dimension) ([]byte, bool) {
	if dim.kind != dimIP || !s.client.IsValid() {
		return nil, false
	}
	if _, set := s.req.Dimensions[dim.name]; set && dim.name != "ip" {
		return nil, false
	}
	a := s.client
	if a.Is6() {
		if p, err := a.Prefix(dim.bits); err == nil {
			a = p.Addr()
		}
	}
	return a.AppendTo(s.ip[:0]), true
}

// value returns the value of a dimension other than the client's address; ok is false if it is missing.
func (s *scratch) value(index int, route string) (text string, ok bool) {
	dim := &s.p.dims[index]
	if text, ok := s.req.Dimensions[dim.name]; ok && dim.kind != dimIP || ok && dim.name != "ip" {
		return text, text != ""
	}
	if dim.kind == dimRoute {
		return route, route != ""
	}
	v := &s.values[index]
	if !v.known {
		v.text = s.lookUp(dim)
		v.known, v.present = true, v.text != ""
	}
	return v.text, v.present
}

func (s *scratch) lookUp(dim *dimension) string {
	switch dim.kind {
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
		return cookieValue(s.req.Header["Cookie"], dim.source)
	case dimQuery:
		return queryValue(s.req.RawQuery, dim.source)
	}
	return ""
}

// A value that is there twice is missing: which of the two the service takes, nobody knows, so neither may be charged in
// place of the other.

func headerValue(lines []string) string {
	if len(lines) != 1 {
		return ""
	}
	return strings.Trim(lines[0], " \t")
}

func cookieValue(lines []string, name string) string {
	found, value := false, ""
	for _, line := range lines {
		for line != "" {
			var pair string
			pair, line, _ = strings.Cut(line, ";")
			key, v, ok := strings.Cut(strings.Trim(pair, " \t"), "=")
			if !ok || strings.TrimRight(key, " \t") != name {
				continue
			}
			if found {
				return ""
			}
			found, value = true, strings.Trim(v, " \t")
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

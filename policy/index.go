package policy

import (
	"slices"
	"strings"
)

// anyRoute is the route of a request whose path no pattern of the policy matches.
const anyRoute = "/**"

// index finds the rules that a request may match without looking at the others.
type index struct {
	root *trieNode // of the patterns; nil if there are none
	// byHost has the rules without paths, by host; wildcards by the part after "*".
	byHost map[string][]int32
	// byHeader has the rules with neither paths nor hosts by a header that they demand a value of.
	byHeader []headerIndex
	// always are the others.
	always []int32
	depth  int  // of the deepest pattern
	folds  bool // whether a pattern ignores case
}

// trieNode is a segment of patterns. Each node is visited at most once per request.
type trieNode struct {
	literals map[string]*trieNode
	folded   map[string]*trieNode // of patterns with ignore_case, in lower case
	param    *trieNode
	ends     []ending // patterns that end here
	prefixes []ending // patterns that go on with /**
}

type ending struct {
	rule  int32
	route string
}

// headerIndex has rules by the value of one header.
type headerIndex struct {
	name   string
	values map[string][]int32
}

// candidate is a rule whose path, and perhaps host, matches.
type candidate struct {
	rule  int32
	route string
}

func newIndex(rules []rule) index {
	x := index{byHost: make(map[string][]int32)}
	for i := range rules {
		m, r := &rules[i].match, int32(i)
		switch {
		case len(m.paths) > 0:
			if x.root == nil {
				x.root = &trieNode{}
			}
			for _, p := range m.paths {
				x.root.insert(p, r, m.ignoreCase)
				x.depth = max(x.depth, len(p.segments))
			}
			x.folds = x.folds || m.ignoreCase
		case len(m.hosts) > 0:
			for _, h := range m.hosts {
				x.byHost[h] = append(x.byHost[h], r)
			}
		case !x.addHeader(m, r):
			x.always = append(x.always, r)
		}
	}
	return x
}

// addHeader puts a rule under the first header that it demands a value of. It reports false if there is none.
func (x *index) addHeader(m *match, rule int32) bool {
	at := slices.IndexFunc(m.headers, func(h headerMatch) bool { return !h.any })
	if at < 0 {
		return false
	}
	h := &m.headers[at]
	i := slices.IndexFunc(x.byHeader, func(x headerIndex) bool { return x.name == h.name })
	if i < 0 {
		i = len(x.byHeader)
		x.byHeader = append(x.byHeader, headerIndex{h.name, make(map[string][]int32)})
	}
	x.byHeader[i].values[h.value] = append(x.byHeader[i].values[h.value], rule)
	return true
}

// everyRequest returns the number of limits that every request meets.
func (x *index) everyRequest(rules []rule) int {
	n := 0
	for _, r := range x.always {
		if rules[r].match.methods == 0 {
			n += len(rules[r].base.limits)
		}
	}
	return n
}

func (n *trieNode) insert(p pattern, rule int32, fold bool) {
	for _, s := range p.segments {
		n = n.child(s, fold)
	}
	if p.prefix {
		n.prefixes = append(n.prefixes, ending{rule, p.text})
	} else {
		n.ends = append(n.ends, ending{rule, p.text})
	}
}

// child returns the node of the next segment, and makes it if there is none.
func (n *trieNode) child(s segment, fold bool) *trieNode {
	if s.param {
		if n.param == nil {
			n.param = &trieNode{}
		}
		return n.param
	}
	literals := &n.literals
	if fold {
		literals = &n.folded
	}
	if *literals == nil {
		*literals = make(map[string]*trieNode)
	}
	next := (*literals)[s.literal]
	if next == nil {
		next = &trieNode{}
		(*literals)[s.literal] = next
	}
	return next
}

// walk collects the endings that match, the most specific first: a literal before a parameter before a prefix, from the
// left.
func (n *trieNode) walk(path *splitPath, at int, found []candidate) []candidate {
	if at == len(path.segments) {
		if !path.more {
			found = appendEndings(found, n.ends)
		}
		return appendEndings(found, n.prefixes)
	}
	if next := n.literals[path.segments[at]]; next != nil {
		found = next.walk(path, at+1, found)
	}
	if n.folded != nil {
		if next := n.folded[path.lower[at]]; next != nil {
			found = next.walk(path, at+1, found)
		}
	}
	if n.param != nil {
		found = n.param.walk(path, at+1, found)
	}
	return appendEndings(found, n.prefixes)
}

func appendEndings(found []candidate, endings []ending) []candidate {
	for _, e := range endings {
		found = append(found, candidate(e))
	}
	return found
}

// find leaves the candidates for the request in s.found, in the order of the policy, each once, with its route.
func (x *index) find(s *scratch, path, host string) {
	s.found, s.route = s.found[:0], anyRoute
	if x.root != nil && strings.HasPrefix(path, "/") {
		s.path.split(path, x.depth, x.folds)
		s.found = x.root.walk(&s.path, 0, s.found)
	}
	if len(s.found) > 0 {
		s.route = s.found[0].route
	}
	s.dropRepeats()
	x.findHosts(s, host)
	x.findHeaders(s)
	x.addAlways(s)
	slices.SortFunc(s.found, func(a, b candidate) int { return int(a.rule) - int(b.rule) })
}

// addAlways puts the rules for every request first, where most policies have them, so that there is little left to sort.
func (x *index) addAlways(s *scratch) {
	had, more := len(s.found), len(x.always)
	s.found = slices.Grow(s.found, more)[:had+more]
	copy(s.found[more:], s.found[:had])
	for i, r := range x.always {
		s.found[i] = candidate{r, s.route}
	}
}

func (x *index) findHosts(s *scratch, host string) {
	if len(x.byHost) == 0 {
		return
	}
	s.addRules(x.byHost[host])
	for rest := host; ; {
		dot := strings.IndexByte(rest, '.')
		if dot < 0 {
			return
		}
		s.addRules(x.byHost[rest[dot:]])
		rest = rest[dot+1:]
	}
}

func (x *index) findHeaders(s *scratch) {
	for i := range x.byHeader {
		h := &x.byHeader[i]
		for _, line := range s.req.Header[h.name] {
			s.addRules(h.values[trim(line)])
		}
	}
}

func (s *scratch) addRules(rules []int32) {
	for _, r := range rules {
		if s.first(r) {
			s.found = append(s.found, candidate{r, s.route})
		}
	}
}

// dropRepeats keeps the first candidate of each rule, which has its most specific route.
func (s *scratch) dropRepeats() {
	kept := s.found[:0]
	for _, c := range s.found {
		if s.first(c.rule) {
			kept = append(kept, c)
		}
	}
	s.found = kept
}

// first tells whether a rule is met for the first time in this request.
func (s *scratch) first(rule int32) bool {
	if s.seen[rule] == s.epoch {
		return false
	}
	s.seen[rule] = s.epoch
	return true
}

// splitPath is a path in segments, decoded, as far as patterns look at it.
type splitPath struct {
	segments []string
	lower    []string // the same in lower case, if a pattern needs it
	more     bool     // the path goes on
}

func (p *splitPath) split(path string, depth int, lower bool) {
	p.clear()
	for rest := trimSlashes(path); rest != ""; {
		if p.more = len(p.segments) == depth; p.more {
			return
		}
		var word string
		word, rest, _ = strings.Cut(rest, "/")
		word = decodeSegment(word)
		p.segments = append(p.segments, word)
		if lower {
			p.lower = append(p.lower, strings.ToLower(word))
		}
	}
}

func trimSlashes(s string) string {
	for s != "" && s[0] == '/' {
		s = s[1:]
	}
	for s != "" && s[len(s)-1] == '/' {
		s = s[:len(s)-1]
	}
	return s
}

func (p *splitPath) clear() {
	clear(p.segments)
	clear(p.lower)
	p.segments, p.lower, p.more = p.segments[:0], p.lower[:0], false
}

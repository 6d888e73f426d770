package policy

import (
	"slices"
	"strings"
)

// anyRoute is the route of a request whose path no pattern of the policy matches.
const anyRoute = "/**"

// index finds the rules that a request may match without looking at the others.
type index struct {
	exact  *trieNode // patterns as they are
	folded *trieNode // patterns with ignore_case, in lower case
	// byHost has the rules without paths, by host; wildcards by the part after "*".
	byHost map[string][]int32
	// always are the rules with neither paths nor hosts.
	always []int32
	depth  int // of the deepest pattern
}

// trieNode is a segment of patterns. Each node is visited at most once per request.
type trieNode struct {
	literals map[string]*trieNode
	param    *trieNode
	ends     []ending // patterns that end here
	prefixes []ending // patterns that go on with /**
}

type ending struct {
	rule  int32
	route string
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
			root := &x.exact
			if m.ignoreCase {
				root = &x.folded
			}
			if *root == nil {
				*root = &trieNode{}
			}
			for _, p := range m.paths {
				(*root).insert(p, r)
				x.depth = max(x.depth, len(p.segments))
			}
		case len(m.hosts) > 0:
			for _, h := range m.hosts {
				x.byHost[h] = append(x.byHost[h], r)
			}
		default:
			x.always = append(x.always, r)
		}
	}
	return x
}

// everyRequest returns the number of limits that every request meets.
func (x *index) everyRequest(rules []rule) int {
	n := 0
	for _, r := range x.always {
		if rules[r].match.methods == 0 {
			n += len(rules[r].charges)
		}
	}
	return n
}

func (n *trieNode) insert(p pattern, rule int32) {
	for _, s := range p.segments {
		if s.param {
			if n.param == nil {
				n.param = &trieNode{}
			}
			n = n.param
			continue
		}
		next := n.literals[s.literal]
		if next == nil {
			if n.literals == nil {
				n.literals = make(map[string]*trieNode)
			}
			next = &trieNode{}
			n.literals[s.literal] = next
		}
		n = next
	}
	if p.prefix {
		n.prefixes = append(n.prefixes, ending{rule, p.text})
	} else {
		n.ends = append(n.ends, ending{rule, p.text})
	}
}

// walk collects the endings that match, the most specific first: a literal before a parameter before a prefix, from the
// left. more tells that the path goes on beyond segments.
func (n *trieNode) walk(segments []string, more bool, found []candidate) []candidate {
	if len(segments) == 0 {
		if !more {
			found = appendEndings(found, n.ends)
		}
		return appendEndings(found, n.prefixes)
	}
	if next := n.literals[segments[0]]; next != nil {
		found = next.walk(segments[1:], more, found)
	}
	if n.param != nil {
		found = n.param.walk(segments[1:], more, found)
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
	s.found = s.found[:0]
	more := false
	if x.exact != nil || x.folded != nil {
		s.segments, more = splitPath(s.segments[:0], path, x.depth)
	}
	onPath := strings.HasPrefix(path, "/")
	if x.exact != nil && onPath {
		s.found = x.exact.walk(s.segments, more, s.found)
	}
	if x.folded != nil && onPath {
		for i := range s.segments {
			s.segments[i] = strings.ToLower(s.segments[i])
		}
		s.found = x.folded.walk(s.segments, more, s.found)
	}
	s.route = anyRoute
	if len(s.found) > 0 {
		s.route = s.found[0].route
	}
	s.dropRepeats()
	x.findHosts(s, host)
	for _, r := range x.always {
		s.found = append(s.found, candidate{r, s.route})
	}
	slices.SortFunc(s.found, func(a, b candidate) int { return int(a.rule) - int(b.rule) })
}

func (x *index) findHosts(s *scratch, host string) {
	if len(x.byHost) == 0 {
		return
	}
	s.addHosts(x.byHost[host])
	for rest := host; ; {
		dot := strings.IndexByte(rest, '.')
		if dot < 0 {
			return
		}
		s.addHosts(x.byHost[rest[dot:]])
		rest = rest[dot+1:]
	}
}

func (s *scratch) addHosts(rules []int32) {
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

// splitPath cuts a path into at most depth segments, decoded, and tells whether it goes on.
func splitPath(segments []string, path string, depth int) (out []string, more bool) {
	rest := strings.Trim(path, "/")
	for rest != "" {
		if len(segments) == depth {
			return segments, true
		}
		var word string
		word, rest, _ = strings.Cut(rest, "/")
		segments = append(segments, decodeSegment(word))
	}
	return segments, false
}

package lint

import (
	"cmp"
	"slices"
	"strings"
)

// coverIndex finds the rules that may match all that another does, without looking at every pair: a policy has up to 10,000
// rules.
type coverIndex struct {
	root coverNode
	// anyPath are the rules without paths.
	anyPath []*rule
}

// coverNode is a segment of the patterns of rules.
type coverNode struct {
	literals, folded map[string]*coverNode // folded: of patterns that ignore case
	param            *coverNode
	ends, prefixes   []*rule
}

func (x *coverIndex) add(r *rule) {
	if len(r.requests.paths) == 0 {
		x.anyPath = append(x.anyPath, r)
	}
	for _, p := range r.requests.paths {
		n := &x.root
		for _, s := range p.segments {
			n = n.child(s, p.fold)
		}
		if p.prefix {
			n.prefixes = append(n.prefixes, r)
		} else {
			n.ends = append(n.ends, r)
		}
	}
}

// child returns the node of the next segment, and makes it if there is none.
func (n *coverNode) child(s segment, fold bool) *coverNode {
	if s.param {
		if n.param == nil {
			n.param = &coverNode{}
		}
		return n.param
	}
	nodes := &n.literals
	if fold {
		nodes = &n.folded
	}
	if *nodes == nil {
		*nodes = make(map[string]*coverNode)
	}
	next := (*nodes)[s.literal]
	if next == nil {
		next = &coverNode{}
		(*nodes)[s.literal] = next
	}
	return next
}

// walk adds the rules with a pattern that covers p from its segment at on, and perhaps some more.
func (n *coverNode) walk(p pattern, at int, found []*rule) []*rule {
	found = append(found, n.prefixes...)
	if at == len(p.segments) {
		return append(found, n.ends...)
	}
	s := p.segments[at]
	if n.param != nil {
		found = n.param.walk(p, at+1, found)
	}
	if next := n.literals[s.literal]; next != nil && !s.param {
		found = next.walk(p, at+1, found)
	}
	if next := n.folded[strings.ToLower(s.literal)]; next != nil && !s.param {
		found = next.walk(p, at+1, found)
	}
	return found
}

// coverers returns the other rules that match every request that a rule matches, in the order of the document, without
// those that are off.
func (s *subject) coverers(r *rule) []*rule {
	if !r.covered {
		r.covered = true
		r.coverers = slices.DeleteFunc(s.covering.cover(&r.requests), func(o *rule) bool { return o == r })
	}
	return r.coverers
}

// cover returns the rules that match every one of the requests.
func (x *coverIndex) cover(q *requests) []*rule {
	found := slices.Clone(x.anyPath)
	if len(q.paths) > 0 {
		found = x.root.walk(q.paths[0], 0, found)
	}
	found = slices.DeleteFunc(found, func(o *rule) bool { return !o.requests.cover(q) })
	slices.SortFunc(found, func(a, b *rule) int { return cmp.Compare(a.index, b.index) })
	return slices.Compact(found)
}

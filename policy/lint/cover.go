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
	// anyPath and anyHost are the rules without paths, and those without hosts.
	anyPath, anyHost []*rule
	// byHost has the others by host, wildcards with their star.
	byHost map[string][]*rule
}

// coverNode is a segment of the patterns of rules.
type coverNode struct {
	literals, folded map[string]*coverNode // folded: of patterns that ignore case
	param            *coverNode
	ends, prefixes   []*rule
}

func (x *coverIndex) add(r *rule) {
	if len(r.Hosts) == 0 {
		x.anyHost = append(x.anyHost, r)
	}
	for _, h := range r.Hosts {
		if x.byHost == nil {
			x.byHost = make(map[string][]*rule)
		}
		x.byHost[h] = append(x.byHost[h], r)
	}
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

// cover returns the rules that match every one of the requests. Of those that may by path, and those that may by host, it
// looks at the fewer.
func (x *coverIndex) cover(q *requests) []*rule {
	var found []*rule
	if len(q.paths) > 0 {
		found = x.root.walk(q.paths[0], 0, nil)
	}
	others := x.anyPath
	if hosts := x.onHost(q); len(hosts)+len(x.anyHost) < len(found)+len(others) {
		found, others = hosts, x.anyHost
	}
	found = append(found, others...)
	found = slices.DeleteFunc(found, func(o *rule) bool { return !o.requests.cover(q) })
	slices.SortFunc(found, func(a, b *rule) int { return cmp.Compare(a.index, b.index) })
	return slices.Compact(found)
}

// onHost returns the rules with a host that covers the first of the requests.
func (x *coverIndex) onHost(q *requests) []*rule {
	if len(q.hosts) == 0 {
		return nil
	}
	host := q.hosts[0]
	found := slices.Clone(x.byHost[host])
	for rest := strings.TrimPrefix(host, "*."); ; {
		_, below, more := strings.Cut(rest, ".")
		if !more {
			return found
		}
		found = append(found, x.byHost["*."+below]...)
		rest = below
	}
}

package lint

import (
	"net/url"
	"slices"
	"strings"
)

// pattern is a path pattern of a policy, as it is matched.
type pattern struct {
	text     string
	segments []segment
	prefix   bool // ends in /**
	fold     bool // ignores case
}

// segment is a literal, decoded and, if the pattern ignores case, in lower case; or a parameter.
type segment struct {
	literal string
	param   bool
}

func newPattern(text string, fold bool) pattern {
	p := pattern{text: text, fold: fold}
	for _, word := range strings.Split(strings.Trim(text, "/"), "/") {
		switch {
		case word == "**":
			p.prefix = true
		case strings.HasPrefix(word, "{"):
			p.segments = append(p.segments, segment{param: true})
		case word != "":
			p.segments = append(p.segments, newLiteral(word, fold))
		}
	}
	return p
}

func newLiteral(word string, fold bool) segment {
	if plain, err := url.PathUnescape(word); err == nil {
		word = plain
	}
	if fold {
		word = lower(word)
	}
	return segment{literal: word}
}

// lower is what the decoder does to patterns that ignore case; strings.EqualFold takes a few more letters for the same.
func lower(s string) string { return strings.ToLower(s) }

// covers tells whether a matches every path that b matches.
func (a pattern) covers(b pattern) bool {
	if len(b.segments) < len(a.segments) || !a.prefix && (b.prefix || len(b.segments) > len(a.segments)) {
		return false
	}
	for i, s := range a.segments {
		if !s.param && (b.segments[i].param || !s.coversLiteral(b.segments[i].literal, a.fold, b.fold)) {
			return false
		}
	}
	return true
}

func (s segment) coversLiteral(other string, fold, otherFold bool) bool {
	switch {
	case fold:
		return s.literal == lower(other)
	case otherFold: // one spelling of several, unless there is but one
		return s.literal == other && strings.ToUpper(other) == other
	}
	return s.literal == other
}

// meets tells whether there is a path that both match.
func (a pattern) meets(b pattern) bool {
	n := min(len(a.segments), len(b.segments))
	for i := range n {
		x, y := a.segments[i], b.segments[i]
		if !x.param && !y.param && x.literal != y.literal &&
			(!a.fold && !b.fold || lower(x.literal) != lower(y.literal)) {
			return false
		}
	}
	return (len(a.segments) == n || b.prefix) && (len(b.segments) == n || a.prefix)
}

// literal tells whether the pattern matches one path only, but for its case.
func (a pattern) literal() bool {
	return !a.prefix && !slices.ContainsFunc(a.segments, func(s segment) bool { return s.param })
}

// requests are those that a rule matches, as far as that can be said without a request. Empty fields match any.
type requests struct {
	methods, hosts []string
	paths          []pattern
	headers        []header
}

// header is a condition on a header: a value, or "*" for any.
type header struct{ name, value string }

func newRequests(methods, hosts, paths, headers []string, fold bool) requests {
	q := requests{methods: methods, hosts: hosts}
	for _, text := range paths {
		q.paths = append(q.paths, newPattern(text, fold))
	}
	for _, text := range headers {
		name, value, _ := strings.Cut(text, ":")
		q.headers = append(q.headers, header{strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)})
	}
	return q
}

// cover tells whether a has every request that b has. It is false where that cannot be shown.
func (a *requests) cover(b *requests) bool {
	return coverEach(a.methods, b.methods, func(x, y string) bool { return x == y }) &&
		coverEach(a.hosts, b.hosts, coversHost) &&
		coverEach(a.paths, b.paths, pattern.covers) &&
		a.headersCover(b)
}

// coverEach tells whether each of b is covered by one of a; an empty set is everything.
func coverEach[T any](a, b []T, covers func(x, y T) bool) bool {
	if len(a) == 0 {
		return true
	}
	return len(b) > 0 && !slices.ContainsFunc(b, func(y T) bool {
		return !slices.ContainsFunc(a, func(x T) bool { return covers(x, y) })
	})
}

func coversHost(x, y string) bool {
	if x == y {
		return true
	}
	below, wild := strings.CutPrefix(x, "*")
	rest := strings.TrimPrefix(y, "*")
	return wild && len(rest) > len(below) && strings.HasSuffix(rest, below)
}

// headersCover tells whether b asks for every header that a asks for.
func (a *requests) headersCover(b *requests) bool {
	return !slices.ContainsFunc(a.headers, func(x header) bool {
		return !slices.ContainsFunc(b.headers, func(y header) bool {
			return x.name == y.name && (x.value == "*" || x.value == y.value)
		})
	})
}

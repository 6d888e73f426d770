package lint

import (
	"slices"
	"strings"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/policy"
)

// subject is a policy, prepared for the checks.
type subject struct {
	rules      []rule
	dimensions map[string]policy.Dimension
	capacity   []policy.Capacity
	lists      map[string]policy.List
	// allow and deny are names of lists whose members meet no rule.
	allow, deny []string
	warnings    []policy.Problem
	now         time.Time
	covering    coverIndex
	found       []Finding
}

// rule is a rule with what checks ask of it.
type rule struct {
	*policy.Rule
	index    int
	requests requests
	// key has the parts of the key, each without the alternatives that no request reaches.
	key []part
	// coverers are the rules that are not off and match every request that this one does; see subject.coverers.
	coverers []*rule
	covered  bool // coverers is known
}

// part is a part of a key: alternatives, of which the first that is present counts.
type part []policy.Dimension

func newSubject(in Input) *subject {
	s := &subject{dimensions: make(map[string]policy.Dimension, len(in.Dimensions)),
		capacity: in.Capacity, warnings: in.Warnings, now: in.Now, lists: make(map[string]policy.List, len(in.Lists)), allow: in.Allow, deny: in.Deny}
	for _, l := range in.Lists {
		s.lists[l.Name] = l
	}
	for _, d := range in.Dimensions {
		s.dimensions[d.Name] = d
	}
	s.rules = make([]rule, len(in.Rules))
	for i := range in.Rules {
		r := &in.Rules[i]
		s.rules[i] = rule{Rule: r, index: i, key: s.key(r.KeyDimensions),
			requests: newRequests(r.Methods, r.Hosts, r.Paths, r.Headers, r.IgnoreCase)}
		if r.Mode != policy.Off {
			s.covering.add(&s.rules[i])
		}
	}
	return s
}

func (s *subject) key(names [][]string) []part {
	var parts []part
	for _, alternatives := range names {
		var p part
		for _, name := range alternatives {
			d := s.dimension(name)
			if p = append(p, d); alwaysThere(d) {
				break
			}
		}
		parts = append(parts, p)
	}
	return parts
}

// dimension returns a dimension by name. One that the policy does not describe is taken for one that may be missing and
// cannot be forged, of which no check says anything.
func (s *subject) dimension(name string) policy.Dimension {
	if d, ok := s.dimensions[name]; ok {
		return d
	}
	return policy.Dimension{Name: name}
}

// alwaysThere tells whether every request has the dimension.
func alwaysThere(d policy.Dimension) bool {
	return slices.Contains([]string{"ip", "route", "method", "path"}, d.Source)
}

// identifies tells whether a dimension says who a request comes from, and not what it asks for.
func identifies(d policy.Dimension) bool {
	return !slices.Contains([]string{"route", "method", "path", "host"}, d.Source)
}

func isAddress(d policy.Dimension) bool { return d.Source == "ip" }

// any tells whether a dimension of the key has a property.
func (r *rule) anyDimension(has func(policy.Dimension) bool) bool {
	return slices.ContainsFunc(r.key, func(p part) bool { return slices.ContainsFunc(p, has) })
}

// enforces tells whether the rule can deny.
func (r *rule) enforces() bool { return r.Mode == policy.Enforce && r.Action != policy.Mark }

// placedLimit is a limit with the place that says it.
type placedLimit struct {
	limit headgate.Limit
	at    policy.Position
	where string // "", or what it stands under, for messages
}

// everyLimit returns the limits of a rule, of its overrides and of its schedule.
func (r *rule) everyLimit() []placedLimit {
	all := make([]placedLimit, 0, len(r.Limits))
	put := func(limits []headgate.Limit, at policy.Position, where string) {
		for _, l := range limits {
			all = append(all, placedLimit{l, at, where})
		}
	}
	put(r.Limits, r.At("limits"), "")
	for _, o := range r.Overrides {
		put(o.Limits, o.Position, " of an override")
	}
	for _, e := range r.Schedule {
		put(e.Limits, e.Position, " of the schedule")
	}
	return all
}

// backed tells whether every request of a rule also meets another that satisfies the condition, can deny, and is about the
// same clients at all times.
func (s *subject) backed(r *rule, by func(*rule) bool) bool {
	return slices.ContainsFunc(s.coverers(r), func(o *rule) bool {
		return o.enforces() && sameClients(o, r) && by(o)
	})
}

// sameClients tells whether o, whose match covers r's, leaves none of r's requests out.
func sameClients(o, r *rule) bool {
	return (o.When == "" || o.When == r.When) &&
		!slices.ContainsFunc(o.Skip, func(list string) bool { return !slices.Contains(r.Skip, list) })
}

// bounds tells whether a client cannot choose its bucket in the rule, nor stay out of it.
func (r *rule) bounds() bool {
	if r.anyDimension(func(d policy.Dimension) bool { return d.Forgeable }) || !r.anyDimension(identifies) {
		return false
	}
	if r.Missing == "skip" && r.optional() != "" {
		return false
	}
	return !r.freePath()
}

// optional returns a part of the key that a request may lack, "" if there is none.
func (r *rule) optional() string {
	for _, p := range r.key {
		if !slices.ContainsFunc(p, alwaysThere) {
			return p.String()
		}
	}
	return ""
}

// freePath tells whether the key holds the path and the rule matches any number of paths.
func (r *rule) freePath() bool {
	return r.anyDimension(func(d policy.Dimension) bool { return d.Source == "path" }) &&
		(len(r.requests.paths) == 0 || slices.ContainsFunc(r.requests.paths, func(p pattern) bool { return !p.literal() }))
}

func (p part) String() string {
	names := make([]string, len(p))
	for i, d := range p {
		names[i] = d.Name
	}
	return strings.Join(names, " | ")
}

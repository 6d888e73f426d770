package policy

import (
	"strconv"
	"strings"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// Bounds of rules.
const (
	maxRules  = 10_000
	maxLimits = 16
	maxParts  = 8
)

// Mode tells what a rule does.
type Mode string

// The modes of a rule.
const (
	Enforce Mode = "enforce" // denies
	Shadow  Mode = "shadow"  // is decided and counted, never acted on
	Off     Mode = "off"     // is only checked at load
)

type missing uint8

const (
	missingShared missing = iota
	missingSkip
	missingDeny
)

// rule is a rule in force. One that is off exists only in Policy.Rules.
type rule struct {
	name    string
	match   match
	skip    []int // lists
	spec    int   // index of the key; -1: none
	missing missing
	shadow  bool
	lockout *headgate.Lockout
	// charges has a charge for each limit, which lacks the key and the holder.
	charges []headgate.Charge
	reports []httpverdict.LimitReport
}

var ruleSchema = schema{
	known: []string{"name", "match", "key", "limits", "missing", "mode", "lockout", "skip"},
	later: []string{"when", "cost", "min_cost", "count_when", "on_deny", "overrides", "schedule", "warmup", "store", "on_error",
		"layer", "unit_cost", "priority"},
}

func (d *decoder) decodeRules(n *node) {
	seen := make(map[string]bool)
	for i, item := range (scope{d, ""}).list(n, "rules", maxRules) {
		s := scope{d, ruleLabel(i, item)}
		fields := s.fields(item, ruleSchema)
		if fields == nil {
			continue
		}
		name, ok := s.ruleName(item, fields["name"])
		if ok && seen[name] {
			s.fail(fields["name"].pos, "the name is taken by an earlier rule; rename one")
		}
		seen[name] = true
		s.decodeRule(item, fields, name)
	}
}

// ruleLabel names a rule in messages: by its name, or by its place if it has no proper one.
func ruleLabel(i int, item *node) string {
	for _, f := range item.fields {
		if f.name == "name" && validName(f.value.text) {
			return "rule " + strconv.Quote(f.value.text)
		}
	}
	return "rule " + strconv.Itoa(i+1)
}

func (s scope) ruleName(item, n *node) (string, bool) {
	if n == nil {
		s.fail(item.pos, "name is missing")
		return "", false
	}
	name, ok := s.text(n, "name")
	if ok && !validName(name) {
		s.fail(n.pos, "%q %s", clip(name, 80), nameRule)
		return "", false
	}
	return name, ok
}

func (s scope) decodeRule(item *node, fields map[string]*node, name string) {
	r := rule{name: name, spec: -1}
	info := Rule{Name: name, Mode: Mode(s.oneOf(fields["mode"], "mode", string(Enforce), string(Shadow), string(Off)))}
	r.shadow = info.Mode == Shadow
	r.match = s.decodeMatch(fields["match"])
	info.Methods, info.Hosts, info.Paths = r.match.texts()
	if key := fields["key"]; key != nil {
		r.spec, info.Key = s.decodeKey(key)
	}
	r.skip = s.listRefs(fields["skip"], "skip", true)
	r.missing = s.decodeMissing(fields["missing"], fields["key"])
	info.Limits = s.decodeLimits(item, fields["limits"])
	r.lockout = s.decodeLockout(fields["lockout"], fields["key"])
	s.p.infos = append(s.p.infos, info)
	if info.Mode != Off {
		r.build(info.Limits)
		s.p.rules = append(s.p.rules, r)
	}
}

// build prepares what every request needs of the rule.
func (r *rule) build(limits []headgate.Limit) {
	for i, l := range limits {
		c := headgate.One(r.name+"/"+strconv.Itoa(i), "", l)
		if r.shadow {
			c.Mode = headgate.Shadow
		}
		c.Lockout = r.lockout
		r.charges = append(r.charges, c)
		name := r.name
		if i > 0 {
			name = c.Slot
		}
		r.reports = append(r.reports, httpverdict.LimitReport{Name: name, Limit: l, Policy: httpverdict.PolicyItem(name, l)})
	}
}

func (s scope) decodeMissing(n, key *node) missing {
	if n != nil && (key == nil || len(key.items) == 0) {
		s.fail(n.pos, "missing has no meaning without a key; remove it")
	}
	switch s.oneOf(n, "missing", "shared", "skip", "deny") {
	case "skip":
		return missingSkip
	case "deny":
		return missingDeny
	}
	return missingShared
}

func (s scope) decodeLimits(item, n *node) []headgate.Limit {
	if n == nil {
		s.fail(item.pos, "limits are missing; write limits: [token_bucket 10/s]")
		return nil
	}
	items := s.list(n, "limits", maxLimits)
	if n.kind == kindSequence && len(n.items) == 0 {
		s.fail(n.pos, "limits is empty; write one such as token_bucket 10/s, or mode: off")
	}
	var limits []headgate.Limit
	for _, item := range items {
		text, ok := s.text(item, "limits")
		if !ok {
			continue
		}
		l, err := headgate.ParseLimit(text)
		if err != nil {
			s.fail(item.pos, "%v", err)
			continue
		}
		limits = append(limits, l)
	}
	return limits
}

var lockoutSchema = schema{known: []string{"after", "within", "for", "max"}}

// decodeLockout reads a lockout; every limit of the rule carries it, and counts its own denials.
func (s scope) decodeLockout(n, key *node) *headgate.Lockout {
	if n == nil {
		return nil
	}
	s.where += ": lockout"
	before := len(s.problems)
	fields := s.fields(n, lockoutSchema)
	if fields == nil {
		return nil
	}
	if key == nil || len(key.items) == 0 {
		s.fail(n.pos, "needs a key: without one it would shut everybody out")
	}
	l := &headgate.Lockout{
		After:  s.integer(fields["after"], "after", 1, 1, headgate.MaxCount),
		Within: s.duration(fields["within"], "within"),
		For:    s.duration(fields["for"], "for"),
		Max:    s.duration(fields["max"], "max"),
	}
	if len(s.problems) > before {
		return nil
	}
	switch {
	case l.For == 0:
		s.fail(n.pos, "for is missing; write how long the key is shut, such as for: 30m")
	case l.After > 1 && l.Within == 0:
		s.fail(n.pos, "within is missing; write in what time %d denials shut the key, such as within: 10m", l.After)
	case l.Max != 0 && l.Max < l.For:
		s.fail(fields["max"].pos, "max %s is shorter than for %s", fields["max"].text, fields["for"].text)
	}
	return l
}

// decodeKey reads a key. It returns -1 for the empty key.
func (s scope) decodeKey(n *node) (spec int, texts []string) {
	var parts []keyPart
	var used = make(map[int]bool)
	for _, item := range s.list(n, "key", maxParts) {
		text, ok := s.text(item, "key")
		if !ok {
			continue
		}
		words := strings.Split(text, "|")
		if len(words) > maxParts {
			s.fail(item.pos, "key %q has %d alternatives; %d are allowed", clip(text, 60), len(words), maxParts)
			continue
		}
		var part keyPart
		for _, word := range words {
			if word = strings.TrimSpace(word); word == "" {
				s.fail(item.pos, "key %q has an empty alternative", clip(text, 60))
				continue
			}
			i := s.findDimension(item.pos, word)
			if i >= 0 && used[i] {
				s.fail(item.pos, "key names dimension %q twice; keep one", s.p.dims[i].name)
			}
			if i >= 0 {
				used[i] = true
				part = append(part, i)
			}
		}
		parts = append(parts, part)
		texts = append(texts, text)
	}
	if len(parts) == 0 {
		return -1, nil
	}
	return s.intern(parts), texts
}

// intern returns the index of a key, one for all rules that have the same.
func (d *decoder) intern(parts []keyPart) int {
	spec := newKeySpec(parts, d.p.dims)
	if i, ok := d.specs[spec.text]; ok {
		return i
	}
	d.specs[spec.text] = len(d.p.specs)
	d.p.specs = append(d.p.specs, spec)
	return len(d.p.specs) - 1
}

package policy

import (
	"net/http"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// applied is a rule that applies to the request.
type applied struct {
	rule  int32
	route string
	// key is where its key stands in the buffer.
	key builtKey
	// first and end are its charges.
	first, end int
	// variants are those that apply to the request, in scratch.variants.
	variant, variants int
	cost              int64
	// after: checked now, charged when the answer is known.
	after bool
	// lifted: its layer is; it asks only whether the key is shut.
	lifted bool
	// dropped: its store has failed, and it asks for nothing then.
	dropped bool
}

// collect finds the rules that apply. It reports false if the request is answered without asking for a charge: a rule
// demands a dimension that is missing, or its cost cannot be known.
func (e *Engine) collect(s *scratch, v *httpverdict.Verdict) bool {
	bit, preflight := methodBit(methodOf(s.req.Method)), isPreflight(s.req)
	for _, c := range s.found {
		rule := &e.policy.rules[c.rule]
		if !rule.match.admits(bit, s.req) {
			continue
		}
		a := applied{rule: c.rule, route: c.route}
		s.route = c.route
		s.personal = s.personal || rule.stale() && !rule.public() && !rule.shadow
		if why := s.stepsAside(rule, preflight); why != "" {
			e.note(v, rule, why)
			continue
		}
		if e.lifts(rule, &a) {
			e.note(v, rule, "the device layer is lifted")
			continue
		}
		s.lifted = s.lifted || a.lifted
		a.key = s.key(rule.spec)
		if a.key.lacking && rule.missing != missingShared {
			e.note(v, rule, "a dimension of the key is missing")
			if rule.missing == missingDeny && !s.lacks(rule, v) {
				return false
			}
			continue
		}
		if !s.costs(rule, &a) {
			e.note(v, rule, "its cost cannot be known")
			if rule.shadow {
				continue
			}
			v.Kind, v.Rule, v.Code = httpverdict.BadRequest, rule.name, string(headgate.CodeInvalidCost)
			return false
		}
		s.choose(e, rule, &a)
		s.applied = append(s.applied, a)
	}
	return true
}

// stepsAside returns why a rule that matches does not apply, "" if it does.
func (s *scratch) stepsAside(rule *rule, preflight bool) string {
	if preflight && rule.spec >= 0 {
		return "preflight"
	}
	if rule.when != nil {
		if on, err := rule.when.Bool(s); err == nil && !on {
			return "when is false"
		}
	}
	if l := s.anyPassing(rule.skip); l >= 0 {
		return "on list " + s.p.lists[l].name
	}
	return ""
}

// lacks notes that a rule denies since a dimension is missing. It reports whether the request goes on all the same.
func (s *scratch) lacks(rule *rule, v *httpverdict.Verdict) bool {
	if rule.shadow {
		v.Shadow = append(v.Shadow, rule.name)
		return true
	}
	v.Kind, v.Rule, v.Code = httpverdict.Forbidden, rule.name, "dimension_missing"
	return false
}

// isPreflight recognises the request with which a browser asks whether it may send another: it carries no credentials, so
// it is charged only to rules for everybody.
func isPreflight(r *httpverdict.Request) bool {
	return r.Method == http.MethodOptions && len(r.Header["Origin"]) > 0 && len(r.Header["Access-Control-Request-Method"]) > 0
}

// costs finds out what a request costs. It reports false if that cannot be known, or is too little.
func (s *scratch) costs(rule *rule, a *applied) bool {
	c := &rule.cost
	a.cost, a.after = 1, rule.settled
	switch {
	case c.kind == costRequestBytes && s.req.ContentLength < 0:
		a.cost, a.after = c.least, true // it is known when the body has been read
	case c.kind == costRequestBytes:
		a.cost = max(s.req.ContentLength, c.least)
	case c.afterwards():
		a.cost = c.least
	case c.kind == costExpression:
		cost, err := c.expression.Int(s)
		if err != nil || cost < c.least || cost > headgate.MaxCount {
			return false
		}
		a.cost = cost
	}
	a.cost = min(a.cost, headgate.MaxCount)
	return true
}

// choose finds the limits that a request meets in a rule: those of every override that matches, else the rule's own as
// they are now.
func (s *scratch) choose(e *Engine, rule *rule, a *applied) {
	a.variant = len(s.variants)
	for i := range rule.overrides {
		o := &rule.overrides[i]
		if o.list >= 0 {
			if s.member(o.list) {
				s.variants = append(s.variants, &o.listed)
			}
			continue
		}
		if value, ok := s.value(o.dim); ok {
			if set := o.values[value]; set != nil {
				s.variants = append(s.variants, set)
			}
		}
	}
	if len(s.variants) == a.variant {
		s.variants = append(s.variants, e.baseOf(s, a.rule))
	}
	a.variants = len(s.variants) - a.variant
}

// key builds the key of a request for a spec in the buffer, once for all rules that share it.
func (s *scratch) key(index int) builtKey {
	if index < 0 {
		return builtKey{}
	}
	spec, built := &s.p.specs[index], &s.keys[index]
	if !built.known || spec.perRule {
		from := len(s.buf)
		var lacking bool
		s.buf, lacking = s.appendKey(s.buf, spec)
		*built = builtKey{known: true, lacking: lacking, from: from, to: len(s.buf)}
	}
	return *built
}

// charge turns the rules that apply into charges: those in the cheapest store first, in the order of the policy.
func (s *scratch) charge(v *httpverdict.Verdict) {
	text := string(s.buf) // of the id and all keys, in one allocation
	v.ID = text[:s.idEnd]
	for store := range storeCount {
		from := len(s.charges)
		for i := range s.applied {
			a := &s.applied[i]
			if rule := &s.p.rules[a.rule]; rule.store == store {
				a.first = len(s.charges)
				s.chargeRule(rule, i, text, v.ID)
				a.end = len(s.charges)
			}
		}
		if len(s.charges) > from {
			s.groups = append(s.groups, group{store: store, from: from, to: len(s.charges)})
		}
	}
}

// nextCharge makes room for one charge more, which has the values of an earlier request.
func (s *scratch) nextCharge() *headgate.Charge {
	if n := len(s.charges); n < cap(s.charges) {
		s.charges = s.charges[:n+1]
	} else {
		s.charges = append(s.charges, headgate.Charge{})
	}
	return &s.charges[len(s.charges)-1]
}

func (s *scratch) chargeRule(rule *rule, index int, text, holder string) {
	a := &s.applied[index]
	for _, set := range s.variants[a.variant : a.variant+a.variants] {
		for i, l := range set.limits {
			c := s.nextCharge()
			c.Slot, c.Key, c.Limit, c.Cost = set.slots[i], text[a.key.from:a.key.to], l, a.cost
			c.Mode, c.Holder, c.Lockout = headgate.Pay, "", rule.lockout
			switch {
			case rule.shadow && a.after:
				c.Mode, c.Cost = headgate.Shadow, 0 // looks only; what is left tells whether it would deny
			case rule.shadow:
				c.Mode = headgate.Shadow
			case a.lifted:
				c.Cost = 0
			case a.after:
				c.Mode = headgate.Check
			}
			if _, ok := l.(headgate.Concurrency); ok {
				c.Holder = holder
			}
			if a.key.lacking {
				c.Lockout = nil // one client without the dimension must not shut out all the others
			}
			s.reports = append(s.reports, &set.reports[i])
			s.ruleOf = append(s.ruleOf, int32(index))
		}
	}
}

// note says what became of a rule that does not apply, if somebody wants to know.
func (e *Engine) note(v *httpverdict.Verdict, rule *rule, why string) {
	if e.cfg.Explain {
		v.Matches = append(v.Matches, httpverdict.Match{Rule: rule.name, Shadow: rule.shadow, Skipped: why})
	}
}

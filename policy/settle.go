package policy

import (
	"context"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// settlement charges, when a request is over, what could only be checked before.
type settlement struct {
	engine *Engine
	req    *httpverdict.Request
	parts  []settledRule
	// values are the dimensions as they were when the request was judged: the body is gone by now.
	values []dimensionValue
	// explained, if not nil, is told what each rule was charged; only then there is a settlement of a denied request, which
	// charges nothing.
	explained *httpverdict.Verdict
	denied    bool
}

// settledRule is one rule to settle, in the store that has checked it.
type settledRule struct {
	rule    *rule
	route   string
	limiter headgate.Limiter
	charges []headgate.Charge
	match   int // its place among the explanations
}

// settleLater keeps what is needed to settle, nil if nothing is to be settled.
func (e *Engine) settleLater(s *scratch, v *httpverdict.Verdict) *settlement {
	denied := !v.Allowed() || !s.decision.Allowed
	if denied && !e.cfg.Explain {
		return nil
	}
	var out *settlement
	for i := range s.applied {
		a := &s.applied[i]
		limiter := s.deciderOf(a)
		if !a.after || a.dropped || limiter == nil && !denied {
			continue
		}
		if out == nil {
			out = &settlement{engine: e, req: s.req, denied: denied}
			if e.cfg.Explain {
				out.explained = v
			}
		}
		rule := &s.p.rules[a.rule]
		part := settledRule{rule: rule, limiter: limiter, route: a.route, match: len(v.Matches) + i} // explain adds the others
		for _, c := range s.charges[a.first:a.end] {
			c.Mode, c.Lockout = headgate.Settle, nil
			part.charges = append(part.charges, c)
		}
		out.parts = append(out.parts, part)
		s.remember(rule)
	}
	if out != nil {
		out.values = append([]dimensionValue(nil), s.values...)
	}
	return out
}

// remember finds out the dimensions that the expressions of a rule name, while the request is still there.
func (s *scratch) remember(rule *rule) {
	if rule.countWhen != nil {
		for _, name := range rule.countWhen.Dimensions() {
			s.Dimension(name)
		}
	}
	if rule.cost.expression != nil {
		for _, name := range rule.cost.expression.Dimensions() {
			s.Dimension(name)
		}
	}
}

// deciderOf returns the limiter that has decided a rule's charges.
func (s *scratch) deciderOf(a *applied) headgate.Limiter {
	for i := range s.groups {
		if g := &s.groups[i]; a.first >= g.from && a.first < g.to {
			return g.decided
		}
	}
	return nil
}

// settle charges each rule for the answer, at most what is left.
func (t *settlement) settle(ctx context.Context, res httpverdict.Result) {
	e := t.engine
	s := e.pool.Get().(*scratch)
	defer func() {
		s.end()
		e.pool.Put(s)
	}()
	s.begin(ctx, e, t.req)
	copy(s.values, t.values)
	s.result = res
	var d headgate.Decision
	for i := range t.parts {
		part := &t.parts[i]
		s.route = part.route
		cost := s.settledCost(part.rule)
		if t.explained != nil {
			t.explained.Matches[part.match].Cost = cost
		}
		if cost == 0 || t.denied {
			continue
		}
		for i := range part.charges {
			part.charges[i].Cost = cost
		}
		if err := part.limiter.Take(ctx, part.charges, &d); err != nil && e.cfg.Observer != nil {
			e.cfg.Observer.StoreFailed(string(codeOf(err)), false)
		}
	}
}

// settledCost returns what an answer costs, 0 if it does not count. A condition or a cost that fails counts all the same.
func (s *scratch) settledCost(rule *rule) int64 {
	if rule.countWhen != nil {
		if counts, err := rule.countWhen.Bool(s); err == nil && !counts {
			return 0
		}
	}
	c := &rule.cost
	cost := int64(1)
	switch c.kind {
	case costRequestBytes:
		cost = max(s.req.ContentLength, s.result.RequestBytes)
	case costResponseBytes:
		cost = s.result.Bytes
	case costExpression:
		var err error
		if cost, err = c.expression.Int(s); err != nil {
			cost = c.least
		}
	}
	return min(max(cost, c.least), headgate.MaxCount)
}

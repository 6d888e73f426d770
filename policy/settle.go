package policy

import (
	"context"
	"net/netip"
	"sync/atomic"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// settlement charges, when a request is over, what could only be checked before.
type settlement struct {
	engine *Engine
	req    *httpverdict.Request
	parts  []settledRule
	over   atomic.Bool
	// client, trusted and values are the request as it was judged: its body is gone by now, and who has handled it may have
	// changed its header.
	client  netip.Addr
	trusted bool
	values  []dimensionValue
	// explained, if not nil, is told what each rule was charged; only then there is a settlement of a denied request, which
	// charges nothing.
	explained *httpverdict.Verdict
	denied    bool
}

// settledRule is one rule to settle, in the store that has checked it: those of a group are one take.
type settledRule struct {
	rule    *rule
	route   string
	group   int
	limiter headgate.Limiter
	charges []headgate.Charge
	checked int64 // the cost that was checked
	match   int   // its place among the explanations
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
		group := s.groupOf(a)
		limiter := s.groups[group].decided
		if !a.after || a.dropped || a.lifted || limiter == nil && !denied {
			continue
		}
		if out == nil {
			out = &settlement{engine: e, req: s.req, denied: denied, client: s.client, trusted: s.peerTrusted}
			if e.cfg.Explain {
				out.explained = v
			}
		}
		rule := &s.p.rules[a.rule]
		part := settledRule{rule: rule, group: group, limiter: limiter, route: a.route, checked: a.cost, match: len(v.Matches) + i} // explain adds the others
		for _, c := range s.charges[a.first:a.end] {
			c.Mode, c.Lockout = headgate.Settle, nil
			part.charges = append(part.charges, c)
		}
		out.parts = append(out.parts, part)
		s.route = a.route
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

// groupOf returns the group of a rule's charges.
func (s *scratch) groupOf(a *applied) int {
	for i := range s.groups {
		if a.first < s.groups[i].to {
			return i
		}
	}
	return len(s.groups) - 1
}

// settle charges each rule for the answer, at most what is left, in one take per store. Only the first call does anything.
func (t *settlement) settle(ctx context.Context, res httpverdict.Result) {
	if t.over.Swap(true) {
		return
	}
	ctx, cancel := outliving(ctx)
	defer cancel()
	t.findCosts(ctx, res)
	if t.denied {
		return
	}
	for group := range storeCount {
		t.settleGroup(ctx, int(group))
	}
}

func (t *settlement) settleGroup(ctx context.Context, group int) {
	var limiter headgate.Limiter
	var charges []headgate.Charge
	for i := range t.parts {
		if part := &t.parts[i]; part.group == group && len(part.charges) > 0 {
			limiter, charges = part.limiter, append(charges, part.charges...)
		}
	}
	if limiter == nil {
		return
	}
	var d headgate.Decision
	if err := limiter.Take(ctx, charges, &d); err != nil {
		t.engine.storeFailed(err)
	}
}

// findCosts writes into each rule's charges what the answer costs. A rule for which it does not count has none then.
func (t *settlement) findCosts(ctx context.Context, res httpverdict.Result) {
	s := t.engine.pool.Get().(*scratch)
	defer func() {
		s.end()
		t.engine.pool.Put(s)
	}()
	s.begin(ctx, t.engine, t.req)
	s.client, s.peerTrusted, s.result = t.client, t.trusted, res
	copy(s.values, t.values)
	for i := range t.parts {
		part := &t.parts[i]
		s.route = part.route
		cost := s.settledCost(part.rule, part.checked)
		if t.explained != nil {
			t.explained.Matches[part.match].Cost = cost
		}
		if cost == 0 {
			part.charges = nil
		}
		for c := range part.charges {
			part.charges[c].Cost = cost
		}
	}
}

// settledCost returns what an answer costs, 0 if it does not count. A condition or a cost that fails counts all the same.
// checked is the cost that was asked for before.
func (s *scratch) settledCost(rule *rule, checked int64) int64 {
	if rule.countWhen != nil {
		if counts, err := rule.countWhen.Bool(s); err == nil && !counts {
			return 0
		}
	}
	c := &rule.cost
	cost := checked
	switch {
	case c.kind == costRequestBytes:
		cost = max(s.req.ContentLength, s.result.RequestBytes)
	case c.kind == costResponseBytes:
		cost = s.result.Bytes
	case c.afterwards():
		var err error
		if cost, err = c.expression.Int(s); err != nil {
			cost = c.least
		}
	}
	return min(max(cost, c.least), headgate.MaxCount)
}

// outliving returns the context of what must be done at the end of a request, also if the client has gone away and the
// request's own context is over: it would be free, else, to hang up in time. It ends with a deadline that is still to come,
// and after a second.
func outliving(ctx context.Context) (context.Context, context.CancelFunc) {
	within := giveBackTime
	if deadline, ok := ctx.Deadline(); ok {
		if left := time.Until(deadline); left > 0 {
			within = min(within, left)
		}
	}
	return context.WithTimeout(context.WithoutCancel(ctx), within)
}

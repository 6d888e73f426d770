package policy

import (
	"context"
	"errors"
	"slices"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

const (
	// storeRetry is when a client may come again after a failure of the store: it is expected back at any time.
	storeRetry = time.Second
	// giveBackTime bounds giving back what was charged in another store.
	giveBackTime = time.Second
)

// group is the part of the charges that one store decides.
type group struct {
	store    storeOrder
	from, to int
	// decided is the limiter whose answer counts, nil as long as there is none; fellBack tells that it is the fallback.
	decided  headgate.Limiter
	fellBack bool
	// doubtful: the store, or the fallback, may hold slots for the request that it has said nothing of, or has not given back.
	doubtful [2]bool
}

// The limiters of a group.
const (
	ofStore = iota
	ofFallback
)

// doubt notes that a limiter may have acquired slots although it has answered with an error.
func (g *group) doubt(of int, err error) {
	g.doubtful[of] = g.doubtful[of] || headgate.CodeOf(err) == headgate.CodeIndeterminate
}

// judge asks for all charges and turns the answer into the verdict.
func (e *Engine) judge(s *scratch, v *httpverdict.Verdict) {
	now := e
	if view := e.lineUp(s, v); view != nil {
		now = view
	}
	for v.Kind == httpverdict.Allow {
		if err := now.ask(s); err != nil {
			refuse(s, v, err)
			break
		}
		if s.decision.Allowed {
			break
		}
		next := now.act(s, v)
		if next == nil {
			break
		}
		now = next
	}
	if s.asked > 0 {
		conclude(s, v)
	}
	if v.Allowed() && s.decision.Allowed {
		now.letPass(s, v)
	}
	if e.still {
		now.leaveVirtually(s)
	}
	now.hold(s, v)
	e.explain(s, v)
}

// ask asks the stores, one after the other. What was charged before a denial or an error is given back.
func (e *Engine) ask(s *scratch) error {
	s.decision.Reset(len(s.charges))
	s.asked = 0
	for i := range s.applied {
		s.applied[i].dropped = false // by an earlier take of a request that has waited
	}
	allowed := true
	for i := range s.groups {
		g := &s.groups[i]
		var err error
		if allowed, err = e.askGroup(s, g); err != nil {
			e.giveBack(s, s.groups[:i])
			s.asked = 0
			return err
		}
		if s.asked = g.to; !allowed {
			e.giveBack(s, s.groups[:i])
			break
		}
	}
	if s.lifted {
		s.unbindLifted()
	}
	s.decision.Conclude(s.charges[:s.asked])
	if s.decision.Allowed && !allowed { // a store that does not say which charge has denied denies all the same
		s.decision.Allowed, s.decision.Binding = false, -1
	}
	return nil
}

// unbindLifted lets the charges of rules whose layer is lifted bind nothing: they only look.
func (s *scratch) unbindLifted() {
	for i := range s.charges[:s.asked] {
		if o := &s.decision.Outcomes[i]; o.Allowed && s.appliedOf(i).lifted {
			o.HasRemaining = false
		}
	}
}

func (e *Engine) askGroup(s *scratch, g *group) (allowed bool, err error) {
	limiter := e.limiters[g.store]
	g.decided, g.fellBack = limiter, false
	if len(s.groups) == 1 {
		err = limiter.Take(s.ctx, s.charges, &s.decision)
		allowed = s.decision.Allowed
	} else {
		err = limiter.Take(s.ctx, s.charges[g.from:g.to], &s.part)
		copy(s.decision.Outcomes[g.from:], s.part.Outcomes)
		allowed = s.part.Allowed
	}
	if err == nil {
		return allowed, nil
	}
	g.decided = nil
	g.doubt(ofStore, err)
	clear(s.decision.Outcomes[min(g.from, len(s.decision.Outcomes)):])
	return e.withoutStore(s, g, err)
}

// withoutStore decides a group whose store has failed, as the on_error of its rules say: one that is closed or stale closes
// all, those that are open ask for nothing, and those that are local are one take of the fallback.
func (e *Engine) withoutStore(s *scratch, g *group, cause error) (allowed bool, err error) {
	// A client that has gone away waits for no answer. Would the fallback let it pass, whoever hangs up in time had the
	// limits of the fallback on top.
	left := errors.Is(s.ctx.Err(), context.Canceled)
	decided := false
	if s.onlyShadow(g) || !left && !requestFault(cause) {
		allowed, decided = e.fallBack(s, g, requestFault(cause))
	}
	if e.cfg.Observer != nil && !left { // nor is it a failure of the store
		e.cfg.Observer.StoreFailed(string(codeOf(cause)), decided)
	}
	if !decided {
		return false, cause
	}
	return allowed, nil
}

// onlyShadow tells that no rule of a group could deny the request: then a store that fails does not either.
func (s *scratch) onlyShadow(g *group) bool {
	for i := g.from; i < g.to; i++ {
		if !s.ruleAt(i).shadow {
			return false
		}
	}
	return true
}

// fallBack decides a group without its store. fault tells that the fallback would refuse the charges as well.
func (e *Engine) fallBack(s *scratch, g *group, fault bool) (allowed, decided bool) {
	// The failed take has emptied the decision.
	if len(s.decision.Outcomes) < len(s.charges) {
		s.decision.Reset(len(s.charges))
	}
	charges, places := s.without[:0], s.places[:0]
	for i := g.from; i < g.to; i++ {
		a := s.appliedOf(i)
		switch rule := &s.p.rules[a.rule]; {
		case rule.onError == OnErrorLocal && e.cfg.Fallback != nil && !fault:
			charges, places = append(charges, s.charges[i]), append(places, i)
		case rule.onError == OnErrorOpen, rule.shadow:
			a.dropped = true
			s.decision.Outcomes[i].Allowed = true
		default:
			return false, false
		}
	}
	if len(charges) == 0 {
		return true, true
	}
	s.without, s.places = charges, places // for the next request
	ctx := s.ctx
	if _, limited := ctx.Deadline(); limited || ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx) // that deadline may be what failed the store; memory needs no time
	}
	if err := e.cfg.Fallback.Take(ctx, charges, &s.part); err != nil {
		g.doubt(ofFallback, err)
		return s.drop(g), s.onlyShadow(g)
	}
	g.decided, g.fellBack = e.cfg.Fallback, true
	for i, at := range places {
		s.decision.Outcomes[at] = s.part.Outcomes[i]
	}
	return s.part.Allowed, true
}

// drop lets the charges of a group ask for nothing.
func (s *scratch) drop(g *group) bool {
	for i := g.from; i < g.to; i++ {
		s.appliedOf(i).dropped = true
		s.decision.Outcomes[i].Allowed = true
	}
	return true
}

// giveBack refunds what earlier groups have charged.
func (e *Engine) giveBack(s *scratch, groups []group) {
	for i := range groups {
		g := &groups[i]
		refunder, ok := g.decided.(headgate.Refunder)
		if !ok {
			continue // nothing was charged, or NewEngine has refused it
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), giveBackTime)
		part := headgate.Decision{Outcomes: s.decision.Outcomes[g.from:g.to]}
		if err := refunder.Refund(ctx, s.charges[g.from:g.to], &part); err != nil {
			of := ofStore
			if g.fellBack {
				of = ofFallback
			}
			g.doubtful[of] = true // its slots are released at the end
			e.storeFailed(err)
		}
		cancel()
	}
}

func (e *Engine) storeFailed(err error) {
	if e.cfg.Observer != nil {
		e.cfg.Observer.StoreFailed(string(codeOf(err)), false)
	}
}

// appliedOf returns the rule that a charge belongs to.
func (s *scratch) appliedOf(charge int) *applied { return &s.applied[s.ruleOf[charge]] }

// ruleAt returns the same as it is in the policy.
func (s *scratch) ruleAt(charge int) *rule { return &s.p.rules[s.appliedOf(charge).rule] }

// requestFault tells whether another store would refuse the same charges as well.
func requestFault(err error) bool {
	switch headgate.CodeOf(err) {
	case headgate.CodeInvalidCost, headgate.CodeInvalidLimit, headgate.CodeInvalidCharge, headgate.CodeDuplicateCharge,
		headgate.CodeTooManyCharges, headgate.CodeInvalidTime, headgate.CodeUnsupported:
		return true
	}
	return false
}

// codeOf names an error also if the store did not.
func codeOf(err error) headgate.Code {
	if code := headgate.CodeOf(err); code != "" {
		return code
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return headgate.CodeTimeout
	}
	return headgate.CodeInternal
}

// refuse writes the verdict of a request that no store has judged.
func refuse(s *scratch, v *httpverdict.Verdict, err error) {
	switch code := codeOf(err); code {
	case headgate.CodeInvalidCost:
		v.Kind, v.Code = httpverdict.BadRequest, string(code)
		return
	case headgate.CodeOverloaded:
		v.Kind, v.Code = httpverdict.Overloaded, string(code)
	default:
		v.Kind, v.Code = httpverdict.Unavailable, "store_"+string(code)
		if requestFault(err) {
			v.Code = string(code)
		}
	}
	v.RetryAfter = headgate.Retry{After: storeRetry}
	s.setStale(v, func(r *rule) bool { return r.onError == OnErrorStale })
}

// conclude writes the outcomes of a decision into the verdict.
func conclude(s *scratch, v *httpverdict.Verdict) {
	for i := range s.charges[:s.asked] {
		c, o, a := &s.charges[i], &s.decision.Outcomes[i], s.appliedOf(i)
		rule := &s.p.rules[a.rule]
		switch {
		case a.dropped, a.lifted && o.Allowed:
			continue
		case rule.shadow:
			wouldDeny := !o.Allowed || a.after && o.HasRemaining && o.Remaining < a.cost
			if wouldDeny && !slices.Contains(v.Shadow, rule.name) {
				v.Shadow = append(v.Shadow, rule.name)
			}
			continue
		}
		if i == s.decision.Binding {
			v.Binding = len(v.Limits)
			if v.Rule == "" {
				v.Rule = rule.name
			}
		}
		report := *s.reports[i]
		report.Outcome = *o
		v.Limits = append(v.Limits, report)
		if s.decision.Allowed && c.Mode != headgate.Settle {
			v.Wait = max(v.Wait, o.Wait)
		}
	}
}

// deny writes the verdict of a denial.
func deny(s *scratch, v *httpverdict.Verdict) {
	v.Kind, v.Code = httpverdict.Limited, headgate.ReasonLimited.String()
	if s.decision.Binding < 0 {
		return // a store that denies names the charge; one that does not still denies
	}
	o := &s.decision.Outcomes[s.decision.Binding]
	v.RetryAfter, v.Code = o.RetryAfter, o.Reason.String()
	if o.Reason == headgate.ReasonLockedOut {
		v.Kind = httpverdict.LockedOut
	}
}

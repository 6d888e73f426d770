package policy

import (
	"context"
	"errors"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// storeRetry is when a client may come again after a failure of the store: it is expected back at any time.
const storeRetry = time.Second

// take asks for all charges at once and turns the answer into the verdict.
func (e *Engine) take(ctx context.Context, s *scratch, v *httpverdict.Verdict) {
	decided := e.limiter
	err := e.limiter.Take(ctx, s.charges, &s.decision)
	uncertain := err != nil && headgate.CodeOf(err) == headgate.CodeIndeterminate
	if err != nil {
		if decided = e.fallBack(ctx, s, err); decided == nil && !s.onlyShadow() {
			refuse(v, err)
		}
	}
	if decided != nil {
		conclude(s, v)
	}
	e.hold(ctx, s, v, decided, uncertain)
}

// onlyShadow tells that no rule could deny the request: then a store that fails does not either.
func (s *scratch) onlyShadow() bool {
	for i := range s.charges {
		if s.charges[i].Mode != headgate.Shadow {
			return false
		}
	}
	return true
}

// fallBack asks the fallback after an error of the store. It returns nil if there is none, or if it failed too.
func (e *Engine) fallBack(ctx context.Context, s *scratch, cause error) headgate.Limiter {
	var decided headgate.Limiter
	// A client that has gone away waits for no answer. Would the fallback let it pass, whoever hangs up in time had the
	// limits of the fallback on top.
	left := errors.Is(ctx.Err(), context.Canceled)
	if e.fallback != nil && !left && !requestFault(cause) {
		// The caller's deadline may be what failed the store; memory needs no time.
		if err := e.fallback.Take(context.WithoutCancel(ctx), s.charges, &s.decision); err == nil {
			decided = e.fallback
		}
	}
	if e.observer != nil && !left { // nor is it a failure of the store
		e.observer.StoreFailed(string(codeOf(cause)), decided != nil)
	}
	return decided
}

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
func refuse(v *httpverdict.Verdict, err error) {
	switch code := codeOf(err); code {
	case headgate.CodeInvalidCost:
		v.Kind, v.Code, v.Detail = httpverdict.BadRequest, string(code), "The cost of the request cannot be charged."
		return
	case headgate.CodeOverloaded:
		v.Kind, v.Code = httpverdict.Overloaded, string(code)
	default:
		v.Kind, v.Code = httpverdict.Unavailable, "store_"+string(code)
		if requestFault(err) {
			v.Code = string(code)
		}
	}
	v.Detail = "The service cannot take the request at the moment. Please try again."
	v.RetryAfter = headgate.Retry{After: storeRetry}
}

// conclude writes the verdict of a decision.
func conclude(s *scratch, v *httpverdict.Verdict) {
	for i := range s.charges {
		c, o := &s.charges[i], &s.decision.Outcomes[i]
		rule := &s.p.rules[s.rules[i]]
		if c.Mode == headgate.Shadow {
			if n := len(v.Shadow); !o.Allowed && (n == 0 || v.Shadow[n-1] != rule.name) {
				v.Shadow = append(v.Shadow, rule.name)
			}
			continue
		}
		if i == s.decision.Binding {
			v.Binding, v.Rule = len(v.Limits), rule.name
		}
		report := rule.reports[s.limitOf(i)]
		report.Outcome = *o
		v.Limits = append(v.Limits, report)
		if s.decision.Allowed {
			v.Wait = max(v.Wait, o.Wait)
		}
	}
	if !s.decision.Allowed {
		deny(s, v)
	}
}

// limitOf returns which of its rule's limits a charge is: the charges of a rule stand together.
func (s *scratch) limitOf(charge int) int {
	n := 0
	for charge-n > 0 && s.rules[charge-n-1] == s.rules[charge] {
		n++
	}
	return n
}

func deny(s *scratch, v *httpverdict.Verdict) {
	v.Kind, v.Code, v.Detail = httpverdict.Limited, headgate.ReasonLimited.String(), "Too many requests. Please try again later."
	if s.decision.Binding < 0 {
		return // a store that denies names the charge; one that does not still denies
	}
	o := &s.decision.Outcomes[s.decision.Binding]
	v.RetryAfter, v.Code = o.RetryAfter, o.Reason.String()
	switch {
	case o.Reason == headgate.ReasonLockedOut:
		v.Kind, v.Detail = httpverdict.LockedOut, "Access is closed for a while after too many requests. Please try again later."
	case o.RetryAfter.State == headgate.RetryNever:
		v.Detail = "The request is larger than what is allowed."
	}
}

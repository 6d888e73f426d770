package gateway

import (
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/middleware/stale"
)

// An allowed request that the service fails is answered with the first of these that there is: the answer that is kept, where the
// verdict lets one be given; the verdict's fallback; what says that it has failed.

// noPlace answers a request that finds no place at the service.
func (x *exchange) noPlace(code string, after time.Duration) {
	if a := x.kept(x.g.cfg.Stale.Kept); a != nil {
		x.give(a)
		return
	}
	x.unserved(httpverdict.Overloaded, code, after)
}

// refuse answers a request that finds no upstream.
func (x *exchange) refuse(r *refusal) {
	switch {
	case r.crowded:
		x.noPlace("upstream_busy", r.after)
	case !x.giveFailed():
		x.unserved(httpverdict.Unavailable, "upstream_unavailable", r.after)
	}
}

// serviceFailed answers a request that an upstream has not.
func (x *exchange) serviceFailed(f *fault) {
	switch {
	case x.giveFailed():
	case x.verdict.Fallback != nil:
		x.unserved(httpverdict.Unavailable, f.code, time.Second)
	default:
		x.fail(f)
	}
}

// giveFailed answers with what is kept, if there is something.
func (x *exchange) giveFailed() bool {
	a := x.kept(x.g.cfg.Stale.Failed)
	if a == nil {
		return false
	}
	x.give(a)
	return true
}

// kept finds an answer for an allowed request. What others are told is not for one that is marked.
func (x *exchange) kept(find func(*stale.Query) *stale.Answer) *stale.Answer {
	if x.reserved || x.verdict.Stale == nil || x.verdict.Over != "" {
		return nil
	}
	return find(x.query())
}

// unserved answers with the verdict's fallback, or a denial in the policy's style.
func (x *exchange) unserved(kind httpverdict.Kind, code string, after time.Duration) {
	x.g.cfg.Renderer.Write(x, x.r, x.verdict.Unserved(kind, code, after))
}

package httpverdict

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// DoneTimeout is how long [Verdict.Finish] lets Done take.
const DoneTimeout = time.Second

// ErrTooManyHeld says that as many requests are held for their wait as may be.
var ErrTooManyHeld = errors.New("too many requests are being held")

// CheckNeeds refuses a decider that needs what a front cannot give. front is the front's name, can what it can do. A front
// calls it when it is made and whenever its policy changes; a decider that is no [Needer] needs nothing.
func CheckNeeds(d Decider, front string, can ...NeedKind) error {
	if d == nil {
		return fmt.Errorf("%s: the decider is nil", front)
	}
	n, ok := d.(Needer)
	if !ok {
		return nil
	}
	for _, need := range n.Needs() {
		if !slices.Contains(can, need.Kind) {
			return fmt.Errorf("%s cannot do what rule %q asks for in %s: %s; change the rule or use another front",
				front, need.Rule, need.Field, need.Kind)
		}
	}
	return nil
}

// Finish calls Done, if there is one, with a context that keeps the values of ctx, outlives it and ends after
// [DoneTimeout]. The front sees to it that it is called once.
func (v *Verdict) Finish(ctx context.Context, res Result) {
	if v.Done == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), DoneTimeout)
	defer cancel()
	v.Done(ctx, res)
}

// Overload returns the denial to answer in place of an allowance that cannot be held for its wait.
func (v *Verdict) Overload() *Verdict {
	o := *v
	o.Kind, o.Code, o.Detail, o.Fallback = Overloaded, "overloaded", "", nil
	o.RetryAfter = headgate.Retry{After: max(v.Wait, time.Second)}
	return &o
}

// Unserved returns the denial to answer in place of an allowance that the service fails: of that kind and code, to be tried
// again after that time. Unlike [Verdict.Overload] it has the allowance's Fallback.
func (v *Verdict) Unserved(kind Kind, code string, after time.Duration) *Verdict {
	u := *v
	u.Kind, u.Code, u.Detail = kind, code, ""
	u.RetryAfter = headgate.Retry{After: max(after, time.Second)}
	return &u
}

// Holds keeps requests for their wait, a bounded number at a time. It is safe for concurrent use.
type Holds struct {
	most int64
	held atomic.Int64
}

// NewHolds returns a Holds for at most that many requests at a time, at least 1.
func NewHolds(most int) *Holds {
	return &Holds{most: int64(max(most, 1))}
}

// Held returns how many requests are held now.
func (h *Holds) Held() int { return int(h.held.Load()) }

// Wait returns nil after the wait, the context's error as soon as that ends, or ErrTooManyHeld at once.
func (h *Holds) Wait(ctx context.Context, wait time.Duration) error {
	if wait <= 0 {
		return nil
	}
	defer h.held.Add(-1)
	if h.held.Add(1) > h.most {
		return ErrTooManyHeld
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

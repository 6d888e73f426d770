package chaos

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/app"
	"github.com/headgate-io/headgate/internal/referee"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// Where an admission was decided.
const (
	byStore = iota
	byLocal
)

// judge gives each request to the next instance, and notes what was let through.
type judge struct {
	instances []httpverdict.Decider
	next      atomic.Uint64
	rules     rulebook
	book      referee.Book
	seen      *observer
	undated   atomic.Int64
}

// Decide implements [httpverdict.Decider].
func (j *judge) Decide(ctx context.Context, r *httpverdict.Request) *httpverdict.Verdict {
	instance := int(j.next.Add(1) % uint64(len(j.instances)))
	c := new(call)
	began := time.Now()
	v := j.instances[instance].Decide(context.WithValue(ctx, callKey{}, c), r)
	ended := time.Now()
	d := decision{instance: instance, began: began, ended: ended, call: *c, admitted: v.Allowed()}
	j.seen.decided(d)
	if d.admitted {
		j.admit(guestOf(r), v, d)
	}
	return v
}

// Needs implements [httpverdict.Needer]: the instances go by one policy.
func (j *judge) Needs() []httpverdict.Need {
	if n, ok := j.instances[0].(httpverdict.Needer); ok {
		return n.Needs()
	}
	return nil
}

// Value says what a dimension of the policy is for a request, which is the same at every instance.
func (j *judge) Value(ctx context.Context, r *httpverdict.Request, dimension string) (string, bool) {
	if g, ok := j.instances[0].(*app.Guard); ok {
		return g.Value(ctx, r, dimension)
	}
	return "", false
}

// decision is one decision of an instance.
type decision struct {
	instance     int
	began, ended time.Time
	call         call
	admitted     bool
}

// by tells who decided.
func (d decision) by() int {
	if d.call.asked && d.call.err == nil {
		return byStore
	}
	return byLocal
}

// admit notes a request that was let through under every rule it counts for. That it was, and by which keys, is the referee's
// own finding; of the verdict it uses the times.
func (j *judge) admit(g guest, v *httpverdict.Verdict, d decision) {
	for i := range j.rules {
		c := &j.rules[i]
		key, ok := c.applies(g)
		if !ok {
			continue
		}
		for n, limit := range c.limits {
			at, own := d.ended.UnixMicro(), false
			if report := reportOf(v, c.rule, n); report != nil {
				at, own = referee.Moment(limit, &report.Outcome, d.began, d.ended)
			}
			if !own {
				j.undated.Add(1)
			}
			j.book.Add(slot(c.rule, n), key, limit, referee.Admission{At: at, Units: 1, By: d.by()})
		}
	}
}

func slot(rule string, n int) string { return fmt.Sprintf("%s/%02d", rule, n) }

// reportOf finds what a verdict says of the nth limit of a rule.
func reportOf(v *httpverdict.Verdict, rule string, n int) *httpverdict.LimitReport {
	name := rule
	if n > 0 {
		name = fmt.Sprintf("%s/%d", rule, n)
	}
	for i := range v.Limits {
		if v.Limits[i].Name == name {
			return &v.Limits[i]
		}
	}
	return nil
}

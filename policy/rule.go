package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/policy/internal/expr"
	"github.com/headgate-io/headgate/policy/internal/schedule"
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

// storeOrder is the order in which stores are asked: what costs least first.
type storeOrder uint8

const (
	storeLocal storeOrder = iota
	storeLeased
	storeStrict
	storeCount
)

// rule is a rule in force. One that is off exists only in Policy.Rules.
type rule struct {
	name    string
	match   match
	when    *expr.Expression // nil: always
	skip    []int            // lists
	spec    int              // index of the key; -1: none
	missing missing
	shadow  bool
	lockout *headgate.Lockout

	base      variant
	overrides []override
	// plan changes the base in time; nil if it never changes.
	plan *schedule.Plan
	// warm names the rule with its limits and its warm-up; "" if it does not warm up.
	warm string

	cost      cost
	countWhen *expr.Expression // nil: every answer counts
	// settled: checked before, charged when the answer is known.
	settled bool

	action action
	store  storeOrder
	layer  Layer
	// ranked: it states a priority.
	ranked  bool
	rank    rank
	onError OnError
	// body: the request's body must be read for it.
	body bool
}

// variant is a set of limits that a request may meet in a rule, with what every request needs of it.
type variant struct {
	limits []headgate.Limit
	// slots name the states; names are those in answers.
	slots []string
	// reports have no outcome.
	reports []httpverdict.LimitReport
}

// override is a variant for the requests with a value of a dimension, or on a list.
type override struct {
	list   int // -1: by dimension
	dim    int
	values map[string]*variant // by dimension
	listed variant             // by list
}

// cost is what a request costs.
type cost struct {
	kind costKind
	text string
	// expression is for costExpression.
	expression *expr.Expression
	least      int64
}

type costKind uint8

const (
	costOne costKind = iota
	costRequestBytes
	costResponseBytes
	costExpression
)

// action is what is done with a denied request.
type action struct {
	kind     Action
	maxWait  time.Duration
	maxAge   time.Duration
	public   bool
	fallback *httpverdict.Fallback
}

// rejects tells whether nothing but a denial comes of it.
func (a *action) rejects() bool {
	switch a.kind {
	case Wait, Mark, Stale, Fallback:
		return false
	}
	return true
}

// stale tells whether answers are kept for the rule.
func (r *rule) stale() bool { return r.action.kind == Stale || r.onError == OnErrorStale }

// public tells whether the rule says that answers may be given to anybody.
func (r *rule) public() bool { return r.action.kind == Stale && r.action.public }

// newVariant prepares limits. suffix tells the variants of a rule apart, "" for its own limits.
func newVariant(rule, suffix string, limits []headgate.Limit) variant {
	v := variant{limits: limits}
	for i, l := range limits {
		v.slots = append(v.slots, rule+suffix+"/"+strconv.Itoa(i))
		name := rule
		if i > 0 {
			name = rule + "/" + strconv.Itoa(i)
		}
		v.reports = append(v.reports, httpverdict.LimitReport{Name: name, Limit: l, Policy: httpverdict.PolicyItem(name, l)})
	}
	return v
}

// with returns the variant with other limits in the same slots.
func (v *variant) with(rule string, limits []headgate.Limit) variant {
	out := newVariant(rule, "", limits)
	out.slots = v.slots
	return out
}

// slotSuffix names an override among the variants of a rule. A value that is no plain word is hashed.
func slotSuffix(kind, value string) string {
	if !validName(value) {
		sum := sha256.Sum256([]byte(value))
		value = "#" + hex.EncodeToString(sum[:8])
	}
	return "@" + kind + "=" + value
}

// warmIdentity names what warms up: the rule, its limits and how. A change elsewhere in the document does not begin it anew,
// since it would cut a running service down.
func warmIdentity(rule string, limits []headgate.Limit, w *schedule.Warmup) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %g %d", rule, w.From, w.Over)
	for _, l := range limits {
		fmt.Fprintf(sum, " %q", l)
	}
	return rule + "#" + hex.EncodeToString(sum.Sum(nil)[:16])
}

// variants calls f with everything that a request may meet in the rule.
func (r *rule) variants(f func(*variant)) {
	f(&r.base)
	for i := range r.overrides {
		o := &r.overrides[i]
		if o.list >= 0 {
			f(&o.listed)
		}
		for _, v := range o.values {
			f(v)
		}
	}
}

// hasLimit tells whether a request may meet a limit of some kind in the rule.
func (r *rule) hasLimit(is func(headgate.Limit) bool) bool {
	found := false
	r.variants(func(v *variant) {
		for _, l := range v.limits {
			found = found || is(l)
		}
	})
	if r.plan != nil {
		for _, limits := range r.plan.Extremes() {
			for _, l := range limits {
				found = found || is(l)
			}
		}
	}
	return found
}

func isConcurrency(l headgate.Limit) bool {
	_, ok := l.(headgate.Concurrency)
	return ok
}

// isQueue tells whether an allowed request may have to wait.
func isQueue(l headgate.Limit) bool {
	q, ok := l.(headgate.LeakyBucket)
	if !ok {
		return false
	}
	wait, bounded := q.MaxWait()
	return !bounded || wait > 0
}

// isLeasable tells whether a limit can be leased.
func isLeasable(l headgate.Limit) bool {
	switch l.(type) {
	case headgate.TokenBucket, headgate.FixedWindow, headgate.SlidingWindow:
		return true
	}
	return false
}

// letsNothingPass tells whether a limit denies everything.
func letsNothingPass(l headgate.Limit) bool {
	switch l := l.(type) {
	case headgate.TokenBucket:
		num, _ := l.Rate().Count()
		return num == 0
	case headgate.LeakyBucket:
		num, _ := l.Rate().Count()
		return num == 0
	case interface{ Count() int64 }:
		return l.Count() == 0
	}
	return false
}

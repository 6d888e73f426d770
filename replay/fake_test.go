package replay

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// fakeRule is a rule by method and prefix, keyed by address or by a dimension.
type fakeRule struct {
	RuleInfo
	method, prefix string
	key            string // a dimension, or "" for none
}

// fakePolicy is a decider that explains itself, on a real store.
type fakePolicy struct {
	rules []fakeRule
	deny  string // an address that a list denies
	store headgate.Timed
	now   time.Time
	seen  *[]httpverdict.Request
	done  *[]httpverdict.Result
	// holders is how many have asked for a slot.
	holders *int
}

func (f *fakePolicy) HasDimension(name string) bool { return name == "user" }

func (f *fakePolicy) At(now time.Time) httpverdict.Decider {
	view := *f
	view.now = now
	return &view
}

func (f *fakePolicy) Decide(ctx context.Context, r *httpverdict.Request) *httpverdict.Verdict {
	v := &httpverdict.Verdict{Binding: -1}
	if f.seen != nil {
		*f.seen = append(*f.seen, *r)
	}
	if f.deny != "" && r.Dimensions["ip"] == f.deny {
		v.Kind, v.Rule, v.Code = httpverdict.Forbidden, "list:scanners", "list_denied"
		return v
	}
	var charges []headgate.Charge
	for _, rule := range f.rules {
		if rule.method != "" && rule.method != r.Method || !strings.HasPrefix(r.Path, rule.prefix) {
			continue
		}
		m := httpverdict.Match{Rule: rule.Name, Key: r.Dimensions[rule.key], Shadow: rule.Mode == "shadow", Cost: 1}
		for _, l := range rule.Limits {
			c := headgate.One(rule.Name+"/"+l.String(), m.Key, l)
			if m.Shadow {
				c.Mode = headgate.Shadow
			}
			if _, ok := l.(headgate.Concurrency); ok {
				*f.holders++
				c.Holder = strconv.Itoa(*f.holders)
			}
			charges = append(charges, c)
			m.Limits = append(m.Limits, httpverdict.LimitReport{Name: rule.Name, Limit: l})
		}
		v.Matches = append(v.Matches, m)
	}
	var d headgate.Decision
	if err := f.store.At(f.now).Take(ctx, charges, &d); err != nil {
		v.Kind, v.Code = httpverdict.Unavailable, string(headgate.CodeOf(err))
		return v
	}
	explain(v, &d)
	if v.Allowed() && f.done != nil {
		v.Done = func(ctx context.Context, res httpverdict.Result) {
			*f.done = append(*f.done, res)
			f.release(ctx, charges)
		}
	}
	return v
}

func (f *fakePolicy) release(ctx context.Context, charges []headgate.Charge) {
	slots := f.store.At(f.now).(headgate.Slots)
	for i := range charges {
		if charges[i].Holder != "" {
			_ = slots.Release(ctx, &charges[i]) // a memory store that is open has no error
		}
	}
}

func explain(v *httpverdict.Verdict, d *headgate.Decision) {
	n := 0
	for i := range v.Matches {
		m := &v.Matches[i]
		for j := range m.Limits {
			m.Limits[j].Outcome = d.Outcomes[n]
			if m.Shadow && !d.Outcomes[n].Allowed {
				v.Shadow = append(v.Shadow, m.Rule)
			}
			if !d.Allowed && d.Binding == n {
				v.Kind, v.Rule, v.Code = httpverdict.Limited, m.Rule, "limited"
			}
			n++
		}
	}
}

func limits(texts ...string) []headgate.Limit {
	var all []headgate.Limit
	for _, t := range texts {
		all = append(all, headgate.MustParseLimit(t))
	}
	return all
}

// newFake returns a policy on a store of its own.
func newFake(t testing.TB, name string, rules ...fakeRule) (Policy, *fakePolicy) {
	t.Helper()
	store := memstore.New(memstore.Config{SweepInterval: -1})
	t.Cleanup(func() { _ = store.Close() })
	f := &fakePolicy{rules: rules, store: store, holders: new(int)}
	p := Policy{Name: name, Decider: f, Overflowed: func() uint64 { return store.Stats().Overflowed }}
	for _, r := range rules {
		p.Rules = append(p.Rules, r.RuleInfo)
	}
	return p, f
}

// shop is a policy as a shop may have it.
func shop(t testing.TB, name, login string) (Policy, *fakePolicy) {
	return newFake(t, name,
		fakeRule{RuleInfo: RuleInfo{Name: "site", Mode: "enforce", Limits: limits("token_bucket 50/s burst=100")}, prefix: "/"},
		fakeRule{RuleInfo: RuleInfo{Name: "login", Mode: "enforce", Keyed: true, Limits: limits(login)}, method: "POST", prefix: "/login", key: "ip"},
		fakeRule{RuleInfo: RuleInfo{Name: "sms", Mode: "enforce", Keyed: true, Limits: limits("sliding_log 1/1m"), UnitCostMicros: 50_000, Currency: "CNY"}, method: "POST", prefix: "/sms", key: "ip"},
		fakeRule{RuleInfo: RuleInfo{Name: "browse", Mode: "shadow", Keyed: true, Limits: limits("token_bucket 1/s burst=2")}, method: "GET", prefix: "/", key: "ip"},
	)
}

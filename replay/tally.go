package replay

import (
	"slices"
	"strings"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// judged is one request and the verdict on it, as the tallies need them.
type judged struct {
	at      int64
	client  uint64 // hash of the client's address
	allowed bool
	settled bool   // nothing is charged any more when the request is over
	rule    string // that decided
	shadow  []string
}

// watched tells whether a shadow rule would have denied the request.
func (r *judged) watched(rule string) bool { return slices.Contains(r.shadow, rule) }

// sideTally sums up what one policy did.
type sideTally struct {
	rules  []*ruleTally
	byName map[string]*ruleTally
	lists  map[string]int64
	kinds  map[string]int64
	errors map[string]int64 // codes of what could not be judged

	requests, denied int64
	before, after    perSecond
	waited, marked   int64
	longestWait      time.Duration
	unexplained      int64
	totals           bool // of single rules only their totals are asked for
}

// mostNames bounds the names that a decider may come up with beside the rules that were told.
const mostNames = 10_000

func newSideTally(rules []RuleInfo) *sideTally {
	t := &sideTally{byName: map[string]*ruleTally{}, lists: map[string]int64{}, kinds: map[string]int64{}, errors: map[string]int64{}}
	for _, info := range rules {
		t.add(info, len(rules))
	}
	return t
}

func (t *sideTally) add(info RuleInfo, rules int) *ruleTally {
	r := newRuleTally(info, rules)
	t.rules = append(t.rules, r)
	t.byName[info.Name] = r
	return r
}

func (t *sideTally) see(r *judged, v *httpverdict.Verdict) {
	t.requests++
	t.before.add(r.at)
	if r.allowed {
		t.after.add(r.at)
		if v.Wait > 0 {
			t.waited++
			t.longestWait = max(t.longestWait, v.Wait)
		}
		if v.Over != "" {
			t.marked++
		}
	} else {
		t.deny(v)
	}
	if v.Matches == nil && len(v.Limits) > 0 {
		t.unexplained++
	}
	explained := false
	for i := range v.Matches {
		m := &v.Matches[i]
		if m.Skipped != "" {
			continue
		}
		explained = explained || m.Rule == r.rule
		if rule := t.rule(m.Rule); rule != nil {
			if rule.see(r, m); !t.totals {
				rule.seeWho(r, m)
			}
		}
	}
	if rule := t.byName[r.rule]; !r.allowed && !explained && rule != nil { // for want of a dimension, before there was a key
		rule.refuse(r)
	}
}

// settle notes what a request was charged when it was over, at once or some time after it was seen. The times of see and
// settle together never go back.
func (t *sideTally) settle(at int64, v *httpverdict.Verdict) {
	if t.totals {
		return
	}
	for i := range v.Matches {
		m := &v.Matches[i]
		if rule := t.byName[m.Rule]; rule != nil && rule.info.Settled && m.Skipped == "" {
			rule.settle(at, m)
		}
	}
}

func (t *sideTally) deny(v *httpverdict.Verdict) {
	t.denied++
	t.kinds[v.Kind.String()]++
	judged := v.Kind != httpverdict.Unavailable && v.Kind != httpverdict.BadRequest && (v.Kind != httpverdict.Overloaded || v.Rule != "")
	if !judged && len(t.errors) < mostNames {
		t.errors[v.Code]++
	}
	if t.byName[v.Rule] == nil && v.Rule != "" && len(t.lists) < mostNames {
		t.lists[v.Rule]++
	}
}

// rule returns the tally of a rule, nil for one too many.
func (t *sideTally) rule(name string) *ruleTally {
	if r := t.byName[name]; r != nil || len(t.rules) >= mostNames {
		return r
	}
	return t.add(RuleInfo{Name: strings.Clone(name), Keyed: true}, max(len(t.rules), 100))
}

func (t *sideTally) total() Total {
	total := Total{
		Requests: t.requests, Allowed: t.requests - t.denied, Denied: t.denied, DenialRate: share(t.denied, t.requests),
		PeakBefore: t.before.peak, PeakBeforeAt: time.Unix(t.before.at, 0).UTC(), PeakAfter: t.after.peak, Kinds: t.kinds,
		Waited: t.waited, Marked: t.marked, LongestWaitMS: float64(t.longestWait.Microseconds()) / 1e3,
	}
	total.Money = t.money()
	return total
}

// money sums up the costs of the rules by currency, in the order in which the currencies come up. Sums are whole
// millionths, so that none is off by what floats lose.
func (t *sideTally) money() (all []Money) {
	var spent, saved []int64
	for _, r := range t.rules {
		if r.info.UnitCostMicros == 0 {
			continue
		}
		i := slices.IndexFunc(all, func(m Money) bool { return m.Currency == r.info.Currency })
		if i < 0 {
			i = len(all)
			all, spent, saved = append(all, Money{Currency: r.info.Currency}), append(spent, 0), append(saved, 0)
		}
		s, d := r.micros()
		spent[i] += s
		saved[i] += d
		all[i].Spent, all[i].Saved = float64(spent[i])/1e6, float64(saved[i])/1e6
	}
	return all
}

// clientFlags say what became of a client.
type clientFlags uint8

const (
	clientSeen clientFlags = 1 << iota
	clientHit
	clientHitBefore
)

// allClients bounds the clients that are told apart exactly.
const allClients = 500_000

// clientTally counts clients by what became of them.
type clientTally struct{ sample[clientFlags] }

func (c *clientTally) see(hash uint64, flags clientFlags) {
	if !c.wants(hash) {
		return
	}
	if was := c.items[hash]; was|flags != was {
		c.put(hash, was|flags)
	}
}

// count counts the clients that are as test says.
func (c *clientTally) count(test func(clientFlags) bool) Count {
	n := 0
	for _, f := range c.items {
		if test(f) {
			n++
		}
	}
	return Count{c.scale(n), !c.whole()}
}

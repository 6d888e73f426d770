package metrics

import (
	"strings"
	"sync"
	"sync/atomic"
)

// verdicts are the kinds of a verdict; what is called otherwise is counted as the last.
var verdicts = [...]string{"allow", "limited", "locked_out", "forbidden", "bad_request", "unavailable", "overloaded", none, other}

const (
	verdictNone  = len(verdicts) - 2
	verdictOther = len(verdicts) - 1
	shownAlways  = 2 // allow and limited have a series before they occur, so that a rate of them does
)

func verdictOf(name string) int {
	switch name { // the compiler makes it a search by length
	case "allow":
		return 0
	case "limited":
		return 1
	case "locked_out":
		return 2
	case "forbidden":
		return 3
	case "bad_request":
		return 4
	case "unavailable":
		return 5
	case "overloaded":
		return 6
	case "":
		return verdictNone
	}
	return verdictOther
}

// ruleSeries is what is counted of one rule.
type ruleSeries struct {
	decisions []verdictCell
	shadow    count
	newKeys   count
	leases    [4]count // asked, granted, refunded, lost
	// leaseCalls are the calls for leases, by the code of their failure.
	leaseCalls *table[string, count]
}

// verdictCell counts for some of the callers.
type verdictCell struct {
	n [len(verdicts)]atomic.Uint64
	_ [128 - 8*len(verdicts)]byte
}

func newRuleSeries() *ruleSeries {
	return &ruleSeries{decisions: newCells[verdictCell](), leaseCalls: newCounts[string](maxCodes)}
}

// rules are the series of the rules. Until somebody says which there are, a rule gets its series when it is met; from then on
// only those have one.
type rules struct {
	most    int
	mu      sync.Mutex
	known   atomic.Pointer[ruleSet]
	none    *ruleSeries // nothing matched
	rest    *ruleSeries // all others
	bundled atomic.Int64
}

// ruleSet is never changed once it is seen.
type ruleSet struct {
	series map[string]*ruleSeries
	closed bool
}

func newRules(most int) *rules {
	r := &rules{most: most, none: newRuleSeries(), rest: newRuleSeries()}
	r.known.Store(&ruleSet{})
	return r
}

func (r *rules) of(rule string) *ruleSeries {
	set := r.known.Load()
	if s := set.series[rule]; s != nil {
		return s
	}
	switch {
	case rule == "":
		return r.none
	case set.closed || len(set.series) >= r.most:
		return r.rest
	}
	return r.add(rule)
}

func (r *rules) add(rule string) *ruleSeries {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.known.Load()
	if s := was.series[rule]; s != nil {
		return s
	}
	if was.closed || len(was.series) >= r.most {
		return r.rest
	}
	now := make(map[string]*ruleSeries, len(was.series)+1)
	for name, s := range was.series {
		now[name] = s
	}
	s := newRuleSeries()
	now[rule] = s
	r.known.Store(&ruleSet{series: now})
	return s
}

// set says which rules there are. Those that stay keep their counts.
func (r *rules) set(names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.known.Load()
	now := make(map[string]*ruleSeries, min(len(names), r.most))
	bundled := int64(0)
	for _, name := range names {
		switch {
		case name == "" || now[name] != nil:
		case len(now) >= r.most:
			bundled++
		case was.series[name] != nil:
			now[name] = was.series[name]
		default:
			now[name] = newRuleSeries()
		}
	}
	r.bundled.Store(bundled)
	r.known.Store(&ruleSet{series: now, closed: true})
}

// has tells whether a rule has a series of its own, for figures that cannot be added up.
func (r *rules) has(rule string) bool {
	set := r.known.Load()
	return set.series[rule] != nil || !set.closed && len(set.series) < r.most
}

// each calls f with every rule that has something to show.
func (r *rules) each(f func(name string, s *ruleSeries, known bool)) {
	for name, s := range r.known.Load().series {
		f(strings.ToValidUTF8(name, "?"), s, true)
	}
	f(none, r.none, false)
	f(other, r.rest, false)
}

// ruleOfSlot returns the rule that a slot belongs to: "login/0" and "login@user=u1/0" are of "login". No name of a rule has
// either sign.
func ruleOfSlot(slot string) string {
	if i := strings.IndexAny(slot, "/@"); i >= 0 {
		return slot[:i]
	}
	return slot
}

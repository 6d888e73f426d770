package faults

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/internal/referee"
	"github.com/headgate-io/headgate/policy"
)

// callBound is what no call may take: the 200 ms of the store, and what a loaded machine is late by.
const callBound = 2 * time.Second

// leaseLife is how long a lease of a bucket may be held.
const leaseLife = time.Second

// limitsOf returns the limit of each rule.
func limitsOf(t *testing.T) (limits [allRules]headgate.Limit) {
	t.Helper()
	p, err := policy.Parse("policy", []byte(document), policy.ParseConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range p.Rules() {
		if r.Name != ruleNames()[i] || len(r.Limits) != 1 {
			t.Fatalf("rule %d is %s", i, r.Name)
		}
		limits[i] = r.Limits[0]
	}
	return limits
}

// judge fills in the row, and fails the test if what must hold does not.
func (s *scene) judge() {
	s.t.Helper()
	limits := limitsOf(s.t)
	for rule := range allRules {
		s.judgeRule(rule, limits[rule])
	}
	from := s.ended.UnixMicro()
	for _, n := range s.nodes {
		all, err := n.ledger.more()
		if err != nil {
			s.t.Fatal(err)
		}
		n.noteHeld(all)
		for i := range all {
			s.count(n, &all[i])
		}
		s.row.shut = max(s.row.shut, s.shutAfter(all))
		for _, rule := range [...]uint8{strict, leased} { // the others wait for their window or turn
			if when := backAt(all, rule, from); !n.dead {
				s.row.back = max(s.row.back, time.Duration(when-from)*time.Microsecond)
			}
		}
	}
	s.row.lasted = s.ended.Sub(s.began)
	s.t.Log(s.why)
	if s.row.longest > callBound {
		s.t.Errorf("a call took %s", s.row.longest)
	}
	if s.row.skipped > 0 {
		s.t.Errorf("%d requests found no place: calls must have been held up", s.row.skipped)
	}
}

// count takes one record into the row.
func (s *scene) count(n *node, r *record) {
	switch r.Kind {
	case admitted, denied, refused:
		s.row.decisions++
		if r.By == byFallback {
			s.row.local++
		}
		if r.Kind == refused {
			s.row.refused++
		}
		if took := r.took() - n.kept(r); r.Rule != turn && took > s.row.longest { // a turn lasts as long as it is waited for
			s.row.longest = took
			s.why = fmt.Sprintf("the longest call was one of rule %s, %s after the fault began", ruleNames()[r.Rule],
				time.Duration(r.Began-s.began.UnixMicro())*time.Microsecond)
		}
	case skipped:
		s.row.skipped++
	case breaker:
		if r.By == 1 {
			s.row.opened++
		}
	case flooded:
		s.row.decisions += int(r.A)
		s.row.rate = r.A * int64(time.Second) / int64(max(r.took(), 1))
		s.row.refused += int(r.B)
	case bye:
		s.row.heap = max(s.row.heap, r.A)
	}
}

// shutAfter returns how long into the fault a breaker first opened, 0 if none did.
func (s *scene) shutAfter(all []record) time.Duration {
	from, to := s.began.UnixMicro(), s.ended.UnixMicro()
	for i := range all {
		if r := &all[i]; r.Kind == breaker && r.By == 1 && r.Began >= from && r.Began <= to {
			return time.Duration(r.Began-from) * time.Microsecond
		}
	}
	return 0
}

// noteHeld adds the times that the instance has noted itself, but for those in which it is known to have been stopped.
func (n *node) noteHeld(all []record) {
	known := n.stopped
	for i := range all {
		r := &all[i]
		apart := func(p span) bool { return r.Ended <= p.from || r.Began >= p.to }
		if r.Kind == held && !slices.ContainsFunc(known, func(p span) bool { return !apart(p) }) {
			n.stopped = append(n.stopped, span{r.Began, r.Ended})
		}
	}
}

// heldUp tells whether an instance was kept from running during the fault, other than by it.
func (s *scene) heldUp() bool {
	from, to := s.began.UnixMicro(), s.ended.UnixMicro()
	return slices.ContainsFunc(s.nodes, func(n *node) bool {
		return slices.ContainsFunc(n.stopped, func(p span) bool { return p.from < to && p.to > from })
	})
}

// kept returns for how long of a call the process was kept from running.
func (n *node) kept(r *record) (d time.Duration) {
	for _, p := range n.stopped {
		if from, to := max(p.from, r.Began), min(p.to, r.Ended); to > from {
			d += time.Duration(to-from) * time.Microsecond
		}
	}
	return d
}

// judgeRule counts what was admitted over one limit: by the store alone, which must be nothing unless its data was lost; by
// the fallbacks alone, which is bounded by the limit and a unit for each instance; and by all together. The latter two from
// when the instances know of each other: one that is alone, as far as it knows, has the whole limit when the store is lost.
func (s *scene) judgeRule(rule uint8, limit headgate.Limit) {
	s.t.Helper()
	terms := referee.Terms{}
	if rule == leased {
		terms.Early = leaseLife
	}
	ready := s.ready.UnixMicro()
	own, why := s.judgeThose(rule, limit, terms, func(r *record) bool { return r.By == byStore })
	again := s.renewed * capacity(limit)
	name := ruleNames()[rule]
	if over := own.Sum().Over; over > again {
		s.t.Errorf("%s: the store admitted %d over the limit; %d are its bound; %s", name, over, again, why)
	}
	local, why := s.judgeThose(rule, limit, referee.Terms{Extra: fleetSize}, func(r *record) bool { return r.By == byFallback && r.Began >= ready })
	if over := local.Sum().Over; over > 0 {
		s.t.Errorf("%s: the local limits admitted %d over the limit and one for each instance; %s", name, over, why)
	}
	both, why := s.judgeThose(rule, limit, terms, func(r *record) bool { return r.Began >= ready })
	bound := local.Most() + again
	if over := both.Sum().Over; over > bound {
		s.t.Errorf("%s: %d over the limit; %d is the bound; %s", name, over, bound, why)
	}
	s.row.over += both.Sum().Over
	s.row.bound += bound
}

// capacity is what a limit admits at once when it is unused.
func capacity(limit headgate.Limit) int64 {
	switch l := limit.(type) {
	case headgate.TokenBucket:
		return l.Burst()
	case headgate.FixedWindow:
		return l.Count()
	case headgate.LeakyBucket:
		n, _ := l.Capacity()
		return n
	}
	return 0
}

// judgeThose judges some admissions of a rule, and says which was the first that was over.
func (s *scene) judgeThose(rule uint8, limit headgate.Limit, terms referee.Terms, those func(*record) bool) (j *referee.Judge, why string) {
	s.t.Helper()
	j, err := referee.New(limit, terms)
	if err != nil {
		s.t.Fatal(err)
	}
	why = "none was over"
	for _, a := range s.admissions(rule, limit, those) {
		if first := j.Sum().Over == 0; j.Admit(referee.Admission{At: a.at, Units: 1, By: a.node}) && first {
			why = fmt.Sprintf("the first of instance %d, %s after the fault began, in a call of %s; by its store: %v",
				a.node, time.Duration(a.at-s.began.UnixMicro())*time.Microsecond, a.took(), a.By == byStore)
		}
	}
	return j, why
}

// admission is a record with its place and time.
type admission struct {
	*record
	node int
	at   int64
}

// admissions returns requests of a rule that were admitted, in the order of time.
func (s *scene) admissions(rule uint8, limit headgate.Limit, those func(*record) bool) (found []admission) {
	for number, n := range s.nodes {
		for i := range n.ledger.all {
			if r := &n.ledger.all[i]; r.Kind == admitted && r.Rule == rule && those(r) {
				found = append(found, admission{r, number, r.decided(limit)})
			}
		}
	}
	slices.SortFunc(found, func(a, b admission) int { return cmp.Compare(a.at, b.at) })
	return found
}

const hourMicros = int64(time.Hour / time.Microsecond)

// decided returns when a request was decided: as the store says, if it can be; of a window that was charged ahead, a time
// in that window, if the call touches it; else the end of the call.
func (r *record) decided(limit headgate.Limit) int64 {
	w, ok := limit.(headgate.FixedWindow)
	switch {
	case r.A != 0:
		return r.A
	case r.B == 0 || !ok:
		return r.Ended
	}
	start := r.B // on the store's clock, which may be set wrong by whole hours
	if w.Period() < time.Hour {
		start += (r.Began - start + hourMicros/2) / hourMicros * hourMicros
	}
	if from, to := max(start, r.Began), min(start+w.Period().Microseconds()-1, r.Ended); from <= to {
		return from
	}
	return r.Ended
}

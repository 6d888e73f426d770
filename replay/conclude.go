package replay

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// report sums everything up.
func (j *judge) report(log *logCount, files []FileReport, interrupted bool) *Report {
	r := &Report{
		Policy: shown(j.now.policy.Name, 200), Interrupted: interrupted, Log: j.logReport(log, files),
		Total: j.totalOf(j.now, clientHit), Rules: []RuleReport{}, Lists: j.now.tally.listReports(), Suggestions: []Suggestion{},
		Series: j.seriesReport(j.series.base, widthOf(j.series.width), j.series.points),
	}
	from, points := j.closeUp.end()
	r.Busiest = j.seriesReport(from, 1, points)
	for _, t := range j.now.tally.rules {
		rule := t.report()
		rule.Lacks = j.now.lacks(&t.info)
		r.Rules = append(r.Rules, rule)
		if rule.Lacks == nil { // else all keys are one
			r.Suggestions = append(r.Suggestions, t.suggestions()...)
		}
	}
	if j.before != nil {
		r.Against = shown(j.before.policy.Name, 200)
		total := j.totalOf(j.before, clientHitBefore)
		r.Before, r.Difference = &total, j.differenceReport()
	}
	r.Notes = j.notes(log, r)
	return r
}

func (j *judge) logReport(log *logCount, files []FileReport) LogReport {
	r := LogReport{
		Files: files, Lines: log.lines, Requests: j.requests, Malformed: log.malformedLines, NotHTTP: log.notHTTP,
		OutOfOrder: log.outOfOrder, Late: log.late, Stray: log.stray, MalformedLines: log.malformedSamples,
		Clients: j.clients.count(func(clientFlags) bool { return true }),
	}
	if r.MalformedLines == nil {
		r.MalformedLines = []BadLine{}
	}
	if j.requests > 0 {
		r.From, r.To = timeOf(j.first), timeOf(j.last)
	}
	return r
}

func (j *judge) totalOf(s *side, hit clientFlags) Total {
	t := s.tally.total()
	t.ClientsHit = j.clients.count(func(f clientFlags) bool { return f&hit != 0 })
	t.ClientsShare = share(t.ClientsHit.N, j.clients.count(func(clientFlags) bool { return true }).N)
	return t
}

func (t *sideTally) listReports() []ListReport {
	lists := []ListReport{}
	for name, n := range t.lists {
		lists = append(lists, ListReport{shown(name, 200), n})
	}
	slices.SortFunc(lists, func(a, b ListReport) int { return cmp.Or(cmp.Compare(b.Denied, a.Denied), cmp.Compare(a.Name, b.Name)) })
	return lists
}

func (j *judge) differenceReport() *Difference {
	d := j.difference
	d.NewlyHit = j.clients.count(func(f clientFlags) bool { return f&clientHit != 0 && f&clientHitBefore == 0 })
	d.Relieved = j.clients.count(func(f clientFlags) bool { return f&clientHit == 0 && f&clientHitBefore != 0 })
	d.Rules = []RuleDifference{}
	for _, now := range j.now.tally.ruleTotals() {
		now.In = cmp.Or(now.In, "new")
		d.Rules = append(d.Rules, now)
	}
	for _, was := range j.before.tally.ruleTotals() {
		i := slices.IndexFunc(d.Rules, func(r RuleDifference) bool { return r.Rule == was.Rule })
		if i < 0 {
			i = len(d.Rules)
			d.Rules = append(d.Rules, RuleDifference{Rule: was.Rule, In: cmp.Or(was.In, "old")})
		} else if was.In == "" {
			d.Rules[i].In = "both"
		}
		d.Rules[i].OldRequests, d.Rules[i].OldDenied = was.NewRequests, was.NewDenied
	}
	return &d
}

// ruleTotals returns the figures of every rule, and of every list that denied, as those of a new policy.
func (t *sideTally) ruleTotals() []RuleDifference {
	var all []RuleDifference
	for _, r := range t.rules {
		all = append(all, RuleDifference{Rule: r.info.Name, NewRequests: r.requests, NewDenied: r.denied})
	}
	for _, l := range t.listReports() {
		all = append(all, RuleDifference{Rule: l.Name, In: "list", NewRequests: l.Denied, NewDenied: l.Denied})
	}
	return all
}

func (j *judge) seriesReport(from, slice int64, points []point) Series {
	s := Series{SliceS: slice, Requests: []int64{}, Allowed: []int64{}}
	if len(points) > 0 {
		s.From = time.Unix(from, 0).UTC()
	}
	for _, p := range points {
		s.Requests = append(s.Requests, p.requests)
		s.Allowed = append(s.Allowed, p.allowed)
		if j.before != nil {
			s.Before = append(s.Before, p.before)
		}
	}
	return s
}

// notes says what a reader of the figures must know.
func (j *judge) notes(log *logCount, r *Report) []string {
	notes := slices.Clone(log.notes)
	say := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if j.requests > 0 && !j.fractions {
		say("The log has whole seconds: the requests of one second are judged as if they had come at the same moment.")
	}
	if log.late > 0 {
		say("%s came further out of order than the window and are judged at the time that the replay had reached.", counted(log.late, "request"))
	}
	if log.stray > 0 {
		say("%s came with times that no other lines confirm and are judged at the time of the lines before.", counted(log.stray, "request"))
	}
	if log.unsaid > 0 {
		say("%s came with a name in place of the client's address: to rules by address they have none.", counted(log.unsaid, "request"))
	}
	if !j.clients.whole() {
		say("More than %d clients: their numbers are estimated, within about 0.3%%.", allClients)
	}
	for _, s := range [...]*side{j.now, j.before} {
		if s != nil {
			notes = append(notes, s.notes(j.durations)...)
		}
	}
	if r.Log.Malformed > 0 && r.Log.Malformed*20 > r.Log.Lines {
		say("More than 5%% of the lines are malformed: see whether the format is the right one.")
	}
	if notes == nil {
		notes = []string{}
	}
	return notes
}

// lacks returns the dimensions without which a rule's key is not told at all.
func (s *side) lacks(info *RuleInfo) (names []string) {
	for _, part := range info.KeyDimensions {
		if !slices.ContainsFunc(part, func(name string) bool { return !s.lacking(name) }) {
			names = append(names, part...)
		}
	}
	return names
}

// lacking tells whether no line has a dimension, or what it is made of.
func (s *side) lacking(name string) bool {
	u, ok := s.policy.Unlogged[name]
	switch {
	case !ok || s.set[name] || s.given[u.Header]:
		return false
	case len(u.Needs) > 0:
		return slices.ContainsFunc(u.Needs, s.lacking) // a policy's dimensions make no circle
	}
	return true
}

func (s *side) notes(durations bool) []string {
	var notes []string
	name := shown(s.policy.Name, 200)
	say := func(format string, args ...any) { notes = append(notes, name+": "+fmt.Sprintf(format, args...)) }
	var lacking []string
	for i := range s.policy.Rules {
		for _, name := range slices.Concat(s.policy.Rules[i].KeyDimensions...) {
			if s.lacking(name) {
				lacking = append(lacking, name)
			}
		}
	}
	slices.Sort(lacking)
	for _, dim := range slices.Compact(lacking) {
		say("dimension %s comes from %s, and no line has it: its rules do as missing says (--fields dim.%s=FIELD).",
			strconv.Quote(dim), s.policy.Unlogged[dim].From, dim)
	}
	for _, n := range s.policy.Notes {
		say("%s", shown(n, 400))
	}
	if s.policy.Overflowed != nil {
		if n := s.policy.Overflowed(); n > 0 {
			say("%s found no room for a key of their own and shared one state: denials are too many.", counted(int64(n), "charge"))
		}
	}
	for _, code := range slices.Sorted(maps.Keys(s.tally.errors)) {
		say("%s could not be judged (%s).", counted(s.tally.errors[code], "request"), shown(code, 60))
	}
	if s.tally.unexplained > 0 {
		say("%s not explained: the figures by rule lack them.", counted(s.tally.unexplained, "verdict"))
	}
	for _, r := range s.tally.rules {
		r.notes(say, durations)
	}
	return notes
}

func (t *ruleTally) notes(say func(string, ...any), durations bool) {
	rule := strconv.Quote(t.info.Name)
	for _, g := range t.gauges {
		if _, ok := g.limit.(headgate.Concurrency); ok && t.requests > 0 && !durations {
			say("rule %s: the log does not say how long requests took, so that no slot is ever taken (--fields seconds=FIELD).", rule)
			break
		}
	}
	if t.info.Settled && t.requests > 0 {
		say("rule %s: it is charged for the answers in the log.", rule)
	}
}

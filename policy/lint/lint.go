package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headgate-io/headgate/policy"
)

// Severity says how much a finding matters.
type Severity string

// The severities, the gravest first.
const (
	// Error is for what cannot be meant, such as a rule that never matches.
	Error Severity = "error"
	// Warning is for what is wrong unless there is a reason for it that the policy does not say.
	Warning Severity = "warning"
	// Info is for what is worth knowing.
	Info Severity = "info"
)

// Finding is one thing that is worth a look.
type Finding struct {
	// ID names the check, such as "shadowed-rule". It does not change between versions.
	ID       string
	Severity Severity
	// Rule is the name of the rule that the finding is about, "" for one about another part of the document.
	Rule string
	// Line and Column are its place in the document, counted from 1; 0 if it has none.
	Line, Column int
	// Message says what is so, Reason why it matters, Suggestion what to write instead.
	Message, Reason, Suggestion string
}

// Input is what [Check] looks at.
type Input struct {
	Rules      []policy.Rule
	Dimensions []policy.Dimension
	Capacity   []policy.Capacity
	Lists      []policy.List
	// Allow and Deny are names of lists whose members meet no rule.
	Allow, Deny []string
	// Warnings are what the policy says of itself.
	Warnings []policy.Problem
	// Now is the time by which a schedule lies in the past. The zero time judges no schedule.
	Now time.Time
}

// Check returns what it finds, in the order of the document; of one place, the gravest first. It changes nothing in its
// input, and is safe for concurrent use.
func Check(in Input) []Finding {
	s := newSubject(in)
	for _, c := range checks() {
		s.run(c)
	}
	slices.SortStableFunc(s.found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Severity.rank(), b.Severity.rank()),
			cmp.Compare(a.ID, b.ID))
	})
	return s.found
}

func (v Severity) rank() int { return slices.Index([]Severity{Error, Warning, Info}, v) }

// check is one thing to look for: in one rule at a time, or in the whole policy.
type check struct {
	id       string
	severity Severity
	rule     func(*subject, *rule) []note
	whole    func(*subject) []note
}

// note is what a check says; the subject adds who says it.
type note struct {
	rule                        *rule // nil: none
	at                          policy.Position
	message, reason, suggestion string
}

// checks are all there are, in the order of docs/check.md.
func checks() []check {
	return []check{
		{id: "never-matches", severity: Error, rule: neverMatches},
		{id: "never-allows", severity: Error, rule: neverAllows},
		{id: "never-counts", severity: Error, rule: neverCounts},
		{id: "everybody-listed", severity: Warning, rule: everybodySkipped, whole: everybodyListed},
		{id: "shadowed-rule", severity: Warning, rule: shadowedRule},
		{id: "redundant-limit", severity: Warning, rule: redundantLimit},
		{id: "dead-alternative", severity: Warning, rule: deadAlternative},
		{id: "forgeable-key", severity: Warning, rule: forgeableKey},
		{id: "path-in-key", severity: Warning, rule: pathInKey},
		{id: "missing-skip", severity: Warning, rule: missingSkip},
		{id: "avoidable-rule", severity: Warning, rule: avoidableRule},
		{id: "lockout-by-address", severity: Warning, rule: lockoutByAddress},
		{id: "lockout-by-account", severity: Warning, rule: lockoutByAccount},
		{id: "open-on-costly", severity: Warning, rule: openOnCostly},
		{id: "large-log", severity: Warning, rule: largeLog},
		{id: "late-cost", severity: Warning, rule: lateCost},
		{id: "capacity-exceeded", severity: Warning, whole: capacityExceeded},
		{id: "capacity-unbounded", severity: Warning, whole: capacityUnbounded},
		{id: "shadow-only", severity: Warning, rule: shadowOnly},
		{id: "no-effect", severity: Warning, whole: noEffect},
		{id: "past-schedule", severity: Info, rule: pastSchedule},
		{id: "client-chosen-cost", severity: Info, rule: clientChosenCost},
		{id: "address-64", severity: Info, whole: address64},
		{id: "window-edge", severity: Info, rule: windowEdge},
		{id: "loose-override", severity: Info, rule: looseOverride},
	}
}

// noEffect passes on what the decoder has noted.
func noEffect(s *subject) []note {
	var notes []note
	for _, w := range s.warnings {
		notes = append(notes, note{at: policy.Position{Line: w.Line, Column: w.Column}, message: w.Message,
			reason:     "this version reads it, so that a policy can be written for the next one, and does not act upon it",
			suggestion: "do not rely on it yet",
		})
	}
	return notes
}

// run keeps what a check says. A rule that is off does nothing, so nothing is said of it.
func (s *subject) run(c check) {
	var notes []note
	if c.whole != nil {
		notes = c.whole(s)
	}
	for i := range s.rules {
		if r := &s.rules[i]; c.rule != nil && r.Mode != policy.Off {
			for _, n := range c.rule(s, r) {
				n.rule = r
				notes = append(notes, n)
			}
		}
	}
	for _, n := range notes {
		f := Finding{ID: c.id, Severity: c.severity, Line: n.at.Line, Column: n.at.Column, Message: n.message, Reason: n.reason, Suggestion: n.suggestion}
		if n.rule != nil {
			f.Rule = n.rule.Name
		}
		s.found = append(s.found, f)
	}
}

// String returns LINE:COLUMN: SEVERITY: RULE: MESSAGE [ID], without what has no place or no rule.
func (f Finding) String() string {
	var b strings.Builder
	if f.Line > 0 {
		fmt.Fprintf(&b, "%d:%d: ", f.Line, f.Column)
	}
	b.WriteString(string(f.Severity) + ": ")
	if f.Rule != "" {
		fmt.Fprintf(&b, "rule %q: ", f.Rule)
	}
	b.WriteString(f.Message + " [" + f.ID + "]")
	return b.String()
}

// Of returns what a policy says of itself, judged at a time.
func Of(p *policy.Policy, now time.Time) Input {
	return Input{Rules: p.Rules(), Dimensions: p.Dimensions(), Capacity: p.Capacity(), Lists: p.Lists(), Allow: p.Allow(), Deny: p.Deny(),
		Warnings: p.Warnings(), Now: now}
}

package policy

import (
	"slices"
	"strings"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// explain says what became of every rule that applies.
func (e *Engine) explain(s *scratch, v *httpverdict.Verdict) {
	if !e.cfg.Explain {
		return
	}
	for i := range s.applied {
		a := &s.applied[i]
		rule := &s.p.rules[a.rule]
		m := httpverdict.Match{Rule: rule.name, Key: s.readableKey(rule, a), Shadow: rule.shadow, Cost: a.cost, Over: slices.Contains(s.over, rule.name)}
		switch {
		case a.dropped:
			m.Skipped = "its store has failed"
		case a.first == a.end:
			m.Skipped = "the request was refused before"
		}
		for c := a.first; c < a.end; c++ {
			report := *s.reports[c]
			if c < s.asked {
				report.Outcome = s.decision.Outcomes[c]
			}
			m.Limits = append(m.Limits, report)
		}
		v.Matches = append(v.Matches, m)
	}
}

// readableKey returns the key of a rule for people: "ip=198.51.100.9 route=/login", "device missing".
func (s *scratch) readableKey(rule *rule, a *applied) string {
	if rule.spec < 0 {
		return ""
	}
	s.route = a.route
	var b strings.Builder
	for i, part := range s.p.specs[rule.spec].parts {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(s.readablePart(part))
	}
	return b.String()
}

func (s *scratch) readablePart(part keyPart) string {
	for _, index := range part {
		dim := &s.p.dims[index]
		if value, ok := s.ipText(dim); ok {
			return dim.name + "=" + string(value)
		}
		if value, ok := s.value(index); ok {
			return dim.name + "=" + clip(value, maxKeyPart)
		}
	}
	return s.p.dims[part[0]].name + " missing"
}

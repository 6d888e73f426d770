package policy

import "github.com/headgate-io/headgate/middleware/httpverdict"

// explain says what became of every rule that applies.
func (e *Engine) explain(s *scratch, v *httpverdict.Verdict) {
	if !e.cfg.Explain {
		return
	}
	for i := range s.applied {
		a := &s.applied[i]
		rule := &s.p.rules[a.rule]
		m := httpverdict.Match{Rule: rule.name, Key: string(s.buf[a.key.from:a.key.to]), Shadow: rule.shadow, Cost: a.cost}
		if a.dropped {
			m.Skipped = "its store has failed"
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

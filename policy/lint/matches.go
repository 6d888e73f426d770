package lint

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/headgate-io/headgate/policy"
)

// reserved is where the gateway answers itself.
const reserved = "/_headgate/**"

// neverMatches finds a rule that no request can meet, as far as that can be decided without CEL.
func neverMatches(_ *subject, r *rule) []note {
	var notes []note
	if own := newPattern(reserved, false); len(r.requests.paths) > 0 &&
		!slices.ContainsFunc(r.requests.paths, func(p pattern) bool { return !own.covers(p) }) {
		notes = append(notes, note{at: r.At("match"),
			message:    "never matches: all its paths lie below /_headgate/",
			reason:     "the gateway answers that prefix itself; no request to it reaches a rule",
			suggestion: "remove the rule, or match the paths of the service",
		})
	}
	if bad := slices.DeleteFunc(slices.Clone(r.requests.hosts), possibleHost); len(bad) > 0 && len(bad) == len(r.requests.hosts) {
		notes = append(notes, note{at: r.At("match"),
			message:    fmt.Sprintf("never matches: no client can ask for host %q", bad[0]),
			reason:     "a part of a name has 1 to 63 characters, a name 253, and nothing lies below an address",
			suggestion: "write the host as it stands in the address bar, or *.example.com for all below a name",
		})
	}
	if isFalse(r.When) {
		notes = append(notes, note{at: r.At("when"),
			message:    "never matches: its condition is always false",
			reason:     fmt.Sprintf("when is %s, whatever the request", strings.TrimSpace(r.When)),
			suggestion: "write mode: off to keep a rule without applying it, or remove the condition",
		})
	}
	return notes
}

// possibleHost tells whether a client can ask for a host, or for one below a wildcard.
func possibleHost(host string) bool {
	name, wild := strings.CutPrefix(host, "*.")
	if _, err := netip.ParseAddr(name); err == nil {
		return !wild
	}
	return len(name) <= 253 && !slices.ContainsFunc(strings.Split(name, "."), func(label string) bool {
		return label == "" || len(label) > 63
	})
}

// isFalse tells whether a condition is false by its text. What is false by calculation is not looked for.
func isFalse(when string) bool {
	text := strings.NewReplacer(" ", "", "\t", "", "\n", "", "(", "", ")", "").Replace(when)
	return text == "false" || text == "!true"
}

// avoidableRule finds a rule that a client steps out of by what it writes into a request.
func avoidableRule(s *subject, r *rule) []note {
	field, input := "when", s.chosenInput(r)
	if input == "" && len(r.Headers) > 0 {
		field, input = "match", "a header"
	}
	if input == "" || !r.enforces() || s.backed(r, (*rule).bounds) {
		return nil
	}
	return []note{{at: r.At(field),
		message:    fmt.Sprintf("a client chooses whether the rule applies: %s reads %s", field, input),
		reason:     "a client that writes it otherwise steps out of the rule, and no rule by address stands behind it",
		suggestion: "decide by something that the client cannot write, or add another rule with key: [ip] on the same requests",
	}}
}

// chosenInput returns the first thing in the condition of a rule that a client writes itself, "" if there is none.
func (s *subject) chosenInput(r *rule) string {
	for _, input := range r.WhenInputs {
		if text, ok := map[string]string{"headers": "a header", "cookies": "a cookie", "query": "the query", "bytes": "the length of the body"}[input]; ok {
			return text
		}
	}
	for _, name := range r.WhenDimensions {
		if s.dimension(name).Forgeable {
			return fmt.Sprintf("dimension %q", name)
		}
	}
	return ""
}

// shadowOnly finds a rule on trial whose requests nothing else limits.
func shadowOnly(s *subject, r *rule) []note {
	if r.Mode != policy.Shadow || s.backed(r, func(*rule) bool { return true }) {
		return nil
	}
	return []note{{at: r.At("mode"),
		message:    "is on trial, and no rule that enforces limits the same requests",
		reason:     "mode: shadow counts what would be denied and denies nothing: these requests are not limited at all",
		suggestion: "write mode: enforce when the counts look right, or let another rule limit them meanwhile",
	}}
}

// pastSchedule finds entries of a schedule that will not be in force again.
func pastSchedule(s *subject, r *rule) []note {
	var notes []note
	for _, e := range r.Schedule {
		if e.Until.IsZero() || s.now.IsZero() || e.Until.After(s.now) {
			continue
		}
		notes = append(notes, note{at: e.Position,
			message:    fmt.Sprintf("the schedule entry from %s is over", e.Text),
			reason:     "it does nothing any more",
			suggestion: "remove it, or give it the next date",
		})
	}
	return notes
}

package lint

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/policy"
)

// reserved is where the gateway answers itself: of that, sales is where rules can be of use.
const (
	reserved = "/_headgate/**"
	sales    = "/_headgate/sales/**"
)

// neverMatches finds a rule that no request can meet, as far as that can be decided without one.
func neverMatches(s *subject, r *rule) []note {
	var notes []note
	own, sold := newPattern(reserved, false), newPattern(sales, false)
	if len(r.requests.paths) > 0 && !slices.ContainsFunc(r.requests.paths, func(p pattern) bool { return !own.covers(p) || sold.meets(p) }) {
		notes = append(notes, note{at: r.At("match"),
			message:    "never matches: all its paths lie below /_headgate/, and none at /_headgate/sales",
			reason:     "the gateway has nothing else below that prefix; no request to it reaches a rule",
			suggestion: "remove the rule, or match the paths of the service or of the sale",
		})
	}
	if bad := slices.DeleteFunc(slices.Clone(r.Hosts), possibleHost); len(bad) > 0 && len(bad) == len(r.Hosts) {
		notes = append(notes, note{at: r.At("match"),
			message:    fmt.Sprintf("never matches: no client can ask for host %q", bad[0]),
			reason:     "a part of a name has 1 to 63 characters, a name 253, and nothing lies below an address",
			suggestion: "write the host as it stands in the address bar, or *.example.com for all below a name",
		})
	}
	if r.WhenNever {
		notes = append(notes, note{at: r.At("when"),
			message:    "never matches: its condition is always false",
			reason:     fmt.Sprintf("when is %s, whatever the request", oneLine(r.When)),
			suggestion: "write mode: off to keep a rule without applying it, or remove the condition",
		})
	}
	if list := s.decidedBefore(r); list != "" {
		notes = append(notes, note{at: r.At("match"),
			message:    fmt.Sprintf("never matches: everything that it matches is on list %q", list),
			reason:     "allow, deny and the rule's own skip decide about members of a list before the rule does",
			suggestion: "remove the rule, or take the entries off the list",
		})
	}
	return notes
}

// decidedBefore returns a list that decides about requests of the rule, if all of them are on such lists by one of their
// properties; else "". A path with parameters is on no list that lets pass, and does match, so of those with paths only
// lists of deny count.
func (s *subject) decidedBefore(r *rule) string {
	passing := slices.Concat(s.deny, s.allow, r.Skip)
	for _, by := range []struct {
		dimension     string
		values, lists []string
	}{{"path", r.Paths, s.deny}, {"method", r.Methods, passing}, {"host", r.Hosts, passing}} {
		list := ""
		for _, value := range by.values {
			if list = s.listed(by.dimension, value, by.lists); list == "" {
				break
			}
		}
		if list != "" && !r.IgnoreCase {
			return list
		}
	}
	return ""
}

// listed returns the first of the lists that a value is on, "" if it is on none.
func (s *subject) listed(dimension, value string, lists []string) string {
	for _, name := range lists {
		if l := s.lists[name]; l.Dimension == dimension && isPlain(value) && l.Has(value) {
			return name
		}
	}
	return ""
}

// isPlain tells whether a path, a method or a host is matched as it is written, and matches nothing else.
func isPlain(text string) bool {
	return len(text) > 0 && (len(text) == 1 || !strings.HasSuffix(text, "/")) && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/") == ""
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
	if slices.Contains(r.WhenInputs, "bytes") {
		return "the length of the body"
	}
	return s.written(r.WhenInputs, r.WhenDimensions)
}

// written returns the first of what an expression reads that a client writes itself, "" if there is none.
func (s *subject) written(inputs, dimensions []string) string {
	for _, input := range inputs {
		if text, ok := map[string]string{"headers": "a header", "cookies": "a cookie", "query": "the query"}[input]; ok {
			return text
		}
	}
	for _, name := range dimensions {
		if s.dimension(name).Forgeable {
			return fmt.Sprintf("dimension %q", name)
		}
	}
	return ""
}

// clientChosenCost finds a cost that a client writes itself: it can say less than is so.
func clientChosenCost(s *subject, r *rule) []note {
	input := s.written(r.CostInputs, r.CostDimensions)
	if input == "" || !r.enforces() {
		return nil
	}
	return []note{{at: r.At("cost"),
		message:    fmt.Sprintf("a client chooses what it pays: cost reads %s", input),
		reason:     fmt.Sprintf("a request that says less than is so is charged less, down to min_cost, which is %s", number(r.MinCost)),
		suggestion: "let the service refuse a request whose real amount is another, or take the cost from what the client cannot write",
	}}
}

// lateCost finds a bucket that is charged for answers and checked for next to nothing before: charging an answer takes what is
// left and leaves no debt, so the first unit that comes back lets the next request in.
func lateCost(_ *subject, r *rule) []note {
	if !r.Settled || r.Cost == "" || r.MinCost > 1 || !r.enforces() || !slices.ContainsFunc(r.Limits, refillsSteadily) {
		return nil
	}
	return []note{{at: r.At("cost"),
		message:    "its bucket hardly limits: the cost is known afterwards, and 1 is asked for before",
		reason:     "an answer is charged what is left and leaves no debt, so a client that sends one request after the other passes whenever 1 has come back, whatever its answers cost",
		suggestion: "write min_cost: near what an answer costs, or use a window: fixed_window, sliding_window",
	}}
}

// refillsSteadily tells whether a limit gives back a little at a time.
func refillsSteadily(l headgate.Limit) bool {
	switch l.(type) {
	case headgate.TokenBucket, headgate.LeakyBucket:
		return true
	}
	return false
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

package lint

import (
	"fmt"

	"github.com/headgate-io/headgate/policy"
)

// everybodyListed finds lists of allow and deny that have every address of a kind.
func everybodyListed(s *subject) []note {
	notes := s.listing(s.allow, note{message: "allow", reason: "no rule applies to anybody with one: nothing is limited",
		suggestion: "name the addresses that are meant; to take a rule out of force write mode: off or mode: shadow"})
	return append(notes, s.listing(s.deny, note{message: "deny", reason: "everybody with one is refused",
		suggestion: "name the addresses that are meant"})...)
}

// listing judges the lists of a field; say has the name of the field, and what to say of it.
func (s *subject) listing(names []string, say note) []note {
	var notes []note
	for _, name := range names {
		l := s.lists[name]
		if kind := wholeKind(&l); kind != "" {
			notes = append(notes, note{at: l.Position,
				message: fmt.Sprintf("list %q, which stands in %s, has every %s address", name, say.message, kind),
				reason:  say.reason, suggestion: say.suggestion,
			})
		}
	}
	return notes
}

// everybodySkipped finds a rule that skips every address of a kind.
func everybodySkipped(s *subject, r *rule) []note {
	var notes []note
	for _, name := range r.Skip {
		l := s.lists[name]
		if kind := wholeKind(&l); kind != "" {
			notes = append(notes, note{at: r.At("skip"),
				message:    fmt.Sprintf("skips list %q, which has every %s address", name, kind),
				reason:     "the rule applies to nobody with one",
				suggestion: "name the addresses that are meant, or write mode: off to keep a rule without applying it",
			})
		}
	}
	return notes
}

// wholeKind says of which kind a list has every address, "" for none.
func wholeKind(l *policy.List) string {
	switch {
	case l.AllIPv4 && l.AllIPv6:
		return "IPv4 and IPv6"
	case l.AllIPv4:
		return "IPv4"
	case l.AllIPv6:
		return "IPv6"
	}
	return ""
}

// neverCounts finds a rule that is never charged, and so never denies.
func neverCounts(_ *subject, r *rule) []note {
	if !r.CountNever {
		return nil
	}
	return []note{{at: r.At("count_when"),
		message:    "never counts: no answer meets its condition, so that nothing is ever denied",
		reason:     fmt.Sprintf("count_when is %s, whatever the answer", oneLine(r.CountWhen)),
		suggestion: "write which answers count, such as response.status == 401, or mode: off",
	}}
}

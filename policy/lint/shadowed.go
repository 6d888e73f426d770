package lint

import (
	"fmt"
	"slices"
	"strings"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/policy"
)

// shadowedRule finds a rule that never decides: whenever it denies, another denies too.
//
// The argument: every request that r charges, the other charges as well, at the same cost, in a bucket that holds r's
// bucket; and a limit that tolerates what another admits never denies what that allows. What could break a step of it (a
// limit that changes, a charge after the answer, a store that fails in another way) makes the check silent.
func shadowedRule(s *subject, r *rule) []note {
	for _, o := range s.coverers(r) {
		// Of two that shadow each other, the later one is the useless one.
		if !shadows(o, r) || o.index > r.index && o.requestsWithin(r) && shadows(r, o) {
			continue
		}
		return []note{{at: r.At(""),
			message: fmt.Sprintf("never decides: whenever it denies, rule %q denies too", o.Name),
			reason: fmt.Sprintf("rule %q (line %d) matches every request that this one matches, in the same bucket or a wider one, and its %s is at least as strict as %s",
				o.Name, o.At("").Line, limitsText(o.Limits), limitsText(r.Limits)),
			suggestion: fmt.Sprintf("remove it, give it a stricter limit, or narrow rule %q", o.Name),
		}}
	}
	return nil
}

// requestsWithin tells whether o matches every request of r.
func (r *rule) requestsWithin(o *rule) bool { return o.requests.cover(&r.requests) }

// shadows tells whether o, whose match covers r's, denies whenever r does.
func shadows(o, r *rule) bool {
	return o.Mode == policy.Enforce && r.Lockout == nil && !r.Settled &&
		sameClients(o, r) && alike(o, r) && holdsBucket(o, r) && stricter(o, r)
}

// alike tells whether the rules differ in their limits and in whom they are about, and in nothing else that r would be
// kept for.
func alike(o, r *rule) bool {
	return !o.Settled && o.Cost == r.Cost && o.MinCost == r.MinCost &&
		o.Store == r.Store && o.Store != policy.Leased && // leases are lost in part: charges differ
		o.Action != policy.Mark && (o.Action == r.Action || o.Action == policy.Reject) &&
		(o.OnError == r.OnError || o.OnError == policy.OnErrorClosed || r.OnError == policy.OnErrorOpen) &&
		(o.Layer == r.Layer || o.Layer != policy.LayerDevice) && // the device layer can be lifted
		(r.Priority == o.Priority) && (r.UnitCost == policy.Money{} || r.UnitCost == o.UnitCost)
}

// holdsBucket tells whether two requests that share a bucket of r share one of o.
func holdsBucket(o, r *rule) bool {
	for _, p := range o.KeyDimensions {
		if !slices.ContainsFunc(r.KeyDimensions, func(q []string) bool { return slices.Equal(p, q) }) {
			return false
		}
		if slices.Contains(p, "route") && !slices.Equal(o.Paths, r.Paths) {
			return false // the route is the rule's own pattern
		}
	}
	switch r.Missing {
	case "deny":
		return o.Missing == "deny" && len(o.KeyDimensions) == len(r.KeyDimensions)
	case "skip":
		return true
	}
	return o.Missing != "skip" || o.optional() == ""
}

// stricter tells whether each limit of r tolerates what one of o admits. Limits that change over time are not compared.
func stricter(o, r *rule) bool {
	if len(o.Overrides)+len(o.Schedule)+len(r.Schedule) > 0 || o.WarmupOver > 0 || r.WarmupOver > 0 {
		return false
	}
	limits := r.everyLimit()
	return len(limits) > 0 && !slices.ContainsFunc(limits, func(l placedLimit) bool {
		return !slices.ContainsFunc(o.Limits, func(a headgate.Limit) bool { return tolerates(l.limit, a) })
	})
}

// redundantLimit finds a limit that another of the same rule makes useless.
func redundantLimit(_ *subject, r *rule) []note {
	if r.Settled || r.Lockout != nil || r.Store == policy.Leased {
		return nil
	}
	var notes []note
	lists := []placedList{{r.Limits, r.At("limits")}}
	if len(r.Schedule) > 0 || r.WarmupOver > 0 {
		lists = nil
	}
	for _, o := range r.Overrides {
		lists = append(lists, placedList{o.Limits, o.Position})
	}
	for _, list := range lists {
		notes = append(notes, list.redundant()...)
	}
	return notes
}

type placedList struct {
	limits []headgate.Limit
	at     policy.Position
}

func (p placedList) redundant() []note {
	var notes []note
	for i, b := range p.limits {
		for j, a := range p.limits {
			// Of two that make each other useless, the later one is said to be.
			if i == j || !tolerates(b, a) || j > i && tolerates(a, b) {
				continue
			}
			notes = append(notes, note{at: p.at,
				message:    fmt.Sprintf("limit %s never decides beside %s", b, a),
				reason:     "whenever it denies, the other denies too; it only costs a state for each key",
				suggestion: "remove it, or make it stricter over its own period",
			})
			break
		}
	}
	return notes
}

func limitsText(limits []headgate.Limit) string {
	texts := make([]string, len(limits))
	for i, l := range limits {
		texts[i] = l.String()
	}
	return strings.Join(texts, ", ")
}

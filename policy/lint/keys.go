package lint

import (
	"fmt"
	"math/big"
	"slices"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/policy"
)

// deadAlternative finds "ip | user": the address is always there, so the user never counts.
func deadAlternative(_ *subject, r *rule) []note {
	var notes []note
	for i, p := range r.key {
		names := r.KeyDimensions[i]
		if len(p) == len(names) {
			continue
		}
		last := names[len(p)-1]
		notes = append(notes, note{at: r.At("key"),
			message:    fmt.Sprintf("alternative %q of the key never counts", names[len(p)]),
			reason:     fmt.Sprintf("every request has %q, which stands before it", last),
			suggestion: fmt.Sprintf("write what may be missing first: %s | %s", names[len(p)], last),
		})
	}
	return notes
}

// forgeableKey finds a key that a client chooses itself, where no other rule counts the same requests by something that it
// cannot choose.
func forgeableKey(s *subject, r *rule) []note {
	forged := r.first(func(d policy.Dimension) bool { return d.Forgeable })
	if forged == nil || !r.enforces() || s.backed(r, (*rule).bounds) {
		return nil
	}
	return []note{{at: r.At("key"),
		message:    fmt.Sprintf("the key has dimension %q, which a client writes itself, and no rule by address stands behind it", forged.Name),
		reason:     fmt.Sprintf("a client that sends another %q with each request begins a new bucket each time, and is not limited", forged.Name),
		suggestion: "add another rule with key: [ip] on the same requests, with room for an office behind one address",
	}}
}

// pathInKey finds a key with the path where a client makes up any number of paths.
func pathInKey(s *subject, r *rule) []note {
	if !r.freePath() || !r.enforces() || s.backed(r, (*rule).bounds) {
		return nil
	}
	return []note{{at: r.At("key"),
		message:    "the key has the path, and the rule matches any number of paths",
		reason:     "each path is a bucket of its own: a client that asks for another path each time is not limited",
		suggestion: "write route in place of path: it has one value for each pattern",
	}}
}

// missingSkip finds a rule that a client leaves by sending nothing.
func missingSkip(s *subject, r *rule) []note {
	lacking := r.optional()
	if r.Missing != "skip" || lacking == "" || !r.enforces() || s.backed(r, (*rule).bounds) {
		return nil
	}
	return []note{{at: r.At("missing"),
		message:    fmt.Sprintf("a request without %q is not limited by this rule, nor by another for each client", lacking),
		reason:     "missing: skip leaves such requests out, and leaving it out is up to the client",
		suggestion: fmt.Sprintf("write key: [%s | ip], or missing: shared, or add another rule with key: [ip] on the same requests", lacking),
	}}
}

// address64 finds policies that count IPv6 clients by /64 or less only. It speaks once: what it says is the same for every
// rule.
func address64(s *subject) []note {
	const widest = 56 // what a home has, and its provider gives; many hosts have a /48
	var alone []*rule
	for i := range s.rules {
		r := &s.rules[i]
		if !r.enforces() || !r.anyDimension(func(d policy.Dimension) bool { return isAddress(d) && d.Bits > widest }) {
			continue
		}
		if !s.backed(r, func(o *rule) bool { return o.widePrefixes(widest) }) {
			alone = append(alone, r)
		}
	}
	if len(alone) == 0 {
		return nil
	}
	d := alone[0].first(isAddress)
	also := ""
	if len(alone) > 1 {
		also = "; the same is true of " + ruleNames(alone[1:])
	}
	return []note{{rule: alone[0], at: alone[0].At("key"),
		message:    fmt.Sprintf("IPv6 addresses count by /%d alone%s", d.Bits, also),
		reason:     "one customer of many providers has a /56 or a /48, which is 256 or 65,536 networks of /64, each with a bucket of its own",
		suggestion: "add another rule with key: [ip/48] on the same requests, with limits for a whole site",
	}}
}

// widePrefixes tells whether the rule counts by address alone, with so few bits of IPv6 that one customer is one bucket.
func (r *rule) widePrefixes(bits int) bool {
	return r.bounds() && !slices.ContainsFunc(r.key, func(p part) bool {
		return slices.ContainsFunc(p, func(d policy.Dimension) bool { return identifies(d) && (!isAddress(d) || d.Bits > bits) })
	})
}

// lockoutByAddress finds a lockout that one person of an office sets off for all of it.
func lockoutByAddress(_ *subject, r *rule) []note {
	const bearable = time.Minute
	if r.Lockout == nil || !r.enforces() || r.Lockout.Longest() <= bearable || !r.anyDimension(isAddress) ||
		r.anyDimension(func(d policy.Dimension) bool { return identifies(d) && !isAddress(d) }) {
		return nil
	}
	return []note{{at: r.At("lockout"),
		message:    fmt.Sprintf("the lockout shuts a whole address for up to %s", period(r.Lockout.Longest())),
		reason:     "an office, a school or a mobile network has one address for all: one person who mistypes shuts everybody out",
		suggestion: "lock out by account and address, key: [ACCOUNT, ip], and limit the address without a lockout; or shut it for a minute at most",
	}}
}

// lockoutByAccount finds a lockout that anybody sets off for somebody else.
func lockoutByAccount(_ *subject, r *rule) []note {
	claimed := r.first(claimed)
	if r.Lockout == nil || !r.enforces() || claimed == nil ||
		r.anyDimension(func(d policy.Dimension) bool { return identifies(d) && !d.Forgeable }) {
		return nil
	}
	return []note{{at: r.At("lockout"),
		message:    fmt.Sprintf("anybody can shut out whoever %q names", claimed.Name),
		reason:     "who asks need not be who is named: a few wrong attempts with somebody else's name shut them out",
		suggestion: fmt.Sprintf("lock out by both, key: [%s, ip], and limit %s alone without a lockout", claimed.Name, claimed.Name),
	}}
}

// claimed tells whether a dimension is a name that a client gives, which may be somebody else's. A cookie is not guessed.
func claimed(d policy.Dimension) bool {
	return d.Forgeable && slices.Contains([]string{"header", "query", "json", "cel"}, d.Source)
}

// looseOverride finds an override that is so much looser than the rule that a digit may be wrong.
func looseOverride(_ *subject, r *rule) []note {
	const most = 100
	var notes []note
	for _, o := range r.Overrides {
		for _, l := range o.Limits {
			base, times := loosest(r.Limits, l)
			if times == nil || times.Cmp(big.NewRat(most, 1)) <= 0 {
				continue
			}
			factor := new(big.Int).Quo(times.Num(), times.Denom())
			notes = append(notes, note{at: o.Position,
				message:    fmt.Sprintf("%s is %s times as much as %s", l, grouped(factor), base),
				reason:     fmt.Sprintf("an override that is over %d times looser than its rule is often a slip of a digit or a unit", most),
				suggestion: "look whether count and period are what is meant",
			})
		}
	}
	return notes
}

// loosest compares a limit with the one of the same algorithm that is nearest to it, by what both admit over a long time.
func loosest(base []headgate.Limit, l headgate.Limit) (headgate.Limit, *big.Rat) {
	var nearest headgate.Limit
	var least *big.Rat
	_, rate, ok := line(l)
	for _, b := range base {
		_, baseRate, baseOK := line(b)
		if !ok || !baseOK || b.Algorithm() != l.Algorithm() || baseRate.Sign() == 0 {
			continue
		}
		if times := new(big.Rat).Quo(rate, baseRate); least == nil || times.Cmp(least) < 0 {
			nearest, least = b, times
		}
	}
	return nearest, least
}

// first returns a dimension of the key with a property, nil if none has it.
func (r *rule) first(has func(policy.Dimension) bool) *policy.Dimension {
	for _, p := range r.key {
		if i := slices.IndexFunc(p, has); i >= 0 {
			return &p[i]
		}
	}
	return nil
}

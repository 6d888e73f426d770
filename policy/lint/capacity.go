package lint

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/policy"
)

// Only a rule in whose buckets all clients are together bounds what reaches the service: of others there are as many buckets
// as there are clients.

// capacityExceeded finds paths to which more can come than they are said to bear, in the worst case.
func capacityExceeded(s *subject) []note {
	var notes []note
	for _, c := range s.capacity {
		bear, over := stated(c.Rate)
		full, _ := s.bounding(c)
		var worst *worstCase
		for _, r := range full {
			if w := r.worst(newPattern(c.Path, false), over); w != nil && (worst == nil || w.units.Cmp(worst.units) < 0) {
				worst = w
			}
		}
		if worst == nil || new(big.Rat).SetInt(worst.units).Cmp(bear) <= 0 {
			continue
		}
		notes = append(notes, note{rule: worst.rule, at: c.Position,
			message: fmt.Sprintf("up to %s requests can reach %s within %s; it is said to bear %s",
				grouped(worst.units), c.Path, period(over), ratText(bear)),
			reason:     fmt.Sprintf("rule %q bounds the path best, with %s", worst.rule.Name, strings.Join(worst.parts, "; ")),
			suggestion: fmt.Sprintf("add a rule without a key for %s with limits: [%s], or make rule %q stricter", c.Path, fitting(bear, over), worst.rule.Name),
		})
	}
	return notes
}

// capacityUnbounded finds paths with a stated capacity and no rule that bounds all of their requests together.
func capacityUnbounded(s *subject) []note {
	var notes []note
	for _, c := range s.capacity {
		bear, over := stated(c.Rate)
		full, part := s.bounding(c)
		if len(full) > 0 {
			continue
		}
		reason := "limits with a key bound each client, and there can be any number of clients"
		if len(part) > 0 {
			reason = "of the rules without a key, " + strings.Join(part, ", ")
		}
		notes = append(notes, note{at: c.Position,
			message:    fmt.Sprintf("nothing bounds what reaches %s; it is said to bear %s in %s", c.Path, ratText(bear), period(over)),
			reason:     reason,
			suggestion: fmt.Sprintf("add a rule without key, methods and conditions: {match: {paths: ['%s']}, limits: [%s]}", c.Path, fitting(bear, over)),
		})
	}
	return notes
}

// bounding returns the rules that bound all requests to a path together; and of those that bound some of them, what they
// leave out.
func (s *subject) bounding(c policy.Capacity) (full []*rule, part []string) {
	path := newPattern(c.Path, false)
	all := &requests{paths: []pattern{path}}
	for i := range s.rules {
		r := &s.rules[i]
		if !r.enforces() || !r.bucketsTogether() || len(r.requests.paths) > 0 && !slices.ContainsFunc(r.requests.paths, path.meets) {
			continue
		}
		if gap := r.leavesOut(all); gap != "" {
			part = append(part, fmt.Sprintf("%q %s", r.Name, gap))
		} else {
			full = append(full, r)
		}
	}
	return full, part
}

// bucketsTogether tells whether the rule has one bucket for all clients, or one for each of its own patterns.
func (r *rule) bucketsTogether() bool {
	return !slices.ContainsFunc(r.key, func(p part) bool { return p[0].Source != "route" || len(r.requests.paths) == 0 })
}

// leavesOut says which of the requests the rule does not bound, "" if it bounds them all.
func (r *rule) leavesOut(all *requests) string {
	switch {
	case r.Settled:
		return "counts only after the answer"
	case r.When != "":
		return "has a condition"
	case len(r.Skip) > 0:
		return "skips " + strings.Join(r.Skip, ", ")
	case len(r.Methods) > 0:
		return "is about " + strings.Join(r.Methods, ", ") + " only"
	case len(r.Hosts) > 0:
		return "is about some hosts only"
	case len(r.Headers) > 0:
		return "is about some headers only"
	case !r.requests.cover(all):
		return "is about some of the paths only"
	}
	return ""
}

// worstCase is the most that a rule lets through in a time.
type worstCase struct {
	rule  *rule
	units *big.Int
	parts []string // where they come from
}

// worst returns the worst case of the rule for a path, nil if none of its limits bounds a rate.
func (r *rule) worst(path pattern, over time.Duration) *worstCase {
	w := &worstCase{rule: r, units: new(big.Int)}
	states := [][]placedLimit{placed(r.Limits, "")}
	for _, e := range r.Schedule {
		states = append(states, placed(e.Limits, " ("+e.Text+")"))
	}
	if !w.addHighest(states, over) {
		return nil
	}
	// Each override has buckets of its own, beside those of the rule.
	for _, o := range r.Overrides {
		if !w.addHighest([][]placedLimit{placed(o.Limits, " ("+overrideText(o)+")")}, over) {
			return nil
		}
	}
	w.multiply(r, path)
	switch r.Store {
	case policy.Local:
		w.parts = append(w.parts, "in each process, since its store is local")
	case policy.Leased:
		w.parts = append(w.parts, "and what leases hold for a second")
	}
	return w
}

// addHighest adds what the limits admit in that state in which they admit most.
func (w *worstCase) addHighest(states [][]placedLimit, over time.Duration) bool {
	var highest *big.Int
	var says string
	for _, limits := range states {
		units, l := lowest(limits, w.rule.Store, over)
		if units == nil {
			return false
		}
		if highest == nil || units.Cmp(highest) > 0 {
			highest, says = units, l.limit.String()+l.where+", "+explain(l.limit)
		}
	}
	w.units.Add(w.units, highest)
	w.parts = append(w.parts, says)
	return true
}

// multiply counts a bucket for each pattern of the rule that the path meets, where the key holds the route.
func (w *worstCase) multiply(r *rule, path pattern) {
	if len(r.key) == 0 {
		return
	}
	n := int64(0)
	for _, p := range r.requests.paths {
		if p.meets(path) {
			n++
		}
	}
	if n > 1 {
		w.units.Mul(w.units, big.NewInt(n))
		w.parts = append(w.parts, strconv.FormatInt(n, 10)+" routes with a bucket each")
	}
}

// lowest returns the limit that admits least in a time, and how much that is.
func lowest(limits []placedLimit, store policy.StoreKind, over time.Duration) (*big.Int, placedLimit) {
	var units *big.Int
	var which placedLimit
	for _, l := range limits {
		if n := reaching(l.limit, store, over); n != nil && (units == nil || n.Cmp(units) < 0) {
			units, which = n, l
		}
	}
	return units, which
}

// reaching returns how many requests a limit lets through to the service in a time, nil if it bounds no rate. Each costs at
// least 1.
func reaching(l headgate.Limit, store policy.StoreKind, over time.Duration) *big.Int {
	if store == policy.Leased {
		over += leaseLife // what was charged ahead is spent later
	}
	switch l := l.(type) {
	case headgate.LeakyBucket: // a request waits its turn before it goes on
		if deniesAll(l) {
			return new(big.Int)
		}
		return add(1, flow(l.Rate(), over))
	case headgate.TokenBucket:
		return most(l, over)
	}
	return most(l, over-time.Microsecond)
}

// leaseLife is how long a leased token can be spent after it was charged.
const leaseLife = time.Second

// explain says why a limit admits more than its rate.
func explain(l headgate.Limit) string {
	switch l := l.(type) {
	case headgate.TokenBucket:
		return fmt.Sprintf("a burst of %s and then its rate", number(l.Burst()))
	case headgate.FixedWindow:
		return fmt.Sprintf("%s in each window, so twice that around an edge", number(l.Count()))
	case headgate.SlidingWindow:
		return fmt.Sprintf("%s in its cells, and up to as many again where they came at the end of one", number(l.Count()))
	case headgate.SlidingLog:
		return fmt.Sprintf("%s in any %s, at once if they come so", number(l.Count()), period(l.Period()))
	}
	return "one after the other"
}

// stated returns what a path is said to bear, and in what time.
func stated(l headgate.Limit) (*big.Rat, time.Duration) {
	b, ok := l.(headgate.TokenBucket) // the decoder makes no other
	if !ok {
		return new(big.Rat), time.Second
	}
	num, den := b.Rate().Count()
	return big.NewRat(num, max(den, 1)), b.Rate().Period()
}

// fitting returns a limit that admits no more than a path bears in any stretch of that time.
func fitting(bear *big.Rat, over time.Duration) string {
	whole := new(big.Int).Quo(bear.Num(), bear.Denom())
	if whole.Cmp(big.NewInt(100)) <= 0 {
		return fmt.Sprintf("sliding_log %s/%s", whole, perText(over))
	}
	half := whole.Rsh(whole, 1) // as burst, and again as rate
	return fmt.Sprintf("token_bucket %s/%s burst=%s", half, perText(over), half)
}

// overrideText says which requests an override is for.
func overrideText(o policy.Override) string {
	if o.List != "" {
		return "list " + o.List
	}
	return o.Dimension + " " + o.Value
}

// perText writes a period as a rate has it: s for 1s.
func perText(d time.Duration) string {
	text := period(d)
	if unit, ok := strings.CutPrefix(text, "1"); ok && len(unit) == 1 {
		return unit
	}
	return text
}

func ratText(r *big.Rat) string {
	if r.IsInt() {
		return grouped(r.Num())
	}
	return strings.TrimRight(r.FloatString(6), "0")
}

func placed(limits []headgate.Limit, where string) []placedLimit {
	all := make([]placedLimit, len(limits))
	for i, l := range limits {
		all[i] = placedLimit{limit: l, where: where}
	}
	return all
}

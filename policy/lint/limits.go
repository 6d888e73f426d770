package lint

import (
	"fmt"
	"slices"
	"strings"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/policy"
)

// largeLog finds sliding logs whose memory counts: it grows with the count, and lies there for the period, for each key.
func largeLog(_ *subject, r *rule) []note {
	if len(r.KeyDimensions) == 0 {
		return nil // one log
	}
	var notes []note
	for _, p := range r.everyLimit() {
		l, ok := p.limit.(headgate.SlidingLog)
		if !ok || !isLarge(l) {
			continue
		}
		redis, low, high := 80+7*l.Count(), 155+8*l.Count(), 155+16*l.Count()
		notes = append(notes, note{at: p.at,
			message: fmt.Sprintf("%s%s keeps up to %d times for each key", l, p.where, l.Count()),
			reason: fmt.Sprintf("a key with a full log takes %s on Redis and %s to %s in process, for %s: a million keys are %s or %s",
				bytesText(redis), bytesText(low), bytesText(high), period(l.Period()), bytesText(redis*1e6), bytesText(high*1e6)),
			suggestion: fmt.Sprintf("take sliding_window %d/%s cells=%d, which has at most %s a key on Redis and is wrong by a cell at most",
				l.Count(), period(l.Period()), cellsFor(l.Period()), bytesText(90+6*(cellsFor(l.Period())+1))),
		})
	}
	return notes
}

// isLarge: a log of 100 takes as much as eight token buckets; one that lives a week adds up the keys of that week.
func isLarge(l headgate.SlidingLog) bool {
	return l.Count() > 100 || l.Count() > 20 && l.Period() >= 7*24*time.Hour
}

// cellsFor returns a number of cells that divides the period.
func cellsFor(d time.Duration) int64 {
	for _, n := range []int64{6, 5, 4, 3, 2} {
		if d.Microseconds()%n == 0 {
			return n
		}
	}
	return 1
}

// windowEdge finds short fixed windows, with nothing beside them, on what is dear: twice their count passes at an edge.
func windowEdge(_ *subject, r *rule) []note {
	dear := r.dear()
	if dear == "" || !r.enforces() || slices.ContainsFunc(r.Limits, func(l headgate.Limit) bool { return !isShortWindow(l) }) || len(r.Limits) == 0 {
		return nil
	}
	l, ok := r.Limits[0].(headgate.FixedWindow)
	if !ok {
		return nil
	}
	for _, other := range r.Limits[1:] { // the strictest over its period says most
		if w, ok := other.(headgate.FixedWindow); ok && w.Count() < l.Count() {
			l = w
		}
	}
	return []note{{at: r.At("limits"),
		message:    fmt.Sprintf("%s lets %s through around an edge of its windows", l, grouped(times(l.Count(), 2))),
		reason:     fmt.Sprintf("the end of one window and the beginning of the next lie together, everybody knows when that is, and %s", dear),
		suggestion: "take " + withoutEdge(l),
	}}
}

func isShortWindow(l headgate.Limit) bool {
	w, ok := l.(headgate.FixedWindow)
	return ok && !deniesAll(w) && longest(w) <= mostHour
}

// withoutEdge returns a limit for the same count and period that has no edge.
func withoutEdge(l headgate.FixedWindow) string {
	d := l.Period()
	if d == 0 {
		d = time.Hour
	}
	if l.Count() <= 100 {
		return fmt.Sprintf("sliding_log %d/%s", l.Count(), period(d))
	}
	return fmt.Sprintf("sliding_window %d/%s cells=%d", l.Count(), period(d), cellsFor(d))
}

// dear says why what a rule guards is costly, "" if nothing in the policy says so.
func (r *rule) dear() string {
	switch {
	case r.UnitCost.Micros != 0:
		return "each request costs money (unit_cost)"
	case r.Priority == policy.Critical:
		return "the rule is critical (priority)"
	case r.Lockout != nil:
		return "the rule guards against guessing (lockout)"
	case len(r.Methods) > 0 && !slices.ContainsFunc(r.Methods, reads):
		return fmt.Sprintf("the requests change something (methods: %s)", strings.Join(r.Methods, ", "))
	}
	return ""
}

func reads(method string) bool {
	return slices.Contains([]string{"GET", "OPTIONS", "TRACE", "QUERY", "PROPFIND", "REPORT", "SEARCH"}, method)
}

// openOnCostly finds a rule that guards something dear and lets everything pass while the store is away.
func openOnCostly(_ *subject, r *rule) []note {
	dear := r.dear()
	if r.OnError != policy.OnErrorOpen || dear == "" || !r.enforces() {
		return nil
	}
	return []note{{at: r.At("on_error"),
		message:    "while the store fails the rule lets everything pass",
		reason:     dear + ", and whoever brings the store down is not limited at all",
		suggestion: "write on_error: local, which goes on with limits in this process, or on_error: closed",
	}}
}

// neverAllows finds a rule whose least cost is above what one of its limits can ever admit.
func neverAllows(_ *subject, r *rule) []note {
	var notes []note
	for _, p := range r.everyLimit() {
		ceiling := ceilingOf(p.limit)
		if ceiling <= 0 || r.MinCost <= ceiling || !r.enforces() {
			continue
		}
		notes = append(notes, note{at: p.at,
			message:    fmt.Sprintf("%s%s denies every request: each costs at least %s", p.limit, p.where, number(r.MinCost)),
			reason:     fmt.Sprintf("the limit never has more than %s to give at once, and min_cost is %s", number(ceiling), number(r.MinCost)),
			suggestion: fmt.Sprintf("give it room for a few requests, %s or more, or lower min_cost", number(r.MinCost)),
		})
	}
	return notes
}

// ceilingOf returns the largest cost that a limit can ever admit, 0 for none that is known. A count of zero is how a
// policy shuts something on purpose.
func ceilingOf(l headgate.Limit) int64 {
	if deniesAll(l) {
		return 0
	}
	switch l := l.(type) {
	case headgate.TokenBucket:
		return l.Burst()
	case headgate.LeakyBucket:
		capacity, _ := l.Capacity()
		return capacity
	case interface{ Count() int64 }:
		return l.Count()
	}
	return 0
}

package demoview

import (
	"fmt"
	"time"

	"github.com/headgate-io/headgate/demo"
)

// chaos tells what was admitted while the store was made to fail.
func chaos(say func(string, ...any), c *demo.FaultSummary) {
	say("")
	say("  Over the limits, counted by a referee who goes by their words alone")
	say("    while the data was there  %9s admitted %8s over%s", grouped(c.WithData.Admitted), grouped(c.WithData.Over),
		verdict(c.WithData.Over == 0, "", "  THAT MUST NOT BE"))
	for _, w := range []struct {
		when string
		of   *demo.Without
	}{{"without the store", &c.WithoutStore}, {"after its data was lost", &c.AfterEmptyRestart}} {
		say("    %-25s %9s admitted %8s over  %s", w.when, grouped(w.of.Admitted), grouped(w.of.Over),
			verdict(w.of.BoundKept, "within the bound", "BEYOND THE BOUND"))
	}
	if c.WithoutStore.Over+c.AfterEmptyRestart.Over > 0 {
		say("")
		say("  %-41s %5s %7s %7s %8s", "Keys with more than the limit", "keys", "before", "then", "bound")
		limits(say, fmt.Sprintf("without the store: spent before + the limit + %d", c.Instances), &c.WithoutStore)
		limits(say, "after its data was lost: spent before + the limit", &c.AfterEmptyRestart)
	}
	faults(say, c)
}

// limits lists those of which something was over, and of their keys what was spent before and what was admitted then.
func limits(say func(string, ...any), law string, w *demo.Without) {
	if w.Over == 0 {
		return
	}
	say("    %s", law)
	for _, l := range w.ByLimit {
		say("      %-37s %5d %7s %7s %8s", clip(l.Rule+" "+l.Limit, 37), l.Keys, grouped(l.SpentBefore), grouped(l.Here), grouped(l.Bound))
	}
}

func faults(say func(string, ...any), c *demo.FaultSummary) {
	say("")
	if len(c.Faults) > 0 {
		say("  %-31s %7s %8s %8s %8s %8s", "Done to Redis", "for", "noticed", "breaker", "back in", "on_error")
	}
	for _, f := range c.Faults {
		at := time.Duration(f.AtS * float64(time.Second)).Round(100 * time.Millisecond)
		say("    %6s  %-21s %7s %8s %8s %8s %8s", at, f.Fault, short(millis(f.LastedMS)), maybe(f.NoticedMS), maybe(f.L1MS),
			maybe(f.RecoveredMS), grouped(f.FellToOnError))
	}
	say("  %s decisions fell to on_error, %s of them while a breaker was open.", grouped(c.FellToOnError), grouped(c.BreakerOpen))
	say("  The longest decision took %s.", short(millis(c.LongestDecisionMS)))
}

func verdict(good bool, yes, no string) string {
	if good {
		return yes
	}
	return no
}

func maybe(ms *float64) string {
	if ms == nil {
		return "–"
	}
	return short(millis(*ms))
}

package demoview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/headgate-io/headgate/demo"
)

// Report tells a person how a demo went.
func Report(s *demo.Summary) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	took := (time.Duration(s.DurationS * float64(time.Second))).Round(100 * time.Millisecond)
	early := ""
	if s.Interrupted {
		early = ", ended early"
	}
	say("Headgate demo: %s%s, policy %s, store %s", took, early, s.Policy, s.Store)
	say("")
	say("  Requests   %s came, %s went through to the shop, %s were denied, %s failed.",
		grouped(s.Requests), grouped(s.Allowed), grouped(s.Denied), grouped(s.Errors))
	say("  Shoppers   %s served, %s denied: %s of what people asked for went through.",
		grouped(s.Shoppers.Served), grouped(s.Shoppers.Denied), percent(s.Shoppers.Served, s.Shoppers.Served+s.Shoppers.Denied))
	say("  Bots       %s served, %s denied: %s of what bots tried was stopped.",
		grouped(s.Bots.Served), grouped(s.Bots.Denied), percent(s.Bots.Denied, s.Bots.Served+s.Bots.Denied))
	say("  Sale       %s", sale(s.Sale))
	say("  SMS        %s sent to shoppers, %s to bots.", grouped(s.SMSSent.Shoppers), grouped(s.SMSSent.Bots))
	say("  Latency    half of the answers took up to %s, 99%% up to %s.",
		short(millis(s.LatencyMS.P50)), short(millis(s.LatencyMS.P99)))
	say("  Gateway    added %s to half of them, up to %s to 99%%; the decision itself took %s and %s.",
		short(micros(s.AddedLatencyUS.P50)), short(micros(s.AddedLatencyUS.P99)), short(micros(s.DecisionUS.P50)), short(micros(s.DecisionUS.P99)))
	if len(s.DeniedByRule) > 0 {
		say("")
		say("  Denied by rule")
		for _, rule := range byCount(s.DeniedByRule) {
			say("    %-20s %10s", rule, grouped(s.DeniedByRule[rule]))
		}
	}
	return b.String()
}

func sale(s demo.Sale) string {
	text := fmt.Sprintf("%d of %d sold, %d to shoppers and %d to bots", s.Sold, s.Stock, s.ToShoppers, s.ToBots)
	if s.Oversold > 0 {
		return text + fmt.Sprintf("; %d OVERSOLD.", s.Oversold)
	}
	return text + "; not one too many."
}

func byCount(counts map[string]int64) []string {
	rules := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(rules, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
	return rules
}

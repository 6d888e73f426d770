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
	say("Headgate demo: %s%s, policy %s", took, early, s.Policy)
	say("")
	say("  Store      %s", s.Store)
	say("  Requests   %s: %s went through to the shop, %s denied, %s failed",
		grouped(s.Requests), grouped(s.Allowed), grouped(s.Denied), grouped(s.Errors))
	people, bots := s.Shoppers.Served+s.Shoppers.Denied, s.Bots.Served+s.Bots.Denied
	say("  Shoppers   %s served (%s of %s requests)", percent(s.Shoppers.Served, people), grouped(s.Shoppers.Served), grouped(people))
	say("  Bots       %s denied (%s of %s requests)", percent(s.Bots.Denied, bots), grouped(s.Bots.Denied), grouped(bots))
	say("  Sale       %s", sale(s.Sale))
	say("             %s reserved, %s returned (%s expired), %s unsold",
		grouped(int64(s.Sale.Reserved)), grouped(int64(s.Sale.Returned)), grouped(int64(s.Sale.Expired)), grouped(int64(s.Sale.Unsold)))
	say("             %s paid, %s refunded; %s duplicates refused",
		grouped(int64(s.Sale.Paid)), grouped(int64(s.Sale.Refunded)), grouped(int64(s.Sale.DuplicatesRefused)))
	say("             in %s, stock in %s", s.DB, s.Stock)
	for _, text := range word(&s.Invariants) {
		say("             %s", text)
	}
	say("  SMS        %s sent to shoppers, %s to bots", grouped(s.SMSSent.Shoppers), grouped(s.SMSSent.Bots))
	say("  Latency    %s at the median, %s at the 99th percentile", short(millis(s.LatencyMS.P50)), short(millis(s.LatencyMS.P99)))
	say("  Gateway    adds %s and %s of it; deciding takes %s and %s",
		short(micros(s.AddedLatencyUS.P50)), short(micros(s.AddedLatencyUS.P99)), short(micros(s.DecisionUS.P50)), short(micros(s.DecisionUS.P99)))
	if len(s.DeniedByRule) > 0 {
		say("")
		say("  Denied by rule")
		for _, rule := range byCount(s.DeniedByRule) {
			say("    %-20s %10s", rule, grouped(s.DeniedByRule[rule]))
		}
	}
	if s.Chaos != nil {
		chaos(say, s.Chaos)
	}
	return b.String()
}

func sale(s demo.Sale) string {
	over := "none oversold"
	if s.Oversold > 0 {
		over = fmt.Sprintf("%d OVERSOLD", s.Oversold)
	}
	return fmt.Sprintf("%d of %d sold: %d to shoppers, %d to bots, %s", s.Sold, s.Stock, s.ToShoppers, s.ToBots, over)
}

// word says whether the sale has kept its word.
func word(v *demo.Invariants) []string {
	switch {
	case !v.OK:
		texts := []string{"THE SALE HAS NOT KEPT ITS WORD"}
		for _, broken := range v.Broken {
			texts = append(texts, "- "+broken)
		}
		return texts
	case !v.Settled:
		return []string{"all that can be checked before its end holds"}
	}
	return []string{"all holds: books, stock, bank, and what everybody was told"}
}

func byCount(counts map[string]int64) []string {
	rules := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(rules, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
	return rules
}

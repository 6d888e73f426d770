package demo

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"
)

// Phase is where the sale is.
type Phase string

// The phases, in their order.
const (
	PhaseBefore  Phase = "before the sale"
	PhaseSale    Phase = "the sale is on"
	PhaseAllHeld Phase = "all held" // all of it is paid for, or held: some may come back
	PhaseSoldOut Phase = "sold out" // all of it is paid for
	PhaseClosing Phase = "closing"  // what is held is paid, or comes back
	PhaseOver    Phase = "over"
)

// RuleCount is how many requests a rule denied.
type RuleCount struct {
	Rule   string
	Denied int64
}

// Snapshot is the state of affairs at one moment. Requests = Allowed + Denied + Errors.
type Snapshot struct {
	// Elapsed is the time since the doors opened, Total how long they stay open.
	Elapsed, Total time.Duration
	Phase          Phase
	// Gateway is its URL.
	Gateway, Policy, Store string
	// DB and StockIn are where the sale is kept.
	DB, StockIn string

	Requests, Allowed, Denied, Errors int64
	// ByRule is sorted: most denials first.
	ByRule         []RuleCount
	Shoppers, Bots Audience
	Sale           Sale
	// LatencyMS is over all requests that the shop served so far, RecentMS over those since the last snapshot.
	LatencyMS, RecentMS Spread
	// AddedUS and DecisionUS are as in Summary.
	AddedUS, DecisionUS Spread
	// Faults is nil unless the store is made to fail.
	Faults *Faults
}

// countWithin bounds how long the sale's database may take to be counted for a snapshot.
const countWithin = 5 * time.Second

func (s *stage) snapshot(elapsed time.Duration) Snapshot {
	ctx, cancel := context.WithTimeout(context.Background(), countWithin)
	defer cancel()
	sale := s.market.count(ctx)
	t := s.meter.tally()
	snap := Snapshot{
		Elapsed: elapsed, Total: s.cfg.Duration, Phase: s.phase(&sale),
		Gateway: s.base, Policy: s.cfg.Policy, Store: s.cfg.Store, DB: s.cfg.Sale.DBName, StockIn: s.cfg.Sale.StockName,
		Requests: t.requests(), Allowed: t.allowed(), Denied: t.denied(), Errors: t.failed,
		Shoppers: t.shoppers, Bots: t.bots, Sale: sale,
		LatencyMS: s.meter.latency.read(time.Millisecond), RecentMS: s.meter.recent.drain(time.Millisecond),
		AddedUS: s.meter.added.read(time.Microsecond), DecisionUS: s.meter.decided.read(time.Microsecond),
	}
	for _, rule := range slices.Sorted(maps.Keys(t.byRule)) {
		snap.ByRule = append(snap.ByRule, RuleCount{rule, t.byRule[rule]})
	}
	slices.SortStableFunc(snap.ByRule, func(a, b RuleCount) int { return cmp.Compare(b.Denied, a.Denied) })
	return snap
}

func (s *stage) phase(sale *Sale) Phase {
	switch now := time.Now(); {
	case now.Before(s.plan.opens):
		return PhaseBefore
	case !now.Before(s.plan.closes):
		return PhaseClosing
	case sale.Sold >= sale.Stock:
		return PhaseSoldOut
	case sale.Sold+sale.Held >= sale.Stock:
		return PhaseAllHeld
	}
	return PhaseSale
}

// Summary is how a demo went, as --json prints it. Requests = Allowed + Denied + Errors; Allowed and Denied are the sums
// over shoppers and bots; DeniedByRule adds up to Denied.
type Summary struct {
	DurationS float64 `json:"duration_s"`
	// Interrupted is true if the demo ended before its time.
	Interrupted bool   `json:"interrupted"`
	Seed        uint64 `json:"seed"`
	Policy      string `json:"policy"`
	Store       string `json:"store"`
	// DB and Stock are where the sale was kept.
	DB    string `json:"sale_db"`
	Stock string `json:"sale_stock"`

	Requests int64 `json:"requests"`
	// Allowed requests were answered by the shop, Denied ones by the gateway.
	Allowed      int64            `json:"allowed"`
	Denied       int64            `json:"denied"`
	DeniedByRule map[string]int64 `json:"denied_by_rule"`
	// Errors had no answer, or one that neither the shop nor the policy gave, such as 502, or 500. What the sale answers 503, as when the
	// payment provider does not answer, asks to come again, and is none.
	Errors int64 `json:"errors"`
	// LatencyMS is the time that the crowd waited for an answer of the shop, connecting and queueing included.
	LatencyMS Spread `json:"latency_ms"`
	// AddedLatencyUS is what the gateway adds to a request that the shop serves: the time in the gateway's handler less the
	// time in the shop's handler. It holds the decision, the second hop and what both wait for a processor.
	AddedLatencyUS Spread `json:"added_latency_us"`
	// DecisionUS is the part of it in which the policy decides, over all requests.
	DecisionUS Spread   `json:"decision_us"`
	Shoppers   Audience `json:"shoppers"`
	Bots       Audience `json:"bots"`
	Sale       Sale     `json:"sale"`
	// Invariants are what the sale promises, checked at the end.
	Invariants Invariants `json:"invariants"`
	// SMSSent counts the text messages that the shop paid for.
	SMSSent SMS `json:"sms_sent"`
	// Chaos is nil unless the store was made to fail.
	Chaos *FaultSummary `json:"chaos,omitempty"`
}

// SMS counts text messages by who caused them.
type SMS struct {
	Shoppers int64 `json:"shoppers"`
	Bots     int64 `json:"bots"`
}

func (s *stage) summary(last Snapshot, found *Invariants, interrupted bool) *Summary {
	sum := &Summary{
		DurationS: last.Elapsed.Round(time.Millisecond).Seconds(), Interrupted: interrupted,
		Seed: s.cfg.Seed, Policy: last.Policy, Store: last.Store, DB: last.DB, Stock: last.StockIn, Invariants: *found,
		Requests: last.Requests, Allowed: last.Allowed, Denied: last.Denied, Errors: last.Errors,
		DeniedByRule: make(map[string]int64, len(last.ByRule)),
		LatencyMS:    last.LatencyMS, AddedLatencyUS: last.AddedUS, DecisionUS: last.DecisionUS,
		Shoppers: last.Shoppers, Bots: last.Bots, Sale: last.Sale,
		SMSSent: SMS{Shoppers: s.shop.textsSent(Shopper), Bots: s.shop.textsSent(Bot)},
	}
	for _, r := range last.ByRule {
		sum.DeniedByRule[r.Rule] = r.Denied
	}
	return sum
}

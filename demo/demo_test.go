package demo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headgate-io/headgate/demo"
	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// engine puts the policy of the shop to work on a store in memory.
func engine(t *testing.T) *policy.Engine {
	t.Helper()
	p, err := demo.Policy()
	if err != nil {
		t.Fatal(err)
	}
	store := memstore.New(memstore.Config{})
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	e, err := policy.NewEngine(p, store, policy.EngineConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// checkSums checks what must be true of every demo, however it went.
func checkSums(t *testing.T, s *demo.Summary) {
	t.Helper()
	var byRule int64
	for _, n := range s.DeniedByRule {
		byRule += n
	}
	switch {
	case s.Requests != s.Allowed+s.Denied+s.Errors:
		t.Errorf("%d requests are not %d allowed, %d denied and %d errors", s.Requests, s.Allowed, s.Denied, s.Errors)
	case s.Allowed != s.Shoppers.Served+s.Bots.Served:
		t.Errorf("%d allowed are not %d and %d served", s.Allowed, s.Shoppers.Served, s.Bots.Served)
	case s.Denied != s.Shoppers.Denied+s.Bots.Denied:
		t.Errorf("%d denied are not %d and %d", s.Denied, s.Shoppers.Denied, s.Bots.Denied)
	case s.Denied != byRule:
		t.Errorf("%d were denied, by rule %d", s.Denied, byRule)
	}
	checkSale(t, s)
}

// checkSale checks what must be true of every sale, and that the demo has found the same.
func checkSale(t *testing.T, s *demo.Summary) {
	t.Helper()
	a := &s.Sale
	switch {
	case a.Sold+a.Unsold != a.Stock || a.Oversold != 0 || a.ToBots+a.ToShoppers != a.Sold:
		t.Errorf("what was sold does not add up: %+v", a)
	case a.Reserved != a.Sold+a.Returned+a.Held || a.Expired > a.Returned:
		t.Errorf("what was reserved does not add up: %+v", a)
	case s.Invariants.Settled && (a.Held != 0 || a.Paid-a.Refunded != a.Sold):
		t.Errorf("the sale has come to its end, and yet: %+v", a)
	}
	if !s.Invariants.OK || len(s.Invariants.Broken) != 0 {
		t.Errorf("the invariants: %+v", s.Invariants)
	}
}

// TestStory: people are served, bots are not, and what is for sale is sold, all of it and no more. A machine that has other work to do has
// no time for all of a quick story: it is told again there, each time at half the pace, where as many people do the same in twice the time.
func TestStory(t *testing.T) {
	for second := time.Second; ; second *= 2 {
		s, phases := tellStory(t, second)
		missing := missingIn(s, phases)
		if len(missing) == 0 || t.Failed() {
			return
		}
		if second == 8*time.Second {
			t.Fatalf("however slowly it is told: %s", strings.Join(missing, "; "))
		}
		t.Logf("%s: %s", 8*second, strings.Join(missing, "; "))
	}
}

// tellStory runs the demo at a pace at which a second of the story lasts so long, and checks what holds at any. People have more time to pay than a demo of this length would give them.
func tellStory(t *testing.T, second time.Duration) (s *demo.Summary, phases []demo.Phase) {
	t.Helper()
	var last demo.Snapshot
	s, err := demo.Run(t.Context(), demo.WithTimes(demo.Config{
		Decider: engine(t), Duration: 8 * second, Shoppers: 120, Bots: 30, Stock: 30, Seed: 1, Every: 50 * time.Millisecond,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Watch: func(snap demo.Snapshot) {
			if snap.Requests < last.Requests || snap.Elapsed <= last.Elapsed {
				t.Errorf("the demo went backwards: %+v after %+v", snap, last)
			}
			if last.Phase != snap.Phase {
				phases = append(phases, snap.Phase)
			}
			last = snap
		},
	}, 3*second, 7*second, 3*second))
	if err != nil {
		t.Fatal(err)
	}
	checkSums(t, s)
	if a := s.Sale; a.Stock != 30 || a.Sold+a.Unsold != 30 {
		t.Errorf("the sale ended with %+v", a)
	}
	for name, spread := range map[string]demo.Spread{"latency": s.LatencyMS, "added": s.AddedLatencyUS, "decision": s.DecisionUS} {
		if spread.P50 <= 0 || spread.P99 < spread.P50 {
			t.Errorf("%s: %+v", name, spread)
		}
	}
	if s.DurationS < 8*second.Seconds() || s.Interrupted {
		t.Errorf("it lasted %v s, interrupted %v", s.DurationS, s.Interrupted)
	}
	if last.Phase != demo.PhaseOver || last.Requests != s.Requests {
		t.Errorf("the phases were %q, and %d of %d requests were shown", phases, last.Requests, s.Requests)
	}
	checkJSON(t, s)
	return s, phases
}

// missingIn names what a story lacks that had time for all of it.
func missingIn(s *demo.Summary, phases []demo.Phase) (missing []string) {
	unless := func(holds bool, format string, args ...any) {
		if !holds {
			missing = append(missing, fmt.Sprintf(format, args...))
		}
	}
	unless(s.Errors == 0, "%d requests failed", s.Errors)
	a := s.Sale // what came back late is not sold again
	unless(s.Invariants.Settled && a.Sold >= 10 && a.Reserved >= 25, "the sale ended with %+v, %+v", a, s.Invariants)
	people := s.Shoppers
	unless(people.Served >= 200 && people.Denied*10 <= people.Served, "of the shoppers' requests %d were served and %d denied, want nearly all served", people.Served, people.Denied)
	unless(s.Bots.Denied >= 50 && s.Bots.Served <= s.Bots.Denied, "of the bots' requests %d were served and %d denied, want mostly denied", s.Bots.Served, s.Bots.Denied)
	for _, rule := range []string{"login-device", "sms-device", "code-user"} {
		unless(s.DeniedByRule[rule] > 0, "the rule %s denied nothing: %v", rule, s.DeniedByRule)
	}
	unless(len(phases) >= 3 && phases[0] == demo.PhaseBefore, "the phases were %q", phases)
	return missing
}

// checkJSON checks the names that other programs read.
func checkJSON(t *testing.T, s *demo.Summary) {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	for _, path := range strings.Fields("duration_s requests allowed denied denied_by_rule errors latency_ms.p50 latency_ms.p99 " +
		"added_latency_us.p50 added_latency_us.p99 shoppers.served shoppers.denied bots.served bots.denied " +
		"sale.stock sale.sold sale.oversold sale.to_shoppers sale.to_bots sale.reserved sale.paid sale.expired sale.refunded sale.returned " +
		"sale.duplicates_refused sale.unsold sale.held invariants.ok invariants.broken sale_db sale_stock seed policy store interrupted") {
		var at any = fields
		for _, name := range strings.Split(path, ".") {
			m, _ := at.(map[string]any)
			at = m[name]
		}
		if at == nil {
			t.Errorf("the summary has no %s: %s", path, text)
		}
	}
}

// TestEndsEarly: whoever ends a demo gets the summary of what happened so far.
func TestEndsEarly(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, err := demo.Run(ctx, demo.Config{
		Decider: engine(t), Duration: time.Hour, Shoppers: 20, Bots: 5, Every: 50 * time.Millisecond,
		Watch: func(snap demo.Snapshot) {
			if snap.Requests > 20 {
				cancel()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	checkSums(t, s)
	if !s.Interrupted || s.Requests <= 20 || s.DurationS > 60 || s.Errors != 0 {
		t.Errorf("interrupted %v after %v s with %d requests and %d errors", s.Interrupted, s.DurationS, s.Requests, s.Errors)
	}
}

// closedDecider denies everything and counts.
type closedDecider struct{ asked atomic.Int64 }

func (d *closedDecider) Decide(context.Context, *httpverdict.Request) *httpverdict.Verdict {
	d.asked.Add(1)
	return &httpverdict.Verdict{Kind: httpverdict.Unavailable, Code: "store_unavailable", Binding: -1, ID: "x"}
}

// TestDeniedWithoutARule: a denial that no rule made is counted under its code.
func TestDeniedWithoutARule(t *testing.T) {
	d := new(closedDecider)
	s, err := demo.Run(t.Context(), demo.Config{Decider: d, Duration: 5 * time.Second, Shoppers: 50, Bots: -1})
	if err != nil {
		t.Fatal(err)
	}
	checkSums(t, s)
	if s.Denied == 0 || s.Denied != d.asked.Load() || s.DeniedByRule["store_unavailable"] != s.Denied || s.Allowed != 0 {
		t.Errorf("%d asked, summary %+v", d.asked.Load(), s)
	}
	if s.Bots != (demo.Audience{}) {
		t.Errorf("there were bots: %+v", s.Bots)
	}
}

func TestRefuses(t *testing.T) {
	busy, err := new(net.ListenConfig).Listen(t.Context(), "tcp", demo.DefaultListen)
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	d := new(closedDecider)
	for says, cfg := range map[string]demo.Config{
		"Config.Decider is missing":             {},
		"duration: 1ms is outside 1s to 1h0m0s": {Decider: d, Duration: time.Millisecond},
		"shoppers: 20001 is outside 0 to 20000": {Decider: d, Shoppers: 20_001},
		"bots: 2001 is outside 0 to 2000":       {Decider: d, Bots: 2_001},
		"stock: -1 is outside 0 to 1000000":     {Decider: d, Stock: -1},
		busy.Addr().String() + " is in use":     {Decider: d, Listen: busy.Addr().String()},
	} {
		if _, err := demo.Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want an error that says %q", err, says)
		}
	}
}

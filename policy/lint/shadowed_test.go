package lint

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/policy"
)

// judge is a policy in force, at a time that it is told.
type judge struct {
	engine *policy.Engine
	store  *memstore.Store
}

func newJudge(t *testing.T, doc string, now func() time.Time) judge {
	t.Helper()
	p, err := policy.Parse("judge", []byte(doc), policy.ParseConfig{})
	if err != nil {
		t.Fatal(err)
	}
	store := memstore.New(memstore.Config{SweepInterval: -1, Now: now})
	t.Cleanup(func() { _ = store.Close() })
	e, err := policy.NewEngine(p, store, policy.EngineConfig{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return judge{engine: e, store: store}
}

// TestShadowedRulesDecideNothing: a policy without the rules that are said to be shadowed answers every request as before.
func TestShadowedRulesDecideNothing(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/shadowed-rule.yaml")
	if err != nil {
		t.Fatal(err)
	}
	whole, without := string(text), string(text)
	shadowed := 0
	for _, f := range findings(t, "testdata/shadowed-rule.yaml") {
		if line := "- name: " + f.Rule + "\n"; f.ID == "shadowed-rule" && f.Rule != "api-trial" { // that one decides nothing anyhow
			shadowed++
			without = strings.Replace(without, line, line+"    mode: off\n", 1)
		}
	}
	if shadowed < 4 {
		t.Fatalf("%d rules are shadowed", shadowed)
	}
	r := rand.New(rand.NewPCG(5, 6))
	f := newTraffic(r)
	now := func() time.Time { return f.now }
	a, b := newJudge(t, whole, now), newJudge(t, without, now)
	denied := 0
	for range 4000 {
		f.rest()
		request := drawRequest(r)
		again := *request
		first, second := a.engine.Decide(t.Context(), request), b.engine.Decide(t.Context(), &again)
		if first.Allowed() != second.Allowed() {
			t.Fatalf("%s %s from %s at %s: %v by %q with all rules, %v by %q without", request.Method, request.Path, request.Peer, f.now,
				first.Allowed(), first.Rule, second.Allowed(), second.Rule)
		}
		if !first.Allowed() {
			denied++
		}
	}
	if denied < 100 {
		t.Errorf("only %d requests were denied", denied)
	}
}

func drawRequest(r *rand.Rand) *httpverdict.Request {
	paths := []string{"/api/orders/1", "/api/orders/2", "/api/users", "/codes", "/other"}
	methods := []string{"GET", "GET", "POST"}
	return &httpverdict.Request{Method: methods[r.IntN(len(methods))], Host: "shop.example.com", Path: paths[r.IntN(len(paths))],
		Peer: netip.MustParseAddr(fmt.Sprintf("192.0.2.%d", 1+r.IntN(2)))}
}

package policy

import (
	"context"
	"testing"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// spy is a store in memory that keeps what it was asked for.
type spy struct {
	*memstore.Store
	charges [][]headgate.Charge
}

func (s *spy) Take(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	s.charges = append(s.charges, append([]headgate.Charge(nil), charges...))
	return s.Store.Take(ctx, charges, d)
}

// TestDevicesNotCounted: levels are told of a device only by a rule that could have denied it.
func TestDevicesNotCounted(t *testing.T) {
	const limits = "key: [device], limits: [fixed_window 1/1d]"
	for _, c := range []struct {
		name, rule string
		lifted     bool
		lost       bool
		told       int // of two requests
	}{
		{name: "in force", rule: limits, told: 2},
		{name: "lifted", rule: limits, lifted: true},
		{name: "lifted, with a lockout", rule: limits + ", lockout: {after: 1, for: 1h}", lifted: true},
		{name: "shadow", rule: limits + ", mode: shadow"},
		{name: "open without the store", rule: limits + ", on_error: open", lost: true},
		{name: "local without the store", rule: limits, lost: true, told: 2},
		{name: "another layer", rule: limits + ", layer: user"},
		{name: "no key", rule: "limits: [fixed_window 1/1d], layer: device"},
	} {
		store, sw := &counting{Store: newMemory(t)}, &switches{lifted: c.lifted}
		if c.lost {
			store.err = &headgate.Error{Code: headgate.CodeUnavailable}
		}
		e := mustEngine(t, preamble+"rules: [{name: d, "+c.rule+"}]", store, EngineConfig{Levels: sw, Fallback: newMemory(t)})
		for range 2 {
			e.Decide(t.Context(), request("GET /", "Cookie", "did=1"))
			e.Decide(t.Context(), request("GET /")) // without a device
		}
		if len(sw.told) != c.told {
			t.Errorf("%s: the levels were told %v, want %d", c.name, sw.told, c.told)
		}
		sw.told = nil
		e.At(noon).Decide(t.Context(), request("GET /", "Cookie", "did=1"))
		if len(sw.told) > 0 {
			t.Errorf("%s: a view of another time has told %v", c.name, sw.told)
		}
	}
}

// TestDevicesStayTheSame: under a new policy a device is the one that it was.
func TestDevicesStayTheSame(t *testing.T) {
	sw := &switches{}
	doc := preamble + "rules: [{name: d, key: [device], limits: [fixed_window 9/1d]}]"
	first := mustEngine(t, doc, newMemory(t), EngineConfig{Levels: sw})
	second := mustEngine(t, doc, newMemory(t), EngineConfig{Levels: sw, Before: first})
	for _, e := range []*Engine{first, second} {
		e.Decide(t.Context(), request("GET /", "Cookie", "did=1"))
	}
	if len(sw.devices) != 1 || len(sw.told) != 2 {
		t.Errorf("one device counts as %d in %d requests", len(sw.devices), len(sw.told))
	}
}

// TestLiftedRulesLeaveNoTrace: a rule whose layer is lifted is charged for nothing, before the answer or after it, and stands in no
// answer; one in shadow is not even asked for.
func TestLiftedRulesLeaveNoTrace(t *testing.T) {
	const lockout = "lockout: {after: 1, for: 1h}"
	for rule, keys := range map[string]int{
		"limits: [fixed_window 1/1d], " + lockout:                                         1,
		"limits: [fixed_window 1/1d], mode: shadow, " + lockout:                           0,
		"limits: [fixed_window 1/1d], count_when: response.status == 401, " + lockout:     1,
		"limits: [fixed_window 1/1d], cost: response.bytes, " + lockout:                   1,
		"limits: [concurrency 1 ttl=1m], " + lockout:                                      1,
		"limits: [fixed_window 1/1d], on_deny: {action: mark}, missing: deny, " + lockout: 1,
	} {
		store, sw := &spy{Store: newMemory(t)}, &switches{lifted: true}
		e := mustEngine(t, preamble+"rules: [{name: d, key: [device], "+rule+"}, {name: site, limits: [fixed_window 100/1d]}]", store,
			EngineConfig{Levels: sw, MarkKey: []byte("sixteen bytes ok")})
		for range 3 {
			v := e.Decide(t.Context(), request("GET /", "Cookie", "did=1"))
			if !v.Allowed() || len(v.Limits) != 1 || v.Rule != "site" || v.Binding != 0 || len(v.Shadow) > 0 || v.Over != "" || v.Done != nil {
				t.Fatalf("%s: got %+v", rule, v)
			}
			v.Finish(t.Context(), httpverdict.Result{Status: 401, Bytes: 5})
		}
		for _, take := range store.charges {
			if len(take) != keys+1 {
				t.Errorf("%s: asked for %+v", rule, take)
			}
			for _, charge := range take {
				if charge.Slot == "d/0" && charge.Cost != 0 {
					t.Errorf("%s: charged %+v", rule, charge)
				}
			}
		}
		if len(store.charges) != 3 {
			t.Errorf("%s: %d takes", rule, len(store.charges))
		}
	}
}

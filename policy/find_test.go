package policy

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

// TestLookupsOutliveReplacement: an engine that takes the place of another asks anew only for what is looked up otherwise.
func TestLookupsOutliveReplacement(t *testing.T) {
	t.Parallel()
	const doc = preamble + `
  tier: {redis: {hash: 'user:{user}', field: tier}, cache: 1m}
  risk: {http: {url: 'https://risk.example.com/{user}', json: score}, cache: 1m}
rules:
  - {name: r, key: [tier, risk], limits: [token_bucket 1/s]}
`
	var asked atomic.Int64
	find := func(context.Context, string, string) (string, bool, error) {
		return fmt.Sprint("v", asked.Add(1)), true, nil
	}
	cfg := EngineConfig{Lookups: Lookups{HashField: find, HTTPGet: find}}
	for what, tc := range map[string]struct {
		old, new string
		want     int64 // how often is asked by the second engine
	}{
		"the same":         {"", "", 0},
		"another rule":     {"token_bucket 1/s", "token_bucket 2/s", 0},
		"another field":    {"field: tier", "field: rank", 1},
		"another hash":     {"'user:", "'users:", 1},
		"another address":  {"example.com/", "example.com/v2/", 1},
		"another member":   {"json: score", "json: level", 1},
		"another time":     {"cache: 1m", "cache: 2m", 2},
		"another time-out": {"cache: 1m}", "cache: 1m, timeout: 1s}", 2},
		"another name":     {"tier", "rank", 1},
		"other kinds":      {"{redis: {hash: 'user:{user}', field: tier}", "{http: {url: 'https://tiers.example.com/{user}'}", 1},
	} {
		cfg.Before = nil
		first := mustEngine(t, doc, &recorder{}, cfg)
		r := from("192.0.2.1", "GET /", "X-User-Id", "u-1")
		first.Decide(t.Context(), r)
		asked.Store(0)
		cfg.Before = first
		second := mustEngine(t, strings.ReplaceAll(doc, tc.old, tc.new), &recorder{}, cfg)
		second.Decide(t.Context(), r)
		if n := asked.Load(); n != tc.want {
			t.Errorf("%s: asked %d times, want %d", what, n, tc.want)
		}
		if second.cfg.Before != nil {
			t.Errorf("%s: the engine before is kept", what)
		}
	}
}

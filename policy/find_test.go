package policy

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
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

// asking is what look-ups have been asked for.
type asking struct {
	mu    sync.Mutex
	asked []string
	takes time.Duration
}

func (a *asking) find(ctx context.Context, where, field string) (string, bool, error) {
	a.mu.Lock()
	a.asked = append(a.asked, where+" "+field)
	a.mu.Unlock()
	select {
	case <-time.After(a.takes):
		return "v", true, nil
	case <-ctx.Done():
		return "", false, ctx.Err()
	}
}

func (a *asking) lookups() Lookups { return Lookups{HashField: a.find, HTTPGet: a.find} }

// TestLookupsOnlyWhenNeeded: a dimension is looked up for rules that apply, once for all of them, and not where the request
// says it itself.
func TestLookupsOnlyWhenNeeded(t *testing.T) {
	const doc = preamble + `
  tier: {redis: {hash: 'user:{user}', field: tier}}
  score: {http: {url: 'https://risk.example.com/{tier}'}}
rules:
  - {name: off, mode: off, key: [score], limits: [token_bucket 1/s]}
  - {name: other, match: {paths: [/other]}, key: [score], limits: [token_bucket 1/s]}
  - {name: not, match: {paths: [/not]}, when: 'false', key: [score], limits: [token_bucket 1/s]}
  - {name: one, match: {paths: [/one]}, key: [tier], limits: [token_bucket 1/s], overrides: {tier: {vip: [token_bucket 2/s]}}}
  - {name: two, match: {paths: [/one]}, when: dim.tier != "x", count_when: dim.tier != "x", key: [tier, ip], limits: [token_bucket 1/s]}
`
	for path, want := range map[string]string{
		"/none": "", "/not": "", "/one": "user:u tier", "/other": "user:u tier|https://risk.example.com/v ",
	} {
		a := &asking{}
		e := mustEngine(t, doc, &recorder{}, EngineConfig{Lookups: a.lookups()})
		v := e.Decide(t.Context(), request("GET "+path, "X-User-Id", "u"))
		v.Finish(t.Context(), httpverdict.Result{Status: 200})
		if got := strings.Join(a.asked, "|"); got != want {
			t.Errorf("%s: asked %s, want %s", path, got, want)
		}
		r := request("GET "+path, "X-User-Id", "u")
		r.Dimensions = map[string]string{"tier": "", "score": "9"}
		a.asked = nil
		if e.Decide(t.Context(), r); len(a.asked) > 0 {
			t.Errorf("%s: asked %q for what is given", path, a.asked)
		}
	}
}

// TestLookupsForNobody: of a request that is over no service is asked anything, and what is known is told.
func TestLookupsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const doc = preamble + `
  tier: {redis: {hash: 'user:{user}', field: tier}, cache: 1m}
rules:
  - {name: r, key: [tier], limits: [token_bucket 1/s]}
`
		a := &asking{}
		e := mustEngine(t, doc, &recorder{}, EngineConfig{Lookups: Lookups{HashField: a.find}})
		over, end := context.WithCancel(t.Context())
		end()
		r := from("192.0.2.1", "GET /", "X-User-Id", "u-1")
		for _, step := range []struct {
			after time.Duration
			ctx   context.Context
			want  string
			asked int
		}{
			{0, over, "", 0}, {0, t.Context(), "v", 1}, {0, over, "v", 1}, {50 * time.Second, over, "v", 1}, {15 * time.Second, over, "", 1}, {0, t.Context(), "v", 2},
		} {
			time.Sleep(step.after)
			got, _ := e.Value(step.ctx, r, "tier")
			synctest.Wait()
			if len(a.asked) != step.asked || got != step.want {
				t.Errorf("%+v: %q, asked for %q", step, got, a.asked)
			}
		}
	})
}

// TestLookupsShareTheirTime: however many dimensions a request needs, and however they depend on each other, it waits no
// longer than the slowest may take.
func TestLookupsShareTheirTime(t *testing.T) {
	var doc strings.Builder
	doc.WriteString(preamble + "  d0: {redis: {hash: 'h:{user}', field: f}, timeout: 150ms, default: none}\n")
	for i := 1; i < 20; i++ {
		fmt.Fprintf(&doc, "  d%d: {redis: {hash: 'h:{d%d}', field: f%d}, timeout: 150ms, default: none}\n", i, i-1, i)
	}
	doc.WriteString("rules: [{name: r, key: [d19], limits: [token_bucket 1/s]}]")
	synctest.Test(t, func(t *testing.T) {
		for takes, most := range map[time.Duration]time.Duration{time.Minute: leastFindTime, 140 * time.Millisecond: leastFindTime, 5 * time.Millisecond: 100 * time.Millisecond} {
			a, store := &asking{takes: takes}, &recorder{}
			e := mustEngine(t, doc.String(), store, EngineConfig{Lookups: a.lookups()})
			start := time.Now()
			v := e.Decide(t.Context(), request("GET /", "X-User-Id", "u"))
			if took := time.Since(start); took > most || !v.Allowed() {
				t.Errorf("each takes %s: the request waited %s, %+v", takes, took, v)
			}
			time.Sleep(time.Second) // those that were left behind
		}
	})
}

// TestLookupsLeadNowhereElse: whatever a client sends, a look-up is where the policy means it, and no other client's.
func TestLookupsLeadNowhereElse(t *testing.T) {
	const doc = preamble + `
  a: {query: a}
  b: {query: b}
  one: {redis: {hash: 'u:{a}', field: 'f:{b}'}, timeout: 5s}
  two: {redis: {hash: 'u:{a}:{b}', field: f}, timeout: 5s}
  addr: {redis: {hash: 'u:{ip}:{b}', field: f}, timeout: 5s}
  web: {http: {url: 'https://risk.example.com/u/{a}/x?b={b}'}, timeout: 5s}
rules:
  - {name: r, key: [one, two, addr, web], limits: [token_bucket 1/s]}
`
	for _, c := range []struct{ query, want string }{
		{"a=1&b=2", "u:1 f:2|u:1:2 f|u:2001:db8::1:2 f|https://risk.example.com/u/1/x?b=2 "},
		{"a=1%3A&b=2", "u:1: f:2|u:2001:db8::1:2 f|https://risk.example.com/u/1%3A/x?b=2 "},
		{"a=1&b=%3A2", "u:1 f::2|u:1::2 f|u:2001:db8::1::2 f|https://risk.example.com/u/1/x?b=%3A2 "},
		{"a=%2F..%2Fadmin&b=2", "u:/../admin f:2|u:/../admin:2 f|u:2001:db8::1:2 f"},
		{"a=..&b=2", "u:.. f:2|u:..:2 f|u:2001:db8::1:2 f"},
		{"a=x%5C.%5Cy&b=2", "u:x\\.\\y f:2|u:x\\.\\y:2 f|u:2001:db8::1:2 f"},
		{"a=a%26c%3D%23%3F%2F&b=%20%2B%25", "u:a&c=#?/ f: +%|u:a&c=#?/: +% f|u:2001:db8::1: +% f|https://risk.example.com/u/a%26c%3D%23%3F%2F/x?b=%20%2B%25 "},
		{"a=%7Bb%7D&b=%7Ba%7D", "u:{b} f:{a}|u:{b}:{a} f|u:2001:db8::1:{a} f|https://risk.example.com/u/%7Bb%7D/x?b=%7Ba%7D "},
		{"a=1%00&b=%0D%0A", ""},
		{"a=" + strings.Repeat("x", 1024) + "&b=1", "u:2001:db8::1:1 f"},
	} {
		a := &asking{}
		e := mustEngine(t, doc, &recorder{}, EngineConfig{Lookups: a.lookups()})
		e.Decide(t.Context(), from("2001:db8::1", "GET /?"+c.query))
		if got := strings.Join(a.asked, "|"); got != strings.ReplaceAll(c.want, "2001:db8::1", "2001:db8::") {
			t.Errorf("%.40s: asked\n%s, want\n%s", c.query, got, c.want)
		}
	}
}

func TestLookups(t *testing.T) {
	const doc = preamble + `
  tier: {redis: {hash: 'user:{user}', field: tier}, default: normal, timeout: 5s}
  risk: {http: {url: 'https://risk.example.com/u/{user}?ip={ip}', json: score}, timeout: 5s}
rules:
  - {name: r, key: [user, tier], limits: [token_bucket 1/s], overrides: {tier: {vip: [token_bucket 7/s]}}}
  - {name: risky, key: [risk], missing: skip, limits: [token_bucket 2/s]}
`
	if _, err := NewEngine(mustParse(t, doc), open{}, EngineConfig{}); err == nil || !strings.Contains(err.Error(), `dimension "tier" is looked up in Redis`) {
		t.Errorf("without a Redis: %v", err)
	}
	var asked []string
	store := &recorder{}
	e := mustEngine(t, doc, store, EngineConfig{Lookups: Lookups{
		HashField: func(_ context.Context, hash, field string) (string, bool, error) {
			asked = append(asked, hash+" "+field)
			switch hash {
			case "user:u-1":
				return "vip", true, nil
			case "user:u-2":
				return "", false, errors.New("lost")
			}
			return "", false, nil
		},
		HTTPGet: func(_ context.Context, url, json string) (string, bool, error) {
			asked = append(asked, url+" "+json)
			return "high", strings.Contains(url, "u-1"), nil
		},
	}})
	for _, c := range []struct{ user, want string }{
		{"u-1", "r@tier=vip/0 user=3:u-1,tier=3:vip|risky/0 risk=4:high"},
		{"u-2", "r/0 user=3:u-2,tier=6:normal"},
		{"a/b c", "r/0 user=5:a/b c,tier=6:normal"},
		{"", "r/0 user!,tier!"},
	} {
		e.Decide(t.Context(), from("192.0.2.1", "GET /", "X-User-Id", c.user))
		if got := strings.Join(store.keys(), "|"); got != c.want {
			t.Errorf("%q: got %s, want %s", c.user, got, c.want)
		}
	}
	want := []string{"user:u-1 tier", "https://risk.example.com/u/u-1?ip=192.0.2.1 score", "user:u-2 tier", "https://risk.example.com/u/u-2?ip=192.0.2.1 score",
		"user:a/b c tier", "https://risk.example.com/u/a%2Fb%20c?ip=192.0.2.1 score"}
	if !reflect.DeepEqual(asked, want) {
		t.Errorf("asked %q", asked)
	}
}

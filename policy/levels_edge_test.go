package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// TestRestrictedByLookUp: who passes at L3 may be looked up; while the look-up fails nobody passes who was not known before, and a
// path or method that is on a list counts as it is.
func TestRestrictedByLookUp(t *testing.T) {
	const doc = `version: 1
clients: {trusted_proxies: [10.0.0.0/8]}
dimensions:
  user: {header: X-User-Id, trusted: true}
  tier: {redis: {hash: 'user:{user}', field: tier}, default: plain}
lists: {vips: {dimension: tier, values: [vip]}, open: {dimension: path, values: [/status]}}
rules: [{name: all, key: [tier], limits: [fixed_window 9/1d]}]
degradation: {l3: {allow: [vips, open]}}
`
	lost := false
	cfg := EngineConfig{Levels: &switches{restricted: true}, Lookups: Lookups{
		HashField: func(_ context.Context, hash, _ string) (string, bool, error) {
			if lost {
				return "", false, errors.New("lost")
			}
			return "vip", hash == "user:v-1" || hash == "user:v-2", nil
		},
	}}
	e := mustEngine(t, doc, newMemory(t), cfg)
	for _, c := range []struct {
		line, user string
		lost       bool
		want       string
	}{
		{"GET /a", "v-1", false, "allow  all"},
		{"GET /a", "u-1", false, "unavailable restricted"},
		{"GET /a", "", false, "unavailable restricted"},
		{"GET /status", "u-1", false, "allow  all"},
		{"GET /status;x", "u-1", false, "unavailable restricted"},
		{"GET /a", "v-1", true, "allow  all"}, // it was known
		{"GET /a", "v-2", true, "unavailable restricted"},
	} {
		lost = c.lost
		v := e.Decide(t.Context(), request(c.line, "X-User-Id", c.user))
		if got := strings.TrimSpace(v.Kind.String() + " " + v.Code + " " + v.Rule); got != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
	}
}

const actionsDoc = preamble + `
lists: {office: {cidrs: [203.0.113.0/24]}}
allow: [office]
rules:
  - {name: kept, limits: [fixed_window 0/1d], on_deny: {action: stale, public: true}, on_error: stale}
  - {name: other, match: {paths: [/other]}, limits: [fixed_window 0/1d], on_deny: {action: fallback, body: '[]'}}
  - {name: slot, match: {paths: [/slot]}, limits: [concurrency 0 ttl=1m]}
  - {name: far, match: {paths: [/far]}, store: local, limits: [fixed_window 0/1d]}
`

// TestOverloadAsksForNothing: who is shed, or passes since the process is in danger, has touched no store, is settled for nothing
// afterwards, and gets none of what rules would have answered; who is on a list that is never limited is not shed.
func TestOverloadAsksForNothing(t *testing.T) {
	for _, action := range []string{"shed", "pass"} {
		sw := &switches{danger: true, shed: map[uint8]bool{0: true, 1: true, 2: true}}
		store, seen := &counting{Store: newMemory(t)}, &diary{}
		e := mustEngine(t, actionsDoc+"overload: {action: "+action+"}\n", store, EngineConfig{Overload: sw, Levels: sw, Observer: seen, Explain: action == "pass"})
		for _, path := range []string{"/", "/other", "/slot", "/far"} {
			v := e.Decide(t.Context(), request("GET "+path, "Cookie", "did=1"))
			if v.Allowed() != (action == "pass") || v.Rule != "" || v.Stale != nil || v.Fallback != nil || v.Done != nil || v.Binding != -1 || len(v.Limits) > 0 || v.ID == "" {
				t.Errorf("%s %s: got %+v", action, path, v)
			}
			v.Finish(t.Context(), httpverdict.Result{Status: 500})
		}
		if store.takes > 0 || len(sw.told) > 0 {
			t.Errorf("%s: the store was asked %d times, the levels told %v", action, store.takes, sw.told)
		}
		told := strings.Join(seen.lines, "\n")
		if n := strings.Count(told, "shed"); action == "shed" && n != 4 || action == "pass" && n != 0 {
			t.Errorf("%s: the observer was told\n%s", action, told)
		}
		if v := e.Decide(t.Context(), from("203.0.113.7", "GET /")); v.Code != "list_allowed" {
			t.Errorf("%s: office: got %+v", action, v)
		}
	}
}

// TestPriorityIsStatedByWhatMatches: whether the rule would apply is not asked; it costs what shedding is to save.
func TestPriorityIsStatedByWhatMatches(t *testing.T) {
	for rule, want := range map[string]uint8{
		`when: "false", priority: critical`:                      0,
		`when: 'request.headers["x"] == ""', priority: critical`: 0,
		`when: "false", priority: sheddable`:                     2,
		`skip: [office], priority: critical`:                     0,
		`mode: off, priority: critical`:                          1,
		`mode: shadow, priority: sheddable`:                      1,
		`match: {headers: {x-app: web}}, priority: critical`:     1,
		`match: {methods: [POST]}, priority: critical`:           1,
		`match: {methods: [GET]}, priority: critical`:            0,
	} {
		doc := preamble + "lists: {office: {cidrs: [198.51.100.0/24]}}\nrules: [{name: a, limits: [fixed_window 1/1d]}, {name: r, limits: [fixed_window 1/1d], " + rule + "}]"
		e := mustEngine(t, doc, &recorder{}, EngineConfig{})
		for method, want := range map[string]uint8{"GET": want, "HEAD": want} {
			if v := e.Decide(t.Context(), from("198.51.100.7", method+" /")); v.Priority != want {
				t.Errorf("%s: %s has priority %d, want %d", rule, method, v.Priority, want)
			}
		}
	}
}

// TestHooksAllocateNothing: what looks after levels and overload is asked at every request.
func TestHooksAllocateNothing(t *testing.T) {
	if raceDetector {
		t.Skip("under the race detector pools forget at random")
	}
	p := mustParse(t, fiveRules+"degradation: {l3: {allow: [office]}}\n")
	count := func(cfg EngineConfig) float64 {
		e, err := NewEngine(p, open{}, cfg)
		if err != nil {
			t.Fatal(err)
		}
		r := benchRequest()
		return testing.AllocsPerRun(200, func() { e.Decide(t.Context(), r) })
	}
	without := count(EngineConfig{})
	for i, sw := range []*quiet{{}, {lifted: true}, {danger: true}} {
		if with := count(EngineConfig{Levels: sw, Overload: sw}); with > without {
			t.Errorf("%d: %v allocations with hooks, %v without", i, with, without)
		}
	}
}

// quiet is levels and overload that remember nothing.
type quiet struct{ lifted, danger bool }

func (q *quiet) DeviceLifted() bool  { return q.lifted }
func (q *quiet) Restricted() bool    { return false }
func (q *quiet) Device(uint64, bool) {}
func (q *quiet) Danger() bool        { return q.danger }
func (q *quiet) Shed(uint8) bool     { return false }

// TestLiftedWhileTheStoreIsLost: a rule of the layer that is lifted asks only whether the key is shut, of the memory as well.
func TestLiftedWhileTheStoreIsLost(t *testing.T) {
	store, memory, sw := &counting{Store: newMemory(t)}, newMemory(t), &switches{}
	e := mustEngine(t, preamble+`
rules: [{name: shut, key: [device], limits: [fixed_window 1/1d], lockout: {after: 1, for: 1h}}]
`, store, EngineConfig{Fallback: memory, Levels: sw})
	codes := func(n int, device string) string {
		got := map[string]int{}
		for range n {
			got[e.Decide(t.Context(), request("GET /", "Cookie", "did="+device)).Kind.String()]++
		}
		return fmt.Sprint(got)
	}
	store.err = &headgate.Error{Code: headgate.CodeUnavailable}
	for _, c := range []struct {
		lifted bool
		device string
		want   string
	}{
		{false, "a", "map[allow:1 locked_out:9]"}, {true, "a", "map[locked_out:10]"}, {true, "b", "map[allow:10]"}, {false, "b", "map[allow:1 locked_out:9]"},
	} {
		sw.lifted = c.lifted
		if got := codes(10, c.device); got != c.want {
			t.Errorf("lifted %v, device %s: got %s, want %s", c.lifted, c.device, got, c.want)
		}
	}
}

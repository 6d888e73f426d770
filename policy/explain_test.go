package policy

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// TestExplainWhatTheAnswerCosts: what a rule charges for an answer is known when the request is over, also of one that is
// denied, and that charges nothing.
func TestExplainWhatTheAnswerCosts(t *testing.T) {
	e := mustEngine(t, `
version: 1
rules:
  - {name: site, limits: [fixed_window 9/1h]}
  - {name: login, key: [ip], limits: [fixed_window 2/1h], count_when: response.status == 401}
  - {name: traffic, cost: response.bytes, limits: [fixed_window 1000/1h]}
`, newMemory(t), EngineConfig{Explain: true})
	for i, c := range []struct {
		status         int
		bytes          int64
		denied         bool
		login, traffic int64
	}{
		{200, 100, false, 0, 100}, {401, 1, false, 1, 1}, {401, 1, false, 1, 1}, {401, 7, true, 1, 7}, {200, 5, true, 0, 5},
	} {
		v := e.At(noon).Decide(t.Context(), from("192.0.2.1", "POST /login"))
		if v.Done == nil {
			t.Fatalf("request %d: there is no Done", i)
		}
		v.Done(t.Context(), httpverdict.Result{Status: c.status, Bytes: c.bytes})
		costs := map[string]int64{}
		for _, m := range v.Matches {
			costs[m.Rule] = m.Cost
		}
		if v.Allowed() == c.denied || costs["site"] != 1 || costs["login"] != c.login || costs["traffic"] != c.traffic {
			t.Errorf("request %d: denied %v, costs %v; want %+v", i, !v.Allowed(), costs, c)
		}
	}
	v := e.At(noon).Decide(t.Context(), from("192.0.2.2", "POST /login"))
	for _, m := range v.Matches {
		if m.Rule == "traffic" && m.Limits[0].Outcome.Remaining != 1000-102 {
			t.Errorf("left of the traffic: %d, want 898: denied requests are not charged", m.Limits[0].Outcome.Remaining)
		}
	}
}

// TestExplainMarks: of a rule that lets pass with a mark, the outcomes alone would say that there was room.
func TestExplainMarks(t *testing.T) {
	e := mustEngine(t, `
version: 1
rules:
  - {name: pay, key: [ip], limits: [fixed_window 2/1h], on_deny: {action: mark}}
  - {name: site, limits: [fixed_window 9/1h]}
`, newMemory(t), EngineConfig{Explain: true, MarkKey: []byte("sixteen bytes or more")})
	for i := range 4 {
		v := e.At(noon).Decide(t.Context(), from("192.0.2.1", "GET /"))
		for _, m := range v.Matches {
			if want := m.Rule == "pay" && i >= 2; !v.Allowed() || m.Over != want || want != (v.Over != "" && m.Rule == "pay") {
				t.Errorf("request %d, rule %s: over %v, want %v", i, m.Rule, m.Over, want)
			}
		}
	}
}

// TestOnlyExplainingSettlesDenials: a front that is not told of denials owes them nothing.
func TestOnlyExplainingSettlesDenials(t *testing.T) {
	e := mustEngine(t, `
version: 1
rules:
  - {name: login, key: [ip], limits: [fixed_window 0/1h], count_when: response.status == 401}
`, newMemory(t), EngineConfig{})
	if v := e.At(noon).Decide(t.Context(), from("192.0.2.1", "POST /login")); v.Allowed() || v.Done != nil {
		t.Errorf("allowed %v, Done is there: %v", v.Allowed(), v.Done != nil)
	}
}

// TestExplainRefusals: a request that is refused before the store is asked is explained as well.
func TestExplainRefusals(t *testing.T) {
	e := mustEngine(t, preamble+`
rules:
  - {name: site, limits: [fixed_window 9/1h]}
  - {name: cost, match: {paths: [/cost]}, limits: [fixed_window 9/1h], cost: 'int(request.headers["x-n"])'}
  - {name: user, match: {paths: [/user]}, key: [user], missing: deny, limits: [fixed_window 9/1h]}
`, newMemory(t), EngineConfig{Explain: true})
	for path, want := range map[string]string{
		"/cost": "cost: its cost cannot be known, site: the request was refused before",
		"/user": "user: a dimension of the key is missing, site: the request was refused before",
	} {
		var got []string
		for _, m := range e.At(noon).Decide(t.Context(), request("GET "+path)).Matches {
			got = append(got, m.Rule+": "+m.Skipped)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: got %q", path, got)
		}
	}
}

func TestExplain(t *testing.T) {
	e := mustEngine(t, preamble+`
rules:
  - {name: site, limits: [fixed_window 9/1h]}
  - {name: app, when: 'request.headers["x-app"] == "1"', limits: [fixed_window 9/1h]}
  - {name: user, key: [user], missing: skip, limits: [fixed_window 9/1h]}
  - {name: trial, mode: shadow, key: [method], limits: [fixed_window 0/1h, fixed_window 5/1h]}
`, newMemory(t), EngineConfig{Explain: true})
	v := e.At(noon).Decide(t.Context(), request("GET /"))
	var got []string
	for _, m := range v.Matches {
		line := m.Rule + " " + m.Skipped + m.Key
		for _, l := range m.Limits {
			line += fmt.Sprint(" ", l.Limit, " ", l.Outcome.Allowed, " ", l.Outcome.Remaining)
		}
		got = append(got, line)
	}
	want := []string{"app when is false", "user a dimension of the key is missing", "site  fixed_window 9/1h true 8",
		"trial method=GET fixed_window 0/1h false 0 fixed_window 5/1h true 5"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

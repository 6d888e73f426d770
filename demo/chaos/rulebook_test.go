package chaos

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/demo"
	"github.com/headgate-io/headgate/examples/shop"
	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/policy"
)

func request(method, path, query, address, user, device string) *httpverdict.Request {
	r := &httpverdict.Request{
		Method: method, Path: path, RawQuery: query, Host: "shop.example.com", Peer: netip.MustParseAddr("127.0.0.1"),
		Header: http.Header{"X-Forwarded-For": {address}},
	}
	if user != "" {
		r.Header.Set("X-User-Id", user)
	}
	if device != "" {
		r.Header.Set("Cookie", "theme=dark; did="+device)
	}
	return r
}

// TestRulebook: the referee counts each request under the rules that the policy has for it, by keys that are the same when
// the policy's are.
func TestRulebook(t *testing.T) {
	t.Parallel()
	p, err := demo.Policy()
	if err != nil {
		t.Fatal(err)
	}
	book, err := newRulebook(p)
	if err != nil {
		t.Fatal(err)
	}
	store := memstore.New(memstore.Config{})
	defer store.Close()
	engine, err := policy.NewEngine(p, store, policy.EngineConfig{Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	mine, its := map[string]string{}, map[string]string{} // by rule and key
	for _, r := range []*httpverdict.Request{
		request("GET", "/product", "", "198.18.0.1", "", "phone-1"),
		request("GET", "/", "", "198.18.0.1", "user-1", ""),
		request("POST", "/login", "", "198.18.0.1", "", "phone-1"),
		request("POST", "/login", "", "198.18.0.2", "", ""),
		request("POST", "/sms", "phone=13800000001", "198.18.0.1", "user-1", "phone-1"),
		request("POST", "/sms", "phone=13800000001&x=1", "198.18.0.3", "user-2", ""),
		request("POST", "/confirm", "", "198.18.0.1", "user-1", "phone-1"),
		request("POST", "/_headgate/sales/s/skus/k/token", "", "198.18.0.1", "user-1", "phone-1"),
		request("POST", "/_headgate/sales/s/skus/k/reservations", "", "198.18.0.2", "user-1", ""),
		request("POST", "/_headgate/sales/s/skus/k/reservations/", "", "198.18.0.2", "", "phone-2"),
		request("GET", "/_headgate/sales/s/skus/k/reservations/r", "", "198.18.0.2", "user-1", "phone-2"),
		request("POST", "/_headgate/sales/s/skus/k/reservations/r/pay", "", "198.18.0.2", "user-1", "phone-2"),
		request("POST", "/_headgate/sales/s/skus/k/reservations/r/cancel", "", "198.18.0.2", "", ""),
		request("POST", "/_headgate/sales/s/skus//token", "", "198.18.0.2", "user-1", "phone-2"),
	} {
		var want, got []string
		keys := map[string]string{}
		for _, m := range engine.Decide(t.Context(), r).Matches {
			if m.Skipped == "" && !m.Shadow {
				want, keys[m.Rule] = append(want, m.Rule), m.Key
			}
		}
		for i := range book {
			key, ok := book[i].applies(guestOf(r))
			if !ok {
				continue
			}
			rule := book[i].rule
			got = append(got, rule)
			if old, seen := mine[rule+" "+key]; seen && old != keys[rule] {
				t.Errorf("%s: the referee takes %q and %q for one", rule, old, keys[rule])
			}
			if old, seen := its[rule+" "+keys[rule]]; seen && old != key {
				t.Errorf("%s: the referee takes %q for %q and %q", rule, keys[rule], old, key)
			}
			mine[rule+" "+key], its[rule+" "+keys[rule]] = keys[rule], key
		}
		if slices.Sort(want); !slices.Equal(want, slices.Sorted(slices.Values(got))) {
			t.Errorf("%s %s: the referee counts under %q, the policy under %q", r.Method, r.Path, got, want)
		}
	}
}

// TestRulebookRefuses a policy that says other things than it knows.
func TestRulebookRefuses(t *testing.T) {
	t.Parallel()
	for what, change := range map[string][2]string{
		"another key":        {"key: [user | ip]", "key: [user]"},
		"another path":       {"paths: [/login]", "paths: [/signin]"},
		"another rule":       {"- name: buy-ip", "- name: buy-address"},
		"one rule less":      {"- name: buy-ip", "- mode: off\n    name: buy-ip"},
		"another missing":    {"missing: skip\n    limits: [sliding_log 10/1h]", "limits: [sliding_log 10/1h]"},
		"a condition":        {"- name: site", "- when: request.method != 'GET'\n    name: site"},
		"another store":      {"- name: site", "- store: local\n    name: site"},
		"another on_error":   {"- name: site", "- on_error: open\n    name: site"},
		"a cost":             {"- name: site", "- cost: request.bytes\n    name: site"},
		"a list that passes": {"- name: site", "- skip: [probes]\n    name: site"},
	} {
		text := strings.Replace(shop.Policy, change[0], change[1], 1)
		p, err := policy.Parse("policy", []byte(text), policy.ParseConfig{})
		if err != nil || text == shop.Policy {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if _, err := newRulebook(p); err == nil || !strings.HasPrefix(err.Error(), "chaos: the ") {
			t.Errorf("%s: got %v", what, err)
		}
	}
	p, err := policy.Parse("policy", []byte(strings.Replace(shop.Policy, "sliding_log 10/1h", "sliding_log 9/1h", 1)), policy.ParseConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newRulebook(p); err != nil {
		t.Errorf("limits are the policy's own to say: %v", err)
	}
}

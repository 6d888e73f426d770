package app

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/policy"
)

// twoGuards are two processes that share a Redis.
func twoGuards(t *testing.T, rules string) (a, b *Guard, redis *testservers.RedisServer) {
	t.Helper()
	redis = testservers.Redis(t)
	url, err := ParseStoreURL("redis://" + redis.Addr() + "?timeout=10s") // a machine that is busy for a moment fails no call
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse("policy.yaml", []byte(rigPreamble+rules), policy.ParseConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var both [2]*Guard
	for i := range both {
		store, err := OpenStore(t.Context(), StoreConfig{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		if both[i], err = NewGuard(p, GuardConfig{Store: store}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = both[i].Close() })
		both[i].AwaitFleet(t.Context())
	}
	return both[0], both[1], redis
}

// passes tells whether a user's request passes a guard.
func passes(t *testing.T, g *Guard, user, path string) bool {
	t.Helper()
	v := g.Decide(t.Context(), &httpverdict.Request{
		Method: http.MethodGet, Path: path, Host: "shop.example.com", Peer: netip.MustParseAddr("127.0.0.1"), Header: http.Header{"X-User-Id": {user}},
	})
	if !v.Allowed() && v.Kind != httpverdict.Limited {
		t.Fatalf("%s: %+v", path, v)
	}
	return v.Allowed()
}

// spend sends requests to all guards in turn until each denies many in a row, and counts what passes.
func spend(t *testing.T, path string, guards ...*Guard) (passed int) {
	t.Helper()
	for denied := 0; denied < 20; denied++ {
		for _, g := range guards {
			if passes(t, g, "u-1", path) {
				passed++
				denied = 0
			}
		}
	}
	return passed
}

// TestResetReachesTheOthers: a key that is denied at two gates is reset at one. Both let it pass again, up to its limit and no
// further, wherever it was counted: in the store, in leases of it, or in the memory of each.
func TestResetReachesTheOthers(t *testing.T) {
	t.Parallel()
	a, b, redis := twoGuards(t, `rules:
  - {name: strict, match: {paths: [/strict]}, key: [user], limits: [fixed_window 4/36500d]}
  - {name: leased, match: {paths: [/leased]}, key: [user], store: leased, limits: [fixed_window 60/36500d]}
  - {name: local, match: {paths: [/local]}, key: [user], store: local, limits: [fixed_window 2/36500d]}
`)
	limits := map[string]int{"strict": 4, "leased": 60, "local": 2 + 2}
	for rule, limit := range limits {
		if n := spend(t, "/"+rule, a, b); n > limit || n < limit && rule != "leased" {
			t.Fatalf("%s: %d have passed of %d", rule, n, limit)
		}
	}
	// What leases hold, and what they have given back, is spent too.
	spent := 0
	eventually(t, "all is spent", func() (bool, any) {
		n := spend(t, "/leased", a, b)
		spent += n
		s, o := a.limiters.leases.Stats(), b.limiters.leases.Stats()
		return n == 0 && s.Held+o.Held == 0, spent
	})
	for rule, limit := range limits {
		if err := a.Reset(t.Context(), rule+"/0", "user=3:u-1"); err != nil {
			t.Fatal(err)
		}
		if !passes(t, a, "u-1", "/"+rule) {
			t.Errorf("%s: the gate that was asked to reset it denies it", rule)
		}
		passed := 1
		eventually(t, rule+" at the other gate", func() (bool, any) {
			ok := passes(t, b, "u-1", "/"+rule)
			if ok {
				passed++
			}
			return ok, passed
		})
		eventually(t, rule+" up to its limit", func() (bool, any) {
			passed += spend(t, "/"+rule, a, b)
			return passed >= limit, passed
		})
		if passed != limit {
			t.Errorf("%s: %d have passed after the reset, the limit is %d", rule, passed, limit)
		}
	}
	if passes(t, a, "u-1", "/strict") || passes(t, b, "u-1", "/strict") {
		t.Error("after all it passes once more")
	}

	redis.Kill()
	if err := a.Reset(t.Context(), "strict/0", "user=3:u-1"); err == nil || headgate.CodeOf(err) == "" {
		t.Errorf("without the store a reset says %v", err)
	}
}

// TestResetOfALongKey is done here, and told to nobody: notes are no place for what a client makes as long as it likes.
func TestResetOfALongKey(t *testing.T) {
	t.Parallel()
	a, _, redis := twoGuards(t, "rules: []")
	before := len(allKeys(t, redis))
	for _, c := range []struct {
		key   string
		notes int
	}{{strings.Repeat("k", maxResetKey+1), 0}, {strings.Repeat("\xff", maxResetKey), 1}} {
		if err := a.Reset(t.Context(), "s/0", c.key); err != nil {
			t.Fatal(err)
		}
		if n := len(allKeys(t, redis)) - before; n != c.notes {
			t.Errorf("a key of %d bytes has left %d keys in the store", len(c.key), n)
		}
	}
}

// TestHearingNonsense: what is no reset that this version knows resets nothing, and harms nothing.
func TestHearingNonsense(t *testing.T) {
	t.Parallel()
	a, _, _ := twoGuards(t, "rules: [{name: strict, key: [user], limits: [fixed_window 1/36500d]}]")
	if !passes(t, a, "u-1", "/") || passes(t, a, "u-1", "/") || passes(t, a, "u-1", "/") {
		t.Fatal("the limit is not 1")
	}
	hits := a.limiters.denials.Stats().Hits
	for _, note := range [][2]string{{"reset/x", ""}, {"reset/x", "{"}, {"reset/x", `{"slot":1}`}, {"level/3/hand", `{"slot":"strict/0","key":"dXNlcj0zOnUtMQ=="}`}} {
		a.hear(note[0], note[1])
	}
	if passes(t, a, "u-1", "/") || a.limiters.denials.Stats().Hits != hits+1 {
		t.Error("the denial is forgotten")
	}
	a.hear("reset/x", `{"slot":"strict/0","key":"dXNlcj0zOnUtMQ=="}`)
	if passes(t, a, "u-1", "/") || a.limiters.denials.Stats().Hits != hits+1 {
		t.Error("the denial is not forgotten, or the store has lost it")
	}
}

// TestHearingOfAReset: what this process knows of a key, holds for it or has counted in its own memory is gone when it hears that
// another has reset it, and not before.
func TestHearingOfAReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limits = "limits: [fixed_window 2/36500d]}\n"
		r := newRig(t, "rules:\n  - {name: strict, match: {paths: [/strict]}, "+limits+"  - {name: lease, match: {paths: [/lease]}, store: leased, "+limits+
			"  - {name: near, match: {paths: [/near]}, store: local, "+limits, GuardConfig{})
		defer r.close()
		for _, rule := range []string{"strict", "lease", "near"} {
			if n, by := r.send(1000, "a", "GET /"+rule, 200); n != 2 {
				t.Errorf("%s: %d have passed, denied by %v", rule, n, by)
			}
			if err := r.store.Reset(t.Context(), rule+"/0", ""); err != nil { // elsewhere
				t.Fatal(err)
			}
			if n, _ := r.send(20, "a", "GET /"+rule, 200); n != 0 {
				t.Errorf("%s: %d have passed before it was heard", rule, n)
			}
			r.guard.hear(resetNote+"x", `{"slot":"`+rule+`/0","key":""}`)
			if n, by := r.send(20, "a", "GET /"+rule, 200); n != 2 {
				t.Errorf("%s: %d have passed after it was heard, denied by %v", rule, n, by)
			}
		}
	})
}

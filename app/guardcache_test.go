package app

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/resilience"
)

// TestSettledOverLeasesAndDenials: what is known only from the answer is charged to the last unit and no further, and who is over
// the limit costs few calls.
func TestSettledOverLeasesAndDenials(t *testing.T) {
	for _, c := range []struct{ name, rule string }{
		{"leased fixed_window", "store: leased, limits: [fixed_window 5/100d]"},
		{"leased token_bucket", "store: leased, limits: [token_bucket 5/100d burst=5]"},
		{"leased sliding_window", "store: leased, limits: [sliding_window 5/100d cells=4]"},
		{"strict", "limits: [sliding_log 5/100d]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, "rules: [{name: login, key: [user], count_when: response.status == 401, "+c.rule+"}]", GuardConfig{})
				defer r.close()
				passed := 0
				for range 5 {
					good, _ := r.send(10, "a", "POST /login", 200)
					bad, _ := r.send(1, "a", "POST /login", 401)
					passed += good + bad
				}
				if passed != 55 {
					t.Errorf("%d of 55 have passed", passed)
				}
				before := r.takes()
				if n, by := r.send(500, "a", "POST /login", 401); n != 0 || by["login limited"] != 500 {
					t.Errorf("%d have passed, denied by %v", n, by)
				}
				if n := r.takes() - before; n > 20 {
					t.Errorf("500 denied requests have made %d calls", n)
				}
			})
		})
		t.Run(c.name+" by bytes", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, "rules: [{name: traffic, key: [user], cost: response.bytes, "+c.rule+"}]", GuardConfig{})
				defer r.close()
				passed := 0
				for range 9 { // 2 + 2, and of the third what is left
					v := r.ask("a", "GET /file")
					if v.Allowed() {
						passed++
					}
					v.Finish(t.Context(), httpverdict.Result{Status: 200, Bytes: 2})
				}
				if passed != 3 {
					t.Errorf("%d have passed; 3 times 2 bytes are over 5", passed)
				}
			})
		})
	}
}

// TestMarkOverDenials: a rule that marks lets all pass, charges up to its limit, and marks exactly those beyond.
func TestMarkOverDenials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "rules: [{name: soft, key: [user], limits: [fixed_window 5/1h], on_deny: {action: mark}}]",
			GuardConfig{MarkKey: []byte("sixteen bytes ok")})
		defer r.close()
		for round := range 2 {
			before := r.takes()
			for i := range 50 {
				v := r.ask("a", "GET /")
				if !v.Allowed() || (v.Over == "") != (i < 5) {
					t.Fatalf("round %d, request %d: %+v", round, i, v)
				}
			}
			if n := r.takes() - before; n > 100 {
				t.Errorf("50 requests have made %d calls", n)
			}
			time.Sleep(time.Hour)
		}
	})
}

// TestWaitOverDenials: who waits for a turn passes when it comes, not earlier, and asks no more often than there are turns.
func TestWaitOverDenials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "rules: [{name: slow, key: [user], limits: [token_bucket 10/s burst=1], on_deny: {action: wait, max_wait: 1s}}]", GuardConfig{})
		defer r.close()
		began := time.Now()
		var mu sync.Mutex
		var passed []time.Duration
		late := 0
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				v := r.ask("a", "GET /")
				mu.Lock()
				defer mu.Unlock()
				if v.Allowed() {
					passed = append(passed, time.Since(began))
				} else if late++; v.Code != "wait_timeout" {
					t.Errorf("got %+v", v)
				}
			})
		}
		all.Wait()
		if len(passed) != 10 && len(passed) != 11 || late != 20-len(passed) {
			t.Errorf("%d have passed, %d not: %v", len(passed), late, passed)
		}
		for i, at := range passed { // a call takes 1 ms
			if least := time.Duration(i) * 100 * time.Millisecond; at < least || at > least+30*time.Millisecond {
				t.Errorf("%d has passed after %v", i, at)
			}
		}
		if n := r.takes(); n > 3*len(passed)+20 {
			t.Errorf("%d calls for %d turns", n, len(passed))
		}
	})
}

const lockoutRules = `rules:
  - {name: device, key: [device], limits: [fixed_window 3/1m], lockout: {after: 2, within: 10m, for: 30m}}
`

// turn turns a switch of the rig.
func (r *rig) turn(level int, on bool) {
	r.t.Helper()
	if err := r.guard.Levels().Set(r.t.Context(), resilience.SwitchRequest{Level: level, On: on, Why: "a test"}); err != nil {
		r.t.Fatal(err)
	}
}

// TestLockoutOverDenials: every denial is counted in the store until the key is shut; then it costs no call. While the device layer
// is lifted a key that is shut stays shut, and nothing else is denied or charged.
func TestLockoutOverDenials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, lockoutRules, GuardConfig{})
		defer r.close()
		codes := func(n int, device string) (got map[string]int) {
			got = map[string]int{}
			for range n {
				v := r.ask("a", "GET /", "Cookie", "did="+device)
				got[v.Kind.String()]++
			}
			return got
		}
		if got := codes(5, "bad"); got["allow"] != 3 || got["limited"]+got["locked_out"] != 2 {
			t.Fatalf("got %v", got)
		}
		before := r.takes()
		if got := codes(300, "bad"); got["locked_out"] != 300 || r.takes()-before > 1 {
			t.Errorf("while shut: %v in %d calls", got, r.takes()-before)
		}
		r.turn(resilience.LevelDeviceLifted, true)
		before = r.takes()
		if got := codes(300, "bad"); got["locked_out"] != 300 || r.takes()-before > 1 {
			t.Errorf("while shut, lifted: %v in %d calls", got, r.takes()-before)
		}
		if got := codes(50, "good"); got["allow"] != 50 {
			t.Errorf("lifted: %v", got)
		}
		time.Sleep(31 * time.Minute)
		if got := codes(50, "bad"); got["allow"] != 50 {
			t.Errorf("lifted, after the lockout: %v", got)
		}
		r.turn(resilience.LevelDeviceLifted, false)
		if got := codes(3, "good"); got["allow"] != 3 {
			t.Errorf("what was asked while the layer was lifted was charged: %v", got)
		}
	})
}

// TestReloadWhileDegraded: a policy is replaced while both switches are on, a request waits, and the store is lost. The switches
// stay, the one who waits goes by the policy that it came under, and the store's return is seen by both.
func TestReloadWhileDegraded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const levels = `lists: {staff: {dimension: user, values: [s-1]}}
degradation: {l3: {allow: [staff]}}
`
		r := newRig(t, levels+lockoutRules+`  - {name: slow, match: {paths: [/slow]}, limits: [token_bucket 1/s burst=1], on_deny: {action: wait, max_wait: 5s}}
`, GuardConfig{})
		defer r.close()
		r.ask("s-1", "GET /slow")
		waits := make(chan *httpverdict.Verdict)
		go func() { waits <- r.ask("s-1", "GET /slow") }()
		time.Sleep(50 * time.Millisecond) // it is denied, and waits
		r.store.lose(true)
		r.turn(resilience.LevelRestricted, true)
		r.turn(resilience.LevelDeviceLifted, true)
		r.replace(levels + "rules: [{name: device, key: [device], limits: [fixed_window 0/1m]}, {name: slow, match: {paths: [/slow]}, limits: [fixed_window 0/1m]}]")
		if n, keys := r.guard.Waiting(), r.guard.limiters.denials.Stats().Keys; n != 1 || keys != 0 {
			t.Errorf("after the policy has changed %d wait, and %d denials are known", n, keys)
		}
		if v := r.ask("s-1", "GET /x", "Cookie", "did=d"); !v.Allowed() {
			t.Errorf("lifted, staff: %+v", v)
		}
		if v := r.ask("u-1", "GET /x"); v.Code != "restricted" {
			t.Errorf("restricted: %+v", v)
		}
		if v := r.ask("s-1", "GET /slow"); v.Allowed() || v.Rule != "slow" {
			t.Errorf("under the new policy, without the store: %+v", v)
		}
		if v := <-waits; !v.Allowed() {
			t.Errorf("the one that has waited since before: %+v", v)
		}
		r.replace("rules: []")
		if v := r.ask("s-1", "GET /x"); v.Code != "restricted" {
			t.Errorf("a policy without l3 lets nobody pass: %+v", v)
		}
		r.store.lose(false)
		r.turn(resilience.LevelRestricted, false)
		r.turn(resilience.LevelDeviceLifted, false)
		r.replace(lockoutRules)
		if n, by := r.send(5, "a", "GET /", 200); n != 2 { // the first of all was charged in the store, the one that has waited in memory
			t.Errorf("at the end: %d, %v", n, by)
		}
	})
}

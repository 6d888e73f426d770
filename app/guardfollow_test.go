package app

import (
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/policy"
	"github.com/headgate-io/headgate/resilience"
)

// replace puts another policy in force.
func (r *rig) replace(rules string) {
	r.t.Helper()
	p, err := policy.Parse("policy.yaml", []byte(rigPreamble+rules), policy.ParseConfig{})
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.guard.Replace(p, nil); err != nil {
		r.t.Fatal(err)
	}
}

// neverShedsAPart is randomness by which a priority that is shed in part passes, and one that is shed altogether does not.
func neverShedsAPart() uint64 { return math.MaxUint64 }

// TestOverloadFollowsThePolicy: thresholds and action are those of the policy in force, from the next sample on.
func TestOverloadFollowsThePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var used atomic.Int64
		overload := resilience.NewOverload(resilience.OverloadConfig{Collect: func() {}, Rand: neverShedsAPart, Sampler: func() (resilience.LoadSample, error) {
			return resilience.LoadSample{CPUs: 2, MemoryUsed: used.Load(), MemoryBound: 100, MemoryBy: "a test"}, nil
		}})
		defer overload.Close()
		const rules = `rules:
  - {name: least, match: {paths: [/feed]}, priority: sheddable, limits: [fixed_window 0/1d]}
  - {name: most, match: {paths: [/pay]}, priority: critical, limits: [fixed_window 0/1d]}
  - {name: all, match: {paths: [/]}, limits: [fixed_window 0/1d]}
`
		r := newRig(t, rules, GuardConfig{Overload: overload})
		defer r.close()
		codes := func(want string) {
			t.Helper()
			time.Sleep(10 * time.Second) // garbage is collected first, and the load is smoothed
			got := ""
			for _, path := range []string{"/feed", "/", "/pay"} {
				got += r.ask("u-1", "GET "+path).Code + " "
			}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		const limited = "cost_exceeds_limit"
		used.Store(84)
		codes(limited + " " + limited + " " + limited + " ")
		r.replace("overload: {memory: 75%}\n" + rules) // 75 to 83: sheddable ones go
		codes("shed " + limited + " " + limited + " ")
		if s := overloadStatus(overload); !s.Active || s.Shedding.Sheddable != 1 || s.Shedding.Normal <= 0 || s.Shedding.Normal >= 0.3 || s.Shedding.Critical != 0 ||
			s.Shed.Sheddable == 0 || s.Shed.Critical != 0 {
			t.Errorf("the status is %+v", s)
		}
		r.replace("overload: {memory: 50%}\n" + rules) // 83 and more: all that is not critical
		codes("shed shed " + limited + " ")
		r.replace("overload: {memory: 50%, action: pass}\n" + rules)
		codes("overload_passed overload_passed overload_passed ")
		if s := overloadStatus(overload); !s.Active || s.Shedding != (ByPriority[float64]{}) {
			t.Errorf("while it passes, the status is %+v", s)
		}
		r.replace(rules)
		codes(limited + " " + limited + " " + limited + " ")
	})
}

// TestLevelsFollowThePolicy: level 2 turns on by itself only under a policy that lets it, and ends with it.
func TestLevelsFollowThePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rules = "rules: [{name: device, key: [device], limits: [fixed_window 0/1d]}]\n"
		r := newRig(t, rules, GuardConfig{})
		defer r.close()
		crowd := func(lasts time.Duration) {
			for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
				for d := range 60 {
					r.ask("u-1", "GET /", "Cookie", fmt.Sprint("did=d-", d))
				}
			}
		}
		crowd(2 * time.Minute)
		if r.guard.Levels().DeviceLifted() {
			t.Error("the layer is lifted without a word in the policy")
		}
		r.replace("degradation: {l2: {automatic: true, denied_devices: 50%, for: 6s, retry_after: 1h}}\n" + rules)
		crowd(20 * time.Second)
		if s := levelStatus(r.guard.Levels()); s.Level != 2 || s.Why == "" || s.Switches[1].By != resilience.Automatic || time.Until(s.Switches[1].Until) < 50*time.Minute {
			t.Errorf("the levels are %+v", s)
		}
		if v := r.ask("u-1", "GET /", "Cookie", "did=d-1"); !v.Allowed() {
			t.Errorf("lifted: %+v", v)
		}
		r.replace(rules)
		if v := r.ask("u-1", "GET /", "Cookie", "did=d-1"); v.Allowed() {
			t.Errorf("under a policy that does not lift it: %+v", v)
		}
	})
}

package app

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/metrics"
	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/policy"
	"github.com/headgate-io/headgate/resilience"
)

const loadRules = `lists: {staff: {dimension: user, values: [u-0]}}
rules:
  - {name: strict, key: [user], limits: [token_bucket 50/s burst=5]}
  - {name: lease, store: leased, limits: [token_bucket %d/s burst=500]}
  - {name: near, store: local, key: [user], limits: [sliding_window 200/1s cells=4]}
  - {name: slots, limits: [concurrency 6 ttl=1m], on_deny: {action: wait, max_wait: 20ms}}
  - {name: device, key: [device], limits: [fixed_window 20/1s], lockout: {after: 3, within: 1s, for: 1s}}
  - {name: failed, key: [user], limits: [sliding_log 50/1s], count_when: response.status == 401}
  - {name: open, key: [ip], limits: [fixed_window 100/1s], on_error: open}
degradation: {l3: {allow: [staff]}}
`

// TestGuardUnderLoad does all that can be done with a guard at once: requests of every kind, a store that comes and goes, switches,
// policies, resets, and those who look. What the metrics have counted in the end is what was decided, and no slot is left behind.
func TestGuardUnderLoad(t *testing.T) {
	t.Parallel()
	m, err := metrics.New(metrics.Config{OwnOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	overload := resilience.NewOverload(resilience.OverloadConfig{Sampler: func() (resilience.LoadSample, error) { return resilience.LoadSample{}, nil }})
	defer overload.Close()
	r := newRig(t, fmt.Sprintf(loadRules, 1000), GuardConfig{
		Overload: overload, Instances: 2,
		Watch: GuardWatch{Decisions: m.Policy(), Leases: m.Leases(), Levels: m.Resilience(), Rules: m.SetRules, Keys: m.Memory("local")},
	})
	defer r.close()
	r.store.slow = 0 // time is real here
	var decided atomic.Int64
	var crowd, others sync.WaitGroup
	stop := make(chan struct{})
	for c := range 8 {
		crowd.Go(func() {
			for i := range 150 {
				user, device := fmt.Sprint("u-", (c+i)%3), fmt.Sprint("did=d-", i%5)
				v := r.ask(user, "GET /", "Cookie", device)
				decided.Add(1)
				if v.Kind == httpverdict.BadRequest || v.Kind == httpverdict.Forbidden || v.ID == "" {
					t.Errorf("got %+v", v)
				}
				v.Finish(t.Context(), httpverdict.Result{Status: 200 + 201*(i%2), Bytes: 10})
			}
		})
	}
	during := func(every time.Duration, do func(i int)) {
		others.Go(func() {
			tick := time.NewTicker(every)
			defer tick.Stop()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				case <-tick.C:
					do(i)
				}
			}
		})
	}
	during(30*time.Millisecond, func(i int) { r.store.lose(i%3 == 0) })
	during(20*time.Millisecond, func(i int) { r.turn(resilience.LevelDeviceLifted+i/2%2, i%2 == 0) })
	during(25*time.Millisecond, func(i int) {
		p, err := policy.Parse("policy.yaml", fmt.Appendf(nil, rigPreamble+loadRules, 1000+i%2), policy.ParseConfig{})
		if err != nil {
			t.Error(err)
			return
		}
		if err := r.guard.Replace(p, nil); err != nil {
			t.Error(err)
		}
	})
	during(10*time.Millisecond, func(i int) {
		_ = r.guard.Reset(t.Context(), "strict/0", "user=3:u-1") // fails while the store is lost
		r.guard.hear(resetNote, `{"slot":"lease/0"}`)
	})
	during(15*time.Millisecond, func(int) {
		if _, err := m.Gatherer().Gather(); err != nil {
			t.Error(err)
		}
		r.guard.LimitsInForce()
		r.guard.Waiting()
		r.guard.limiters.leases.Stats()
		levelStatus(r.guard.Levels())
	})
	crowd.Wait()
	close(stop)
	others.Wait()
	r.store.lose(false)
	for _, level := range []int{resilience.LevelDeviceLifted, resilience.LevelRestricted} {
		r.turn(level, false)
	}
	got, err := m.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range got {
		if f.GetName() != "headgate_decisions_total" {
			continue
		}
		sum := 0.0
		for _, s := range f.GetMetric() {
			sum += s.GetCounter().GetValue()
		}
		if sum != float64(decided.Load()) {
			t.Errorf("%v decisions are counted of %d", sum, decided.Load())
		}
	}
	if n := r.guard.Waiting(); n != 0 {
		t.Errorf("%d still wait", n)
	}
	// A slot whose release met a lost store dies at its ttl; of the memory none may be left.
	for i := range 3 { // the part of 6 that one of two instances has
		r.store.lose(true)
		if v := r.ask(fmt.Sprint("x-", i), "GET /", "Cookie", fmt.Sprint("did=x-", i)); !v.Allowed() {
			t.Errorf("slot %d: got %+v", i, v)
		}
	}
	r.store.lose(false)
}

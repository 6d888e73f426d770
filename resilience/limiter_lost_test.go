package resilience

import (
	"testing"
	"testing/synctest"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// TestLimiterAsksNoLostStore: while the breaker is open no call goes to the store, whatever is asked; what only it could answer is
// refused at once.
func TestLimiterAsksNoLostStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := openPair(t, LimiterConfig{})
		slot := func(holder string) headgate.Charge {
			return headgate.Charge{Slot: "c", Key: "k", Limit: headgate.MustParseLimit("concurrency 9 ttl=1m"), Cost: 1, Holder: holder}
		}
		before, during := []headgate.Charge{slot("before")}, []headgate.Charge{slot("during")}
		var inStore, inMemory headgate.Decision
		if err := p.Take(t.Context(), before, &inStore); err != nil {
			t.Fatal(err)
		}
		p.store.fail(failure(headgate.CodeUnavailable))
		for !p.Lost() {
			if err := p.Take(t.Context(), during, &inMemory); err != nil {
				t.Fatal(err)
			}
		}
		calls := p.store.calls.Load()
		_, renew := p.Renew(t.Context(), &before[0])
		for what, err := range map[string]error{"refund": p.Refund(t.Context(), before, &inStore), "renew": renew, "release": p.Release(t.Context(), &before[0])} {
			if headgate.CodeOf(err) != headgate.CodeUnavailable {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := p.Release(t.Context(), &during[0]); err != nil {
			t.Error(err)
		}
		if n := p.store.calls.Load() - calls; n != 0 {
			t.Errorf("the store was asked %d times", n)
		}
	})
}

// TestLimiterFindsItsSlots: a slot that was taken locally is found there for as long as it is renewed, and when none can live any more
// everything is the store's.
func TestLimiterFindsItsSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := openPair(t, LimiterConfig{})
		c := headgate.Charge{Slot: "c", Key: "k", Limit: headgate.MustParseLimit("concurrency 9 ttl=1m"), Cost: 1, Holder: "h"}
		p.store.fail(failure(headgate.CodeUnavailable))
		if _, err := headgate.Take(t.Context(), p, c); err != nil {
			t.Fatal(err)
		}
		p.store.fail(nil)
		for range 5 {
			time.Sleep(50 * time.Second)
			if alive, err := p.Renew(t.Context(), &c); err != nil || !alive {
				t.Fatalf("renewed: %t %v", alive, err)
			}
		}
		if !p.slots.any() || used(t, p.local, "c") != 1 {
			t.Error("a slot that is renewed does not live")
		}
		time.Sleep(time.Minute + time.Second)
		if p.slots.any() {
			t.Error("there may still be slots in the local limiter")
		}
	})
}

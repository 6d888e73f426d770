package policy

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/middleware/httpverdict"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const oneAtATime = preamble + "rules: [{name: r, key: [ip], limits: [concurrency 1 ttl=3s]}]"

// inBubble runs a test in virtual time, with a store of its own.
func inBubble(t *testing.T, test func(t *testing.T, store *memstore.Store)) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Config{})
		defer store.Close()
		test(t, store)
	})
}

func TestSlotIsHeldUntilDone(t *testing.T) {
	inBubble(t, func(t *testing.T, store *memstore.Store) {
		e := mustEngine(t, oneAtATime, store, EngineConfig{})
		first := e.Decide(t.Context(), request("GET /"))
		if !first.Allowed() || first.Done == nil {
			t.Fatalf("got %+v", first)
		}
		time.Sleep(time.Minute) // twenty times its life
		second := e.Decide(t.Context(), request("GET /"))
		if second.Kind != httpverdict.Limited || second.RetryAfter.State != headgate.RetryUnknown || second.Done != nil {
			t.Errorf("while it is held: %+v", second)
		}
		first.Done(t.Context(), httpverdict.Result{Status: 200})
		third := e.Decide(t.Context(), request("GET /"))
		if !third.Allowed() {
			t.Errorf("after it was released: %+v", third)
		}
		first.Done(t.Context(), httpverdict.Result{}) // again: frees nobody else's slot
		if v := e.Decide(t.Context(), request("GET /")); v.Allowed() {
			t.Errorf("a second Done has freed another's slot")
		}
		third.Done(t.Context(), httpverdict.Result{})
	})
}

func TestSlotDiesWithoutDone(t *testing.T) {
	inBubble(t, func(t *testing.T, store *memstore.Store) {
		e := mustEngine(t, oneAtATime, store, EngineConfig{MaxHold: 10 * time.Second})
		for _, c := range []struct {
			name string
			ctx  func() (context.Context, context.CancelFunc)
			held time.Duration // at least
			free time.Duration // at most
		}{
			{"its request ends", func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), 4*time.Second) }, 4 * time.Second, 7 * time.Second},
			{"it is held for too long", func() (context.Context, context.CancelFunc) { return context.WithCancel(t.Context()) }, 10 * time.Second, 13 * time.Second},
		} {
			ctx, cancel := c.ctx()
			if v := e.Decide(ctx, request("GET /")); !v.Allowed() {
				t.Fatalf("%s: got %+v", c.name, v)
			}
			time.Sleep(c.held)
			if v := e.Decide(t.Context(), request("GET /")); v.Allowed() {
				t.Errorf("%s: the slot died early", c.name)
			}
			time.Sleep(c.free - c.held)
			if v := e.Decide(t.Context(), request("GET /")); !v.Allowed() {
				t.Errorf("%s: the slot outlives it", c.name)
			} else {
				v.Done(t.Context(), httpverdict.Result{})
			}
			cancel()
		}
	})
}

// slotLog is a store that counts what is asked of the slots.
type slotLog struct {
	recorder
	takeErr        error
	alive          bool
	err            error
	renewed, freed atomic.Int64
}

func (s *slotLog) Take(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	if s.takeErr != nil {
		d.Reset(0)
		return s.takeErr
	}
	if err := s.recorder.Take(ctx, charges, d); err != nil {
		return err
	}
	for i := range d.Outcomes {
		d.Outcomes[i].Receipt.Charged = 1
	}
	return nil
}

func (s *slotLog) Renew(context.Context, *headgate.Charge) (bool, error) {
	s.renewed.Add(1)
	return s.alive, s.err
}

func (s *slotLog) Release(_ context.Context, c *headgate.Charge) error {
	s.freed.Add(1)
	if c.Holder == "" {
		return errors.New("no holder")
	}
	return s.err
}

func TestRenewals(t *testing.T) {
	for _, c := range []struct {
		name  string
		doc   string
		alive bool
		err   error
		want  int64
		diary int
	}{
		{"every third of its life", oneAtATime, true, nil, 10, 0},
		{"a dead slot once", oneAtATime, false, nil, 1, 0},
		{"after a failed call again", oneAtATime, false, errors.New("lost"), 10, 11},
		{"each slot of a request", preamble + "rules: [{name: r, limits: [concurrency 1 ttl=3s, concurrency 2 ttl=9s]}]", true, nil, 20, 0},
		{"shadow slots too", preamble + "rules: [{name: r, mode: shadow, limits: [concurrency 1 ttl=3s]}]", true, nil, 10, 0},
		{"a short life is renewed no faster than that", preamble + "rules: [{name: r, limits: [concurrency 1 ttl=1us]}]", true, nil, 2000, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, seen := &slotLog{alive: c.alive, err: c.err}, &diary{}
			e := mustEngine(t, c.doc, store, EngineConfig{Observer: seen})
			v := e.Decide(t.Context(), request("GET /"))
			time.Sleep(10*time.Second + time.Millisecond)
			v.Done(t.Context(), httpverdict.Result{})
			time.Sleep(time.Minute)
			failed := 0
			for _, line := range seen.lines {
				if line == "failed internal false" {
					failed++
				}
			}
			if got := store.renewed.Load(); got != c.want || failed != c.diary {
				t.Errorf("%s: %d renewals; want %d; %q", c.name, got, c.want, seen.lines)
			}
		})
	}
}

func TestQuickRequestsAreNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slotLog{alive: true}
		e := mustEngine(t, oneAtATime, store, EngineConfig{})
		v := e.Decide(t.Context(), request("GET /"))
		v.Done(t.Context(), httpverdict.Result{})
		time.Sleep(time.Minute)
		if store.renewed.Load() != 0 || store.freed.Load() != 1 {
			t.Errorf("%d renewals, %d releases", store.renewed.Load(), store.freed.Load())
		}
	})
}

func TestAnUncertainSlotIsReleased(t *testing.T) {
	store := &slotLog{takeErr: &headgate.Error{Code: headgate.CodeIndeterminate}}
	fallback := &slotLog{alive: true}
	e := mustEngine(t, oneAtATime, store, EngineConfig{Fallback: fallback})
	v := e.Decide(t.Context(), request("GET /"))
	if !v.Allowed() || v.Done == nil {
		t.Fatalf("got %+v", v)
	}
	v.Done(t.Context(), httpverdict.Result{})
	if store.freed.Load() != 1 || fallback.freed.Load() != 1 {
		t.Errorf("%d and %d releases", store.freed.Load(), fallback.freed.Load())
	}

	store = &slotLog{takeErr: &headgate.Error{Code: headgate.CodeUnavailable}}
	e = mustEngine(t, oneAtATime, store, EngineConfig{})
	if v := e.Decide(t.Context(), request("GET /")); v.Done != nil {
		t.Error("nothing ran, and yet there is something to release")
	}
}

// onRelease is a store that tells when a slot has been freed.
type onRelease struct {
	*memstore.Store
	then func()
}

func (s *onRelease) Release(ctx context.Context, c *headgate.Charge) error {
	err := s.Store.Release(ctx, c)
	s.then()
	return err
}

// TestChargedBeforeReleased: who gets the slot of a request that is over sees what its answer was charged.
func TestChargedBeforeReleased(t *testing.T) {
	store := &onRelease{Store: newMemory(t)}
	e := mustEngine(t, preamble+`
rules:
  - {name: slot, key: [ip], limits: [concurrency 1 ttl=3s]}
  - {name: once, key: [ip], limits: [fixed_window 1/day], count_when: response.status == 200}
`, store, EngineConfig{})
	var next *httpverdict.Verdict
	store.then = func() { next = e.Decide(t.Context(), request("GET /")) }
	first := e.Decide(t.Context(), request("GET /"))
	first.Finish(t.Context(), httpverdict.Result{Status: 200})
	if !first.Allowed() || next.Allowed() || next.Rule != "once" {
		t.Errorf("the first %+v, the next %+v", first, next)
	}
}

func TestSlotsAtAFixedTime(t *testing.T) {
	e := mustEngine(t, oneAtATime, newMemory(t), EngineConfig{})
	var got []string
	first := e.At(noon).Decide(t.Context(), request("GET /"))
	for _, d := range []time.Duration{2 * time.Second, 4 * time.Second} {
		v := e.At(noon.Add(d)).Decide(t.Context(), request("GET /"))
		got = append(got, v.Kind.String())
	}
	first.Done(t.Context(), httpverdict.Result{})
	if want := []string{"limited", "allow"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
}

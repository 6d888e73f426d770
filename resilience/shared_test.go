package resilience_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/internal/testservers"
)

// TestShared: what the example makes keeps the limit of two instances to the unit while Redis is there, gives each its half while
// it is killed, without an error, and goes by Redis again when that is back.
func TestShared(t *testing.T) {
	t.Parallel()
	srv := testservers.Redis(t, testservers.AppendOnly())
	var both [2]*Shared
	for i := range both {
		s, err := OpenShared(t.Context(), srv.URL()+"?timeout=10s") // a machine that is busy for a moment fails no call
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		both[i] = s
	}
	await(t, "each to know of the other", func() bool { return both[0].Fleet.Live() == 2 && both[1].Fleet.Live() == 2 })

	if got := admitted(t, both, "a"); got[0]+got[1] != 100 {
		t.Errorf("the store there: %d and %d of 100 were admitted", got[0], got[1])
	}
	srv.Kill()
	if got := admitted(t, both, "b"); got != [2]int{50, 50} {
		t.Errorf("the store killed: %d and %d of 100 were admitted, want 50 each", got[0], got[1])
	}
	await(t, "the breakers to open", func() bool { admitted(t, both, "b"); return both[0].Lost() && both[1].Lost() })
	if err := srv.Restart(testservers.KeepData); err != nil {
		t.Fatal(err)
	}
	await(t, "the store to be found", func() bool { return !both[0].Lost() && !both[1].Lost() })
	if got := admitted(t, both, "a"); got != [2]int{} {
		t.Errorf("the store back: %d and %d more of the 100 from before were admitted", got[0], got[1])
	}
}

// admitted asks both at once, until each has been denied 300 times, over 300 ms at least, since one of them has been admitted: what the other
// has charged ahead and what is on its way is there by then. It is counted in looks, so that no time counts in which the machine stood still.
func admitted(t *testing.T, both [2]*Shared, key string) (n [2]int) {
	t.Helper()
	limit := headgate.MustParseLimit("fixed_window 100/36500d")
	var sum atomic.Int64
	var denied [2]atomic.Int64
	var over atomic.Bool
	var all sync.WaitGroup
	for i, s := range both {
		all.Go(func() {
			look := time.NewTicker(time.Millisecond)
			defer look.Stop()
			for before := int64(0); !over.Load(); {
				switch ok, err := headgate.Allow(t.Context(), s, limit, key); {
				case err != nil:
					t.Error(err)
					over.Store(true)
				case ok:
					n[i]++
					if sum.Add(1) > 1000 {
						t.Error("there is no end to what is admitted")
						over.Store(true)
					}
					denied[0].Store(0)
					denied[1].Store(0)
				case before != sum.Load():
					before = sum.Load()
					denied[i].Store(0)
				default:
					if denied[i].Add(1) >= 300 && denied[1-i].Load() >= 300 {
						over.Store(true)
					}
					<-look.C
				}
			}
		})
	}
	all.Wait()
	return n
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	err := testservers.Poll(ctx, func() error {
		if !holds() {
			return errors.New("waiting for " + what)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

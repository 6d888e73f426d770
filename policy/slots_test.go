package policy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// unreliable is a store whose calls fail at random, before or after they have done their work. Releases do not fail: one
// that does leaves its slot to the ttl.
type unreliable struct {
	*memstore.Store
	mu       sync.Mutex
	rnd      *rand.Rand
	released map[string]int // by slot and holder
}

func newUnreliable(seed uint64) *unreliable {
	return &unreliable{Store: memstore.New(memstore.Config{}), rnd: rand.New(rand.NewPCG(seed, 3)), released: make(map[string]int)}
}

// fault returns the error of a call, and whether it comes after the work is done.
func (u *unreliable) fault() (err error, after bool) { //nolint:revive // it is no error of its own
	u.mu.Lock()
	defer u.mu.Unlock()
	switch u.rnd.IntN(10) {
	case 0:
		return &headgate.Error{Code: headgate.CodeUnavailable}, false
	case 1:
		return &headgate.Error{Code: headgate.CodeIndeterminate}, false
	case 2:
		return &headgate.Error{Code: headgate.CodeIndeterminate}, true
	}
	return nil, false
}

func (u *unreliable) Take(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	fault, after := u.fault()
	if fault != nil && !after {
		d.Reset(0)
		return fault
	}
	if err := u.Store.Take(ctx, charges, d); err != nil || fault == nil {
		return err
	}
	d.Reset(0)
	return fault
}

func (u *unreliable) Refund(ctx context.Context, charges []headgate.Charge, d *headgate.Decision) error {
	fault, after := u.fault()
	if fault != nil && !after {
		return fault
	}
	kept := append([]headgate.Outcome(nil), d.Outcomes...)
	err := u.Store.Refund(ctx, charges, d)
	if fault != nil {
		copy(d.Outcomes, kept)
		return fault
	}
	return err
}

func (u *unreliable) Release(ctx context.Context, c *headgate.Charge) error {
	u.mu.Lock()
	u.released[c.Slot+" "+c.Holder]++
	u.mu.Unlock()
	return u.Store.Release(ctx, c)
}

// TestEverySlotIsFreed: whatever fails, whoever leaves and however long a request has waited, when all are over nobody
// holds a slot in any store, and each has been released at most once.
func TestEverySlotIsFreed(t *testing.T) {
	const doc = preamble + `
rules:
  - {name: near, store: local, limits: [concurrency 6 ttl=1h]}
  - {name: far, limits: [concurrency 4 ttl=1h], on_deny: {action: wait, max_wait: 400ms}}
  - {name: trial, mode: shadow, limits: [concurrency 2 ttl=1h]}
  - {name: rate, limits: [token_bucket 50/s burst=3], on_deny: {action: wait, max_wait: 300ms}}
  - {name: open, on_error: open, key: [user], limits: [concurrency 2 ttl=1h]}
  - {name: mark, key: [user], limits: [fixed_window 3/1s], on_deny: {action: mark}}
  - {name: settled, key: [user], limits: [fixed_window 9/1s], count_when: response.status == 401}
  - {name: closed, match: {paths: [/closed]}, on_error: closed, limits: [fixed_window 20/1s]}
`
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			stores := map[string]*unreliable{"local": newUnreliable(seed), "store": newUnreliable(seed + 100), "fallback": newUnreliable(seed + 200)}
			defer func() {
				for _, u := range stores {
					u.Close()
				}
			}()
			e := mustEngine(t, doc, stores["store"], EngineConfig{Local: stores["local"], Fallback: stores["fallback"], MarkKey: []byte("sixteen bytes ok")})
			passed := sendAtRandom(t, e, rand.New(rand.NewPCG(seed, 9)))
			if passed == 0 || e.Waiting() != 0 {
				t.Errorf("seed %d: %d passed, %d wait", seed, passed, e.Waiting())
			}
			for name, u := range stores {
				for slot, key := range map[string]string{"near/0": "", "far/0": "", "trial/0": "", "open/0": "user=1:1"} {
					if i, err := u.Inspect(t.Context(), slot, key); err != nil || i.Used != 0 {
						t.Errorf("seed %d: %d hold %s in the %s, %v", seed, i.Used, slot, name, err)
					}
				}
				for slot, n := range u.released {
					if n != 1 {
						t.Errorf("seed %d: %s was released %d times in the %s", seed, slot, n, name)
					}
				}
			}
		})
	}
}

// sendAtRandom sends requests of which some go away while they wait, and ends them all. It returns how many passed.
func sendAtRandom(t *testing.T, e *Engine, rnd *rand.Rand) (passed int) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range 150 {
		at, takes, patience := rnd.IntN(1000), rnd.IntN(200), 5+rnd.IntN(2000)
		user, path := fmt.Sprint(rnd.IntN(2)), []string{"/", "/closed"}[rnd.IntN(2)]
		wg.Go(func() {
			time.Sleep(time.Duration(at) * time.Millisecond)
			ctx, cancel := context.WithCancel(t.Context())
			leave := time.AfterFunc(time.Duration(patience)*time.Millisecond, cancel)
			defer leave.Stop()
			v := e.Decide(ctx, request("GET "+path, "X-User-Id", user))
			if v.Allowed() {
				time.Sleep(time.Duration(takes) * time.Millisecond)
				mu.Lock()
				passed++
				mu.Unlock()
			}
			v.Finish(ctx, httpverdict.Result{Status: 401})
			cancel()
		})
	}
	wg.Wait()
	return passed
}

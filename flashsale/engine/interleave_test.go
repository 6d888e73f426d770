package engine

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/porttest"
)

// sleeper is an engine that stops before its n-th call of a port until it is woken. It is not dead, only late.
type sleeper struct {
	n      int
	calls  int
	at     string
	asleep chan struct{}
	wake   chan struct{}
}

func newSleeper(n int) *sleeper {
	return &sleeper{n: n, asleep: make(chan struct{}), wake: make(chan struct{})}
}

func (s *sleeper) gate() *porttest.Gate {
	return &porttest.Gate{Before: func(_ context.Context, call string) error {
		if s.calls++; s.calls == s.n {
			s.at = call
			close(s.asleep)
			<-s.wake
		}
		return nil
	}}
}

// start lets the engine act until it sleeps or has finished, and returns what wakes it and awaits its end, and whether it sleeps.
func (s *sleeper) start(ctx context.Context, k *keep, a *action) (finish func() error, asleep bool) {
	ended := make(chan error, 1)
	e := k.another(s.gate())
	go func() { ended <- a.do(ctx, k, e) }()
	select {
	case <-s.asleep:
		return func() error { close(s.wake); return <-ended }, true
	case err := <-ended:
		return func() error { return err }, false
	}
}

// meanwhile is what others do while one sleeps.
func meanwhile() map[string]func(k *keep) {
	return map[string]func(k *keep){
		// Whoever sleeps for so long has lost its leases.
		"a rebuild": func(k *keep) { k.clock.advance(6 * time.Second); k.rebuildNow() },
		"everything, then a rebuild, then everything": func(k *keep) {
			k.clock.advance(6 * time.Second)
			k.settle()
			k.rebuildNow()
			k.settle()
		},
		"a loss and its rebuild": func(k *keep) {
			k.clock.advance(6 * time.Second)
			k.settle()
			k.loseData()
			k.settle()
		},
	}
}

// loseData is a Stock that has lost all of a key, under the feet of those who use it.
func (k *keep) loseData() {
	k.t.Helper()
	k.engine.lost(k.key, k.sku().Epoch, "a test")
	k.watch()
}

// TestLateEngine has an engine sleep before every call of each thing that it does in steps, while another does all there is to do, then
// wakes it: what it does in its belief that nothing has happened harms nobody.
func TestLateEngine(t *testing.T) {
	for what, a := range actions() {
		for other, others := range meanwhile() {
			if !tried(what, other) {
				continue
			}
			stride := a.stride(5)
			t.Run(what+", meanwhile "+other, func(t *testing.T) {
				t.Parallel()
				for n := 1; lateAt(t, &a, n, others); n += stride {
				}
			})
		}
	}
}

// lateAt reports whether the engine has come to its n-th call.
func lateAt(t *testing.T, a *action, n int, others func(*keep)) bool {
	t.Helper()
	k := a.world(t)
	s := newSleeper(n)
	defer func() {
		if t.Failed() {
			t.Logf("slept before call %d, %s", n, s.at)
		}
	}()
	finish, asleep := s.start(t.Context(), k, a)
	if !asleep {
		k.must(finish())
		return false
	}
	others(k)
	_ = finish() // it may have failed, and may have been told so
	k.sound()
	k.clock.advance(6 * time.Second)
	if err := a.do(t.Context(), k, k.engine); err != nil {
		t.Fatalf("the same again: %v", err)
	}
	k.sound()
	if a.holds != nil {
		a.holds(t, k)
	}
	return !t.Failed()
}

// TestTwoRebuilders has two rebuilders of one key interleave at every pair of places: the second begins while the first sleeps, sleeps
// itself while the first goes on, and goes on when that has ended.
func TestTwoRebuilders(t *testing.T) {
	rebuild := action{long: true, do: func(ctx context.Context, k *keep, e *Engine) error {
		fence, held, err := k.orders.Lease(ctx, rebuildLease, fmt.Sprintf("%p", e), 5*time.Second)
		if err != nil || !held {
			return fmt.Errorf("held %v: %w", held, err)
		}
		_, err = e.RebuildOnce(ctx, k.key, fence)
		return err
	}}
	stride := rebuild.stride(3)
	pairs := 0
	for first := 1; ; first += stride {
		var reached bool
		for second := 1; ; second += stride {
			k := mixed(t)
			one, two := newSleeper(first), newSleeper(second)
			finishOne, asleep := one.start(t.Context(), k, &rebuild)
			reached = asleep
			if !asleep {
				k.must(finishOne())
				break
			}
			k.clock.advance(6 * time.Second)
			finishTwo, slept := two.start(t.Context(), k, &rebuild)
			errOne := finishOne()
			errTwo := finishTwo()
			if errTwo != nil && two.n != 1 {
				t.Errorf("slept at %d (%s) and %d (%s): the later one: %v (the earlier one: %v)", first, one.at, second, two.at, errTwo, errOne)
			}
			k.sound()
			if pairs++; !slept {
				break
			}
		}
		if !reached {
			break
		}
	}
	if pairs < 20 && !underRace {
		t.Errorf("%d pairs of places only", pairs)
	}
}

// TestLateRebuilderAfterTheNextHasEnded: it has raised SQL's epoch and then slept, while another has rebuilt, and the store has lost even
// its pointer. What it does then is noticed and mended.
func TestLateRebuilderAfterTheNextHasEnded(t *testing.T) {
	t.Parallel()
	for n := 1; ; {
		k := mixed(t)
		s := newSleeper(n)
		late := action{long: true, do: func(ctx context.Context, k *keep, e *Engine) error {
			_, err := e.Rebuild(ctx, k.command("late"))
			return err
		}}
		finish, asleep := s.start(t.Context(), k, &late)
		if !asleep {
			break
		}
		k.clock.advance(6 * time.Second)
		k.rebuildNow()
		k.reserve("later")
		k.consume()
		_ = finish()
		k.sound()
		if v := k.view(); v.Settings.Status != flashsale.Open {
			t.Fatalf("slept before call %d, %s: the stock is %q", n, s.at, v.Settings.Status)
		}
		n += late.stride(1)
	}
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/porttest"
)

// errDead is what a process that has died meets at every port.
var errDead = errors.New("the process is dead")

// doom ends an engine at its n-th call of a port: before the call is made, or after it has been made and before anybody knows. From
// then on nothing of it comes to any port.
type doom struct {
	n     int
	after bool
	end   context.CancelFunc
	calls int
	dead  bool
	at    string
}

func (d *doom) gate() *porttest.Gate {
	return &porttest.Gate{
		Before: func(_ context.Context, call string) error {
			if d.dead {
				return errDead
			}
			if d.calls++; d.calls == d.n && !d.after {
				return d.die(call)
			}
			return nil
		},
		After: func(_ context.Context, call string, _ error) error {
			if !d.dead && d.calls == d.n && d.after {
				return d.die(call)
			}
			return nil
		},
	}
}

func (d *doom) die(call string) error {
	d.dead, d.at = true, call
	d.end()
	return errDead
}

// action is something that an engine does with several steps.
type action struct {
	// world is what it begins with; do is what it does; holds, which may be nil, is what must be so once all is settled.
	world func(t testing.TB) *keep
	do    func(ctx context.Context, k *keep, e *Engine) error
	holds func(t testing.TB, k *keep)
	// long tells that it has many steps, of which a few are tried, unless all are asked for.
	long bool
}

// stride is how far the places are apart that are tried.
func (a *action) stride(of int) int {
	switch {
	case os.Getenv("HEADGATE_EVERY_CRASH") != "":
		return 1
	case underRace:
		return 4*of + 1
	case a.long:
		return of
	}
	return 1
}

// tried leaves most combinations out under the race detector, where a database in Go takes 20 times as long: these tests do one
// thing at a time, and a few of them show whether anything is shared that should not be. `make test` runs all of them without it.
func tried(what, then string) bool {
	return !underRace || (what == "rebuild" || what == "withdrawal" || what == "sweep") && (then == "nothing" || then == "a rebuild")
}

// actions are all that the engine does in steps to keep a sale.
func actions() map[string]action {
	once := func(f func(e *Engine) func(context.Context) (int, error)) func(context.Context, *keep, *Engine) error {
		return func(ctx context.Context, _ *keep, e *Engine) error {
			_, err := f(e)(ctx)
			return err
		}
	}
	total := func(want int64) func(t testing.TB, k *keep) {
		return func(t testing.TB, k *keep) {
			if got := k.sku().Total; got != want {
				t.Errorf("the total is %d, want %d", got, want)
			}
		}
	}
	status := func(want flashsale.Status) func(t testing.TB, k *keep) {
		return func(t testing.TB, k *keep) {
			if got := k.view().Settings.Status; got != want {
				t.Errorf("the stock is %s, want %s", got, want)
			}
		}
	}
	return map[string]action{
		"rebuild": {long: true, world: mixed, do: func(ctx context.Context, k *keep, e *Engine) error {
			_, err := e.Rebuild(ctx, k.command("rebuild"))
			return err
		}},
		"rebuild after a loss": {long: true, world: func(t testing.TB) *keep {
			k := mixed(t)
			k.newStock()
			return k
		}, do: once(func(e *Engine) func(context.Context) (int, error) { return e.WatchOnce })},
		"first load": {long: true, world: func(t testing.TB) *keep {
			k := newKeep(t)
			k.must(k.engine.CreateSale(t.Context(), &k.sale))
			return k
		}, do: once(func(e *Engine) func(context.Context) (int, error) { return e.WatchOnce })},
		"top-up": {world: mixed, do: func(ctx context.Context, k *keep, e *Engine) error {
			_, err := e.TopUp(ctx, k.command("more"), 5)
			return err
		}, holds: total(15)},
		"withdrawal": {world: mixed, do: func(ctx context.Context, k *keep, e *Engine) error {
			_, err := e.Withdraw(ctx, k.command("less"), 3)
			return err
		}, holds: total(7)},
		"withdrawal of too much": {world: mixed, do: func(ctx context.Context, k *keep, e *Engine) error {
			_, err := e.Withdraw(ctx, k.command("less"), 9)
			return err
		}, holds: total(10)},
		"pause": {world: mixed, do: func(ctx context.Context, k *keep, e *Engine) error {
			_, err := e.PauseSale(ctx, k.command("pause"))
			return err
		}, holds: status(flashsale.Paused)},
		"rate": {world: mixed, do: func(ctx context.Context, k *keep, e *Engine) error {
			_, err := e.SetRate(ctx, k.command("rate"), 7)
			return err
		}, holds: func(t testing.TB, k *keep) {
			if v := k.view(); v.Settings.Rate != 7 {
				t.Errorf("the stock has the rate %d", v.Settings.Rate)
			}
		}},
		"close": {world: func(t testing.TB) *keep {
			k := mixed(t)
			_, err := k.engine.DrainSale(t.Context(), k.command("drain"))
			k.must(err)
			k.settle()
			return k
		}, do: func(ctx context.Context, k *keep, e *Engine) error {
			_, err := e.CloseSale(ctx, k.command("close"))
			return err
		}, holds: status(flashsale.Closed)},
		"delivery": {world: func(t testing.TB) *keep {
			k := mixed(t)
			k.clock.advance(2 * time.Second)
			return k
		}, do: once(func(e *Engine) func(context.Context) (int, error) { return e.DeliverOnce })},
		"sweep": {long: true, world: overdue, do: once(func(e *Engine) func(context.Context) (int, error) { return e.SweepOnce }), holds: func(t testing.TB, k *keep) {
			// What a rebuild has decided after its deadline is held until it is past its time to pay, too.
			k.clock.advance(time.Hour)
			k.sound()
			if s := k.sku(); s.Reserved != 0 || s.Sold != 1 {
				t.Errorf("SQL has %d reserved and %d sold", s.Reserved, s.Sold)
			}
		}},
		"reconciliation": {long: true, world: func(t testing.TB) *keep {
			k := mixed(t)
			for _, rid := range k.kept[2:3] {
				_, err := k.orders.Cancel(t.Context(), rid, "holding", "")
				k.must(err)
			}
			return k
		}, do: once(func(e *Engine) func(context.Context) (int, error) { return e.ReconcileOnce })},
	}
}

// overdue is a sale in which everything is past its time, with operations that nobody has finished.
func overdue(t testing.TB) *keep {
	t.Helper()
	k := mixed(t)
	ctx := t.Context()
	for _, op := range []flashsale.Operation{
		{ID: "more", Kind: flashsale.OpTopUp, Delta: 4}, {ID: "less", Kind: flashsale.OpWithdraw, Delta: 2}, {ID: "slow", Kind: flashsale.OpRate, Rate: 9},
	} {
		op.Key, op.Reason, op.By = k.key, "a test", "op"
		_, err := k.orders.BeginOperation(ctx, &op)
		k.must(err)
	}
	k.clock.advance(time.Hour)
	return k
}

// aftermath is what happens between a death and the recovery.
func aftermaths() map[string]func(k *keep) {
	return map[string]func(k *keep){
		"nothing":     func(*keep) {},
		"a rebuild":   func(k *keep) { k.clock.advance(6 * time.Second); k.rebuildNow() },
		"half a loss": func(k *keep) { k.clock.advance(6 * time.Second); k.newStock(); k.watch(); k.newStock() },
	}
}

// rebuildNow rebuilds, once the lease of the dead has ended.
func (k *keep) rebuildNow() {
	k.t.Helper()
	_, err := k.engine.Rebuild(k.t.Context(), k.command(fmt.Sprintf("again-%d", k.ids)))
	k.ids++
	k.must(err)
}

// TestCrashAtEveryStep ends an engine before and after each call of each thing that it does in steps, lets what may happen then
// happen, and has another engine recover: everything is as if nothing had happened (I13). Of what has many steps, only some are tried with
// all that may happen in between, unless HEADGATE_EVERY_CRASH is set.
func TestCrashAtEveryStep(t *testing.T) {
	for what, a := range actions() {
		for then, happens := range aftermaths() {
			if !tried(what, then) {
				continue
			}
			stride := a.stride(7)
			if then == "nothing" {
				stride = a.stride(2)
			}
			t.Run(what+", then "+then, func(t *testing.T) {
				t.Parallel()
				places := 0
				for _, after := range []bool{false, true} {
					for n := 1; crashAt(t, &a, &doom{n: n, after: after}, happens); n += stride {
						places++
					}
				}
				if places < 2 {
					t.Errorf("it died at %d places only", places)
				}
			})
		}
	}
}

// crashAt reports whether the doom came.
func crashAt(t *testing.T, a *action, d *doom, happens func(*keep)) bool {
	t.Helper()
	k := a.world(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d.end = cancel
	defer func() {
		if t.Failed() {
			t.Logf("died at call %d, %s (after: %v)", d.n, d.at, d.after)
		}
	}()
	err := a.do(ctx, k, k.another(d.gate()))
	if !d.dead {
		if err != nil {
			t.Fatalf("it fails without a crash: %v", err)
		}
	}
	happens(k)
	k.sound()
	if d.dead {
		// Whoever was told nothing asks again. Once all is done, that changes nothing. The leases of the dead have ended.
		k.clock.advance(6 * time.Second)
		if err := a.do(t.Context(), k, k.engine); err != nil {
			t.Fatalf("the same again: %v", err)
		}
		k.sound()
	}
	if a.holds != nil {
		a.holds(t, k)
	}
	return d.dead && !t.Failed()
}

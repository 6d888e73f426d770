package invariants

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
)

// bustle is a sale in full swing: shoppers who want more than there is, two engines that decide, sweep, deliver and poll at the same
// time, an operator who adds, takes away and rebuilds, and one call of a store in fifteen lost before or after it was made.
type bustle struct {
	*world
	shoppers int
	// captured counts what shoppers have paid for, given how many units they have given back on purpose.
	captured, given atomic.Int64
	served          atomic.Int64 // shoppers for whom something was reserved
	waiting         atomic.Int64 // shoppers who have not come to their end
}

const (
	bustleTotal    = 20
	bustleTopUp    = 3
	bustleWithdraw = 2
)

func newBustle(t *testing.T, pair string) *bustle {
	t.Helper()
	shoppers := 40
	if underRace {
		shoppers = 24
	}
	return &bustle{world: newWorld(t, pair, plan{total: bustleTotal, limit: 2, lease: 300 * time.Millisecond}), shoppers: shoppers}
}

// run lets everybody do what they do until the shoppers are through, and hears of what was between any two steps.
func (b *bustle) run(step func(call string)) {
	b.Helper()
	stop := b.clock.run()
	b.faults.set(&hooks{step: step, before: flaky(1, 15), after: flaky(2, 15)})
	var all sync.WaitGroup
	b.waiting.Store(int64(b.shoppers))
	for i := range b.shoppers {
		all.Go(func() {
			defer b.waiting.Add(-1)
			b.shop(i)
		})
	}
	for i := range 2 {
		all.Go(func() { b.work(i) })
	}
	all.Go(b.operate)
	all.Wait()
	b.faults.set(nil)
	stop()
}

// work is what one instance does, again and again.
func (b *bustle) work(i int) {
	e, ctx := b.engine(i), b.Context()
	jobs := []func(context.Context) (int, error){e.WatchOnce, e.DeliverOnce, e.SweepOnce, e.PollOnce, e.ReconcileOnce}
	for n := i; b.waiting.Load() > 0; n++ {
		// Errors are the lines that are cut; what was left undone, the next pass does.
		decided, _ := e.ConsumeOnce(ctx, phone, fmt.Sprint("c", i))
		did, _ := jobs[n%len(jobs)](ctx)
		told, _ := b.bank.Step(ctx)
		if decided+did+told == 0 {
			b.breathe(time.Millisecond)
		}
	}
}

func (b *bustle) operate() {
	ctx := b.Context()
	again := func(f func() error) {
		for i := 0; f() != nil && i < 1000; i++ {
			b.breathe(time.Millisecond)
		}
	}
	again(func() error { _, err := b.engine(0).TopUp(ctx, b.command("more"), bustleTopUp); return err })
	again(func() error { _, err := b.engine(1).Rebuild(ctx, b.command("anew")); return err })
	again(func() error { _, err := b.engine(1).Withdraw(ctx, b.command("less"), bustleWithdraw); return err })
}

// shop is the way of a shopper, who asks again where an answer was lost: of four for whom something was reserved one pays, one fails to, one
// gives back, and one walks away. Who of all gets something is left to chance.
func (b *bustle) shop(i int) {
	user, e, ctx := fmt.Sprint("user-", i), b.engine(i), b.Context()
	quantity := int64(1 + i%2)
	var token string
	var r engine.ReserveAnswer
	var result engine.Result
	ok := b.insist(func() (err error) {
		token, _, err = e.Token(ctx, engine.TokenRequest{Key: phone, User: user})
		return err
	}) &&
		b.insist(func() (err error) { r, err = e.Reserve(ctx, request(token, user, quantity)); return err }) &&
		b.insist(func() (err error) { result, err = e.Await(ctx, phone, r.RID, user); return err })
	if !ok || result.State != flashsale.Reserved {
		return
	}
	kind := b.served.Add(1) % 4
	switch kind {
	case 0, 1:
		var a engine.PayAnswer
		if !b.insist(func() (err error) { a, err = e.Pay(ctx, r.RID, user); return err }) {
			return
		}
		end := flashsale.PayCaptured
		if kind == 1 {
			end = flashsale.PayFailed
		}
		if b.bank.Pay(a.IntentKey, end) == nil && kind == 0 {
			b.captured.Add(quantity)
		}
	case 2:
		if b.insist(func() (err error) { _, err = e.Cancel(ctx, r.RID, user); return err }) {
			b.given.Add(quantity)
		}
	}
}

// insist repeats a call until it is answered; it reports whether it was not refused.
func (b *bustle) insist(call func() error) bool {
	for b.Context().Err() == nil {
		err := call()
		switch flashsale.CodeOf(err) {
		case flashsale.CodeUnavailable, flashsale.CodeRebuilding, flashsale.CodeBusy, flashsale.CodeStaleEpoch:
			b.breathe(time.Millisecond)
		case "":
			return err == nil
		case flashsale.CodeSoldOut, flashsale.CodeNotFound:
			return false
		default:
			b.Errorf("a shopper: %v", err)
			return false
		}
	}
	return false
}

// ends lets all that nobody has paid for expire, and checks what is left, to the unit.
func (b *bustle) ends() {
	b.Helper()
	b.clock.advance(2 * (hold + payTime))
	b.sound()
	total := int64(bustleTotal + bustleTopUp)
	if op, err := b.sql.OperationsOf(b.Context(), phone, 100); err != nil {
		b.Fatal(err)
	} else {
		for i := range op {
			if op[i].Kind == flashsale.OpWithdraw && op[i].State == flashsale.OpDone {
				total -= bustleWithdraw
			}
		}
	}
	books := b.books()
	if books.total != total || books.reserved != 0 || books.sold != b.captured.Load() || b.captured.Load() == 0 || b.given.Load() == 0 {
		b.Errorf("of %d units, %d are reserved and %d sold; want %d, 0 and %d (%d were given back)", books.total, books.reserved, books.sold, total, b.captured.Load(), b.given.Load())
	}
}

// watchFor keeps the first thing that was seen wrong between two steps, and how often was looked.
type watchFor struct {
	looked int
	wrong  string
}

// after returns what is called after each step.
func (f *watchFor) after(w *world, l *look) func(call string) {
	return func(call string) {
		if !strings.HasPrefix(call, l.of) {
			return
		}
		f.note(l.see(w), call)
	}
}

func (f *watchFor) note(wrong []string, call string) {
	if f.looked++; f.wrong == "" && len(wrong) > 0 {
		f.wrong = fmt.Sprintf("after %s: %s", call, wrong[0])
	}
}

// verdict fails if anything was wrong, or if it was not looked often enough to tell.
func (f *watchFor) verdict(t *testing.T, atLeast int) {
	t.Helper()
	if f.wrong != "" || f.looked < atLeast {
		t.Fatalf("looked %d times: %s", f.looked, f.wrong)
	}
}

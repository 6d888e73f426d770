package invariants

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/flashsale/porttest"
)

// failover drops the last writes of the Stock at a call of a port. Of Redis it keeps an image of all keys before each write, and puts an
// earlier one in place of what is there, in one step and under the same run: what a replica that had not got the last writes would
// have, but without the sign that tells of a restart. A store in memory has no replica: it loses all, with its process.
type failover struct {
	*world
	at, drop int // at which call, and how many writes; call 0 is after the flow, and drop 0 all since the mark
	mark     int // how many writes there were when somebody began to buy who may buy no more then

	mu     sync.Mutex // a lease may be renewed beside the flow
	calls  int
	images []image
	call   string
	dead   bool // the engine is lost, too
}

// writes are the calls of a Stock that may write.
var writes = map[string]bool{
	"stock.Reserve": true, "stock.Apply": true, "stock.Adjust": true, "stock.Configure": true, "stock.Forget": true, "stock.Pull": true, "stock.Bury": true,
	"stock.Revive": true, "stock.Due": true, "stock.Point": true, "stock.Load": true, "stock.Drop": true,
}

// ofRebuild are the calls that only a rebuild makes.
var ofRebuild = map[string]bool{
	"orders.BeginRebuild": true, "stock.Point": true, "stock.Drain": true, "stock.Drop": true, "orders.Snapshot": true, "stock.Load": true,
	"orders.UnsentOf": true, "orders.EndRebuild": true,
}

func (f *failover) gate() *porttest.Gate {
	return &porttest.Gate{Before: func(_ context.Context, call string) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.dead {
			return cut(call)
		}
		if f.calls++; f.calls == f.at {
			f.call = call
			if f.strikes() {
				return cut(call)
			}
		}
		if writes[call] {
			f.images = append(f.images, f.store.image())
		}
		return nil
	}}
}

// strikes loses the writes, and reports whether the engine is lost too.
func (f *failover) strikes() bool {
	if _, ok := f.store.(*memory); ok {
		f.store.lose()
		f.dead = true
		return true
	}
	if last := len(f.images); f.drop == 0 {
		f.store.restore(f.images[f.mark])
	} else if last > 0 {
		f.store.restore(f.images[max(last-f.drop, 0)])
	}
	return false
}

// play is a flow with everything in it that writes to the Stock, a rebuild among it. Errors are the faults'.
func (f *failover) play(user string) {
	ctx := f.Context()
	doomed := f.behind(f.gate())
	e := doomed
	then := func(step func(e *engine.Engine)) {
		if f.dead && e == doomed {
			f.boot(2)
			e = f.engine(0)
		}
		step(e)
	}
	rids := map[string]string{}
	reserve := func(name string) {
		token := f.world.token(user + name)
		then(func(e *engine.Engine) {
			if a, err := e.Reserve(ctx, request(token, user+name, 1)); err == nil {
				rids[name] = a.RID
			}
		})
	}
	consume := func() { then(func(e *engine.Engine) { _, _ = e.ConsumeOnce(ctx, phone, "c") }) }
	pay := func(name string) {
		then(func(e *engine.Engine) {
			if a, err := e.Pay(ctx, rids[name], user+name); err == nil {
				_ = f.bank.Pay(a.IntentKey, flashsale.PayCaptured)
			}
		})
		then(func(e *engine.Engine) { f.hears.Store(e); f.bankSteps(); f.hears.Store(nil) })
	}
	reserve("ann")
	reserve("bob")
	consume()
	pay("ann")
	reserve("cy")
	then(func(e *engine.Engine) { _, _ = e.Cancel(ctx, rids["bob"], user+"bob") })
	then(func(e *engine.Engine) { _, _ = e.Rebuild(ctx, f.command(user+"rebuild")) })
	reserve("dan")
	consume()
	reserve("bob")
	f.mark = len(f.images)
	reserve("ann")
	consume()
	pay("dan")
	f.clock.advance(2 * time.Second)
	then(func(e *engine.Engine) { _, _ = e.DeliverOnce(ctx) })
	then(func(e *engine.Engine) { _, _ = e.SweepOnce(ctx) })
	then(func(e *engine.Engine) { _, _ = e.WatchOnce(ctx) })
}

// holds checks what must hold although writes were lost, before anything is mended.
func (f *failover) holds(when string) {
	f.Helper()
	b := f.books()
	wrong := append(append(append(b.units(), b.once()...), b.limits(f.limit)...), b.sums()...)
	if len(wrong) > 0 {
		f.Fatalf("I14: %s: %s", when, strings.Join(wrong, "\n"))
	}
}

// demand has everybody ask for more than they may have, pay for what they get, and be told.
func (f *failover) demand(user string) {
	f.Helper()
	ctx := f.Context()
	for _, name := range []string{"ann", "bob", "cy", "dan"} {
		for range f.limit + 1 {
			token := f.world.token(user + name)
			// Refusals are as good as answers: a Stock that has lost writes may know less, or more, than there is.
			_, _ = f.engine(0).Reserve(ctx, request(token, user+name, 1))
		}
	}
	_, _ = f.engine(0).ConsumeOnce(ctx, phone, "c")
	f.holds("and everybody has asked again")
	for _, name := range []string{"ann", "bob", "cy", "dan"} {
		rows, err := f.sql.OfUser(ctx, phone.Sale, user+name, 20)
		f.must(err)
		for i := range rows {
			if rows[i].State == flashsale.Reserved {
				f.capture(f.pay(rows[i].RID, user+name))
			}
		}
	}
	f.bankSteps()
}

// TestI14_LastWritesLost: the Stock loses its last writes, from one to all, before any call of a flow, a rebuild under way or not, and after it; engines go on
// as if nothing had happened, and I1, I5, I6 and I7 hold, at once and once everybody has asked again and paid. A rebuild mends the rest.
func TestI14_LastWritesLost(t *testing.T) {
	drops := []int{1, 2, 3, 5, 8, 13, 21, 1 << 20}
	atRest := []int{0, 1, 2, 5, 8, 21}
	if underRace {
		atRest = atRest[:2]
	}
	eachPair(t, func(t *testing.T, pair string) {
		w := newWorld(t, pair, plan{total: 2000, limit: 2, lasts: 365 * 24 * time.Hour})
		during, rebuilding := 0, 0
		for at, reached := 1, true; reached; at += stride(pair) {
			f := &failover{world: w, at: at, drop: drops[at%len(drops)]}
			if reached = f.strikesAt(at%3 == 0); reached {
				during++
			}
			if ofRebuild[f.call] {
				rebuilding++
			}
		}
		for _, drop := range atRest {
			f := &failover{world: w, drop: drop}
			f.strikesAt(false)
		}
		rejected := w.count("SELECT COUNT(*) FROM reservation WHERE state = 7 AND reason = '" + flashsale.ReasonPurchaseLimit + "'")
		t.Logf("lost writes at %d calls, %d of them of a rebuild; SQL had to keep the purchase limit %d times", during, rebuilding, rejected)
		if during < 6 || rebuilding == 0 && !underRace || rejected == 0 && pair != memoryAndSQLite {
			t.Errorf("lost writes at %d calls, %d of them of a rebuild; SQL had to keep the purchase limit %d times", during, rebuilding, rejected)
		}
	})
}

// strikesAt reports whether the flow has come to the call at which writes are lost; at 0 that is after it. The loss is looked for before anybody asks again, or after.
func (f *failover) strikesAt(lookFirst bool) bool {
	f.Helper()
	user := fmt.Sprint("user-", f.ids.Add(1), "-")
	f.play(user)
	if f.at == 0 {
		f.strikes()
		f.call = "the end"
	}
	f.boot(2) // with nothing remembered
	f.holds("at once")
	if lookFirst {
		f.clock.advance(6 * time.Second)
		_, _ = f.engine(0).WatchOnce(f.Context())
	}
	f.demand(user)
	f.clock.advance(6 * time.Second)
	f.mends()
	f.forgets()
	if f.Failed() {
		f.Fatalf("I14: that is when %d writes were lost at call %d, %s", f.drop, f.at, f.call)
	}
	return f.call != ""
}

// mends has the jobs do what they do, and an operator rebuild: everything holds again.
func (f *failover) mends() {
	f.Helper()
	f.settle()
	for _, wrong := range f.wrong() {
		f.Error(wrong)
	}
	f.rebuild()
	f.clock.advance(hold + payTime + grace)
	f.sound()
}

// TestI14_InFullSwing: the Stock loses its last writes again and again while many shop, two instances work and one rebuilds.
func TestI14_InFullSwing(t *testing.T) {
	eachPair(t, func(t *testing.T, pair string) {
		b := newBustle(t, pair)
		var seen watchFor
		var images []image
		losses := 0
		b.run(func(call string) {
			books := b.counters()
			seen.note(books.units(), call)
			if !writes[call] || b.store.image() == nil {
				return
			}
			if images = append(images, b.store.image()); len(images)%40 == 0 {
				losses++
				b.store.restore(images[len(images)-1-7*losses%len(images)])
			}
		})
		seen.verdict(t, 100)
		if pair == memoryAndSQLite {
			b.loseStock()
		} else if losses == 0 {
			t.Error("nothing was lost")
		}
		b.boot(2)
		b.clock.advance(2 * (hold + payTime))
		f := &failover{world: b.world}
		f.holds("in full swing")
		f.mends()
		if got := b.books(); got.sold != b.charged() || got.reserved != 0 {
			t.Errorf("I14: %d are sold and %d reserved; %d are charged", got.sold, got.reserved, b.charged())
		}
	})
}

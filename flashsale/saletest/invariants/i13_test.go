package invariants

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
)

// life is something that a shopper, a sale and one engine go through, and of which the engine may die at any call.
type life struct {
	*world
	user, token string
	// before is what has happened when it begins, on an engine that lives; then is it; after puts the sale back for the next one.
	before, after func(l *life)
	then          func(ctx context.Context, l *life, e *engine.Engine)
	// ends are the states in which the reservation may end; all of them are conclusive.
	ends []flashsale.State
	rid  string
}

func (l *life) intent() string { return flashsale.IntentKey(l.rid, 1) }

// steps of lives. What an engine that has died answers is of no interest.
func (l *life) reserves(ctx context.Context, e *engine.Engine) {
	a, err := e.Reserve(ctx, request(l.token, l.user, 1))
	if err == nil {
		l.rid = a.RID
	}
	_, _ = e.ConsumeOnce(ctx, phone, "doomed")
}

// pays begins to pay; the shopper's money goes through if there is an intent.
func (l *life) pays(ctx context.Context, e *engine.Engine, end flashsale.PayStatus) {
	_, _ = e.Pay(ctx, l.rid, l.user)
	if end != "" {
		_ = l.bank.Pay(l.intent(), end) // it may not have been made
	}
}

// held has the reservation made, and paying its payment begun, before anything can happen to the engine.
func held(l *life) {
	l.Helper()
	l.rid = l.reserve(l.user, 1)
}

func paying(l *life) {
	l.Helper()
	held(l)
	l.pay(l.rid, l.user)
}

// lateCapture has the payment captured after the reservation has expired.
func lateCapture(l *life) {
	l.Helper()
	paying(l)
	l.clock.advance(hold + payTime)
	l.sweep()
	l.is(l.rid, flashsale.Expired)
	l.must(l.bank.Capture(l.intent(), price, currency))
}

// hears has the provider's messages come to the engine.
func (l *life) hears(e *engine.Engine) {
	l.world.hears.Store(e)
	l.bankSteps()
}

// lives are a representative flow, and each way it can end.
func lives() map[string]life {
	return map[string]life{
		"reserve, pay, and the webhook": {
			then: func(ctx context.Context, l *life, e *engine.Engine) {
				l.reserves(ctx, e)
				l.pays(ctx, e, flashsale.PayCaptured)
				l.hears(e)
				_, _ = e.RelayOnce(ctx)
			},
			ends: []flashsale.State{flashsale.Confirmed, flashsale.Expired},
		},
		"paid, and polled": {
			before: paying,
			then: func(ctx context.Context, l *life, e *engine.Engine) {
				l.capture(l.intent())
				l.deaf.Store(true)
				l.clock.advance(pollAge)
				_, _ = e.PollOnce(ctx)
			},
			ends: []flashsale.State{flashsale.Confirmed},
		},
		"the payment fails, and is begun again": {
			before: paying,
			then: func(ctx context.Context, l *life, e *engine.Engine) {
				l.must(l.bank.Pay(l.intent(), flashsale.PayFailed))
				l.hears(e)
				_, _ = e.Pay(ctx, l.rid, l.user)
			},
			ends: []flashsale.State{flashsale.Expired},
		},
		"cancelled while paying": {
			before: paying,
			then:   func(ctx context.Context, l *life, e *engine.Engine) { _, _ = e.Cancel(ctx, l.rid, l.user) },
			ends:   []flashsale.State{flashsale.Cancelled, flashsale.Expired},
		},
		"nobody pays": {
			before: held,
			then: func(ctx context.Context, l *life, e *engine.Engine) {
				l.clock.advance(hold + grace)
				_, _ = e.SweepOnce(ctx)
			},
			ends: []flashsale.State{flashsale.Expired},
		},
		"the payment is not finished": {
			before: paying,
			then: func(ctx context.Context, l *life, e *engine.Engine) {
				l.clock.advance(hold + payTime)
				_, _ = e.SweepOnce(ctx)
			},
			ends: []flashsale.State{flashsale.Expired},
		},
		"nobody decides": {
			before: func(l *life) { l.rid = l.ask(l.user, 1) },
			then: func(ctx context.Context, l *life, e *engine.Engine) {
				l.clock.advance(flashsale.PendingFor)
				_, _ = e.SweepOnce(ctx)
			},
			ends: []flashsale.State{flashsale.Rejected, flashsale.Expired},
		},
		"captured too late, with a unit left": {
			before: lateCapture,
			then: func(ctx context.Context, l *life, e *engine.Engine) {
				l.hears(e)
				_, _ = e.ConsumeOnce(ctx, phone, "doomed")
				_, _ = e.PollOnce(ctx)
			},
			ends: []flashsale.State{flashsale.Expired},
		},
		"captured too late, with none": {
			before: func(l *life) {
				lateCapture(l)
				_, err := l.engine(0).Withdraw(l.Context(), l.command(l.user+"-all"), l.view().Available)
				l.must(err)
			},
			then: func(ctx context.Context, l *life, e *engine.Engine) {
				l.hears(e)
				_, _ = e.PollOnce(ctx)
			},
			after: func(l *life) {
				_, err := l.engine(0).TopUp(l.Context(), l.command(l.user+"-again"), 100)
				l.must(err)
			},
			ends: []flashsale.State{flashsale.Expired},
		},
		"the operator adds, takes away and rebuilds": {
			before: held,
			then: func(ctx context.Context, l *life, e *engine.Engine) {
				_, _ = e.TopUp(ctx, l.command(l.user+"-more"), 3)
				_, _ = e.Withdraw(ctx, l.command(l.user+"-less"), 2)
				_, _ = e.Rebuild(ctx, l.command(l.user+"-anew"))
			},
			ends: []flashsale.State{flashsale.Expired},
		},
	}
}

// everyCrash tells that all crashes are to be tried, on all stores, and not some of them on the slower ones.
func everyCrash() bool { return os.Getenv("HEADGATE_EVERY_CRASH") != "" }

// stride is how far the calls are apart at which an engine dies. Those after a call are those before the next one.
func stride(pair string) int {
	switch {
	case everyCrash():
		return 1
	case underRace:
		return 13
	case pair == memoryAndSQLite:
		return 4
	}
	return 5
}

// TestI13_AnyCrash: an engine dies before any of the calls that it makes, after each commit and before each acknowledgement among them; others
// take over, the shopper asks again, and I1 to I8 hold. Unless HEADGATE_EVERY_CRASH is set every fourth call is tried in
// memory and every fifth on the other pairs, of which each begins with another one.
func TestI13_AnyCrash(t *testing.T) {
	eachPair(t, func(t *testing.T, pair string) {
		w := newWorld(t, pair, plan{total: 100, lasts: 365 * 24 * time.Hour})
		died := 0
		for name, l := range lives() {
			n := 1
			if pair == redisAndMariaDB && stride(pair) > 1 {
				n = 3
			}
			places := 0
			for l.world = w; l.dies(name, n); n += stride(pair) {
				places++
			}
			if places == 0 || t.Failed() {
				t.Fatalf("%s: it died at %d places", name, places)
			}
			died += places
		}
		t.Logf("engines died at %d places", died)
	})
}

// dies reports whether the engine has come to its n-th call, at which it died.
func (l *life) dies(name string, n int) bool {
	l.Helper()
	l.user = fmt.Sprint("user-", l.ids.Add(1))
	l.token, l.rid = l.world.token(l.user), ""
	if l.before != nil {
		l.before(l)
	}
	ctx, cancel := context.WithCancel(l.Context())
	defer cancel()
	d := &doom{n: n, end: cancel}
	before := l.counters()
	l.then(ctx, l, l.behind(d.gate()))
	l.world.hears.Store(nil)
	l.deaf.Store(false)
	l.recovers()
	if l.after != nil {
		l.after(l)
	}
	l.concludes()
	l.sound()
	if l.Failed() {
		l.Fatalf("I13: %s: that is when it died at call %d, %s; SQL had %+v", name, d.n, d.at, before)
	}
	l.forgets()
	return d.dead
}

// recovers is what comes after a crash: fresh engines, whose first leases wait for the end of those of the dead, and a shopper who asks again.
func (l *life) recovers() {
	l.Helper()
	l.boot(2)
	if l.rid == "" {
		a, err := l.engine(0).Reserve(l.Context(), request(l.token, l.user, 1))
		l.must(err)
		l.rid = a.RID
	}
	l.clock.advance(6 * time.Second)
	l.settle()
	l.clock.advance(hold + payTime + grace)
	l.settle()
}

// concludes fails unless the reservation has come to an end that it may have, and whoever has paid has got a unit or the money back.
func (l *life) concludes() {
	l.Helper()
	row := l.row(l.rid)
	good := false
	for _, state := range l.ends {
		good = good || row.State == state
	}
	record, charged := l.bank.Record(l.intent())
	charged = charged && record.Charged()
	if charged && row.State != flashsale.Confirmed {
		l.is(flashsale.DerivedRID(l.intent()), flashsale.Confirmed)
	}
	if !good || row.State == flashsale.Confirmed && !charged {
		l.Errorf("I13: it has ended as %s (%s), charged: %v; may end as %v", row.State, row.Reason, charged, l.ends)
	}
}

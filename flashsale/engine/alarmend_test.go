package engine

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/porttest"
)

// TestDriftOfARemovedSKUEnds: once a sku is not looked after any more, nobody is told that it differs.
func TestDriftOfARemovedSKUEnds(t *testing.T) {
	t.Parallel()
	k := openKeep(t)
	_, err := k.stock.Adjust(t.Context(), k.key, k.sku().Epoch, "nobody's", 3)
	k.must(err)
	for range 2 {
		k.once("the reconciler", k.engine.ReconcileOnce, 0)
	}
	_, err = k.engine.DrainSale(t.Context(), k.command("drain"))
	k.must(err)
	_, err = k.engine.CloseSale(t.Context(), k.command("close"))
	k.must(err)
	k.once("the reconciler", k.engine.ReconcileOnce, 0)
	const on, off = "alarm drift eleven/phone true", "alarm drift eleven/phone false"
	if k.told.count(on) == 0 || k.told.count(off) != 0 || len(k.engine.Alarms()) != 1 {
		t.Fatalf("of a closed one that differs is told: %v", k.told.lines)
	}
	k.clock.advance(flashsale.Retention + time.Minute)
	k.once("the reconciler, of nothing", k.engine.ReconcileOnce, 0)
	if k.told.count(off) != 1 || len(k.engine.Alarms()) != 0 {
		t.Errorf("of one that is not looked after any more is told: %v", k.told.lines)
	}
}

// TestAlarmsEndWithTheLease: whoever takes a job over raises its alarms; those of the instance that had it do not stay on.
func TestAlarmsEndWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newLeaseBook()
		e, _ := leaseEngine(t, b, "one")
		key := flashsale.Key{Sale: "eleven", SKU: "phone"}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		jobs := map[string]job{}
		for _, j := range e.jobs() {
			jobs[j.name] = j
		}
		for _, c := range []struct {
			name string
			over func()
			on   func()
		}{
			{"reconcile", jobs["reconcile"].over, func() {
				e.care.drifts[key] = knownDrift{told: true}
				e.observer.Alarm(AlarmDrift, key.String(), true, 1, "")
			}},
			{"relay", jobs["relay"].over, func() { e.relaying.alarmed = true; e.observer.Alarm(AlarmRelay, "", true, 1, "") }},
			{"match", e.endMisfits, func() { e.paying.misfits = true; e.observer.Alarm(AlarmPaymentsMatch, "", true, 1, "") }},
		} {
			passes := 0
			under, end := context.WithTimeout(ctx, 6*time.Second)
			e.runJob(under, &job{name: c.name, every: time.Second, over: c.over, once: func(context.Context) (int, error) {
				if passes++; passes == 1 {
					c.on()
					b.steal(leasePrefix + c.name)
				}
				if len(e.Alarms()) != 1 {
					t.Errorf("%s: %+v are on while it goes on", c.name, e.Alarms())
				}
				return 0, nil
			}})
			end()
			if on := e.Alarms(); len(on) != 0 || passes == 0 {
				t.Errorf("%s: after the lease is lost %+v are on", c.name, on)
			}
		}
	})
}

// TestWhoNoticesALossMendsIt: where another instance watches, which sees nothing of it, and the alarm ends also where another has mended it.
func TestWhoNoticesALossMendsIt(t *testing.T) {
	t.Parallel()
	k := openKeep(t)
	other := k.another(nil)
	k.ghost("ghost")
	k.clock.advance(2 * deliverAge)
	notice := func() {
		t.Helper()
		_, err := k.engine.DeliverOnce(t.Context())
		k.must(err)
		if n := len(k.engine.Alarms()); n != 1 {
			t.Fatalf("%d alarms are on", n)
		}
		if n, err := other.WatchOnce(t.Context()); n != 0 || err != nil {
			t.Fatalf("the other sees %d: %v", n, err)
		}
	}
	notice()
	epoch := k.sku().Epoch
	k.must(k.engine.mendOwn(t.Context()))
	if s := k.sku(); s.Epoch != epoch+1 || s.Rebuilding || k.find("ghost") != flashsale.Reserved || len(k.engine.Alarms()) != 0 {
		t.Fatalf("SQL is at %+v, the stock has it as %s, on are %+v", s, k.find("ghost"), k.engine.Alarms())
	}
	k.must(k.engine.mendOwn(t.Context()))
	if k.sku().Epoch != epoch+1 {
		t.Error("it was rebuilt once more")
	}
	k.ghost("another")
	k.clock.advance(2 * deliverAge)
	notice()
	_, err := other.Rebuild(t.Context(), k.command("now"))
	k.must(err)
	k.must(k.engine.mendOwn(t.Context()))
	if k.sku().Epoch != epoch+2 || len(k.engine.Alarms()) != 0 {
		t.Errorf("after the other's rebuild SQL is at epoch %d, on are %+v", k.sku().Epoch, k.engine.Alarms())
	}
	k.sound()
}

// TestTheFirstLoadIsNoWarning: that a new sale is loaded is expected, and that a stock has lost it is not.
func TestTheFirstLoadIsNoWarning(t *testing.T) {
	t.Parallel()
	k := newKeep(t)
	var lines bytes.Buffer
	k.engine.log = slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelWarn}))
	k.must(k.engine.CreateSale(t.Context(), &k.sale))
	k.watch()
	if lines.Len() != 0 {
		t.Errorf("of the first load is said: %s", lines.String())
	}
	_, err := k.engine.OpenSale(t.Context(), k.command("open"))
	k.must(err)
	k.held("ann")
	k.newStock()
	dies := k.another(&porttest.Gate{Before: func(_ context.Context, call string) error {
		if call == "stock.Point" {
			return errorf(flashsale.CodeUnavailable, "it dies")
		}
		return nil
	}})
	if _, err := dies.WatchOnce(t.Context()); err == nil {
		t.Fatal("it has not died")
	}
	k.engine.log = slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelWarn}))
	k.watch()
	if !strings.Contains(lines.String(), "the stock of a sku is loaded from SQL") {
		t.Errorf("of a loss is said: %s", lines.String())
	}
}

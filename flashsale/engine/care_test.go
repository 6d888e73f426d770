package engine

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// ghost has SQL reserve a unit of which the Stock knows nothing.
func (k *keep) ghost(rid string) {
	k.t.Helper()
	_, err := k.orders.Decide(k.t.Context(), &flashsale.Batch{Key: k.key, Epoch: k.sku().Epoch, Jobs: []flashsale.Job{{RID: rid, User: rid, Quantity: 1}}})
	k.must(err)
}

// silence marks all rows of the outbox as delivered, though they were not.
func (k *keep) silence() {
	k.t.Helper()
	events, err := k.orders.Unsent(k.t.Context(), flashsale.LaneStock, 0, 0, 1000)
	k.must(err)
	var ids []int64
	for i := range events {
		ids = append(ids, events[i].ID)
	}
	k.must(k.orders.Sent(k.t.Context(), flashsale.LaneStock, k.sku().Epoch, ids))
}

func (k *keep) find(rid string) flashsale.State {
	k.t.Helper()
	entries, err := k.stock.Find(k.t.Context(), k.key, k.sku().Epoch, []string{rid})
	k.must(err)
	return entries[0].State
}

// once makes a pass that must do n things.
func (k *keep) once(what string, pass func(context.Context) (int, error), n int) {
	k.t.Helper()
	if did, err := pass(k.t.Context()); err != nil || did != n {
		k.t.Fatalf("%s did %d: %v; want %d", what, did, err, n)
	}
}

func TestDeliveryNoticesALoss(t *testing.T) {
	t.Parallel()
	k := openKeep(t)
	k.ghost("ghost")
	k.once("delivery within a second", k.engine.DeliverOnce, 0)
	k.clock.advance(2 * time.Second)
	k.once("delivery", k.engine.DeliverOnce, 0)
	if k.told.count("alarm stock_lost eleven/phone true") != 1 {
		t.Fatalf("the loss is not told: %v", k.told.lines)
	}
	epoch := k.sku().Epoch
	k.once("the watcher", k.engine.WatchOnce, 1)
	if s := k.sku(); s.Epoch != epoch+1 || s.Rebuilding {
		t.Fatalf("SQL is at %+v", s)
	}
	if k.find("ghost") != flashsale.Reserved || k.told.count("alarm stock_lost eleven/phone false") != 1 {
		t.Errorf("it is not rebuilt: %s, %v", k.find("ghost"), k.told.lines)
	}
	if k.told.count(fmt.Sprintf("rebuilt eleven/phone %d ", epoch+1)) != 1 {
		t.Errorf("the rebuild is not told: %v", k.told.lines)
	}
	_, err := k.engine.RebuildOnce(t.Context(), k.key, -1)
	if flashsale.CodeOf(err) != flashsale.CodeFenced || k.told.count("rebuilt eleven/phone 0 fenced") != 1 {
		t.Errorf("a rebuild that fails is not told: %v, %v", err, k.told.lines)
	}
	k.once("the watcher, again", k.engine.WatchOnce, 0)
	k.sound()
}

// TestOldRowsAreNoLoss: a row about what ended longer ago than Retention tells of nothing that a rebuild would load. Without this it
// would ask for one rebuild after another.
func TestOldRowsAreNoLoss(t *testing.T) {
	t.Parallel()
	k := openKeep(t)
	k.ghost("ghost")
	_, err := k.orders.Cancel(t.Context(), "ghost", "ghost", "")
	k.must(err)
	k.clock.advance(flashsale.Retention + time.Second)
	epoch := k.sku().Epoch
	k.once("delivery", k.engine.DeliverOnce, 2)
	k.once("the watcher", k.engine.WatchOnce, 0)
	if k.sku().Epoch != epoch {
		t.Error("it was rebuilt")
	}
	k.sound()
}

func TestSweeperForgets(t *testing.T) {
	t.Parallel()
	k := openKeep(t)
	rid := k.held("a")
	stays := k.held("b")
	_, err := k.engine.Cancel(t.Context(), rid, "a")
	k.must(err)
	k.clock.advance(flashsale.Retention - time.Second)
	k.once("the sweeper, of what is not paid", k.engine.SweepOnce, 1)
	if k.find(rid) != flashsale.Cancelled {
		t.Errorf("it is forgotten too early")
	}
	k.clock.advance(2 * time.Second)
	k.settle()
	if k.find(rid) != flashsale.None || k.find(stays) != flashsale.Expired {
		t.Errorf("the stock knows %s and %s", k.find(rid), k.find(stays))
	}
	k.kept = nil
	k.sound()
}

// TestSweeperEndsWhatIsPending: without a consumer a pending reservation is refused at its deadline and its unit sold again; the
// consumer that comes late meets the tombstone (I9).
func TestSweeperEndsWhatIsPending(t *testing.T) {
	t.Parallel()
	k := openKeep(t)
	rid := k.reserve("a")
	k.clock.advance(flashsale.PendingFor - time.Millisecond)
	k.once("the sweeper, in time", k.engine.SweepOnce, 0)
	k.clock.advance(time.Millisecond)
	k.once("the sweeper", k.engine.SweepOnce, 1)
	if r := k.row(rid); r.State != flashsale.Rejected || r.Reason != flashsale.ReasonDeadline || k.view().Available != 10 {
		t.Errorf("%+v; the stock has %d", r, k.view().Available)
	}
	k.consume()
	k.sound()
}

// TestSweeperKeepsGrace: nothing expires before its time and the grace are over, and then one sweep does it (I10).
func TestSweeperKeepsGrace(t *testing.T) {
	t.Parallel()
	k := openKeep(t)
	rid := k.held("a")
	k.clock.advance(flashsale.DefaultHold + flashsale.DefaultGrace - time.Millisecond)
	k.once("the sweeper, in time", k.engine.SweepOnce, 0)
	k.clock.advance(time.Millisecond)
	k.once("the sweeper", k.engine.SweepOnce, 1)
	if r := k.row(rid); r.State != flashsale.Expired || k.view().Available != 10 {
		t.Errorf("%s; the stock has %d", r.State, k.view().Available)
	}
	k.sound()
}

func TestReconcilerReplays(t *testing.T) {
	t.Parallel()
	k := openKeep(t)
	held := k.held("a")
	pending := k.reserve("b")
	_, err := k.orders.Cancel(t.Context(), held, "a", "")
	k.must(err)
	k.ghostOf(pending, "b")
	k.silence()
	if k.view().Available != 8 {
		t.Fatalf("the stock has %d", k.view().Available)
	}
	k.once("the reconciler", k.engine.ReconcileOnce, 2)
	if k.find(held) != flashsale.Cancelled || k.find(pending) != flashsale.Reserved || k.view().Available != 9 {
		t.Errorf("the stock has %s, %s and %d", k.find(held), k.find(pending), k.view().Available)
	}
	if r := k.engine.LastReconciliation(); len(r.Keys) != 1 || r.Keys[0].Compared != 2 || r.Keys[0].Replayed != 2 {
		t.Errorf("the report is %+v", r)
	}
	k.sound()
}

// ghostOf has SQL decide a job behind the Stock's back.
func (k *keep) ghostOf(rid, user string) {
	k.t.Helper()
	_, err := k.orders.Decide(k.t.Context(), &flashsale.Batch{Key: k.key, Epoch: k.sku().Epoch, Jobs: []flashsale.Job{{RID: rid, User: user, Quantity: 1}}})
	k.must(err)
}

// TestReconcilerFindsLosses: what only one of the stores knows is found, and mended by a rebuild.
func TestReconcilerFindsLosses(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		break_ func(k *keep)
		found  func(r *KeyReport) []string
		want   string
	}{
		"missing": {func(k *keep) { k.ghost("ghost"); k.silence() }, func(r *KeyReport) []string { return r.Missing }, "ghost"},
		"unknown to SQL": {func(k *keep) {
			_, err := k.stock.Apply(k.t.Context(), k.key, k.sku().Epoch, []flashsale.Effect{{RID: "x", User: "u", Quantity: 1, State: flashsale.Expired, Version: 3}}, nil)
			k.must(err)
		}, func(r *KeyReport) []string { return r.Ahead }, "x"},
		"ahead of SQL": {func(k *keep) {
			k.held("a")
			rid := k.kept[0]
			_, err := k.stock.Apply(k.t.Context(), k.key, k.sku().Epoch, []flashsale.Effect{{RID: rid, User: "a", Quantity: 1, State: flashsale.Confirming, Version: 2}}, nil)
			k.must(err)
			k.kept[0] = rid
		}, func(r *KeyReport) []string { return r.Ahead }, ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			k := openKeep(t)
			c.break_(k)
			epoch := k.sku().Epoch
			_, err := k.engine.ReconcileOnce(t.Context())
			k.must(err)
			want := c.want
			if want == "" {
				want = k.kept[0]
			}
			if got := c.found(&k.engine.LastReconciliation().Keys[0]); !slices.Equal(got, []string{want}) {
				t.Fatalf("found %v; want %s", got, want)
			}
			k.once("the watcher", k.engine.WatchOnce, 1)
			if k.sku().Epoch != epoch+1 {
				t.Error("it was not rebuilt")
			}
			k.sound()
		})
	}
}

// TestReconcilerReportsDrift: a difference of counters with nothing under way is reported the second time, and never repaired by
// setting a counter.
func TestReconcilerReportsDrift(t *testing.T) {
	t.Parallel()
	k := openKeep(t)
	_, err := k.stock.Adjust(t.Context(), k.key, k.sku().Epoch, "nobody's", 3)
	k.must(err)
	const on, off = "alarm drift eleven/phone true", "alarm drift eleven/phone false"
	k.once("the reconciler", k.engine.ReconcileOnce, 0)
	if k.engine.LastReconciliation().Keys[0].Drift != nil || k.told.count(on) != 0 {
		t.Error("it is reported at first sight")
	}
	k.once("the reconciler", k.engine.ReconcileOnce, 0)
	d := k.engine.LastReconciliation().Keys[0].Drift
	if d == nil || d.Stock.Available != 13 || d.SQL.Available != 10 || k.told.count(on) != 1 {
		t.Errorf("reported: %v, %v", d, k.told.lines)
	}
	if k.view().Available != 13 {
		t.Error("a counter was set")
	}
	k.rebuildNow()
	k.once("the reconciler", k.engine.ReconcileOnce, 0)
	if k.engine.LastReconciliation().Keys[0].Drift != nil || k.told.count(off) != 1 || k.view().Available != 10 {
		t.Errorf("after a rebuild: %v, %d available", k.told.lines, k.view().Available)
	}
}

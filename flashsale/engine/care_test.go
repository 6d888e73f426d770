package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/porttest"
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

// TestRebuildPoison: jobs that SQL can neither decide nor refuse hold up no other.
func TestRebuildPoison(t *testing.T) {
	t.Parallel()
	k := openKeep(t)
	for _, user := range []string{"a", "", "b"} {
		ask := &flashsale.Ask{RID: "rid-" + user, User: user, Quantity: 1, Body: flashsale.BodyHash(k.key, user, 1)}
		if answer, err := k.stock.Reserve(t.Context(), k.key, k.sku().Epoch, ask); err != nil || !answer.Accepted {
			t.Fatalf("%+v, %v", answer, err)
		}
	}
	_, err := k.engine.underLease(t.Context(), rebuildLease, func(ctx context.Context, fence int64) error {
		report, err := k.engine.RebuildOnce(ctx, k.key, fence)
		if report.Jobs != 2 || report.Dropped != 1 || report.Refused != 0 || report.Available != 8 || report.Below != 0 {
			t.Errorf("the report is %+v", report)
		}
		return err
	})
	k.must(err)
	if k.row("rid-a").State != flashsale.Reserved || k.row("rid-b").State != flashsale.Reserved {
		t.Error("the others were not decided")
	}
	k.sound()
}

// TestRebuildCatchesUp: what is given back while a rebuild loads is in the Stock before anybody can reserve.
func TestRebuildCatchesUp(t *testing.T) {
	t.Parallel()
	k := openKeep(t)
	rid := k.held("a")
	gate := &porttest.Gate{Before: func(_ context.Context, call string) error {
		switch call {
		case "orders.UnsentOf":
			_, err := k.orders.Cancel(t.Context(), rid, "a", "")
			return err
		case "stock.Configure":
			if v := k.view(); v.Available != 10 {
				t.Errorf("it opens with %d available", v.Available)
			}
		}
		return nil
	}}
	ops, err := k.another(gate).Rebuild(t.Context(), k.command("now"))
	k.must(err)
	if ops[0].State != flashsale.OpDone || !strings.Contains(ops[0].Detail, "10 available") {
		t.Errorf("the operation is %+v", ops[0])
	}
	k.sound()
}

// restarted is a stock that is another one after a number of loads: a replica took its place, which has not had all parts.
type restarted struct {
	Stock
	loads int
}

func (s *restarted) Load(ctx context.Context, key flashsale.Key, epoch int64, part *flashsale.LoadPart) error {
	s.loads--
	return s.Stock.Load(ctx, key, epoch, part)
}

func (s *restarted) View(ctx context.Context, key flashsale.Key) (flashsale.StockView, error) {
	v, err := s.Stock.View(ctx, key)
	if s.loads <= 0 {
		v.Run = "another"
	}
	return v, err
}

// TestAStockThatStartsAnewWhileItIsLoadedDoesNotOpen: its counters come with the last part and agree, whatever other parts it has lost.
func TestAStockThatStartsAnewWhileItIsLoadedDoesNotOpen(t *testing.T) {
	t.Parallel()
	k := openKeep(t)
	k.held("a")
	k.engine.stock = &restarted{Stock: k.engine.stock, loads: 1}
	ops, err := k.engine.Rebuild(t.Context(), k.command("now"))
	k.must(err)
	if s, v := k.sku(), k.view(); ops[0].State != flashsale.OpCommitted || !s.Rebuilding || v.Settings.Status != "" {
		t.Errorf("the operation is %s; SQL has %+v, the stock %+v", ops[0].State, s, v)
	}
	k.once("the watcher", k.engine.WatchOnce, 1)
	if s, v := k.sku(), k.view(); s.Rebuilding || s.StoreRun != "another" || v.Settings.Status != flashsale.Open || v.Available != 9 {
		t.Errorf("afterwards SQL has %+v, the stock %+v", s, v)
	}
}

// TestWatcherFollowsASetBackDatabase: a Stock that is epochs ahead of SQL is rebuilt all the same.
func TestWatcherFollowsASetBackDatabase(t *testing.T) {
	t.Parallel()
	k := openKeep(t)
	k.held("a")
	if _, err := k.stock.Point(t.Context(), k.key, 40); err != nil {
		t.Fatal(err)
	}
	k.once("the watcher", k.engine.WatchOnce, 1)
	if s, v := k.sku(), k.view(); s.Epoch != 41 || v.Epoch != 41 || v.Available != 9 {
		t.Errorf("SQL is at epoch %d, the stock at %d with %d available", s.Epoch, v.Epoch, v.Available)
	}
	k.sound()
}

// TestOneOfManyRebuilds: while another instance has the lease, the watcher of this one leaves it to that.
func TestOneOfManyRebuilds(t *testing.T) {
	t.Parallel()
	k := openKeep(t)
	k.newStock()
	if _, held, err := k.orders.Lease(t.Context(), rebuildLease, "another", 5*time.Second); err != nil || !held {
		t.Fatal(held, err)
	}
	epoch := k.sku().Epoch
	k.once("the watcher", k.engine.WatchOnce, 1)
	if k.sku().Epoch != epoch {
		t.Error("it began a rebuild without the lease")
	}
	k.clock.advance(6 * time.Second)
	k.once("the watcher, once that is dead", k.engine.WatchOnce, 1)
	k.sound()
}

// TestPlanChangesNothing compares a dry run with what the rebuild then does.
func TestPlanChangesNothing(t *testing.T) {
	t.Parallel()
	k := mixed(t)
	before, sku := k.view(), *k.sku()
	plan, err := k.engine.PlanRebuild(t.Context(), k.key)
	k.must(err)
	if k.view() != before || *k.sku() != sku {
		t.Errorf("it changed something")
	}
	if plan.Why != "" || plan.From != 2 || plan.To != 3 || plan.Jobs != 2 || plan.Entries != 4 || plan.Buyers != 3 || plan.Unsent != 1 || plan.SQL.Available() != 7 {
		t.Errorf("the plan is %+v", plan)
	}
	k.rebuildNow()
	if k.view().Epoch != plan.To {
		t.Errorf("it went to epoch %d", k.view().Epoch)
	}
	k.newStock()
	if plan, err = k.engine.PlanRebuild(t.Context(), k.key); err != nil || plan.Why == "" || plan.From != 0 || plan.To != 4 {
		t.Errorf("after a loss: %+v, %v", plan, err)
	}
}

// TestQuiesceLoseRebuild is I12: nothing under way, all of the Stock is lost, and what is rebuilt is the same, to the last user.
func TestQuiesceLoseRebuild(t *testing.T) {
	t.Parallel()
	k := mixed(t)
	k.sound()
	before, entries := k.view(), k.entries()
	k.newStock()
	k.watch()
	after := k.view()
	for _, v := range []*flashsale.StockView{&before, &after} {
		v.Epoch, v.Run, v.Seq, v.Now = 0, "", 0, time.Time{}
	}
	if before != after {
		t.Errorf("before %+v\nafter  %+v", before, after)
	}
	if got := k.entries(); !slices.Equal(got, entries) {
		t.Errorf("before %v\nafter  %v", entries, got)
	}
	for user, want := range map[string]flashsale.Code{"holding": "", "back": ""} {
		_, err := k.tryReserve(user)
		wantCode(t, user+" reserves once more", err, want)
	}
	_, err := k.tryReserve("holding")
	wantCode(t, "a third unit", err, flashsale.CodePurchaseLimit)
}

// entries are those that hold something or have been sold, by rid.
func (k *keep) entries() []string {
	k.t.Helper()
	var all []string
	page, _, err := k.stock.Entries(k.t.Context(), k.key, k.sku().Epoch, "", 1000)
	k.must(err)
	for _, e := range page {
		all = append(all, e.RID+" "+e.User+" "+e.State.String())
	}
	slices.Sort(all)
	return all
}

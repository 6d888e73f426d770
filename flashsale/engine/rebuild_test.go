package engine

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/porttest"
)

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

package engine

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/porttest"
)

// closed is a sale that was closed, with one unit sold and one given back, and quiet for longer than Retention.
func closed(t *testing.T) (k *keep, sold, back string) {
	t.Helper()
	k = openKeep(t)
	sold, back = k.sold("ann"), k.held("bob")
	_, err := k.engine.Cancel(t.Context(), back, "bob")
	k.must(err)
	k.settle()
	_, err = k.engine.DrainSale(t.Context(), k.command("drain"))
	k.must(err)
	_, err = k.engine.CloseSale(t.Context(), k.command("close"))
	k.must(err)
	k.settle()
	k.clock.advance(flashsale.Retention - time.Minute)
	k.settle()
	if v := k.view(); !v.Loaded {
		t.Fatalf("the stock is gone within its time: %+v", v)
	}
	k.clock.advance(2 * time.Minute)
	return k, sold, back
}

// gone checks that the Stock has nothing of the sku.
func (k *keep) gone() {
	k.t.Helper()
	if v := k.view(); v.Epoch != 0 || v.Loaded || !k.sku().Retired {
		k.t.Fatalf("the stock has %+v, and SQL %+v", v, k.sku())
	}
}

// TestClosedSKUsAreRemoved: a day after a sku was closed the Stock has nothing of it, and whoever asks is answered from SQL.
func TestClosedSKUsAreRemoved(t *testing.T) {
	t.Parallel()
	k, sold, back := closed(t)
	ctx := t.Context()
	other := k.another(nil) // which still believes that there is a stock
	for _, e := range []*Engine{k.engine, other} {
		_, err := e.skus.get(ctx, k.key)
		k.must(err)
	}
	if _, err := k.engine.SweepOnce(ctx); err != nil {
		t.Fatal(err)
	}
	k.gone()
	for name, e := range map[string]*Engine{"who has removed it": k.engine, "another": other} {
		for rid, want := range map[string]struct {
			user  string
			state flashsale.State
		}{sold: {"ann", flashsale.Confirmed}, back: {"bob", flashsale.Cancelled}} {
			if r, err := e.Result(ctx, k.key, rid, want.user); err != nil || r.State != want.state {
				t.Errorf("%s says of %s's %+v, %v", name, want.user, r, err)
			}
		}
		_, err := e.Result(ctx, k.key, "nobody", "ann")
		wantCode(t, name+", of an unknown one", err, flashsale.CodeNotFound)
		for _, onlyKnown := range []bool{false, true} {
			a, err := e.take(ctx, k.key, &flashsale.Ask{RID: "new", User: "eve", Quantity: 1, OnlyKnown: onlyKnown})
			want := map[bool]flashsale.Code{false: flashsale.CodeNotOpen, true: flashsale.CodeTokenExpired}[onlyKnown]
			if err != nil || a.Accepted || a.Code != want {
				t.Errorf("%s answers T0 with %+v, %v; want %s", name, a, err, want)
			}
		}
		_, err = e.DeadLetters(ctx, k.key, 1)
		if wantCode(t, name+", of dead letters", err, flashsale.CodeNotOpen); err != nil && !strings.Contains(err.Error(), "closed for longer than a day") {
			t.Errorf("%s says %v", name, err)
		}
	}
	k.settle()
	k.gone() // no job brings it back
	report, err := k.engine.Audit(ctx, k.key)
	if err != nil || !report.OK() || report.UnderWay != "" {
		t.Errorf("the audit: %v, under way %q, %v", report, report.UnderWay, err)
	}
	k.once("another pass", k.engine.SweepOnce, 0)
}

// TestARemovalIsRepeated after a crash at any of its steps.
func TestARemovalIsRepeated(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"orders.Retirable", "stock.Remove", "orders.Retire"} {
		for _, after := range []bool{false, true} {
			k, _, _ := closed(t)
			dies := func(_ context.Context, c string) error {
				if c == call {
					return errorf(flashsale.CodeClosed, "killed")
				}
				return nil
			}
			gate := &porttest.Gate{Before: dies}
			if after {
				gate = &porttest.Gate{After: func(ctx context.Context, c string, _ error) error { return dies(ctx, c) }}
			}
			_, err := k.another(gate).SweepOnce(t.Context())
			wantCode(t, call, err, flashsale.CodeClosed)
			k.settle()
			k.gone()
		}
	}
}

// TestARebuildBringsARetiredSKUBack, for as long as any other that is closed.
func TestARebuildBringsARetiredSKUBack(t *testing.T) {
	t.Parallel()
	k, sold, _ := closed(t)
	k.settle()
	k.gone()
	ops, err := k.engine.Rebuild(t.Context(), k.command("rebuild"))
	if err != nil || ops[0].State != flashsale.OpDone {
		t.Fatalf("%+v, %v", ops, err)
	}
	k.settle()
	if s := k.sku(); s.Retired || !k.view().Loaded {
		t.Fatalf("SQL has %+v, the stock %+v", s, k.view())
	}
	k.kept = []string{sold}
	k.sound()
	k.clock.advance(flashsale.Retention + time.Minute)
	k.settle()
	k.gone()
}

// TestACaptureOfARetiredSKUIsRefunded: there is no unit of it, and nobody waits for a stock that does not come.
func TestACaptureOfARetiredSKUIsRefunded(t *testing.T) {
	t.Parallel()
	c := openTill(t, tillPlan{total: 1})
	rid := c.reserve("ann", 1)
	intent := c.begin(rid, "ann")
	_, err := c.e.Cancel(t.Context(), rid, "ann")
	c.must(err)
	c.jobs()
	for i, step := range []func(context.Context, Command) ([]flashsale.Operation, error){c.e.DrainSale, c.e.CloseSale} {
		_, err := step(t.Context(), Command{ID: string(rune('a' + i)), Sale: c.key.Sale, Reason: "it is over", By: "test"})
		c.must(err)
		c.jobs()
	}
	c.pass(flashsale.Retention + time.Minute)
	c.jobs()
	if s, err := c.sql.SKU(t.Context(), c.key); err != nil || !s.Retired {
		t.Fatalf("%+v, %v", s, err)
	}
	c.must(c.bank.Capture(intent, tillPrice, "EUR"))
	c.pass(2 * time.Second)
	c.jobs()
	c.paid(intent, flashsale.PaymentRefunded, "")
	if n, err := c.sql.UnsentCount(t.Context(), c.key); n != 0 || err != nil {
		t.Errorf("%d rows of the outbox wait for a stock that there is not: %v", n, err)
	}
	c.holds()
}

// deadNodes is a stock all of whose skus but one lie on nodes that do not answer.
type deadNodes struct {
	Stock
	lives flashsale.Key
}

func (s *deadNodes) View(ctx context.Context, key flashsale.Key) (flashsale.StockView, error) {
	if key != s.lives {
		return flashsale.StockView{}, errorf(flashsale.CodeUnavailable, "the node of %s does not answer", key)
	}
	return s.Stock.View(ctx, key)
}

// TestRemovalBehindNodesThatAreDown: a sku that cannot be removed keeps no other from it, and more of them than a pass tries keep none for
// longer than a pass.
func TestRemovalBehindNodesThatAreDown(t *testing.T) {
	t.Parallel()
	k := newKeep(t)
	k.sale.SKUs = nil
	for i := range retireSKUs + 2 {
		k.sale.SKUs = append(k.sale.SKUs, flashsale.SKU{ID: string(rune('a' + i)), Total: 1, PurchaseLimit: 1, Price: 100})
	}
	k.must(k.engine.CreateSale(t.Context(), &k.sale))
	k.watch()
	for i, step := range []func(context.Context, Command) ([]flashsale.Operation, error){k.engine.OpenSale, k.engine.DrainSale, k.engine.CloseSale} {
		_, err := step(t.Context(), Command{ID: string(rune('a' + i)), Sale: k.sale.ID, Reason: "r", By: "op"})
		k.must(err)
	}
	k.clock.advance(flashsale.Retention + time.Minute)
	k.key.SKU = k.sale.SKUs[retireSKUs+1].ID
	k.engine.stock = &deadNodes{k.engine.stock, k.key}
	for pass := 1; !k.sku().Retired; pass++ {
		if pass > 2 {
			t.Fatal("it is not removed in two passes")
		}
		_, err := k.engine.retire(t.Context())
		wantCode(t, "the pass", err, flashsale.CodeUnavailable)
	}
	k.gone()
}

package engine

import (
	"context"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/porttest"
)

// draft is a sale that was loaded and never opened.
func draft(t *testing.T) *keep {
	t.Helper()
	k := newKeep(t)
	k.must(k.engine.CreateSale(t.Context(), &k.sale))
	k.watch()
	if !k.view().Loaded {
		t.Fatal("it is not loaded")
	}
	return k
}

// dropCommand is for all of the sale.
func (k *keep) dropCommand(id string) Command {
	c := k.command(id)
	c.SKU = ""
	return c
}

// TestDropSale: it is gone for everybody at once, and from the stock a minute later.
func TestDropSale(t *testing.T) {
	t.Parallel()
	k := draft(t)
	other := k.another(nil)
	other.skus.put(k.sku())
	wantCode(t, "a sku alone", k.engine.DropSale(t.Context(), k.command("d")), flashsale.CodeInvalidArgument)
	for range 2 {
		k.must(k.engine.DropSale(t.Context(), k.dropCommand("d")))
	}
	for what, e := range map[string]*Engine{"who has dropped it": k.engine, "another": other} {
		age(e.skus, refusalAge)
		_, _, err := e.Token(t.Context(), TokenRequest{Key: k.key, User: "ann"})
		wantCode(t, "a token of "+what, err, flashsale.CodeUnknownSale)
	}
	k.once("the watcher", k.engine.WatchOnce, 0)
	k.once("the sweeper", k.engine.SweepOnce, 0)
	if !k.view().Loaded {
		t.Error("the stock is cleaned while rebuilds may be under way")
	}
	k.clock.advance(droppedFor)
	k.once("the sweeper", k.engine.SweepOnce, 1)
	if v := k.view(); v.Epoch != 0 || v.Loaded {
		t.Errorf("the stock has %+v", v)
	}
	k.once("the sweeper, again", k.engine.SweepOnce, 0)
}

// TestOpenedSalesStay: what was opened, and be it for a moment, is not dropped.
func TestOpenedSalesStay(t *testing.T) {
	t.Parallel()
	k := openKeep(t)
	_, err := k.engine.PauseSale(t.Context(), k.command("pause"))
	k.must(err)
	wantCode(t, "of a paused one", k.engine.DropSale(t.Context(), k.dropCommand("d")), flashsale.CodeInvalidState)
	k.once("the watcher", k.engine.WatchOnce, 0)
	k.sound()
}

// TestASaleInPlaceOfADroppedOne: nobody takes it for the one before, neither the stock nor whoever remembers that one, whenever the stock is
// cleaned of that.
func TestASaleInPlaceOfADroppedOne(t *testing.T) {
	t.Parallel()
	for what, meanwhile := range map[string]func(k *keep){
		"at once":                  func(*keep) {},
		"after the stock is clean": func(k *keep) { k.clock.advance(droppedFor); k.once("the sweeper", k.engine.SweepOnce, 1) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			k := draft(t)
			other := k.another(nil)
			other.skus.put(k.sku())
			k.must(k.engine.DropSale(t.Context(), k.dropCommand("d")))
			meanwhile(k)
			k.sale.SKUs[0].Total, k.sale.SKUs[0].PurchaseLimit = 3, 3
			k.must(k.engine.CreateSale(t.Context(), &k.sale))
			k.watch()
			_, err := k.engine.OpenSale(t.Context(), k.command("open"))
			k.must(err)
			k.clock.advance(droppedFor)
			_, err = k.engine.SweepOnce(t.Context())
			k.must(err)
			if v := k.view(); !v.Loaded || v.Available != 3 || v.Epoch != k.sku().Epoch {
				t.Fatalf("the stock has %+v, SQL %+v", v, k.sku())
			}
			other.skus.put(k.sku())
			request := k.request("ann")
			request.Quantity = 3
			if _, err := other.Reserve(t.Context(), request); err != nil {
				t.Errorf("whoever remembers the one before: %v", err)
			}
			k.consume()
			k.once("the sweeper", k.engine.SweepOnce, 0)
			k.sound()
		})
	}
}

// TestARebuildOfADroppedSale that was under way leaves nothing that a later sale would be taken for.
func TestARebuildOfADroppedSale(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"stock.Point", "orders.Snapshot", "stock.Load", "orders.EndRebuild", "stock.Configure"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			k := newKeep(t)
			k.must(k.engine.CreateSale(t.Context(), &k.sale))
			dropped := false
			rebuilder := k.another(&porttest.Gate{Before: func(_ context.Context, call string) error {
				if call != at || dropped {
					return nil
				}
				dropped = true
				return k.engine.DropSale(t.Context(), k.dropCommand("d"))
			}})
			_, _ = rebuilder.WatchOnce(t.Context())
			if !dropped {
				t.Fatal("it was not dropped")
			}
			k.clock.advance(droppedFor)
			_, err := k.engine.SweepOnce(t.Context())
			k.must(err)
			if v := k.view(); v.Loaded || v.Epoch != 0 {
				t.Errorf("the stock has %+v", v)
			}
			k.must(k.engine.CreateSale(t.Context(), &k.sale))
			k.watch()
			_, err = k.engine.OpenSale(t.Context(), k.command("open"))
			k.must(err)
			k.clock.advance(time.Second)
			k.held("ann")
			k.sound()
		})
	}
}

// TestDroppedBehindANodeThatIsDown: one that cannot be cleaned keeps no other from it.
func TestDroppedBehindANodeThatIsDown(t *testing.T) {
	t.Parallel()
	k := newKeep(t)
	k.sale.SKUs = nil
	for i := range dropSKUs + 1 {
		k.sale.SKUs = append(k.sale.SKUs, flashsale.SKU{ID: string(rune('a' + i)), Total: 1, PurchaseLimit: 1, Price: 100})
	}
	k.must(k.engine.CreateSale(t.Context(), &k.sale))
	k.watch()
	k.must(k.engine.DropSale(t.Context(), k.dropCommand("d")))
	k.clock.advance(droppedFor)
	k.key.SKU = k.sale.SKUs[dropSKUs].ID
	k.engine.stock = &deadNodes{k.engine.stock, k.key}
	for range 2 {
		_, err := k.engine.cleanDropped(t.Context())
		if code := flashsale.CodeOf(err); code != "" && code != flashsale.CodeUnavailable {
			t.Fatal(err)
		}
	}
	if v := k.view(); v.Epoch != 0 {
		t.Errorf("the one on a node that lives is left: %+v", v)
	}
}

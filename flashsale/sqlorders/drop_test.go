package sqlorders

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// rowsOf counts what a table has of a sale.
func rowsOf(t *testing.T, o *Orders, table, column string) (n int64) {
	t.Helper()
	if err := o.db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table+" WHERE "+column+" = 'sale'").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestDropSale: a draft goes with all that is of it, once, and a later sale of its name begins after it.
func TestDropSale(t *testing.T) {
	t.Parallel()
	eachDBAt(t, func(t *testing.T, o *Orders, clock *handClock) {
		ctx := t.Context()
		drop := &flashsale.Drop{ID: "d1", Sale: "sale", Reason: "a typo", By: "ann"}
		wantCode(t, "of none", o.DropSale(ctx, drop), flashsale.CodeUnknownSale)
		createSale(t, o)
		noError(t, "CreateSale", o.CreateSale(ctx, testSale("stays")))
		begin(t, o, topUp("t1", 7), flashsale.OpCommitted)
		mustExec(t, o, "UPDATE sale_sku SET epoch = 5, settings_version = 3 WHERE sale = 'sale' AND sku = 'sku'")
		for what, bad := range map[string]flashsale.Drop{
			"no reason": {ID: "d1", Sale: "sale"}, "no id": {Sale: "sale", Reason: "r"}, "no sale": {ID: "d1", Reason: "r"}, "bad sale": {ID: "d1", Sale: "a/b", Reason: "r"},
		} {
			wantCode(t, what, o.DropSale(ctx, &bad), flashsale.CodeInvalidArgument)
		}
		for range 2 {
			noError(t, "DropSale", o.DropSale(ctx, drop))
		}
		for table, column := range map[string]string{"sale": "id", "sale_sku": "sale", "stock_ledger": "sale", "operation": "sale"} {
			if n := rowsOf(t, o, table, column); n != 0 {
				t.Errorf("%s has %d rows of it", table, n)
			}
		}
		_, err := o.Sale(ctx, "sale")
		wantCode(t, "Sale", err, flashsale.CodeUnknownSale)
		if _, err := o.Sale(ctx, "stays"); err != nil {
			t.Error(err)
		}
		another := *drop
		another.Reason = "another"
		wantCode(t, "another under its id", o.DropSale(ctx, &another), flashsale.CodeConflict)
		createSale(t, o)
		noError(t, "the same again", o.DropSale(ctx, drop))
		for sku, want := range map[string][2]int64{"sku": {6, 4}, "other": {2, 2}} {
			s, err := o.SKU(ctx, flashsale.Key{Sale: "sale", SKU: sku})
			if err != nil || s.Epoch != want[0] || s.Settings.Version != want[1] || !s.Rebuilding || s.Total != map[string]int64{"sku": 100, "other": 10}[sku] {
				t.Errorf("%s begins as %+v, %v; want epoch and version %v", sku, s, err, want)
			}
		}
		clock.advance(time.Second)
		noError(t, "DropSale", o.DropSale(ctx, &flashsale.Drop{ID: "d2", Sale: "sale", Reason: "again", By: "bob"}))
		createSale(t, o)
		if s, err := o.SKU(ctx, testKey); err != nil || s.Epoch != 7 || s.Settings.Version != 5 {
			t.Errorf("the third begins as %+v, %v", s, err)
		}
	})
}

// TestDropSaleIsRefused: where anything was ever opened or reserved, nothing is dropped.
func TestDropSaleIsRefused(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		createSale(t, o)
		refused := func(what string) {
			t.Helper()
			wantCode(t, what, o.DropSale(t.Context(), &flashsale.Drop{ID: "d", Sale: "sale", Reason: "r", By: "ann"}), flashsale.CodeInvalidState)
			if n := rowsOf(t, o, "sale_sku", "sale"); n != 2 {
				t.Fatalf("%s: %d skus are left", what, n)
			}
		}
		for _, status := range []flashsale.Status{flashsale.Open, flashsale.Paused, flashsale.Draining, flashsale.Closed} {
			mustExec(t, o, "UPDATE sale_sku SET status = ? WHERE sale = 'sale' AND sku = 'sku'", string(status))
			refused("one sku is " + string(status))
		}
		mustExec(t, o, "UPDATE sale_sku SET status = 'draft' WHERE sale = 'sale'")
		query, args := insertion("reservation", override{"sale": "sale"})
		mustExec(t, o, query, args...)
		refused("there is a reservation")
	})
}

// TestDropped lists skus until the stock has nothing of them, in pages, so that one that fails hides no other.
func TestDropped(t *testing.T) {
	t.Parallel()
	eachDBAt(t, func(t *testing.T, o *Orders, clock *handClock) {
		for _, id := range []string{"a", "b"} {
			noError(t, "CreateSale", o.CreateSale(t.Context(), testSale(id)))
			noError(t, "DropSale", o.DropSale(t.Context(), &flashsale.Drop{ID: "of-" + id, Sale: id, Reason: "r", By: "ann"}))
		}
		list := func() (all []flashsale.DroppedSKU, names string) {
			t.Helper()
			for after := (flashsale.DroppedSKU{}); ; {
				page, err := o.Dropped(t.Context(), time.Minute, after, 1)
				noError(t, "Dropped", err)
				if len(page) == 0 {
					return all, names
				}
				after = page[0]
				all, names = append(all, after), names+fmt.Sprintf("%s@%d ", after.Key, after.Epoch)
			}
		}
		clock.advance(time.Minute - time.Microsecond)
		if _, names := list(); names != "" {
			t.Fatalf("within a minute: %s", names)
		}
		clock.advance(time.Microsecond)
		all, names := list()
		if want := "a/other@1 a/sku@1 b/other@1 b/sku@1 "; names != want {
			t.Fatalf("listed are %s, want %s", names, want)
		}
		for range 2 {
			noError(t, "Removed", o.Removed(t.Context(), &all[1]))
		}
		if _, names := list(); names != "a/other@1 b/other@1 b/sku@1 " {
			t.Fatalf("then: %s", names)
		}
	})
}

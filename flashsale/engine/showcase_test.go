package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

func TestSignals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		total, sold, available int64
		want                   StockSignal
	}{
		{0, 0, 0, StockGone}, {1, 1, 0, StockGone}, {1, 0, 1, StockLow}, {1, 0, 0, StockAllHeld}, {10, 0, 10, StockLow}, {11, 0, 11, StockPlenty},
		{1000, 0, 101, StockPlenty}, {1000, 899, 100, StockLow}, {1000, 999, 0, StockAllHeld}, {1000, 1000, 0, StockGone}, {1000, 0, -1, StockAllHeld},
	} {
		if got := signalOf(c.total, c.sold, c.available); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestShowcase follows a sale from its draft to its end.
func TestShowcase(t *testing.T) {
	t.Parallel()
	c := openTill(t, tillPlan{total: 2})
	c.must(c.e.CreateSale(t.Context(), draftSale("twelve", c.now)))
	list, err := c.e.Showcase(t.Context())
	c.must(err)
	if len(list) != 1 || list[0].ID != "eleven" || list[0].SKUs != nil || list[0].Title != "Eleven" {
		t.Errorf("the list is %+v", list)
	}
	want := func(what string, status flashsale.Status, stock StockSignal) {
		t.Helper()
		c.fresh()
		sale, err := c.e.Shown(t.Context(), "eleven")
		c.must(err)
		if len(sale.SKUs) != 1 || sale.SKUs[0].Status != status || sale.SKUs[0].Stock != stock || sale.SKU("phone") != &sale.SKUs[0] || sale.SKU("x") != nil {
			t.Errorf("%s: %+v", what, sale)
		}
	}
	want("at first", flashsale.Open, StockLow)
	first, second := c.reserve("u", 1), c.reserve("v", 1)
	want("all is held", flashsale.Open, StockAllHeld)
	for rid, user := range map[string]string{first: "u", second: "v"} {
		c.must(c.bank.Pay(c.begin(rid, user), flashsale.PayCaptured))
	}
	c.pass(time.Minute)
	c.jobs()
	want("all is sold", flashsale.Open, StockGone)
	_, err = c.e.PauseSale(t.Context(), Command{ID: "pause", Sale: "eleven", Reason: "a test", By: "test"})
	c.must(err)
	want("paused", flashsale.Paused, StockGone)

	_, err = c.e.Shown(t.Context(), "twelve")
	codeIs(t, err, flashsale.CodeUnknownSale)
	for key, code := range map[flashsale.Key]flashsale.Code{
		{Sale: "eleven", SKU: "phone"}: "", {Sale: "eleven"}: "", {Sale: "eleven", SKU: "x"}: flashsale.CodeUnknownSKU,
		{Sale: "twelve", SKU: "thing"}: flashsale.CodeUnknownSale, {Sale: "none"}: flashsale.CodeUnknownSale,
	} {
		if err := c.e.CheckShown(t.Context(), key); flashsale.CodeOf(err) != code {
			t.Errorf("%s: %v, want %q", key, err, code)
		}
	}
}

// TestShowcaseOfASaleThatIsJustOpened: nobody is told that it is not there, however short ago somebody has looked.
func TestShowcaseOfASaleThatIsJustOpened(t *testing.T) {
	t.Parallel()
	c := openTill(t, tillPlan{total: 2})
	c.must(c.e.CreateSale(t.Context(), draftSale("twelve", c.now)))
	c.did(c.e.WatchOnce(t.Context()))
	key := flashsale.Key{Sale: "twelve", SKU: "thing"}
	codeIs(t, c.e.CheckShown(t.Context(), key), flashsale.CodeUnknownSale)
	_, err := c.e.OpenSale(t.Context(), Command{ID: "o2", Sale: "twelve", Reason: "a test", By: "test"})
	c.must(err)
	deadline := time.After(10 * unknownAge)
	for c.e.CheckShown(t.Context(), key) != nil {
		select {
		case <-deadline:
			t.Fatal("it is open, and still not shown")
		default:
		}
	}
	if sale, err := c.e.Shown(t.Context(), "twelve"); err != nil || sale.SKUs[0].Price != 7 {
		t.Errorf("%+v, %v", sale, err)
	}
}

// TestShowcaseOfTheEnded: a sale that is not shown any more is still known, for those who have bought something.
func TestShowcaseOfTheEnded(t *testing.T) {
	t.Parallel()
	c := openTill(t, tillPlan{total: 2})
	_, err := c.e.DrainSale(t.Context(), Command{ID: "drain", Sale: "eleven", Reason: "a test", By: "test"})
	c.must(err)
	c.did(c.e.WatchOnce(t.Context()))
	_, err = c.e.CloseSale(t.Context(), Command{ID: "close", Sale: "eleven", Reason: "a test", By: "test"})
	c.must(err)
	c.now = c.now.Add(25 * time.Hour)
	c.fresh()
	_, err = c.e.Shown(t.Context(), "eleven")
	codeIs(t, err, flashsale.CodeUnknownSale)
	for key, code := range map[flashsale.Key]flashsale.Code{
		{Sale: "eleven", SKU: "phone"}: "", {Sale: "eleven"}: "", {Sale: "eleven", SKU: "x"}: flashsale.CodeUnknownSKU, {Sale: "none"}: flashsale.CodeUnknownSale,
	} {
		if err := c.e.CheckShown(t.Context(), key); flashsale.CodeOf(err) != code {
			t.Errorf("%s: %v, want %q", key, err, code)
		}
	}
}

// TestShowcaseSparesTheStores: a crowd that looks, and asks for what is not there, costs a few calls a second.
func TestShowcaseSparesTheStores(t *testing.T) {
	t.Parallel()
	c := openTill(t, tillPlan{total: 2})
	var skus, ids, sales, views, others atomic.Int64
	c.gate.Before = func(_ context.Context, call string) error {
		switch call {
		case "orders.SKUs":
			skus.Add(1)
		case "orders.SaleIDs":
			ids.Add(1)
		case "orders.Sale":
			sales.Add(1)
		case "stock.View":
			views.Add(1)
		default:
			others.Add(1)
		}
		return nil
	}
	began := time.Now()
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for i := range 2000 {
				if _, err := c.e.Shown(t.Context(), "eleven"); err != nil {
					t.Error(err)
				}
				_, err := c.e.Shown(t.Context(), fmt.Sprint("none-", n, "-", i))
				codeIs(t, err, flashsale.CodeUnknownSale)
				codeIs(t, c.e.CheckShown(t.Context(), flashsale.Key{Sale: "eleven", SKU: fmt.Sprint("x", i)}), flashsale.CodeUnknownSKU)
				codeIs(t, c.e.CheckShown(t.Context(), flashsale.Key{Sale: fmt.Sprint("none", i), SKU: "x"}), flashsale.CodeUnknownSale)
				if _, err := c.e.Showcase(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	tenths, seconds := int64(took/unknownAge)+2, int64(took/shownAge)+2
	if skus.Load() > tenths || ids.Load() > seconds || views.Load() > seconds || sales.Load() > 1 || others.Load() > 0 {
		t.Errorf("in %s: %d times all skus, %d times the ids, %d views, %d sales, %d others", took, skus.Load(), ids.Load(), views.Load(), sales.Load(), others.Load())
	}
}

// TestShowcaseWithoutTheStock: SQL is good enough for a word, and a stock that is away is not asked for every sku.
func TestShowcaseWithoutTheStock(t *testing.T) {
	t.Parallel()
	c := openTill(t, tillPlan{total: 100})
	c.gate.Before = func(_ context.Context, call string) error {
		if call == "stock.View" {
			return errorf(flashsale.CodeUnavailable, "the line is cut")
		}
		return nil
	}
	sale, err := c.e.Shown(t.Context(), "eleven")
	if err != nil || sale.SKUs[0].Stock != StockPlenty {
		t.Errorf("%+v, %v", sale, err)
	}
}

// fresh makes what is shown be read again.
func (c *till) fresh() {
	s := c.e.showcase
	s.board.at, s.board.tried, s.ids.at = time.Time{}, time.Time{}, time.Time{}
	clear(s.sales)
}

func draftSale(id string, now time.Time) *flashsale.Sale {
	return &flashsale.Sale{
		ID: id, Title: "Twelve", Currency: "EUR", OpensAt: now, ClosesAt: now.Add(time.Hour), SKUs: []flashsale.SKU{{ID: "thing", Title: "Thing", Total: 5, Price: 7}},
	}
}

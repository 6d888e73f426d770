package sqlorders

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

func TestSaleIsKeptAsItWasCreated(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		ctx := t.Context()
		createSale(t, o)
		createSale(t, o) // the same again
		want := testSale("sale").WithDefaults()
		got, err := o.Sale(ctx, "sale")
		noError(t, "Sale", err)
		if !reflect.DeepEqual(*got, want) {
			t.Fatalf("got  %+v\nwant %+v", *got, want)
		}
		state, err := o.SKU(ctx, testKey)
		noError(t, "SKU", err)
		wantState := flashsale.SKUState{
			Key: testKey, Title: "one", Total: 100, Epoch: 1, Rebuilding: true, Price: 199_00, Currency: "CNY",
			Settings: flashsale.Settings{Version: 1, Status: flashsale.Draft, OpensAt: want.OpensAt, ClosesAt: want.ClosesAt, PurchaseLimit: 2, Rate: flashsale.DefaultRate},
			Hold:     flashsale.DefaultHold, PayTime: flashsale.DefaultPayTime, Grace: flashsale.DefaultGrace,
		}
		if !reflect.DeepEqual(*state, wantState) {
			t.Fatalf("got  %+v\nwant %+v", *state, wantState)
		}
	})
}

func TestAnotherSaleUnderTheSameID(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		createSale(t, o)
		for name, change := range map[string]func(s *flashsale.Sale){
			"title":   func(s *flashsale.Sale) { s.Title += " " },
			"closing": func(s *flashsale.Sale) { s.ClosesAt = s.ClosesAt.Add(time.Microsecond) },
			"total":   func(s *flashsale.Sale) { s.SKUs[0].Total++ },
			"order":   func(s *flashsale.Sale) { s.SKUs[0], s.SKUs[1] = s.SKUs[1], s.SKUs[0] },
			"fewer":   func(s *flashsale.Sale) { s.SKUs = s.SKUs[:1] },
			"default": func(s *flashsale.Sale) { s.Grace = time.Second },
		} {
			s := testSale("sale")
			change(s)
			wantCode(t, name, o.CreateSale(t.Context(), s), flashsale.CodeExists)
		}
		s := testSale("sale")
		s.Hold, s.SKUs[1].PurchaseLimit = flashsale.DefaultHold, 1
		noError(t, "defaults written out", o.CreateSale(t.Context(), s))
	})
}

func TestSalesThatAreNotThere(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		ctx := t.Context()
		createSale(t, o)
		for _, id := range []string{"Sale", "sale.", "sal", "sale2"} {
			_, err := o.Sale(ctx, id)
			wantCode(t, id, err, flashsale.CodeUnknownSale)
			_, err = o.SKU(ctx, flashsale.Key{Sale: id, SKU: "sku"})
			wantCode(t, id, err, flashsale.CodeUnknownSale)
			_, err = o.SKU(ctx, flashsale.Key{Sale: "sale", SKU: id})
			wantCode(t, id, err, flashsale.CodeUnknownSKU)
		}
		for _, id := range []string{"", "sale ", " sale", "sale\x00", "sa\xffle", "sale'; --", "säle", string(make([]byte, 1000))} {
			_, err := o.Sale(ctx, id)
			wantCode(t, id, err, flashsale.CodeInvalidArgument)
			_, err = o.SKU(ctx, flashsale.Key{Sale: "sale", SKU: id})
			wantCode(t, id, err, flashsale.CodeInvalidArgument)
			s := testSale("x")
			s.ID = id
			wantCode(t, id, o.CreateSale(ctx, s), flashsale.CodeInvalidArgument)
		}
	})
}

func TestTitlesThatAreNotText(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		s := testSale("sale")
		s.Title, s.SKUs[0].Title = "a\x00b\xff'\"\\%c 🛒", "\xc3\x28"
		for range 2 {
			noError(t, "CreateSale", o.CreateSale(t.Context(), s))
		}
		got, err := o.Sale(t.Context(), "sale")
		noError(t, "Sale", err)
		state, err := o.SKU(t.Context(), testKey)
		noError(t, "SKU", err)
		if got.Title != "a\uFFFDb\uFFFD'\"\\%c 🛒" || got.SKUs[0].Title != "\uFFFD(" || state.Title != "\uFFFD(" {
			t.Fatalf("got %q, %q, %q", got.Title, got.SKUs[0].Title, state.Title)
		}
	})
}

func TestSaleIDsNewestFirst(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	eachDBWith(t, func(cfg *Config) { // a clock of its own for each database
		at := now
		cfg.Now = func() time.Time { at = at.Add(time.Second); return at }
	}, func(t *testing.T, o *Orders) {
		for _, id := range []string{"b", "c", "a"} {
			noError(t, id, o.CreateSale(t.Context(), testSale(id)))
		}
		for limit, want := range map[int][]string{10: {"a", "c", "b"}, 2: {"a", "c"}, 0: nil, -1: nil} {
			got, err := o.SaleIDs(t.Context(), limit)
			noError(t, "SaleIDs", err)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("limit %d: got %v, want %v", limit, got, want)
			}
		}
	})
}

func TestSalesInPages(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	eachDBWith(t, func(cfg *Config) {
		calls, at := 0, now
		cfg.Now = func() time.Time { // each time stands for two sales
			if calls++; calls%2 == 0 {
				at = at.Add(time.Second)
			}
			return at
		}
	}, func(t *testing.T, o *Orders) {
		if sales, skus, err := o.SalesAfter(t.Context(), "", 5); err != nil || len(sales)+len(skus) > 0 {
			t.Fatalf("of none: %v %v %v", sales, skus, err)
		}
		for _, id := range []string{"b", "c", "a", "B", "e"} {
			noError(t, id, o.CreateSale(t.Context(), testSale(id)))
		}
		want, err := o.SaleIDs(t.Context(), 10)
		noError(t, "SaleIDs", err)
		for _, limit := range []int{1, 2, 3, 10} {
			var got []string
			for after, more := "", true; more; {
				sales, skus, err := o.SalesAfter(t.Context(), after, limit)
				noError(t, "SalesAfter", err)
				if len(sales) > limit || len(skus) != 2*len(sales) {
					t.Fatalf("limit %d: %d sales, %d skus", limit, len(sales), len(skus))
				}
				for i := range sales {
					got, after = append(got, sales[i].ID), sales[i].ID
					if sales[i].SKUs[0].ID != "sku" || !slices.ContainsFunc(skus, func(k flashsale.SKUState) bool { return k.Key == flashsale.Key{Sale: after, SKU: "other"} }) {
						t.Fatalf("%+v, %+v", sales[i], skus)
					}
				}
				more = len(sales) == limit
			}
			if !slices.Equal(got, want) {
				t.Fatalf("limit %d: got %v, want %v", limit, got, want)
			}
		}
		for _, none := range []string{"none", "\x00", "\xff\xfe", "a b", strings.Repeat("x", 5000)} {
			if _, _, err := o.SalesAfter(t.Context(), none, 1); flashsale.CodeOf(err) != flashsale.CodeUnknownSale || len(err.Error()) > 300 {
				t.Errorf("after %.20q: %.300v", none, err)
			}
		}
	})
}

func TestManyCreateTheSameSale(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		errs := make(chan error)
		for range 20 {
			go func() { errs <- o.CreateSale(t.Context(), testSale("sale")) }()
		}
		for range 20 {
			noError(t, "CreateSale", <-errs)
		}
		skus, err := o.SKUs(t.Context())
		noError(t, "SKUs", err)
		if len(skus) != 2 || skus[0].Key.SKU != "sku" || skus[1].Key.SKU != "other" {
			t.Fatalf("got %+v", skus)
		}
	})
}

func TestSKUsThatAreClosedAndQuietAreLeftOut(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		createSale(t, o)
		old := time.Now().Add(-flashsale.Retention - time.Hour).UnixMicro()
		for _, step := range []struct {
			set  string
			want int
		}{
			{"changed_at = ?", 2}, // not closed
			{"changed_at = ?, status = 'closed', reserved = 1", 2},           // not at rest
			{"changed_at = ?, status = 'closed', reserved = 0", 1},           // both
			{"changed_at = ? + 4000000000, status = 'closed'", 2},            // changed less than 24 h ago
			{"changed_at = ?, status = 'draining', reserved = 0, sold=1", 2}, // not closed
		} {
			mustExec(t, o, "UPDATE sale_sku SET "+step.set+" WHERE sku = 'sku'", old)
			got, err := o.SKUs(t.Context())
			noError(t, "SKUs", err)
			if len(got) != step.want {
				t.Fatalf("%s: got %d skus, want %d", step.set, len(got), step.want)
			}
		}
	})
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/saleadmin"
)

// TestASaleFromStandardInput: what is wrong with it is said of standard input, not of a file that is called "-".
func TestASaleFromStandardInput(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		" \n":                "standard input is empty",
		"id: spring\nday: 1": "standard input is not a sale:\n[2:1] unknown field \"day\"\n",
	} {
		file := filepath.Join(t.TempDir(), "sale")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		in, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		_, err = readSale(streams{in: in}, "-")
		_ = in.Close()
		if err == nil || !strings.Contains(err.Error(), want) || strings.HasSuffix(err.Error(), "\n") {
			t.Errorf("of %q is said: %v", text, err)
		}
	}
}

// TestIdsAreShownWhole: an id that is shown is typed again, so none is cut; what stands beside it is, at the width of the longest id.
func TestIdsAreShownWhole(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	id := strings.Repeat("i", flashsale.MaxID)
	pageOn(&out, &out).alarms([]saleadmin.Alarm{{Kind: "backlog", SKU: id}}, "one", clockIn("UTC"))
	if text := out.String(); !strings.Contains(text, "  "+id+"  ") {
		t.Errorf("an id is cut:\n%s", text)
	}
}

// TestAStoryWithoutTheStock: each sku that does not answer has its line.
func TestAStoryWithoutTheStock(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	pageOn(&out, &out).story(&saleadmin.Story{StockError: "spring/a: away\nspring/b: away", Refusals: saleadmin.Refusals{Fleet: true}})
	if want := "\nreservations may be missing: spring/a: away\nreservations may be missing: spring/b: away\nno reservation"; !strings.Contains(out.String(), want) {
		t.Errorf("got:\n%s", out.String())
	}
}

// TestSalesFitATerminal: a list has room in 80 columns beside ids of 24 characters, with six digits of units; a longer id has a line of its own and
// widens nothing. Where sales are in several zones each says which one is its own.
func TestSalesFitATerminal(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 11, 11, 30, 0, 0, time.UTC)
	sale := func(id, zone string, statuses map[string]int) saleadmin.Summary {
		s := saleadmin.Summary{ID: id, Title: "春节　大促", Zone: zone, OpensAt: at, ClosesAt: at.Add(3*time.Hour + time.Second), Statuses: statuses, Total: 123456, Reserved: 654321, Sold: 999999}
		for _, n := range statuses {
			s.SKUs += n
		}
		return s
	}
	written := func(sales ...saleadmin.Summary) string {
		var out strings.Builder
		pageOn(&out, &out).list(&saleadmin.List{Sales: sales})
		for line := range strings.Lines(out.String()) {
			if w := ansi.StringWidth(strings.TrimSuffix(line, "\n")); w > 80 {
				t.Errorf("%d columns: %s", w, line)
			}
		}
		return out.String()
	}
	text := written(sale(strings.Repeat("i", 24), "Asia/Shanghai", map[string]int{"draining": 2}), sale("b", "Asia/Shanghai", map[string]int{"open": 1, "draft": 2}))
	if want := `SALE                      STATUS    OPENS              TOTAL    HELD    SOLD
iiiiiiiiiiiiiiiiiiiiiiii  draining  2026-11-11 19:30  123456  654321  999999
  closes 2026-11-11 22:30:01, 2 skus: 春节　大促
b                         mixed     2026-11-11 19:30  123456  654321  999999
  closes 2026-11-11 22:30:01, 3 skus (2 draft, 1 open): 春节　大促

times of Asia/Shanghai
`; text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	long := strings.Repeat("i", flashsale.MaxID)
	text = written(sale(long, "Asia/Shanghai", map[string]int{"open": 1}), sale("b", "UTC", map[string]int{"open": 1}))
	if want := "SALE  STATUS  OPENS              TOTAL    HELD    SOLD\n" + long + `
      open    2026-11-11 19:30  123456  654321  999999
  closes 2026-11-11 22:30:01 Asia/Shanghai, 1 sku: 春节　大促
b     open    2026-11-11 11:30  123456  654321  999999
  closes 2026-11-11 14:30:01 UTC, 1 sku: 春节　大促
`; text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// TestAStoryInTheSalesZone: amounts are written as people write them, all times are those of the sale's zone, and a day is not repeated.
func TestAStoryInTheSalesZone(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 11, 15, 30, 0, 0, time.UTC)
	until := at.Add(time.Hour)
	var out strings.Builder
	pageOn(&out, &out).story(&saleadmin.Story{
		Sale: "tokyo", Zone: "Asia/Shanghai", UserBase64: []byte("\xff\x1b[2J"),
		Reservations: []saleadmin.Reservation{
			{RID: "p", SKU: "lamp", Quantity: 1, State: "pending", CreatedAt: at, Until: &until},
			{RID: "r", SKU: "lamp", Quantity: 2, State: "confirming", CreatedAt: at, Until: &until, Amount: 19800, Currency: "JPY", Payments: []saleadmin.Payment{
				{IntentKey: "r:1", Amount: 19800, Currency: "JPY", State: "live", ChangedAt: at.Add(time.Minute)},
			}},
		},
		Refusals: saleadmin.Refusals{Instance: "one", Since: at.Add(-time.Hour), Of: []saleadmin.Refusal{
			{SKU: "lamp", Code: "sold_out", Count: 3, First: at, Last: at.Add(29 * time.Minute)},
			{SKU: "lamp", Code: "busy", Count: 1, First: at, Last: at.Add(30 * time.Minute)},
		}},
	})
	if want := `shopper "\xff\x1b[2J" of tokyo, times of Asia/Shanghai (+08:00)
2026-11-11 23:30:00  p: 1 × lamp, pending, to be decided until 2026-11-12 00:30:00
2026-11-11 23:30:00  r: 2 × lamp, 19800 JPY, confirming, to be paid until 2026-11-12 00:30:00
  2026-11-11 23:31:00  payment r:1: 19800 JPY, live

SKU   REFUSED   TIMES  FIRST                LAST
lamp  sold_out      3  2026-11-11 23:30:00  23:59:00
  nothing was left at that moment
lamp  busy          1  2026-11-11 23:30:00  2026-11-12 00:00:00
  too many were waiting; asked to come back
complete since 2026-11-11 22:30:00, as instance one remembers it
`; out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// TestWhyTheStockIsAwayIsSaidOnce, however many skus are in it.
func TestWhyTheStockIsAwayIsSaidOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		skus []saleadmin.SKU
		want string
	}{
		{[]saleadmin.SKU{{ID: "a"}}, ""},
		{[]saleadmin.SKU{{ID: "a", StockError: "gone"}, {ID: "b", StockError: "gone"}}, "the stock does not answer: gone\n"},
		{
			[]saleadmin.SKU{{ID: "a", StockError: "gone"}, {ID: "b", StockError: "slow"}, {ID: "c"}, {ID: "d", StockError: "gone"}},
			"the stock does not answer for a, d: gone\nthe stock does not answer for b: slow\n",
		},
	} {
		var out strings.Builder
		if pageOn(&out, &out).stockErrors(c.skus); out.String() != c.want {
			t.Errorf("got %q, want %q", out.String(), c.want)
		}
	}
}

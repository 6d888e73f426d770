package main

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/saleadmin"
)

// TestSaleFollowsPages: a command shows all that there is, however many pages it comes in.
func TestSaleFollowsPages(t *testing.T) {
	t.Parallel()
	l := newSaleListener(t)
	const sales, skus = 105, 55
	at := l.Clock.Now()
	for i := range sales {
		sale := flashsale.Sale{ID: fmt.Sprint("s", i), Currency: "CNY", OpensAt: at, ClosesAt: at.Add(time.Hour), SKUs: []flashsale.SKU{{ID: "a", Total: 1}}}
		if i == 0 {
			for k := range skus - 1 {
				sale.SKUs = append(sale.SKUs, flashsale.SKU{ID: fmt.Sprint("b", k), Total: 1})
			}
		}
		l.Clock.Pass(time.Second)
		l.Must(l.Engine.CreateSale(t.Context(), &sale))
	}
	_, err := l.Engine.WatchOnce(t.Context())
	l.Must(err)
	ask := func(into any, args ...string) {
		t.Helper()
		got := runBinary(t, []string{"HEADGATE_ADMIN_URL=" + l.url, "HEADGATE_ADMIN_TOKEN=" + saleToken(saleadmin.Viewer)}, append([]string{"sale", "--json"}, args...)...)
		if got.code != 0 {
			t.Fatal(got)
		}
		l.Must(json.Unmarshal([]byte(got.stdout), into))
	}
	for limit, want := range map[string]struct {
		n    int
		next string
	}{"500": {sales, ""}, "105": {sales, ""}, "104": {104, "s1"}, "60": {60, "s45"}, "1": {1, "s104"}} {
		var list saleadmin.List
		if ask(&list, "list", "--limit", limit); len(list.Sales) != want.n || list.Next != want.next || list.Sales[want.n-1].ID != fmt.Sprint("s", sales-want.n) {
			t.Errorf("--limit %s: %d sales, next %q", limit, len(list.Sales), list.Next)
		}
	}
	var sale saleadmin.Sale
	if ask(&sale, "show", "s0"); len(sale.SKUs) != skus || sale.SKUCount != skus || sale.Next != "" || sale.SKUs[skus-1].ID != fmt.Sprint("b", skus-2) {
		t.Errorf("%d skus, next %q", len(sale.SKUs), sale.Next)
	}
	var report saleadmin.Report
	if ask(&report, "report", "s0"); len(report.Audits) != skus || report.Next != "" {
		t.Errorf("%d audits, next %q", len(report.Audits), report.Next)
	}
	var plans saleadmin.Plans
	if ask(&plans, "rebuild", "s0", "--dry-run"); len(plans.Plans) != skus || plans.Next != "" {
		t.Errorf("%d plans, next %q", len(plans.Plans), plans.Next)
	}
}

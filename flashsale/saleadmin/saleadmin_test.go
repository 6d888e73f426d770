package saleadmin

import (
	"net/http"
	"strings"
	"testing"
)

func TestCreateOpenShow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := r.post("admin", "/sales", sampleOrder).is(http.StatusCreated).says(`"opens_at":"2026-11-11T11:00:00Z"`, `"hold":"15m0s"`, `"status":"draft"`)
	if got.header.Get("Location") != "/sales/eleven" {
		t.Errorf("it lies at %q", got.header.Get("Location"))
	}
	r.post("operator", "/sales/eleven/open", why).is(http.StatusConflict).says(`"code":"preflight"`, "the stock is not loaded", "no instance is running")
	r.watch()
	r.running()
	r.post("operator", "/sales/eleven/open", why).is(http.StatusOK).says(`"status":"open"`, `"by":"the-operator"`, `"state":"done"`)
	var sale Sale
	r.get("viewer", "/sales/eleven").is(http.StatusOK).into(&sale)
	if len(sale.SKUs) != 2 || sale.SKUs[0].Status != "open" || sale.SKUs[0].Stock.Available != 10 || sale.SKUs[0].SQL.Available != 10 || len(sale.Operations) != 2 {
		t.Errorf("got %+v", sale)
	}
	r.get("viewer", "/sales").is(http.StatusOK).says(`"statuses":{"open":2}`, `"total":11`)
	if log := r.log.String(); !strings.Contains(log, "by=the-operator") || !strings.Contains(log, `reason="a test"`) {
		t.Errorf("the log is %s", log)
	}
}

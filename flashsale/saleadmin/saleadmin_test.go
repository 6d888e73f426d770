package saleadmin

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestCreateOpenShow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := r.post("admin", "/sales", sampleOrder).is(http.StatusCreated).says(`"opens_at":"2026-11-11T11:00:00Z"`, `"hold":"15m0s"`, `"status":"draft"`)
	if got.header.Get("Location") != "/sales/eleven" {
		t.Errorf("it lies at %q", got.header.Get("Location"))
	}
	r.post("operator", "/sales/eleven/open", why).is(http.StatusConflict).says(`"code":"preflight"`, "the stock is not loaded", "no instance is running")
	r.Watch()
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

// TestCreateAgain: the same sale again is fine, another one under its id is not.
func TestCreateAgain(t *testing.T) {
	t.Parallel()
	r := created(t)
	r.post("admin", "/sales", sampleOrder).is(http.StatusCreated)
	r.post("admin", "/sales", strings.Replace(sampleOrder, `"total":10`, `"total":11`, 1)).is(http.StatusConflict).says(`"code":"exists"`)
	r.get("viewer", "/sales/eleven").is(http.StatusOK).says(`"total":10`)
}

// TestLifeOfASale takes a sale through all its statuses, and holds each step to what came of it in both stores.
func TestLifeOfASale(t *testing.T) {
	t.Parallel()
	r := opened(t)
	status := func(want string) {
		t.Helper()
		var sale Sale
		r.get("viewer", "/sales/eleven").into(&sale)
		for _, k := range sale.SKUs {
			if k.Status != want || k.Stock.Status != want {
				t.Fatalf("%s is %s, and %s in the stock; want %s", k.ID, k.Status, k.Stock.Status, want)
			}
		}
	}
	status("open")
	r.post("operator", "/sales/eleven/resume", why).is(http.StatusConflict).says(`"code":"invalid_state"`)
	r.post("operator", "/sales/eleven/pause", why).is(http.StatusOK)
	status("paused")
	r.post("operator", "/sales/eleven/close", why).is(http.StatusConflict).says("drain it first")
	r.post("operator", "/sales/eleven/resume", why).is(http.StatusOK)
	status("open")
	r.post("operator", "/sales/eleven/pause", `{"reason":"a test","sku":"case"}`).is(http.StatusOK)
	r.get("viewer", "/sales").says(`"statuses":{"open":1,"paused":1}`)
	r.post("operator", "/sales/eleven/resume", `{"reason":"a test","sku":"case"}`).is(http.StatusOK)
	r.post("operator", "/sales/eleven/rate", `{"reason":"a test","rate":50}`).is(http.StatusOK).says(`"rate":50`)
	r.post("operator", "/sales/eleven/drain", why).is(http.StatusOK)
	status("draining")
	r.post("operator", "/sales/eleven/close", why).is(http.StatusOK)
	status("closed")
	r.post("operator", "/sales/eleven/open", why).is(http.StatusConflict).says("invalid_state")
	r.Clock.Pass(72 * time.Hour)
	r.get("viewer", "/sales").says(`"statuses":{"closed":2}`, `"total":11`)
}

// TestResumeIsNoOpening: what has never been open cannot be opened past the check.
func TestResumeIsNoOpening(t *testing.T) {
	t.Parallel()
	r := created(t)
	r.post("admin", "/sales/eleven/resume", why).is(http.StatusConflict).says("has not been opened yet")
	r.get("viewer", "/sales").says(`"statuses":{"draft":2}`)
}

// TestForce: who opens against the check must be an admin, and nothing is opened otherwise.
func TestForce(t *testing.T) {
	t.Parallel()
	r := created(t)
	forced := `{"reason":"the boss says so","force":true}`
	r.post("operator", "/sales/eleven/open", forced).is(http.StatusForbidden).says("force needs the role admin")
	r.get("viewer", "/sales/eleven/preflight").is(http.StatusOK).says(`"ok":false`, "no instance is running")
	r.get("viewer", "/sales/~/preflight").is(http.StatusOK).says(`"ok":false`)
	r.post("admin", "/sales/eleven/open", why).is(http.StatusConflict).says("preflight")
	r.get("viewer", "/sales").says(`"statuses":{"draft":2}`)
	r.named("admin", "/sales/eleven/open", forced, "open-1").is(http.StatusOK).says(`"findings":[`)
	if log := r.log.String(); !strings.Contains(log, "against the check") || !strings.Contains(log, "the boss says so") {
		t.Errorf("the log is %s", log)
	}
	// Repeated, it is not checked again: it has been done.
	r.named("admin", "/sales/eleven/open", forced, "open-1").is(http.StatusOK)
}

func TestUnits(t *testing.T) {
	t.Parallel()
	r := opened(t)
	r.post("admin", "/sales/eleven/skus/phone/top-up", `{"reason":"more came","units":5}`).is(http.StatusOK).says(`"units":5`, `"done"`)
	r.post("admin", "/sales/eleven/skus/phone/withdraw", `{"reason":"broken","units":3}`).is(http.StatusOK)
	r.get("viewer", "/sales/eleven").says(`"sql":{"total":12,"available":12`, `"stock":{"total":12,"available":12`)
	r.named("admin", "/sales/eleven/skus/phone/withdraw", `{"reason":"all of it","units":13}`, "w13").is(http.StatusConflict).
		says(`"code":"refused"`, "13 units were asked for, and 12 are available", `"operation_id":"w13"`)
	r.get("viewer", "/sales/eleven").says(`"total":12,"available":12`, `"state":"refused"`)
}

// TestRepeated: the same order under its name is answered as before and done once; another one under it is refused.
func TestRepeated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, body, other string }{
		"top up":   {"/sales/eleven/skus/phone/top-up", `{"reason":"a","units":5}`, `{"reason":"a","units":6}`},
		"withdraw": {"/sales/eleven/skus/phone/withdraw", `{"reason":"a","units":5}`, `{"reason":"a","units":4}`},
		"refused":  {"/sales/eleven/skus/phone/withdraw", `{"reason":"a","units":50}`, `{"reason":"b","units":50}`},
		"rate":     {"/sales/eleven/rate", `{"reason":"a","rate":5}`, `{"reason":"a","rate":6}`},
		"pause":    {"/sales/eleven/pause", `{"reason":"a"}`, `{"reason":"b"}`},
		"open":     {"/sales/eleven/open", `{"reason":"a"}`, `{"reason":"b"}`},
		"rebuild":  {"/sales/eleven/rebuild", `{"reason":"a","sku":"phone"}`, `{"reason":"b","sku":"phone"}`},
		"drain":    {"/sales/eleven/drain", `{"reason":"a"}`, `{"reason":"b"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := opened(t)
			if name == "open" {
				r = created(t)
				r.running()
			}
			first := r.named("admin", c.path, c.body, "once")
			if !strings.Contains(string(first.body), `"operation_id":"once"`) {
				t.Fatalf("got %d %s", first.status, first.body)
			}
			before := r.now()
			for range 3 {
				if again := r.named("admin", c.path, c.body, "once"); again.status != first.status || !bytes.Equal(again.body, first.body) {
					t.Errorf("got %d %s, and before %d %s", again.status, again.body, first.status, first.body)
				}
			}
			r.named("admin", c.path, c.other, "once").is(http.StatusUnprocessableEntity).says(`"code":"conflict"`)
			if after := r.now(); after != before {
				t.Errorf("repeating it has changed\n%s\nto\n%s", before, after)
			}
		})
	}
}

// TestDrop: a draft goes, once, and its id is free; what was opened stays.
func TestDrop(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.send("admin", "POST", "/sales/eleven/drop", why, nil).is(http.StatusNotFound).says(`"code":"unknown_sale"`)
	r.send("admin", "POST", "/sales", sampleOrder, nil).is(http.StatusCreated)
	r.send("operator", "POST", "/sales/eleven/drop", why, nil).is(http.StatusForbidden)
	r.send("admin", "POST", "/sales/eleven/drop", `{}`, nil).is(http.StatusBadRequest).says(`"field":"reason"`)
	r.send("admin", "POST", "/sales/eleven/drop", `{"reason":"a test","sku":"phone"}`, nil).is(http.StatusBadRequest)
	named := http.Header{IdempotencyKey: {"drop-1"}}
	for range 2 {
		r.send("admin", "POST", "/sales/eleven/drop", why, named).is(http.StatusOK).says(`"operation_id":"drop-1"`, `"sale":"eleven"`)
	}
	r.send("admin", "POST", "/sales/eleven/drop", `{"reason":"another"}`, named).is(http.StatusUnprocessableEntity).says(`"code":"conflict"`)
	r.get("viewer", "/sales/eleven").is(http.StatusNotFound)
	r.send("admin", "POST", "/sales", strings.Replace(sampleOrder, `"total":10`, `"total":11`, 1), nil).is(http.StatusCreated).says(`"total":11`)
	r.send("admin", "POST", "/sales/eleven/drop", why, named).is(http.StatusOK) // that one is done
	r.get("viewer", "/sales/eleven").is(http.StatusOK)
	o := opened(t)
	o.send("admin", "POST", "/sales/eleven/drop", why, nil).is(http.StatusConflict).says(`"code":"invalid_state"`, "stays in the books")
}

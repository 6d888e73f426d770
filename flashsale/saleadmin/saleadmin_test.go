package saleadmin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
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

// TestRoles asks for every endpoint in every role, and looks whether what was refused has changed anything.
func TestRoles(t *testing.T) {
	t.Parallel()
	r := opened(t)
	r.lax = true
	bodies := map[string]string{
		"/sales": sampleOrder, "/sales/{sale}/rate": `{"reason":"a test","rate":7}`, "/sales/~/match": why,
		"/sales/{sale}/skus/{sku}/top-up": `{"reason":"a test","units":7}`, "/sales/{sale}/skus/{sku}/withdraw": `{"reason":"a test","units":7}`,
		"/sales/{sale}/skus/{sku}/dead-letters/revive": `{"reason":"a test","ids":["1-0"]}`,
	}
	fill := strings.NewReplacer("{sale}", "eleven", "{sku}", "phone")
	for _, to := range (&api{}).routes() {
		path, body := fill.Replace(to.path), bodies[to.path]
		if to.method == http.MethodPost && body == "" {
			body = why
		}
		if strings.HasSuffix(path, "/story") {
			path += "?user=ann"
		}
		for role, want := range map[string]int{"": http.StatusUnauthorized, "nobody": http.StatusUnauthorized, "viewer": 0, "operator": 0, "admin": 0} {
			who, _ := ParseRole(role)
			if who > 0 && who < to.role {
				want = http.StatusForbidden
			}
			if want == 0 {
				continue // what may be done is done below, when nothing is compared any more
			}
			before := r.now()
			got := r.send(role, to.method, path, body, nil).is(want)
			if want == http.StatusUnauthorized && got.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s says not how to authenticate", got.what)
			}
			if after := r.now(); after != before {
				t.Errorf("%s has changed something", got.what)
			}
		}
	}
	for _, to := range (&api{}).routes() {
		path, body := fill.Replace(to.path), bodies[to.path]
		if to.method == http.MethodPost && body == "" {
			body = why
		}
		if strings.HasSuffix(path, "/story") {
			path += "?user=ann"
		}
		for role := to.role; role <= Admin; role++ {
			got := r.send(role.String(), to.method, path, body, nil)
			if got.status == http.StatusUnauthorized || got.status == http.StatusForbidden || to.method == http.MethodGet && got.status != http.StatusOK {
				t.Errorf("%s: %d %s", got.what, got.status, got.body)
			}
		}
	}
}

// TestRoutesAreDocumented: the document has each endpoint, with its role, and no other.
func TestRoutesAreDocumented(t *testing.T) {
	t.Parallel()
	doc := document.Load(t)
	want := map[string]string{}
	for _, to := range (&api{}).routes() {
		want[to.method+" "+to.path] = to.role.String()
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if role, ok := want[method+" "+path]; !ok || op.Extensions["x-role"] != role {
				t.Errorf("%s %s is documented for %v; it is for %q", method, path, op.Extensions["x-role"], role)
			}
			delete(want, method+" "+path)
		}
	}
	if len(want) > 0 {
		t.Errorf("not documented: %v", want)
	}
}

// TestSchemasAreTheTypes: each document has the fields that the document of the API describes, and those are needed that are always there.
func TestSchemasAreTheTypes(t *testing.T) {
	t.Parallel()
	doc := document.Load(t)
	seen := map[reflect.Type]bool{}
	var check func(kind reflect.Type)
	check = func(kind reflect.Type) {
		switch kind.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			check(kind.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[kind] || kind == reflect.TypeFor[time.Time]() {
			return
		}
		seen[kind] = true
		schema := doc.Components.Schemas[kind.Name()]
		if schema == nil {
			t.Errorf("%s is not described", kind.Name())
			return
		}
		fields := map[string]bool{}
		for i := range kind.NumField() {
			field := kind.Field(i)
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			fields[name] = true
			if schema.Value.Properties[name] == nil {
				t.Errorf("%s.%s is not described", kind.Name(), name)
			}
			needed := false
			for _, one := range schema.Value.Required {
				needed = needed || one == name
			}
			if needed == strings.Contains(options, "omitempty") {
				t.Errorf("%s.%s: needed %v, with the tag %s", kind.Name(), name, needed, field.Tag)
			}
			check(field.Type)
		}
		for name := range schema.Value.Properties {
			if !fields[name] {
				t.Errorf("%s.%s is described and not there", kind.Name(), name)
			}
		}
	}
	for _, one := range []any{
		List{}, Created{}, Sale{}, Change{}, Preflight{}, Report{}, Story{}, DeadLetters{}, Revived{}, Dropped{}, Match{}, Plans{}, Problem{},
		CreateOrder{}, DropOrder{}, OpenOrder{}, StatusOrder{}, RateOrder{}, UnitsOrder{}, ReviveOrder{}, MatchOrder{},
	} {
		check(reflect.TypeOf(one))
	}
	if len(seen) != len(doc.Components.Schemas) {
		t.Errorf("%d types and %d descriptions", len(seen), len(doc.Components.Schemas))
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

// TestStory tells a shopper's whole story: what was held, paid and refused, each with its reason, and of nobody else.
func TestStory(t *testing.T) {
	t.Parallel()
	r := opened(t)
	ctx := t.Context()
	rid, _ := r.reserve("case", "ann")
	r.decide("case")
	for range 2 {
		if _, code := r.reserve("case", "bob"); code != flashsale.CodeSoldOut {
			t.Fatal(code)
		}
	}
	if _, code := r.reserve("case", "ann"); code != flashsale.CodePurchaseLimit {
		t.Fatal(code)
	}
	if _, err := r.Engine.Pay(ctx, rid, "ann"); err != nil {
		t.Fatal(err)
	}
	intent := flashsale.IntentKey(rid, 1)
	r.Must(r.Bank.Pay(intent, flashsale.PayCaptured))
	r.Clock.Pass(time.Minute)
	if _, err := r.Engine.PollOnce(ctx); err != nil {
		t.Fatal(err)
	}
	odd, _ := r.reserve("phone", "\xff\x00")
	r.decide("phone")

	var ann, bob, other Story
	r.get("viewer", "/sales/eleven/story?user=ann").is(http.StatusOK).into(&ann)
	r.get("viewer", "/sales/eleven/story?user=bob").is(http.StatusOK).into(&bob)
	r.get("viewer", "/sales/eleven/story?user=%FF%00").is(http.StatusOK).into(&other)
	if len(ann.Reservations) != 1 || ann.Reservations[0].State != "confirmed" || ann.Reservations[0].RID != rid || len(ann.Reservations[0].Payments) != 1 ||
		ann.Reservations[0].Payments[0].State != "captured" || ann.Reservations[0].Payments[0].AppliedTo != rid {
		t.Errorf("ann: %+v", ann)
	}
	if got := fmt.Sprint(codes(&ann), codes(&bob), codes(&other)); got != "[purchase_limit×1] [sold_out×2] []" {
		t.Errorf("the refusals are %s", got)
	}
	if len(bob.Reservations) != 0 || bob.Refusals.Instance != "one" || bob.Refusals.Of[0].SKU != "case" {
		t.Errorf("bob: %+v", bob)
	}
	if len(other.Reservations) != 1 || other.Reservations[0].RID != odd || string(other.UserBase64) != "\xff\x00" || other.User != "" {
		t.Errorf("the other: %+v", other)
	}
	waits, _ := r.reserve("phone", "ann")
	ann = Story{}
	r.get("viewer", "/sales/eleven/story?user=ann").is(http.StatusOK).into(&ann)
	if len(ann.Reservations) != 2 || ann.StockError != "" || ann.Reservations[0].RID != waits || ann.Reservations[0].State != "pending" ||
		ann.Reservations[0].Until == nil || ann.Reservations[0].Amount != 399900 {
		t.Errorf("with one that is pending, ann: %+v", ann)
	}
	r.Gate.Before = func(_ context.Context, call string) error {
		if call == "stock.Holds" {
			return &flashsale.Error{Code: flashsale.CodeUnavailable, Message: "redis does not answer"}
		}
		return nil
	}
	ann = Story{}
	r.get("viewer", "/sales/eleven/story?user=ann").is(http.StatusOK).into(&ann)
	if len(ann.Reservations) != 1 || !strings.Contains(ann.StockError, "redis does not answer") {
		t.Errorf("without the stock, ann: %+v", ann)
	}
	r.Gate.Before = nil
	r.get("viewer", "/sales/twelve/story?user=ann").is(http.StatusNotFound)
	r.get("viewer", "/sales/eleven/story").is(http.StatusBadRequest).says(`"field":"user"`)
	r.get("viewer", "/sales/eleven/story?user=ann&user=bob").is(http.StatusBadRequest)
	r.get("viewer", "/sales/eleven/story?user="+strings.Repeat("x", 256)).is(http.StatusBadRequest)
	r.get("viewer", "/sales/eleven/story?user=ann&nme=x").is(http.StatusBadRequest).says(`"field":"nme"`)
}

func codes(s *Story) []string {
	all := []string{}
	for _, r := range s.Refusals.Of {
		all = append(all, fmt.Sprintf("%s×%d", r.Code, r.Count))
	}
	return all
}

// TestReportAndRebuild: a stock that has lost its data is told, planned for, and loaded anew.
func TestReportAndRebuild(t *testing.T) {
	t.Parallel()
	r := opened(t)
	r.get("viewer", "/sales/eleven/report").is(http.StatusOK).says(`"ok":true`, `"broken":[]`)
	if _, err := r.Engine.ReconcileOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	rid, _ := r.reserve("phone", "ann")
	r.decide("phone")
	var report Report
	r.get("viewer", "/sales/eleven/report?sku=phone").is(http.StatusOK).into(&report)
	if len(report.Audits) != 1 || !report.Audits[0].OK || report.Audits[0].Reservations["reserved"] != 1 || len(report.Reconciliation.SKUs) != 1 || rid == "" {
		t.Errorf("got %+v", report)
	}
	var plans Plans
	before := r.now()
	r.get("viewer", "/sales/eleven/rebuild").is(http.StatusOK).into(&plans)
	if len(plans.Plans) != 2 || plans.Plans[0].To != plans.Plans[0].From+1 || plans.Plans[0].Entries != 1 || plans.Plans[0].SQL.Reserved != 1 {
		t.Errorf("got %+v", plans)
	}
	if after := r.now(); after != before {
		t.Errorf("the dry run has changed something")
	}
	var change Change
	r.post("admin", "/sales/eleven/rebuild", `{"reason":"to be sure","sku":"phone"}`).is(http.StatusOK).into(&change)
	if len(change.Operations) != 1 || change.Operations[0].State != "done" || !strings.Contains(change.Operations[0].Detail, "9 available") {
		t.Errorf("got %+v", change)
	}
	r.get("viewer", "/sales/eleven/report?sku=phone").is(http.StatusOK).says(`"ok":true`)
	r.get("viewer", "/sales/eleven/report?sku=none").is(http.StatusNotFound).says("unknown_sku")
}

func TestMatch(t *testing.T) {
	t.Parallel()
	r := opened(t)
	r.Must(func() error {
		_, err := r.Bank.Create(t.Context(), &flashsale.Intent{Key: "nobody:1", Amount: 5, Currency: "CNY"})
		return err
	}())
	r.Must(r.Bank.Pay("nobody:1", flashsale.PayCaptured))
	r.post("operator", "/sales/~/match", why).is(http.StatusOK).says(`"ok":false`, `"kind":"unknown_here"`, `"intent_key":"nobody:1"`, `"since":"2026-11-10T12:00:00Z"`)
	r.post("operator", "/sales/~/match", `{"reason":"a test","since":"2026-11-11T22:00:00+08:00"}`).is(http.StatusOK).says(`"since":"2026-11-11T14:00:00Z"`, `"ok":true`)
	r.post("operator", "/sales/~/match", `{"reason":"a test","since":"yesterday"}`).is(http.StatusBadRequest).says(`"field":"since"`)
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	r := opened(t)
	key := flashsale.Key{Sale: "eleven", SKU: "phone"}
	rid, _ := r.reserve("phone", "ann")
	r.bury(key, "a poison")
	var dead DeadLetters
	r.get("viewer", "/sales/eleven/skus/phone/dead-letters").is(http.StatusOK).into(&dead)
	if len(dead.DeadLetters) != 1 || dead.DeadLetters[0].RID != rid || dead.DeadLetters[0].Reason != "a poison" || dead.DeadLetters[0].User != "ann" {
		t.Fatalf("got %+v", dead)
	}
	revive := fmt.Sprintf(`{"reason":"mended","ids":[%q,"9-9"]}`, dead.DeadLetters[0].ID)
	r.post("operator", "/sales/eleven/skus/phone/dead-letters/revive", revive).is(http.StatusOK).says(`"revived":1`)
	r.post("operator", "/sales/eleven/skus/phone/dead-letters/revive", revive).is(http.StatusOK).says(`"revived":0`)
	r.decide("phone")
	r.get("viewer", "/sales/eleven/story?user=ann").says(`"state":"reserved"`)
	r.get("viewer", "/sales/eleven/skus/none/dead-letters").is(http.StatusNotFound)
	r.post("operator", "/sales/eleven/skus/phone/dead-letters/revive", `{"reason":"x","ids":[]}`).is(http.StatusBadRequest).says(`"field":"ids"`)
}

// TestDocumentIsServed: it is the same that the answers are held to.
func TestDocumentIsServed(t *testing.T) {
	t.Parallel()
	got := newRig(t).get("viewer", "/sales/~/openapi.json").is(http.StatusOK)
	if !bytes.Equal(got.body, openAPIDocument) || !json.Valid(got.body) {
		t.Error("another document is served")
	}
}

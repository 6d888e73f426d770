package saleadmin

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

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

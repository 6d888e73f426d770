package saleadmin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/flashsale/saletest/salerig"
)

// TestHostileBodies: nothing that is not exactly an order changes anything, and the answer names what is wrong.
func TestHostileBodies(t *testing.T) {
	t.Parallel()
	r := opened(t)
	before := r.now()
	const pause, rate, up = "/sales/eleven/pause", "/sales/eleven/rate", "/sales/eleven/skus/phone/top-up"
	for _, c := range []struct {
		path, body string
		status     int
		says       string
	}{
		{pause, ``, 400, `"field":"body"`},
		{pause, `null`, 400, "it must be a JSON object"},
		{pause, `[]`, 400, "it must be a JSON object"},
		{pause, `"reason"`, 400, "it must be a JSON object"},
		{pause, `{}`, 400, `"field":"reason"`},
		{pause, `{"reason":""}`, 400, `"field":"reason"`},
		{pause, `{"reason":" \t\n"}`, 400, `"field":"reason"`},
		{pause, `{"reason":5}`, 400, "it takes a string"},
		{pause, `{"reason":null}`, 400, `"field":"reason"`},
		{pause, `{"reason":"` + strings.Repeat("x", 501) + `"}`, 400, "501 bytes"},
		{pause, `{"reason":"a","resaon":"b"}`, 400, `"field":"resaon"`},
		{pause, `{"reason":"a","reason":"b"}`, 400, "it stands there twice"},
		{pause, `{"reason":"a","Reason":"b"}`, 400, `"field":"Reason","message":"there is no such field"`},
		{pause, `{"REASON":"a"}`, 400, `"field":"REASON","message":"there is no such field"`},
		{pause, `{"reaſon":"a","reason":"b"}`, 400, `"field":"reaſon","message":"there is no such field"`},
		{pause, `{"reason":"a","":1}`, 400, "there is no such field"},
		{up, `{"reason":"a","units":1,"unitſ":2}`, 400, `"field":"unitſ","message":"there is no such field"`},
		{pause, `{"reason":"a"} {}`, 400, "something follows"},
		{pause, `{"reason":"a"}x`, 400, "something follows"},
		{pause, `{"reason":"a"`, 400, "not one whole JSON object"},
		{pause, `{"reason":"a",}`, 400, "it is not JSON"},
		{pause, "{\"reason\":\"\xff\"}", 400, "not UTF-8"},
		{pause, `{"reason":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, 400, "nested"},
		{pause, `{"reason":"` + strings.Repeat("x", 70<<10) + `"}`, 413, "body_too_large"},
		{pause, `{"reason":"a","sku":"none"}`, 404, "unknown_sku"},
		{pause, `{"reason":"a","sku":"../x"}`, 400, ""},
		{rate, `{"reason":"a","rate":0}`, 400, `"field":"rate"`},
		{rate, `{"reason":"a","rate":1000001}`, 400, `"field":"rate"`},
		{rate, `{"reason":"a","rate":1.5}`, 400, "a whole number"},
		{rate, `{"reason":"a","rate":1e99}`, 400, "a whole number"},
		{rate, `{"reason":"a","rate":"7"}`, 400, "a whole number"},
		{up, `{"reason":"a","units":0}`, 400, `"field":"units"`},
		{up, `{"reason":"a","units":-1}`, 400, `"field":"units"`},
		{up, `{"reason":"a","units":1000000001}`, 400, `"field":"units"`},
		{up, `{"reason":"a","units":99999999999999999999}`, 400, "a whole number"},
		{"/sales/none/pause", why, 404, "unknown_sale"},
		{"/sales/eleven/skus/none/top-up", `{"reason":"a","units":1}`, 404, "unknown_sku"},
		{"/sales/a%20b/pause", why, 400, "invalid_argument"},
		{"/sales/eleven/pause?reason=x", why, 400, "there is no such parameter"},
		{"/sales/eleven/explode", why, 404, "not_found"},
		{"/sales/eleven", why, 405, "method_not_allowed"},
		{"/sales/~/pause", why, 400, ""},
	} {
		r.post("admin", c.path, c.body).is(c.status).says(c.says)
	}
	for name, header := range map[string]http.Header{
		"spaces": {IdempotencyKey: {"a b"}}, "none": {IdempotencyKey: {""}}, "two": {IdempotencyKey: {"a", "b"}},
		"long": {IdempotencyKey: {strings.Repeat("x", 61)}}, "path": {IdempotencyKey: {"../x"}},
	} {
		if got := r.send("admin", "POST", pause, why, header).is(http.StatusBadRequest); !strings.Contains(string(got.body), IdempotencyKey) {
			t.Errorf("%s: %s", name, got.body)
		}
	}
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "", "application/json-patch+json"} {
		r.send("admin", "POST", pause, why, http.Header{"Content-Type": {kind}}).is(http.StatusUnsupportedMediaType)
	}
	for path, status := range map[string]int{
		"/sales?limit=0": 400, "/sales?limit=501": 400, "/sales?limit=x": 400, "/sales?limit=1&limit=2": 400, "/sales?%zz": 400, "/sales?offset=1": 400,
		"/sales/eleven?operations=201": 400, "/sales/none": 404, "/sales/none/report": 404, "/sales/none/preflight": 404, "/sales/none/rebuild": 404,
		"/sales/eleven/skus/phone/dead-letters?limit=1001": 400, "/sales/": 404, "/sales/eleven/": 404, "/other": 404,
	} {
		r.get("admin", path).is(status)
	}
	if got := r.send("admin", "DELETE", "/sales/eleven", "", nil).is(http.StatusMethodNotAllowed); got.header.Get("Allow") == "" {
		t.Error("it is not said what is allowed")
	}
	if after := r.now(); after != before {
		t.Errorf("something has changed:\n%s\n%s", before, after)
	}
}

// TestCreateNamesFields: whatever is wrong with a sale is told with its field, and nothing is created.
func TestCreateNamesFields(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, c := range map[string]struct{ from, to, field, says string }{
		"no id":           {`"id":"eleven",`, ``, "sale.id", "is empty"},
		"dots":            {`"id":"eleven"`, `"id":".."`, "sale.id", "cannot be in a URL"},
		"id":              {`"id":"eleven"`, `"id":"a/b"`, "sale.id", "another character"},
		"currency":        {`"CNY"`, `"yuan"`, "sale.currency", "three capital letters"},
		"zone":            {`Asia/Shanghai`, `Asia/Shangri-La`, "sale.zone", "no time zone"},
		"local zone":      {`Asia/Shanghai`, `Local`, "sale.zone", "no time zone"},
		"no opening":      {`"opens_at":"2026-11-11T19:00:00",`, ``, "sale.opens_at", "is missing"},
		"a day":           {`2026-11-11T19:00:00`, `2026-11-11`, "sale.opens_at", "is no time"},
		"30 February":     {`2026-11-11T19:00:00`, `2026-02-30T19:00:00`, "sale.opens_at", "is no time"},
		"closes before":   {`2026-11-11T22:00:00`, `2026-11-11T18:00:00`, "sale.closes_at", "not after its opening"},
		"hold":            {`"currency"`, `"hold":"soon","currency"`, "sale.hold", "no length of time"},
		"long hold":       {`"currency"`, `"hold":"25h","currency"`, "sale.hold", "give 1s to 24h"},
		"no grace":        {`"currency"`, `"grace":"0s","currency"`, "sale.grace", "it is 0"},
		"rate":            {`"currency"`, `"rate":-1,"currency"`, "sale.rate", "a rate of -1"},
		"total":           {`"total":10`, `"total":-10`, "sale.skus[0].total", "a total of -10"},
		"limit":           {`"purchase_limit":2`, `"purchase_limit":-2`, "sale.skus[0].purchase_limit", "a purchase limit of -2"},
		"price":           {`"price":100}`, `"price":-100}`, "sale.skus[1].price", "a price of -100"},
		"twice":           {`"id":"case"`, `"id":"phone"`, "sale.skus[1].id", "stands there twice"},
		"misspelt":        {`"total":10`, `"totl":10`, "totl", "no such field"},
		"text for number": {`"total":10`, `"total":"10"`, "sale.skus.total", "a whole number"},
		"no skus":         {`"skus":[`, `"skus":[],"skus_":[`, "skus_", "no such field"},
		"no reason":       {`the sale of the year`, ``, "reason", "is missing"},
	} {
		body := strings.Replace(sampleOrder, c.from, c.to, 1)
		if body == sampleOrder {
			t.Fatalf("%s changes nothing", name)
		}
		var p Problem
		r.post("admin", "/sales", body).is(http.StatusBadRequest).into(&p)
		found := false
		for _, e := range p.Errors {
			found = found || e.Field == c.field && strings.Contains(e.Message, c.says)
		}
		if !found {
			t.Errorf("%s: got %+v, want %s: %s", name, p.Errors, c.field, c.says)
		}
	}
	r.get("viewer", "/sales").says(`"sales":[]`)
	r.post("admin", "/sales", `{"reason":"a","sale":{"id":"x","skus":[`+strings.Repeat(" ", 600<<10)+`]}}`).is(http.StatusRequestEntityTooLarge)
	many := &bytes.Buffer{}
	for i := range 201 {
		fmt.Fprintf(many, `,{"id":"s%d","total":1,"price":1}`, i)
	}
	r.post("admin", "/sales", strings.Replace(sampleOrder, `,{"id":"case"`, many.String()+`,{"id":"case"`, 1)).is(http.StatusBadRequest).says("203 skus")
}

// TestTimesOfZones: a time without its offset is that of clocks in the zone, and one that they skip or show twice is none.
func TestTimesOfZones(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zone, text, want, says string }{
		{"Asia/Shanghai", "2026-11-11T20:00:00", "2026-11-11T12:00:00Z", ""},
		{"", "2026-11-11T20:00:00", "2026-11-11T20:00:00Z", ""},
		{"Europe/Berlin", "2026-07-01T20:00:00", "2026-07-01T18:00:00Z", ""},
		{"Europe/Berlin", "2026-12-01T20:00:00", "2026-12-01T19:00:00Z", ""},
		{"Europe/Berlin", "2026-03-29T02:30:00", "", "skip"},
		{"Europe/Berlin", "2026-03-29T03:00:00", "2026-03-29T01:00:00Z", ""},
		{"Europe/Berlin", "2026-10-25T02:30:00", "", "2026-10-25T02:30:00+02:00 or 2026-10-25T02:30:00+01:00"},
		{"Europe/Berlin", "2026-10-25T02:30:00+01:00", "2026-10-25T01:30:00Z", ""},
		{"Europe/Berlin", "2026-10-25T03:00:00", "2026-10-25T02:00:00Z", ""},
		{"Asia/Shanghai", "2026-11-11T20:00:00-05:00", "2026-11-12T01:00:00Z", ""},
		{"Asia/Shanghai", "2026-11-11T20:00:00.5", "", "no time"},
		{"Asia/Shanghai", "2026-11-11 20:00:00", "", "no time"},
		{"Asia/Shanghai", strings.Repeat("9", 1000), "", "no time"},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		p := specProblems{}
		at := p.time("opens_at", c.text, zone)
		switch {
		case c.says == "" && (len(p.errors) > 0 || at.Format(time.RFC3339) != c.want):
			t.Errorf("%s in %s: got %s, %v; want %s", c.text, c.zone, at, p.errors, c.want)
		case c.says != "" && (len(p.errors) != 1 || !strings.Contains(p.errors[0].Message, c.says)):
			t.Errorf("%.40s in %s: got %+v, want %s", c.text, c.zone, p.errors, c.says)
		}
	}
}

// FuzzDecode: a body that is taken is one object of known fields, and is taken again when it is written anew.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{sampleOrder, why, `{"reason":"a","sale":{"skus":[{}]}}`, `{"reason":"\u0000","sale":{}}`, `[[[[`, `{"a":{"a":1,"A":2}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var o CreateOrder
		err := decode(body, &o)
		if err != nil {
			p := problemOf(err)
			if p.Status != http.StatusBadRequest || len(p.Errors) == 0 {
				t.Fatalf("%q: %+v", body, p)
			}
			return
		}
		again, err := json.Marshal(&o)
		if err != nil {
			t.Fatal(err)
		}
		var second CreateOrder
		if err := decode(again, &second); err != nil {
			t.Fatalf("%q became %q: %v", body, again, err)
		}
		_, _ = o.Sale.sale()
	})
}

// TestWithoutTheStock: SQL's figures are shown, and what needs the stock says that it may have been done.
func TestWithoutTheStock(t *testing.T) {
	t.Parallel()
	r := opened(t)
	down := &flashsale.Error{Code: flashsale.CodeUnavailable, Message: "the stock does not answer"}
	r.Gate.Before = func(_ context.Context, call string) error {
		if strings.HasPrefix(call, "stock.") {
			return down
		}
		return nil
	}
	var sale Sale
	r.get("viewer", "/sales/eleven").is(http.StatusOK).into(&sale)
	if k := sale.SKUs[0]; k.Stock != nil || k.StockError == "" || k.SQL.Available != 10 {
		t.Errorf("got %+v", k)
	}
	r.named("admin", "/sales/eleven/skus/phone/top-up", `{"reason":"more","units":5}`, "up").is(http.StatusAccepted).says(`"state":"committed"`)
	got := r.get("viewer", "/sales/eleven/skus/phone/dead-letters").is(http.StatusServiceUnavailable)
	if got.header.Get("Retry-After") == "" {
		t.Error("it is not said when to ask again")
	}
	r.Gate.Before = nil
	if _, err := r.Engine.SweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.named("admin", "/sales/eleven/skus/phone/top-up", `{"reason":"more","units":5}`, "up").is(http.StatusOK).says(`"state":"done"`)
	r.get("viewer", "/sales/eleven").says(`"stock":{"total":15,"available":15`)
}

// TestWithoutTheOrders: a sale cannot be shown without SQL, and what is known without it is said: the alarms.
func TestWithoutTheOrders(t *testing.T) {
	t.Parallel()
	r := opened(t)
	_, err := r.Bank.Create(t.Context(), &flashsale.Intent{Key: "nobody:1", Amount: 5, Currency: "CNY"})
	r.Must(err)
	r.Must(r.Bank.Pay("nobody:1", flashsale.PayCaptured))
	for range 2 {
		r.post("operator", "/sales/~/match", why).is(http.StatusOK)
	}
	r.Gate.Before = func(_ context.Context, call string) error {
		if strings.HasPrefix(call, "orders.") {
			return &flashsale.Error{Code: flashsale.CodeUnavailable, Message: "SQL does not answer"}
		}
		return nil
	}
	var p Problem
	r.get("viewer", "/sales/eleven").is(http.StatusServiceUnavailable).into(&p)
	if p.Instance == "" || len(p.Alarms) != 1 || p.Alarms[0].Kind != engine.AlarmPaymentsMatch || p.Detail != "SQL does not answer" {
		t.Errorf("got %+v", p)
	}
	r.get("viewer", "/sales/twelve/skus/phone/dead-letters").is(http.StatusServiceUnavailable).says(`"code":"unavailable"`)
}

// slowSales blocks the check before an opening until it is let go.
type slowSales struct {
	Sales
	let chan struct{}
}

func (s slowSales) Preflight(ctx context.Context) ([]engine.Finding, error) {
	select {
	case <-s.let:
	case <-ctx.Done():
	}
	return nil, ctx.Err()
}

// TestSlowIsBounded: as many slow requests as may be are under way, one more is busy, and what is quick is answered all the same.
func TestSlowIsBounded(t *testing.T) {
	t.Parallel()
	r := created(t)
	synctest.Test(t, func(t *testing.T) {
		slow := slowSales{r.Engine, make(chan struct{})}
		h, err := New(Config{Sales: slow, MaxSlow: 2, Actor: func(*http.Request) (Actor, bool) { return Actor{"me", Viewer}, true }})
		if err != nil {
			t.Fatal(err)
		}
		rig := &rig{Rig: &salerig.Rig{TB: t}, handler: h}
		done := make(chan int, 2)
		for range 2 {
			go func() { done <- rig.get("viewer", "/sales/~/preflight").status }()
		}
		synctest.Wait()
		rig.get("viewer", "/sales/~/preflight").is(http.StatusServiceUnavailable).says(`"code":"busy"`)
		rig.get("viewer", "/sales/~/openapi.json").is(http.StatusOK)
		close(slow.let)
		for range 2 {
			if status := <-done; status != http.StatusOK {
				t.Errorf("got %d", status)
			}
		}
		rig.get("viewer", "/sales/~/preflight").is(http.StatusOK)
	})
}

func TestNewNeedsItsParts(t *testing.T) {
	t.Parallel()
	actor := func(*http.Request) (Actor, bool) { return Actor{}, false }
	for want, cfg := range map[string]Config{"Sales": {Actor: actor}, "Actor": {Sales: slowSales{}}} {
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

package saleadmin

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/flashsale"
)

// clientOf is a client of a rig's handler, in a role.
func clientOf(r *rig, role string) *Client {
	r.Helper()
	srv := httptest.NewServer(r.handler)
	r.Cleanup(srv.Close)
	c, err := NewClient(ClientConfig{URL: srv.URL + "/", Token: role, Transport: srv.Client().Transport})
	r.Must(err)
	return c
}

// TestClientCalls makes every call of the client.
func TestClientCalls(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := clientOf(r, "admin")
	ctx := t.Context()
	spec := SaleSpec{ID: "eleven", Currency: "CNY", OpensAt: "2026-11-11T11:00:00Z", ClosesAt: "2026-11-11T22:00:00Z", SKUs: []SKUSpec{{ID: "a.b_c-d", Total: 5, Price: 1}}}
	made, err := c.Create(ctx, "c1", CreateOrder{Reason: "x", Sale: spec})
	if err != nil || made.OperationID != "c1" || made.Sale.ID != "eleven" {
		t.Fatalf("%+v, %v", made, err)
	}
	r.Watch()
	if p, err := c.Preflight(ctx, ""); err != nil || p.OK {
		t.Errorf("%+v, %v", p, err)
	}
	_, err = c.Open(ctx, "o1", "eleven", OpenOrder{Reason: "x"})
	if p, ok := errors.AsType[*Problem](err); !ok || p.Code != "preflight" || p.Status != http.StatusConflict || len(p.Findings) != 1 {
		t.Errorf("got %v", err)
	}
	done := func(what string) func(*Change, error) {
		return func(change *Change, err error) {
			t.Helper()
			if err != nil || len(change.Operations) != 1 || change.Operations[0].State != "done" || change.OperationID != what {
				t.Errorf("%s: %+v, %v", what, change, err)
			}
		}
	}
	done("o2")(c.Open(ctx, "o2", "eleven", OpenOrder{Reason: "x", Force: true}))
	done("t1")(c.TopUp(ctx, "t1", "eleven", "a.b_c-d", UnitsOrder{Reason: "x", Units: 2}))
	done("w1")(c.Withdraw(ctx, "w1", "eleven", "a.b_c-d", UnitsOrder{Reason: "x", Units: 1}))
	done("r1")(c.SetRate(ctx, "r1", "eleven", RateOrder{Reason: "x", SKU: "a.b_c-d", Rate: 9}))
	done("b1")(c.Rebuild(ctx, "b1", "eleven", StatusOrder{Reason: "x", SKU: "a.b_c-d"}))
	for i, verb := range []string{Pause, Resume, Drain} {
		id := fmt.Sprint("s", i)
		done(id)(c.Status(ctx, id, "eleven", verb, StatusOrder{Reason: "x", SKU: "a.b_c-d"}))
	}
	if s, err := c.Show(ctx, "eleven", Page{}); err != nil || s.SKUs[0].SQL.Total != 6 || s.SKUs[0].Status != "draining" {
		t.Errorf("%+v, %v", s, err)
	}
	if l, err := c.List(ctx, Page{Limit: 1}); err != nil || len(l.Sales) != 1 || l.Next != "" {
		t.Errorf("%+v, %v", l, err)
	}
	if s, err := c.Story(ctx, "eleven", "a&b=c \x00"); err != nil || s.User != "a&b=c \x00" {
		t.Errorf("%+v, %v", s, err)
	}
	if d, err := c.DeadLetters(ctx, "eleven", "a.b_c-d", 0); err != nil || len(d.DeadLetters) != 0 {
		t.Errorf("%+v, %v", d, err)
	}
	if n, err := c.Revive(ctx, "v1", "eleven", "a.b_c-d", ReviveOrder{Reason: "x", IDs: []string{"1"}}); err != nil || n.Revived != 0 {
		t.Errorf("%+v, %v", n, err)
	}
	if p, err := c.Report(ctx, "eleven", "", Page{}); err != nil || !p.Audits[0].OK {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := c.PlanRebuild(ctx, "eleven", "a.b_c-d", Page{}); err != nil || len(p.Plans) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	if m, err := c.Match(ctx, "m1", MatchOrder{Reason: "x"}); err != nil || !m.OK || m.OperationID != "m1" {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := c.Show(ctx, "../x", Page{}); !isProblem(err, http.StatusBadRequest, string(flashsale.CodeInvalidArgument)) {
		t.Errorf("got %v", err)
	}
}

func isProblem(err error, status int, code string) bool {
	p, ok := errors.AsType[*Problem](err)
	return ok && p.Status == status && p.Code == code
}

// TestClientMeetsOthers: what is no answer of this API is an error that says so, and the token goes nowhere else.
func TestClientMeetsOthers(t *testing.T) {
	t.Parallel()
	var stolen string
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen = r.Header.Get("Authorization") }))
	t.Cleanup(thief.Close)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		says   string
	}{
		"a redirect":    {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, thief.URL, http.StatusFound) }, "302 Found"},
		"nothing there": {http.NotFound, "it sells nothing"},
		"the gateway": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Headgate-Id", "n4m3")
			(&Problem{Status: http.StatusNotFound, Code: "not_found", Detail: "There is nothing here."}).Write(w)
		}, "it sells nothing"},
		"another token": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, "the token is not known"},
		"a page":        {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, "cannot be read"},
		"a broken one": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			_, _ = w.Write([]byte("{"))
		}, "breaks off"},
		"a false problem": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusTeapot)
			_, _ = w.Write([]byte(`[]`))
		}, "418"},
	} {
		srv := httptest.NewServer(c.answer)
		client, err := NewClient(ClientConfig{URL: srv.URL, Token: "secret", Transport: srv.Client().Transport})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.List(t.Context(), Page{}); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want %s", name, err, c.says)
		}
		srv.Close()
	}
	if stolen != "" {
		t.Errorf("the token was sent elsewhere: %s", stolen)
	}
	for _, bad := range []string{"", "127.0.0.1:9090", "ftp://x", "http://", "http://a:hunter2@b", "http://x?y=z", "http://x#y", "http://%zz"} {
		if _, err := NewClient(ClientConfig{URL: bad}); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

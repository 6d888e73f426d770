package engine

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/porttest"
)

func TestOperationsHappenOnce(t *testing.T) {
	t.Parallel()
	k := openKeep(t)
	for range 3 {
		op, err := k.engine.TopUp(t.Context(), k.command("more"), 5)
		if err != nil || op.State != flashsale.OpDone {
			t.Fatalf("%+v, %v", op, err)
		}
		if op, err = k.engine.Withdraw(t.Context(), k.command("less"), 2); err != nil || op.State != flashsale.OpDone {
			t.Fatalf("%+v, %v", op, err)
		}
		if op, err = k.engine.Withdraw(t.Context(), k.command("much"), 14); err != nil || op.State != flashsale.OpRefused || op.Detail != "14 units were asked for, and 13 are available" {
			t.Fatalf("%+v, %v", op, err)
		}
		ops, err := k.engine.SetRate(t.Context(), k.command("rate"), 77)
		if err != nil || len(ops) != 1 || ops[0].State != flashsale.OpDone {
			t.Fatalf("%+v, %v", ops, err)
		}
	}
	if v := k.view(); v.Total != 13 || v.Available != 13 || v.Settings.Rate != 77 || k.sku().Total != 13 {
		t.Errorf("%s", k)
	}
	_, err := k.engine.TopUp(t.Context(), k.command("more"), 6)
	wantCode(t, "the same id with another number", err, flashsale.CodeConflict)
	k.sound()
}

// TestRefusedStaysRefused: units that come back later do not make a withdrawal that was refused happen after all.
func TestRefusedStaysRefused(t *testing.T) {
	t.Parallel()
	k := openKeep(t)
	rid := k.held("a")
	gate := &porttest.Gate{Before: func(_ context.Context, call string) error {
		if call == "orders.FinishOperation" {
			return errDead
		}
		return nil
	}}
	op, err := k.another(gate).Withdraw(t.Context(), k.command("all"), 10)
	if err != nil || op.State != flashsale.OpBegun {
		t.Fatalf("%+v, %v", op, err)
	}
	_, err = k.engine.Cancel(t.Context(), rid, "a")
	k.must(err)
	k.once("the sweeper", k.engine.SweepOnce, 1)
	if k.view().Available != 10 || k.sku().Total != 10 {
		t.Errorf("%s", k)
	}
	if op, err = k.engine.Withdraw(t.Context(), k.command("all"), 10); err != nil || op.State != flashsale.OpRefused {
		t.Errorf("%+v, %v", op, err)
	}
	k.sound()
}

// TestWithdrawalOfWhatSQLDoesNotHave: a Stock that has units which SQL does not have has lost data.
func TestWithdrawalOfWhatSQLDoesNotHave(t *testing.T) {
	t.Parallel()
	k := openKeep(t)
	k.ghost("a")
	k.silence()
	op, err := k.engine.Withdraw(t.Context(), k.command("all"), 10)
	if err != nil || op.State != flashsale.OpBegun {
		t.Fatalf("%+v, %v", op, err)
	}
	k.once("the watcher", k.engine.WatchOnce, 1)
	k.sound()
	if op, err = k.engine.Withdraw(t.Context(), k.command("all"), 10); err != nil || op.State != flashsale.OpRefused || k.view().Available != 9 {
		t.Errorf("%+v, %v; %d available", op, err, k.view().Available)
	}
}

func TestSaleWideOperations(t *testing.T) {
	t.Parallel()
	k := newKeep(t)
	k.sale.SKUs = append(k.sale.SKUs, flashsale.SKU{ID: "case", Total: 3})
	k.must(k.engine.CreateSale(t.Context(), &k.sale))
	k.must(k.engine.CreateSale(t.Context(), &k.sale))
	k.watch()
	all := k.command("open")
	all.SKU = ""
	for range 2 {
		ops, err := k.engine.OpenSale(t.Context(), all)
		if err != nil || len(ops) != 2 || ops[0].ID != "open.1" || ops[1].ID != "open.2" || ops[1].Key.SKU != "case" || ops[1].State != flashsale.OpDone {
			t.Fatalf("%+v, %v", ops, err)
		}
	}
	for _, sku := range []string{"phone", "case"} {
		if v, err := k.stock.View(t.Context(), flashsale.Key{Sale: "eleven", SKU: sku}); err != nil || v.Settings.Status != flashsale.Open {
			t.Errorf("%s is %q", sku, v.Settings.Status)
		}
	}
	all.ID = "rebuild"
	if ops, err := k.engine.Rebuild(t.Context(), all); err != nil || len(ops) != 2 || ops[1].State != flashsale.OpDone {
		t.Errorf("%+v, %v", ops, err)
	}
}

// TestADraftHasNothingToEnd: who wants to drain or close one is told what can be done with it.
func TestADraftHasNothingToEnd(t *testing.T) {
	t.Parallel()
	k := newKeep(t)
	k.must(k.engine.CreateSale(t.Context(), &k.sale))
	k.watch()
	for id, c := range map[string]struct {
		do   func(context.Context, Command) ([]flashsale.Operation, error)
		want string
	}{
		"close": {k.engine.CloseSale, "it was never opened; drop the sale"},
		"drain": {k.engine.DrainSale, "is draft, and cannot become draining: open it first, or drop the sale"},
	} {
		_, err := c.do(t.Context(), k.command(id))
		wantCode(t, id, err, flashsale.CodeInvalidState)
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", id, err, c.want)
		}
	}
}

func TestStatusesInTheirOrder(t *testing.T) {
	t.Parallel()
	k := openKeep(t)
	k.held("a")
	step := func(id string, want flashsale.Code, do func(context.Context, Command) ([]flashsale.Operation, error)) error {
		t.Helper()
		_, err := do(t.Context(), k.command(id))
		wantCode(t, id, err, want)
		return err
	}
	_ = step("pause", "", k.engine.PauseSale)
	_, err := k.tryReserve("b")
	wantCode(t, "reserving while paused", err, flashsale.CodeNotOpen)
	_ = step("resume", "", k.engine.ResumeSale)
	k.reserve("b")
	if err := step("close-1", flashsale.CodeInvalidState, k.engine.CloseSale); !strings.Contains(err.Error(), "it is open; drain it first") {
		t.Error(err)
	}
	_ = step("drain", "", k.engine.DrainSale)
	if err := step("close-2", flashsale.CodeInvalidState, k.engine.CloseSale); !strings.Contains(err.Error(), "1 job waits") {
		t.Error(err)
	}
	if err := step("open-early", flashsale.CodeInvalidState, k.engine.OpenSale); !strings.Contains(err.Error(), "is draining, and cannot become open: it can only be closed now") {
		t.Error(err)
	}
	k.consume()
	_ = step("close-3", "", k.engine.CloseSale)
	_ = step("close-3", "", k.engine.CloseSale)
	_ = step("open-again", flashsale.CodeInvalidState, k.engine.OpenSale)
	if k.view().Settings.Status != flashsale.Closed {
		t.Errorf("the stock is %s", k.view().Settings.Status)
	}
	// Whoever holds a unit can still pay for it.
	if answer, err := k.engine.Pay(t.Context(), k.kept[0], "a"); err != nil || answer.URL == "" {
		t.Errorf("%+v, %v", answer, err)
	}
}

func TestCommandsAreChecked(t *testing.T) {
	t.Parallel()
	k := openKeep(t)
	ctx := t.Context()
	for what, c := range map[string]struct {
		change func(*Command)
		units  int64
		want   flashsale.Code
	}{
		"no id":        {func(c *Command) { c.ID = "" }, 1, flashsale.CodeInvalidArgument},
		"a long id":    {func(c *Command) { c.ID = strings.Repeat("a", 61) }, 1, flashsale.CodeInvalidArgument},
		"no reason":    {func(c *Command) { c.Reason = "" }, 1, flashsale.CodeInvalidArgument},
		"nobody":       {func(c *Command) { c.By = "" }, 1, flashsale.CodeInvalidArgument},
		"no sku":       {func(c *Command) { c.SKU = "" }, 1, flashsale.CodeInvalidArgument},
		"another sku":  {func(c *Command) { c.SKU = "tablet" }, 1, flashsale.CodeUnknownSKU},
		"another sale": {func(c *Command) { c.Sale = "twelve" }, 1, flashsale.CodeUnknownSale},
		"no units":     {func(*Command) {}, 0, flashsale.CodeInvalidArgument},
		"less than 0":  {func(*Command) {}, -5, flashsale.CodeInvalidArgument},
		"too many":     {func(*Command) {}, flashsale.MaxTotal + 1, flashsale.CodeInvalidArgument},
	} {
		command := k.command("x")
		c.change(&command)
		_, err := k.engine.TopUp(ctx, command, c.units)
		wantCode(t, "top-up, "+what, err, c.want)
		_, err = k.engine.Withdraw(ctx, command, c.units)
		wantCode(t, "withdrawal, "+what, err, c.want)
	}
	_, err := k.engine.SetRate(ctx, k.command("x"), 0)
	wantCode(t, "no rate", err, flashsale.CodeInvalidArgument)
	err = k.engine.CreateSale(ctx, &flashsale.Sale{ID: "x"})
	wantCode(t, "an empty sale", err, flashsale.CodeInvalidArgument)
	other := k.sale
	other.Title = "another"
	wantCode(t, "another sale with this id", k.engine.CreateSale(ctx, &other), flashsale.CodeExists)
	if ops, err := k.orders.OperationsOf(ctx, k.key, 10); err != nil || len(ops) != 1 {
		t.Errorf("%d operations are stored: %v", len(ops), err)
	}
	k.sound()
}

// TestAuditFinds breaks what can be broken from the outside, one after the other.
func TestAuditFinds(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		break_ func(k *keep)
		want   string
	}{
		"too much in the stock": {func(k *keep) {
			_, err := k.stock.Adjust(k.t.Context(), k.key, k.sku().Epoch, "x", 1)
			k.must(err)
		}, "I3: the stock offers 11, and SQL has 10 left"},
		"too little in the stock": {func(k *keep) {
			_, err := k.stock.Adjust(k.t.Context(), k.key, k.sku().Epoch, "x", -1)
			k.must(err)
		}, "I3: with nothing under way the stock offers 9, and SQL has 10 left"},
		"a row that the stock does not know": {func(k *keep) { k.ghost("g"); k.silence() }, "I3: the stock offers 10, and SQL has 9 left"},
		"another state": {func(k *keep) {
			rid := k.held("a")
			_, err := k.stock.Apply(k.t.Context(), k.key, k.sku().Epoch, []flashsale.Effect{{RID: rid, User: "a", Quantity: 1, State: flashsale.Confirming, Version: 2}}, nil)
			k.must(err)
		}, "I3: with nothing under way the stores say different things of "},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			k := openKeep(t)
			c.break_(k)
			report, err := k.engine.Audit(t.Context(), k.key)
			k.must(err)
			if report.OK() || !strings.Contains(report.String(), c.want) {
				t.Errorf("it says\n%swant %q", report, c.want)
			}
		})
	}
}

// TestAuditWhileUnderWay: what is on its way breaks nothing, and is said.
func TestAuditWhileUnderWay(t *testing.T) {
	t.Parallel()
	k := mixed(t)
	report, err := k.engine.Audit(t.Context(), k.key)
	k.must(err)
	if !report.OK() || report.UnderWay != "2 jobs wait to be decided" || !report.Still {
		t.Errorf("%s; %q, %v", report, report.UnderWay, report.Still)
	}
	k.newStock()
	if report, err = k.engine.Audit(t.Context(), k.key); err != nil || !report.OK() || report.UnderWay == "" {
		t.Errorf("%s; %q; %v", report, report.UnderWay, err)
	}
	_, err = k.engine.Audit(t.Context(), flashsale.Key{Sale: "eleven", SKU: "none"})
	wantCode(t, "an unknown sku", err, flashsale.CodeUnknownSKU)
}

// deadBank is a provider that does not answer, forgetful a database that can lose what was committed.
type (
	deadBank  struct{ flashsale.Payments }
	forgetful struct{ flashsale.Orders }
)

var errOff = &flashsale.Error{Code: flashsale.CodeUnavailable, Message: "it is off"}

func (deadBank) Query(context.Context, string) (*flashsale.ProviderPayment, error) {
	return nil, errOff
}
func (forgetful) Durable(context.Context) error { return errOff }

func TestPreflight(t *testing.T) {
	t.Parallel()
	k := openKeep(t)
	look := func() string {
		t.Helper()
		findings, err := k.engine.Preflight(t.Context())
		k.must(err)
		var lines []string
		for _, f := range findings {
			lines = append(lines, string(f.Severity)+" "+f.Check+" "+f.SKU+": "+f.Text)
		}
		return strings.Join(lines, "\n")
	}
	// The database in memory is not durable, and says so.
	if got := look(); !strings.Contains(got, "stops consumers : no instance is running") || strings.Contains(got, "equal") || strings.Contains(got, "clocks") || strings.Contains(got, "provider") {
		t.Errorf("ready, it finds\n%s", got)
	}
	payments, orders := k.engine.payments, k.engine.orders
	k.engine.payments, k.engine.orders = deadBank{payments}, forgetful{orders}
	if got := look(); !strings.Contains(got, "stops provider : the provider of payments does not answer: it is off") || !strings.Contains(got, "stops durable : it is off") {
		t.Errorf("with a provider that is off and commits that do not last it finds\n%s", got)
	}
	k.engine.payments, k.engine.orders = payments, orders
	k.reserve("a")
	k.clock.advance(11 * time.Second)
	if got := look(); !strings.Contains(got, "stops consumers eleven/phone: 1 job waits, the oldest for 11s") {
		t.Errorf("with a job that waits it finds\n%s", got)
	}
	k.consume()
	_, err := k.stock.Adjust(t.Context(), k.key, k.sku().Epoch, "x", 1)
	k.must(err)
	if got := look(); !strings.Contains(got, "stops equal eleven/phone: the stock has {Total:11") {
		t.Errorf("with a drift it finds\n%s", got)
	}
	k.newStock()
	if got := look(); !strings.Contains(got, "stops equal eleven/phone: the stock is not loaded: there is nothing in the store") {
		t.Errorf("with an empty stock it finds\n%s", got)
	}
	k.engine.cfg.Now = func() time.Time { return k.clock.Now().Add(-6 * time.Second) }
	k.engine.payments = nil
	if got := look(); !strings.Contains(got, "stops clocks : the clocks of the stock and of this process are 6s apart") || !strings.Contains(got, "warns provider") {
		t.Errorf("with a slow clock and no provider it finds\n%s", got)
	}
}

// notDurable is a database that may lose commits.
type notDurable struct{ flashsale.Orders }

func (notDurable) Durable(context.Context) error {
	return errorf(flashsale.CodeInvalidState, "it may lose commits")
}

// TestNothingIsOpenedThatMayLoseCommits: by whatever name it is opened.
func TestNothingIsOpenedThatMayLoseCommits(t *testing.T) {
	t.Parallel()
	k := newKeep(t)
	k.must(k.engine.CreateSale(t.Context(), &k.sale))
	k.watch()
	k.engine.orders = notDurable{k.engine.orders}
	_, err := k.engine.OpenSale(t.Context(), k.command("open"))
	wantCode(t, "opening it", err, flashsale.CodeInvalidState)
	_, err = k.engine.ResumeSale(t.Context(), k.command("resume"))
	wantCode(t, "resuming it", err, flashsale.CodeInvalidState)
	if s := k.sku(); s.Settings.Status != flashsale.Draft {
		t.Errorf("it is %s", s.Settings.Status)
	}
}

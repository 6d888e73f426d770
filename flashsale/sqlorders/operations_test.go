package sqlorders

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

func topUp(id string, delta int64) *flashsale.Operation {
	return &flashsale.Operation{ID: id, Key: testKey, Kind: flashsale.OpTopUp, Delta: delta, Reason: "more came", By: "ann"}
}

func withdraw(id string, delta int64) *flashsale.Operation {
	return &flashsale.Operation{ID: id, Key: testKey, Kind: flashsale.OpWithdraw, Delta: delta, Reason: "damaged", By: "ann"}
}

func toStatus(id string, status flashsale.Status) *flashsale.Operation {
	return &flashsale.Operation{ID: id, Key: testKey, Kind: flashsale.OpStatus, Status: status, Reason: "it is time", By: "ann"}
}

func begin(t *testing.T, o *Orders, op *flashsale.Operation, want flashsale.OperationState) *flashsale.Operation {
	t.Helper()
	got, err := o.BeginOperation(t.Context(), op)
	noError(t, op.ID, err)
	if got.State != want {
		t.Fatalf("operation %s is %s, want %s", op.ID, got.State, want)
	}
	return got
}

func totalIs(t *testing.T, o *Orders, want int64) {
	t.Helper()
	sku, err := o.SKU(t.Context(), testKey)
	noError(t, "SKU", err)
	books, err := o.Books(t.Context(), testKey)
	noError(t, "Books", err)
	if sku.Total != want || books.LedgerInitial+books.LedgerTopUp-books.LedgerWithdrawn != want {
		t.Fatalf("the total is %d, want %d; the ledger has %d + %d - %d", sku.Total, want, books.LedgerInitial, books.LedgerTopUp, books.LedgerWithdrawn)
	}
}

func TestTopUpEachStepTwice(t *testing.T) {
	t.Parallel()
	eachDBAt(t, func(t *testing.T, o *Orders, clock *handClock) {
		createSale(t, o)
		first := begin(t, o, topUp("op", 7), flashsale.OpCommitted)
		want := *topUp("op", 7)
		want.State, want.Epoch, want.CreatedAt, want.ChangedAt = flashsale.OpCommitted, 1, clock.now().UTC(), clock.now().UTC()
		if !reflect.DeepEqual(*first, want) {
			t.Fatalf("got  %+v\nwant %+v", *first, want)
		}
		clock.advance(time.Minute)
		if again := begin(t, o, topUp("op", 7), flashsale.OpCommitted); !reflect.DeepEqual(again, first) {
			t.Fatalf("again: got %+v, want %+v", again, first)
		}
		totalIs(t, o, 107)
		wantCode(t, "refuse what is committed", o.FinishOperation(t.Context(), "op", 1, flashsale.OpRefused, "no"), flashsale.CodeInvalidState)
		for range 2 {
			noError(t, "finish", o.FinishOperation(t.Context(), "op", 1, flashsale.OpDone, ""))
		}
		begin(t, o, topUp("op", 7), flashsale.OpDone)
		wantCode(t, "refuse what is done", o.FinishOperation(t.Context(), "op", 1, flashsale.OpRefused, "no"), flashsale.CodeInvalidState)
		totalIs(t, o, 107)
		open, _, err := o.OpenOperations(t.Context(), "", 10)
		noError(t, "OpenOperations", err)
		all, err := o.OperationsOf(t.Context(), testKey, 10)
		noError(t, "OperationsOf", err)
		if len(open) != 0 || len(all) != 1 || all[0].State != flashsale.OpDone || !all[0].ChangedAt.Equal(clock.now()) {
			t.Fatalf("open %+v, all %+v", open, all)
		}
	})
}

func TestWithdrawalEachStepTwice(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		ctx := t.Context()
		createSale(t, o)
		for range 2 {
			begin(t, o, withdraw("op", 30), flashsale.OpBegun)
		}
		totalIs(t, o, 100) // the Stock comes first
		wantCode(t, "done before it is committed", o.FinishOperation(ctx, "op", 1, flashsale.OpDone, ""), flashsale.CodeInvalidState)
		for range 2 {
			got, err := o.CommitWithdrawal(ctx, "op", 1)
			noError(t, "CommitWithdrawal", err)
			if got.State != flashsale.OpCommitted || got.Epoch != 1 {
				t.Fatalf("got %+v", got)
			}
			totalIs(t, o, 70)
		}
		for range 2 {
			noError(t, "finish", o.FinishOperation(ctx, "op", 1, flashsale.OpDone, ""))
		}
		got, err := o.CommitWithdrawal(ctx, "op", 1)
		noError(t, "CommitWithdrawal of what is done", err)
		if got.State != flashsale.OpDone {
			t.Fatalf("got %+v", got)
		}
		totalIs(t, o, 70)
	})
}

func TestWithdrawalThatARebuildOvertakes(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		ctx := t.Context()
		createSale(t, o)
		begin(t, o, withdraw("op", 30), flashsale.OpBegun)
		rebuild(t, o)
		wantCode(t, "refused in the epoch before", o.FinishOperation(ctx, "op", 1, flashsale.OpRefused, "too few"), flashsale.CodeStaleEpoch)
		for range 2 {
			got, err := o.CommitWithdrawal(ctx, "op", 1)
			noError(t, "CommitWithdrawal", err)
			if got.State != flashsale.OpBegun || got.Epoch != 2 {
				t.Fatalf("got %+v", got)
			}
		}
		totalIs(t, o, 100)
		got, err := o.CommitWithdrawal(ctx, "op", 2)
		noError(t, "CommitWithdrawal", err)
		if got.State != flashsale.OpCommitted {
			t.Fatalf("got %+v", got)
		}
		totalIs(t, o, 70)
	})
}

func TestWithdrawalThatIsRefused(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		ctx := t.Context()
		createSale(t, o)
		begin(t, o, withdraw("op", 30), flashsale.OpBegun)
		for range 2 {
			noError(t, "refuse", o.FinishOperation(ctx, "op", 1, flashsale.OpRefused, "only 3\x00 there "+strings.Repeat("é", 2000)))
		}
		_, err := o.CommitWithdrawal(ctx, "op", 1)
		wantCode(t, "commit what is refused", err, flashsale.CodeInvalidState)
		got := begin(t, o, withdraw("op", 30), flashsale.OpRefused)
		if !strings.HasPrefix(got.Detail, "only 3\uFFFD there éé") {
			t.Fatalf("detail %q", got.Detail)
		}
		totalIs(t, o, 100)
	})
}

func TestWithdrawalOfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		createSale(t, o)
		mustExec(t, o, "UPDATE sale_sku SET reserved = 80 WHERE sku = 'sku'")
		begin(t, o, withdraw("op", 21), flashsale.OpBegun)
		_, err := o.CommitWithdrawal(t.Context(), "op", 1)
		wantCode(t, "21 of 20", err, flashsale.CodeInvalidState)
		begin(t, o, withdraw("op2", 20), flashsale.OpBegun)
		_, err = o.CommitWithdrawal(t.Context(), "op2", 1)
		noError(t, "20 of 20", err)
	})
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		createSale(t, o)
		mustExec(t, o, "UPDATE sale_sku SET rebuilding = 0")
		version := int64(1)
		for i, step := range []struct {
			to   flashsale.Status
			code flashsale.Code
		}{
			{flashsale.Draft, flashsale.CodeInvalidState},
			{flashsale.Paused, flashsale.CodeInvalidState},
			{flashsale.Closed, flashsale.CodeInvalidState},
			{"ajar", flashsale.CodeInvalidState},
			{"", flashsale.CodeInvalidState},
			{flashsale.Open, ""},
			{flashsale.Open, flashsale.CodeInvalidState},
			{flashsale.Paused, ""},
			{flashsale.Open, ""},
			{flashsale.Draining, ""},
			{flashsale.Open, flashsale.CodeInvalidState},
			{flashsale.Closed, ""},
			{flashsale.Open, flashsale.CodeInvalidState},
		} {
			op := toStatus(fmt.Sprintf("op%d", i), step.to)
			_, err := o.BeginOperation(t.Context(), op)
			wantCode(t, fmt.Sprintf("step %d, %s", i, step.to), err, step.code)
			if step.code == "" {
				version++
				begin(t, o, op, flashsale.OpCommitted)
			}
			sku, err := o.SKU(t.Context(), testKey)
			noError(t, "SKU", err)
			if sku.Settings.Version != version || step.code == "" && sku.Settings.Status != step.to {
				t.Fatalf("step %d: got %+v, want version %d", i, sku.Settings, version)
			}
		}
		for _, op := range []*flashsale.Operation{topUp("late1", 1), withdraw("late2", 1), {ID: "late3", Key: testKey, Kind: flashsale.OpRate, Rate: 5, Reason: "x"}} {
			_, err := o.BeginOperation(t.Context(), op)
			wantCode(t, op.ID+" when closed", err, flashsale.CodeInvalidState)
		}
	})
}

func TestClosingNeedsRest(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		createSale(t, o)
		mustExec(t, o, "UPDATE sale_sku SET status = 'draining'")
		_, err := o.BeginOperation(t.Context(), toStatus("op", flashsale.Closed))
		wantCode(t, "while rebuilding", err, flashsale.CodeRebuilding)
		mustExec(t, o, "UPDATE sale_sku SET rebuilding = 0")
		query, args := insertion("outbox", nil)
		mustExec(t, o, query, args...)
		_, err = o.BeginOperation(t.Context(), toStatus("op", flashsale.Closed))
		wantCode(t, "with an unsent row", err, flashsale.CodeInvalidState)
		mustExec(t, o, "UPDATE outbox SET sku = 'other'") // another's
		begin(t, o, toStatus("op", flashsale.Closed), flashsale.OpCommitted)
		mustExec(t, o, "UPDATE outbox SET stock_sent = 1") // the other lane may wait
		op := toStatus("op2", flashsale.Closed)
		op.Key.SKU = "other"
		begin(t, o, op, flashsale.OpCommitted)
	})
}

func TestRate(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		createSale(t, o)
		op := &flashsale.Operation{ID: "op", Key: testKey, Kind: flashsale.OpRate, Rate: 77, Delta: 5, Status: flashsale.Open, Reason: "slower"}
		got := begin(t, o, op, flashsale.OpCommitted)
		if got.Rate != 77 || got.Delta != 0 || got.Status != "" {
			t.Fatalf("got %+v", got)
		}
		begin(t, o, op, flashsale.OpCommitted)
		sku, err := o.SKU(t.Context(), testKey)
		noError(t, "SKU", err)
		if sku.Settings.Rate != 77 || sku.Settings.Version != 2 || sku.Total != 100 || sku.Settings.Status != flashsale.Draft {
			t.Fatalf("got %+v", sku)
		}
	})
}

func TestAnotherOperationUnderTheSameID(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		createSale(t, o)
		begin(t, o, topUp("op", 7), flashsale.OpCommitted)
		for name, change := range map[string]func(op *flashsale.Operation){
			"delta":  func(op *flashsale.Operation) { op.Delta = 8 },
			"kind":   func(op *flashsale.Operation) { op.Kind = flashsale.OpWithdraw },
			"reason": func(op *flashsale.Operation) { op.Reason += " " },
			"by":     func(op *flashsale.Operation) { op.By = "Ann" },
			"sku":    func(op *flashsale.Operation) { op.Key.SKU = "other" },
		} {
			op := topUp("op", 7)
			change(op)
			_, err := o.BeginOperation(t.Context(), op)
			wantCode(t, name, err, flashsale.CodeConflict)
		}
		totalIs(t, o, 107)
	})
}

func TestBadOperations(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		ctx := t.Context()
		createSale(t, o)
		for name, tc := range map[string]struct {
			change func(op *flashsale.Operation)
			want   flashsale.Code
		}{
			"no id":        {func(op *flashsale.Operation) { op.ID = "" }, flashsale.CodeInvalidArgument},
			"id":           {func(op *flashsale.Operation) { op.ID = "a b" }, flashsale.CodeInvalidArgument},
			"zero":         {func(op *flashsale.Operation) { op.Delta = 0 }, flashsale.CodeInvalidArgument},
			"negative":     {func(op *flashsale.Operation) { op.Delta = -5 }, flashsale.CodeInvalidArgument},
			"huge":         {func(op *flashsale.Operation) { op.Delta = 1 << 62 }, flashsale.CodeInvalidArgument},
			"over the top": {func(op *flashsale.Operation) { op.Delta = flashsale.MaxTotal - 99 }, flashsale.CodeInvalidArgument},
			"no reason":    {func(op *flashsale.Operation) { op.Reason = "" }, flashsale.CodeInvalidArgument},
			"long reason":  {func(op *flashsale.Operation) { op.Reason = strings.Repeat("x", 501) }, flashsale.CodeInvalidArgument},
			"long by":      {func(op *flashsale.Operation) { op.By = strings.Repeat("x", 501) }, flashsale.CodeInvalidArgument},
			"kind":         {func(op *flashsale.Operation) { op.Kind = "gift" }, flashsale.CodeInvalidArgument},
			"rate":         {func(op *flashsale.Operation) { op.Kind = flashsale.OpRate }, flashsale.CodeInvalidArgument},
			"sale":         {func(op *flashsale.Operation) { op.Key.Sale = "none" }, flashsale.CodeUnknownSale},
			"sku":          {func(op *flashsale.Operation) { op.Key.SKU = "none" }, flashsale.CodeUnknownSKU},
			"zero byte":    {func(op *flashsale.Operation) { op.Key.SKU = "a\x00" }, flashsale.CodeInvalidArgument},
		} {
			op := topUp("op", 7)
			tc.change(op)
			_, err := o.BeginOperation(ctx, op)
			wantCode(t, name, err, tc.want)
		}
		totalIs(t, o, 100)
		_, err := o.CommitWithdrawal(ctx, "none", 1)
		wantCode(t, "unknown", err, flashsale.CodeNotFound)
		wantCode(t, "unknown", o.FinishOperation(ctx, "none", 1, flashsale.OpDone, ""), flashsale.CodeNotFound)
		begin(t, o, topUp("op", 7), flashsale.OpCommitted)
		wantCode(t, "a state that is no end", o.FinishOperation(ctx, "op", 1, flashsale.OpBegun, ""), flashsale.CodeInvalidArgument)
		_, err = o.CommitWithdrawal(ctx, "op", 1)
		wantCode(t, "a top-up", err, flashsale.CodeInvalidState)
	})
}

func TestOperationsInOrder(t *testing.T) {
	t.Parallel()
	eachDBAt(t, func(t *testing.T, o *Orders, clock *handClock) {
		createSale(t, o)
		for _, id := range []string{"b", "a", "c"} {
			clock.advance(time.Second)
			begin(t, o, topUp(id, 1), flashsale.OpCommitted)
		}
		ids := func(ops []flashsale.Operation, err error) (all string) {
			t.Helper()
			noError(t, "list", err)
			for i := range ops {
				all += ops[i].ID
			}
			return all
		}
		noError(t, "finish", o.FinishOperation(t.Context(), "a", 1, flashsale.OpDone, ""))
		first, next, err := o.OpenOperations(t.Context(), "", 1)
		if got := ids(first, err); got != "b" || next == "" {
			t.Fatalf("the first open one: %s, and then %q", got, next)
		}
		rest, next, err := o.OpenOperations(t.Context(), next, 2)
		if got := ids(rest, err); got != "c" || next != "" {
			t.Fatalf("after it: %s, and then %q", got, next)
		}
		_, _, err = o.OpenOperations(t.Context(), "x", 1)
		wantCode(t, "a cursor that is none", err, flashsale.CodeInvalidArgument)
		if n, err := o.OpenCount(t.Context(), testKey); n != 2 || err != nil {
			t.Fatalf("%d are open: %v", n, err)
		}
		if n, err := o.OpenCount(t.Context(), otherKey); n != 0 || err != nil {
			t.Fatalf("%d of another are open: %v", n, err)
		}
		if got := ids(o.OperationsOf(t.Context(), testKey, 10)); got != "cab" {
			t.Fatalf("all: %s", got)
		}
		if got := ids(o.OperationsOf(t.Context(), flashsale.Key{Sale: "sale", SKU: "other"}, 10)); got != "" {
			t.Fatalf("another's: %s", got)
		}
	})
}

func TestManyTopUpsAtOnce(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		createSale(t, o)
		var wg sync.WaitGroup
		for i := range 40 { // each of 20 operations by two callers
			wg.Go(func() {
				if _, err := o.BeginOperation(t.Context(), topUp(fmt.Sprintf("op%d", i/2), 1)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		totalIs(t, o, 120)
	})
}

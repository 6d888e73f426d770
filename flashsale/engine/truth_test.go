package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/memstock"
	"github.com/headgate-io/headgate/flashsale/porttest"
	"github.com/headgate-io/headgate/flashsale/sqlorders"
)

// truth is a sale that runs whole, on a stock in memory and SQLite on a disk, until stop.
type truth struct {
	*Engine
	faults *faults
	stop   func()
}

func runTruth(t *testing.T, sale *flashsale.Sale) *truth {
	t.Helper()
	f := &faults{}
	orders, err := sqlorders.Open(t.Context(), sqlorders.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "orders.db"), Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	stock := memstock.New(memstock.Config{})
	keys, err := flashsale.NewTokenKeys(flashsale.TokenKey{ID: "k1", Secret: []byte("0123456789abcdef0123456789abcdef")})
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(Config{Stock: porttest.NewStock(stock, f.gate()), Orders: porttest.NewOrders(orders, f.gate()), Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = e.Run(ctx) })
	stop := sync.OnceFunc(func() {
		cancel()
		running.Wait()
		_, _ = orders.Close(), stock.Close()
	})
	t.Cleanup(stop)
	if err := e.CreateSale(ctx, sale); err != nil {
		t.Fatal(err)
	}
	if _, err := e.OpenSale(ctx, Command{ID: "open", Sale: sale.ID, Reason: "it is time", By: "op"}); err != nil {
		t.Fatal(err)
	}
	return &truth{e, f, stop}
}

// buy gets a token and reserves, again while the stock is being loaded or an answer was lost, and waits for the final answer.
func (r *truth) buy(ctx context.Context, key flashsale.Key, user string) (Result, error) {
	token, _, err := r.Token(ctx, TokenRequest{Key: key, User: user})
	if err != nil {
		return Result{}, err
	}
	for {
		answer, err := r.Reserve(ctx, ReserveRequest{Token: token, Key: key, User: user, Quantity: 1})
		switch {
		case err == nil:
			return r.Await(ctx, key, answer.RID, user)
		case !retriable(err) || !pause(ctx, 5*time.Millisecond):
			return Result{}, err
		}
	}
}

// TestTruthOnSQLite: more shoppers than units, faults before and after every step of deciding, and in the end stock and SQL agree: all
// units are reserved, once each, and everybody has got one final answer.
func TestTruthOnSQLite(t *testing.T) {
	t.Parallel()
	now := time.Now()
	sale := &flashsale.Sale{
		ID: "eleven", Currency: "CNY", OpensAt: now.Add(-time.Hour), ClosesAt: now.Add(time.Hour), Rate: flashsale.MaxRate,
		SKUs: []flashsale.SKU{{ID: "a", Total: 100, Price: 100}, {ID: "b", Total: 50, Price: 200}},
	}
	r := runTruth(t, sale)
	every := func(n int, calls ...string) func(string) error {
		var seen int
		return func(call string) error {
			for _, c := range calls {
				if c == call {
					if seen++; seen%n == 0 {
						return errorf(flashsale.CodeUnavailable, "%s: the line is cut", call)
					}
				}
			}
			return nil
		}
	}
	r.faults.set(every(7, "orders.Decide", "stock.Apply", "stock.Pull", "stock.Reserve"), every(5, "orders.Decide", "stock.Apply", "stock.Reserve"))
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	var won, lost atomic.Int64
	var all sync.WaitGroup
	for i := range 400 {
		all.Go(func() {
			key := flashsale.Key{Sale: "eleven", SKU: string(rune('a' + i%2))}
			result, err := r.buy(ctx, key, fmt.Sprint("user-", i))
			switch {
			case err == nil && result.State == flashsale.Reserved && !result.Until.IsZero() && result.OrderID != "":
				won.Add(1)
			case flashsale.CodeOf(err) == flashsale.CodeSoldOut:
				lost.Add(1)
			default:
				t.Errorf("user-%d: %+v, %v", i, result, err)
			}
		})
	}
	all.Wait()
	r.faults.set(nil, nil)
	if won.Load() != 150 || lost.Load() != 250 {
		t.Errorf("%d won and %d lost, want 150 and 250", won.Load(), lost.Load())
	}
	for _, sku := range []string{"a", "b"} {
		key := flashsale.Key{Sale: "eleven", SKU: sku}
		for quiet := false; !quiet; {
			var err error
			if quiet, _, err = r.Quiescent(ctx, key); err != nil || !quiet && !pause(ctx, 10*time.Millisecond) {
				t.Fatalf("%s does not come to rest: %v", key, err)
			}
		}
		report, err := r.Audit(ctx, key)
		if err != nil || !report.OK() {
			t.Errorf("%s: %+v, %v", key, report, err)
		}
	}
}

// TestOneOfAThousandOnSQLite: a limit of 1 holds in both stores.
func TestOneOfAThousandOnSQLite(t *testing.T) {
	t.Parallel()
	now := time.Now()
	key := flashsale.Key{Sale: "eleven", SKU: "a"}
	r := runTruth(t, &flashsale.Sale{
		ID: "eleven", Currency: "CNY", OpensAt: now.Add(-time.Hour), ClosesAt: now.Add(time.Hour),
		SKUs: []flashsale.SKU{{ID: "a", Total: 5000, Price: 100}},
	})
	var won atomic.Int64
	var all sync.WaitGroup
	for range 1000 {
		all.Go(func() {
			switch result, err := r.buy(t.Context(), key, "one"); {
			case err == nil && result.State == flashsale.Reserved:
				won.Add(1)
			case flashsale.CodeOf(err) != flashsale.CodePurchaseLimit:
				t.Errorf("%+v, %v", result, err)
			}
		})
	}
	all.Wait()
	orders, err := r.Orders(t.Context(), "eleven", "one")
	if won.Load() != 1 || len(orders) != 1 || err != nil {
		t.Errorf("%d won, SQL has %d: %v", won.Load(), len(orders), err)
	}
}

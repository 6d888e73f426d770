package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/porttest"
)

// halfDown is a stock of which one sku lies on a node that does not answer.
type halfDown struct {
	Stock
	down  flashsale.Key
	mu    sync.Mutex
	asked int // for that sku
}

func (s *halfDown) refuse(key flashsale.Key) error {
	if key != s.down {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return errorf(flashsale.CodeUnavailable, "the node of %s does not answer", key)
}

func (s *halfDown) View(ctx context.Context, key flashsale.Key) (flashsale.StockView, error) {
	if err := s.refuse(key); err != nil {
		return flashsale.StockView{}, err
	}
	return s.Stock.View(ctx, key)
}

func (s *halfDown) Due(ctx context.Context, key flashsale.Key, epoch int64, limit int) ([]flashsale.Entry, error) {
	if err := s.refuse(key); err != nil {
		return nil, err
	}
	return s.Stock.Due(ctx, key, epoch, limit)
}

func (s *halfDown) Configure(ctx context.Context, key flashsale.Key, epoch int64, set *flashsale.Settings) error {
	if err := s.refuse(key); err != nil {
		return err
	}
	return s.Stock.Configure(ctx, key, epoch, set)
}

// openHalf is a sale of two skus, the first of which then lies on a node that does not answer.
func openHalf(t *testing.T) (*keep, *halfDown) {
	t.Helper()
	k := newKeep(t)
	first := flashsale.Key{Sale: k.key.Sale, SKU: "a-case"}
	k.sale.SKUs = append([]flashsale.SKU{{ID: first.SKU, Total: 10, PurchaseLimit: 2, Price: 100}}, k.sale.SKUs...)
	k.must(k.engine.CreateSale(t.Context(), &k.sale))
	k.watch()
	c := k.command("open")
	c.SKU = ""
	_, err := k.engine.OpenSale(t.Context(), c)
	k.must(err)
	return k, &halfDown{down: first}
}

// goDown puts the half-dead stock in front.
func (k *keep) goDown(s *halfDown) {
	s.Stock = k.engine.stock
	k.engine.stock = s
}

// TestTheWatcherSeesBehindANodeThatIsDown: what the skus of other nodes have lost is rebuilt.
func TestTheWatcherSeesBehindANodeThatIsDown(t *testing.T) {
	t.Parallel()
	k, stock := openHalf(t)
	k.newStock() // all is lost
	k.goDown(stock)
	did, err := k.engine.WatchOnce(t.Context())
	wantCode(t, "the watcher", err, flashsale.CodeUnavailable)
	if s, v := k.sku(), k.view(); did != 1 || s.Rebuilding || !v.Loaded || v.Epoch != s.Epoch {
		t.Errorf("%d were rebuilt; SQL has %+v, the stock %+v", did, s, v)
	}
}

// TestTheSweeperSweepsBehindANodeThatIsDown: what is pending on other nodes, and what only SQL decides, comes to its end.
func TestTheSweeperSweepsBehindANodeThatIsDown(t *testing.T) {
	t.Parallel()
	k, stock := openHalf(t)
	held := k.held("ann")
	k.clock.advance(flashsale.DefaultHold)
	pending := k.reserve("bob")
	k.goDown(stock)
	k.clock.advance(flashsale.PendingFor)
	_, err := k.engine.SweepOnce(t.Context())
	wantCode(t, "the sweeper", err, flashsale.CodeUnavailable)
	if a, b := k.row(held).State, k.row(pending).State; a != flashsale.Expired || b != flashsale.Rejected {
		t.Errorf("the held one is %s, the pending one %s", a, b)
	}
	if stock.asked != 1 {
		t.Errorf("the node that is down was asked %d times in a pass", stock.asked)
	}
}

// TestTheSweeperAsksSQLFirst: whoever waits for a Stock that does not answer does not make what SQL alone decides wait.
func TestTheSweeperAsksSQLFirst(t *testing.T) {
	t.Parallel()
	k := openKeep(t)
	k.held("ann")
	k.clock.advance(flashsale.DefaultHold + time.Minute)
	var calls []string
	gate := &porttest.Gate{Before: func(_ context.Context, call string) error {
		calls = append(calls, call)
		return nil
	}}
	if _, err := k.another(gate).SweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	expired := slices.Index(calls, "orders.Expire")
	asked := slices.IndexFunc(calls, func(call string) bool { return strings.HasPrefix(call, "stock.") })
	if expired < 0 || asked < expired {
		t.Errorf("the stock was asked before SQL: %v", calls)
	}
}

// TestOperationsBehindANodeThatIsDown: however many operations wait for it, those of other skus are finished, and it is asked once.
func TestOperationsBehindANodeThatIsDown(t *testing.T) {
	t.Parallel()
	k, stock := openHalf(t)
	k.goDown(stock)
	begin := func(id string, key flashsale.Key, rate int64) {
		t.Helper()
		_, err := k.orders.BeginOperation(t.Context(), &flashsale.Operation{ID: id, Key: key, Kind: flashsale.OpRate, Rate: rate, Reason: "r", By: "op"})
		k.must(err)
	}
	for i := range 120 {
		begin(fmt.Sprint("stuck-", i), stock.down, int64(i+1))
	}
	begin("last", k.key, 77)
	did, err := k.engine.finishOperations(t.Context())
	wantCode(t, "the pass", err, flashsale.CodeUnavailable)
	open, openErr := k.orders.OpenOperations(t.Context(), 1000)
	k.must(openErr)
	if did != 1 || len(open) != 120 || stock.asked != 1 {
		t.Errorf("%d were finished, %d are open, the node that is down was asked %d times", did, len(open), stock.asked)
	}
}

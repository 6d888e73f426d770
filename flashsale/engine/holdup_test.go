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
	// isBack tells that the node answers again.
	isBack bool
}

func (s *halfDown) refuse(key flashsale.Key) error {
	if key != s.down {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked++; s.isBack {
		return nil
	}
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

func (s *halfDown) Holds(ctx context.Context, key flashsale.Key, epoch int64, user string) ([]string, error) {
	if err := s.refuse(key); err != nil {
		return nil, err
	}
	return s.Stock.Holds(ctx, key, epoch, user)
}

func (s *halfDown) Apply(ctx context.Context, key flashsale.Key, epoch int64, effects []flashsale.Effect, acks []string) ([]flashsale.Applied, error) {
	if err := s.refuse(key); err != nil {
		return nil, err
	}
	return s.Stock.Apply(ctx, key, epoch, effects, acks)
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
	for i := range 120 {
		k.begin(fmt.Sprint("stuck-", i), stock.down, flashsale.OpRate)
	}
	k.begin("last", k.key, flashsale.OpRate)
	did, err := k.engine.finishOperations(t.Context())
	wantCode(t, "the pass", err, flashsale.CodeUnavailable)
	open, _, openErr := k.orders.OpenOperations(t.Context(), "", 1000)
	k.must(openErr)
	if did != 1 || len(open) != 120 || stock.asked != 1 {
		t.Errorf("%d were finished, %d are open, the node that is down was asked %d times", did, len(open), stock.asked)
	}
}

// begin leaves an operation open, as one does who dies.
func (k *keep) begin(id string, key flashsale.Key, kind flashsale.OperationKind) {
	k.t.Helper()
	op := &flashsale.Operation{ID: id, Key: key, Kind: kind, Reason: "r", By: "op"}
	if kind == flashsale.OpRate {
		op.Rate = 77
	}
	_, err := k.orders.BeginOperation(k.t.Context(), op)
	k.must(err)
}

// state is where an operation stands.
func (k *keep) state(id string, key flashsale.Key) flashsale.OperationState {
	k.t.Helper()
	ops, err := k.orders.OperationsOf(k.t.Context(), key, 10_000)
	k.must(err)
	for i := range ops {
		if ops[i].ID == id {
			return ops[i].State
		}
	}
	return ""
}

// TestOperationsBehindThousandsThatAreStuck: more of them than a pass looks at hide none of those that come after them, for longer than a
// pass, nor what is open of another sku.
func TestOperationsBehindThousandsThatAreStuck(t *testing.T) {
	t.Parallel()
	k, stock := openHalf(t)
	k.goDown(stock)
	for i := range openPage*openPages + 1 {
		k.begin(fmt.Sprint("stuck-", i), stock.down, flashsale.OpRate)
	}
	k.clock.advance(time.Second)
	k.begin("last", k.key, flashsale.OpRate)
	if quiet, what, err := k.engine.Quiescent(t.Context(), k.key); quiet || err != nil {
		t.Errorf("with an open operation it is quiescent: %t, %q, %v", quiet, what, err)
	}
	for pass := 1; k.state("last", k.key) != flashsale.OpDone; pass++ {
		if pass > 2 {
			t.Fatalf("after two passes the last one is %s", k.state("last", k.key))
		}
		_, err := k.engine.finishOperations(t.Context())
		wantCode(t, "the pass", err, flashsale.CodeUnavailable)
	}
	stock.back()
	for range 3 {
		_, err := k.engine.finishOperations(t.Context())
		k.must(err)
	}
	if n, err := k.orders.OpenCount(t.Context(), stock.down); n != 0 || err != nil {
		t.Errorf("once the node is back %d are open: %v", n, err)
	}
}

// back lets the node answer again.
func (s *halfDown) back() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isBack = true
}

// TestARebuildBehindANodeThatIsDown: one that was asked for is done though another that was asked for before cannot be.
func TestARebuildBehindANodeThatIsDown(t *testing.T) {
	t.Parallel()
	k, stock := openHalf(t)
	k.goDown(stock)
	k.begin("stuck", stock.down, flashsale.OpRebuild)
	k.begin("last", k.key, flashsale.OpRebuild)
	epoch := k.sku().Epoch
	did, err := k.engine.finishOperations(t.Context())
	wantCode(t, "the pass", err, flashsale.CodeUnavailable)
	if did != 1 || k.state("last", k.key) != flashsale.OpDone || k.state("stuck", stock.down) != flashsale.OpCommitted || k.sku().Epoch != epoch+1 {
		t.Errorf("%d were done; the one is %s, the other %s; SQL is at epoch %d", did, k.state("last", k.key), k.state("stuck", stock.down), k.sku().Epoch)
	}
}

// TestDeliveryBehindANodeThatIsDown: rows that cannot be delivered, more than a page of them, hide none of those that come after them.
func TestDeliveryBehindANodeThatIsDown(t *testing.T) {
	t.Parallel()
	k, stock := openHalf(t)
	k.goDown(stock)
	k.rejected(stock.down, deliverPage*(deliverStuck+1))
	rid := k.held("ann")
	_, err := k.orders.Cancel(t.Context(), rid, "ann", "")
	k.must(err)
	k.clock.advance(2 * deliverAge)
	for pass := 1; k.find(rid) != flashsale.Cancelled; pass++ {
		if pass > 2 {
			t.Fatalf("after two passes the stock has it as %s", k.find(rid))
		}
		asked := stock.asked
		_, err := k.engine.DeliverOnce(t.Context())
		wantCode(t, "the pass", err, flashsale.CodeUnavailable)
		if stock.asked != asked+1 {
			t.Errorf("the node that is down was asked %d times in a pass", stock.asked-asked)
		}
	}
	stock.back()
	for range 2 {
		_, err := k.engine.DeliverOnce(t.Context())
		k.must(err)
	}
	if n, err := k.orders.UnsentCount(t.Context(), stock.down); n != 0 || err != nil {
		t.Errorf("once the node is back %d rows wait: %v", n, err)
	}
}

// rejected has SQL refuse so many that have waited too long.
func (k *keep) rejected(key flashsale.Key, n int) {
	k.t.Helper()
	pending := make([]flashsale.Entry, n)
	for i := range pending {
		pending[i] = flashsale.Entry{RID: fmt.Sprint("late-", i), User: "u", Quantity: 1, State: flashsale.Pending}
	}
	_, err := k.orders.Tombstone(k.t.Context(), key, pending)
	k.must(err)
}

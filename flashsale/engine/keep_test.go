package engine

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/memstock"
	"github.com/headgate-io/headgate/flashsale/porttest"
	"github.com/headgate-io/headgate/flashsale/simpay"
	"github.com/headgate-io/headgate/flashsale/sqlorders"
)

// keep is a sale on real stores in virtual time, with an engine that nothing ever happens to, and others that meet their ends.
type keep struct {
	t        testing.TB
	clock    *virtualClock
	stock    *memstock.Stock
	orders   *sqlorders.Orders
	provider *simpay.Provider
	engine   *Engine
	told     *recorder
	sale     flashsale.Sale
	key      flashsale.Key
	// kept are rids that were accepted by a Stock that has not been lost since: each of them must end in SQL.
	kept []string
	ids  int
}

type virtualClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *virtualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *virtualClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// newKeep makes a sale of one sku, created and loaded.
func newKeep(t testing.TB) *keep {
	t.Helper()
	k := &keep{t: t, clock: &virtualClock{now: time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)}}
	now := k.clock.Now()
	k.sale = flashsale.Sale{
		ID: "eleven", Currency: "CNY", OpensAt: now.Add(-time.Hour), ClosesAt: now.Add(48 * time.Hour),
		SKUs: []flashsale.SKU{{ID: "phone", Total: 10, PurchaseLimit: 2, Price: 100}},
	}
	k.key = flashsale.Key{Sale: "eleven", SKU: "phone"}
	var err error
	k.orders, err = sqlorders.Open(t.Context(), sqlorders.Config{URL: "sqlite::memory:", Now: k.clock.Now, Timeout: patience})
	k.must(err)
	t.Cleanup(func() { _ = k.orders.Close() })
	k.provider = simpay.New(simpay.Config{Now: k.clock.Now})
	k.newStock()
	return k
}

// openKeep is newKeep, loaded and opened.
func openKeep(t testing.TB) *keep {
	t.Helper()
	k := newKeep(t)
	k.must(k.engine.CreateSale(t.Context(), &k.sale))
	k.watch()
	_, err := k.engine.OpenSale(t.Context(), k.command("open"))
	k.must(err)
	return k
}

// newStock is a process start: the Stock in memory is empty, and has another run.
func (k *keep) newStock() {
	k.t.Helper()
	if k.stock != nil {
		_ = k.stock.Close()
	}
	k.stock = memstock.New(memstock.Config{Now: k.clock.Now})
	k.kept = nil
	k.engine = k.another(nil)
}

// another is one more engine, behind a gate if there is one.
func (k *keep) another(gate *porttest.Gate) *Engine {
	k.t.Helper()
	keys, err := flashsale.NewTokenKeys(flashsale.TokenKey{ID: "k", Secret: make([]byte, 32)})
	k.must(err)
	k.told = &recorder{}
	cfg := Config{Stock: k.stock, Orders: k.orders, Payments: k.provider, Keys: keys, Now: k.clock.Now, Observer: k.told}
	if gate != nil {
		cfg.Stock, cfg.Orders, cfg.Payments = porttest.NewStock(k.stock, gate), porttest.NewOrders(k.orders, gate), porttest.NewPayments(k.provider, gate)
	}
	e, err := New(cfg)
	k.must(err)
	return e
}

func (k *keep) must(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

func (k *keep) watch() {
	k.t.Helper()
	_, err := k.engine.WatchOnce(k.t.Context())
	k.must(err)
}

func (k *keep) command(id string) Command {
	return Command{ID: id, Sale: k.key.Sale, SKU: k.key.SKU, Reason: "a test", By: "op"}
}

// reserve takes a unit, to be decided.
func (k *keep) reserve(user string) string {
	k.t.Helper()
	rid, err := k.tryReserve(user)
	k.must(err)
	k.kept = append(k.kept, rid)
	return rid
}

func (k *keep) tryReserve(user string) (string, error) {
	token, _, err := k.engine.Token(k.t.Context(), TokenRequest{Key: k.key, User: user})
	if err != nil {
		return "", err
	}
	answer, err := k.engine.Reserve(k.t.Context(), ReserveRequest{Token: token, Key: k.key, User: user, Quantity: 1})
	return answer.RID, err
}

// consume decides what waits.
func (k *keep) consume() {
	k.t.Helper()
	for range 20 {
		n, err := k.engine.ConsumeOnce(k.t.Context(), k.key, "c")
		if isEpoch(err) {
			return
		}
		k.must(err)
		if n == 0 {
			return
		}
	}
	k.t.Fatal("the queue does not become empty")
}

// held reserves a unit and has it decided.
func (k *keep) held(user string) string {
	k.t.Helper()
	rid := k.reserve(user)
	k.consume()
	if r := k.row(rid); r.State != flashsale.Reserved {
		k.t.Fatalf("%s is %s", user, r.State)
	}
	return rid
}

// paying begins to pay.
func (k *keep) paying(user string) (rid, intent string) {
	k.t.Helper()
	rid = k.held(user)
	answer, err := k.engine.Pay(k.t.Context(), rid, user)
	k.must(err)
	return rid, answer.IntentKey
}

// paid pays, and nobody has told us yet.
func (k *keep) paid(user string) string {
	k.t.Helper()
	rid, intent := k.paying(user)
	k.must(k.provider.Pay(intent, flashsale.PayCaptured))
	return rid
}

// sold is paid for, and told of.
func (k *keep) sold(user string) string {
	k.t.Helper()
	rid := k.paid(user)
	k.clock.advance(k.engine.cfg.Paying.Age + time.Millisecond)
	_, err := k.engine.PollOnce(k.t.Context())
	k.must(err)
	if r := k.row(rid); r.State != flashsale.Confirmed {
		k.t.Fatalf("what is paid is %s", r.State)
	}
	return rid
}

func (k *keep) row(rid string) *flashsale.Reservation {
	k.t.Helper()
	r, err := k.orders.Reservation(k.t.Context(), rid)
	k.must(err)
	return r
}

func (k *keep) sku() *flashsale.SKUState {
	k.t.Helper()
	s, err := k.orders.SKU(k.t.Context(), k.key)
	k.must(err)
	return s
}

func (k *keep) view() flashsale.StockView {
	k.t.Helper()
	v, err := k.stock.View(k.t.Context(), k.key)
	k.must(err)
	return v
}

// settle lets an engine that lives do what there is to do, until nothing is under way.
func (k *keep) settle() {
	k.t.Helper()
	ctx := k.t.Context()
	var why string
	for range 40 {
		k.clock.advance(1100 * time.Millisecond)
		for name, once := range map[string]func(context.Context) (int, error){
			"watch": k.engine.WatchOnce, "deliver": k.engine.DeliverOnce, "sweep": k.engine.SweepOnce, "poll": k.engine.PollOnce,
		} {
			if _, err := once(ctx); err != nil {
				k.t.Fatalf("settling, %s: %v", name, err)
			}
		}
		k.consume()
		quiet, what, err := k.engine.Quiescent(ctx, k.key)
		k.must(err)
		if quiet {
			return
		}
		why = what
	}
	k.t.Fatalf("it does not become quiescent: %s", why)
}

// sound settles, and checks every invariant that can be told from the outside.
func (k *keep) sound() {
	k.t.Helper()
	k.settle()
	ctx := k.t.Context()
	report, err := k.engine.Audit(ctx, k.key)
	k.must(err)
	if !report.OK() || report.UnderWay != "" || !report.Still {
		k.t.Fatalf("%s(under way: %q, still: %v)", report, report.UnderWay, report.Still)
	}
	if report.Books.CapturedLoose != 0 {
		k.t.Fatalf("I7: %d captured payments are neither applied nor refunded", report.Books.CapturedLoose)
	}
	rows, err := k.orders.Reservations(ctx, k.kept)
	k.must(err)
	if len(rows) != len(k.kept) {
		k.t.Fatalf("%d reservations were accepted, and %d are known", len(k.kept), len(rows))
	}
	if _, err := k.engine.ReconcileOnce(ctx); err != nil {
		k.t.Fatal(err)
	}
	if r := k.engine.LastReconciliation().Keys[0]; r.Replayed != 0 || len(r.Ahead)+len(r.Missing) != 0 || r.Skipped != "" {
		k.t.Fatalf("the reconciler finds %+v", r)
	}
}

// mixed is a sale with something in every state: sold, being paid, held, given back without the Stock's knowing, pending in the
// queue, and pending with a consumer that has gone.
func mixed(t testing.TB) *keep {
	t.Helper()
	k := openKeep(t)
	k.sold("sold")
	k.paying("paying")
	k.held("holding")
	back := k.held("back")
	_, err := k.orders.Cancel(t.Context(), back, "back", "")
	k.must(err)
	k.reserve("taken")
	if _, err := k.stock.Pull(t.Context(), k.key, k.sku().Epoch, "gone", 1, time.Minute); err != nil {
		t.Fatal(err)
	}
	k.reserve("waiting")
	return k
}

func (k *keep) String() string { return fmt.Sprintf("%+v; %+v", k.view(), k.sku()) }

package invariants

import (
	"context"
	"database/sql"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/flashsale/porttest"
	"github.com/headgate-io/headgate/flashsale/simpay"
	"github.com/headgate-io/headgate/flashsale/sqlorders"
)

const (
	price    = 500
	currency = "CNY"
	hold     = 15 * time.Minute
	payTime  = 5 * time.Minute
	grace    = 10 * time.Second
)

var (
	secretOfBank = []byte("the secret that signs webhooks")
	phone        = flashsale.Key{Sale: "eleven", SKU: "phone"}
)

// plan says what is sold. Zero is one unit to each user, sold for a day.
type plan struct {
	total, limit int64
	lasts        time.Duration
	// instances is how many engines there are, default 2.
	instances int
	bank      simpay.Behaviour
	// lease is that of jobs; where the clock runs it is short, since a release that was lost has the others wait for its end.
	lease time.Duration
}

// world is a sale of one sku on a pair of stores, with several engines that run it and a provider, all at the test's clock.
type world struct {
	*testing.T
	clock  *clock
	store  store
	sql    *sqlorders.Orders
	raw    *sql.DB
	bank   *simpay.Provider
	keys   *flashsale.TokenKeys
	limit  int64
	lease  time.Duration
	faults faults
	told   told
	// deaf has webhooks come to nobody.
	deaf atomic.Bool
	// instances are the engines; those of a store in memory end with it.
	instances atomic.Pointer[[]*engine.Engine]
	// hears gets the provider's webhooks, if it is not the first instance.
	hears      atomic.Pointer[engine.Engine]
	ids, seeds atomic.Int64
	events     events
}

// durable is a database whose server writes nothing through to the disk, which is all the same here: the machine does not crash.
type durable struct{ *sqlorders.Orders }

func (durable) Durable(context.Context) error { return nil }

func newWorld(t *testing.T, pair string, p plan) *world {
	t.Helper()
	w := &world{T: t, clock: &clock{now: time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)}, limit: max(p.limit, 1), lease: p.lease}
	w.store = storeOf(t, pair, w.clock.Now)
	address := databaseOf(t, pair)
	var err error
	w.sql, err = sqlorders.Open(t.Context(), sqlorders.Config{URL: address, Now: w.clock.Now, Timeout: 20 * time.Second})
	w.must(err)
	t.Cleanup(func() { _ = w.sql.Close() })
	w.raw = openRaw(t, pair, address)
	w.keys, err = flashsale.NewTokenKeys(flashsale.TokenKey{ID: "k", Secret: make([]byte, flashsale.MinKeyBytes)})
	w.must(err)
	w.bank = simpay.New(simpay.Config{
		Secrets: [][]byte{secretOfBank}, Now: w.clock.Now, Rand: rand.New(rand.NewPCG(1, 2)), Deliver: w.webhook, Behaviour: p.bank,
	})
	w.boot(max(p.instances, 2))
	now, lasts := w.clock.Now(), p.lasts
	if lasts == 0 {
		lasts = 24 * time.Hour
	}
	w.must(w.engine(0).CreateSale(t.Context(), &flashsale.Sale{
		ID: phone.Sale, Currency: currency, OpensAt: now, ClosesAt: now.Add(lasts), Hold: hold, PayTime: payTime, Grace: grace, Rate: flashsale.MaxRate,
		SKUs: []flashsale.SKU{{ID: phone.SKU, Total: p.total, PurchaseLimit: w.limit, Price: price}},
	}))
	w.did(w.engine(0).WatchOnce(t.Context()))
	_, err = w.engine(0).OpenSale(t.Context(), w.command("open"))
	w.must(err)
	return w
}

// boot starts engines, in place of those that there were.
func (w *world) boot(n int) {
	w.Helper()
	all := make([]*engine.Engine, n)
	for i := range all {
		all[i] = w.behind(w.faults.gate())
	}
	w.instances.Store(&all)
}

// behind is an engine behind a gate.
func (w *world) behind(gate *porttest.Gate) *engine.Engine {
	w.Helper()
	e, err := engine.New(engine.Config{
		Stock: porttest.NewStock(w.store.open(), gate), Orders: porttest.NewOrders(durable{w.sql}, gate), Payments: porttest.NewPayments(w.bank, gate),
		Relay: porttest.NewRelay(&w.events, gate), Keys: w.keys, Rand: w.random(), Now: w.clock.Now, Observer: &w.told, TokenLife: flashsale.MaxTokenLife,
		// One thing at a time: a crash at a call has a certain place.
		Paying: engine.Paying{Parallel: 1}, Consumers: engine.Consumers{Reclaim: 50 * time.Millisecond},
		Jobs: engine.Jobs{Lease: w.lease},
	})
	w.must(err)
	return e
}

// random is a source of its own for each engine, and the same in every run of a test: so are the rids that come out of it.
func (w *world) random() io.Reader {
	var seed [32]byte
	binary.BigEndian.PutUint64(seed[:], uint64(w.seeds.Add(1)))
	return rand.NewChaCha8(seed)
}

// engine is the i-th instance, as often as there are any.
func (w *world) engine(i int) *engine.Engine {
	all := *w.instances.Load()
	return all[i%len(all)]
}

// stock is the Stock itself, behind no gate.
func (w *world) stock() porttest.AnyStock { return w.store.open() }

// loseStock loses all that the Stock has. A Stock in memory is lost with the processes of its engines.
func (w *world) loseStock() {
	w.Helper()
	w.store.lose()
	w.boot(len(*w.instances.Load()))
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) did(n int, err error) int {
	w.Helper()
	w.must(err)
	return n
}

func (w *world) command(id string) engine.Command {
	return engine.Command{ID: id, Sale: phone.Sale, SKU: phone.SKU, Reason: "a test", By: "op"}
}

// webhook is where the provider's messages go.
func (w *world) webhook(ctx context.Context, header http.Header, body []byte) error {
	if w.deaf.Load() {
		return nil
	}
	if e := w.hears.Load(); e != nil {
		return e.Webhook(ctx, header, body)
	}
	return w.engine(0).Webhook(ctx, header, body)
}

// view is the Stock's.
func (w *world) view() flashsale.StockView {
	w.Helper()
	v, err := w.stock().View(w.Context(), phone)
	w.must(err)
	return v
}

func (w *world) sku() *flashsale.SKUState {
	w.Helper()
	s, err := w.sql.SKU(w.Context(), phone)
	w.must(err)
	return s
}

func (w *world) row(rid string) *flashsale.Reservation {
	w.Helper()
	r, err := w.sql.Reservation(w.Context(), rid)
	w.must(err)
	return r
}

// is fails unless SQL has a reservation in a state.
func (w *world) is(rid string, want flashsale.State) {
	w.Helper()
	if r := w.row(rid); r.State != want {
		w.Fatalf("reservation %s is %s (%s); want %s", rid, r.State, r.Reason, want)
	}
}

// entry is what the Stock has of a reservation.
func (w *world) entry(rid string) flashsale.Entry {
	w.Helper()
	found, err := w.stock().Find(w.Context(), phone, w.sku().Epoch, []string{rid})
	w.must(err)
	return found[0]
}

// clock is set by the test, and goes on by itself only where a test lets it run.
type clock struct {
	mu    sync.Mutex
	now   time.Time
	since time.Time // of the machine, while it runs
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.since.IsZero() {
		return c.now.Add(time.Since(c.since))
	}
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// set puts the clock to a time.
func (c *clock) set(to time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now, c.since = to, time.Time{}
}

// run lets the clock go on by itself; stop ends that.
func (c *clock) run() (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = time.Now()
	return func() { c.set(c.Now().Truncate(time.Microsecond)) }
}

// events are what other services were told, in the order of arrival.
type events struct {
	mu   sync.Mutex
	list []flashsale.Event
}

// Publish implements flashsale.Relay.
func (v *events) Publish(_ context.Context, list []flashsale.Event) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.list = append(v.list, list...)
	return nil
}

// Close implements flashsale.Relay.
func (*events) Close() error { return nil }

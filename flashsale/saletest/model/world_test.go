package model

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/flashsale/porttest"
	"github.com/headgate-io/headgate/flashsale/simpay"
	"github.com/headgate-io/headgate/flashsale/sqlorders"
)

// plan says what a run is made of. The seed draws everything else.
type plan struct {
	seed  uint64
	steps int
	// losses lets the Stock lose its last writes.
	losses bool
	// closing has the sale drained in the end, and closed. Others that are selling go on until all is sold.
	closing, selling bool
	// mutate puts broken ports in the place of good ones.
	mutate func(p *ports)
	// total is how many units there are, 0: a few, drawn.
	total int64
	// draft begins with a sale that is neither loaded nor open.
	draft bool
	tally *tally
	beats *atomic.Int64
}

// ports are what engines are given, behind the gate.
type ports struct {
	stock    porttest.AnyStock
	orders   flashsale.Orders
	payments flashsale.Payments
	relay    flashsale.Relay
}

// world is a sale of one sku, with all that stands behind it and several engines that run it.
type world struct {
	*sim
	plan     *plan
	sale     flashsale.Sale
	key      flashsale.Key
	stock    *lossyStock
	orders   *sqlorders.Orders
	provider *simpay.Provider
	ports    ports
	engines  []*engine.Engine
	lives    []*life
	skews    struct{ stock, sql atomic.Int64 }
	hooks    []hook // webhooks on their way
	old      []hook // some that have come
	shoppers []*shopper
	keys     *flashsale.TokenKeys
	// lostAt is SQL's epoch when the Stock has last lost writes, −1: it never has. What is loaded in a later epoch is whole again.
	lostAt int64
	lossy  bool // it has lost writes in this run
	booted int
	begun  int // operations of operators
	calm   int // the higher, the less goes wrong
	down   int // steps until the provider answers again
	blind  int // steps until a watcher looks again
	rounds int // of healing
	last   *flashsale.SKUState
	unread int // writes to SQL since its sums were looked at

	events struct { // what the relay was given, in any order and more than once
		sync.Mutex
		all []flashsale.Event
	}
}

type hook struct {
	header http.Header
	body   []byte
}

// seeded is a source of random bytes that a seed decides.
type seeded struct{ *rand.Rand }

func (s seeded) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(s.Uint32())
	}
	return len(p), nil
}

// instances is how many engines there are.
const instances = 2

// saleFor is long enough for every run, leaps of a day among them.
const saleFor = 30 * 24 * time.Hour

func newWorld(f *finding, p *plan) *world {
	w := &world{sim: newSim(f, p.seed, p.tally, p.beats), plan: p, lostAt: -1}
	w.sale = w.drawSale(w.now())
	if p.total > 0 {
		w.sale.SKUs[0].Total, w.sale.SKUs[0].PurchaseLimit = p.total, 2
	}
	w.key = flashsale.Key{Sale: w.sale.ID, SKU: w.sale.SKUs[0].ID}
	w.stock = newLossyStock(func() time.Time { return w.now().Add(time.Duration(w.skews.stock.Load())) })
	w.provider = simpay.New(simpay.Config{
		Secrets: [][]byte{make([]byte, 32)}, Now: w.now, Rand: rand.New(rand.NewPCG(p.seed, 1)), Behaviour: w.drawBehaviour(),
		Deliver: func(_ context.Context, header http.Header, body []byte) error {
			w.hooks = append(w.hooks, hook{header.Clone(), body})
			return nil
		},
	})
	var err error
	w.keys, err = flashsale.NewTokenKeys(flashsale.TokenKey{ID: "k", Secret: make([]byte, 32)})
	w.must(err)
	w.orders, err = sqlorders.Open(context.Background(), sqlorders.Config{
		URL: "sqlite::memory:", Now: func() time.Time { return w.now().Add(time.Duration(w.skews.sql.Load())) },
	})
	w.must(err)
	w.ports = ports{stock: w.stock, orders: w.orders, payments: w.provider, relay: relayTo{w}}
	if p.mutate != nil {
		p.mutate(&w.ports)
	}
	w.must(w.ports.orders.CreateSale(context.Background(), &w.sale))
	w.engines, w.lives = make([]*engine.Engine, instances), make([]*life, instances)
	for i := range instances {
		w.boot(i)
	}
	for i := range 3 + w.rng.IntN(4) {
		w.shoppers = append(w.shoppers, newShopper(string(rune('a'+i))))
	}
	if !p.draft {
		w.must2(w.engines[0].WatchOnce(context.Background()))
		w.operator("open")
	}
	return w
}

// close ends all that is left, so that the bubble can end.
func (w *world) close() {
	w.before = nil
	for _, l := range w.lives {
		l.dead.Store(true)
	}
	for range 1000 {
		w.settle()
		for len(w.waiting) > 0 {
			w.let(0, crashBefore)
		}
		w.mu.Lock()
		alive := w.alive
		w.mu.Unlock()
		if alive == 0 {
			break
		}
		w.pass(time.Second)
	}
	_ = w.orders.Close()
}

func (w *world) drawSale(opens time.Time) flashsale.Sale {
	return flashsale.Sale{
		ID: "s", Currency: "CNY", OpensAt: opens, ClosesAt: opens.Add(saleFor), Hold: time.Duration(1+w.rng.IntN(15)) * time.Minute, Rate: 1000,
		SKUs: []flashsale.SKU{{ID: "k", Total: int64(1 + w.rng.IntN(8)), PurchaseLimit: int64(1 + w.rng.IntN(3)), Price: 100}},
	}.WithDefaults()
}

func (w *world) drawBehaviour() simpay.Behaviour {
	p := func() float64 { return w.rng.Float64() * 0.3 }
	return simpay.Behaviour{
		Capture: 0.4 + p(), Fail: p(), Shopper: simpay.Range{Max: time.Duration(w.rng.IntN(240)) * time.Second}, WrongCapture: p() / 4,
		VoidLater: p(), VoidTime: simpay.Range{Max: 5 * time.Minute}, VoidTooLate: p(), Undone: p(), FailBefore: p() / 4, FailAfter: p() / 4,
		Webhook: simpay.Range{Max: time.Second}, LateBy: 10 * time.Minute, Lost: p(), Twice: p(), Late: p(), Reordered: p(), Misreport: p() / 4,
	}
}

// boot starts an engine in an instance's place: another process, that knows nothing.
func (w *world) boot(i int) {
	gate := w.gate()
	w.booted++
	e, err := engine.New(engine.Config{
		Stock: porttest.NewStock(w.ports.stock, gate), Orders: porttest.NewOrders(w.ports.orders, gate),
		Payments: porttest.NewPayments(w.ports.payments, gate), Relay: porttest.NewRelay(w.ports.relay, gate),
		Keys: w.keys, Instance: fmt.Sprintf("i%d-%d", i, w.booted), Now: w.now, Rand: seeded{rand.New(rand.NewPCG(w.plan.seed, uint64(w.booted)))},
		Observer: counting{w.tally},
		// Two calls of one name that one operation makes beside each other would stand at the gate in an order that no seed decides.
		Paying: engine.Paying{Parallel: 1},
	})
	w.must(err)
	w.engines[i], w.lives[i] = e, &life{instance: i}
}

type relayTo struct{ w *world }

func (r relayTo) Publish(_ context.Context, events []flashsale.Event) error {
	r.w.events.Lock()
	defer r.w.events.Unlock()
	r.w.events.all = append(r.w.events.all, events...)
	return nil
}

func (relayTo) Close() error { return nil }

func (w *world) must(err error) {
	if err != nil {
		w.f.Fatalf("%v", err)
	}
}

func (w *world) must2(_ any, err error) { w.must(err) }

// sku is what SQL has. It is read again if something may have been written.
func (w *world) sku() *flashsale.SKUState {
	if w.wrote {
		s, err := w.orders.SKU(context.Background(), w.key)
		w.must(err)
		w.last, w.wrote = s, false
	}
	return w.last
}

func (w *world) view() flashsale.StockView {
	v, err := w.stock.View(context.Background(), w.key)
	w.must(err)
	return v
}

// counting counts what engines tell.
type counting struct{ t *tally }

// Reserved counts T0, which no transition tells of.
func (c counting) Reserved(_, outcome string, _ time.Duration) {
	c.t.add("reserve " + outcome)
	if outcome == "accepted" {
		c.t.add("T0")
	}
}

// Moved counts transitions.
func (c counting) Moved(_, transition, reason string, _ int64) {
	c.t.add(transition)
	if reason != "" {
		c.t.add(transition + " " + reason)
	}
}

// Alarm counts alarms.
func (c counting) Alarm(kind, _ string, on bool, _ float64, _ string) {
	if on {
		c.t.add("alarm " + kind)
	}
}

// Batch counts batches.
func (c counting) Batch(string, int, int, time.Duration, time.Duration) { c.t.add("batch") }

// Backlog, like Workers, Job and Leased, is told by Run alone, which these runs do not use.
func (counting) Backlog(string, int64, int64, int64, int64, time.Duration) {}

// Workers counts nothing.
func (counting) Workers(int, string) {}

// Job counts nothing.
func (counting) Job(string, int, time.Duration, string) {}

// Leased counts nothing.
func (counting) Leased(string, bool) {}

// Rebuilt counts how rebuilds end.
func (c counting) Rebuilt(_ string, _ int64, _ time.Duration, code string) {
	c.t.add("rebuilt " + code)
}

package saletest

import (
	"context"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/flashsale/porttest"
	"github.com/headgate-io/headgate/flashsale/simpay"
	"github.com/headgate-io/headgate/flashsale/sqlorders"
)

// world is a sale of one sku, with all that stands behind it and several engines that run it.
type world struct {
	*sim
	t        *testing.T
	sale     flashsale.Sale
	key      flashsale.Key
	stock    *lossyStock
	orders   *sqlorders.Orders
	provider *simpay.Provider
	events   []flashsale.Event // what the relay was given, in any order and more than once
	engines  []*engine.Engine
	skews    struct{ stock, sql time.Duration }
	hooks    []hook
	shoppers []*shopper
	keys     *flashsale.TokenKeys
	lossy    bool // the Stock has lost writes in this run
	begun    int  // operations of operators
	lives    int  // names of engines
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

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	start := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	w := &world{sim: newSim(seed, start), t: t}
	w.sale = w.drawSale(start)
	w.key = flashsale.Key{Sale: w.sale.ID, SKU: w.sale.SKUs[0].ID}
	w.stock = newLossyStock(func() time.Time { return w.now.Add(w.skews.stock) })
	w.provider = simpay.New(simpay.Config{
		Secrets: [][]byte{make([]byte, 32)}, Now: func() time.Time { return w.now }, Rand: rand.New(rand.NewPCG(seed, 1)), Behaviour: w.drawBehaviour(),
		Deliver: func(_ context.Context, header http.Header, body []byte) error {
			w.hooks = append(w.hooks, hook{header.Clone(), body})
			return nil
		},
	})
	var err error
	w.keys, err = flashsale.NewTokenKeys(flashsale.TokenKey{ID: "k", Secret: make([]byte, 32)})
	w.must(err)
	w.orders, err = sqlorders.Open(t.Context(), sqlorders.Config{URL: "sqlite::memory:", Now: func() time.Time { return w.now.Add(w.skews.sql) }})
	w.must(err)
	w.must(w.orders.CreateSale(t.Context(), &w.sale))
	for i := range 2 {
		w.engines = append(w.engines, nil)
		w.boot(i)
	}
	for i := range 3 + w.rng.IntN(4) {
		w.shoppers = append(w.shoppers, &shopper{name: string(rune('a' + i))})
	}
	w.must2(w.engines[0].WatchOnce(t.Context()))
	w.must2(w.engines[0].OpenSale(t.Context(), engine.Command{ID: "open", Sale: "s", Reason: "it is time", By: "op"}))
	return w
}

func (w *world) close() {
	for len(w.ready) > 0 {
		w.let(0, crashBefore)
	}
	w.must(w.orders.Close())
}

func (w *world) drawSale(start time.Time) flashsale.Sale {
	s := flashsale.Sale{
		ID: "s", Currency: "CNY", OpensAt: start, ClosesAt: start.Add(6 * time.Hour), Hold: time.Duration(1+w.rng.IntN(15)) * time.Minute, Rate: 1000,
		SKUs: []flashsale.SKU{{ID: "k", Total: int64(1 + w.rng.IntN(8)), PurchaseLimit: int64(1 + w.rng.IntN(3)), Price: 100}},
	}.WithDefaults()
	return s
}

func (w *world) drawBehaviour() simpay.Behaviour {
	p := func() float64 { return w.rng.Float64() * 0.3 }
	return simpay.Behaviour{
		Capture: 0.4 + p(), Fail: p(), Shopper: simpay.Range{Max: 4 * time.Minute}, WrongCapture: p() / 4,
		VoidLater: p(), VoidTime: simpay.Range{Max: 5 * time.Minute}, VoidTooLate: p(), Undone: p(), FailBefore: p() / 4, FailAfter: p() / 4,
		Webhook: simpay.Range{Max: time.Second}, LateBy: 10 * time.Minute, Lost: p(), Twice: p(), Late: p(), Reordered: p(), Misreport: p() / 4,
	}
}

// boot starts an engine in an instance's place.
func (w *world) boot(i int) {
	gate := w.gate()
	w.lives++
	e, err := engine.New(engine.Config{
		Stock: porttest.NewStock(w.stock, gate), Orders: porttest.NewOrders(w.orders, gate), Payments: porttest.NewPayments(w.provider, gate),
		Relay: porttest.NewRelay(relayTo{w}, gate), Keys: w.keys, Instance: "i" + string(rune('0'+i)), Now: func() time.Time { return w.now },
		Rand: seeded{rand.New(rand.NewPCG(uint64(w.lives), 7))},
		// One thing at a time: who makes the next call is for the sim to draw.
		Paying: engine.Paying{Parallel: 1},
		// The heartbeats of a lease go by the process's own clock; those of this test are none, and leases end by SQL's alone.
		Jobs: engine.Jobs{Lease: leaseTime},
	})
	w.must(err)
	w.engines[i] = e
}

const leaseTime = 20 * time.Minute

type relayTo struct{ w *world }

func (r relayTo) Publish(_ context.Context, events []flashsale.Event) error {
	r.w.events = append(r.w.events, events...)
	return nil
}

func (relayTo) Close() error { return nil }

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%v\n%s", err, w.history())
	}
}

func (w *world) must2(_ any, err error) {
	w.t.Helper()
	w.must(err)
}

// Package salerig sets up a whole sale for a test: an engine on a stock in memory, SQLite and a simulated provider, all at one clock.
// Nothing runs by itself: what an instance does in its loops, a test asks for one step at a time.
package salerig

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/flashsale/memstock"
	"github.com/headgate-io/headgate/flashsale/porttest"
	"github.com/headgate-io/headgate/flashsale/simpay"
	"github.com/headgate-io/headgate/flashsale/sqlorders"
)

// Clock stands until it is moved. It begins at noon of 2026-11-11, in UTC. It is safe for concurrent use.
type Clock struct{ since atomic.Int64 }

// Now returns its time.
func (c *Clock) Now() time.Time {
	return time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC).Add(time.Duration(c.since.Load()))
}

// Pass moves it.
func (c *Clock) Pass(d time.Duration) { c.since.Add(int64(d)) }

// Config says what is not as it comes. The zero Config is good.
type Config struct {
	// Now is another clock. Default: that of the Rig.
	Now func() time.Time
	// Bank sets the provider up, but for its clock and, if it has none, its source of chance, which is the same in every run.
	Bank simpay.Config
	// Payments is what the engine is given in place of the provider, such as a client of it.
	Payments func(r *Rig) flashsale.Payments
	// Engine changes what the engine is given.
	Engine func(*engine.Config)
}

// Rig is a sale.
type Rig struct {
	testing.TB
	Clock Clock
	// Gate is before and after each call of the engine to its ports, and open. It is not to be changed while something is called.
	Gate   porttest.Gate
	Stock  *memstock.Stock
	Orders *sqlorders.Orders
	Bank   *simpay.Provider
	Keys   *flashsale.TokenKeys
	Engine *engine.Engine
}

// New sets up an engine that has no sale yet. What it opens is closed with the test.
func New(t testing.TB, cfg Config) *Rig {
	t.Helper()
	r := &Rig{TB: t}
	now := cfg.Now
	if now == nil {
		now = r.Clock.Now
	}
	var err error
	r.Orders, err = sqlorders.Open(t.Context(), sqlorders.Config{URL: "sqlite::memory:", Now: now, Timeout: time.Minute}) // the machine may stand still for a while
	r.Must(err)
	t.Cleanup(func() { _ = r.Orders.Close() })
	r.Stock = memstock.New(memstock.Config{Now: now})
	t.Cleanup(func() { _ = r.Stock.Close() })
	bank := cfg.Bank
	bank.Now = now
	if bank.Rand == nil {
		bank.Rand = rand.New(rand.NewPCG(1, 7))
	}
	r.Bank = simpay.New(bank)
	r.Keys, err = flashsale.NewTokenKeys(flashsale.TokenKey{ID: "k1", Secret: []byte("0123456789abcdef0123456789abcdef")})
	r.Must(err)
	var payments flashsale.Payments = r.Bank
	if cfg.Payments != nil {
		payments = cfg.Payments(r)
	}
	parts := engine.Config{
		Stock: porttest.NewStock(r.Stock, &r.Gate), Orders: porttest.NewOrders(r.Orders, &r.Gate), Payments: porttest.NewPayments(payments, &r.Gate),
		RefusalLog: r.Stock, Keys: r.Keys, Now: now, Instance: "one", Rand: rand.NewChaCha8([32]byte{}), Paying: engine.Paying{Parallel: 1},
	}
	if cfg.Engine != nil {
		cfg.Engine(&parts)
	}
	r.Engine, err = engine.New(parts)
	r.Must(err)
	return r
}

// Must ends the test on an error.
func (r *Rig) Must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// Create makes a sale and loads it.
func (r *Rig) Create(sale *flashsale.Sale) {
	r.Helper()
	r.Must(r.Engine.CreateSale(r.Context(), sale))
	r.Watch()
}

// Open opens a sale that has been created.
func (r *Rig) Open(sale string) {
	r.Helper()
	_, err := r.Engine.OpenSale(r.Context(), engine.Command{ID: "open-" + sale, Sale: sale, Reason: "it is time", By: "a test"})
	r.Must(err)
}

// Watch is one look of the watcher.
func (r *Rig) Watch() {
	r.Helper()
	_, err := r.Engine.WatchOnce(r.Context())
	r.Must(err)
}

// Consume decides what waits.
func (r *Rig) Consume(key flashsale.Key) {
	r.Helper()
	_, err := r.Engine.ConsumeOnce(r.Context(), key, "one")
	r.Must(err)
}

// Ask asks for a unit for a user, and returns the code of the refusal, "" if there is none.
func (r *Rig) Ask(key flashsale.Key, user string) (rid string, code flashsale.Code) {
	r.Helper()
	token, _, err := r.Engine.Token(r.Context(), engine.TokenRequest{Key: key, User: user})
	if err != nil {
		return "", flashsale.CodeOf(err)
	}
	a, err := r.Engine.Reserve(r.Context(), engine.ReserveRequest{Token: token, Key: key, User: user, Quantity: 1})
	return a.RID, flashsale.CodeOf(err)
}

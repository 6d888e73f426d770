package demo

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/salehttp"
	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/policy"
)

// guard puts the policy of the shop to work on a store in memory.
func guard(t *testing.T) *policy.Engine {
	t.Helper()
	p, err := Policy()
	if err != nil {
		t.Fatal(err)
	}
	store := memstore.New(memstore.Config{})
	t.Cleanup(func() { _ = store.Close() })
	e, err := policy.NewEngine(p, store, policy.EngineConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestTwoDemosOnOneDatabase: the second is refused.
func TestTwoDemosOnOneDatabase(t *testing.T) {
	t.Parallel()
	cfg := Config{Duration: time.Second, Sale: SaleStores{DB: "sqlite::memory:"}}.WithDefaults()
	m, err := openMarket(t.Context(), cfg, nobody)
	if err != nil {
		t.Fatal(err)
	}
	second := &market{cfg: cfg, books: m.books, key: flashsale.Key{Sale: salePrefix + "second"}}
	if err := second.alone(t.Context()); err == nil || !strings.Contains(err.Error(), "another demo uses this database") {
		t.Errorf("got %v", err)
	}
	if err := m.close(); err != nil {
		t.Error(err)
	}
}

// TestOnServers: the sale keeps its word on a Redis and a PostgreSQL as well, also where a demo was before.
func TestOnServers(t *testing.T) {
	redis := testservers.Redis(t)
	db := testservers.Postgres(t, testservers.DurableData()).Database(t)
	for seed := range uint64(2) {
		sum := untilSold(t, 5*time.Second, func(d time.Duration) Config {
			return Config{Decider: guard(t), Duration: d, Shoppers: 40, Bots: 5, Stock: 10, Seed: seed, Sale: SaleStores{DB: db, StockAddr: redis.Addr()}}
		})
		if a := sum.Sale; !sum.Invariants.OK || !sum.Invariants.Settled || a.Sold == 0 || a.Sold+a.Unsold != 10 || a.Paid-a.Refunded != a.Sold {
			t.Errorf("seed %d: %+v, %+v", seed, a, sum.Invariants)
		}
		if strings.Contains(sum.DB, "s3cret") || !strings.HasPrefix(sum.DB, "postgres://headgate@127.0.0.1:") || sum.Stock != redis.Addr() {
			t.Errorf("the summary names %q and %q", sum.DB, sum.Stock)
		}
	}
}

// untilSold runs a demo, and in more time again where it was too short: where the machine has other work to do, nobody may have bought
// anything, or have come to the end of it.
func untilSold(t *testing.T, d time.Duration, cfg func(time.Duration) Config) *Summary {
	t.Helper()
	for most := 16 * d; ; d *= 2 {
		sum, err := Run(t.Context(), cfg(d))
		if err != nil {
			t.Fatal(err)
		}
		if d == most || !sum.Invariants.OK || sum.Sale.Sold > 1 && sum.Invariants.Settled {
			return sum
		}
		t.Logf("in %s: %+v, %+v", d, sum.Sale, sum.Invariants)
	}
}

// liar is a database whose books say, as soon as something was sold, that it was one unit more.
type liar struct{ flashsale.Orders }

func (l liar) Books(ctx context.Context, key flashsale.Key) (*flashsale.Books, error) {
	b, err := l.Orders.Books(ctx, key)
	if err == nil && b.State.Sold > 0 {
		b.State.Sold++
	}
	return b, err
}

// forgetful is one that has lost every reservation.
type forgetful struct{ flashsale.Orders }

func (f forgetful) Reservations(ctx context.Context, rids []string) ([]flashsale.Reservation, error) {
	if len(rids) < 2 { // the engine goes on as long as it asks for one
		return f.Orders.Reservations(ctx, rids)
	}
	return nil, nil
}

// TestBrokenInvariant: what a sale does not keep is found.
func TestBrokenInvariant(t *testing.T) {
	for name, c := range map[string]struct {
		wrap func(flashsale.Orders) flashsale.Orders
		says string
	}{
		"ledger": {func(o flashsale.Orders) flashsale.Orders { return liar{o} }, "I4: SQL counts "},
		"lost":   {func(o flashsale.Orders) flashsale.Orders { return forgetful{o} }, ", and there is none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sum := untilSold(t, 4*time.Second, func(d time.Duration) Config {
				return Config{
					Decider: guard(t), Duration: d, Shoppers: 30, Bots: -1, Stock: 3, wrapBooks: c.wrap,
					replan: func(p *plan) { p.opens = time.Now().Add(time.Second) }, // most come later
				}
			})
			if sum.Invariants.OK || !strings.Contains(strings.Join(sum.Invariants.Broken, "\n"), c.says) {
				t.Errorf("want %q: %+v, %+v", c.says, sum.Invariants, sum.Sale)
			}
		})
	}
}

// TestRefusesOthersDatabase: the engine would take over the sales that it finds.
func TestRefusesOthersDatabase(t *testing.T) {
	t.Parallel()
	file := "sqlite:" + t.TempDir() + "/sale.db"
	cfg := Config{Decider: guard(t), Duration: time.Second, Shoppers: -1, Bots: -1, Sale: SaleStores{DB: file}}
	if _, err := Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), cfg); err != nil {
		t.Errorf("after a demo: %v", err)
	}
	m, err := openMarket(t.Context(), cfg.WithDefaults(), nobody)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), cfg); err == nil {
		t.Error("two demos on one file")
	}
	now := time.Now()
	err = m.CreateSale(t.Context(), &flashsale.Sale{ID: "spring", Currency: "EUR", OpensAt: now, ClosesAt: now.Add(time.Hour), SKUs: []flashsale.SKU{{ID: "mug"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), `has the sale "spring"`) {
		t.Errorf("got %v", err)
	}
}

// TestAnswers: whoever was told the end is not told another.
func TestAnswers(t *testing.T) {
	t.Parallel()
	a := newAnswers()
	for _, r := range []result{{RID: "r1", State: "pending"}, {RID: "r1", State: "reserved"}, {RID: "r1", State: "expired"}, {RID: "r1", State: "reserved"}, {}} {
		a.hear("u1", &r)
	}
	if of, wrong := a.all(); len(wrong) != 0 || len(of) != 1 || of["r1"] != (told{"u1", "expired", true}) {
		t.Errorf("%v, %q", of, wrong)
	}
	a.hear("u1", &result{RID: "r1", State: "confirmed"})
	a.hear("u2", &result{RID: "r1", State: "expired"})
	if _, wrong := a.all(); len(wrong) != 2 || !strings.Contains(wrong[0], "is expired, and then that it is confirmed") || !strings.Contains(wrong[1], "is u1's") {
		t.Errorf("%q", wrong)
	}
	for state, row := range map[string]*flashsale.Reservation{
		"pending": nil, "confirmed": {User: "u1", State: flashsale.Expired}, "expired": {User: "u2", State: flashsale.Expired}, "reserved": {User: "u1", State: flashsale.Reserved},
	} {
		v := Invariants{Settled: true}
		_, known := flashsale.ParseState(state)
		checkAnswer(&v, "r1", told{"u1", state, known && state != "pending" && state != "reserved"}, row)
		if len(v.Broken) != 1 {
			t.Errorf("%s: %q", state, v.Broken)
		}
	}
}

var _ salehttp.Identity = nobody

package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/memstock"
	"github.com/headgate-io/headgate/flashsale/porttest"
	"github.com/headgate-io/headgate/flashsale/simpay"
	"github.com/headgate-io/headgate/flashsale/sqlorders"
)

// till is a sale with its payments: a stock in memory, SQLite, a provider, and an engine, all at one virtual clock. It is for one
// goroutine.
type till struct {
	t     testing.TB
	now   time.Time
	key   flashsale.Key
	stock *memstock.Stock
	sql   *sqlorders.Orders
	bank  *simpay.Provider
	gate  porttest.Gate // before and after each call of a port
	e     *Engine
	told  told
	// deaf has webhooks come to nobody.
	deaf    bool
	refused []error // what Webhook has answered, but for nil
	shopped int
}

// tillPlan says what is sold. Zero is one unit to each user, at 500 EUR cents.
type tillPlan struct {
	total, limit int64
	seed         uint64
	bank         simpay.Behaviour
}

const (
	tillPrice = 500
	hold      = 15 * time.Minute
	grace     = 10 * time.Second
)

var secretOfBank = []byte("the secret that signs webhooks")

func openTill(t testing.TB, plan tillPlan) *till {
	t.Helper()
	c := &till{t: t, now: time.Unix(1_800_000_000, 0), key: flashsale.Key{Sale: "eleven", SKU: "phone"}, told: told{alarms: map[string]bool{}, moved: map[string]int{}}}
	clock := func() time.Time { return c.now }
	orders, err := sqlorders.Open(t.Context(), sqlorders.Config{URL: "sqlite::memory:", Now: clock, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = orders.Close() })
	c.sql, c.stock = orders, memstock.New(memstock.Config{Now: clock})
	t.Cleanup(func() { _ = c.stock.Close() })
	c.bank = simpay.New(simpay.Config{
		Secrets: [][]byte{secretOfBank}, Now: clock, Rand: rand.New(rand.NewPCG(plan.seed, 7)), Deliver: c.webhook, Behaviour: plan.bank,
	})
	c.start()
	sale := &flashsale.Sale{
		ID: c.key.Sale, Title: "Eleven", Currency: "EUR", OpensAt: c.now.Add(-time.Hour), ClosesAt: c.now.Add(30 * 24 * time.Hour), Hold: hold, Grace: grace,
		SKUs: []flashsale.SKU{{ID: c.key.SKU, Title: "Phone", Total: plan.total, PurchaseLimit: max(plan.limit, 1), Price: tillPrice}},
	}
	c.must(c.e.CreateSale(t.Context(), sale))
	c.did(c.e.WatchOnce(t.Context()))
	_, err = c.e.OpenSale(t.Context(), Command{ID: "open", Sale: c.key.Sale, Reason: "it is time", By: "test"})
	c.must(err)
	return c
}

// start makes another engine, as after a crash.
func (c *till) start() {
	c.t.Helper()
	keys, err := flashsale.NewTokenKeys(flashsale.TokenKey{ID: "k1", Secret: []byte("0123456789abcdef0123456789abcdef")})
	c.must(err)
	c.e, err = New(Config{
		Stock: porttest.NewStock(c.stock, &c.gate), Orders: porttest.NewOrders(c.sql, &c.gate), Payments: porttest.NewPayments(c.bank, &c.gate),
		Keys: keys, Now: func() time.Time { return c.now }, Observer: &c.told, Paying: Paying{Parallel: 1},
	})
	c.must(err)
}

func (c *till) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *till) did(n int, err error) int {
	c.t.Helper()
	c.must(err)
	return n
}

// webhook is where the provider's messages go.
func (c *till) webhook(ctx context.Context, header http.Header, body []byte) error {
	if c.deaf {
		return nil
	}
	err := c.e.Webhook(ctx, header, body)
	if err != nil {
		c.refused = append(c.refused, err)
	}
	return err
}

// event sends a message as the provider would.
func (c *till) event(id, intent string, status flashsale.PayStatus, amount int64, currency string) error {
	body := fmt.Appendf(nil, `{"id":%q,"data":{"intent":%q,"status":%q,"amount":%d,"currency":%q}}`, id, intent, status, amount, currency)
	return c.e.Webhook(c.t.Context(), http.Header{simpay.SignatureHeader: {simpay.Sign([][]byte{secretOfBank}, c.now, body)}}, body)
}

// reserve reserves units for a user, down to SQL, and returns the rid.
func (c *till) reserve(user string, quantity int64) string {
	c.t.Helper()
	rid := c.ask(user, quantity)
	c.did(c.e.ConsumeOnce(c.t.Context(), c.key, "c"))
	c.is(rid, flashsale.Reserved)
	return rid
}

// ask is T0.
func (c *till) ask(user string, quantity int64) string {
	c.t.Helper()
	c.shopped++
	rid := fmt.Sprintf("r%d", c.shopped)
	a, err := c.e.take(c.t.Context(), c.key, &flashsale.Ask{RID: rid, User: user, Quantity: quantity, Body: flashsale.BodyHash(c.key, user, quantity)})
	if err != nil || !a.Accepted {
		c.t.Fatalf("reserve for %s: %+v, %v", user, a, err)
	}
	return rid
}

// begin begins to pay and returns the intent's key.
func (c *till) begin(rid, user string) string {
	c.t.Helper()
	a, err := c.e.Pay(c.t.Context(), rid, user)
	if err != nil || a.State != flashsale.Confirming || !strings.HasPrefix(a.URL, "https://") {
		c.t.Fatalf("pay %s: %+v, %v", rid, a, err)
	}
	return a.IntentKey
}

// pass lets time pass at the provider.
func (c *till) pass(d time.Duration) {
	c.t.Helper()
	end := c.now.Add(d)
	for {
		_, next := c.bank.Step(c.t.Context())
		if next.IsZero() || next.After(end) {
			c.now = end
			return
		}
		c.now = next
	}
}

// jobs runs the jobs until nothing moves.
func (c *till) jobs() {
	c.t.Helper()
	ctx := c.t.Context()
	for range 20 {
		n := c.did(c.e.PollOnce(ctx)) + c.did(c.e.ConsumeOnce(ctx, c.key, "c")) + c.did(c.e.DeliverOnce(ctx)) + c.did(c.e.SweepOnce(ctx))
		if n == 0 {
			return
		}
	}
	c.t.Fatal("the jobs find no end")
}

func (c *till) row(rid string) *flashsale.Reservation {
	c.t.Helper()
	r, err := c.sql.Reservation(c.t.Context(), rid)
	c.must(err)
	return r
}

func (c *till) is(rid string, want flashsale.State) {
	c.t.Helper()
	if r := c.row(rid); r.State != want {
		c.t.Fatalf("reservation %s is %s (%s); want %s", rid, r.State, r.Reason, want)
	}
}

func (c *till) paid(intent string, want flashsale.PaymentState, appliedTo string) {
	c.t.Helper()
	p, err := c.sql.Payment(c.t.Context(), intent)
	c.must(err)
	if p.State != want || p.AppliedTo != appliedTo {
		c.t.Fatalf("payment %s is %s (%s), applied to %q; want %s, %q", intent, p.State, p.Reason, p.AppliedTo, want, appliedTo)
	}
}

// bankHas is what the provider has of an intent.
func (c *till) bankHas(intent string, want flashsale.PayStatus) {
	c.t.Helper()
	if r, _ := c.bank.Record(intent); r.Status != want {
		c.t.Fatalf("the provider has %s as %+v; want %s", intent, r, want)
	}
}

// holds checks that every payment at the provider has come to its end (I7), that nobody is charged twice, and all books, once
// nothing is under way.
func (c *till) holds() {
	c.t.Helper()
	ctx := c.t.Context()
	charged := map[string]string{}
	for r := range c.bank.Records() {
		if r.Captures > 1 || r.Refunds > r.Captures {
			c.t.Errorf("the provider has captured or refunded %s twice: %+v", r.Intent.Key, r)
		}
		rid, _, _ := strings.Cut(r.Intent.Key, ":")
		p, err := c.sql.Payment(ctx, r.Intent.Key)
		c.must(err)
		if !r.Charged() {
			if p.AppliedTo != "" || p.State == flashsale.PaymentCaptured || p.State == flashsale.PaymentRefunding {
				c.t.Errorf("payment %s is %s here, applied to %q, and nothing is charged: %+v", r.Intent.Key, p.State, p.AppliedTo, r)
			}
			continue
		}
		if before := charged[rid]; before != "" {
			c.t.Errorf("reservation %s is charged twice: %s and %s", rid, before, r.Intent.Key)
		}
		charged[rid] = r.Intent.Key
		if p.State != flashsale.PaymentCaptured || p.AppliedTo == "" {
			c.t.Errorf("I7: payment %s is charged, and here %s (%s), applied to %q", r.Intent.Key, p.State, p.Reason, p.AppliedTo)
			continue
		}
		if row := c.row(p.AppliedTo); row.State != flashsale.Confirmed || row.Quantity*tillPrice != r.Amount || r.Currency != "EUR" {
			c.t.Errorf("payment %s of %d %s has paid %+v", r.Intent.Key, r.Amount, r.Currency, row)
		}
	}
	report, err := c.e.Audit(ctx, c.key)
	c.must(err)
	if !report.OK() || report.UnderWay != "" {
		c.t.Errorf("under way: %q; broken:\n%s", report.UnderWay, report)
	}
	if b := &report.Books; b.CapturedLoose != 0 || b.OrdersPaid != b.Rows[flashsale.Confirmed] || int64(len(charged)) != b.OrdersPaid {
		c.t.Errorf("%d are charged, %d orders paid, %d confirmed, %d captures loose", len(charged), b.OrdersPaid, b.Rows[flashsale.Confirmed], b.CapturedLoose)
	}
}

// told is what observers were told.
type told struct {
	nobody
	mu     sync.Mutex
	alarms map[string]bool
	moved  map[string]int
}

func (o *told) Alarm(kind, _ string, on bool, _ float64, _ string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.alarms[kind] = on
}

func (o *told) Moved(_, transition, reason string, _ int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.moved[transition]++
	o.moved[transition+" "+reason]++
}

func codeIs(t testing.TB, err error, want flashsale.Code) {
	t.Helper()
	if got := flashsale.CodeOf(err); got != want || err == nil {
		t.Fatalf("error %v has code %q; want %q", err, got, want)
	}
}

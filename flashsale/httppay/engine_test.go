package httppay

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/flashsale/memstock"
	"github.com/headgate-io/headgate/flashsale/simpay"
	"github.com/headgate-io/headgate/flashsale/sqlorders"
)

// till is a whole sale at a virtual clock, paid through a provider that is asked directly or over HTTP.
type till struct {
	t      *testing.T
	clock  *clock
	key    flashsale.Key
	bank   *simpay.Provider
	e      *engine.Engine
	deaf   bool        // webhooks come to nobody
	away   atomic.Bool // the service answers 503
	traces []string
}

const tillHold = 15 * time.Minute

func openTill(t *testing.T, overHTTP bool) *till {
	t.Helper()
	c := &till{t: t, clock: newClock(), key: flashsale.Key{Sale: "eleven", SKU: "phone"}}
	orders, err := sqlorders.Open(t.Context(), sqlorders.Config{URL: "sqlite::memory:", Now: c.clock.now})
	c.must(err)
	t.Cleanup(func() { _ = orders.Close() })
	stock := memstock.New(memstock.Config{Now: c.clock.now})
	t.Cleanup(func() { _ = stock.Close() })
	c.bank = newBank(c.clock, 5, simpay.Config{Deliver: func(ctx context.Context, header http.Header, body []byte) error {
		if c.deaf {
			return nil
		}
		return c.e.Webhook(ctx, header, body)
	}})
	var payments flashsale.Payments = c.bank
	if overHTTP {
		service := serve(t, c.clock, c.bank, func(front http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if c.away.Load() {
					said(503, "text/plain", "").ServeHTTP(w, r)
					return
				}
				front.ServeHTTP(w, r)
			})
		})
		payments = connect(t, c.clock, service.URL, nil)
	}
	keys, err := flashsale.NewTokenKeys(flashsale.TokenKey{ID: "k1", Secret: make([]byte, 32)})
	c.must(err)
	c.e, err = engine.New(engine.Config{
		Stock: stock, Orders: orders, Payments: payments, Keys: keys, Now: c.clock.now, Instance: "one", Rand: rand.NewChaCha8([32]byte{}), Paying: engine.Paying{Parallel: 1},
	})
	c.must(err)
	now := c.clock.now()
	c.must(c.e.CreateSale(t.Context(), &flashsale.Sale{
		ID: c.key.Sale, Currency: "EUR", OpensAt: now.Add(-time.Hour), ClosesAt: now.Add(24 * time.Hour), Hold: tillHold, Grace: time.Second,
		SKUs: []flashsale.SKU{{ID: c.key.SKU, Total: 3, PurchaseLimit: 1, Price: 1250}},
	}))
	_, err = c.e.WatchOnce(t.Context())
	c.must(err)
	_, err = c.e.OpenSale(t.Context(), engine.Command{ID: "open", Sale: c.key.Sale, Reason: "it is time", By: "test"})
	c.must(err)
	return c
}

func (c *till) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// note writes down what has happened, for the comparison.
func (c *till) note(format string, args ...any) {
	c.traces = append(c.traces, fmt.Sprintf(format, args...))
}

// jobs runs everything until nothing moves.
func (c *till) jobs() {
	c.t.Helper()
	for range 20 {
		moved := 0
		for _, job := range []func(context.Context) (int, error){
			func(ctx context.Context) (int, error) { n, _ := c.bank.Step(ctx); return n, nil },
			func(ctx context.Context) (int, error) { return c.e.ConsumeOnce(ctx, c.key, "one") },
			c.e.PollOnce, c.e.DeliverOnce, c.e.SweepOnce,
		} {
			n, err := job(c.t.Context())
			if !c.away.Load() || flashsale.CodeOf(err) != flashsale.CodeUnavailable { // what is overdue has to wait
				c.must(err)
			}
			moved += n
		}
		if moved == 0 {
			return
		}
	}
	c.t.Fatal("the jobs find no end")
}

func (c *till) pass(d time.Duration) {
	c.clock.pass(d)
	c.jobs()
}

// reserve reserves a unit; begin begins to pay for it.
func (c *till) reserve(user string) string {
	c.t.Helper()
	token, _, err := c.e.Token(c.t.Context(), engine.TokenRequest{Key: c.key, User: user})
	c.must(err)
	a, err := c.e.Reserve(c.t.Context(), engine.ReserveRequest{Token: token, Key: c.key, User: user, Quantity: 1})
	c.must(err)
	c.pass(time.Second)
	c.state("reserve", user, a.RID)
	return a.RID
}

func (c *till) begin(user, rid string) string {
	c.t.Helper()
	a, err := c.e.Pay(c.t.Context(), rid, user)
	c.note("pay %s: %s, %t, %q", user, a.State, strings.HasPrefix(a.URL, "https://pay.example/"), flashsale.CodeOf(err))
	return a.IntentKey
}

// state notes where a reservation stands, and where its payments do at the provider.
func (c *till) state(what, user, rid string) {
	c.t.Helper()
	r, err := c.e.Result(c.t.Context(), c.key, rid, user)
	c.must(err)
	var paid []string
	for record := range c.bank.Records() {
		if strings.HasPrefix(record.Intent.Key, rid+":") {
			paid = append(paid, fmt.Sprintf("%s %d-%d", record.Status, record.Captures, record.Refunds))
		}
	}
	slices.Sort(paid)
	c.note("%s %s: %s, provider %v", what, user, r.State, paid)
}

// story is everything that can become of a payment.
func (c *till) story() {
	ann := c.reserve("ann") // pays, and the webhook tells
	c.must(c.bank.Pay(c.begin("ann", ann), flashsale.PayCaptured))
	c.jobs()
	c.state("paid", "ann", ann)

	ben := c.reserve("ben") // begins to pay, and cancels
	c.begin("ben", ben)
	_, err := c.e.Cancel(c.t.Context(), ben, "ben")
	c.note("cancel: %q", flashsale.CodeOf(err))
	c.jobs()
	c.state("cancelled", "ben", ben)

	cat := c.reserve("cat") // fails, tries again, and no webhook comes
	c.must(c.bank.Pay(c.begin("cat", cat), flashsale.PayFailed))
	c.jobs()
	c.state("failed", "cat", cat)
	c.deaf = true
	c.must(c.bank.Pay(c.begin("cat", cat), flashsale.PayCaptured))
	c.jobs()
	c.state("unheard", "cat", cat)
	c.pass(30 * time.Second)
	c.state("polled", "cat", cat)
	c.deaf = false

	dan := c.reserve("dan") // never pays: void, and captured all the same while a unit is left; so it is bought again
	intent := c.begin("dan", dan)
	c.pass(tillHold + time.Minute)
	c.state("overdue", "dan", dan)
	c.must(c.bank.Capture(intent, 1250, "EUR"))
	c.jobs()
	c.pass(time.Second)
	c.state("captured after void", "dan", dan)
	c.late(flashsale.DerivedRID(intent), "dan")

	_, err = c.e.Cancel(c.t.Context(), ann, "ann")
	c.note("cancel what is paid: %q", flashsale.CodeOf(err))
	c.refunded(ben)
	report, err := c.e.MatchOnce(c.t.Context(), c.clock.now().Add(-24*time.Hour))
	c.must(err)
	c.note("match: %d, %d, %d, %v", report.Provider, report.Payments, report.Paid, report.Differences)
}

func (c *till) late(rid, user string) {
	c.t.Helper()
	r, err := c.e.Result(c.t.Context(), c.key, rid, user)
	c.must(err)
	c.note("bought again: %s", r.State)
}

// refunded: the capture of a cancelled reservation, when nothing is left, goes back.
func (c *till) refunded(rid string) {
	c.t.Helper()
	c.must(c.bank.Capture(flashsale.IntentKey(rid, 1), 1250, "EUR"))
	c.jobs()
	c.state("refunded", "ben", rid)
}

var storyWanted = []string{
	"reserve ann: reserved, provider []",
	`pay ann: confirming, true, ""`,
	"paid ann: confirmed, provider [captured 1-0]",
	"reserve ben: reserved, provider []",
	`pay ben: confirming, true, ""`,
	`cancel: ""`,
	"cancelled ben: cancelled, provider [void 0-0]",
	"reserve cat: reserved, provider []",
	`pay cat: confirming, true, ""`,
	"failed cat: reserved, provider [failed 0-0]",
	`pay cat: confirming, true, ""`,
	"unheard cat: confirming, provider [captured 1-0 failed 0-0]",
	"polled cat: confirmed, provider [captured 1-0 failed 0-0]",
	"reserve dan: reserved, provider []",
	`pay dan: confirming, true, ""`,
	"overdue dan: expired, provider [void 0-0]",
	"captured after void dan: expired, provider [captured 1-0]",
	"bought again: confirmed",
	`cancel what is paid: "invalid_state"`,
	"refunded ben: cancelled, provider [refunded 1-1]",
	"match: 5, 5, 3, []",
}

// TestASaleIsPaid: the engine's payments, from the click to the match, through HTTP as with the provider itself.
func TestASaleIsPaid(t *testing.T) {
	t.Parallel()
	for name, overHTTP := range map[string]bool{"directly": false, "over HTTP": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := openTill(t, overHTTP)
			c.story()
			if !slices.Equal(c.traces, storyWanted) {
				t.Errorf("it went:\n%s\nwant:\n%s", strings.Join(c.traces, "\n"), strings.Join(storyWanted, "\n"))
			}
		})
	}
}

// TestAServiceThatIsAway: what is being paid is held as long as the service says nothing, and goes on when it is back.
func TestAServiceThatIsAway(t *testing.T) {
	t.Parallel()
	c := openTill(t, true)
	ann, ben := c.reserve("ann"), c.reserve("ben")
	intent := c.begin("ann", ann)
	c.must(c.bank.Pay(intent, flashsale.PayCaptured))
	c.deaf = true
	c.away.Store(true)
	c.begin("ben", ben)
	c.pass(tillHold + time.Minute)
	c.state("away", "ann", ann)
	c.state("away", "ben", ben)
	c.away.Store(false)
	c.pass(30 * time.Second)
	c.state("back", "ann", ann)
	c.state("back", "ben", ben)
	want := []string{
		"reserve ann: reserved, provider []", "reserve ben: reserved, provider []", `pay ann: confirming, true, ""`, `pay ben: confirming, false, "unavailable"`,
		"away ann: confirming, provider [captured 1-0]", "away ben: confirming, provider []",
		"back ann: confirmed, provider [captured 1-0]", "back ben: expired, provider [void 0-0]",
	}
	if !slices.Equal(c.traces, want) {
		t.Errorf("it went:\n%s\nwant:\n%s", strings.Join(c.traces, "\n"), strings.Join(want, "\n"))
	}
}

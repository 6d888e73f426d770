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
	"github.com/headgate-io/headgate/flashsale/saletest/salerig"
	"github.com/headgate-io/headgate/flashsale/simpay"
)

// till is a whole sale at a virtual clock, paid through a provider that is asked directly or over HTTP.
type till struct {
	*salerig.Rig
	clock  *clock
	key    flashsale.Key
	deaf   bool        // webhooks come to nobody
	away   atomic.Bool // the service answers 503
	traces []string
}

const tillHold = 15 * time.Minute

func openTill(t *testing.T, overHTTP bool) *till {
	t.Helper()
	c := &till{clock: newClock(), key: flashsale.Key{Sale: "eleven", SKU: "phone"}}
	cfg := salerig.Config{Now: c.clock.now, Bank: simpay.Config{
		Secrets: [][]byte{secret}, Rand: rand.New(rand.NewPCG(5, 3)), Deliver: func(ctx context.Context, header http.Header, body []byte) error {
			if c.deaf {
				return nil
			}
			return c.Engine.Webhook(ctx, header, body)
		},
	}}
	if overHTTP {
		cfg.Payments = c.overHTTP
	}
	c.Rig = salerig.New(t, cfg)
	now := c.clock.now()
	c.Create(&flashsale.Sale{
		ID: c.key.Sale, Currency: "EUR", OpensAt: now.Add(-time.Hour), ClosesAt: now.Add(24 * time.Hour), Hold: tillHold, Grace: time.Second,
		SKUs: []flashsale.SKU{{ID: c.key.SKU, Total: 3, PurchaseLimit: 1, Price: 1250}},
	})
	c.Open(c.key.Sale)
	return c
}

// overHTTP is a client of a service that has the provider.
func (c *till) overHTTP(r *salerig.Rig) flashsale.Payments {
	service := serve(r, c.clock, r.Bank, func(front http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if c.away.Load() {
				said(503, "text/plain", "").ServeHTTP(w, r)
				return
			}
			front.ServeHTTP(w, r)
		})
	})
	return connect(r, c.clock, service.URL, nil)
}

// note writes down what has happened, for the comparison.
func (c *till) note(format string, args ...any) {
	c.traces = append(c.traces, fmt.Sprintf(format, args...))
}

// jobs runs everything until nothing moves.
func (c *till) jobs() {
	c.Helper()
	for range 20 {
		moved := 0
		for _, job := range []func(context.Context) (int, error){
			func(ctx context.Context) (int, error) { n, _ := c.Bank.Step(ctx); return n, nil },
			func(ctx context.Context) (int, error) { return c.Engine.ConsumeOnce(ctx, c.key, "one") },
			c.Engine.PollOnce, c.Engine.DeliverOnce, c.Engine.SweepOnce,
		} {
			n, err := job(c.Context())
			if !c.away.Load() || flashsale.CodeOf(err) != flashsale.CodeUnavailable { // what is overdue has to wait
				c.Must(err)
			}
			moved += n
		}
		if moved == 0 {
			return
		}
	}
	c.Fatal("the jobs find no end")
}

func (c *till) pass(d time.Duration) {
	c.clock.pass(d)
	c.jobs()
}

// reserve reserves a unit; begin begins to pay for it.
func (c *till) reserve(user string) string {
	c.Helper()
	token, _, err := c.Engine.Token(c.Context(), engine.TokenRequest{Key: c.key, User: user})
	c.Must(err)
	a, err := c.Engine.Reserve(c.Context(), engine.ReserveRequest{Token: token, Key: c.key, User: user, Quantity: 1})
	c.Must(err)
	c.pass(time.Second)
	c.state("reserve", user, a.RID)
	return a.RID
}

func (c *till) begin(user, rid string) string {
	c.Helper()
	a, err := c.Engine.Pay(c.Context(), rid, user)
	c.note("pay %s: %s, %t, %q", user, a.State, strings.HasPrefix(a.URL, "https://pay.example/"), flashsale.CodeOf(err))
	return a.IntentKey
}

// state notes where a reservation stands, and where its payments do at the provider.
func (c *till) state(what, user, rid string) {
	c.Helper()
	r, err := c.Engine.Result(c.Context(), c.key, rid, user)
	c.Must(err)
	var paid []string
	for record := range c.Bank.Records() {
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
	c.Must(c.Bank.Pay(c.begin("ann", ann), flashsale.PayCaptured))
	c.jobs()
	c.state("paid", "ann", ann)

	ben := c.reserve("ben") // begins to pay, and cancels
	c.begin("ben", ben)
	_, err := c.Engine.Cancel(c.Context(), ben, "ben")
	c.note("cancel: %q", flashsale.CodeOf(err))
	c.jobs()
	c.state("cancelled", "ben", ben)

	cat := c.reserve("cat") // fails, tries again, and no webhook comes
	c.Must(c.Bank.Pay(c.begin("cat", cat), flashsale.PayFailed))
	c.jobs()
	c.state("failed", "cat", cat)
	c.deaf = true
	c.Must(c.Bank.Pay(c.begin("cat", cat), flashsale.PayCaptured))
	c.jobs()
	c.state("unheard", "cat", cat)
	c.pass(30 * time.Second)
	c.state("polled", "cat", cat)
	c.deaf = false

	dan := c.reserve("dan") // never pays: void, and captured all the same while a unit is left; so it is bought again
	intent := c.begin("dan", dan)
	c.pass(tillHold + time.Minute)
	c.state("overdue", "dan", dan)
	c.Must(c.Bank.Capture(intent, 1250, "EUR"))
	c.jobs()
	c.pass(time.Second)
	c.state("captured after void", "dan", dan)
	c.late(flashsale.DerivedRID(intent), "dan")

	_, err = c.Engine.Cancel(c.Context(), ann, "ann")
	c.note("cancel what is paid: %q", flashsale.CodeOf(err))
	c.refunded(ben)
	report, err := c.Engine.MatchOnce(c.Context(), c.clock.now().Add(-24*time.Hour))
	c.Must(err)
	c.note("match: %d, %d, %d, %v", report.Provider, report.Payments, report.Paid, report.Differences)
}

func (c *till) late(rid, user string) {
	c.Helper()
	r, err := c.Engine.Result(c.Context(), c.key, rid, user)
	c.Must(err)
	c.note("bought again: %s", r.State)
}

// refunded: the capture of a cancelled reservation, when nothing is left, goes back.
func (c *till) refunded(rid string) {
	c.Helper()
	c.Must(c.Bank.Capture(flashsale.IntentKey(rid, 1), 1250, "EUR"))
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
	c.Must(c.Bank.Pay(intent, flashsale.PayCaptured))
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

package demo

import (
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/headgate-io/headgate/app"
	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/httppay"
	"github.com/headgate-io/headgate/flashsale/simpay"
	"github.com/headgate-io/headgate/internal/testservers"
)

const (
	guests     = 24
	guestUnits = 16
	// guestsOpen is when their sale opens: on a quiet machine all have the page before them by then. Who comes later buys later.
	guestsOpen = 8 * time.Second
	// guestsHold is more than any machine takes.
	guestsHold   = 10 * time.Minute
	guestsWithin = 8 * time.Minute
)

// killedSale is the demo's sale, run by the binary.
type killedSale struct {
	t      *testing.T
	ctx    context.Context
	market *market // its stores, its bank, and who judges it; nobody runs this engine
	heard  *answers
	front  *front
	gate   *gateProcess
	guests []*guest
}

// TestKilledUnderGuests: people buy in the demo's shop, with the real page and its script in real browsers, while the binary is killed and
// started again, then both Redis, then PostgreSQL, then the binary once more. Everybody gets one final answer, which is that of SQL, and the
// sale keeps its word.
//
// A demo is one process, and one that is killed cannot say how it went. So here what the demo composes is taken apart: the same sale on the
// same stores is created by the demo's own code, under the same policy, with the same shop, page, door and misbehaving bank; but "headgate
// serve" runs it, so that it can die as a machine does that loses its power. At the end the demo's own check judges it.
//
// Each fault is struck at a request, and not at a time, so that it meets what it is about on any machine: an order that was reserved and
// whose answer is lost, a reserve call, a call to pay, a message of the bank. It is healed when the shoppers have felt it.
//
// It was seen to fail when, in the script, a reserve call that had failed was followed by another token, nothing was kept in the browser's
// storage, what was under way was not gone on with after a reload, no answer or that of a proxy ended a purchase, and who has lost their
// stream did not ask; and when the Stock that had been lost was loaded without those for whom it is held.
func TestKilledUnderGuests(t *testing.T) {
	s := openKilledSale(t)
	all := s.everybody((*guest).shop)
	for _, f := range s.faults() {
		s.suffer(&f)
	}
	if all.Wait(); s.ctx.Err() != nil {
		t.Fatalf("after %s not everybody has a final answer: %s", guestsWithin, s.whereGuestsAre())
	}
	s.everybody((*guest).comeBack).Wait()
	s.judge()
}

// everybody has all guests do something.
func (s *killedSale) everybody(do func(*guest)) *sync.WaitGroup {
	all := new(sync.WaitGroup)
	for _, g := range s.guests {
		all.Go(func() { do(g) })
	}
	return all
}

func openKilledSale(t *testing.T) *killedSale {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), guestsWithin)
	t.Cleanup(cancel)
	browser := startBrowser(t)
	s := &killedSale{t: t, ctx: ctx, heard: newAnswers(), gate: &gateProcess{t: t, path: buildBinary(t)}}
	durable := []testservers.RedisOption{testservers.AppendOnly(), testservers.Directives("appendfsync always", "maxmemory-policy noeviction")}
	s.gate.stock, s.gate.limits = testservers.Redis(t, durable...), testservers.Redis(t, durable...)
	s.gate.db = testservers.Postgres(t, testservers.DurableData())
	cfg := Config{Duration: time.Hour, Stock: guestUnits, Seed: 1, Sale: SaleStores{DB: s.gate.db.URL(), StockAddr: s.gate.stock.Addr()}}.WithDefaults()
	cfg.Log = slog.New(OnlyErrors(slog.NewTextHandler(t.Output(), nil)))
	s.market = &market{cfg: cfg, watch: new(saleWatch), key: flashsale.Key{Sale: salePrefix + "killed", SKU: skuID}}
	s.must(s.market.openStores(ctx))
	t.Cleanup(func() { _ = s.market.close() })
	shop := newShop(func(context.Context) string { return "" }, cfg.Seed, newFlights())
	s.front = newFront(t, shop)
	s.openBank()
	s.gate.keys, s.gate.sale = s.newEngine(), s.market.key.Sale
	s.must(s.market.begin(ctx))
	shop.opens, shop.offer = s.market.plan.opens, offer{sale: s.market.key.Sale, stock: guestUnits, hold: guestsHold}
	s.gate.shop = serveOn(t, shop.Handler())
	s.gate.find()
	s.front.leadTo(s.gate.listen)
	s.gate.start(ctx)
	for n := range guests {
		s.guests = append(s.guests, newGuest(s, browser, n))
	}
	return s
}

func (s *killedSale) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// openBank opens the demo's bank, as a service of its own: it outlives whatever is killed, and knows what money was taken.
func (s *killedSale) openBank() {
	s.t.Helper()
	m := s.market
	m.start = time.Now()
	m.plan = newPlan(m.start, m.cfg.Duration)
	m.plan.opens, m.plan.hold, m.plan.payTime = m.start.Add(guestsOpen), guestsHold, guestsHold
	mux := http.NewServeMux()
	at := serveOn(s.t, mux)
	client := &http.Client{Timeout: 5 * time.Second}
	secret := [][]byte{[]byte(killedSecret)}
	m.bank = m.newBank(simpay.Config{
		URL: "http://" + at + app.PayPath, Secrets: secret, Deliver: simpay.Post(client, "http://"+s.front.address+"/_headgate/sales/~/webhook"),
	})
	api, err := httppay.NewHandler(httppay.HandlerConfig{Payments: m.bank, Secrets: secret, Prefix: "/v1"})
	s.must(err)
	mux.Handle("/v1/", api)
	mux.Handle(app.PayPath, app.NewPayPages(m.bank, ""))
	s.gate.pay = "http://" + at + "/v1"
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.bank.Run(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		<-done
		client.CloseIdleConnections()
	})
}

// newEngine makes the engine that creates the sale and judges it, and returns the keys of tokens as the binary is given them.
func (s *killedSale) newEngine() string {
	s.t.Helper()
	secret := []byte("0123456789abcdef0123456789abcdef")
	keys, err := flashsale.NewTokenKeys(flashsale.TokenKey{ID: "demo", Secret: secret})
	s.must(err)
	s.market.Engine, err = s.market.newEngine(keys)
	s.must(err)
	return "demo:" + base64.StdEncoding.EncodeToString(secret)
}

// faults are what befalls the sale, one after the other. There are more guests than units, and more units than are reserved up to the
// second fault, so that each one comes.
func (s *killedSale) faults() []fault {
	redis := func(do func(*testservers.RedisServer) error) error {
		return errors.Join(do(s.gate.stock), do(s.gate.limits))
	}
	restart := func() error { s.gate.start(s.ctx); return nil }
	return []fault{
		{name: "the binary, and the answer to a reserve call with it", at: reserving, nth: 4, answered: true, kill: s.gate.kill, heal: restart},
		{
			name: "both Redis", at: reserving, nth: 4,
			kill: func() { _ = redis(func(r *testservers.RedisServer) error { r.Kill(); return nil }) },
			heal: func() error {
				return redis(func(r *testservers.RedisServer) error { return r.Restart(testservers.KeepData) })
			},
		},
		{name: "PostgreSQL", at: paying, nth: 3, kill: s.gate.db.Kill, heal: s.gate.db.Restart},
		{name: "the binary, when the bank has a message for it", at: messaging, nth: 1, kill: s.gate.kill, heal: restart},
	}
}

// suffer has a fault befall the sale, and heals it when shoppers have felt it.
func (s *killedSale) suffer(f *fault) {
	s.t.Helper()
	if err := s.front.suffer(s.ctx, f); err != nil {
		s.t.Fatalf("%s: %v; guests: %s", f.name, err, s.whereGuestsAre())
	}
	if err := f.heal(); err != nil {
		s.t.Fatalf("%s does not come back: %v", f.name, err)
	}
	s.front.healed()
	s.t.Logf("%.1fs after the beginning %s was back", time.Since(s.market.start).Seconds(), f.name)
}

func (s *killedSale) whereGuestsAre() string {
	var text []string
	for _, g := range s.guests {
		text = append(text, g.String())
	}
	return strings.Join(text, "; ")
}

// judge looks at what everybody was told, and at what there is.
func (s *killedSale) judge() {
	s.t.Helper()
	confirmed, retried := 0, 0
	for _, g := range s.guests {
		g.judge()
		if g.end == "confirmed" {
			confirmed++
		}
		if g.was("retrying") {
			retried++
		}
	}
	if confirmed != guestUnits {
		s.t.Errorf("%d guests were told that they have one, of %d", confirmed, guestUnits)
	}
	if retried == 0 {
		s.t.Error("no page had to try again: nothing was felt of the faults")
	}
	if most := s.front.mostSent(); most < 2 {
		s.t.Error("no token was sent a second time, though an answer to one was lost")
	}
	var v Invariants
	why := s.market.wind(s.ctx)
	v.Settled = why == ""
	v.unless(v.Settled, "the sale did not come to its end: %s", why)
	s.must(s.market.check(s.ctx, &v, s.heard))
	for _, broken := range v.Broken {
		s.t.Error(broken)
	}
	if sale := s.market.count(s.ctx); sale.Sold != guestUnits || sale.Oversold != 0 || sale.Unsold != 0 {
		s.t.Errorf("the sale ended with %+v", sale)
	}
}

// serveOn serves on a free port of 127.0.0.1 until the test ends, and returns its address.
func serveOn(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.Listener.Addr().String()
}

// killedSecret is what the sale and its bank share.
const killedSecret = "the secret that the sale and its bank share"

// startBrowser starts a browser with an empty profile. It ends with the test.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(testservers.Need(t, "chromium")), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.WSURLReadTimeout(time.Minute), chromedp.UserDataDir(t.TempDir()),
		// Guests are told apart by the host that they come to, which spares a profile for each.
		chromedp.Flag("host-resolver-rules", "MAP *.localhost 127.0.0.1"), chromedp.Flag("renderer-process-limit", "4"))
	browser, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	browser, cancel = chromedp.NewContext(browser)
	t.Cleanup(func() {
		_ = chromedp.Cancel(browser) // waits for its end
		cancel()
	})
	if err := chromedp.Do(browser); err != nil {
		t.Fatalf("the browser does not start: %v", err)
	}
	return browser
}

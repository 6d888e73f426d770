package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mrand "math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/headgate-io/headgate/app"
	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/flashsale/memstock"
	"github.com/headgate-io/headgate/flashsale/redisstock"
	"github.com/headgate-io/headgate/flashsale/salehttp"
	"github.com/headgate-io/headgate/flashsale/simpay"
	"github.com/headgate-io/headgate/flashsale/sqlorders"
)

// What is for sale.
const (
	salePrefix = "demo-" // of every sale that a demo makes
	skuID      = "teapot"
	skuTitle   = "River stone teapot"

	skuTitleChinese = "河石茶壶"

	saleTitle = "One hour of teapots"
	currency  = "CNY"
	price     = 128_00
)

// market is the sale: its stores, the engine that runs it, who takes the money, and its pages.
type market struct {
	cfg   Config
	plan  plan
	start time.Time // of the demo: when the stores were open
	key   flashsale.Key
	stock engine.Stock
	books flashsale.Orders
	bank  *simpay.Provider
	// earlier are the payments of demos before this one in the same database.
	earlier map[string]bool
	shop    *salehttp.Handler
	pay     http.Handler
	watch   *saleWatch

	counting sync.Mutex
	book     *salebook
	counted  Sale // as it was counted last

	*engine.Engine

	end     context.CancelFunc
	running sync.WaitGroup
}

// openMarket opens the stores, and puts the stock on sale by the plan, which begins when they are open. Who somebody is, identity says.
func openMarket(ctx context.Context, cfg Config, identity salehttp.Identity) (*market, error) {
	cfg.Log = slog.New(OnlyErrors(cfg.Log.Handler())) // of the sale; what it says else is for engineers on call
	m := &market{
		cfg: cfg, watch: new(saleWatch),
		key: flashsale.Key{Sale: salePrefix + strings.ToLower(rand.Text()[:10]), SKU: skuID},
	}
	err := m.openStores(ctx)
	if err == nil {
		m.start = time.Now()
		if m.plan = newPlan(m.start, cfg.Duration); cfg.replan != nil {
			cfg.replan(&m.plan)
		}
		err = m.compose(ctx, identity)
	}
	if err == nil {
		err = m.begin(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the demo's sale cannot begin: %w", err), m.close())
	}
	return m, nil
}

func (m *market) openStores(ctx context.Context) error {
	books, err := sqlorders.Open(ctx, sqlorders.Config{
		URL: m.cfg.Sale.DB, Logger: m.cfg.Log, Retried: func(method string, tries int, why error) { m.Retried(method, tries, why) },
	})
	if err != nil {
		return inUsersWords(err)
	}
	if m.books = books; m.cfg.wrapBooks != nil {
		m.books = m.cfg.wrapBooks(books)
	}
	if err := m.alone(ctx); err != nil {
		return err
	}
	now, err := m.books.Now(ctx)
	if err != nil {
		return err
	}
	m.book, m.counted = newSalebook(m.books, m.key, now), Sale{Stock: m.cfg.Stock, Unsold: m.cfg.Stock}
	if m.cfg.Sale.StockAddr == "" {
		m.stock = memstock.New(memstock.Config{})
		return nil
	}
	stock, err := redisstock.New(ctx, redisstock.Config{
		Addrs: []string{m.cfg.Sale.StockAddr}, Password: m.cfg.Sale.StockPassword, Namespace: m.key.Sale,
	})
	if err == nil { // else stock is a nil that is not nil
		m.stock = stock
	}
	return err
}

// inUsersWords says of a database what somebody reads who knows flags, and not packages.
func inUsersWords(err error) error {
	text := strings.ReplaceAll(strings.TrimPrefix(err.Error(), "sqlorders: "), "Config.URL", "--db")
	return &flashsale.Error{Code: flashsale.CodeOf(err), Message: text}
}

// maxSales is how many sales of others are looked for.
const maxSales = 500

// alone refuses a database in which others sell: the engine looks after all sales that it finds, and would take theirs over.
func (m *market) alone(ctx context.Context) error {
	ids, err := m.books.SaleIDs(ctx, maxSales)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !strings.HasPrefix(id, salePrefix) {
			return fmt.Errorf("the database has the sale %q, which is none of a demo's; give the demo a database of its own", id)
		}
	}
	_, held, err := m.books.Lease(ctx, leaseName, m.key.Sale, leaseFor)
	if err == nil && !held {
		err = fmt.Errorf("another demo uses this database, or did within the last %s; give this one another, or wait", leaseFor)
	}
	return err
}

// The lease by which a demo has a database for itself.
const (
	leaseName = "demo"
	leaseFor  = 15 * time.Second
)

// keepAlone renews the lease.
func (m *market) keepAlone(life context.Context) error {
	for pause(life, leaseFor/3) {
		if _, held, err := m.books.Lease(life, leaseName, m.key.Sale, leaseFor); err == nil && !held {
			return errors.New("another demo has taken the database over")
		}
	}
	return nil
}

func (m *market) compose(ctx context.Context, identity salehttp.Identity) error {
	secret := make([]byte, flashsale.MinKeyBytes)
	_, _ = rand.Read(secret) // it never fails
	keys, err := flashsale.NewTokenKeys(flashsale.TokenKey{ID: "demo", Secret: secret})
	if err != nil {
		return err
	}
	m.bank = m.newBank(simpay.Config{
		URL: app.PayPath, Deliver: func(ctx context.Context, header http.Header, body []byte) error { return m.Webhook(ctx, header, body) },
	})
	if err := m.bank.AdoptAll(ctx, m.books); err != nil {
		return err
	}
	m.earlier = map[string]bool{}
	for r := range m.bank.Records() {
		m.earlier[r.Intent.Key] = true
	}
	m.pay = app.NewPayPages(m.bank, "/")
	if m.Engine, err = m.newEngine(keys); err != nil {
		return err
	}
	m.shop, err = salehttp.New(salehttp.Config{Sales: m.Engine, Identity: identity, Keys: keys, Logger: m.cfg.Log, MaxStreamsPerUser: 2})
	return err
}

// newBank returns a provider that misbehaves as the plan says.
func (m *market) newBank(cfg simpay.Config) *simpay.Provider {
	cfg.RetryAfter, cfg.Behaviour, cfg.Rand = m.plan.webhookAgain, m.plan.bank(), mrand.New(mrand.NewPCG(m.cfg.Seed, 1<<62))
	return simpay.New(cfg)
}

// newEngine returns what runs the sale, on the stores and the bank.
func (m *market) newEngine(keys *flashsale.TokenKeys) (*engine.Engine, error) {
	return engine.New(engine.Config{
		Stock: m.stock, Orders: m.books, Keys: keys, Payments: m.bank, Logger: m.cfg.Log, Observer: m.watch,
		Jobs:   engine.Jobs{Sweep: m.plan.sweep, Watch: m.plan.sweep, Poll: m.plan.poll, Reconcile: 5 * time.Second},
		Paying: engine.Paying{Age: m.plan.payAge},
	})
}

// begin creates the sale and opens it; units can be reserved from its hour on.
func (m *market) begin(ctx context.Context) error {
	err := m.CreateSale(ctx, &flashsale.Sale{
		ID: m.key.Sale, Title: saleTitle, Currency: currency, OpensAt: m.plan.opens, ClosesAt: m.plan.closes,
		Hold: m.plan.hold, PayTime: m.plan.payTime, Grace: m.plan.grace, Rate: m.plan.rate,
		SKUs: []flashsale.SKU{{ID: m.key.SKU, Title: skuTitle, Total: int64(m.cfg.Stock), PurchaseLimit: 1, Price: price}},
	})
	if err != nil {
		return err
	}
	if err := m.loaded(ctx); err != nil {
		return err
	}
	_, err = m.OpenSale(ctx, m.command("open", "the demo begins"))
	return err
}

// loadWithin bounds how long the stock may take to be loaded.
const loadWithin = 10 * time.Second

// loaded waits until the stock has been loaded from SQL.
func (m *market) loaded(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, loadWithin)
	defer cancel()
	for {
		if _, err := m.WatchOnce(ctx); err != nil {
			return err
		}
		sku, err := m.SKU(ctx, m.key)
		if err != nil {
			return err
		}
		if !sku.Rebuilding {
			return nil
		}
		if !pause(ctx, 20*time.Millisecond) {
			return errors.New("the stock was not loaded in time")
		}
	}
}

func (m *market) command(what, why string) engine.Command {
	return engine.Command{ID: m.key.Sale + "." + what, Sale: m.key.Sale, Reason: why, By: "demo"}
}

// run lets the engine and the bank work until close.
func (m *market) run() {
	life, end := context.WithCancel(context.Background())
	m.end = end
	for _, work := range []func(context.Context) error{m.Engine.Run, m.bank.Run, m.drainInTime, m.keepAlone} {
		m.running.Go(func() {
			if err := work(life); err != nil {
				m.cfg.Log.Error("a part of the sale has ended", "error", err)
			}
		})
	}
}

// drainInTime ends the sale at its closing: what waits is decided, what is held is paid or comes back.
func (m *market) drainInTime(life context.Context) error {
	if !pause(life, time.Until(m.plan.closes)) {
		return nil
	}
	if err := m.drain(life); life.Err() == nil {
		return err
	}
	return nil
}

func (m *market) drain(ctx context.Context) error {
	_, err := m.DrainSale(ctx, m.command("drain", "the demo comes to its end"))
	return err
}

// ServeHTTP answers what is under /_headgate/.
func (m *market) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, app.PayPath) {
		m.pay.ServeHTTP(w, r)
		return
	}
	m.shop.ServeHTTP(w, r)
}

// count counts the sale. If the database does not answer it is as it was counted last.
func (m *market) count(ctx context.Context) Sale {
	m.counting.Lock()
	defer m.counting.Unlock()
	sale, _, err := m.book.read(ctx)
	if err != nil {
		m.cfg.Log.Warn("the sale could not be counted", "error", err)
		return m.counted
	}
	sale.DuplicatesRefused = int(m.watch.duplicates.Load())
	m.counted = sale
	return sale
}

// signal says in a word what is left, as shoppers are told.
func (m *market) signal(ctx context.Context) engine.StockSignal {
	shown, err := m.Shown(ctx, m.key.Sale)
	if err != nil {
		return ""
	}
	if sku := shown.SKU(m.key.SKU); sku != nil {
		return sku.Stock
	}
	return ""
}

// stop ends the engine and the bank, and waits for them.
func (m *market) stop() {
	if m.shop != nil {
		_ = m.shop.Close() // it has nothing to fail with
	}
	if m.end != nil {
		m.end()
	}
	m.running.Wait()
}

// close ends it and gives the stores back.
func (m *market) close() (err error) {
	m.stop()
	if m.stock != nil {
		err = m.stock.Close()
	}
	if m.books != nil {
		giveBack, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = m.books.Release(giveBack, leaseName, m.key.Sale) // else it ends by itself
		err = errors.Join(err, m.books.Close())
	}
	return err
}

package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/headgate-io/headgate/app"
	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/gateway"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// Bounds and defaults of [Config].
const (
	DefaultDuration = 30 * time.Second
	DefaultShoppers = 2000
	DefaultBots     = 300
	DefaultStock    = 500
	DefaultListen   = "127.0.0.1:0"

	minDuration = time.Second
	maxDuration = time.Hour
	maxShoppers = 20_000
	maxBots     = 2_000
	maxStock    = 1_000_000
)

// grace is how long requests that are under way when the time is over may take to end.
const grace = 3 * time.Second

// SaleStores says where the sale is kept. The zero value is SQLite and stock in the memory of this process.
type SaleStores struct {
	// DB is the database of the orders, as sqlorders.Config.URL writes it; by default sqlite::memory:. It must have no sales but those of
	// demos. DBName is what it is called in the summary; by default what is no secret of DB.
	DB, DBName string
	// StockAddr and StockPassword are of the Redis that holds the stock, "" for the memory of this process; StockName is what it is called.
	StockAddr, StockPassword, StockName string
}

// Config says what to demonstrate. Decider has no default.
type Config struct {
	// Decider is the policy under which the crowd comes, with its store. It is not closed.
	Decider httpverdict.Decider
	// Policy and Store are how the policy and the store are called in the summary.
	Policy, Store string
	// Listen is the address of the gateway; by default a free port of 127.0.0.1.
	Listen string
	// Duration is how long the crowd comes: 1 s to 1 h, by default 30 s. The sale opens after two fifths of it, at the latest
	// after 30 s, and closes shortly before its end; then what is held is paid, or comes back, which takes some seconds more.
	Duration time.Duration
	// Shoppers is the number of people, up to 20000; by default 2000. A negative number means none.
	Shoppers int
	// Bots is the number of workers of the bot farm, up to 2000; by default 300. A negative number means none.
	Bots int
	// Stock is how many things are for sale, up to 1000000; by default 500.
	Stock int
	// Sale is where the sale is kept.
	Sale SaleStores
	// Seed is where chance comes from; 0 is a seed like any other.
	Seed uint64
	// Watch, if set, is called with the state of affairs every Every and once at the end, never twice at a time.
	Watch func(Snapshot)
	// Every is the time between two calls of Watch; by default 1 s, at least 50 ms.
	Every time.Duration
	// Log receives what goes wrong in the servers; by default it is dropped.
	Log *slog.Logger

	// For tests: books that lie, and a sale at another time.
	wrapBooks func(flashsale.Orders) flashsale.Orders
	replan    func(*plan)
}

// WithDefaults returns the configuration with its defaults filled in.
func (c Config) WithDefaults() Config {
	c.Listen = orElse(c.Listen, DefaultListen)
	c.Duration = orElse(c.Duration, DefaultDuration)
	c.Shoppers = max(0, orElse(c.Shoppers, DefaultShoppers))
	c.Bots = max(0, orElse(c.Bots, DefaultBots))
	c.Stock = orElse(c.Stock, DefaultStock)
	c.Sale.DB = orElse(c.Sale.DB, "sqlite::memory:")
	c.Sale.DBName = orElse(c.Sale.DBName, app.ShownDB(c.Sale.DB))
	c.Sale.StockName = orElse(c.Sale.StockName, orElse(c.Sale.StockAddr, "memory"))
	c.Every = max(orElse(c.Every, time.Second), 50*time.Millisecond)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

func orElse[T comparable](v, absent T) T {
	var zero T
	if v == zero {
		return absent
	}
	return v
}

// Check reports what is out of range in the numbers.
func (c Config) Check() error {
	c = c.WithDefaults()
	for _, n := range [...]struct {
		name    string
		n, most int
	}{{"shoppers", c.Shoppers, maxShoppers}, {"bots", c.Bots, maxBots}, {"stock", c.Stock, maxStock}} {
		if n.n < 0 || n.n > n.most {
			return fmt.Errorf("%s: %d is outside 0 to %d", n.name, n.n, n.most)
		}
	}
	if c.Duration < minDuration || c.Duration > maxDuration {
		return fmt.Errorf("duration: %s is outside %s to %s", c.Duration, minDuration, maxDuration)
	}
	return nil
}

// Run lets the crowd come and returns how it went. It ends after the duration, or, with what happened so far, when ctx
// ends; in both cases requests that are under way are waited for, for up to 3 s.
func Run(ctx context.Context, cfg Config) (*Summary, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if cfg.Decider == nil {
		return nil, errors.New("demo: Config.Decider is missing")
	}
	stage, err := build(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return stage.play(ctx)
}

// stage is the shop, the sale, the gateway in front of them, and the two listeners they answer on.
type stage struct {
	cfg     Config
	start   time.Time
	plan    plan
	flights *flights
	meter   *meter
	shop    *Shop
	market  *market
	heard   *answers
	gateway *gateway.Gateway
	servers []*server
	base    string // the gateway's URL
}

type server struct {
	http     *http.Server
	listener net.Listener
}

func build(ctx context.Context, cfg Config) (*stage, error) {
	front, err := app.Listen(ctx, "listen", cfg.Listen)
	if err != nil {
		return nil, err
	}
	back, err := app.Listen(ctx, "listen for the shop", DefaultListen)
	if err != nil {
		return nil, errors.Join(err, front.Close())
	}
	s := &stage{
		cfg: cfg, flights: newFlights(), meter: newMeter(), heard: newAnswers(),
		base: "http://" + dialable(front.Addr()),
	}
	s.shop = newShop(func(ctx context.Context) string { return string(s.market.signal(ctx)) }, cfg.Seed, s.flights)
	judge := &decider{Decider: cfg.Decider, meter: s.meter, flights: s.flights}
	s.market, err = openMarket(ctx, cfg, identity(judge, s.shop))
	if err == nil {
		s.start, s.plan, s.shop.opens = s.market.start, s.market.plan, s.market.plan.opens
		s.shop.offer = offer{sale: s.market.key.Sale, stock: cfg.Stock, hold: s.plan.hold}
		s.gateway, err = gateway.New(gateway.Config{
			Upstream: "http://" + back.Addr().String(), Decider: judge, Logger: cfg.Log,
			Reserved: timed(s.market, s.flights),
		})
	}
	if err != nil {
		_, _ = front.Close(), back.Close()
		if s.market != nil {
			err = errors.Join(err, s.market.close())
		}
		return nil, err
	}
	s.servers = []*server{
		{http: s.httpServer(newDoor(measured(s.gateway, s.meter, s.flights), s.shop, s.flights)), listener: front},
		{http: s.httpServer(s.shop.Handler()), listener: back},
	}
	return s, nil
}

func (s *stage) httpServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelWarn),
	}
}

// dialable turns "every address" into one.
func dialable(a net.Addr) string {
	t, ok := a.(*net.TCPAddr)
	if !ok || !t.IP.IsUnspecified() {
		return a.String()
	}
	return net.JoinHostPort("127.0.0.1", fmt.Sprint(t.Port))
}

// play opens the doors, waits for the end, and closes in the order crowd, sale, gateway, shop.
func (s *stage) play(ctx context.Context) (*Summary, error) {
	failed := make(chan error, len(s.servers))
	var serving sync.WaitGroup
	for _, srv := range s.servers {
		serving.Go(func() {
			if err := srv.http.Serve(srv.listener); !errors.Is(err, http.ErrServerClosed) {
				failed <- err
			}
		})
	}
	s.market.run()
	show, end := context.WithTimeout(ctx, s.cfg.Duration)
	defer end()
	over := make(chan struct{})
	var found Invariants
	go func() {
		defer close(over)
		s.letIn(ctx, show)
		found = s.cashUp(ctx)
	}()
	err := s.watch(over, failed)
	end()
	<-over
	last := s.snapshot(time.Since(s.start))
	last.Phase = PhaseOver
	for _, srv := range s.servers {
		shut(srv.http)
	}
	serving.Wait()
	err = errors.Join(err, s.gateway.Close(), s.market.close())
	if err != nil {
		return nil, err
	}
	if s.cfg.Watch != nil {
		s.cfg.Watch(last)
	}
	return s.summary(last, &found, ctx.Err() != nil), nil
}

// letIn lets the crowd in, and returns when all have left. When the show is over nobody begins anything; who holds something sees it
// through, unless ctx has ended, and then only what is under way.
func (s *stage) letIn(ctx, show context.Context) {
	late, lock := context.WithTimeout(context.WithoutCancel(ctx), time.Until(s.start.Add(s.cfg.Duration+s.plan.settleWithin())))
	defer lock()
	unlessInterrupted := context.AfterFunc(ctx, lock)
	defer unlessInterrupted()
	inFlight, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	unlessLate := context.AfterFunc(late, func() { time.AfterFunc(grace, cut) })
	defer unlessLate()
	c := newClient(inFlight, s)
	defer c.close()
	crowd(show, &world{
		client: c, sale: newSaleCalls(c, s.heard, s.market.key), shop: s.shop, seed: s.cfg.Seed, farm: newFarm(s.cfg.Bots), opens: s.plan.opens,
		pace: paceFor(s.cfg.Duration), arrive: min(s.cfg.Duration/8, 10*time.Second), quick: s.plan.quick, late: late,
	}, s.cfg.Shoppers, s.cfg.Bots)
}

// shut closes a server that the crowd has left. Whoever else looks in gets a moment.
func shut(srv *http.Server) {
	last, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if srv.Shutdown(last) != nil {
		_ = srv.Close()
	}
}

// watch reports until all is over or a server fails.
func (s *stage) watch(over <-chan struct{}, failed <-chan error) error {
	tick := time.NewTicker(s.cfg.Every)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return nil
		case err := <-failed:
			return fmt.Errorf("a server of the demo failed: %w", err)
		case <-tick.C:
			if s.cfg.Watch != nil {
				s.cfg.Watch(s.snapshot(time.Since(s.start)))
			}
		}
	}
}

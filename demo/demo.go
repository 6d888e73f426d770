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
	"github.com/headgate-io/headgate/gateway"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// Bounds and defaults of [Config].
const (
	DefaultDuration = 30 * time.Second
	DefaultShoppers = 400
	DefaultBots     = 100
	DefaultListen   = "127.0.0.1:0"

	minDuration = time.Second
	maxDuration = time.Hour
	maxShoppers = 20_000
	maxBots     = 2_000
	maxStock    = 1_000_000
)

// grace is how long requests that are under way when the time is over may take to end.
const grace = 3 * time.Second

// Config says what to demonstrate. Decider has no default.
type Config struct {
	// Decider is the policy under which the crowd comes, with its store. It is not closed.
	Decider httpverdict.Decider
	// Policy and Store are how the policy and the store are called in the summary.
	Policy, Store string
	// Listen is the address of the gateway; by default a free port of 127.0.0.1.
	Listen string
	// Duration is how long the crowd comes: 1 s to 1 h, by default 30 s. The sale opens after two fifths of it, at the latest
	// after 30 s.
	Duration time.Duration
	// Shoppers is the number of people, up to 20000; by default 400. A negative number means none.
	Shoppers int
	// Bots is the number of workers of the bot farm, up to 2000; by default 100. A negative number means none.
	Bots int
	// Stock is how many things are for sale, up to 1000000; by default a quarter of the number of shoppers, at least 10.
	Stock int
	// Seed is where chance comes from; 0 is a seed like any other.
	Seed uint64
	// Watch, if set, is called with the state of affairs every Every and once at the end, never twice at a time.
	Watch func(Snapshot)
	// Every is the time between two calls of Watch; by default 1 s, at least 50 ms.
	Every time.Duration
	// Log receives what goes wrong in the servers; by default it is dropped.
	Log *slog.Logger
}

// WithDefaults returns the configuration with its defaults filled in.
func (c Config) WithDefaults() Config {
	c.Listen = orElse(c.Listen, DefaultListen)
	c.Duration = orElse(c.Duration, DefaultDuration)
	c.Shoppers = max(0, orElse(c.Shoppers, DefaultShoppers))
	c.Bots = max(0, orElse(c.Bots, DefaultBots))
	c.Stock = orElse(c.Stock, max(10, c.Shoppers/4))
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

// stage is the shop, the gateway in front of it, and the two listeners they answer on.
type stage struct {
	cfg     Config
	start   time.Time
	flights *flights
	meter   *meter
	stock   *Stock
	shop    *Shop
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
		cfg: cfg, start: time.Now(), flights: new(flights), meter: newMeter(), stock: NewStock(cfg.Stock),
		base: "http://" + dialable(front.Addr()),
	}
	s.shop = newShop(s.start.Add(opensAfter(cfg.Duration)), s.stock, cfg.Seed, s.flights)
	s.gateway, err = gateway.New(gateway.Config{
		Upstream: "http://" + back.Addr().String(),
		Decider:  &decider{Decider: cfg.Decider, meter: s.meter, flights: s.flights},
		Logger:   cfg.Log,
	})
	if err != nil {
		_, _ = front.Close(), back.Close()
		return nil, err
	}
	s.servers = []*server{
		{http: s.httpServer(measured(s.gateway, s.meter, s.flights)), listener: front},
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

// play opens the doors, waits for the end, and closes in the order crowd, gateway, shop.
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
	show, end := context.WithTimeout(ctx, s.cfg.Duration)
	defer end()
	gone := s.open(show)
	err := s.watch(show, failed)
	end()
	<-gone
	last := s.snapshot(time.Since(s.start))
	last.Phase = PhaseOver
	for _, srv := range s.servers {
		shut(srv.http)
	}
	serving.Wait()
	err = errors.Join(err, s.gateway.Close())
	if err != nil {
		return nil, err
	}
	if s.cfg.Watch != nil {
		s.cfg.Watch(last)
	}
	return s.summary(last, ctx.Err() != nil), nil
}

// open lets the crowd in; the channel closes when all have left.
func (s *stage) open(show context.Context) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		inFlight, cut := context.WithCancel(context.WithoutCancel(show))
		defer cut()
		stop := context.AfterFunc(show, func() { time.AfterFunc(grace, cut) })
		defer stop()
		c := newClient(inFlight, s)
		defer c.close()
		crowd(show, &world{
			client: c, shop: s.shop, seed: s.cfg.Seed, farm: newFarm(s.cfg.Bots), opens: s.shop.opens,
			pace: paceFor(s.cfg.Duration), arrive: min(s.cfg.Duration/8, 10*time.Second),
		}, s.cfg.Shoppers, s.cfg.Bots)
	}()
	return gone
}

// shut closes a server that the crowd has left. Whoever else looks in gets a moment.
func shut(srv *http.Server) {
	last, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if srv.Shutdown(last) != nil {
		_ = srv.Close()
	}
}

// watch reports until the show is over or a server fails.
func (s *stage) watch(show context.Context, failed <-chan error) error {
	tick := time.NewTicker(s.cfg.Every)
	defer tick.Stop()
	for {
		select {
		case <-show.Done():
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

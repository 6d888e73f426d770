package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
	"github.com/headgate-io/headgate/flashsale/httppay"
	"github.com/headgate-io/headgate/flashsale/saleadmin"
	"github.com/headgate-io/headgate/flashsale/salehttp"
	"github.com/headgate-io/headgate/policy"
)

// SaleConfig says how flash sales are run beside the gate. DB and Pay have no default.
type SaleConfig struct {
	// DB holds the orders: postgres://USER:PASSWORD@HOST:PORT/DATABASE, mysql://… or mariadb://… in the same form, or sqlite:FILE,
	// which serves one process.
	DB string
	// Store holds the stock: a Redis of its own; the zero value is the memory of this process, which goes with SQLite alone.
	Store StoreURL
	// Namespace keeps users of that Redis apart; by default what the URL says, else DefaultNamespace.
	Namespace string
	// SentinelUsername and SentinelPassword are for the sentinels of Store; by default none.
	SentinelUsername, SentinelPassword string
	// Keys sign order tokens: "ID:BASE64,…", the first signs and all verify, 32 random bytes each at least. By default, with SQLite, one
	// that is made and kept beside its file; other databases need it. KeysFile is the file that they come from, whose changes are taken up
	// within seconds; "" for none.
	Keys, KeysFile string
	// Pay is PaySimulated, PayNone, or the URL of a payment service.
	Pay string
	// PaySecret signs what this process and the payment service send each other; several with commas, all of which are good. The
	// simulated one needs none. PaySecretFile is as KeysFile.
	PaySecret, PaySecretFile string
	// PayReturn is where the payment service sends shoppers back to: {rid} and {order} in it stand for the reservation and the order.
	// By default the service knows.
	PayReturn string
	// User is the dimension of the policy that says who somebody is; by default DefaultSaleUser. Device, "" for none, says from which
	// device somebody comes.
	User, Device string
	// Relay carries events to other services: nats://HOST:PORT,… or kafka://HOST:PORT,…/TOPIC; "" for none.
	Relay string
	// Origins are other origins whose pages may buy.
	Origins []string
}

// DefaultSaleUser is the default of SaleConfig.User.
const DefaultSaleUser = "user"

// Ways to pay that are no payment service.
const (
	PaySimulated = "simulated" // a provider in this process: no money moves
	PayNone      = "none"      // nothing can be paid
)

// sale is all of the sales that a process runs. Its stores may be away when it begins: until they have been reached it answers that it
// is not available, and the process is not ready.
type sale struct {
	cfg  SaleConfig
	log  *slog.Logger
	keys *flashsale.TokenKeys // those that were given, nil for none
	// secrets are the files that keys and secrets come from.
	secrets []*liveSecret
	// guard tells who somebody is; tickets spends what works once, over all processes that share its store.
	guard    func() *Guard
	tickets  func() headgate.Limiter
	observer engine.Observer
	// sharedStore tells that limits are counted in the Redis that holds the stock.
	sharedStore bool
	// ownLimits tells that limits are counted in the memory of this process.
	ownLimits bool
	pay       *httppay.Client // nil if it is no payment service that takes the money

	// aside bounds the time for looking whose requests were denied, within the time of ended, which has none left.
	aside *asideTime
	ended context.Context //nolint:containedctx // it is never anything else

	stores  saleStores
	retried atomic.Pointer[engine.Engine] // who is told that the database has repeated something
	live    atomic.Pointer[liveSale]
	mu      sync.Mutex
	why     string // why the stores have not been reached
}

// liveSale is a sale whose stores have been reached.
type liveSale struct {
	engine *engine.Engine
	till   *till
	shop   *salehttp.Handler
	admin  http.Handler
}

// newSale checks what can be told to be wrong without reaching anything.
func newSale(cfg SaleConfig, log *slog.Logger) (*sale, error) {
	if cfg.User == "" {
		cfg.User = DefaultSaleUser
	}
	ended, end := context.WithCancel(context.Background())
	end()
	s := &sale{cfg: cfg, log: log, aside: newAsideTime(), ended: ended}
	if err := s.cfg.checkStores(); err != nil {
		return nil, err
	}
	var err error
	if s.pay, err = s.cfg.checkPay(); err != nil {
		return nil, err
	}
	if err := checkRelay(cfg.Relay); err != nil {
		return nil, err
	}
	for _, origin := range cfg.Origins {
		if err := http.NewCrossOriginProtection().AddTrustedOrigin(origin); err != nil || origin == "null" {
			return nil, usagef("sale: %q is no origin; write one such as https://shop.example.com", origin)
		}
	}
	keys, err := parseSaleKeys(cfg.Keys)
	switch {
	case err != nil:
		return nil, usagef("sale: HEADGATE_SALE_KEYS: %w", err)
	case len(keys) == 0 && !s.cfg.sqlite():
		return nil, usagef("sale: there are no keys for order tokens, which all processes and every restart must have in common; " +
			"set HEADGATE_SALE_KEYS or HEADGATE_SALE_KEYS_FILE, such as to the output of: echo \"k1:$(openssl rand -base64 32)\"")
	}
	if len(keys) > 0 {
		if s.keys, err = flashsale.NewTokenKeys(keys...); err != nil {
			return nil, usagef("sale: HEADGATE_SALE_KEYS: %w", err)
		}
	}
	s.watchSecrets()
	return s, nil
}

// announce says in a line what is sold with, and warns of what must not be so where money is to move.
func (s *sale) announce() {
	s.log.Info("headgate sells", s.attrs()...)
	switch s.cfg.Pay {
	case PaySimulated:
		s.log.Warn("payments are SIMULATED: no money moves, and anybody who has a reservation can say that it is paid; this is for trying things out")
		if !s.cfg.sqlite() {
			s.log.Warn("simulated payments are those of one process; run no second one on this database")
		}
	case PayNone:
		s.log.Warn("nothing can be paid: what is reserved expires")
	}
	if s.ownLimits && !s.cfg.sqlite() {
		s.log.Warn("limits, and the tickets of event streams, are counted in the memory of this process: where several sell together each allows as much; write --store redis://HOST:PORT")
	}
	if s.sharedStore {
		s.log.Warn("limits are counted in the Redis that holds the stock; keys of an attacker can fill its memory, and then nothing can be sold: give the stock a Redis of its own")
	}
}

// checkPolicy refuses a policy that cannot say who somebody is.
func (s *sale) checkPolicy(p *policy.Policy) error {
	if err := p.CheckIdentity(s.cfg.User); err != nil {
		return usagef("sale: --sale-user: %w", err)
	}
	if s.cfg.Device == "" {
		return nil
	}
	if err := p.CheckDevice(s.cfg.Device); err != nil {
		return usagef("sale: --sale-device: %w", err)
	}
	return nil
}

// begin reaches out to the stores for the first time. Those that cannot be reached are left to run; what somebody must change is an
// error.
func (s *sale) begin(ctx context.Context) error {
	err := s.compose(ctx)
	switch code := flashsale.CodeOf(err); {
	case err == nil:
		return nil
	case code == flashsale.CodeInvalidArgument || code == "":
		return usagef("%w", err)
	}
	s.away(err)
	return nil
}

// away notes why the sale is not there yet, and logs it when it is another reason than before.
func (s *sale) away(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if why := err.Error(); why != s.why {
		s.why = why
		s.log.Warn("the sale cannot begin yet; its stores are tried again", "error", why)
	}
}

// compose opens what is not open yet, and puts it to work.
func (s *sale) compose(ctx context.Context) (err error) {
	if err := s.openStores(ctx); err != nil {
		return err
	}
	keys, err := s.tokenKeys()
	if err != nil {
		return err
	}
	l := &liveSale{}
	if l.till, err = s.openTill(ctx); err != nil {
		return err
	}
	l.engine, err = engine.New(engine.Config{
		Stock: s.stores.stock, Orders: s.stores.orders, Keys: keys, Payments: l.till.payments, Relay: s.stores.relay, Logger: s.log, Observer: s.observer,
	})
	if err != nil {
		return err
	}
	l.till.webhook = l.engine.Webhook
	l.shop, err = salehttp.New(salehttp.Config{
		Sales: l.engine, Identity: s.identity, Limiter: s.tickets(), Keys: keys, Origins: s.cfg.Origins, Logger: s.log,
	})
	if err != nil {
		return err
	}
	if l.admin, err = saleadmin.New(saleadmin.Config{Sales: l.engine, Actor: AdminActor, Logger: s.log}); err != nil {
		return err
	}
	s.retried.Store(l.engine)
	s.live.Store(l)
	return nil
}

// reach waits until the stores have been reached; it reports false if ctx has ended before.
func (s *sale) reach(ctx context.Context) bool {
	again := time.NewTicker(reachEvery)
	defer again.Stop()
	for s.live.Load() == nil {
		select {
		case <-ctx.Done():
			return false
		case <-again.C:
		}
		if err := s.compose(ctx); err == nil {
			s.log.Info("the stores of the sale have been reached", s.attrs()...)
		} else if ctx.Err() == nil {
			s.away(err)
		}
	}
	return true
}

// watch looks at the files of secrets until ctx ends, or the function that it returns is called.
func (s *sale) watch(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	for _, one := range s.secrets {
		all.Go(func() { one.run(ctx) })
	}
	return func() {
		cancel()
		all.Wait()
	}
}

// run runs the sale until drained is closed: event streams end when ctx does, so that requests can; who decides and pays goes on until
// none is left, and gives its leases back. ready is called when shoppers are welcome.
func (s *sale) run(ctx context.Context, drained <-chan struct{}, ready func()) error {
	unwatch := s.watch(ctx)
	defer unwatch()
	if !s.reach(ctx) {
		return nil
	}
	l := s.live.Load()
	ready()
	stop := context.AfterFunc(ctx, func() { _ = l.shop.Close() }) // it has nothing to fail with
	defer stop()
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var group errgroup.Group
	group.Go(func() error {
		<-drained
		end()
		return nil
	})
	group.Go(func() error { return l.till.run(life) })
	group.Go(func() error { return l.engine.Run(life) })
	return group.Wait()
}

// close gives the stores back. Nothing may use them any more.
func (s *sale) close() error {
	var err error
	if l := s.live.Load(); l != nil {
		err = l.shop.Close()
	}
	if s.pay != nil {
		err = errors.Join(err, s.pay.Close())
	}
	return errors.Join(err, s.stores.close())
}

// ServeHTTP answers what is under /_headgate/.
func (s *sale) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l := s.live.Load()
	switch {
	case l == nil:
		unavailable(w, r)
	case l.till.pages != nil && strings.HasPrefix(r.URL.Path, PayPath):
		l.till.pages.ServeHTTP(w, r)
	default:
		l.shop.ServeHTTP(w, r)
	}
}

// serveAdmin answers operators.
func (s *sale) serveAdmin(w http.ResponseWriter, r *http.Request) {
	if l := s.live.Load(); l != nil {
		l.admin.ServeHTTP(w, r)
		return
	}
	(&saleadmin.Problem{
		Status: http.StatusServiceUnavailable, Code: string(flashsale.CodeUnavailable), RetryAfter: 1, Detail: "the sale cannot begin yet: " + s.whyAway(),
	}).Write(w)
}

func (s *sale) whyAway() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.why
}

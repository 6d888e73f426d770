package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/gateway"
	"github.com/headgate-io/headgate/policy"
	"github.com/headgate-io/headgate/resilience"
	"github.com/headgate-io/headgate/source/filesource"
)

// ServeConfig says what to guard and how. Policy, Listen, and Upstreams unless there is a Sale, have no default.
type ServeConfig struct {
	// Policy is the file with the policy.
	Policy string
	// Upstreams are the servers of the service that is guarded, each as gateway.Config takes it. With none, and a Sale, the sale is all
	// that there is.
	Upstreams []string
	// HealthPath is asked of a server that was ejected, whether it works again; "" has a connection made.
	HealthPath string
	// ResponseTimeout bounds the time to the header of an answer; 0 stands for DefaultResponseTimeout.
	ResponseTimeout time.Duration
	// Adaptive bounds the requests at each server by what it turns out to take.
	Adaptive bool
	// Listen is the address of the gateway.
	Listen string
	// TLSCert and TLSKey are files in PEM form; with both the gateway serves HTTPS, with neither HTTP.
	TLSCert, TLSKey string
	// ProxyProtocol expects the PROXY protocol from the policy's trusted proxies, and takes the client's address from it.
	ProxyProtocol bool
	// Store is where limits are counted; by default memory. Its Log is that of the service.
	Store StoreConfig
	// MarkKey signs the header of requests that are over a limit and pass all the same; a policy that marks needs at least 16
	// bytes.
	MarkKey []byte
	// Instances is how many processes share the store, as long as it has not said so; 0 stands for 1.
	Instances int
	// Reload gets signals that ask to load the policy again, whether or not it seems to have changed; nil never does.
	Reload <-chan os.Signal
	// Sale says how flash sales are run beside the gate; nil for none.
	Sale *SaleConfig
	// Admin is the address of the admin listener; "" for none. Beyond loopback it needs AdminToken; on loopback one is
	// generated where there is none, and lies in a file of mode 0600 while the process lives: in AdminTokenFile, by default
	// admin-PORT.token (admin-ADDRESS-PORT.token where that is not 127.0.0.1) in $XDG_RUNTIME_DIR/headgate, or in headgate-UID of the folder for temporary files.
	Admin          string
	AdminToken     string
	AdminTokenFile string
	// AdminTokens is a file of further tokens, of lines "role name sha256", read again when it changes; "" for none. See NewAdminToken.
	AdminTokens string
	// Version is that of the program, for the status.
	Version string
	// Drain is how long requests that are under way may take to end when the process is asked to stop; by default
	// DefaultDrain.
	Drain time.Duration
	// Log gets one line at the start and what goes wrong; nil discards it.
	Log *slog.Logger
	// AccessLog gets one line for each request; nil writes none.
	AccessLog *slog.Logger
}

// DefaultResponseTimeout is the default of ServeConfig.ResponseTimeout.
const DefaultResponseTimeout = gateway.DefaultResponseTimeout

// DefaultDrain is the default of ServeConfig.Drain: what Kubernetes grants before it kills, less a margin.
const DefaultDrain = 25 * time.Second

// Serve guards a service until ctx ends, then drains. What can be known to be wrong is known before the first request is
// taken: each is one clear error, a [*UsageError] if it lies in the configuration's own text.
func Serve(ctx context.Context, cfg ServeConfig) error {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Drain <= 0 {
		cfg.Drain = DefaultDrain
	}
	s := &service{cfg: cfg, started: time.Now()}
	if err := s.build(ctx); err != nil {
		return errors.Join(err, s.close())
	}
	return errors.Join(s.run(ctx), s.close())
}

// service is everything that serve runs, and how to end it.
type service struct {
	cfg      ServeConfig
	started  time.Time
	store    *Store
	overload *resilience.Overload
	metrics  *serviceMetrics
	reloader *reloader
	sale     *sale // nil if nothing is sold here
	gateway  *gateway.Gateway
	server   *gateway.Server
	tls      *tls.Config // nil for HTTP
	health   Health
	front    net.Listener
	admin    net.Listener // nil if there is none
	// sales is what the admin listener has under /sales, nil if nothing is sold here.
	sales http.Handler
	// token is what the admin listener asks for; tokenFile is where it lies if it was generated.
	token     string
	tokenFile string
	closers   []func() error
}

// build makes the parts, the cheapest to check first. What it has made when it fails, close gives back.
func (s *service) build(ctx context.Context) error {
	s.reloader = &reloader{source: filesource.New(s.cfg.Policy), check: s.check, asked: s.cfg.Reload, log: s.cfg.Log}
	first, err := s.reloader.first(ctx)
	if err != nil {
		return err
	}
	if err := s.buildSale(first.policy); err != nil {
		return err
	}
	if err := s.loadTLS(); err != nil {
		return err
	}
	if err := s.listen(ctx); err != nil {
		return err
	}
	if s.cfg.ProxyProtocol {
		if err := checkProxyProtocol(first.policy); err != nil {
			return err
		}
		s.front = withProxyProtocol(s.front, func() *policy.Policy { return s.reloader.guard.Policy() })
	}
	if s.metrics, err = newServiceMetrics(s); err != nil {
		return err
	}
	if s.sale != nil {
		s.sale.observer = s.metrics.Sale()
	}
	s.overload = resilience.NewOverload(resilience.OverloadConfig{Observer: s.metrics.Resilience(), Logger: s.cfg.Log})
	s.closers = append(s.closers, s.overload.Close)
	s.cfg.Store.Log, s.cfg.Store.MayBeAway, s.cfg.Store.Watch = s.cfg.Log, true, s.metrics.storeWatch(s.cfg.Store.URL.redis != nil)
	if s.store, err = OpenStore(ctx, s.cfg.Store); err != nil {
		return err
	}
	s.closers = append(s.closers, s.store.Close)
	if err := s.reloader.begin(first, GuardConfig{
		Store: s.store, MarkKey: s.cfg.MarkKey, Instances: s.cfg.Instances, Overload: s.overload, Watch: s.metrics.guardWatch(s.store.Remote), Log: s.cfg.Log,
	}); err != nil {
		return err
	}
	s.closers = append(s.closers, s.reloader.guard.Close)
	if s.sale != nil {
		if err := s.sale.begin(ctx); err != nil {
			return err
		}
	}
	s.awaitFleet(ctx)
	return s.buildGateway()
}

// buildSale makes the sale, if there is one, without reaching its stores.
func (s *service) buildSale(p *policy.Policy) (err error) {
	if s.cfg.Sale == nil {
		return nil
	}
	if s.sale, err = newSale(*s.cfg.Sale, s.cfg.Log); err != nil {
		return err
	}
	s.sale.guard = func() *Guard { return s.reloader.guard }
	s.sale.tickets = func() headgate.Limiter { return s.store }
	s.sale.sharedStore = s.cfg.Store.URL.sameRedis(s.cfg.Sale.Store)
	s.sale.ownLimits = s.cfg.Store.URL.redis == nil
	s.sales = http.HandlerFunc(s.sale.serveAdmin)
	s.closers = append(s.closers, s.sale.close)
	return s.sale.checkPolicy(p)
}

// check refuses a policy that cannot take the place of the one in force.
func (s *service) check(e *policy.Engine) error {
	if s.cfg.ProxyProtocol {
		if err := checkProxyProtocol(e.Policy()); err != nil {
			return err
		}
	}
	if s.sale != nil {
		if err := s.sale.checkPolicy(e.Policy()); err != nil {
			return err
		}
	}
	return gateway.Check(e)
}

// fleetWithin is how long the start waits for the fleet's switches.
const fleetWithin = time.Second

// awaitFleet lets no request pass a switch that the fleet has turned and this process has not heard of yet.
func (s *service) awaitFleet(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, fleetWithin)
	defer cancel()
	s.reloader.guard.AwaitFleet(ctx)
}

func (s *service) buildGateway() (err error) {
	var adaptive *gateway.Adaptive
	if s.cfg.Adaptive {
		adaptive = new(gateway.Adaptive)
	}
	var reserved http.Handler
	if s.sale != nil {
		reserved = s.sale
	}
	s.gateway, err = gateway.New(gateway.Config{
		Reserved: reserved,
		Ejection: gateway.Ejection{HealthPath: s.cfg.HealthPath}, ResponseTimeout: s.cfg.ResponseTimeout, Adaptive: adaptive,
		Upstreams: s.cfg.Upstreams, Decider: s.reloader.guard, Logger: s.cfg.Log, AccessLog: s.cfg.AccessLog,
		Observe: s.observe,
	})
	if err != nil {
		return &UsageError{err}
	}
	s.closers = append(s.closers, s.gateway.Close)
	s.server, err = gateway.NewServer(gateway.ServerConfig{
		Handler: withoutForged(s.reloader.guard, s.gateway), TLS: s.tls, Logger: s.cfg.Log, DrainTimeout: s.cfg.Drain,
	})
	return err
}

// observe is told of each request that is over.
func (s *service) observe(e *gateway.Event) {
	s.metrics.request(e)
	if s.sale != nil {
		s.sale.noteDenied(e)
	}
}

// close gives everything back, in the reverse order of its making.
func (s *service) close() error {
	var all error
	for i := len(s.closers) - 1; i >= 0; i-- {
		all = errors.Join(all, s.closers[i]())
	}
	s.closers = nil
	return all
}

// run serves until ctx ends or a server fails, and drains.
func (s *service) run(ctx context.Context) error {
	s.announce()
	group, ctx := errgroup.WithContext(ctx)
	drained := make(chan struct{})
	if s.sale == nil {
		s.health.SetReady(true)
	} else {
		s.health.SetStarting()
		group.Go(func() error { return s.sale.run(ctx, drained, s.health.started) })
	}
	group.Go(func() error {
		<-ctx.Done()
		s.health.SetReady(false)
		s.cfg.Log.Info("stopping: no new connections, requests under way may end", "within", s.cfg.Drain.String()) // in JSON a duration would be a number without a unit
		return nil
	})
	if s.admin != nil {
		group.Go(func() error { return s.runAdmin(ctx, drained) })
	}
	group.Go(func() error {
		s.follow(ctx)
		return nil
	})
	group.Go(func() error {
		defer close(drained)
		if err := s.server.Run(ctx, s.front); err != nil {
			return fmt.Errorf("gateway: %w", err)
		}
		return nil
	})
	err := group.Wait()
	s.cfg.Log.Info("stopped")
	return err
}

// leaveAfter is how long the end of the process waits for a load of the policy.
const leaveAfter = time.Second

// follow keeps the policy up to date until ctx ends. A load that hangs then, as in a file of a server that does not answer, is
// left behind: the process is asked to end, and no request needs it.
func (s *service) follow(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.reloader.run(ctx)
	}()
	<-ctx.Done()
	select {
	case <-done:
	case <-time.After(leaveAfter):
		s.cfg.Log.Warn("the policy's file does not answer; it is not waited for", "policy", s.reloader.source.Name())
	}
}

// runAdmin answers probes until the gateway has drained, so that they see it drain.
func (s *service) runAdmin(ctx context.Context, drained <-chan struct{}) error {
	srv := newAdminServer(adminConfig{
		health: &s.health, status: s.status, levels: s.reloader.guard.Levels(), metrics: s.metrics.Handler(), token: s.token, tokens: s.cfg.AdminTokens, sales: s.sales, loopback: isLoopback(s.admin.Addr()), log: s.cfg.Log,
	})
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(s.admin) }()
	select {
	case err := <-failed:
		return fmt.Errorf("admin: %w", err)
	case <-drained:
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if srv.Shutdown(last) != nil {
		_ = srv.Close()
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("admin: %w", err)
	}
	return nil
}

// announce says in one line what is guarded, by which policy, with which store.
func (s *service) announce() {
	admin := "none"
	if s.admin != nil {
		admin = s.admin.Addr().String()
	}
	scheme := "http"
	if s.tls != nil {
		scheme = "https"
	}
	p := s.reloader.Status()
	attrs := []any{"listen", scheme + "://" + s.front.Addr().String(), "policy", p.Name, "version", p.Version,
		"rules", p.Rules, "store", s.store.Name, "admin", admin}
	if s.tokenFile != "" {
		attrs = append(attrs, "admin_token_file", s.tokenFile)
	}
	guarded := strings.Join(s.cfg.Upstreams, ", ")
	if guarded == "" {
		guarded = "its sale"
	}
	s.cfg.Log.Info("headgate guards "+guarded, attrs...)
	if s.sale != nil {
		s.sale.announce()
		if s.admin == nil {
			s.cfg.Log.Warn("there is no admin listener: sales are created and opened by another process, or not at all; write --admin 127.0.0.1:9090")
		}
	}
	s.reloader.warn()
}

package metrics

import (
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics keeps the counts and shows them. It is safe for concurrent use.
type Metrics struct {
	cfg      Config
	registry *prometheus.Registry
	policy   PolicyView
	store    StoreView
	leases   LeaseView
	changes  ResilienceView
	gateway  GatewayView
	sale     SaleView
	memory   *table[string, MemoryView]
	rules    *rules
}

// New returns Metrics with a registry of their own.
func New(cfg Config) (*Metrics, error) {
	m := &Metrics{cfg: cfg.withDefaults(), registry: prometheus.NewRegistry()}
	m.rules = newRules(m.cfg.MaxRules)
	m.policy = newPolicyView(m.rules)
	m.store = newStoreView(m.rules)
	m.leases = newLeaseView(m.rules)
	m.changes = newResilienceView()
	m.gateway = newGatewayView()
	m.sale = newSaleView(m.cfg.MaxSKUs)
	m.memory = newTable[string](maxMemories, func() *MemoryView { return new(MemoryView) })
	all := []prometheus.Collector{&scrape{m: m, descs: descriptions()}}
	if !m.cfg.OwnOnly {
		all = append(all, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	for _, c := range all {
		if err := m.registry.Register(c); err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
	}
	return m, nil
}

// Bounds of a scrape. A second one that comes while one is under way gets the same figures.
const (
	scrapeTimeout = 9 * time.Second // Prometheus gives up after 10 by default
	maxScrapes    = 8
)

// Handler returns the page that Prometheus reads. It asks for no credentials.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog: scrapeLog{m.cfg.Logger}, ErrorHandling: promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes, Timeout: scrapeTimeout, CoalesceGather: true, EnableOpenMetrics: true,
	})
}

// Gatherer returns what the page is made of, for programs with a page of their own.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// SetRules says which rules there are now, by the names that Decided tells, lists ("list:NAME") among them. Rules that are
// not named any more lose their series, those that stay keep their counts, and what is decided by others, such as those of a
// policy whose last requests are still under way, counts as "(other)", as do all beyond Config.MaxRules. Until it is called
// every rule that decides has a series.
func (m *Metrics) SetRules(names []string) { m.rules.set(names) }

// Policy returns the observer of a policy's engine.
func (m *Metrics) Policy() *PolicyView { return &m.policy }

// Store returns the observer of a store on Redis.
func (m *Metrics) Store() *StoreView { return &m.store }

// Leases returns the observer of a store of leases.
func (m *Metrics) Leases() *LeaseView { return &m.leases }

// Resilience returns the observer of breakers, levels and overload.
func (m *Metrics) Resilience() *ResilienceView { return &m.changes }

// Gateway returns what is to be told of each request of a gateway.
func (m *Metrics) Gateway() *GatewayView { return &m.gateway }

// Sale returns the observer of the engine of a flash sale.
func (m *Metrics) Sale() *SaleView { return &m.sale }

// maxMemories bounds the stores in memory that are told apart.
const maxMemories = 16

// Memory returns the observer of one store in memory, which the name, such as "store" or "fallback", tells apart.
func (m *Metrics) Memory(name string) *MemoryView { return m.memory.of(name) }

// build returns the version of the program, of Go, and of the source.
func (m *Metrics) build() (version, goVersion, revision string) {
	version, goVersion, revision = m.cfg.Version, runtime.Version(), "unknown"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version, goVersion, revision
	}
	if version == "" {
		version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			revision = s.Value
		}
	}
	return version, goVersion, revision
}

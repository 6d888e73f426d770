package metrics_test

import (
	"time"

	"github.com/headgate-io/headgate/memstore"
	"github.com/headgate-io/headgate/metrics"
	"github.com/headgate-io/headgate/policy"
	"github.com/headgate-io/headgate/redisstore"
	"github.com/headgate-io/headgate/resilience"
)

// The views are what the other packages ask for, though none knows the others.
var (
	_ policy.Observer             = (*metrics.PolicyView)(nil)
	_ redisstore.Observer         = (*metrics.StoreView)(nil)
	_ memstore.Observer           = (*metrics.MemoryView)(nil)
	_ resilience.BreakerObserver  = (*metrics.ResilienceView)(nil)
	_ resilience.OverloadObserver = (*metrics.ResilienceView)(nil)
)

func ExampleMetrics() {
	m, err := metrics.New(metrics.Config{Version: "v1.0.0"})
	if err != nil {
		return // two metrics of one name
	}
	store := memstore.New(memstore.Config{Observer: m.Memory("store")})
	defer store.Close()
	m.SetRules([]string{"login", "list:scanners"})
	m.Policy().Decided("login", "allow", 3*time.Microsecond)
	_ = m.Handler() // at /metrics
}

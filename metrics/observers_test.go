package metrics_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/headgate-io/headgate/leasestore"
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
	_ leasestore.Observer         = (*metrics.LeaseView)(nil)
	_ memstore.Observer           = (*metrics.MemoryView)(nil)
	_ resilience.BreakerObserver  = (*metrics.ResilienceView)(nil)
	_ resilience.LevelObserver    = (*metrics.ResilienceView)(nil)
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

	page := httptest.NewRecorder()
	m.Handler().ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(page.Body.String()) {
		if strings.HasPrefix(line, "headgate_decisions_total{rule=\"login\"") {
			fmt.Print(line)
		}
	}
	// Output:
	// headgate_decisions_total{rule="login",verdict="allow"} 1
	// headgate_decisions_total{rule="login",verdict="limited"} 0
}

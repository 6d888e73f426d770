package metrics_test

import (
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale/engine"
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
	_ engine.Observer             = (*metrics.SaleView)(nil)
	_ engine.RefusalObserver      = (*metrics.SaleView)(nil)
)

// Each alarm of a sale has an alert, and a line that says what to do.
func TestDocsHaveEveryAlarm(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("../flashsale/engine/observer.go")
	if err != nil {
		t.Fatal(err)
	}
	kinds := regexp.MustCompile(`\tAlarm\w+ += "(\w+)"`).FindAllSubmatch(source, -1)
	if len(kinds) < 10 {
		t.Fatalf("%d kinds of alarms were found", len(kinds))
	}
	for _, kind := range kinds {
		for _, want := range []string{fmt.Sprintf(`headgate_sale_alarm_active{kind=%q}`, kind[1]), "\n| `" + string(kind[1]) + "` | "} {
			if !strings.Contains(string(text), want) {
				t.Errorf("docs/metrics.md has no %q", want)
			}
		}
	}
}

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

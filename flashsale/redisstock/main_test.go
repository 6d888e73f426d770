package redisstock_test

import (
	"context"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale/redisstock"
	"github.com/headgate-io/headgate/internal/testservers"
	"go.uber.org/goleak"
)

// shared is the server of the tests that do it no harm.
var shared = testservers.Share(func(tb testservers.TB) *testservers.RedisServer {
	return testservers.Redis(tb, testservers.AppendOnly())
})

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.Cleanup(func(code int) {
			shared.Close()
			os.Exit(code)
		}),
		// The client of a cluster closes connections of nodes that it does not use any more 5 s later, and looks at a cluster that
		// failed a second later, in goroutines that nobody can end.
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

var namespaces atomic.Int64

// newNamespace keeps tests on one server apart.
func newNamespace() string { return "t" + strconv.FormatInt(namespaces.Add(1), 36) }

// patience is how long a call may take where a test is not about that: the machine may stand still for a while.
const patience = time.Minute

// open returns a stock for a test, in a namespace of its own.
func open(tb testing.TB, cfg redisstock.Config) *redisstock.Stock {
	tb.Helper()
	if cfg.Addrs == nil && cfg.Client == nil {
		cfg.Addrs = []string{shared.Get(tb).Addr()}
	}
	if cfg.Namespace == "" {
		cfg.Namespace = newNamespace()
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = patience
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = patience
	}
	s, err := redisstock.New(context.Background(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

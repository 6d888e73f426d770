package redisstock_test

import (
	"context"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale/redisstock"
	"github.com/headgate-io/headgate/internal/leaktest"
	"github.com/headgate-io/headgate/internal/testservers"
)

// shared is the server of the tests that do it no harm.
var shared = testservers.Share(func(tb testservers.TB) *testservers.RedisServer {
	return testservers.Redis(tb, testservers.AppendOnly())
})

func TestMain(m *testing.M) {
	os.Exit(leaktest.Main(m, shared.Close, leaktest.RedisCluster()...))
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

package redisstore_test

import (
	"context"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/leaktest"
	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/headgate-io/headgate/redisstore"
)

// shared is the server of the tests that do it no harm.
var shared = testservers.Share(func(tb testservers.TB) *testservers.RedisServer { return testservers.Redis(tb) })

func TestMain(m *testing.M) {
	os.Exit(leaktest.Main(m, shared.Close, leaktest.RedisCluster()...))
}

var namespaces atomic.Int64

// newNamespace keeps tests on one server apart.
func newNamespace() string { return "t" + strconv.FormatInt(namespaces.Add(1), 36) }

// hasty is the time-out that a store has by default. A test that is not about time-outs has a patient one: a machine that has other things
// to do for a moment makes no answer wrong.
const hasty = 200 * time.Millisecond

// open returns a store for a test in a namespace of its own, which is patient unless the Config says otherwise.
func open(tb testing.TB, cfg redisstore.Config) *redisstore.Store {
	tb.Helper()
	if cfg.Timeout == 0 {
		cfg.Timeout, cfg.ConnectTimeout = time.Minute, time.Minute
	}
	if cfg.Addrs == nil && cfg.Client == nil {
		cfg.Addrs = []string{shared.Get(tb).Addr()}
	}
	if cfg.Namespace == "" {
		cfg.Namespace = newNamespace()
	}
	s, err := redisstore.New(context.Background(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

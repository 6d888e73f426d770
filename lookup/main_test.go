package lookup_test

import (
	"os"
	"testing"

	"github.com/headgate-io/headgate/internal/leaktest"
	"github.com/headgate-io/headgate/internal/testservers"
)

// shared is the server of the tests that do it no harm.
var shared = testservers.Share(func(tb testservers.TB) *testservers.RedisServer { return testservers.Redis(tb) })

func TestMain(m *testing.M) {
	os.Exit(leaktest.Main(m, shared.Close))
}

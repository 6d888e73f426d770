package lookup_test

import (
	"os"
	"testing"

	"github.com/headgate-io/headgate/internal/testservers"
	"go.uber.org/goleak"
)

// shared is the server of the tests that do it no harm.
var shared = testservers.Share(func(tb testservers.TB) *testservers.RedisServer { return testservers.Redis(tb) })

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		shared.Close()
		os.Exit(code)
	}))
}

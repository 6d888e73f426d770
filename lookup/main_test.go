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
	code := m.Run()
	shared.Close()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			code = 1
		}
	}
	os.Exit(code)
}

package faults

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/headgate-io/headgate/internal/testservers"
)

var seedFlag = flag.Uint64("faults.seed", 0, "draw faults and shoppers from this seed; 0: from one of its own for each test")

// The databases that no test restarts.
var (
	sharedPostgres = testservers.Share(func(tb testservers.TB) *testservers.PostgresServer {
		return testservers.Postgres(tb, testservers.DurableData())
	})
	sharedMariaDB = testservers.Share(func(tb testservers.TB) *testservers.MariaDBServer {
		return testservers.MariaDB(tb, testservers.DurableData())
	})
)

// atOnce is how many sales go on at a time. They wait more than they work.
const atOnce = "3"

func TestMain(m *testing.M) {
	if config := os.Getenv(instanceEnv); config != "" {
		if err := runInstance(config); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", atOnce) // the flag is there, and takes a number
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		sharedPostgres.Close()
		sharedMariaDB.Close()
		os.Exit(code)
	}))
}

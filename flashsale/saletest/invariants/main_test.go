package invariants

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/headgate-io/headgate/internal/testservers"
)

// servers are those that all tests share, each test with a database and a namespace of its own. Each pair has its own Redis.
type servers struct {
	postgres *testservers.Shared[*testservers.PostgresServer]
	mariadb  *testservers.Shared[*testservers.MariaDBServer]
	redis    map[string]*testservers.Shared[*testservers.RedisServer]
}

var shared = servers{
	postgres: testservers.Share(func(tb testservers.TB) *testservers.PostgresServer { return testservers.Postgres(tb) }),
	mariadb:  testservers.Share(func(tb testservers.TB) *testservers.MariaDBServer { return testservers.MariaDB(tb) }),
	redis: map[string]*testservers.Shared[*testservers.RedisServer]{
		redisAndPostgres: testservers.Share(startRedis), redisAndMariaDB: testservers.Share(startRedis),
	},
}

func startRedis(tb testservers.TB) *testservers.RedisServer { return testservers.Redis(tb) }

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		shared.postgres.Close()
		shared.mariadb.Close()
		for _, r := range shared.redis {
			r.Close()
		}
		os.Exit(code)
	}))
}

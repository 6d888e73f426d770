package invariants

import (
	"os"
	"testing"

	"github.com/headgate-io/headgate/internal/leaktest"
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
	os.Exit(leaktest.Main(m, shared.close))
}

func (s *servers) close() {
	s.postgres.Close()
	s.mariadb.Close()
	for _, r := range s.redis {
		r.Close()
	}
}

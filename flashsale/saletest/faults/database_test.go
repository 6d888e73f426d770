package faults

import (
	"testing"

	"github.com/headgate-io/headgate/internal/testservers"
)

// database is what the tests need of a server of their own.
type database interface {
	Database(tb testservers.TB) string
	Kill()
	Stop() error
	Restart() error
}

// TestDatabaseRestarted: the database is restarted in order, then killed and started again. Redis goes on accepting meanwhile; what it has
// accepted is decided when SQL is back, and nobody is told to try again.
func TestDatabaseRestarted(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T) database{
		"postgres": func(t *testing.T) database { return testservers.Postgres(t, testservers.DurableData()) },
		"mariadb":  func(t *testing.T) database { return testservers.MariaDB(t, testservers.DurableData()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := start(t)
			s := openSale(t, stores{redis: durableRedis(t), database: db.Database(t)}, 2)
			s.crowd.lossless = true
			s.crowd.come()
			for _, end := range []func() error{db.Stop, func() error { db.Kill(); return nil }} {
				s.goesOn()
				s.stockUp()
				s.underWay(5 + s.draw(40))
				s.check(end())
				s.outage()
				s.check(db.Restart())
				s.goesOn()
				s.settle()
			}
			s.finish()
		})
	}
}

package sqlorders

import (
	"context"
	"database/sql"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// Config says which database holds the orders. URL is needed; every other field has a default.
type Config struct {
	// URL is one of
	//
	//	postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=…   (also postgresql://, and HOST:PORT,HOST:PORT for one primary of several)
	//	mysql://USER:PASSWORD@HOST:PORT/DATABASE?tls=…   (also mariadb://)
	//	postgres://USER:PASSWORD@/DATABASE?host=/FOLDER, mysql://USER:PASSWORD@/DATABASE?socket=/PATH, for sockets of this machine
	//	sqlite:FILE, or sqlite::memory:, which is gone when it is closed
	//
	// The parameters of postgres are those of pgx; tls is "true", "skip-verify", "preferred" or "false" (the default).
	URL string
	// MaxConns bounds the connections, 1 to 1000. Default 16; on SQLite, which has one that writes, those that read, and 4.
	MaxConns int
	// Timeout bounds a call, with its wait for a connection and for locks, and with all its repeats; 10 ms to 5 min. Default 5 s. Of
	// Snapshot and Books, which read much, it bounds only the beginning. The server ends transactions that stand still for so long (MySQL
	// and MariaDB: in whole seconds), so that a process which has stopped, or has no network any more, holds up nobody for longer.
	Timeout time.Duration
	// Now is the clock. Default: that of the database.
	Now func() time.Time
	// Logger gets what an engineer on call should know. Default: nothing is logged.
	Logger *slog.Logger
	// Retried is told each time that a transaction is repeated: the method, how often it was tried, and why. It must not block. For the
	// engine's alarm about retries give it engine.Engine.Retried, as the example of that package does. Default: nobody is told.
	Retried func(method string, tries int, why error)
}

const (
	defaultTimeout   = 5 * time.Second
	minTimeout       = 10 * time.Millisecond
	maxTimeout       = 5 * time.Minute
	defaultConns     = 16
	defaultReaders   = 4
	maxConns         = 1000
	connIdleTime     = 5 * time.Minute
	connLifeTime     = time.Hour // so that a changed address or a new replica is noticed
	migrationTimeout = 5 * time.Minute
	// snapshotIdle bounds how long a transaction may stand still that reads much, as fast as what it reads is taken, and locks nothing.
	snapshotIdle = 5 * time.Minute
)

func (c Config) withDefaults() (Config, error) {
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Timeout < minTimeout || c.Timeout > maxTimeout {
		return c, invalidf("sqlorders: Config.Timeout is %s; give %s to %s", c.Timeout, minTimeout, maxTimeout)
	}
	if c.MaxConns < 0 || c.MaxConns > maxConns {
		return c, invalidf("sqlorders: Config.MaxConns is %d; give 1 to %d", c.MaxConns, maxConns)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Retried == nil {
		c.Retried = func(string, int, error) {}
	}
	return c, nil
}

// Orders is a flashsale.Orders in SQL. It is safe for concurrent use.
type Orders struct {
	cfg Config
	d   *dialect
	// db writes, and reads what must be as new as what was written; readers is another pool on SQLite, and else the same.
	db, readers *sql.DB
	// single tells that there is one connection for everything.
	single bool
	// release gives the lock on the file of SQLite back.
	release func() error
	closed  atomic.Bool
	// pruned is the id up to which PruneOutbox has looked.
	pruned atomic.Int64
	leases *sightings
}

var _ flashsale.Orders = (*Orders)(nil)

// Open connects, brings the schema up to date, and checks that the database can be written. The error's code is CodeInvalidArgument
// where somebody has to change something (the URL, a password, rights, a schema that is newer than this program, a file of SQLite
// that another process has), CodeUnavailable where the database cannot be reached now.
func Open(ctx context.Context, cfg Config) (*Orders, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	o, err := connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	o.leases = newSightings(cfg.Now)
	if err := o.prepare(ctx); err != nil {
		_ = o.Close() // the first error says more
		return nil, err
	}
	return o, nil
}

// prepare reaches the database for the first time.
func (o *Orders) prepare(ctx context.Context) error {
	ping, cancel := context.WithTimeout(ctx, o.cfg.Timeout)
	defer cancel()
	if err := o.db.PingContext(ping); err != nil {
		return o.openError("cannot be opened", err)
	}
	migrating, cancel := context.WithTimeout(ctx, migrationTimeout)
	defer cancel()
	if err := o.migrate(migrating); err != nil {
		return err
	}
	return o.checkWritable(ctx)
}

// checkWritable writes nothing, which a replica does not take either.
func (o *Orders) checkWritable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, o.cfg.Timeout)
	defer cancel()
	err := o.once(ctx, o.db, nil, func(t *tx) error {
		_, err := t.exec("DELETE FROM lease WHERE name = ''")
		return err
	})
	if err != nil {
		return o.openError("cannot be written", err)
	}
	return nil
}

// Close ends all connections. Calls after it are refused with CodeClosed. Closing twice does no harm.
func (o *Orders) Close() error {
	if o.closed.Swap(true) {
		return nil
	}
	err := o.db.Close()
	if o.readers != o.db {
		if err2 := o.readers.Close(); err == nil {
			err = err2
		}
	}
	if err2 := o.release(); err == nil {
		err = err2
	}
	if err != nil {
		return &flashsale.Error{Code: flashsale.CodeInternal, Message: "sqlorders: closing " + o.d.name, Err: err}
	}
	return nil
}

// Now is the database's clock, or Config.Now.
func (o *Orders) Now(ctx context.Context) (time.Time, error) {
	var now int64
	err := o.read(ctx, "Now", func(t *tx) error {
		err := t.clock()
		now = t.now
		return err
	})
	return timeAt(now), err
}

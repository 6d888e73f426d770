package inbox_test

import (
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/headgate-io/headgate/flashsale/inbox"
	"github.com/headgate-io/headgate/internal/leaktest"
	"github.com/headgate-io/headgate/internal/testservers"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"
)

var (
	postgres = testservers.Share(func(tb testservers.TB) *testservers.PostgresServer { return testservers.Postgres(tb) })
	mariadb  = testservers.Share(func(tb testservers.TB) *testservers.MariaDBServer { return testservers.MariaDB(tb) })
)

func TestMain(m *testing.M) {
	os.Exit(leaktest.Main(m, func() {
		postgres.Close()
		mariadb.Close()
	}))
}

// database is an empty one, and how to open it.
type database struct {
	dialect     inbox.Dialect
	driver, dsn string
	value       string // of a placeholder
}

func (d database) open(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open(d.driver, d.dsn)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(20)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// onEach runs a test on an empty database of each kind.
func onEach(t *testing.T, f func(t *testing.T, d database)) {
	t.Helper()
	for name, start := range map[string]func(t *testing.T) database{
		"SQLite": func(t *testing.T) database {
			t.Helper()
			file := filepath.Join(t.TempDir(), "reader.db")
			return database{inbox.SQLite, "sqlite", "file:" + file + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)", "?"}
		},
		"PostgreSQL": func(t *testing.T) database {
			t.Helper()
			return database{inbox.PostgreSQL, "pgx", postgres.Get(t).Database(t), "$1"}
		},
		// Whoever demands the strictest isolation gets errors that have to be tried again.
		"PostgreSQL, serializable": func(t *testing.T) database {
			t.Helper()
			dsn := postgres.Get(t).Database(t)
			separator := "?"
			if strings.Contains(dsn, "?") {
				separator = "&"
			}
			return database{inbox.PostgreSQL, "pgx", dsn + separator + "default_transaction_isolation=serializable", "$1"}
		},
		"MariaDB": func(t *testing.T) database {
			t.Helper()
			return database{inbox.MySQL, "mysql", mysqlDSN(t, mariadb.Get(t).Database(t), false), "?"}
		},
		"MariaDB, rows found": func(t *testing.T) database {
			t.Helper()
			return database{inbox.MySQL, "mysql", mysqlDSN(t, mariadb.Get(t).Database(t), true), "?"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, start(t))
		})
	}
}

func mysqlDSN(t *testing.T, address string, found bool) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	cfg := mysql.NewConfig()
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.Net, cfg.Addr, cfg.DBName = "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	cfg.ClientFoundRows = found
	return cfg.FormatDSN()
}

// reader is a service with a table that its messages change.
type reader struct {
	*inbox.Inbox
	t     *testing.T
	db    *sql.DB
	value string
	now   time.Time
}

func newReader(t *testing.T, d database, consumer string) *reader {
	t.Helper()
	r := &reader{t: t, db: d.open(t), value: d.value, now: time.Now()}
	box, err := inbox.New(inbox.Config{DB: r.db, Dialect: d.dialect, Consumer: consumer, Now: func() time.Time { return r.now }})
	if err != nil {
		t.Fatal(err)
	}
	r.Inbox = box
	for range 2 {
		if err := box.Init(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.db.ExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS booked (amount BIGINT NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	return r
}

// book is what a message does.
func (r *reader) book(tx *sql.Tx, amount int64) error {
	_, err := tx.ExecContext(r.t.Context(), "INSERT INTO booked (amount) VALUES ("+r.value+")", amount)
	return err
}

func (r *reader) wantBooked(rows, sum int64) {
	r.t.Helper()
	var gotRows, gotSum int64
	if err := r.db.QueryRowContext(r.t.Context(), "SELECT COUNT(*), COALESCE(SUM(amount), 0) FROM booked").Scan(&gotRows, &gotSum); err != nil {
		r.t.Fatal(err)
	}
	if gotRows != rows || gotSum != sum {
		r.t.Fatalf("%d rows of %d are booked, want %d of %d", gotRows, gotSum, rows, sum)
	}
}

// once takes a message and expects whether it is the first time.
func (r *reader) once(id string, want bool) {
	r.t.Helper()
	first, err := r.Once(r.t.Context(), id, func(tx *sql.Tx) error { return r.book(tx, 1) })
	if err != nil || first != want {
		r.t.Fatalf("message %q: first %v, %v; want %v", id, first, err, want)
	}
}

package sqlorders

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/headgate-io/headgate/flashsale"
)

const memory = ":memory:"

// sqliteParameter is what other programs would read as a parameter; any other name of a file is one.
var sqliteParameter = regexp.MustCompile(`\?\w+=`)

// connectSQLite opens a file for this process alone. One connection writes, others read beside it, by a write-ahead log that is
// synced with every commit.
func connectSQLite(ctx context.Context, cfg Config, name string) (*Orders, error) {
	if name == memory {
		return connectMemory(cfg)
	}
	name = strings.TrimPrefix(name, "//")
	if name == "" {
		return nil, invalidf("sqlorders: Config.URL names no file; it is sqlite:FILE, or sqlite::memory:")
	}
	if sqliteParameter.MatchString(name) {
		return nil, invalidf("sqlorders: Config.URL has parameters, and sqlite:FILE takes none: leave out the ? and what follows")
	}
	path, err := realPath(name)
	if err != nil {
		return nil, &flashsale.Error{Code: flashsale.CodeInvalidArgument, Message: "sqlorders: the SQLite file " + name + " is in no folder that can be read", Err: err}
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, invalidf("sqlorders: %s is no file that can be a SQLite database: it is a folder or a device", path)
	}
	release, err := lockFile(ctx, path)
	if err != nil {
		return nil, err
	}
	o := &Orders{cfg: cfg, d: sqliteDialect(path), release: release}
	if cfg.MaxConns == 0 {
		cfg.MaxConns = defaultReaders
	}
	pragmas := fmt.Sprintf("?_pragma=busy_timeout(%d)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)", cfg.Timeout.Milliseconds())
	if o.db, err = openSQLite(fileURI(path)+pragmas+"&_txlock=immediate", 1); err == nil {
		o.readers, err = openSQLite(fileURI(path)+pragmas+"&_pragma=query_only(1)&_txlock=deferred", cfg.MaxConns)
	}
	if err != nil {
		_ = release()
		return nil, err
	}
	return o, nil
}

// connectMemory has one connection for everything, since the data is the connection's.
func connectMemory(cfg Config) (*Orders, error) {
	db, err := openSQLite(memory+"?_pragma=foreign_keys(1)&_txlock=immediate", 1)
	if err != nil {
		return nil, err
	}
	db.SetConnMaxIdleTime(0)
	db.SetConnMaxLifetime(0)
	return &Orders{cfg: cfg, d: sqliteDialect("in memory"), db: db, readers: db, single: true, release: func() error { return nil }}, nil
}

func openSQLite(dsn string, conns int) (*sql.DB, error) {
	connector, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, &flashsale.Error{Code: flashsale.CodeInvalidArgument, Message: "sqlorders: the file of SQLite", Err: err}
	}
	db := sql.OpenDB(connector)
	limitPool(db, conns)
	if conns == 1 { // the one that writes stays
		db.SetConnMaxIdleTime(0)
		db.SetConnMaxLifetime(0)
	}
	return db, nil
}

// realPath is the one name that a file has, so that two names of it meet the same lock.
func realPath(name string) (string, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target, nil
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, filepath.Base(path)), nil
}

func fileURI(path string) string {
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	return u.String()
}

// lockFile takes a lock that ends with this process, however it ends: an exclusive transaction, never committed, on an empty database
// beside the file. SQLite knows how to lock on every system, and within one process.
func lockFile(ctx context.Context, path string) (release func() error, err error) {
	db, err := openSQLite(fileURI(path+".lock")+"?_txlock=exclusive", 1)
	if err != nil {
		return nil, err
	}
	tx, err := db.BeginTx(context.WithoutCancel(ctx), nil)
	if err == nil {
		return func() error {
			err := tx.Rollback()
			return errors.Join(err, db.Close())
		}, nil
	}
	_ = db.Close()
	if f := classifySQLite(err); f.kind == failRetry {
		return nil, invalidf("sqlorders: another process has the SQLite file %s open (or this one, twice); SQLite serves one process: stop the other, or use PostgreSQL or MySQL for several", path)
	}
	return nil, &flashsale.Error{Code: flashsale.CodeInvalidArgument, Message: "sqlorders: the SQLite file " + path + " cannot be locked: its folder must be writable, for " + path + ".lock", Err: err}
}

func sqliteDialect(where string) *dialect {
	return &dialect{
		name: "SQLite", where: where, migrations: "sqlite",
		lock:      "%s",
		excluded:  "excluded.%s",
		returning: true,
		integer:   "INTEGER",
		maxParams: 32766,
		classify:  classifySQLite,
		durable: []durableSetting{
			{name: "synchronous", good: []string{"full", "extra"},
				query: "SELECT CASE synchronous WHEN 3 THEN 'extra' WHEN 2 THEN 'full' WHEN 1 THEN 'normal' ELSE 'off' END FROM pragma_synchronous"},
			{name: "journal_mode", query: "SELECT journal_mode FROM pragma_journal_mode", good: []string{"wal", "delete", "truncate", "persist"}},
		},
	}
}

// classifySQLite goes by the result codes of SQLite, extended ones for constraints.
func classifySQLite(err error) failure {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return failure{kind: lostIfNetwork(err)}
	}
	switch e.Code() {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID:
		return failure{kind: failDuplicate, what: sqliteConstraint(e)}
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return failure{kind: failRetry}
	case sqlite3.SQLITE_CONSTRAINT:
		return failure{kind: failConstraint, what: sqliteConstraint(e)}
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_CANTOPEN:
		return failure{kind: failLost}
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return failure{kind: failRefused, hint: "the file or its folder cannot be written"}
	case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		return failure{kind: failRefused, hint: "the file is not a sound SQLite database"}
	}
	return failure{}
}

// sqliteConstraint is what the message says behind its last colon but for the code: names, never values.
func sqliteConstraint(e *sqlite.Error) string {
	text := e.Error()
	if i := strings.LastIndex(text, "failed: "); i >= 0 {
		text = text[i+len("failed: "):]
	}
	if i := strings.LastIndex(text, " ("); i >= 0 {
		text = text[:i]
	}
	return text
}

package sqlorders

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"
	goosedb "github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"

	"github.com/headgate-io/headgate/flashsale"
)

//go:embed migrations
var migrations embed.FS

// versionTable is where goose notes the version of the schema.
const versionTable = "headgate_schema"

// migrate brings the schema up to date, one process at a time.
func (o *Orders) migrate(ctx context.Context) error {
	provider, err := o.migrator()
	if err != nil {
		return &flashsale.Error{Code: flashsale.CodeInternal, Message: "sqlorders: migrations", Err: err}
	}
	if err := o.checkVersion(ctx, provider); err != nil {
		return err
	}
	done, err := provider.Up(ctx)
	if err != nil {
		return o.openError("cannot be brought up to date", err)
	}
	for _, m := range done {
		o.cfg.Logger.Info("the schema of the orders was brought up to date", "database", o.d.where, "version", m.Source.Version)
	}
	return o.checkVersion(ctx, provider) // another process may have brought it further meanwhile
}

func (o *Orders) migrator() (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations/"+o.d.migrations)
	if err != nil {
		return nil, err
	}
	options := []goose.ProviderOption{
		goose.WithTableName(versionTable), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()),
	}
	if locker := o.d.migrationLock(); locker != nil {
		options = append(options, goose.WithSessionLocker(locker))
	}
	return goose.NewProvider(o.d.goose(), o.db, files, options...)
}

// checkVersion refuses a schema that a later program has made.
func (o *Orders) checkVersion(ctx context.Context, provider *goose.Provider) error {
	version, err := provider.GetDBVersion(ctx)
	if err != nil {
		return o.openError("does not tell the version of its schema", err)
	}
	sources := provider.ListSources()
	if known := sources[len(sources)-1].Version; version > known {
		return invalidf("sqlorders: the database %s has version %d of the schema, and this program knows %d: it was brought up to date by a newer one; use that",
			o.d.where, version, known)
	}
	return nil
}

func (d *dialect) goose() goose.Dialect {
	return map[string]goose.Dialect{"postgres": goose.DialectPostgres, "mysql": goose.DialectMySQL, "sqlite": goose.DialectSQLite3}[d.migrations]
}

// migrationLock is nil for SQLite, whose file is locked as a whole.
func (d *dialect) migrationLock() lock.SessionLocker {
	switch d.migrations {
	case "postgres":
		return postgresLock{}
	case "mysql":
		return mysqlLock{}
	}
	return nil
}

// postgresLock is an advisory lock of the database. Migrations may take longer than a call.
type postgresLock struct{}

// migrationKey is any number; it must not be another program's in the same database.
const migrationKey = 0x68656164676174 // "headgat"

func (postgresLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, "SET statement_timeout = 0"); err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, "SET lock_timeout = 0"); err != nil {
		return err
	}
	_, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", int64(migrationKey))
	return err
}

func (postgresLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "SELECT pg_advisory_unlock($1)", int64(migrationKey))
	for _, reset := range []string{"RESET statement_timeout", "RESET lock_timeout"} {
		_, resetErr := conn.ExecContext(ctx, reset)
		err = errors.Join(err, resetErr)
	}
	return err
}

// mysqlLock is a lock of the server, named for the database.
type mysqlLock struct{}

func (mysqlLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	var got sql.NullInt64
	err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(CONCAT('headgate ', MD5(DATABASE())), ?)", int64(migrationTimeout/time.Second)).Scan(&got)
	switch {
	case err != nil:
		return err
	case got.Int64 != 1:
		return fmt.Errorf("another process has been migrating it for %s", migrationTimeout)
	}
	if err := beginVersions(ctx, conn); err != nil {
		return errors.Join(err, mysqlLock{}.SessionUnlock(context.WithoutCancel(ctx), conn))
	}
	return nil
}

// beginVersions makes the table of versions, and the row that goose wants in it, where they are missing. MySQL does not make both or neither: a
// start that was cut off between them, or that may not insert, would leave a table by which no later one could begin.
func beginVersions(ctx context.Context, conn *sql.Conn) error {
	store, err := goosedb.NewStore(goose.DialectMySQL, versionTable)
	if err != nil {
		return err
	}
	var found int
	err = conn.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?", versionTable).Scan(&found)
	if err == nil && found == 0 {
		err = store.CreateVersionTable(ctx, conn)
	}
	if err != nil {
		return err
	}
	if err := conn.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+versionTable+" WHERE version_id = 0").Scan(&found); err != nil || found > 0 {
		return err
	}
	return store.Insert(ctx, conn, goosedb.InsertRequest{Version: 0})
}

func (mysqlLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "DO RELEASE_LOCK(CONCAT('headgate ', MD5(DATABASE())))")
	return err
}

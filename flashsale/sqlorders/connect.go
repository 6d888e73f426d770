package sqlorders

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/headgate-io/headgate/flashsale"
)

// connect makes the pools that a URL asks for. It reaches no server yet. No error quotes the URL, which may hold a password.
func connect(ctx context.Context, cfg Config) (*Orders, error) {
	scheme, rest, ok := strings.Cut(cfg.URL, ":")
	if !ok {
		return nil, invalidf("sqlorders: Config.URL has no scheme; give postgres://…, mysql://… or sqlite:FILE")
	}
	scheme = strings.ToLower(scheme)
	cfg.URL = scheme + ":" + rest // pgx knows its own in small letters alone
	switch scheme {
	case "postgres", "postgresql":
		return connectPostgres(cfg)
	case "mysql", "mariadb":
		return connectMySQL(cfg)
	case "sqlite":
		return connectSQLite(ctx, cfg, rest)
	}
	return nil, invalidf("sqlorders: Config.URL has the scheme %.20q; give postgres, mysql, mariadb or sqlite", scheme)
}

// ofServer makes Orders with one pool for everything.
func ofServer(cfg Config, d *dialect, db *sql.DB) *Orders {
	if cfg.MaxConns == 0 {
		cfg.MaxConns = defaultConns
	}
	limitPool(db, cfg.MaxConns)
	return &Orders{cfg: cfg, d: d, db: db, readers: db, release: func() error { return nil }}
}

func limitPool(db *sql.DB, conns int) {
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	db.SetConnMaxIdleTime(connIdleTime)
	db.SetConnMaxLifetime(connLifeTime)
}

// openError says what went wrong before the first call, and whose turn it is.
func (o *Orders) openError(what string, err error) error {
	f := o.d.classify(err)
	code := flashsale.CodeInvalidArgument
	if f.kind == failLost || f.kind == failRetry || isTimeout(err) {
		code = flashsale.CodeUnavailable
	}
	message := "sqlorders: the database " + o.d.where + " " + what
	switch {
	case f.hint != "":
		message += ": " + f.hint
	case isTimeout(err):
		message += ": nothing answers within " + o.cfg.Timeout.String() + ": check host and port, and that it is " + o.d.name
	}
	return &flashsale.Error{Code: code, Message: message, Err: oneLine{err}}
}

// oneLine is an error whose text is one line. Of what the server itself says that is all there is to say: what pgx tried before, such as
// TLS, is not what somebody has to change.
type oneLine struct{ err error }

// Error returns the text.
func (e oneLine) Error() string {
	err := e.err
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		err = said
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}

// Unwrap returns the error.
func (e oneLine) Unwrap() error { return e.err }

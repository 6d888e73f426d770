package sqlorders

import (
	"context"
	"database/sql"
	"net/url"
	"strings"

	"github.com/headgate-io/headgate/flashsale"
)

// connect makes the pools that a URL asks for. It reaches no server yet. No error quotes the URL, which may hold a password.
func connect(ctx context.Context, cfg Config) (*Orders, error) {
	scheme, rest, ok := strings.Cut(cfg.URL, ":")
	if !ok {
		return nil, invalidf("sqlorders: Config.URL has no scheme; give postgres://…, mysql://… or sqlite:FILE")
	}
	switch strings.ToLower(scheme) {
	case "postgres", "postgresql":
		return connectPostgres(cfg)
	case "mysql", "mariadb":
		return connectMySQL(cfg)
	case "sqlite":
		return connectSQLite(ctx, cfg, rest)
	}
	return nil, invalidf("sqlorders: Config.URL has the scheme %.20q; give postgres, mysql, mariadb or sqlite", scheme)
}

// parseURL parses the URL of a server and says what is missing, without quoting it.
func parseURL(cfg *Config) (*url.URL, error) {
	u, err := url.Parse(cfg.URL)
	switch {
	case err != nil: // the text of err quotes the URL
		return nil, invalidf("sqlorders: Config.URL is not a URL: is a character in the user or password not percent-encoded, or the port not a number?")
	case u.Opaque != "" || u.Hostname() == "":
		return nil, invalidf("sqlorders: Config.URL names no host; it is %s://USER:PASSWORD@HOST:PORT/DATABASE", u.Scheme)
	case strings.Trim(u.Path, "/") == "" || strings.Contains(strings.TrimPrefix(u.Path, "/"), "/"):
		return nil, invalidf("sqlorders: Config.URL names no database; it is %s://USER:PASSWORD@HOST:PORT/DATABASE", u.Scheme)
	case u.User.Username() == "":
		return nil, invalidf("sqlorders: Config.URL names no user; it is %s://USER:PASSWORD@HOST:PORT/DATABASE", u.Scheme)
	}
	return u, nil
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
	if f.hint != "" {
		message += ": " + f.hint
	}
	return &flashsale.Error{Code: code, Message: message, Err: err}
}

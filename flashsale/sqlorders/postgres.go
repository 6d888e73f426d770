package sqlorders

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"net"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

func connectPostgres(cfg Config) (*Orders, error) {
	u, err := parseURL(&cfg, "host")
	if err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig(cfg.URL)
	if err != nil {
		return nil, parameterError(err)
	}
	config.ConnectTimeout = cfg.Timeout
	// The server must not work, or hold locks, for a client that has given up, or that stands still and cannot.
	millis := strconv.FormatInt(cfg.Timeout.Milliseconds(), 10)
	for name, value := range map[string]string{
		// Every statement has an index. A plan that was made while a table was small must not read all of it when it has grown.
		"enable_seqscan":    "off",
		"statement_timeout": millis, "lock_timeout": millis, "idle_in_transaction_session_timeout": millis,
		"application_name": "headgate",
	} {
		if _, given := config.RuntimeParams[name]; !given {
			config.RuntimeParams[name] = value
		}
	}
	// Every transaction locks first, and has to see then what others have committed meanwhile.
	config.RuntimeParams["default_transaction_isolation"] = "read committed"
	return ofServer(cfg, postgres(u.where()), stdlib.OpenDB(*config)), nil
}

// parameterError is about a parameter. It quotes no more than the name of a file: the text of err may have parts of the URL.
func parameterError(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return invalidf("sqlorders: a parameter of Config.URL names the file %.200s, which cannot be read: %v", path.Path, path.Err)
	}
	return invalidf("sqlorders: a parameter of Config.URL is none of PostgreSQL's, or has a value that it does not know; " +
		"sslmode is disable, prefer, require, verify-ca or verify-full")
}

func postgres(where string) *dialect {
	return &dialect{
		name: "PostgreSQL", where: where, migrations: "postgres",
		clock:    "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)",
		numbered: true, arrays: true, returning: true,
		// The clock is read outside of what waits for the lock: beside it, it would be read before.
		lock:     "WITH locked AS MATERIALIZED (%s FOR UPDATE) SELECT %s, locked.* FROM locked",
		excluded: "excluded.%s",
		unhurried: []string{
			"SET LOCAL statement_timeout = 0", "SET LOCAL idle_in_transaction_session_timeout = " + strconv.FormatInt(snapshotIdle.Milliseconds(), 10),
		},
		integer:   "BIGINT",
		maxParams: 65535,
		classify:  classifyPostgres,
		durable: []durableSetting{
			{name: "fsync", query: "SELECT current_setting('fsync')", good: []string{"on"}},
			{name: "synchronous_commit", query: "SELECT current_setting('synchronous_commit')", good: []string{"on", "local", "remote_write", "remote_apply"}},
			{name: "full_page_writes", query: "SELECT current_setting('full_page_writes')", good: []string{"on"}},
		},
	}
}

// classifyPostgres goes by SQLSTATE; what has none never came from the server.
func classifyPostgres(err error) failure {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return classifyNoAnswer(err)
	}
	switch e.Code {
	case "40001", "40P01", "55P03":
		return failure{kind: failRetry}
	case "23505":
		return failure{kind: failDuplicate, what: e.ConstraintName}
	case "25P03":
		return failure{kind: failLost, hint: "it has ended a transaction that stood still for longer than Config.Timeout"}
	case "25006":
		return failure{kind: failLost, hint: "it takes no writes: it is a replica, or read-only"}
	case "28P01", "28000":
		return failure{kind: failRefused, hint: "it does not let this user in: check user and password"}
	case "42704", "22023":
		return failure{kind: failRefused, hint: "it does not know a parameter of the URL, or its value; TLS is sslmode=require there"}
	case "08P01":
		f := failure{kind: failLost}
		if strings.Contains(e.Message, "startup parameter") {
			f.hint = "a connection pool such as PgBouncer stands before it, which does not take our settings: give the address of PostgreSQL itself"
		}
		return f
	case "53300":
		return failure{kind: failLost, hint: noConnections}
	case "3D000":
		return failure{kind: failRefused, hint: "there is no such database; create it"}
	case "42501":
		return failure{kind: failRefused, hint: "the user lacks rights: it must own the tables, or be granted them, and CREATE on the schema to set them up"}
	}
	switch e.Code[:2] {
	case "23":
		return failure{kind: failConstraint, what: e.ConstraintName}
	case "08", "57", "53", "58": // connection, operator (a stop, a time-out), resources (connections, disk), system
		return failure{kind: failLost}
	}
	return failure{}
}

// classifyNoAnswer goes by what pgx says where the server has said nothing.
func classifyNoAnswer(err error) failure {
	kind := lostIfNetwork(err)
	switch text := err.Error(); {
	case strings.Contains(text, "received unexpected message"):
		return failure{kind: failRefused, hint: "what answers there is no PostgreSQL: check host and port"}
	case strings.Contains(text, "server refused TLS connection") && kind != failLost: // else it was tried without, and could not be reached
		return failure{kind: failRefused, hint: "it has no TLS, and sslmode asks for it: set it up there, or give sslmode=disable"}
	}
	return failure{kind: kind, hint: connectHint(err)}
}

// noConnections is what to do where a server has none left.
const noConnections = "it has no connection left: raise max_connections there; a process takes up to 16"

func connectHint(err error) string {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "its certificate is not one that is trusted here"
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return "its host is not known"
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return "it cannot be reached: check host and port, and that it runs"
	}
	return ""
}

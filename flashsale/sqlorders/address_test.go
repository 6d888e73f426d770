package sqlorders

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/headgate-io/headgate/flashsale"
)

func TestOpenAtAnotherServer(t *testing.T) {
	t.Parallel()
	for what, tc := range map[string]struct {
		scheme, of string
		within     time.Duration
		code       flashsale.Code
		says       string
	}{
		"MariaDB": {"postgres", "mariadb", patience, flashsale.CodeInvalidArgument, "what answers there is no PostgreSQL"},
		// Each waits for the other to begin.
		"PostgreSQL": {"mysql", "postgres", time.Second, flashsale.CodeUnavailable, "nothing answers within 1s: check host and port, and that it is MySQL"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			_, rest, _ := strings.Cut(urls[tc.of](t), ":")
			o, err := Open(t.Context(), Config{URL: tc.scheme + ":" + rest, Timeout: tc.within})
			if err == nil {
				_ = o.Close()
			}
			wantCode(t, what, err, tc.code)
			if !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("it says %q", err)
			}
		})
	}
}

// Whoever is sent to a replica hears so at once, and not from every transaction.
func TestOpenWhatTakesNoWrites(t *testing.T) {
	t.Parallel()
	good := urls["postgres"](t)
	noError(t, "Close", mustOpen(t, Config{URL: good}).Close())
	o, err := Open(t.Context(), Config{URL: good + "?default_transaction_read_only=on"})
	if err == nil {
		_ = o.Close()
	}
	wantCode(t, "Open", err, flashsale.CodeUnavailable)
	if !strings.Contains(err.Error(), "cannot be written: it takes no writes: it is a replica, or read-only") {
		t.Errorf("it says %q", err)
	}
}

// Every form that there is of an address leads to the same database, with a password that is spelt as it has to be.
func TestOpenByEveryForm(t *testing.T) {
	t.Parallel()
	of := func(name string) (u *url.URL, database string) {
		u, err := url.Parse(urls[name](t))
		noError(t, "url", err)
		return u, u.Path
	}
	pg, pgDB := of("postgres")
	my, myDB := of("mariadb")
	server := shared.postgres.Get(t)
	const odd = "p:@/#?% ä"
	if _, err := server.SQL("", "CREATE ROLE odd LOGIN SUPERUSER PASSWORD '"+odd+"'"); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = server.SQL(database(pg.String()), "DROP OWNED BY odd; DROP ROLE odd") }() // the server ends with the package
	login := func(u *url.URL) string { return u.User.String() + "@" }
	for what, text := range map[string]string{
		"postgresql":    "postgresql" + strings.TrimPrefix(pg.String(), "postgres"),
		"capitals":      "POSTGRES" + strings.TrimPrefix(pg.String(), "postgres"),
		"mariadb":       "MariaDB" + strings.TrimPrefix(my.String(), "mysql"),
		"percent":       (&url.URL{Scheme: "postgres", User: url.UserPassword("odd", odd), Host: pg.Host, Path: pgDB}).String(),
		"several":       "postgres://" + login(pg) + "127.0.0.1:1," + pg.Host + pgDB + "?target_session_attrs=read-write",
		"a socket":      "postgres://" + login(pg) + pgDB + "?port=" + pg.Port() + "&host=" + server.Folder(),
		"a socket, too": "mysql://" + login(my) + myDB + "?socket=" + shared.mariadb.Get(t).Socket(),
		"tls":           my.String() + "?tls=preferred",
		"sslmode":       pg.String() + "?sslmode=disable",
		"isolation":     pg.String() + "?default_transaction_isolation=serializable",
	} {
		t.Run(what, func(t *testing.T) {
			o := mustOpen(t, Config{URL: text})
			level := ""
			query := map[string]string{"PostgreSQL": "SHOW transaction_isolation", "MySQL": "SELECT REPLACE(LOWER(@@tx_isolation), '-', ' ')"}[o.d.name]
			noError(t, "the level", o.db.QueryRowContext(t.Context(), query).Scan(&level))
			if level != "read committed" {
				t.Errorf("its transactions are %s", level)
			}
		})
	}
}

// What is shown of an address has no part of its password, whatever of it was not spelt as it has to be.
func TestShown(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"sqlite:sale.db": "sqlite:sale.db", "postgres://u:hush@h:1/d?sslmode=disable&password=hush": "postgres://u@h:1/d", "MySQL://h/d": "mysql://h/d",
		"postgres://u:hush@h:1,g:2/d":                   "postgres://u@h:1,g:2/d",
		"postgres://u:hush@/d?host=/run/postgresql":     "postgres://u@/d?host=/run/postgresql",
		"mysql://u:hush@/d?tls=true&socket=/run/m.sock": "mysql://u@/d?socket=/run/m.sock",
		"postgres://u:hush%@h/d":                        "postgres://…", "postgres:u:hush": "postgres://…",
		"mysql://u:123/hush@h/d": "mysql://…", "mysql://u:h@1/hush@h/d": "mysql://…", "mysql://u:123?hush@h/d": "mysql://…", "mysql://u:123#hush@h/d": "mysql://…",
		"mysql://u:hush,hush@h/d": "mysql://u@h/d", "mysql://u:hush@h,h@/d": "mysql://…",
	} {
		if got := Shown(text); got != want {
			t.Errorf("%s is shown as %s, want %s", text, got, want)
		}
	}
}

// What has no server here is told by what its driver says.
func TestHints(t *testing.T) {
	t.Parallel()
	for says, err := range map[string]error{
		"such as PgBouncer":      &pgconn.PgError{Code: "08P01", Message: "unsupported startup parameter: enable_seqscan"},
		"no connection left":     &pgconn.PgError{Code: "53300", Message: "sorry, too many clients already"},
		"binlog_format":          &mysql.MySQLError{Number: 1665},
		"has no connection left": &mysql.MySQLError{Number: 1040},
		"no MySQL":               mysql.ErrPktSync,
		"no TLS":                 mysql.ErrNoTLS,
		"certificate":            &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}},
		"host is not known":      &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host"}},
	} {
		hints := classifyMySQL(err).hint + classifyPostgres(err).hint
		if !strings.Contains(hints, says) {
			t.Errorf("%v: %q, want %q", err, hints, says)
		}
	}
	if classifyPostgres(&pgconn.PgError{Code: "08P01", Message: "invalid message"}).hint != "" {
		t.Error("not every breach of the protocol is a pool's")
	}
}

package sqlorders

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

func TestBadConfig(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cfg  Config
		says string
	}{
		"nothing":         {Config{}, "no scheme"},
		"a file":          {Config{URL: "orders.db"}, "no scheme"},
		"scheme":          {Config{URL: "oracle://u:hush@h/db"}, `"oracle"`},
		"no host":         {Config{URL: "postgres:///db"}, "no host"},
		"opaque":          {Config{URL: "postgres:u:hush@h/db"}, "no host"},
		"no database":     {Config{URL: "postgres://u:hush@h:5432"}, "no database"},
		"no database, /":  {Config{URL: "mysql://u:hush@h:3306/"}, "no database"},
		"a path":          {Config{URL: "mysql://u:hush@h:3306/a/b"}, "no database"},
		"no user":         {Config{URL: "mariadb://h:3306/db"}, "no user"},
		"port":            {Config{URL: "postgres://u:hush@h:port/db"}, "not a URL"},
		"percent":         {Config{URL: "postgres://u:hush%zz@h/db"}, "not a URL"},
		"slash":           {Config{URL: "postgres://u:hush/hush@h/db"}, "not a URL"},
		"at in the path":  {Config{URL: "mysql://u:hu/sh@h/db@hush"}, "not a URL"},
		"at, no user":     {Config{URL: "mysql://u:1/hush@h"}, "not a URL"},
		"socket of Go":    {Config{URL: "mysql://u:hush@unix(/run/mysqld/mysqld.sock)/db"}, "a bracket in its host"},
		"address of Go":   {Config{URL: "mysql://u:hush@tcp(h:3306)/db"}, "not a URL"},
		"no socket":       {Config{URL: "mysql://u:hush@/db"}, "mysql://USER:PASSWORD@/DATABASE?socket=/PATH"},
		"no folder of it": {Config{URL: "postgres://u:hush@/db?host=h"}, "postgres://USER:PASSWORD@/DATABASE?host=/PATH"},
		"two hosts":       {Config{URL: "mysql://u:hush@h:1,g:2/db"}, "several hosts"},
		"certificate":     {Config{URL: "postgres://u:hush@h/db?sslmode=verify-ca&sslrootcert=/no/such/file"}, "/no/such/file, which cannot be read: no such file"},
		"of SQLite":       {Config{URL: "sqlite:/tmp/orders.db?mode=ro"}, "sqlite:FILE takes none"},
		"parameter":       {Config{URL: "mysql://u:hush@h/db?parseTime=true"}, `"parseTime"`},
		"tls":             {Config{URL: "mysql://u:hush@h/db?tls=maybe"}, `"maybe"`},
		"sslmode":         {Config{URL: "postgres://u:hush@h/db?sslmode=hush"}, "parameter"},
		"no file":         {Config{URL: "sqlite:"}, "no file"},
		"no folder":       {Config{URL: "sqlite:/no/such/folder/orders.db"}, "/no/such/folder"},
		"a folder":        {Config{URL: "sqlite:/"}, "sqlorders"},
		"time-out":        {Config{URL: "sqlite::memory:", Timeout: time.Millisecond}, "Timeout"},
		"long time-out":   {Config{URL: "sqlite::memory:", Timeout: time.Hour}, "Timeout"},
		"connections":     {Config{URL: "sqlite::memory:", MaxConns: -1}, "MaxConns"},
		"too many":        {Config{URL: "sqlite::memory:", MaxConns: 1001}, "MaxConns"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := Open(t.Context(), tc.cfg)
			if err == nil {
				_ = o.Close()
			}
			wantCode(t, tc.cfg.URL, err, flashsale.CodeInvalidArgument)
			if !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "hush") {
				t.Fatalf("it says %q", err)
			}
		})
	}
}

func FuzzURL(f *testing.F) {
	for _, seed := range []string{"postgres://u:p@127.0.0.1:1/db?sslmode=disable", "mysql://u:p@[::1]:1/db?tls=true", "sqlite::memory:", "sqlite:", "://", "mysql://u:%00@h/%2e"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if rest, file := strings.CutPrefix(strings.ToLower(text), "sqlite:"); file && rest != memory && rest != "" {
			t.Skip("it would make files")
		}
		cfg, err := Config{URL: text}.withDefaults()
		noError(t, "defaults", err)
		o, err := connect(t.Context(), cfg)
		if err != nil {
			wantCode(t, text, err, flashsale.CodeInvalidArgument)
			return
		}
		noError(t, "Close", o.Close())
	})
}

// secretURL is a URL with another user, password and database.
func secretURL(t *testing.T, of, user, password, database string) string {
	t.Helper()
	u, err := url.Parse(of)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, password)
	if database != "" {
		u.Path = "/" + database
	}
	return u.String()
}

func TestOpenThatIsRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"postgres", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			good := urls[name](t)
			admin := mustOpen(t, Config{URL: good})
			makeStranger(t, admin, name)
			for what, tc := range map[string]struct {
				url  string
				code flashsale.Code
				says string
			}{
				"password":  {secretURL(t, good, "headgate", "wr0ng!", ""), flashsale.CodeInvalidArgument, "check user and password"},
				"user":      {secretURL(t, good, "nobody-here", "wr0ng!", ""), flashsale.CodeInvalidArgument, "check user and password"},
				"database":  {strings.Replace(good, "/test_", "/none_", 1), flashsale.CodeInvalidArgument, "no such database"},
				"rights":    {secretURL(t, good, "stranger_"+database(good), "str@nger", "stranger_"+database(good)), flashsale.CodeInvalidArgument, "lacks rights"},
				"tls":       {good + map[string]string{"postgres": "?sslmode=require", "mariadb": "?tls=true"}[name], flashsale.CodeInvalidArgument, "it has no TLS"},
				"parameter": {good + "?hush=1", flashsale.CodeInvalidArgument, "parameter"},
				"port":      {"mysql://u:wr0ng!@127.0.0.1:1/db", flashsale.CodeUnavailable, "cannot be reached"},
				"port (pg)": {"postgres://u:wr0ng!@127.0.0.1:1/db", flashsale.CodeUnavailable, "cannot be reached"},
			} {
				o, err := Open(t.Context(), Config{URL: tc.url})
				if err == nil {
					_ = o.Close()
				}
				wantCode(t, what, err, tc.code)
				for _, secret := range []string{"wr0ng", "str@nger", "str%40nger", "s3cret"} {
					if strings.Contains(err.Error(), secret) {
						t.Fatalf("%s: it tells a password: %q", what, err)
					}
				}
				if !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "\n") {
					t.Fatalf("%s: it says %q", what, err)
				}
			}
		})
	}
}

func database(u string) string { return u[strings.LastIndexByte(u, '/')+1:] }

// makeStranger makes an account that may connect to a database of its own and do nothing there.
func makeStranger(t *testing.T, o *Orders, name string) {
	t.Helper()
	stranger := "stranger_" + database(o.cfg.URL)
	statements := []string{
		"CREATE DATABASE " + stranger,
		"CREATE USER " + stranger + " PASSWORD 'str@nger'", // since version 15 it may not create in the schema public
	}
	if name == "mariadb" {
		statements = []string{
			"CREATE DATABASE " + stranger,
			"CREATE USER " + stranger + "@'127.0.0.1' IDENTIFIED BY 'str@nger'",
			"GRANT SELECT ON " + stranger + ".* TO " + stranger + "@'127.0.0.1'",
		}
	}
	for _, s := range statements {
		mustExec(t, o, s)
	}
	if name == "postgres" { // of a version before 15, too
		public := mustOpenRaw(t, secretURL(t, o.cfg.URL, "headgate", "s3cret-of-tests", stranger))
		mustExec(t, public, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
	}
	t.Cleanup(func() {
		for _, s := range []string{"DROP DATABASE " + stranger, "DROP USER " + stranger + map[string]string{"mariadb": "@'127.0.0.1'"}[name]} {
			if _, err := o.db.ExecContext(context.WithoutCancel(t.Context()), s); err != nil {
				t.Log(err)
			}
		}
	})
}

// mustOpenRaw connects, and leaves the schema alone.
func mustOpenRaw(t *testing.T, url string) *Orders {
	t.Helper()
	cfg, err := Config{URL: url}.withDefaults()
	noError(t, "defaults", err)
	o, err := connect(t.Context(), cfg)
	noError(t, "connect", err)
	t.Cleanup(func() { _ = o.Close() })
	return o
}

func TestOpenAgainFindsWhatIsThere(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sqlite", "postgres", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := Config{URL: urls[name](t)}
			first := mustOpen(t, cfg)
			createSale(t, first)
			noError(t, "Close", first.Close())
			second := mustOpen(t, cfg)
			_, err := second.SKU(t.Context(), testKey)
			noError(t, "SKU", err)
			_, err = first.SKU(t.Context(), testKey)
			wantCode(t, "the first", err, flashsale.CodeClosed)
			wantCode(t, "the first", first.CreateSale(t.Context(), testSale("x")), flashsale.CodeClosed)
			wantCode(t, "the first", first.Snapshot(t.Context(), testKey, 1, func(*flashsale.LoadPart) error { return nil }), flashsale.CodeClosed)
			noError(t, "Close again", first.Close())
		})
	}
}

func TestManyOpenAnEmptyDatabase(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"postgres", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := Config{URL: urls[name](t), Timeout: patience}
			errs := make(chan error)
			for i := range 6 {
				go func() {
					o, err := Open(t.Context(), cfg)
					if err == nil {
						err = o.CreateSale(t.Context(), testSale(fmt.Sprintf("sale%d", i)))
						_ = o.Close()
					}
					errs <- err
				}()
			}
			for range 6 {
				noError(t, "Open", <-errs)
			}
		})
	}
}

func TestSchemaOfANewerProgram(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sqlite", "postgres", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := Config{URL: urls[name](t)}
			first := mustOpen(t, cfg)
			flag := map[string]string{"sqlite": "1", "postgres": "TRUE", "mariadb": "1"}[name]
			mustExec(t, first, "INSERT INTO "+versionTable+" (version_id, is_applied) VALUES (999, "+flag+")")
			noError(t, "Close", first.Close())
			o, err := Open(t.Context(), cfg)
			if err == nil {
				_ = o.Close()
			}
			wantCode(t, "Open", err, flashsale.CodeInvalidArgument)
			if !strings.Contains(err.Error(), "version 999") || !strings.Contains(err.Error(), "newer") {
				t.Fatalf("it says %q", err)
			}
		})
	}
}

// What is left of a first start that was cut off half-way is completed by the next.
func TestMigrationThatWasCutOff(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sqlite", "postgres", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := Config{URL: urls[name](t)}
			raw := mustOpenRaw(t, cfg.URL)
			ctx, cancel := context.WithCancel(t.Context())
			watch := make(chan struct{})
			go func() { // as soon as the first table is there
				defer close(watch)
				for ctx.Err() == nil {
					var id string
					if err := raw.readers.QueryRowContext(ctx, "SELECT id FROM sale").Scan(&id); errors.Is(err, sql.ErrNoRows) {
						cancel()
					}
				}
			}()
			_ = raw.migrate(ctx) // whether it was cut off in time does not matter: the next start has to be all right
			cancel()
			<-watch
			noError(t, "Close", raw.Close())
			createSale(t, mustOpen(t, cfg))
		})
	}
}

// A step that was made, and whose end was not noted, is made again: MySQL cannot undo what defines a table.
func TestMigrationThatWasNotNoted(t *testing.T) {
	t.Parallel()
	cfg := Config{URL: urls["mariadb"](t)}
	for _, version := range []int{3, 2, 1} {
		o := mustOpen(t, cfg)
		mustExec(t, o, "DELETE FROM "+versionTable+" WHERE version_id >= ?", version)
		noError(t, "Close", o.Close())
	}
	createSale(t, mustOpen(t, cfg))
}

// A first start that was cut off before it had noted anything, in a table that was there, leaves one by which the next goes on.
func TestMigrationOfNoVersion(t *testing.T) {
	t.Parallel()
	cfg := Config{URL: urls["mariadb"](t)}
	o := mustOpen(t, cfg)
	mustExec(t, o, "DELETE FROM "+versionTable)
	noError(t, "Close", o.Close())
	createSale(t, mustOpen(t, cfg))
}

func TestDurable(t *testing.T) {
	t.Parallel()
	noError(t, "SQLite", mustOpen(t, Config{URL: urls["sqlite"](t)}).Durable(t.Context()))
	noError(t, "memory", mustOpen(t, Config{URL: urls["memory"](t)}).Durable(t.Context()))
	lite := mustOpen(t, Config{URL: urls["sqlite"](t)})
	mustExec(t, lite, "PRAGMA synchronous = NORMAL")
	notDurable(t, lite, "synchronous is normal, set it to full")
	notDurable(t, mustOpen(t, Config{URL: urls["postgres"](t)}), "fsync is off, set it to on")
	notDurable(t, mustOpen(t, Config{URL: urls["postgres"](t) + "?synchronous_commit=off"}), "synchronous_commit is off, set it to on")
	notDurable(t, mustOpen(t, Config{URL: urls["mariadb"](t)}), "innodb_flush_log_at_trx_commit is 2, set it to 1")
}

func notDurable(t *testing.T, o *Orders, says string) {
	t.Helper()
	err := o.Durable(t.Context())
	wantCode(t, "Durable", err, flashsale.CodeInvalidState)
	if !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "s3cret") {
		t.Fatalf("it says %q", err)
	}
}

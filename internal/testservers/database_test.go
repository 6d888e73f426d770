package testservers

import (
	"strings"
	"testing"
)

// anyDatabase is what the tests need of either server.
type anyDatabase interface {
	SQL(database, statement string) (string, error)
	Database(tb TB) string
	URL() string
	Addr() string
	Kill()
	Stop() error
	Restart() error
	Exited() (string, bool)
}

func eachDatabase(t *testing.T, f func(t *testing.T, start func(tb TB, options ...DatabaseOption) anyDatabase)) {
	t.Helper()
	for name, start := range map[string]func(tb TB, options ...DatabaseOption) anyDatabase{
		"postgres": func(tb TB, options ...DatabaseOption) anyDatabase { return Postgres(tb, options...) },
		"mariadb":  func(tb TB, options ...DatabaseOption) anyDatabase { return MariaDB(tb, options...) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, start)
		})
	}
}

func mustSQL(t *testing.T, s anyDatabase, database, statement, want string) {
	t.Helper()
	got, err := s.SQL(database, statement)
	if err != nil || got != want {
		t.Fatalf("%s: got %q, %v; want %q", statement, got, err, want)
	}
}

func databaseOf(url string) string { return url[strings.LastIndexByte(url, '/')+1:] }

func TestDatabaseLivesWithItsTest(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, start func(TB, ...DatabaseOption) anyDatabase) {
		var s anyDatabase
		t.Run("inner", func(t *testing.T) {
			s = start(t)
			a, b := databaseOf(s.Database(t)), databaseOf(s.Database(t))
			mustSQL(t, s, a, "CREATE TABLE t (n INT)", "")
			mustSQL(t, s, a, "INSERT INTO t VALUES (7)", "")
			if _, err := s.SQL(b, "SELECT n FROM t"); err == nil {
				t.Fatal("one database has the tables of another")
			}
			if !strings.Contains(s.URL(), "headgate:s3cret-of-tests@"+s.Addr()+"/") {
				t.Fatalf("URL is %s", s.URL())
			}
			t.Run("dropped", func(t *testing.T) { b = databaseOf(s.Database(t)) })
			if _, err := s.SQL(b, "SELECT 1"); err == nil {
				t.Fatal("the database of a test that has ended is still there")
			}
		})
		if s == nil {
			return // the inner test has said why
		}
		if status, ended := s.Exited(); !ended || status != "exit status 0" {
			t.Fatalf("after the test: %q, ended %v", status, ended)
		}
	})
}

func TestDatabaseOutlivesKillAndStop(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, start func(TB, ...DatabaseOption) anyDatabase) {
		s := start(t)
		db := databaseOf(s.Database(t))
		mustSQL(t, s, db, "CREATE TABLE t (n INT)", "")
		mustSQL(t, s, db, "INSERT INTO t VALUES (7)", "")
		s.Kill()
		if _, err := s.SQL(db, "SELECT n FROM t"); err == nil {
			t.Fatal("a killed server answers")
		}
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
		mustSQL(t, s, db, "SELECT n FROM t", "7")
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
		mustSQL(t, s, db, "SELECT n FROM t", "7")
	})
}

func TestDatabaseSettings(t *testing.T) {
	t.Parallel()
	p := Postgres(t, DurableData(), Setting("work_mem=5MB"))
	mustSQL(t, p, "", "SHOW fsync", "on")
	mustSQL(t, p, "", "SHOW work_mem", "5MB")
	m := MariaDB(t, DurableData(), Setting("tmp-table-size=2M"))
	mustSQL(t, m, "", "SELECT @@innodb_flush_log_at_trx_commit, @@tmp_table_size", "1\t2097152")
}

func TestDatabaseThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, start func(TB, ...DatabaseOption) anyDatabase) {
		var scope Scope
		defer scope.Close()
		err := scope.Start(func(tb TB) { start(tb, Setting("no_such_setting=1")) })
		if err == nil || !strings.Contains(err.Error(), "no_such_setting") && !strings.Contains(err.Error(), "no-such-setting") {
			t.Fatalf("got %v", err)
		}
	})
}

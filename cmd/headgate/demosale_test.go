package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/demo"
	"github.com/headgate-io/headgate/internal/testservers"
)

// TestDemoOnItsOwnServers: two Redis and a PostgreSQL come and go with the demo, and the sale keeps its word on them.
func TestDemoOnItsOwnServers(t *testing.T) {
	t.Parallel()
	testservers.Need(t, "redis-server")
	if debian, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres"); len(debian) == 0 {
		testservers.Need(t, "postgres")
	}
	folder, err := os.MkdirTemp("", "demo-servers-") //nolint:usetesting // the account of a PostgreSQL cannot enter t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	got, s := demoThatSells(t, 6*time.Second, []string{"TMPDIR=" + folder}, "--store", "redis-server", "--db", "postgres-server", "--shoppers", "40", "--bots", "4", "--stock", "10")
	if !s.Invariants.OK || !s.Invariants.Settled || s.Sale.Reserved == 0 {
		t.Errorf("got %s", got)
	}
	for _, at := range [][2]string{{s.Store, "redis-server of its own at 127.0.0.1:"}, {s.Stock, "redis-server of its own at 127.0.0.1:"}, {s.DB, "PostgreSQL of its own at 127.0.0.1:"}} {
		if !strings.HasPrefix(at[0], at[1]) {
			t.Errorf("got %q, want %q…", at[0], at[1])
		}
	}
	if s.Stock == s.Store {
		t.Errorf("the stock is where limits are counted, at %s", s.Store)
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "*")); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
}

// demoThatSells runs a demo, and in more time again where it was too short: on a busy machine nobody may have come to buy, or to the end of it.
func demoThatSells(t *testing.T, d time.Duration, env []string, args ...string) (got outcome, s demo.Summary) {
	t.Helper()
	for most := 4 * d; ; d *= 2 {
		got = runBinary(t, env, append([]string{"demo", "--json", "--duration", d.String()}, args...)...)
		s = demo.Summary{}
		if err := json.Unmarshal([]byte(got.stdout), &s); err != nil || got.code != exitGood {
			t.Fatalf("%v: %s", err, got)
		}
		if d == most || !s.Invariants.OK || s.Sale.Reserved > 0 && s.Invariants.Settled {
			return got, s
		}
		t.Logf("in %s: %+v, %+v", d, s.Sale, s.Invariants)
	}
}

// TestDemoOnOtherDatabases: a demo keeps its word in a file and in a MariaDB, and one after another in the same; what is of the one before
// alarms nobody.
func TestDemoOnOtherDatabases(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func() string{
		"sqlite":  func() string { return "sqlite:" + filepath.Join(t.TempDir(), "demo.db") },
		"mariadb": func() string { return testservers.MariaDB(t, testservers.DurableData()).Database(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := url()
			for range 2 {
				got, s := demoThatSells(t, 3*time.Second, nil, "--db", db, "--shoppers", "30", "--bots", "2", "--stock", "8")
				if !s.Invariants.OK || !s.Invariants.Settled || s.Sale.Reserved == 0 || strings.Contains(got.stderr, "level=ERROR") || strings.Contains(got.stderr, "s3cret") {
					t.Errorf("got %s", got)
				}
			}
		})
	}
}

// TestDemoThatBreaksItsWord: the exit code is 1, and stderr says why.
func TestDemoThatBreaksItsWord(t *testing.T) {
	t.Parallel()
	var stderr strings.Builder
	std := streams{err: &stderr}
	good := &demo.Summary{Invariants: demo.Invariants{OK: true}}
	if err := kept(std, good); err != nil || stderr.Len() != 0 {
		t.Errorf("%v %q", err, stderr.String())
	}
	err := kept(std, &demo.Summary{Invariants: demo.Invariants{Broken: []string{"I1: SQL has 0 reserved and 103 sold of 100"}}})
	if !errors.Is(err, verdict(exitNo)) || !strings.Contains(stderr.String(), "the sale has not kept its word: I1: SQL has 0 reserved and 103 sold of 100\n") {
		t.Errorf("got %v, %q", err, stderr.String())
	}
	good.Chaos = &demo.FaultSummary{}
	if err := kept(std, good); !errors.Is(err, verdict(exitNo)) {
		t.Errorf("limits that were not kept: %v", err)
	}
}

func TestDemoRefusesItsFlags(t *testing.T) {
	t.Parallel()
	for says, args := range map[string][]string{
		"db: the database cannot be read; write postgres-server": {"--db", "oracle"},
		"is no postgres that can be run":                         {"--db", "/nowhere/postgres"},
		"stock: 0 is too few":                                    {"--stock", "0"},
		"the demo's sale cannot begin: --db names no database":   {"--db", "mysql://me:hunter2@127.0.0.1:1/"},
		"cannot begin: the database 127.0.0.1:1/shop cannot be":  {"--db", "postgresql://me:hunter2@127.0.0.1:1/shop"},
	} {
		if got := runBinary(t, nil, append([]string{"demo", "--duration", "1s"}, args...)...); got.code == exitGood || !strings.Contains(got.stderr, says) || strings.Contains(got.stderr, "hunter2") {
			t.Errorf("want %q: %s", says, got)
		}
	}
}

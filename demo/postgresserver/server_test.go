package postgresserver

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/goleak"

	"github.com/headgate-io/headgate/internal/childserver"
	"github.com/headgate-io/headgate/internal/testservers"
)

// childEnv makes this test program start a PostgreSQL, say so, and wait to be killed.
const childEnv = "POSTGRESSERVER_CHILD"

func TestMain(m *testing.M) {
	testservers.PlayParent(childEnv, func() (int, error) {
		s, err := Start(context.Background(), Config{})
		if err != nil {
			return 0, err
		}
		return s.PID(), nil
	})
	goleak.VerifyTestMain(m)
}

// folder is one that the account of the server can enter.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "postgresserver-") //nolint:usetesting // another account cannot enter t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func skipWithout(t *testing.T) {
	t.Helper()
	if _, err := find(""); err != nil {
		testservers.Need(t, "postgres")
	}
}

// TestLives: it answers to its password alone, loses no commit, and leaves nothing.
func TestLives(t *testing.T) {
	skipWithout(t)
	t.Setenv("TMPDIR", folder(t))
	busy, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	picks := 0
	s, err := Start(t.Context(), Config{pick: func() int {
		if picks++; picks == 1 {
			return busy.Addr().(*net.TCPAddr).Port
		}
		return childserver.FreePort()
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	db, err := sql.Open("pgx", s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var fsync, commit string
	if err := db.QueryRowContext(t.Context(), "SELECT current_setting('fsync'), current_setting('synchronous_commit')").Scan(&fsync, &commit); err != nil || fsync != "on" || commit != "on" {
		t.Errorf("fsync %q, synchronous_commit %q, %v", fsync, commit, err)
	}
	wrong, err := sql.Open("pgx", strings.Replace(s.URL(), s.password, "guess", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer wrong.Close()
	if err := wrong.PingContext(t.Context()); err == nil {
		t.Error("a wrong password is good")
	}
	if picks != 2 {
		t.Errorf("%d ports were tried, the first of which is taken", picks)
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	<-s.Dead()
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func TestNoProgram(t *testing.T) {
	t.Parallel()
	if _, err := Start(t.Context(), Config{Program: filepath.Join(t.TempDir(), "postgres")}); err == nil || !strings.Contains(err.Error(), "is no postgres that can be run") {
		t.Errorf("got %v", err)
	}
}

// TestDiesWithTheProgram: who kills the program leaves no PostgreSQL behind.
func TestDiesWithTheProgram(t *testing.T) {
	skipWithout(t)
	testservers.DiesWithParent(t, childEnv, "TMPDIR="+folder(t))
}

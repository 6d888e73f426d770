package postgresserver

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/goleak"

	"github.com/headgate-io/headgate/internal/testservers"
)

// childEnv makes this test program start a PostgreSQL, say so, and wait to be killed.
const childEnv = "POSTGRESSERVER_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		goleak.VerifyTestMain(m)
		return
	}
	s, err := Start(context.Background(), Config{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(s.PID())
	select {}
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
		return freePort()
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
	if runtime.GOOS != "linux" {
		t.Skip("the kernel of Linux alone ends it")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=1", "TMPDIR="+folder(t))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	pid := strings.TrimSpace(line)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if _, notNumber := fmt.Sscan(pid, new(int)); err != nil || notNumber != nil {
		t.Fatalf("it did not start: %q %v", line, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err = testservers.Poll(ctx, func() error {
		text, err := os.ReadFile("/proc/" + pid + "/stat")
		if errors.Is(err, os.ErrNotExist) || strings.Contains(string(text), ") Z ") {
			return nil
		}
		return fmt.Errorf("it still runs: %s %w", text, err)
	})
	if err != nil {
		t.Error(err)
	}
}

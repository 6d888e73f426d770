package redisserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headgate-io/headgate/internal/childserver"
	"github.com/headgate-io/headgate/internal/testservers"
)

// childEnv makes this test program start a Redis, say so, and wait to be killed.
const childEnv = "REDISSERVER_CHILD"

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

func start(t *testing.T, cfg Config) *Server {
	t.Helper()
	testservers.Need(t, "redis-server")
	t.Setenv("TMPDIR", t.TempDir())
	s, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the folder is still there: %v", err)
		}
	})
	return s
}

// do sends one command and returns the first line of the answer.
func do(t *testing.T, s *Server, command string) string { return line(t, s, command, 1) }

// line returns a later one.
func line(t *testing.T, s *Server, command string, n int) string {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp4", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprintf(conn, "AUTH %s\r\n%s\r\n", s.password, command)
	in := bufio.NewReader(conn)
	var line string
	for range n + 1 {
		if line, err = in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	return strings.TrimSpace(line)
}

// TestLives: what was answered outlives SIGKILL, and nothing outlives Wipe; the address stays.
func TestLives(t *testing.T) {
	s := start(t, Config{})
	addr, pid := s.Addr(), s.PID()
	if got := do(t, s, "SET x 1"); got != "+OK" {
		t.Fatalf("got %q", got)
	}
	if err := s.Restart(t.Context()); err == nil || !strings.Contains(err.Error(), "runs already") {
		t.Errorf("started twice: %v", err)
	}
	if err := s.Wipe(); err == nil || !strings.Contains(err.Error(), "while it runs") {
		t.Errorf("wiped while it runs: %v", err)
	}
	dead := s.Dead()
	s.Kill()
	<-dead
	s.Kill()
	if s.PID() != 0 || s.Dead() != nil || s.Pause() == nil {
		t.Error("it is down, and seems not to be")
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := do(t, s, "INCR x"); got != ":2" || s.Addr() != addr || s.PID() == pid {
		t.Errorf("got %q at %s, which was %s", got, s.Addr(), addr)
	}
	s.Kill()
	if err := errors.Join(s.Wipe(), s.Restart(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got := do(t, s, "EXISTS x"); got != ":0" {
		t.Errorf("got %q", got)
	}
	for setting, want := range map[string]string{"appendfsync": "always", "maxmemory-policy": "noeviction", "save": ""} {
		if got := line(t, s, "CONFIG GET "+setting, 5); got != want {
			t.Errorf("%s is %q, want %q", setting, got, want)
		}
	}
}

func TestPause(t *testing.T) {
	s := start(t, Config{})
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp4", s.Addr()) // the kernel takes it
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	fmt.Fprint(conn, "PING\r\n")
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a Redis that is paused: %v", err)
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	if got := do(t, s, "PING"); got != "+PONG" {
		t.Errorf("got %q", got)
	}
}

// TestKilledByOthers: whoever watches sees that it died, and it can be started again.
func TestKilledByOthers(t *testing.T) {
	s := start(t, Config{})
	p, err := os.FindProcess(s.PID())
	if err != nil {
		t.Fatal(err)
	}
	dead := s.Dead()
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	<-dead
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Restart(gone); !errors.Is(err, context.Canceled) || s.Dead() != nil || s.PID() != 0 {
		t.Errorf("%v, and process %d", err, s.PID())
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := do(t, s, "PING"); got != "+PONG" {
		t.Errorf("got %q", got)
	}
}

// TestPortTaken: another port is tried; where there is none, and where its own was taken meanwhile, it says so.
func TestPortTaken(t *testing.T) {
	busy, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	port := busy.Addr().(*net.TCPAddr).Port
	tries := 0
	s := start(t, Config{pick: func() int {
		if tries++; tries < 3 {
			return port
		}
		return childserver.FreePort()
	}})
	if tries != 3 {
		t.Errorf("%d ports were tried", tries)
	}
	s.Kill()
	thief, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer thief.Close()
	if err := s.Restart(t.Context()); !errors.Is(err, childserver.ErrPortTaken) || !strings.Contains(err.Error(), s.Addr()) {
		t.Errorf("got %v", err)
	}
	if _, err := Start(t.Context(), Config{pick: func() int { return port }}); !errors.Is(err, childserver.ErrPortTaken) {
		t.Errorf("got %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "headgate-redis-*")); len(left) != 1 {
		t.Errorf("folders are left: %q", left)
	}
}

func TestBadPrograms(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	broken := filepath.Join(dir, "broken")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\nexit 3\n"), 0o700); err != nil { //nolint:gosec // it must be run
		t.Fatal(err)
	}
	for program, says := range map[string]string{
		"no-such-redis":                    "no-such-redis is not in PATH; install it",
		filepath.Join(dir, "none"):         "no such file or directory",
		broken:                             "exit status 3",
		filepath.Join(dir, "broken") + "/": "not a directory",
	} {
		if _, err := Start(t.Context(), Config{Program: program}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %q", program, err, says)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*")); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestNeverReady: a program that is no Redis is not waited for longer than the caller waits.
func TestNeverReady(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	idle := filepath.Join(t.TempDir(), "idle")
	if err := os.WriteFile(idle, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o700); err != nil { //nolint:gosec // it must be run
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := Start(ctx, Config{Program: idle}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// TestDiesWithTheProgram: whoever kills the program leaves no Redis behind.
func TestDiesWithTheProgram(t *testing.T) {
	testservers.Need(t, "redis-server")
	testservers.DiesWithParent(t, childEnv, "TMPDIR="+t.TempDir())
}

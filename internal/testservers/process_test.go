//go:build linux

package testservers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// childEnv makes this test program play the part of a test that dies with a server at hand.
const childEnv = "TESTSERVERS_CHILD"

func TestMain(m *testing.M) {
	PlayParent(childEnv, func() (pid int, err error) {
		err = new(Scope).Start(func(tb TB) { pid = Redis(tb).PID() })
		return pid, err
	})
	os.Exit(m.Run())
}

func TestServerDiesWithTheTestProcess(t *testing.T) {
	t.Parallel()
	Need(t, "redis-server")
	DiesWithParent(t, childEnv, "TMPDIR="+t.TempDir())
}

func TestKillTakesTheChildrenAlong(t *testing.T) {
	t.Parallel()
	p := Start(t, Command{Path: "/bin/sh", Args: []string{"-c", "sleep 1000 & echo $!; wait"}})
	var child int
	err := pollFor(startTimeout, func() (err error) {
		child, err = strconv.Atoi(p.LogTail())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Kill()
	p.Kill()
	if err := pollFor(startTimeout, func() error { return gone(child) }); err != nil {
		t.Fatal(err)
	}
	if err := p.Terminate(); err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Fatalf("signalling a dead process: %v", err)
	}
}

func TestExitedReportsTheStatus(t *testing.T) {
	t.Parallel()
	p := Start(t, Command{Path: "/bin/sh", Args: []string{"-c", "exit $CODE"}, Env: []string{"CODE=7"}})
	err := pollFor(startTimeout, func() error {
		if status, ended := p.Exited(); !ended || status != "exit status 7" {
			return fmt.Errorf("%q, ended %v", status, ended)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPollEndsWithTheLastAnswer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	looks, notYet := 0, errors.New("not yet")
	err := Poll(ctx, func() error {
		if looks++; looks == 3 {
			cancel()
		}
		return notYet
	})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, notYet) || looks < 3 {
		t.Fatalf("after %d looks: %v", looks, err)
	}
	if err := Poll(ctx, func() error { return nil }); err != nil {
		t.Fatalf("a condition that holds: %v", err)
	}
}

func TestReservedPortsDiffer(t *testing.T) {
	t.Parallel()
	seen := map[int]bool{}
	for range 200 {
		port := reservePort(t)
		if seen[port] || port < firstPort || port > lastPort {
			t.Fatalf("port %d, seen before: %v", port, seen[port])
		}
		seen[port] = true
	}
}

func TestNginx(t *testing.T) {
	t.Parallel()
	n := Nginx(t, `server { listen 127.0.0.1:${PORT}; location / { return 200 "from ${DIR}"; } }`)
	out, err := exec.Command("curl", "-s", "--max-time", "60", n.URL()+"/x").Output()
	if err != nil || string(out) != "from "+n.Dir() {
		t.Fatalf("got %q, %v", out, err)
	}
	if err := n.signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

func TestNginxWithABadConfigurationSaysWhy(t *testing.T) {
	t.Parallel()
	Need(t, "nginx")
	var scope Scope
	defer scope.Close()
	err := scope.Start(func(tb TB) { Nginx(tb, "no_such_directive;") })
	if err == nil || !strings.Contains(err.Error(), "no_such_directive") {
		t.Fatalf("got %v", err)
	}
}

// failoverTime is far more than a failover needs.
const failoverTime = 2 * time.Minute

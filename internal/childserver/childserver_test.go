//go:build unix

package childserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// long is far more than anything here takes.
const long = time.Minute

// shell is a server that is a script.
func shell(t *testing.T, script string) Program {
	t.Helper()
	return Program{Name: "a script", Path: "/bin/sh", Args: []string{"-c", script}, Dir: t.TempDir(), Port: 7}
}

func start(t *testing.T, program Program) *Process {
	t.Helper()
	p, err := program.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// printed is a server that is ready when its log has a word.
func printed(p *Process, word string) func(context.Context) error {
	return func(context.Context) error {
		if !strings.Contains(string(p.log()), word) {
			return errors.New("not yet")
		}
		return nil
	}
}

func await(t *testing.T, p *Process, ready func(context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	return p.Await(ctx, ready)
}

func never(context.Context) error { return errors.New("never") }

// TestLives: it is awaited and ended, and each life has a log of its own.
func TestLives(t *testing.T) {
	t.Parallel()
	program := shell(t, "echo life $$; exec sleep 1000")
	for range 2 {
		p := start(t, program)
		if err := await(t, p, printed(p, fmt.Sprintf("life %d\n", p.PID()))); err != nil {
			t.Fatal(err)
		}
		if p.Ended() {
			t.Error("it has ended by itself")
		}
		p.Kill()
		p.Kill()
		<-p.Done()
		if !p.Ended() || strings.Count(string(p.log()), "life") != 1 {
			t.Errorf("ended %v, log %q", p.Ended(), p.log())
		}
	}
}

// TestStop: it is asked first, and killed if it does not obey in time.
func TestStop(t *testing.T) {
	t.Parallel()
	polite := shell(t, `trap "echo bye; exit" INT; echo up; while :; do sleep 0.01; done`)
	polite.End = syscall.SIGINT
	p := start(t, polite)
	if err := await(t, p, printed(p, "up")); err != nil {
		t.Fatal(err)
	}
	p.Stop(long)
	if log := string(p.log()); !p.Ended() || !strings.Contains(log, "bye") {
		t.Errorf("ended %v, and said %q", p.Ended(), log)
	}
	p.Stop(long)

	deaf := shell(t, `trap "" INT; echo up; while :; do sleep 0.01; done`)
	deaf.End = syscall.SIGINT
	p = start(t, deaf)
	if err := await(t, p, printed(p, "up")); err != nil {
		t.Fatal(err)
	}
	p.Stop(0)
	if status := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v", p.cmd.ProcessState)
	}
}

func TestDefaultEndIsAKill(t *testing.T) {
	t.Parallel()
	p := start(t, shell(t, "exec sleep 1000"))
	p.Stop(long)
	if status := p.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v", p.cmd.ProcessState)
	}
}

// TestAwaitSaysWhy: what is not ready is not waited for longer than it can get so.
func TestAwaitSaysWhy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		want   []string
	}{
		"its status and the end of its log": {"echo one; echo two; echo three >&2; echo four; exit 3", []string{"exit status 3", `"two; three; four"`}},
		"a status that is none":             {"exit 0", []string{"exit status 0"}},
	} {
		err := await(t, start(t, shell(t, c.script)), never)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", name, err, want)
			}
		}
	}
	err := await(t, start(t, shell(t, "echo bind: Address already in use; exit 1")), never)
	if !errors.Is(err, ErrPortTaken) || !strings.Contains(err.Error(), "127.0.0.1:7") {
		t.Errorf("got %v", err)
	}
}

// TestAwaitEndsWithItsContext: the error has what was said last.
func TestAwaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	p := start(t, shell(t, "exec sleep 1000"))
	ctx, cancel := context.WithCancel(t.Context())
	looks := 0
	err := p.Await(ctx, func(context.Context) error {
		if looks++; looks == 2 {
			cancel()
		}
		return fmt.Errorf("look %d", looks)
	})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "look ") {
		t.Errorf("got %v", err)
	}
}

// TestQuestionEndsWithTheProcess: a question that hangs, since another has the port, is given up when the server dies.
func TestQuestionEndsWithTheProcess(t *testing.T) {
	t.Parallel()
	p := start(t, shell(t, "exec sleep 1000"))
	err := await(t, p, func(ctx context.Context) error {
		p.Kill()
		<-ctx.Done()
		return ctx.Err()
	})
	if err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("got %v", err)
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	p := start(t, shell(t, `echo up; exec sleep 1000`))
	if err := errors.Join(p.Pause(), p.Resume()); err != nil {
		t.Fatal(err)
	}
	if err := await(t, p, printed(p, "up")); err != nil {
		t.Fatal(err)
	}
	p.Kill()
	if err := p.Pause(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("got %v", err)
	}
}

func TestCannotStart(t *testing.T) {
	t.Parallel()
	program := shell(t, "exit")
	program.Path = filepath.Join(program.Dir, "none")
	if _, err := program.Start(); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "a script cannot be started") {
		t.Errorf("got %v", err)
	}
	program.Dir = program.Path
	if _, err := program.Start(); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "a script has no log") {
		t.Errorf("got %v", err)
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	if err := shell(t, "exit 0").Run(t.Context()); err != nil {
		t.Error(err)
	}
	err := shell(t, "echo why; exit 4").Run(t.Context())
	if err == nil || err.Error() != "a script failed: exit status 4: why" {
		t.Errorf("got %v", err)
	}
}

func TestOnFreePort(t *testing.T) {
	t.Parallel()
	taken := fmt.Errorf("no: %w", ErrPortTaken)
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		answers map[int]error // of a try; the others find the port taken
		tries   int
		want    error
	}{
		"the first":      {map[int]error{1: nil}, 1, nil},
		"the third":      {map[int]error{3: nil}, 3, nil},
		"another reason": {map[int]error{2: broken}, 2, broken},
		"none":           {nil, portTries, ErrPortTaken},
	} {
		tries := 0
		err := OnFreePort(func() int { return 100 + tries }, func(port int) error {
			tries++
			if port != 99+tries {
				t.Errorf("%s: try %d has port %d", name, tries, port)
			}
			if answer, ok := c.answers[tries]; ok {
				return answer
			}
			return taken
		})
		if tries != c.tries || !errors.Is(err, c.want) {
			t.Errorf("%s: %d tries, %v", name, tries, err)
		}
	}
}

func TestFreePort(t *testing.T) {
	t.Parallel()
	err := OnFreePort(nil, func(port int) error {
		if port < firstPort || port > lastPort {
			t.Errorf("port %d", port)
		}
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", loopback(port))
		if err != nil { // another has taken it meanwhile
			return ErrPortTaken
		}
		return l.Close()
	})
	if err != nil {
		t.Error(err)
	}
}

func TestUnprivileged(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		if a, err := Unprivileged("no-such-account-here"); err != nil || a != (Account{}) {
			t.Errorf("got %v, %v", a, err)
		}
		return
	}
	if _, err := Unprivileged("no-such-account-here", "nor-this"); err == nil || err.Error() != "there is no account no-such-account-here, nor nor-this" {
		t.Errorf("got %v", err)
	}
	a, err := Unprivileged("no-such-account-here", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), a.Own(file)); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != a.uid || a.uid == 0 {
		t.Errorf("the owner is not nobody: %v, %v", info, err)
	}
	program := shell(t, "id -u")
	program.Account, program.Dir = a, "/"
	out, err := program.command(t.Context()).Output()
	if err != nil || strings.TrimSpace(string(out)) != fmt.Sprint(a.uid) {
		t.Errorf("it runs as %q, %v", out, err)
	}
}

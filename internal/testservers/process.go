package testservers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/headgate-io/headgate/internal/childserver"
)

// Command describes a program to run for a test.
type Command struct {
	// Path and Args are the program and its arguments.
	Path string
	Args []string
	// Env is added to the environment of the test.
	Env []string
	// Dir is the working folder; the default is a new one that is removed with the test. The log lies in it.
	Dir string
	// Gentle programs have children that they end themselves: when the test process dies they are asked to end (SIGTERM)
	// where others are killed.
	Gentle bool
	// account is whom the program runs as, where the test runs as root.
	account childserver.Account
}

// Process is a running program. Its methods are safe for concurrent use. It is ended by its handle, with its process
// group: never by name.
type Process struct {
	name string
	log  string

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited bool
	status string
}

// Start starts a program and ends it with the test.
func Start(tb TB, c Command) *Process {
	tb.Helper()
	if c.Dir == "" {
		c.Dir = tempDir(tb)
	}
	p, err := startProcess(c)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() {
		p.Kill()
		if tb.Failed() {
			tb.Logf("last lines of %s:\n%s", p.name, p.LogTail())
		}
	})
	return p
}

func tempDir(tb TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "headgate-test-")
	if err != nil {
		tb.Fatalf("testservers: %v", err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Logf("testservers: %v", err)
		}
	})
	return dir
}

func startProcess(c Command) (*Process, error) {
	name := filepath.Base(c.Path)
	log, err := os.OpenFile(filepath.Join(c.Dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("testservers: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.Dir, log, log
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.SysProcAttr = childserver.Attributes(c.account, c.atDeath())
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("testservers: %w", err)
	}
	return &Process{name: name, log: log.Name(), cmd: cmd}, nil
}

func (c *Command) atDeath() syscall.Signal {
	if c.Gentle {
		return syscall.SIGTERM
	}
	return syscall.SIGKILL
}

// PID returns the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Kill ends the process and its children at once (SIGKILL) and waits for its end. Killing twice does no harm.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exited {
		return
	}
	_ = p.signalGroup(syscall.SIGKILL) // the only error is that it has just ended
	p.reap(true)
}

// Terminate asks the process to end (SIGTERM). It does not wait: see Exited.
func (p *Process) Terminate() error { return p.signal(syscall.SIGTERM) }

// Exited reports whether the process has ended, and how.
func (p *Process) Exited() (status string, exited bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.exited {
		p.reap(false)
	}
	return p.status, p.exited
}

func (p *Process) signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exited {
		return fmt.Errorf("testservers: %s has ended: %s", p.name, p.status)
	}
	if err := p.signalGroup(sig); err != nil {
		return fmt.Errorf("testservers: %s: %w", p.name, err)
	}
	return nil
}

// LogTail returns the end of what the process has printed.
func (p *Process) LogTail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}

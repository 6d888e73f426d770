package childserver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Program says what to run.
type Program struct {
	// Name is what errors call it, such as PostgreSQL.
	Name string
	// Path is the program, and Args are its arguments.
	Path string
	Args []string
	// Dir is the folder it runs in. A server's log lies there; see [Program.Log].
	Dir string
	// Port is the one of 127.0.0.1 that a server is told to listen on: errors name it.
	Port int
	// Account is whom it runs as. Default: whoever runs this program.
	Account Account
	// End is the signal that ends it in the order it needs: that of [Process.Stop], and of the kernel when this program dies.
	// Default SIGKILL.
	End syscall.Signal
}

// Addr returns host:port of the server.
func (p *Program) Addr() string { return loopback(p.Port) }

// Log returns the file that has what a server has printed since it was last started.
func (p *Program) Log() string { return filepath.Join(p.Dir, "log") }

func (p *Program) command(ctx context.Context) *exec.Cmd {
	if p.End == 0 {
		p.End = syscall.SIGKILL
	}
	cmd := exec.CommandContext(ctx, p.Path, p.Args...)
	cmd.Dir = p.Dir
	cmd.SysProcAttr = Attributes(p.Account, p.End)
	return cmd
}

// Run runs a program that ends by itself. The error has the end of what it has printed.
func (p Program) Run(ctx context.Context) error {
	if out, err := p.command(ctx).CombinedOutput(); err != nil {
		return fmt.Errorf("%s failed: %w: %s", p.Name, err, lastLines(out))
	}
	return nil
}

// Start starts a server, which outlives the call: see [Process.Await].
func (p Program) Start() (*Process, error) {
	log, err := os.OpenFile(p.Log(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%s has no log: %w", p.Name, err)
	}
	defer log.Close()
	cmd := p.command(context.Background())
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s cannot be started: %w", p.Name, err)
	}
	s := &Process{program: p, cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.how = cmd.Wait()
	}()
	return s, nil
}

func lastLines(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "; ")
}

package postgresserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Config says what to run. The zero Config runs the postgres that is found in PATH, or the newest where Debian keeps them.
type Config struct {
	// Program is the path of a postgres, version 12 or later, with its initdb beside it. Default: it is looked for.
	Program string

	pick func() int // a port; default a random one that is free
}

const (
	user        = "headgate"
	startWithin = 60 * time.Second
	endWithin   = 15 * time.Second
	portTries   = 20
)

// Server is a PostgreSQL. Its methods are safe for concurrent use.
type Server struct {
	bin, dir, password string
	port               int
	account            *account

	closing sync.Mutex
	cmd     *exec.Cmd
	done    chan struct{} // closes when it has ended
	how     error         // valid when done is closed
}

// Start sets a PostgreSQL up, runs it on a free port of 127.0.0.1 and waits until it answers, for at most a minute.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	bin, err := find(cfg.Program)
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, password: rand.Text()}
	if s.account, err = unprivileged(); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "headgate-postgres-"); err != nil {
		return nil, fmt.Errorf("a folder for PostgreSQL cannot be made: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	if err = s.setUp(ctx); err == nil {
		err = s.launchSomewhere(ctx, cfg.pick)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// find returns the folder of the programs.
func find(program string) (string, error) {
	candidates := []string{program}
	if program == "" {
		candidates = append([]string{"postgres"}, installed()...)
	}
	for _, c := range candidates {
		path, err := exec.LookPath(c)
		if err != nil {
			continue
		}
		if path, err = filepath.EvalSymlinks(path); err == nil { // its sisters lie where it really is
			path, err = filepath.Abs(path)
		}
		if err != nil {
			continue
		}
		if _, err := exec.LookPath(filepath.Join(filepath.Dir(path), "initdb")); err == nil {
			return filepath.Dir(path), nil
		}
	}
	if program != "" {
		return "", fmt.Errorf("%s is no postgres that can be run, with its initdb beside it", program)
	}
	return "", errors.New("there is no postgres with its initdb, neither in PATH nor in /usr/lib/postgresql; install it (Debian, Ubuntu: apt install " +
		"postgresql; macOS: brew install postgresql; Fedora: dnf install postgresql-server), or name the program's path")
}

// setUp makes the folder of the data.
func (s *Server) setUp(ctx context.Context) error {
	if err := s.account.own(s.dir); err != nil {
		return err
	}
	secret := s.file("password")
	if err := os.WriteFile(secret, []byte(s.password+"\n"), 0o600); err != nil {
		return err
	}
	if err := s.account.own(secret); err != nil {
		return err
	}
	cmd := s.command(ctx, "initdb", "--pgdata", s.file("data"), "--username", user, "--pwfile", secret, "--auth", "scram-sha-256",
		"--encoding", "UTF8", "--locale", "C", "--no-instructions")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("PostgreSQL cannot be set up: %w: %s", err, lastLines(string(out)))
	}
	return os.Remove(secret)
}

func (s *Server) file(name string) string { return filepath.Join(s.dir, name) }

func (s *Server) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, program), args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = attributes(s.account)
	return cmd
}

var errPortTaken = errors.New("its port is taken")

// launchSomewhere tries one port after the other.
func (s *Server) launchSomewhere(ctx context.Context, pick func() int) error {
	if pick == nil {
		pick = freePort
	}
	for try := 1; ; try++ {
		s.port = pick()
		err := s.launch(ctx)
		if err == nil || try == portTries || !errors.Is(err, errPortTaken) {
			return err
		}
	}
}

func (s *Server) launch(ctx context.Context) error {
	log, err := os.Create(s.file("log"))
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd = s.command(context.Background(), "postgres", "-D", s.file("data"), // it outlives the call that starts it
		"-c", "listen_addresses=127.0.0.1", "-c", fmt.Sprintf("port=%d", s.port), "-c", "unix_socket_directories=", "-c", "max_connections=100")
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		s.cmd = nil
		return fmt.Errorf("postgres cannot be started: %w", err)
	}
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		s.how = s.cmd.Wait()
	}()
	return s.await(ctx)
}

const readyEvery = 20 * time.Millisecond

// await waits until it is ready, as it says itself in the file in which it tells pg_ctl.
func (s *Server) await(ctx context.Context) error {
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.done:
			return s.failed()
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL at %s does not get ready: %w; its log ends with %q", s.Addr(), ctx.Err(), lastLines(s.log()))
		case <-tick.C:
		}
		if ready(s.file("data/postmaster.pid"), s.cmd.Process.Pid) {
			return nil
		}
	}
}

// The lines of postmaster.pid that are read.
const (
	linePID    = 0
	lineStatus = 7
)

func ready(file string, pid int) bool {
	text, err := os.ReadFile(file)
	lines := strings.Split(string(text), "\n")
	return err == nil && len(lines) > lineStatus && lines[linePID] == fmt.Sprint(pid) && strings.TrimSpace(lines[lineStatus]) == "ready"
}

func (s *Server) failed() error {
	text := s.log()
	if strings.Contains(text, "already in use") {
		return fmt.Errorf("PostgreSQL cannot listen on %s: %w", s.Addr(), errPortTaken)
	}
	return fmt.Errorf("PostgreSQL ended when it was started: %w; its log ends with %q", errors.Join(s.how, errors.New("it should run")), lastLines(text))
}

func (s *Server) log() string {
	text, _ := os.ReadFile(s.file("log")) // without one there is nothing to say
	return string(text)
}

func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], "; ")
}

// Addr returns host:port.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// URL returns postgres://USER:PASSWORD@HOST:PORT/postgres.
func (s *Server) URL() string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(user, s.password), Host: s.Addr(), Path: "/postgres"}
	return u.String()
}

// PID returns the number of the process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Dead returns a channel that closes when the process ends, for whatever reason.
func (s *Server) Dead() <-chan struct{} { return s.done }

// Close ends it in order, so that it leaves nothing in the system's shared memory, or at once if it takes more than 15 s, and removes
// its folder. Closing twice does no harm.
func (s *Server) Close() error {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.cmd != nil {
		_ = stop(s.cmd.Process) // the only error is that it has ended
		timer := time.NewTimer(endWithin)
		defer timer.Stop()
		select {
		case <-s.done:
		case <-timer.C:
			_ = s.cmd.Process.Kill()
			<-s.done
		}
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("the folder of PostgreSQL cannot be removed: %w", err)
	}
	return nil
}

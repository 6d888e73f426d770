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
	"syscall"
	"time"

	"github.com/headgate-io/headgate/internal/childserver"
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
)

// Server is a PostgreSQL. Its methods are safe for concurrent use.
type Server struct {
	bin, dir, password string
	account            childserver.Account
	port               int
	process            *childserver.Process // nil if it has not been started

	closing sync.Mutex
}

// Start sets a PostgreSQL up, runs it on a free port of 127.0.0.1 and waits until it answers, for at most a minute.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	bin, err := find(cfg.Program)
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, password: rand.Text()}
	if s.account, err = childserver.Unprivileged("postgres", "nobody"); err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root, and %w; run the demo as another user", err)
	}
	if s.dir, err = os.MkdirTemp("", "headgate-postgres-"); err != nil {
		return nil, fmt.Errorf("a folder for PostgreSQL cannot be made: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	if err = s.setUp(ctx); err == nil {
		err = childserver.OnFreePort(cfg.pick, func(port int) error {
			s.port = port
			return s.launch(ctx)
		})
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
	secret := s.file("password")
	if err := os.WriteFile(secret, []byte(s.password+"\n"), 0o600); err != nil {
		return err
	}
	if err := errors.Join(s.account.Own(s.dir), s.account.Own(secret)); err != nil {
		return fmt.Errorf("PostgreSQL cannot be given its folder: %w", err)
	}
	err := s.program("initdb", "--pgdata", s.file(data), "--username", user, "--pwfile", secret, "--auth", "scram-sha-256",
		"--encoding", "UTF8", "--locale", "C", "--no-instructions").Run(ctx)
	if err != nil {
		return fmt.Errorf("PostgreSQL cannot be set up: %w", err)
	}
	return os.Remove(secret)
}

const data = "data"

func (s *Server) file(name string) string { return filepath.Join(s.dir, name) }

// program is one that is ended in order, whoever is connected.
func (s *Server) program(name string, args ...string) childserver.Program {
	return childserver.Program{Name: name, Path: filepath.Join(s.bin, name), Args: args, Dir: s.dir, Port: s.port, Account: s.account, End: syscall.SIGINT}
}

func (s *Server) launch(ctx context.Context) (err error) {
	s.process, err = s.program("postgres", "-D", s.file(data), "-c", "listen_addresses=127.0.0.1", "-c", fmt.Sprintf("port=%d", s.port),
		"-c", "unix_socket_directories=", "-c", "max_connections=100").Start()
	if err != nil {
		return err
	}
	return s.process.Await(ctx, func(context.Context) error { return ready(s.file(data+"/postmaster.pid"), s.process.PID()) })
}

// The lines of postmaster.pid that are read.
const (
	linePID    = 0
	lineStatus = 7
)

// ready tells what it says itself in the file in which it tells pg_ctl.
func ready(file string, pid int) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) <= lineStatus || lines[linePID] != fmt.Sprint(pid) || strings.TrimSpace(lines[lineStatus]) != "ready" {
		return fmt.Errorf("%s says %q", file, text)
	}
	return nil
}

// Addr returns host:port.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// URL returns postgres://USER:PASSWORD@HOST:PORT/postgres.
func (s *Server) URL() string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(user, s.password), Host: s.Addr(), Path: "/postgres"}
	return u.String()
}

// PID returns the number of the process.
func (s *Server) PID() int { return s.process.PID() }

// Dead returns a channel that closes when the process ends, for whatever reason.
func (s *Server) Dead() <-chan struct{} { return s.process.Done() }

// Close ends it in order, so that it leaves nothing in the system's shared memory, or at once if it takes more than 15 s, and removes
// its folder. Closing twice does no harm.
func (s *Server) Close() error {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.process != nil {
		s.process.Stop(endWithin)
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("the folder of PostgreSQL cannot be removed: %w", err)
	}
	return nil
}

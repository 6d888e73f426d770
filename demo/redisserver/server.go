package redisserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/headgate-io/headgate/internal/childserver"
)

// DefaultProgram is what is run where nothing else is said.
const DefaultProgram = "redis-server"

// Config says what to run. The zero Config runs the redis-server that is found in PATH.
type Config struct {
	// Program is a name that is looked for in PATH, or a path. Any that takes the configuration of Redis 6.2 or later will do,
	// such as valkey-server. Default redis-server.
	Program string

	pick func() int // a port; default a random one that is free
}

const (
	startWithin = 10 * time.Second
	// maxMemory is far more than a demonstration needs, and no danger to the machine.
	maxMemory = "256mb"
)

// Server is a Redis. Its methods are safe for concurrent use.
type Server struct {
	program  string
	dir      string
	port     int
	password string

	mu     sync.Mutex
	run    *childserver.Process // nil when it is down
	closed bool
}

// Start runs a Redis on a free port of 127.0.0.1 and waits until it answers, for at most 10 s.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	program, err := find(cfg.Program)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "headgate-redis-")
	if err != nil {
		return nil, fmt.Errorf("a folder for Redis cannot be made: %w", err)
	}
	s := &Server{program: program, dir: dir, password: rand.Text()}
	err = childserver.OnFreePort(cfg.pick, func(port int) error {
		s.port = port
		return s.Restart(ctx)
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func find(program string) (string, error) {
	if program == "" {
		program = DefaultProgram
	}
	path, err := exec.LookPath(program)
	switch {
	case err == nil:
		return filepath.Abs(path) // it runs in another folder
	case strings.ContainsRune(program, filepath.Separator):
		if path, ok := errors.AsType[*os.PathError](err); ok {
			err = path.Err // it has the name
		}
		return "", fmt.Errorf("%s cannot be run: %w", program, err)
	}
	return "", fmt.Errorf("%s is not in PATH; install it (Debian, Ubuntu: apt install redis-server; macOS: brew install redis; "+
		"Fedora: dnf install redis), or name the program's path", program)
}

// Addr returns host:port, the same for every life of it.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// URL returns the address with the password, in the form redis://:PASSWORD@HOST:PORT.
func (s *Server) URL() string { return "redis://:" + s.password + "@" + s.Addr() }

// Password returns the password, the same for every life of it.
func (s *Server) Password() string { return s.password }

// PID returns the number of the process, 0 if it is down.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil {
		return 0
	}
	return s.run.PID()
}

// Dead returns a channel that closes when the process that runs now ends, for whatever reason; nil if it is down.
func (s *Server) Dead() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil {
		return nil
	}
	return s.run.Done()
}

// Restart starts it, with the data that lies there, and waits until it answers. It fails if it runs already.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return errors.New("Redis has been closed")
	case s.run != nil && !s.run.Ended():
		return fmt.Errorf("the Redis at %s runs already", s.Addr())
	}
	s.run = nil // it is down until it answers
	if err := s.prepare(); err != nil {
		return fmt.Errorf("the folder of Redis cannot be used: %w", err)
	}
	run, err := childserver.Program{Name: s.program, Path: s.program, Args: []string{s.file("redis.conf")}, Dir: s.dir, Port: s.port}.Start()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	if err := run.Await(ctx, s.ask); err != nil {
		run.Kill()
		return err
	}
	s.run = run
	return nil
}

func (s *Server) file(name string) string { return filepath.Join(s.dir, name) }

// data is the folder of what must outlive the process; the log and the configuration lie beside it.
const data = "data"

func (s *Server) prepare() error {
	if err := os.MkdirAll(s.file(data), 0o700); err != nil {
		return err
	}
	return os.WriteFile(s.file("redis.conf"), []byte(s.config()), 0o600) // a file, since arguments are seen by everybody
}

func (s *Server) config() string {
	return strings.Join([]string{
		"bind 127.0.0.1", fmt.Sprintf("port %d", s.port), "requirepass " + s.password,
		"dir " + quoted(s.file(data)), "daemonize no",
		`save ""`, "appendonly yes", "appendfsync always",
		"maxmemory " + maxMemory, "maxmemory-policy noeviction",
	}, "\n") + "\n"
}

// quoted writes a path as one word of redis.conf.
func quoted(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(path) + `"`
}

// Kill ends it at once (SIGKILL) and waits for its end. What it has answered is in its file. It does nothing if it is down.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != nil {
		s.run.Kill()
		s.run = nil
	}
}

// Wipe deletes its data. It fails while it runs.
func (s *Server) Wipe() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run != nil && !s.run.Ended() {
		return fmt.Errorf("the data of the Redis at %s cannot be deleted while it runs", s.Addr())
	}
	if err := os.RemoveAll(s.file(data)); err != nil {
		return fmt.Errorf("the data of Redis cannot be deleted: %w", err)
	}
	return nil
}

// Pause stops it (SIGSTOP): connections stay open, and nothing is answered until Resume.
func (s *Server) Pause() error { return s.signal("paused", (*childserver.Process).Pause) }

// Resume lets it go on.
func (s *Server) Resume() error { return s.signal("resumed", (*childserver.Process).Resume) }

func (s *Server) signal(what string, send func(*childserver.Process) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil || s.run.Ended() {
		return fmt.Errorf("the Redis at %s cannot be %s: it is down", s.Addr(), what)
	}
	if err := send(s.run); err != nil {
		return fmt.Errorf("the Redis at %s cannot be %s: %w", s.Addr(), what, err)
	}
	return nil
}

// Close ends it and removes its folder. Closing twice does no harm.
func (s *Server) Close() error {
	s.Kill()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("the folder of Redis cannot be removed: %w", err)
	}
	return nil
}

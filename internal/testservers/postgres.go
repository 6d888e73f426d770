package testservers

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// PostgresServer is a PostgreSQL. Its methods are safe for concurrent use, but for Restart, which needs that nothing else is done with
// its process. What it has committed outlives Kill; it outlives a crash of the machine only with DurableData.
type PostgresServer struct {
	databaseServer
	bin      string // the folder of its programs
	settings []string
}

// DatabaseOption changes how a PostgreSQL or a MariaDB is set up.
type DatabaseOption func(s *databaseSettings)

type databaseSettings struct {
	durable bool
	lines   []string
}

// DurableData has every commit written through to the disk, as in production. Without it, commits are as safe as the operating system.
func DurableData() DatabaseOption { return func(s *databaseSettings) { s.durable = true } }

// Setting sets one of the server's variables, such as "synchronous_commit=off".
func Setting(assignment string) DatabaseOption {
	return func(s *databaseSettings) { s.lines = append(s.lines, assignment) }
}

func apply(options []DatabaseOption) *databaseSettings {
	s := &databaseSettings{}
	for _, o := range options {
		o(s)
	}
	return s
}

// Postgres starts a PostgreSQL and waits until it answers.
func Postgres(tb TB, options ...DatabaseOption) *PostgresServer {
	tb.Helper()
	s := &PostgresServer{bin: filepath.Dir(need(tb, "postgres", postgresFolders()...))}
	// Debian's postgres is one of PATH by chance; its sisters lie where it really is.
	if path, err := filepath.EvalSymlinks(filepath.Join(s.bin, "postgres")); err == nil {
		s.bin = filepath.Dir(path)
	}
	s.fastStop = syscall.SIGINT // SIGTERM waits for its clients
	s.prepare(tb, "PostgreSQL", "postgres", "nobody")
	if err := s.setUp(apply(options)); err != nil {
		tb.Fatalf("%v", err)
	}
	if err := s.start(); err != nil {
		tb.Fatalf("%v", err)
	}
	return s
}

// postgresFolders are where Debian keeps the programs of each version, the newest first.
func postgresFolders() []string {
	folders, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil { // of a pattern that is malformed
		return nil
	}
	version := func(folder string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(folder)))
		return n
	}
	slices.SortFunc(folders, func(a, b string) int { return version(b) - version(a) })
	return folders
}

func (s *PostgresServer) setUp(settings *databaseSettings) error {
	secret := filepath.Join(s.dir, "password")
	if err := os.WriteFile(secret, []byte(databasePassword+"\n"), 0o600); err != nil {
		return fmt.Errorf("testservers: %w", err)
	}
	if err := s.account.Own(secret); err != nil {
		return fmt.Errorf("testservers: %w", err)
	}
	_, err := s.run(nil, s.program("initdb"), "--pgdata", s.data(), "--username", databaseUser, "--pwfile", secret, "--auth", "scram-sha-256",
		"--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions")
	s.settings = []string{
		"listen_addresses=127.0.0.1", "port=" + strconv.Itoa(s.port), "unix_socket_directories=" + s.dir, "max_connections=400",
		"shared_buffers=64MB", "jit=off", "max_wal_size=1GB",
	}
	if !settings.durable {
		s.settings = append(s.settings, "fsync=off")
	}
	s.settings = append(s.settings, settings.lines...)
	return err
}

func (s *PostgresServer) program(name string) string { return filepath.Join(s.bin, name) }
func (s *PostgresServer) data() string               { return filepath.Join(s.dir, "data") }

// start launches the server and waits until it answers. After a kill its children need a moment to notice, and until they have ended it
// refuses to start.
func (s *PostgresServer) start() error {
	args := []string{"-D", s.data()}
	for _, setting := range s.settings {
		args = append(args, "-c", setting)
	}
	for deadline := time.Now().Add(startTimeout); ; {
		p, err := startProcess(Command{Path: s.program("postgres"), Args: args, Dir: s.dir, Gentle: true, account: s.account})
		if err != nil {
			return err
		}
		s.Process = p
		err = s.awaitReady(s.SQL)
		if err == nil || time.Now().After(deadline) || !strings.Contains(s.LogTail(), "still in use") {
			return err
		}
	}
}

// SQL runs a statement in a database ("": the one of every server), and returns its rows, a line each, with the columns separated by "|".
func (s *PostgresServer) SQL(database, statement string) (string, error) {
	if database == "" {
		database = "postgres"
	}
	return s.run([]string{"PGPASSWORD=" + databasePassword, "PGCONNECT_TIMEOUT=5"}, s.program("psql"), "-h", "127.0.0.1", "-p", strconv.Itoa(s.port),
		"-U", databaseUser, "-d", database, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement)
}

// Database makes an empty database that is dropped with the test, and returns its URL.
func (s *PostgresServer) Database(tb TB) string {
	tb.Helper()
	name := s.nextName()
	if _, err := s.SQL("", "CREATE DATABASE "+name); err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() {
		if _, ended := s.Exited(); ended {
			return
		}
		if _, err := s.SQL("", "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			tb.Logf("%v", err)
		}
	})
	return s.url("postgres", name)
}

// Folder returns the folder that its socket is in, which is that of a URL's parameter host.
func (s *PostgresServer) Folder() string { return s.dir }

// URL returns postgres://USER:PASSWORD@HOST:PORT/postgres.
func (s *PostgresServer) URL() string { return s.url("postgres", "postgres") }

// Restart kills the server if it runs, starts it on the same port with its data, and waits until it answers.
func (s *PostgresServer) Restart() error {
	s.Kill()
	return s.start()
}

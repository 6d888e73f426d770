package testservers

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// RedisServer is one node of Redis. Its methods are safe for concurrent use, but for Restart, which needs that nothing else
// is done with the node's process.
type RedisServer struct {
	*Process
	program  string
	dir      string
	port     int
	lines    []string // of redis.conf, without port and folder
	user     string
	password string
	admin    string // the password of the account "testservers", "" if there is none
	tls      *tls.Config
	sentinel bool
	appends  bool
	fake     *fakeClock // nil: the machine's
}

// RedisOption changes how a Redis is set up.
type RedisOption func(tb TB, s *RedisServer)

// ACL demands a user and a password. Without rules the user may do everything; with rules, such as "+@all -config ~x:*",
// what they say. The user "default" stands for a bare password.
func ACL(user, password string, rules ...string) RedisOption {
	return func(_ TB, s *RedisServer) {
		if len(rules) == 0 {
			rules = []string{"~* &* +@all"}
		}
		s.user, s.password, s.admin = user, password, "testservers-only"
		if user != "default" {
			s.lines = append(s.lines, "user default off")
		}
		s.lines = append(s.lines,
			"user testservers on >"+s.admin+" ~* &* +@all",
			fmt.Sprintf("user %s on >%s %s", user, password, strings.Join(rules, " ")))
	}
}

// TLS serves TLS only, with a certificate of a new authority for 127.0.0.1 and localhost. See RedisServer.TLSConfig.
func TLS() RedisOption { return withTLS("no") }

// MutualTLS is TLS that demands a certificate of the client, which TLSConfig has.
func MutualTLS() RedisOption { return withTLS("yes") }

func withTLS(authClients string) RedisOption {
	return func(tb TB, s *RedisServer) {
		tb.Helper()
		certs, err := newCertificates(s.dir)
		if err != nil {
			tb.Fatalf("testservers: %v", err)
		}
		s.tls = certs.client
		s.lines = append(s.lines,
			"tls-cert-file "+certs.certFile, "tls-key-file "+certs.keyFile, "tls-ca-cert-file "+certs.caFile,
			"tls-auth-clients "+authClients)
	}
}

// AppendOnly keeps every write in an append-only file, so that data outlives Kill.
func AppendOnly() RedisOption {
	return func(_ TB, s *RedisServer) {
		s.appends = true
		s.lines = append(s.lines, "appendonly yes")
	}
}

// MaxMemory bounds the memory, such as "4mb", without eviction.
func MaxMemory(size string) RedisOption {
	return Directives("maxmemory "+size, "maxmemory-policy noeviction")
}

// Directives adds lines to redis.conf.
func Directives(lines ...string) RedisOption {
	return func(_ TB, s *RedisServer) { s.lines = append(s.lines, lines...) }
}

// Redis starts a single node without persistence and waits until it answers.
func Redis(tb TB, options ...RedisOption) *RedisServer {
	tb.Helper()
	s := prepareRedis(tb, options...)
	s.startOrFail(tb)
	return s
}

// prepareRedis makes a node that is not yet started.
func prepareRedis(tb TB, options ...RedisOption) *RedisServer {
	tb.Helper()
	s := &RedisServer{program: Need(tb, "redis-server"), dir: tempDir(tb), port: reservePort(tb)}
	s.lines = []string{"bind 127.0.0.1", `save ""`, "daemonize no", "repl-diskless-sync-delay 0"}
	for _, o := range options {
		o(tb, s)
	}
	tb.Cleanup(func() {
		if s.Process == nil {
			return
		}
		s.Kill()
		if tb.Failed() {
			tb.Logf("last lines of the Redis at %s:\n%s", s.Addr(), s.LogTail())
		}
	})
	return s
}

func (s *RedisServer) startOrFail(tb TB) {
	tb.Helper()
	if err := s.start(); err != nil {
		tb.Fatalf("%v", err)
	}
}

// start launches the program and waits until it answers. A sentinel writes its own findings into its file, which is
// therefore made once.
func (s *RedisServer) start() error {
	file := filepath.Join(s.dir, "redis.conf")
	if _, err := os.Stat(file); !s.sentinel || err != nil {
		if err := os.WriteFile(file, []byte(s.config()), 0o600); err != nil {
			return fmt.Errorf("testservers: %w", err)
		}
	}
	args := []string{file}
	if s.sentinel {
		args = append(args, "--sentinel")
	}
	p, err := startProcess(Command{Path: s.program, Args: args, Dir: s.dir, Env: s.fake.env()})
	if err != nil {
		return err
	}
	s.Process = p
	s.fake.started(p.PID())
	return s.awaitReady()
}

func (s *RedisServer) config() string {
	ports := []string{fmt.Sprintf("port %d", s.port)}
	if s.tls != nil {
		ports = []string{"port 0", fmt.Sprintf("tls-port %d", s.port)}
	}
	return strings.Join(append(append(ports, "dir "+s.dir), s.lines...), "\n") + "\n"
}

func (s *RedisServer) awaitReady() error {
	var dead error
	err := pollFor(startTimeout, func() error {
		_, err := s.Do("PING")
		if status, ended := s.Exited(); err != nil && ended {
			dead = fmt.Errorf("it ended: %s", status)
			return nil // no use in waiting on
		}
		return err
	})
	if err = errors.Join(err, dead); err != nil {
		return fmt.Errorf("testservers: redis at %s does not answer: %w\n%s", s.Addr(), err, s.LogTail())
	}
	return nil
}

// Addr returns HOST:PORT.
func (s *RedisServer) Addr() string { return loopback(s.port) }

// User and Password return the credentials; empty without ACL.
func (s *RedisServer) User() string { return s.user }

// Password returns the password of User.
func (s *RedisServer) Password() string { return s.password }

// TLSConfig returns what a client needs to connect, nil without TLS. The caller may change it.
func (s *RedisServer) TLSConfig() *tls.Config { return s.tls.Clone() }

// URL returns redis://[USER:PASSWORD@]HOST:PORT, or rediss:// with TLS.
func (s *RedisServer) URL() string {
	u := url.URL{Scheme: "redis", Host: s.Addr()}
	if s.tls != nil {
		u.Scheme = "rediss"
	}
	if s.password != "" {
		u.User = url.UserPassword(s.user, s.password)
	}
	return u.String()
}

// Do sends one command over a connection of its own, with all rights, and returns its answer: string, int64, nil or
// []any. An error of Redis is a [RedisError]. It gives up after 10 s.
func (s *RedisServer) Do(args ...any) (any, error) {
	c, err := dial(s.Addr(), s.tls)
	if err != nil {
		return nil, err
	}
	defer c.close()
	if s.admin != "" {
		if _, err := c.do("AUTH", "testservers", s.admin); err != nil {
			return nil, err
		}
	}
	return c.do(args...)
}

// Info returns a section of INFO as its fields.
func (s *RedisServer) Info(section string) (map[string]string, error) {
	answer, err := s.Do("INFO", section)
	if err != nil {
		return nil, err
	}
	text, _ := answer.(string)
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}

// Data tells what Restart does with the data.
type Data bool

const (
	// KeepData restarts with the data: that of the append-only file, or else, if the node still runs, a snapshot.
	KeepData Data = true
	// Empty restarts without any data.
	Empty Data = false
)

// Restart ends the node if it runs, starts it on the same port and waits until it answers.
func (s *RedisServer) Restart(data Data) error {
	if _, ended := s.Exited(); !ended && data == KeepData && !s.appends {
		if _, err := s.Do("SAVE"); err != nil {
			return fmt.Errorf("testservers: redis at %s: %w", s.Addr(), err)
		}
	}
	s.Kill()
	if data == Empty {
		if err := s.removeData(); err != nil {
			return fmt.Errorf("testservers: %w", err)
		}
	}
	return s.start()
}

func (s *RedisServer) removeData() error {
	return errors.Join(os.RemoveAll(filepath.Join(s.dir, "dump.rdb")), os.RemoveAll(filepath.Join(s.dir, "appendonlydir")),
		os.RemoveAll(filepath.Join(s.dir, "appendonly.aof")))
}

// AwaitInfo waits until a field of INFO has a value.
func (s *RedisServer) AwaitInfo(section, field, want string, within time.Duration) error {
	err := pollFor(within, func() error {
		fields, err := s.Info(section)
		if err != nil || fields[field] == want {
			return err
		}
		return fmt.Errorf("%s is %q, not %q", field, fields[field], want)
	})
	if err != nil {
		return fmt.Errorf("testservers: redis at %s: %w", s.Addr(), err)
	}
	return nil
}

package testservers

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// MariaDBServer is a MariaDB. Its methods are safe for concurrent use, but for Restart, which needs that nothing else is done with its
// process. What it has committed outlives Kill; it outlives a crash of the machine only with DurableData.
type MariaDBServer struct {
	databaseServer
	daemon, client string
	settings       []string
}

// MariaDB starts a MariaDB and waits until it answers.
func MariaDB(tb TB, options ...DatabaseOption) *MariaDBServer {
	tb.Helper()
	s := &MariaDBServer{daemon: Need(tb, "mariadbd"), client: Need(tb, "mariadb")}
	install := Need(tb, "mariadb-install-db")
	s.fastStop = syscall.SIGTERM
	s.prepare(tb, "MariaDB", "mysql", "nobody")
	if err := s.setUp(install, apply(options)); err != nil {
		tb.Fatalf("%v", err)
	}
	if err := s.start(); err != nil {
		tb.Fatalf("%v", err)
	}
	return s
}

func (s *MariaDBServer) setUp(install string, settings *databaseSettings) error {
	accounts := filepath.Join(s.dir, "accounts.sql")
	// A statement of an init-file is a line.
	statements := ""
	for _, host := range []string{"127.0.0.1", "localhost"} { // by the network, and by the socket
		statements += fmt.Sprintf("CREATE OR REPLACE USER %[1]s@'%[3]s' IDENTIFIED BY '%[2]s';\nGRANT ALL ON *.* TO %[1]s@'%[3]s' WITH GRANT OPTION;\n",
			databaseUser, databasePassword, host)
	}
	if err := os.WriteFile(accounts, []byte(statements), 0o600); err != nil {
		return fmt.Errorf("testservers: %w", err)
	}
	if err := s.account.Own(accounts); err != nil {
		return fmt.Errorf("testservers: %w", err)
	}
	_, err := s.run(nil, install, "--no-defaults", "--datadir="+s.data(), "--auth-root-authentication-method=normal", "--skip-test-db",
		"--innodb-flush-method=nosync", "--innodb-log-file-size=64M", "--tmpdir="+s.dir)
	s.settings = []string{
		"--no-defaults", "--datadir=" + s.data(), "--port=" + strconv.Itoa(s.port), "--bind-address=127.0.0.1", "--skip-name-resolve",
		"--socket=" + s.Socket(), "--pid-file=" + filepath.Join(s.dir, "pid"), "--init-file=" + accounts,
		"--tmpdir=" + s.dir, // a server that starts removes the temporary tables that it finds, also those of another
		"--innodb-log-file-size=64M", "--innodb-buffer-pool-size=64M", "--max-connections=400",
	}
	if !settings.durable {
		s.settings = append(s.settings, "--innodb-flush-log-at-trx-commit=2", "--innodb-flush-method=nosync")
	}
	for _, line := range settings.lines {
		s.settings = append(s.settings, "--"+line)
	}
	return err
}

func (s *MariaDBServer) data() string { return filepath.Join(s.dir, "data") }

func (s *MariaDBServer) start() error {
	p, err := startProcess(Command{Path: s.daemon, Args: s.settings, Dir: s.dir, account: s.account})
	if err != nil {
		return err
	}
	s.Process = p
	return s.awaitReady(s.SQL)
}

// SQL runs a statement in a database ("": none), and returns its rows, a line each, with the columns separated by tabs.
func (s *MariaDBServer) SQL(database, statement string) (string, error) {
	return s.run([]string{"MYSQL_PWD=" + databasePassword}, s.client, "--no-defaults", "--host=127.0.0.1", "--port="+strconv.Itoa(s.port),
		"--user="+databaseUser, "--connect-timeout=5", "--batch", "--skip-column-names", "--database="+database, "--execute="+statement)
}

// Database makes an empty database that is dropped with the test, and returns its URL.
func (s *MariaDBServer) Database(tb TB) string {
	tb.Helper()
	name := s.nextName()
	if _, err := s.SQL("", "CREATE DATABASE "+name); err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() {
		if _, ended := s.Exited(); ended {
			return
		}
		if _, err := s.SQL("", "DROP DATABASE "+name); err != nil {
			tb.Logf("%v", err)
		}
	})
	return s.url("mysql", name)
}

// Socket returns the path of its socket.
func (s *MariaDBServer) Socket() string { return filepath.Join(s.dir, "socket") }

// URL returns mysql://USER:PASSWORD@HOST:PORT/mysql.
func (s *MariaDBServer) URL() string { return s.url("mysql", "mysql") }

// Restart kills the server if it runs, starts it on the same port with its data, and waits until it answers.
func (s *MariaDBServer) Restart() error {
	s.Kill()
	return s.start()
}

package testservers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/headgate-io/headgate/internal/childserver"
)

// The account of the databases that are started here.
const (
	databaseUser     = "headgate"
	databasePassword = "s3cret-of-tests"
)

// stopTimeout bounds how long a database may take to end in order.
const stopTimeout = 20 * time.Second

// databaseServer is what PostgreSQL and MariaDB have in common.
type databaseServer struct {
	*Process
	dir      string
	account  childserver.Account
	port     int
	fastStop syscall.Signal // ends it in order whoever is connected
	made     atomic.Int64   // databases
}

// prepare makes the folder, and has the server end with the test in order, so that it leaves nothing in the system's shared memory.
func (s *databaseServer) prepare(tb TB, name string, accounts ...string) {
	tb.Helper()
	s.dir, s.port = tempDir(tb), reservePort(tb)
	account, err := childserver.Unprivileged(accounts...)
	if err == nil {
		err = account.Own(s.dir)
	}
	if err != nil {
		tb.Fatalf("testservers: %s does not run as root: %v", name, err)
	}
	s.account = account
	tb.Cleanup(func() {
		if s.Process == nil {
			return
		}
		_ = s.Stop() // what is still there is killed
		s.Kill()
		if tb.Failed() {
			tb.Logf("last lines of the %s at %s:\n%s", name, s.Addr(), s.LogTail())
		}
	})
}

// run runs a program that ends by itself.
func (s *databaseServer) run(env []string, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var stderr bytes.Buffer
	cmd.Dir, cmd.Stderr = s.dir, &stderr
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = childserver.Attributes(s.account, syscall.SIGKILL)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("testservers: %s: %w\n%s%s", program, err, stderr.String(), out)
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

// awaitReady waits until a statement is answered, or the process has ended.
func (s *databaseServer) awaitReady(sql func(database, statement string) (string, error)) error {
	var dead error
	err := pollFor(startTimeout, func() error {
		if status, ended := s.Exited(); ended {
			dead = fmt.Errorf("it ended: %s", status)
			return nil // no use in waiting on
		}
		c, err := net.Dial("tcp", s.Addr()) // cheaper than a client for each look
		if err != nil {
			return err
		}
		_ = c.Close()
		_, err = sql("", "SELECT 1")
		return err
	})
	if err = errors.Join(err, dead); err != nil {
		return fmt.Errorf("testservers: %s at %s does not answer: %w\n%s", s.name, s.Addr(), err, s.LogTail())
	}
	return nil
}

// Stop ends the server at once and in order: connections are cut, and nothing committed is lost.
func (s *databaseServer) Stop() error {
	if err := s.signal(s.fastStop); err != nil {
		return err
	}
	err := pollFor(stopTimeout, func() error {
		if _, ended := s.Exited(); !ended {
			return errors.New("it still runs")
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("testservers: %s at %s: %w", s.name, s.Addr(), err)
	}
	return nil
}

// Addr returns HOST:PORT.
func (s *databaseServer) Addr() string { return loopback(s.port) }

// User and Password return the credentials of an account that may do everything.
func (s *databaseServer) User() string { return databaseUser }

// Password returns the password of User.
func (s *databaseServer) Password() string { return databasePassword }

func (s *databaseServer) url(scheme, database string) string {
	u := url.URL{Scheme: scheme, Host: s.Addr(), User: url.UserPassword(databaseUser, databasePassword), Path: "/" + database}
	return u.String()
}

// nextName is the name of a new database.
func (s *databaseServer) nextName() string { return fmt.Sprintf("test_%d", s.made.Add(1)) }

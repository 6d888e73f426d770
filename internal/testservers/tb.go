package testservers

import (
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
)

// TB is what a server needs of a test. *testing.T, *testing.B, *testing.F and what [Scope] passes on are TBs.
type TB interface {
	Helper()
	Cleanup(f func())
	Failed() bool
	Logf(format string, args ...any)
	Skipf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// installCommand installs every server that the tests use.
const installCommand = "scripts/install-test-deps.sh"

// Need returns the path of a server's program. Where it is missing it skips the test, or fails it if CI=true.
func Need(tb TB, program string) string {
	tb.Helper()
	return need(tb, program)
}

// need is Need for a program that may also lie in other folders.
func need(tb TB, program string, folders ...string) string {
	tb.Helper()
	path, err := lookPath(program, folders...)
	switch {
	case err == nil:
		return path
	case os.Getenv("CI") == "true":
		tb.Fatalf("testservers: %s is not installed, and with CI=true nothing is skipped; run %s", program, installCommand)
	default:
		tb.Skipf("testservers: SKIPPED, %s is not installed; run %s", program, installCommand)
	}
	return ""
}

// lookPath also looks where daemons lie, which is not on every user's PATH.
func lookPath(program string, folders ...string) (string, error) {
	path, err := exec.LookPath(program)
	for _, dir := range append([]string{"/usr/sbin", "/usr/local/sbin"}, folders...) {
		if err == nil {
			break
		}
		path, err = exec.LookPath(filepath.Join(dir, program))
	}
	return path, err
}

// ErrSkipped is in the chain of the error of [Scope.Start] if what it ran asked to be skipped.
var ErrSkipped = errors.New("skipped")

// Scope holds servers outside a test. The zero value is ready; Close ends the servers.
type Scope struct {
	mu       sync.Mutex
	cleanups []func()
	failed   bool
}

// Start runs f, which starts servers with the TB it is given. The error says what f was skipped or failed for.
func (s *Scope) Start(f func(tb TB)) error {
	run := &scopeRun{scope: s}
	done := make(chan struct{})
	go func() { // a goroutine of its own, because Skipf and Fatalf end it
		defer close(done)
		f(run)
	}()
	<-done
	return run.err
}

// Close ends the servers, the youngest first. Closing twice does no harm.
func (s *Scope) Close() {
	s.mu.Lock()
	cleanups := s.cleanups
	s.cleanups = nil
	s.mu.Unlock()
	for i := len(cleanups) - 1; i >= 0; i-- {
		cleanups[i]()
	}
}

// scopeRun is the TB of one Start.
type scopeRun struct {
	scope *Scope
	err   error
}

func (r *scopeRun) Helper() {}

func (r *scopeRun) Cleanup(f func()) {
	r.scope.mu.Lock()
	defer r.scope.mu.Unlock()
	r.scope.cleanups = append(r.scope.cleanups, f)
}

func (r *scopeRun) Failed() bool {
	r.scope.mu.Lock()
	defer r.scope.mu.Unlock()
	return r.scope.failed
}

func (r *scopeRun) Logf(format string, args ...any) { log.Printf(format, args...) }

func (r *scopeRun) Skipf(format string, args ...any) {
	r.err = fmt.Errorf("%w: %s", ErrSkipped, fmt.Sprintf(format, args...))
	runtime.Goexit()
}

func (r *scopeRun) Fatalf(format string, args ...any) {
	r.scope.mu.Lock()
	r.scope.failed = true
	r.scope.mu.Unlock()
	r.err = fmt.Errorf(format, args...)
	runtime.Goexit()
}

// Shared is a server that the tests of one package share.
type Shared[T any] struct {
	start func(tb TB) T
	once  sync.Once
	scope Scope
	value T
	err   error
}

// Share returns a server that the first Get starts. TestMain closes it:
//
//	var shared = testservers.Share(func(tb testservers.TB) *testservers.RedisServer { return testservers.Redis(tb) })
//
//	func TestMain(m *testing.M) {
//		code := m.Run()
//		shared.Close()
//		os.Exit(code)
//	}
func Share[T any](start func(tb TB) T) *Shared[T] { return &Shared[T]{start: start} }

// Get returns the server. If it could not be started, every test that asks for it is skipped or failed alike.
func (s *Shared[T]) Get(tb TB) T {
	tb.Helper()
	s.once.Do(func() {
		s.err = s.scope.Start(func(inner TB) { s.value = s.start(inner) })
	})
	switch {
	case errors.Is(s.err, ErrSkipped):
		tb.Skipf("%v", s.err)
	case s.err != nil:
		tb.Fatalf("%v", s.err)
	}
	return s.value
}

// Close ends the server, if it was started.
func (s *Shared[T]) Close() { s.scope.Close() }

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// served is a running headgate serve.
type served struct {
	cmd    *exec.Cmd
	before []string // lines of the log so far
	guards string   // the line that says what is guarded
	url    string
	lines  *bufio.Scanner
	stdout *bytes.Buffer
}

// startServe runs the binary and waits for the line that says what it guards.
func startServe(t *testing.T, env []string, args ...string) *served {
	t.Helper()
	cmd := command(t.Context(), env, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	s := &served{cmd: cmd, lines: bufio.NewScanner(stderr), stdout: new(bytes.Buffer)}
	cmd.Stdout = s.stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line := s.await(t, "headgate guards")
	at := regexp.MustCompile(`listen=(\S+)`).FindStringSubmatch(line)
	if at == nil {
		t.Fatalf("the line does not say where it listens: %s", line)
	}
	s.guards, s.url = line, at[1]
	return s
}

func (s *served) await(t *testing.T, text string) string {
	t.Helper()
	for s.lines.Scan() {
		if strings.Contains(s.lines.Text(), text) {
			return s.lines.Text()
		}
		s.before = append(s.before, s.lines.Text())
	}
	t.Fatalf("the log ended without %q", text)
	return ""
}

// slowService is a service whose /slow answers "done" when it may.
type slowService struct {
	url            string
	entered, leave chan struct{}
}

func startSlow(t *testing.T) *slowService {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &slowService{url: "http://" + l.Addr().String(), entered: make(chan struct{}, 1), leave: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		s.entered <- struct{}{}
		select {
		case <-s.leave:
			fmt.Fprint(w, "done")
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("/login", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "in") })
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
	return s
}

// enter sends a request that stays under way, and returns where its answer will come.
func (s *slowService) enter(url string) <-chan string {
	answered := make(chan string, 1)
	go func() {
		res, err := http.Get(url + "/slow")
		if err != nil {
			answered <- "error: " + err.Error()
			return
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			answered <- "error: " + err.Error()
			return
		}
		answered <- string(body)
	}()
	<-s.entered
	return answered
}

// TestServe starts with flags from the environment, guards, and drains on SIGTERM with a request under way.
func TestServe(t *testing.T) {
	t.Parallel()
	service := startSlow(t)
	s := startServe(t, []string{"HEADGATE_UPSTREAM=" + service.url, "HEADGATE_POLICY=good.yaml"})
	for i, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
		res, err := http.Post(s.url+"/login", "text/plain", nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("login %d: got %d, want %d", i, res.StatusCode, want)
		}
	}
	answered := service.enter(s.url)
	s.signal(t, syscall.SIGTERM)
	s.await(t, "stopping")
	close(service.leave)
	if body := <-answered; body != "done" {
		t.Errorf("the request under way got %q", body)
	}
	s.await(t, "stopped")
	if err := s.cmd.Wait(); err != nil || s.stdout.Len() > 0 {
		t.Errorf("it ended with %v and wrote %q to stdout", err, s.stdout)
	}
}

// TestReload: SIGHUP has the policy loaded, and what came of it is in the log and in the status, which is read with the token
// that the log says where to find.
func TestReload(t *testing.T) {
	t.Parallel()
	service, runtime := startSlow(t), t.TempDir()
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("version: 1\nrules: []\n")
	s := startServe(t, []string{"XDG_RUNTIME_DIR=" + runtime}, "--upstream", service.url, "--policy", policy, "--admin", "127.0.0.1:0")
	post := func(want int) {
		t.Helper()
		res, err := http.Post(s.url+"/login", "text/plain", nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("got %d, want %d", res.StatusCode, want)
		}
	}
	s.signal(t, syscall.SIGHUP)
	s.await(t, "policy unchanged")
	post(http.StatusOK)
	write("version: 1\nrules: [{name: shut, limits: [token_bucket 0/s]}]\n")
	s.signal(t, syscall.SIGHUP)
	s.await(t, "policy in force")
	post(http.StatusTooManyRequests)
	write("version: 1\nrules: [{name: shut}]\n")
	s.signal(t, syscall.SIGHUP)
	if line := s.await(t, "policy refused"); !strings.Contains(line, "trigger=hangup") {
		t.Errorf("the log says %s", line)
	}
	post(http.StatusTooManyRequests)
	if status := s.adminStatus(t); !strings.Contains(status, `"reloads": 1,`) || !strings.Contains(status, `"refused": 1,`) {
		t.Errorf("the status is %s", status)
	}
	s.signal(t, syscall.SIGTERM)
	s.await(t, "stopped")
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(runtime, "headgate", "*")); err != nil || len(left) > 0 {
		t.Errorf("what is left: %v, %v", left, err)
	}
}

// TestServeStoreAway: a gate whose Redis is down starts, with limits of its own, and says so without a password.
func TestServeStoreAway(t *testing.T) {
	t.Parallel()
	service := startSlow(t)
	s := startServe(t, []string{"HEADGATE_STORE=redis://me:hunter2@127.0.0.1:1"}, "--upstream", service.url, "--policy", "good.yaml")
	if warning := s.before[0]; !strings.Contains(warning, "the store cannot be reached yet") || strings.Contains(warning, "hunter2") {
		t.Errorf("the first line is %s", warning)
	}
	for i, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
		res, err := http.Post(s.url+"/login", "text/plain", nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("login %d: got %d, want %d", i, res.StatusCode, want)
		}
	}
	s.signal(t, syscall.SIGTERM)
	s.await(t, "stopped")
	if err := s.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// adminStatus reads the status as a person would.
func (s *served) adminStatus(t *testing.T) string {
	t.Helper()
	at := regexp.MustCompile(`admin=(\S+) admin_token_file=(\S+)`).FindStringSubmatch(s.guards)
	if at == nil {
		t.Fatalf("the line does not say where the token is: %s", s.guards)
	}
	token, err := os.ReadFile(at[2])
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at[1]+"/status", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("the status answers %s, %v", res.Status, err)
	}
	return string(body)
}

// TestSecondSignal: whoever does not want to wait for the drain asks again.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	service := startSlow(t)
	s := startServe(t, nil, "--upstream", service.url, "--policy", "good.yaml")
	answered := service.enter(s.url)
	s.signal(t, syscall.SIGTERM)
	s.await(t, "stopping")
	s.signal(t, syscall.SIGTERM)
	var exit *exec.ExitError
	if err := s.cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("it ended with %v, want SIGTERM", err)
	}
	if body := <-answered; !strings.HasPrefix(body, "error: ") {
		t.Errorf("the request under way got %q", body)
	}
}

func (s *served) signal(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

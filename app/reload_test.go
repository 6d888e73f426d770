package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/headgate-io/headgate/policy"
	"github.com/headgate-io/headgate/source"
)

// serveFile guards a service that says "ok" by a policy in a file that the test changes.
func serveFile(t *testing.T, text string, cfg ServeConfig) (r *running, file string, hup chan os.Signal) {
	t.Helper()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "ok user=%q", r.Header.Get("X-User-Id"))
	}))
	t.Cleanup(service.Close)
	hup = make(chan os.Signal)
	cfg.Policy, cfg.Upstreams, cfg.Admin, cfg.AdminToken, cfg.Reload = writePolicy(t, text), []string{service.URL}, "127.0.0.1:0", "s3cret", hup
	return start(t, cfg), cfg.Policy, hup
}

func (r *running) end(t *testing.T) {
	t.Helper()
	r.stop()
	if err := <-r.done; err != nil {
		t.Error(err)
	}
}

func (r *running) status(t *testing.T) (s Status) {
	t.Helper()
	code, body := get(t, r.admin+"/status", "Authorization", "Bearer s3cret")
	if code != http.StatusOK {
		t.Fatalf("/status: %d %s", code, body)
	}
	if err := json.Unmarshal([]byte(body), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func overwrite(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// limited is a policy with one limit for everybody.
func limited(limit string) string {
	return "version: 1\nrules:\n  - {name: all, limits: [" + limit + "]}\n"
}

// TestReloadByChange: a changed file is in force by itself, whichever way it was saved; so is a list beside it.
func TestReloadByChange(t *testing.T) {
	t.Parallel()
	const listed = "version: 1\nlists: {shut: {file: shut.txt}}\ndeny: [shut]\nrules: []\n"
	dir := t.TempDir()
	file, list := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "shut.txt")
	overwrite(t, list, "192.0.2.0/24\n")
	overwrite(t, file, listed)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }))
	defer service.Close()
	r := start(t, ServeConfig{Policy: file, Upstreams: []string{service.URL}})
	defer r.end(t)
	for _, c := range []struct {
		what   string
		change func() error
		status int
	}{
		{"list in place", func() error { return os.WriteFile(list, []byte("127.0.0.1\n"), 0o600) }, http.StatusForbidden},
		{"policy renamed", func() error {
			overwrite(t, file+".tmp", "version: 1\nrules: []\n")
			return os.Rename(file+".tmp", file)
		}, http.StatusOK},
		{"policy by a symlink", func() error {
			overwrite(t, filepath.Join(dir, "v2.yaml"), listed+"# again\n")
			if err := os.Remove(file); err != nil {
				return err
			}
			return os.Symlink("v2.yaml", file)
		}, http.StatusForbidden},
	} {
		begin := time.Now()
		if err := c.change(); err != nil {
			t.Fatal(err)
		}
		r.log.await(t, "policy in force")
		if took := time.Since(begin); took > 2*time.Second {
			t.Logf("%s: in force after %v; the machine may be busy", c.what, took)
		}
		if status, body := get(t, r.url); status != c.status {
			t.Errorf("%s: got %d %s, want %d", c.what, status, body, c.status)
		}
	}
}

// TestReloadRefuses: a bad policy leaves the old one in force, with one line in the log and figures in the status, and a good
// one after it is taken up; whatever was counted stays.
func TestReloadRefuses(t *testing.T) {
	t.Parallel()
	r, file, hup := serveFile(t, limited("fixed_window 3/36500d"), ServeConfig{Version: "v1.2.3"})
	defer r.end(t)
	ask := func(want int) {
		t.Helper()
		if status, body := get(t, r.url); status != want {
			t.Errorf("got %d %s, want %d", status, body, want)
		}
	}
	ask(http.StatusOK)
	before := r.status(t)
	if p := before.Policy; p.Name != file || len(p.Version) != 12 || p.Rules != 1 || !p.Current || p.Reloads != 0 || p.Refused != 0 || p.LastRefused != nil {
		t.Errorf("at first: %+v", p)
	}
	if before.Process.Version != "v1.2.3" || !before.Process.Ready || before.Process.UptimeSeconds <= 0 || before.Process.Started.IsZero() ||
		before.Store != (StoreStatus{Name: "memory", Reached: true}) || "http://"+before.Gateway.Listener.Address != r.url || "http://"+before.Process.Admin.Address != r.admin {
		t.Errorf("at first: %+v", before)
	}
	overwrite(t, file, "version: 1\nrulse: []\nclientss: {}\n")
	hup <- syscall.SIGHUP
	line := r.log.await(t, "policy refused: the old one stays in force")
	if !strings.Contains(line, "policy.yaml:2:1: ") || !strings.Contains(line, "policy.yaml:3:1: ") || !strings.Contains(line, "trigger=hangup") ||
		!strings.Contains(line, "in_force="+before.Policy.Version) {
		t.Errorf("the line says too little: %s", line)
	}
	ask(http.StatusOK)
	bad := r.status(t).Policy
	if bad.Version != before.Policy.Version || bad.Current || bad.Reloads != 0 || bad.Refused != 1 || bad.LastRefused == nil ||
		len(bad.LastRefused.Error) != 2 || bad.LastRefused.Version == bad.Version || bad.LastRefused.At.Before(bad.InForceSince) {
		t.Errorf("after a bad one: %+v", bad)
	}
	overwrite(t, file, limited("fixed_window 4/36500d"))
	line = r.log.await(t, "policy in force")
	good := r.status(t).Policy
	if good.Version == before.Policy.Version || !good.Current || good.Reloads != 1 || good.Refused != 1 || !strings.Contains(line, "version="+good.Version) {
		t.Errorf("after a good one: %+v, logged %s", good, line)
	}
	ask(http.StatusOK)
	ask(http.StatusOK)
	ask(http.StatusTooManyRequests) // the fifth
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	r.log.await(t, "cannot be opened: no such file or directory")
	overwrite(t, file, limited("fixed_window 4/36500d"))
	r.log.await(t, "policy unchanged")
	ask(http.StatusTooManyRequests)
	if last := r.status(t).Policy; last.Version != good.Version || !last.Current || last.Reloads != 1 || last.Refused != 2 || last.LastRefused.Version != "" {
		t.Errorf("after a loss and a return: %+v", last)
	}
}

// TestReloadKeepsState: no key gets quota by a reload, whatever the new numbers are.
func TestReloadKeepsState(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after string
		more          int // requests that pass after the change
	}{
		"same":                {"fixed_window 3/36500d", "fixed_window 3/36500d # the same", 0},
		"raised by two":       {"fixed_window 3/36500d", "fixed_window 5/36500d", 2},
		"lowered":             {"fixed_window 3/36500d", "fixed_window 1/36500d", 0},
		"log raised by one":   {"sliding_log 3/1h", "sliding_log 4/1h", 1},
		"a bucket mints none": {"token_bucket 3/1h burst=3", "token_bucket 9/10h burst=30", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, file, hup := serveFile(t, limited(c.before), ServeConfig{})
			defer r.end(t)
			pass := func() (n int) {
				for range 10 {
					if status, _ := get(t, r.url); status == http.StatusOK {
						n++
					}
				}
				return n
			}
			if n := pass(); n != 3 {
				t.Errorf("%d pass at first, want 3", n)
			}
			overwrite(t, file, strings.Replace(limited(strings.TrimSuffix(c.after, " # the same")), "version: 1", "version: 1 # 2", 1))
			hup <- syscall.SIGHUP
			r.log.await(t, "policy in force")
			if n := pass(); n != c.more {
				t.Errorf("%d pass after the change, want %d", n, c.more)
			}
		})
	}
}

// TestReloadUnderLoad: while the policy changes fifty times no request is lost, blocked, let in twice or held for ever.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	const changes, workers, quota = 50, 8, 300
	text := func(i int) string {
		return fmt.Sprintf("version: 1\nrules:\n  - {name: extra%d, match: {paths: [/x%d]}, limits: [token_bucket 1/s]}\n"+
			"  - {name: quota, match: {paths: [/q]}, limits: [fixed_window %d/36500d]}\n"+
			"  - {name: slots, limits: [concurrency 64 ttl=1h]}\n", i%3, i, quota)
	}
	r, file, hup := serveFile(t, text(0), ServeConfig{})
	defer r.end(t)
	var sent, ok, over, quotaOK, slowest atomic.Int64
	stop := make(chan struct{})
	var crowd sync.WaitGroup
	for i := range workers {
		crowd.Go(func() {
			client := &http.Client{Timeout: ample, Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for path := []string{"/", "/q"}[i%2]; ; {
				select {
				case <-stop:
					return
				default:
				}
				sent.Add(1)
				begin := time.Now()
				res, err := client.Get(r.url + path)
				if err != nil {
					t.Error(err)
					continue
				}
				_, err = io.Copy(io.Discard, res.Body)
				res.Body.Close()
				slowest.Store(max(slowest.Load(), int64(time.Since(begin))))
				switch {
				case err != nil:
					t.Error(err)
				case res.StatusCode == http.StatusOK && path == "/q":
					quotaOK.Add(1)
				case res.StatusCode == http.StatusOK:
					ok.Add(1)
				case res.StatusCode == http.StatusTooManyRequests && path == "/q":
					over.Add(1)
				default:
					t.Errorf("%s: %s", path, res.Status)
				}
			}
		})
	}
	for i := 1; i <= changes; i++ {
		overwrite(t, file, text(i))
		hup <- syscall.SIGHUP
		r.log.await(t, "policy in force")
	}
	for sent.Load() < 1000 || over.Load() == 0 { // the crowd goes on until it has said something
		get(t, r.url)
	}
	close(stop)
	crowd.Wait()
	if got := ok.Load() + over.Load() + quotaOK.Load(); got != sent.Load() || quotaOK.Load() != quota || ok.Load() == 0 {
		t.Errorf("of %d requests %d were answered; %d passed under a limit of %d", sent.Load(), got, quotaOK.Load(), quota)
	}
	if s := r.status(t); s.Policy.Reloads != changes || s.Policy.Refused != 0 || s.Gateway.InFlight != 0 {
		t.Errorf("the status is %+v", s)
	}
	t.Logf("%d requests over %d changes, the slowest %v", sent.Load(), changes, time.Duration(slowest.Load()))
}

// TestReloadTrust: who is believed is what the policy in force says, for headers as for the PROXY protocol; and what would
// leave the gateway without sense is refused.
func TestReloadTrust(t *testing.T) {
	t.Parallel()
	const user = "dimensions: {user: {header: X-User-Id, trusted: true}}\nrules: []\n"
	r, file, hup := serveFile(t, "version: 1\nrules: []\n", ServeConfig{})
	defer r.end(t)
	for _, c := range []struct{ text, want string }{
		{"version: 1\nrules: []\n", `ok user="me"`},
		{"version: 1\nclients: {trusted_proxies: [10.0.0.0/8]}\n" + user, `ok user=""`},
		{"version: 1\nclients: {trusted_proxies: [127.0.0.0/8]}\n" + user, `ok user="me"`},
	} {
		overwrite(t, file, c.text)
		hup <- syscall.SIGHUP
		r.log.await(t, "trigger=hangup")
		if _, body := get(t, r.url, "X-User-Id", "me"); body != c.want {
			t.Errorf("with %s: got %s, want %s", c.text, body, c.want)
		}
	}
}

func TestReloadProxyProtocol(t *testing.T) {
	t.Parallel()
	trusting := func(who string) string {
		return "version: 1\nclients: {trusted_proxies: [" + who + "]}\nlists: {shut: {cidrs: [203.0.113.0/24]}}\ndeny: [shut]\nrules: []\n"
	}
	r, file, hup := serveFile(t, trusting("10.0.0.0/8"), ServeConfig{ProxyProtocol: true})
	defer r.end(t)
	const line = "PROXY TCP4 203.0.113.5 198.51.100.1 40000 80\r\n"
	if status, _ := say(t, r.url, line); status != http.StatusOK {
		t.Errorf("somebody's word is believed: %d", status)
	}
	overwrite(t, file, trusting("127.0.0.0/8"))
	hup <- syscall.SIGHUP
	r.log.await(t, "policy in force")
	if status, _ := say(t, r.url, line); status != http.StatusForbidden {
		t.Errorf("the trusted proxy's word is not believed: %d", status)
	}
	overwrite(t, file, "version: 1\nrules: []\n")
	hup <- syscall.SIGHUP
	if refused := r.log.await(t, "policy refused"); !strings.Contains(refused, "clients.trusted_proxies") {
		t.Errorf("it is refused with %s", refused)
	}
	if status, _ := say(t, r.url, line); status != http.StatusForbidden {
		t.Errorf("the old policy is not in force any more: %d", status)
	}
}

// TestReloadDone: a request ends with the policy that has judged it, and gives its place back there.
func TestReloadDone(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			entered <- struct{}{}
			<-leave
		}
	}))
	defer service.Close()
	hup := make(chan os.Signal)
	file := writePolicy(t, limited("concurrency 1 ttl=1h"))
	r := start(t, ServeConfig{Policy: file, Upstreams: []string{service.URL}, Reload: hup})
	defer r.end(t)
	slow := make(chan int)
	go func() {
		status, _ := get(t, r.url+"/slow")
		slow <- status
	}()
	<-entered
	overwrite(t, file, limited("concurrency 1 ttl=2h"))
	hup <- syscall.SIGHUP
	r.log.await(t, "policy in force")
	if status, _ := get(t, r.url); status != http.StatusTooManyRequests {
		t.Errorf("the slot that is held is given again: %d", status)
	}
	close(leave)
	if status := <-slow; status != http.StatusOK {
		t.Errorf("the request under way got %d", status)
	}
	for deadline := time.Now().Add(ample); ; {
		status, _ := get(t, r.url)
		if status == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the slot is not given back: %d", status)
		}
	}
}

// TestDocumentBounds: what a source brings is what a policy may have.
func TestDocumentBounds(t *testing.T) {
	t.Parallel()
	if source.MaxDocument != policy.MaxDocument {
		t.Errorf("a source brings up to %d bytes, a policy has up to %d", source.MaxDocument, policy.MaxDocument)
	}
}

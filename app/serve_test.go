package app

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
)

func TestServeGuards(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "user=%q", r.Header.Get("X-User-Id"))
	}))
	defer service.Close()
	r := start(t, ServeConfig{Policy: writePolicy(t, twoAnHour), Upstreams: []string{service.URL}, Admin: "127.0.0.1:0"})
	for i, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
		status, body := get(t, r.url, "X-User-Id", "admin")
		if status != want {
			t.Errorf("request %d: got %d, want %d", i, status, want)
		}
		if status == http.StatusOK && body != `user=""` {
			t.Errorf("a header that nobody may set reached the service: %s", body)
		}
	}
	if status, body := get(t, r.admin+"/readyz"); status != http.StatusOK || body != "{\"status\":\"ready\"}\n" {
		t.Errorf("readyz: %d %s", status, body)
	}
	r.stop()
	if err := <-r.done; err != nil {
		t.Error(err)
	}
}

// TestServeTLS: with a certificate the gateway speaks HTTPS, and HTTP/2 to whoever asks for it.
func TestServeTLS(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("X-Forwarded-Proto"))
	}))
	defer service.Close()
	issuer := httptest.NewTLSServer(http.NotFoundHandler()) // for its certificate and the client that believes it
	defer issuer.Close()
	pair := issuer.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cfg := ServeConfig{
		Policy: writePolicy(t, twoAnHour), Upstreams: []string{service.URL},
		TLSCert: filepath.Join(dir, "cert.pem"), TLSKey: filepath.Join(dir, "key.pem"),
	}
	for file, block := range map[string]*pem.Block{
		cfg.TLSCert: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, cfg.TLSKey: {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := start(t, cfg)
	client := issuer.Client()
	client.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	defer client.CloseIdleConnections()
	res, err := client.Get(r.url)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil || string(body) != "https" || res.ProtoMajor != 2 {
		t.Errorf("got %q over %s, %v", body, res.Proto, err)
	}
	client.CloseIdleConnections()
	r.stop()
	if err := <-r.done; err != nil {
		t.Error(err)
	}
}

// TestServeDrains: a request that is under way when the process is asked to stop gets its answer, and nobody else is let in;
// probes see it drain for as long as that takes.
func TestServeDrains(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-leave
		fmt.Fprint(w, "done")
	}))
	defer service.Close()
	r := start(t, ServeConfig{
		Policy: writePolicy(t, "version: 1\nrules: []\n"), Upstreams: []string{service.URL}, Admin: "127.0.0.1:0", AdminToken: "s3cret",
	})
	answered := make(chan string, 1)
	go func() {
		_, body := get(t, r.url)
		answered <- body
	}()
	<-entered
	r.stop()
	r.log.await(t, "stopping")
	for closed := false; !closed; {
		c, err := net.DialTimeout("tcp", strings.TrimPrefix(r.url, "http://"), time.Second)
		closed = err != nil
		if err == nil {
			_ = c.Close()
		}
	}
	if status, body := get(t, r.admin+"/readyz"); status != http.StatusServiceUnavailable || body != "{\"status\":\"draining\"}\n" {
		t.Errorf("while it drains, /readyz answers %d %s", status, body)
	}
	if status, _ := get(t, r.admin+"/healthz"); status != http.StatusOK {
		t.Errorf("while it drains, /healthz answers %d: it would be killed", status)
	}
	if s := r.status(t); s.Process.Ready || s.Gateway.InFlight != 1 {
		t.Errorf("while it drains, the status is %+v", s)
	}
	select {
	case err := <-r.done:
		t.Fatalf("it ended with a request under way: %v", err)
	default:
	}
	close(leave)
	if body := <-answered; body != "done" {
		t.Errorf("the request under way got %q", body)
	}
	if err := <-r.done; err != nil {
		t.Error(err)
	}
}

func TestServeRefuses(t *testing.T) {
	busy, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	good := writePolicy(t, twoAnHour)
	for name, c := range map[string]struct {
		cfg   ServeConfig
		says  string
		usage bool
	}{
		"busy":         {ServeConfig{Listen: busy.Addr().String()}, "listen: " + busy.Addr().String() + " is in use by another process", false},
		"no address":   {ServeConfig{Listen: "127.0.0.1"}, `listen: "127.0.0.1" is no address to listen on`, true},
		"not ours":     {ServeConfig{Listen: "192.0.2.1:0"}, "192.0.2.1:0 is no address of this machine", false},
		"busy admin":   {ServeConfig{Admin: busy.Addr().String()}, "admin: " + busy.Addr().String() + " is in use", false},
		"open admin":   {ServeConfig{Admin: "0.0.0.0:0"}, "admin: 0.0.0.0:0 can be reached from other machines, and there is no token", true},
		"open admin 2": {ServeConfig{Admin: ":0"}, "can be reached from other machines", true},
		"token nowhere": {ServeConfig{Admin: "127.0.0.1:0", AdminTokenFile: filepath.Join(t.TempDir(), "missing", "token")},
			"admin: the token cannot be written: ", true},
		"half TLS":        {ServeConfig{TLSCert: "cert.pem"}, "need each other", true},
		"missing TLS":     {ServeConfig{TLSCert: "cert.pem", TLSKey: "key.pem"}, "open cert.pem: no such file", true},
		"odd admin":       {ServeConfig{Admin: "nowhere"}, `admin: "nowhere" is no address to listen on`, true},
		"no policy":       {ServeConfig{Policy: "missing.yaml"}, "policy missing.yaml cannot be opened", true},
		"bad policy":      {ServeConfig{Policy: writePolicy(t, "version: 1\nrulse: []\n")}, "policy.yaml:2:1: ", false},
		"bad upstream":    {ServeConfig{Upstreams: []string{"ftp://x"}}, `upstream "ftp://x" has no scheme out of`, true},
		"secret upstream": {ServeConfig{Upstreams: []string{"http://me:hunter2@x"}}, "has more than scheme, host, port and path", true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.cfg.Policy == "" {
				c.cfg.Policy = good
			}
			if c.cfg.Upstreams == nil {
				c.cfg.Upstreams = []string{"http://127.0.0.1:9"}
			}
			if c.cfg.Listen == "" {
				c.cfg.Listen = "127.0.0.1:0"
			}
			ctx, cancel := context.WithTimeout(t.Context(), ample)
			defer cancel()
			err := Serve(ctx, c.cfg)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %v, want an error that says %q", err, c.says)
			}
			var usage *UsageError
			if errors.As(err, &usage) != c.usage {
				t.Errorf("%v: usage error %v, want %v", err, !c.usage, c.usage)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows a password: %v", err)
			}
		})
	}
}

// TestServeWithoutItsStore: a Redis that stops answering is replaced by limits in memory at once, and comes back by itself.
func TestServeWithoutItsStore(t *testing.T) {
	redis := testservers.Redis(t)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }))
	defer service.Close()
	url, err := ParseStoreURL("redis://" + redis.Addr())
	if err != nil {
		t.Fatal(err)
	}
	trusting := strings.Replace(twoAnHour, "10.0.0.0/8", "127.0.0.0/8", 1)
	r := start(t, ServeConfig{Policy: writePolicy(t, trusting), Upstreams: []string{service.URL}, Store: StoreConfig{URL: url}})
	step := func(what, address string, want int) {
		t.Helper()
		if status, body := get(t, r.url, "X-Forwarded-For", address); status != want {
			t.Errorf("%s: got %d %s, want %d", what, status, body, want)
		}
	}
	step("the first", "198.51.100.1", http.StatusOK)
	if err := redis.Pause(); err != nil {
		t.Fatal(err)
	}
	step("locally, the first", "198.51.100.1", http.StatusOK)
	r.log.await(t, "the store fails: on_error of each rule says what becomes of its requests")
	step("locally, the second", "198.51.100.1", http.StatusOK)
	step("locally, the third", "198.51.100.1", http.StatusTooManyRequests)
	if err := redis.Resume(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), ample)
	defer cancel()
	next := 1
	if err := testservers.Poll(ctx, func() error {
		next++
		before := ruleKeys(t, redis)
		step("after the return", fmt.Sprintf("198.51.100.%d", next), http.StatusOK)
		if after := ruleKeys(t, redis); after != before+1 {
			return fmt.Errorf("a new address took the keys from %d to %d", before, after)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	r.stop()
	if err := <-r.done; err != nil {
		t.Error(err)
	}
}

// ruleKeys counts the keys of rules in a store. Those of the fleet come and go with heartbeats, whose moment nobody knows.
func ruleKeys(t *testing.T, redis *testservers.RedisServer) (n int) {
	t.Helper()
	for _, key := range allKeys(t, redis) {
		if !strings.Contains(key, "}@") {
			n++
		}
	}
	return n
}

func allKeys(t *testing.T, redis *testservers.RedisServer) (keys []string) {
	t.Helper()
	reply, err := redis.Do("KEYS", "*")
	if err != nil {
		t.Fatal(err)
	}
	list, ok := reply.([]any)
	if !ok {
		t.Fatalf("KEYS answered %v", reply)
	}
	for _, key := range list {
		keys = append(keys, fmt.Sprint(key))
	}
	return keys
}

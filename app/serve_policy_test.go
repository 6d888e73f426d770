package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"github.com/headgate-io/headgate/internal/testservers"
)

// TestServeLooksUp: a dimension that lies in the Redis of the store is looked up there, also by a policy that comes later.
func TestServeLooksUp(t *testing.T) {
	t.Parallel()
	redis := testservers.Redis(t)
	if _, err := redis.Do("HSET", "user:u1", "tier", "vip"); err != nil {
		t.Fatal(err)
	}
	url, err := ParseStoreURL("redis://" + redis.Addr() + "?timeout=10s") // a machine that is busy for a moment fails no call
	if err != nil {
		t.Fatal(err)
	}
	const head = "version: 1\nclients: {trusted_proxies: [127.0.0.0/8]}\ndimensions:\n  user: {header: X-User-Id, trusted: true}\n"
	r, file, hup := serveFile(t, head+"rules: []\n", ServeConfig{Store: StoreConfig{URL: url}})
	defer r.end(t)
	overwrite(t, file, head+"  tier: {redis: {hash: 'user:{user}', field: tier}, cache: 10s, default: normal}\n"+
		"rules:\n  - {name: all, key: [user], limits: [fixed_window 1/36500d], overrides: {tier: {vip: [fixed_window 3/36500d]}}}\n")
	hup <- syscall.SIGHUP
	r.log.await(t, "policy in force")
	for user, want := range map[string]int{"u1": 3, "u2": 1} {
		passed := 0
		for range 5 {
			if status, _ := get(t, r.url, "X-User-Id", user); status == http.StatusOK {
				passed++
			}
		}
		if passed != want {
			t.Errorf("%d requests of %s passed, want %d", passed, user, want)
		}
	}
}

// TestServeMarks: a policy that marks needs a key, and the service reads what was signed with it.
func TestServeMarks(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "marked=%v", r.Header.Get("Headgate-Over") != "")
	}))
	defer service.Close()
	cfg := ServeConfig{
		Policy: writePolicy(t, "version: 1\nrules:\n  - {name: all, limits: [fixed_window 1/36500d], on_deny: {action: mark}}\n"), Upstreams: []string{service.URL},
		Listen: "127.0.0.1:0",
	}
	if err := Serve(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "set HEADGATE_MARK_KEY") {
		t.Errorf("without a key: %v", err)
	}
	cfg.MarkKey = []byte("0123456789abcdef")
	r := start(t, cfg)
	defer r.end(t)
	for _, want := range []string{"marked=false", "marked=true"} {
		if _, body := get(t, r.url, "Headgate-Over", "forged"); body != want {
			t.Errorf("got %s, want %s", body, want)
		}
	}
}

// TestServeWarns: what a policy says and this version does not do is in the log and in the status, once for each version.
func TestServeWarns(t *testing.T) {
	t.Parallel()
	warned := func(action string) string {
		return "version: 1\nrules:\n  - {name: all, limits: [fixed_window 1/36500d], on_deny: {action: " + action + "}}\n"
	}
	r, file, hup := serveFile(t, warned("challenge"), ServeConfig{})
	defer r.end(t)
	for _, action := range []string{"challenge", "queue"} {
		if line := r.log.await(t, "policy warning"); !strings.Contains(line, action) {
			t.Errorf("the warning is %s", line)
		}
		if w := r.status(t).Policy.Warnings; len(w) != 1 || !strings.Contains(w[0], action) || !strings.Contains(w[0], "policy.yaml:3:") {
			t.Errorf("the status warns of %q", w)
		}
		overwrite(t, file, warned("queue"))
		hup <- syscall.SIGHUP
	}
	r.log.await(t, "policy unchanged")
}

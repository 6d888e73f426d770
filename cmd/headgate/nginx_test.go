package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
)

const nginxService = `
  log_format line '$request_method $uri';
  server {
    listen 127.0.0.1:${PORT};
    access_log ${DIR}/access.log line;
    location / { return 200 "served\n"; }
  }`

// TestTwoGatesBeforeNginx: two instances guard a real nginx with limits that they share on a real Redis. curl sees each
// answer as the policy says, and under the load of wrk exactly what the limit admits reaches nginx.
func TestTwoGatesBeforeNginx(t *testing.T) {
	t.Parallel()
	service := testservers.Nginx(t, nginxService)
	// A machine busy with other tests must not make the gates fall back on limits of their own.
	store := "redis://" + testservers.Redis(t).Addr() + "?timeout=20s"
	var gates [2]*served
	for i := range gates {
		gates[i] = startServe(t, nil, "--policy", "whole.yaml", "--upstream", service.URL(), "--store", store)
	}

	for i, want := range []string{"200", "200", "200", "429", "429"} {
		got := tool(t, "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-X", "POST", gates[i%2].url+"/login")
		if got != want {
			t.Errorf("login %d: got %s, want %s", i+1, got, want)
		}
	}
	if got := tool(t, "curl", "-s", "-i", "-X", "POST", gates[0].url+"/login"); !regexp.MustCompile(
		`(?s)^HTTP/1\.1 429 .*\r\nRatelimit: "login";r=0;t=3[56]\d\d\r\n.*\r\nRetry-After: 3[56]\d\d\r\n.*\r\n\r\n\{.*"status":429`).MatchString(got) {
		t.Errorf("a denial reads\n%s", got)
	}

	var load sync.WaitGroup
	for i := range gates {
		load.Go(func() {
			asked, denied := 0, 0
			for end := time.Now().Add(5 * time.Minute); denied == 0 && asked <= 500 && time.Now().Before(end); { // a slow machine takes longer to come to the limit
				out := tool(t, "wrk", "-t", "1", "-c", "16", "-d", "2s", gates[i].url+"/items/7")
				asked += wrkCount(t, out, `(\d+) requests in`)
				if strings.Contains(out, "Non-2xx or 3xx responses:") {
					denied += wrkCount(t, out, `Non-2xx or 3xx responses: (\d+)`)
				}
			}
			if denied == 0 || asked-denied > 500 {
				t.Errorf("gate %d: %d requests, %d denied; the load was to be above the limit", i, asked, denied)
			}
		})
	}
	load.Wait()
	// nginx writes its log after the answer. More than the limit would stay wrong, and the time would run out.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := testservers.Poll(ctx, func() error {
		log, err := os.ReadFile(filepath.Join(service.Dir(), "access.log"))
		if err != nil {
			return err
		}
		if logins, items := strings.Count(string(log), "POST /login\n"), strings.Count(string(log), "GET /items/7\n"); logins != 3 || items != 500 {
			return fmt.Errorf("nginx served %d logins and %d items, want 3 and 500", logins, items)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// tool runs a program that install-test-deps.sh installs.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, testservers.Need(t, name), args...).Output()
	if err != nil {
		t.Errorf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

func wrkCount(t *testing.T, out, pattern string) int {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(out)
	if m == nil {
		t.Errorf("wrk printed no %q:\n%s", pattern, out)
		return 0
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Error(err)
	}
	return n
}

package app

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
)

// eventually asks until the answer is good, and fails with the last one that was not.
func eventually(t *testing.T, what string, good func() (ok bool, got any)) {
	t.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	late := time.After(ample)
	for {
		ok, got := good()
		if ok {
			return
		}
		select {
		case <-late:
			t.Fatalf("%s: it is still %+v", what, got)
		case <-look.C:
		}
	}
}

// TestStandingWithoutTheStore: two gates share a Redis; it is lost, each goes by its half, and says so; it comes back, and all is
// as before, by itself.
func TestStandingWithoutTheStore(t *testing.T) {
	t.Parallel()
	redis := testservers.Redis(t)
	url, err := ParseStoreURL("redis://" + redis.Addr() + "?timeout=10s") // a machine that is busy for a moment fails no call
	if err != nil {
		t.Fatal(err)
	}
	const text = `version: 1
rules:
  - {name: strict, match: {paths: [/strict]}, limits: [fixed_window 10/36500d]}
  - {name: leased, match: {paths: [/leased]}, limits: [token_bucket 1000/s burst=1000], store: leased}
  - {name: closed, match: {paths: [/closed]}, limits: [token_bucket 1000/s], on_error: closed}
`
	a, _, _ := serveFile(t, text, ServeConfig{Store: StoreConfig{URL: url}})
	b, _, _ := serveFile(t, text, ServeConfig{Store: StoreConfig{URL: url}})
	defer a.end(t)
	defer b.end(t)
	eventually(t, "two instances", func() (bool, any) {
		s, o := a.status(t), b.status(t)
		return s.Instances.Live == 2 && o.Instances.Live == 2, s.Instances
	})
	for range 50 {
		if code, body := get(t, a.url+"/leased"); code != http.StatusOK {
			t.Fatalf("leased: %d %s", code, body)
		}
	}
	if s := a.status(t); s.Level.Level != 0 || s.Breaker.State != "closed" || s.Leases.Keys != 1 || s.Leases.Granted < 50 || s.Leases.Calls >= 50 {
		t.Errorf("with the store the status is %+v, leases %+v", s, s.Leases)
	}

	redis.Kill()
	eventually(t, "level 1", func() (bool, any) {
		code, _ := get(t, a.url+"/closed")
		s := a.status(t)
		return code == http.StatusServiceUnavailable && s.Level.Level == 1 && s.Breaker.State == "open", s
	})
	if s := a.status(t); s.Instances.Live != 2 || s.Breaker.Why == "" || s.Level.Why == "" || !s.Store.Lost {
		t.Errorf("without the store the status is %+v", s)
	}
	passed := 0
	for range 20 {
		if code, _ := get(t, a.url+"/strict"); code == http.StatusOK {
			passed++
		}
	}
	if passed != 5 {
		t.Errorf("%d requests have passed; the half of the limit is 5", passed)
	}

	if err := redis.Restart(testservers.Empty); err != nil {
		t.Fatal(err)
	}
	eventually(t, "level 0", func() (bool, any) {
		s := a.status(t)
		return s.Level.Level == 0 && s.Breaker.State == "closed", s
	})
	if code, body := get(t, a.url+"/closed"); code != http.StatusOK {
		t.Errorf("got %d %s", code, body)
	}
	_, page := get(t, a.admin+"/metrics", "Authorization", "Bearer s3cret")
	for _, want := range []string{
		`headgate_decisions_total{rule="strict",verdict="allow"} 5`, `headgate_decisions_total{rule="strict",verdict="limited"} 15`,
		"headgate_instances 2", `headgate_level_switch{level="1"} 0`, "headgate_store_calls_total", "headgate_deny_cache_hits_total",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	if t.Failed() {
		t.Log(page)
	}
}

// TestLevelsReachTheFleet: a switch that is turned at one gate is turned at the other, where people see a page.
func TestLevelsReachTheFleet(t *testing.T) {
	t.Parallel()
	redis := testservers.Redis(t)
	url, err := ParseStoreURL("redis://" + redis.Addr() + "?timeout=10s") // a machine that is busy for a moment fails no call
	if err != nil {
		t.Fatal(err)
	}
	const text = `version: 1
clients: {trusted_proxies: [127.0.0.0/8]}
dimensions: {user: {header: X-User-Id, trusted: true}}
lists: {staff: {dimension: user, values: [s-1]}}
rules: []
degradation: {l3: {allow: [staff]}}
`
	a, _, _ := serveFile(t, text, ServeConfig{Store: StoreConfig{URL: url}})
	b, _, _ := serveFile(t, text, ServeConfig{Store: StoreConfig{URL: url}})
	defer a.end(t)
	defer b.end(t)
	turn := func(on bool) {
		body := fmt.Sprintf(`{"on": %v, "why": "the sale is over the top"}`, on)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, a.admin+"/levels/l3", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer s3cret")
		res, err := (&http.Client{Timeout: ample}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Fatalf("got %s", res.Status)
		}
	}
	turn(true)
	if code, _ := get(t, a.url); code != http.StatusServiceUnavailable {
		t.Errorf("here: got %d", code)
	}
	eventually(t, "the other gate", func() (bool, any) {
		code, body := get(t, b.url, "Accept", "text/html", "Accept-Language", "zh-CN")
		return code == http.StatusServiceUnavailable && strings.Contains(body, `<html lang="zh`), body
	})
	if code, body := get(t, b.url, "X-User-Id", "s-1"); code != http.StatusOK {
		t.Errorf("staff: got %d %s", code, body)
	}
	turn(false)
	eventually(t, "the other gate opens", func() (bool, any) {
		code, body := get(t, b.url)
		return code == http.StatusOK, body
	})
}

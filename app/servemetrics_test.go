package app

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
)

// scrape returns the series of /metrics that are Headgate's own.
func (r *running) scrape(t *testing.T) map[string]float64 {
	t.Helper()
	code, page := get(t, r.admin+"/metrics", "Authorization", "Bearer s3cret")
	if code != http.StatusOK {
		t.Fatalf("/metrics: %d %s", code, page)
	}
	series := make(map[string]float64)
	for line := range strings.Lines(page) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if i := strings.LastIndex(line, "} "); i >= 0 {
			name, value = line[:i+1], strings.TrimSpace(line[i+2:])
		}
		if !strings.HasPrefix(name, "headgate_") {
			continue
		}
		if _, twice := series[name]; twice {
			t.Errorf("%s is there twice", name)
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Errorf("%s has the value %q", name, value)
		}
		series[name] = v
	}
	return series
}

// send sends a request as it is and returns the status of the answer, 0 if there is none.
func (r *running) send(t *testing.T, method, path string, headers ...string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

const countedPolicy = `version: 1
clients: {trusted_proxies: [127.0.0.0/8]}
dimensions: {user: {header: X-User-Id, trusted: true}}
lists: {bad: {cidrs: [198.51.100.66/32]}, staff: {dimension: user, values: [s-1]}}
deny: [bad]
allow: [staff]
rules:
  - {name: buy, match: {paths: [/buy]}, key: [user], limits: [fixed_window 3/36500d]}
  - {name: login, match: {paths: [/login]}, key: [user], limits: [sliding_log 2/100d], lockout: {after: 1, for: 1h}}
  - {name: trial, match: {paths: [/buy]}, key: [user], mode: shadow, limits: [fixed_window 1/36500d]}
`

// TestMetricsCountTheScene: each request is counted once, for who decided it, while others scrape; what clients make up makes no
// series.
func TestMetricsCountTheScene(t *testing.T) {
	t.Parallel()
	redis := testservers.Redis(t)
	url, err := ParseStoreURL("redis://" + redis.Addr() + "?timeout=10s") // a machine that is busy for a moment fails no call
	if err != nil {
		t.Fatal(err)
	}
	r, _, _ := serveFile(t, countedPolicy, ServeConfig{Store: StoreConfig{URL: url}})
	defer r.end(t)
	before := r.scrape(t)
	var all sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					r.scrape(t)
				}
			}
		})
	}
	var crowd sync.WaitGroup
	for u := range 4 {
		user := fmt.Sprint("u-", u)
		crowd.Go(func() {
			for range 10 { // 3 pass, 7 do not; 2 pass, 1 is denied, 7 find the key shut
				r.send(t, "GET", "/buy", "X-User-Id", user)
				r.send(t, "GET", "/login", "X-User-Id", user)
			}
			for range 5 {
				r.send(t, "GET", "/", "X-User-Id", user)
				r.send(t, "GET", "/buy", "X-User-Id", "s-1")
				r.send(t, "GET", "/buy", "X-Forwarded-For", "198.51.100.66")
			}
		})
	}
	crowd.Wait()
	close(stop)
	all.Wait()
	after := r.scrape(t)
	want := map[string]float64{
		`headgate_decisions_total{rule="buy",verdict="allow"}`: 12, `headgate_decisions_total{rule="buy",verdict="limited"}`: 28,
		`headgate_decisions_total{rule="login",verdict="allow"}`:        8,
		`headgate_decisions_total{rule="list:bad",verdict="forbidden"}`: 20,
		`headgate_decisions_total{rule="list:staff",verdict="allow"}`:   20,
		`headgate_decisions_total{rule="(none)",verdict="allow"}`:       20,
		`headgate_requests_total{status="200",verdict="allow"}`:         60,
		`headgate_requests_total{status="403",verdict="forbidden"}`:     20,
		`headgate_decision_duration_seconds_count`:                      140,
		`headgate_request_duration_seconds_count`:                       140,
		`headgate_upstream_duration_seconds_count`:                      60,
		`headgate_shadow_denials_total{rule="trial"}`:                   12, // of a denial that is known already nothing is asked
		`headgate_store_new_keys_total{rule="buy"}`:                     4,
		`headgate_store_new_keys_total{rule="trial"}`:                   4,
		`headgate_instances`:                                                  1,
		`headgate_level`:                                                      0,
		`headgate_requests_in_flight`:                                         0,
		`headgate_deny_cache_keys`:                                            8,
		`headgate_decision_duration_seconds_bucket{le="+Inf"}`:                140,
		`headgate_request_duration_seconds_bucket{le="30"}`:                   140,
		`headgate_limit_units{algorithm="fixed_window",limit="0",rule="buy"}`: 3,
	}
	for name, v := range want {
		if after[name] != v {
			t.Errorf("%s is %v, want %v", name, after[name], v)
		}
	}
	for name, v := range after {
		if strings.HasPrefix(name, "headgate_upstream_requests_total") && v != 60 || strings.HasPrefix(name, "headgate_upstream_failures_total") && v != 0 {
			t.Errorf("%s is %v", name, v)
		}
	}
	if _, ok := after[`headgate_memory_keys{store="local"}`]; !ok {
		t.Error("nothing is said of the memory for local limits")
	}
	locked, limited := after[`headgate_decisions_total{rule="login",verdict="locked_out"}`], after[`headgate_decisions_total{rule="login",verdict="limited"}`]
	if locked+limited != 32 || after[`headgate_requests_total{status="429",verdict="limited"}`]+after[`headgate_requests_total{status="429",verdict="locked_out"}`] != 60 {
		t.Errorf("login: %v are locked out, %v limited", locked, limited)
	}
	takes := after[`headgate_store_call_takes_sum`]
	if hits, misses := after["headgate_deny_cache_hits_total"], after["headgate_deny_cache_misses_total"]; hits+misses != 80 || misses != takes {
		t.Errorf("the deny cache has %v hits and %v misses of 80, the store %v takes", hits, misses, takes)
	}
	if before[`headgate_decisions_total{rule="buy",verdict="allow"}`] != 0 || len(before) >= len(after) {
		t.Errorf("before anything has happened: %v", before)
	}

	for i := range 300 { // an attack with all that a client can choose
		junk := fmt.Sprintf("junk%d", i)
		r.send(t, "X"+strings.ToUpper(junk), "/"+junk+"?q="+junk, "X-User-Id", junk, "Host", junk+".example.com", "User-Agent", junk, "Cookie", "did="+junk,
			"Upgrade", junk, "X-Forwarded-For", fmt.Sprintf("198.51.100.%d", i%60))
	}
	r.send(t, "GET", "/login", "X-User-Id", `"}\n`)
	attacked := r.scrape(t)
	for name := range attacked {
		if _, known := after[name]; !known && !strings.Contains(name, `verdict="`) {
			t.Errorf("an attack has made the series %s", name)
		}
	}
	if len(attacked) > len(after)+3 || regexp.MustCompile(`(?i)junk`).MatchString(fmt.Sprint(attacked)) {
		t.Errorf("%d series after an attack, %d before: %v", len(attacked), len(after), attacked)
	}
}

// TestMetricsOfAloneProcess: where there is no remote store there is nothing to say of one.
func TestMetricsOfAloneProcess(t *testing.T) {
	t.Parallel()
	r, _, _ := serveFile(t, countedPolicy, ServeConfig{})
	defer r.end(t)
	r.send(t, "GET", "/buy")
	series := r.scrape(t)
	for name := range series {
		for _, part := range []string{"headgate_store", "breaker", "instances", "fleet", "lease", "deny_cache"} {
			if strings.Contains(name, part) {
				t.Errorf("there is %s", name)
			}
		}
	}
	if series[`headgate_decisions_total{rule="buy",verdict="allow"}`] != 1 || series[`headgate_memory_keys{store="store"}`] < 0 {
		t.Errorf("got %v", series)
	}
}

// TestWaitingIsShown: a request that waits for its turn is neither at the service nor forgotten.
func TestWaitingIsShown(t *testing.T) {
	t.Parallel()
	r, _, _ := serveFile(t, "version: 1\nrules: [{name: slow, limits: [token_bucket 2/1m burst=1], on_deny: {action: wait, max_wait: 1m}}]\n", ServeConfig{})
	defer r.end(t)
	r.send(t, "GET", "/")
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	gone := make(chan error)
	go func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
		if err == nil {
			_, err = http.DefaultTransport.RoundTrip(req)
		}
		gone <- err
	}()
	held := func(want int) {
		t.Helper()
		eventually(t, "those who wait", func() (bool, any) {
			s, series := r.status(t).Gateway, r.scrape(t)
			return s.Held == want && s.InFlight == 0 && series["headgate_requests_waiting"] == float64(want) && series["headgate_requests_in_flight"] == 0, s
		})
	}
	held(1)
	hangUp()
	if err := <-gone; err == nil {
		t.Error("it got an answer")
	}
	held(0)
}

// TestAdminUnderSlowClients: a client that sends its order one byte at a time is cut off, and nobody else waits.
func TestAdminUnderSlowClients(t *testing.T) {
	t.Parallel()
	r, _, _ := serveFile(t, countedPolicy, ServeConfig{})
	defer r.end(t)
	var conns []net.Conn
	for i := range 30 {
		c, err := net.Dial("tcp", strings.TrimPrefix(r.admin, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		token := "s3cret"
		if i%2 == 0 {
			token = "wrong"
		}
		fmt.Fprintf(c, "PUT /levels/l3 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: 1000\r\n\r\n{", token)
		conns = append(conns, c)
	}
	for range 10 {
		if s := r.status(t); s.Level.Level != 0 {
			t.Errorf("got %+v", s.Level)
		}
		r.scrape(t)
	}
	for i, c := range conns {
		if err := c.SetReadDeadline(time.Now().Add(ample)); err != nil {
			t.Fatal(err)
		}
		head, err := io.ReadAll(io.LimitReader(c, 12))
		want := "HTTP/1.1 408"
		if i%2 == 0 {
			want = "HTTP/1.1 401"
		}
		if got := string(head); err != nil || got != want {
			t.Errorf("%d: got %q, %v", i, got, err)
		}
	}
	big := strings.NewReader(`{"on":true,"why":"` + strings.Repeat("x", 50<<20) + `"}`)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, r.admin+"/levels/l3", big)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer s3cret")
	res, err := http.DefaultTransport.RoundTrip(req)
	if err == nil {
		_ = res.Body.Close()
	}
	if err == nil && res.StatusCode != http.StatusRequestEntityTooLarge || r.status(t).Level.Level != 0 {
		t.Errorf("50 MB: got %v, %v", res, err)
	}
}

package app

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
)

// TestServeWithoutItsFleet: a gate that starts while its Redis is away takes itself for one of as many as it was told, and goes by
// what the store says once it can.
func TestServeWithoutItsFleet(t *testing.T) {
	t.Parallel()
	redis := testservers.Redis(t)
	redis.Kill()
	url, err := ParseStoreURL("redis://" + redis.Addr() + "?timeout=10s") // a machine that is busy for a moment fails no call
	if err != nil {
		t.Fatal(err)
	}
	const text = `version: 1
rules:
  - {name: half, match: {paths: [/half]}, limits: [fixed_window 10/36500d]}
  - {name: least, match: {paths: [/least]}, limits: [fixed_window 2/36500d]}
  - {name: none, match: {paths: [/none]}, limits: [fixed_window 0/36500d]}
  - {name: own, match: {paths: [/own]}, store: local, limits: [fixed_window 10/36500d]}
  - {name: lease, match: {paths: [/lease]}, store: leased, limits: [fixed_window 10/36500d]}
`
	r, _, _ := serveFile(t, text, ServeConfig{Store: StoreConfig{URL: url}, Instances: 3})
	defer r.end(t)
	count := func(path string) (passed int) {
		for range 12 {
			switch code := r.send(t, "GET", path); code {
			case http.StatusOK:
				passed++
			case http.StatusTooManyRequests:
			default:
				t.Fatalf("%s: got %d", path, code)
			}
		}
		return passed
	}
	if s := r.status(t); s.Store.Reached || !s.Store.Lost || s.Instances.Live != 3 || s.Breaker.Why != "the store has not been reached yet" {
		t.Errorf("the status is %+v", s)
	}
	eventually(t, "level 1", func() (bool, any) {
		s := r.status(t).Level
		return s.Level == 1 && s.Why == "the store has not been reached yet", s
	})
	if series := r.scrape(t); series["headgate_level"] != 1 || series["headgate_instances"] != 3 || series[`headgate_level_switch{level="1"}`] != 1 {
		t.Errorf("got %v", series)
	}
	for path, want := range map[string]int{"/half": 3, "/least": 1, "/none": 0, "/own": 10, "/lease": 3} {
		if n := count(path); n != want {
			t.Errorf("%s: %d have passed, want %d", path, n, want)
		}
	}
	if err := redis.Restart(testservers.Empty); err != nil {
		t.Fatal(err)
	}
	r.log.await(t, "the store is reached")
	eventually(t, "level 0", func() (bool, any) {
		s := r.status(t)
		return s.Level.Level == 0 && s.Instances.Live == 1 && !s.Store.Lost, s
	})
	for path, want := range map[string]int{"/half": 10, "/least": 2, "/none": 0, "/own": 0} {
		if n := count(path); n != want {
			t.Errorf("with the store, %s: %d have passed, want %d", path, n, want)
		}
	}
}

// TestStopWithoutTheStore: a gate ends in time and without an error, whatever has become of its Redis, and gives back what it can.
func TestStopWithoutTheStore(t *testing.T) {
	t.Parallel()
	const text = `version: 1
rules:
  - {name: lease, match: {paths: [/lease]}, store: leased, limits: [token_bucket 100/100d burst=5000]}
  - {name: slots, match: {paths: [/slots]}, limits: [concurrency 100 ttl=100d]}
`
	for _, c := range []struct {
		name   string
		become func(*testservers.RedisServer) error
	}{
		{"there", func(*testservers.RedisServer) error { return nil }},
		{"killed", func(s *testservers.RedisServer) error { s.Kill(); return nil }},
		{"stopped", func(s *testservers.RedisServer) error { return s.Pause() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			redis := testservers.Redis(t)
			url, err := ParseStoreURL("redis://" + redis.Addr())
			if err != nil {
				t.Fatal(err)
			}
			r, _, _ := serveFile(t, text, ServeConfig{Store: StoreConfig{URL: url}})
			var crowd sync.WaitGroup
			for range 8 {
				crowd.Go(func() {
					for range 50 {
						r.send(t, "GET", "/lease")
						r.send(t, "GET", "/slots")
					}
				})
			}
			crowd.Wait()
			if granted := r.status(t).Leases.Granted; granted < 100 {
				t.Fatalf("%d units were granted for 400 requests", granted)
			}
			if err := c.become(redis); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				r.send(t, "GET", "/lease")
			}
			began := time.Now()
			r.stop()
			select {
			case err := <-r.done:
				if err != nil {
					t.Errorf("it ended with %v", err)
				}
			case <-time.After(ample):
				t.Fatal("it does not end")
			}
			if took := time.Since(began); took > ample/3 {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestSecretsStaySecret: nothing that a gate says of itself, in its best and worst hours, has a word in it that somebody must not know.
func TestSecretsStaySecret(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	redis := testservers.Redis(t, testservers.ACL("gate", secret+"-store"))
	url, err := ParseStoreURL("redis://gate:" + secret + "-store@" + redis.Addr())
	if err != nil {
		t.Fatal(err)
	}
	text := `version: 1
clients: {trusted_proxies: [127.0.0.0/8]}
dimensions:
  user: {header: X-User-Id, trusted: true}
  tier: {http: {url: 'http://127.0.0.1:1/users/{user}?key=` + secret + `-key'}, timeout: 1s, default: none}
  plan: {redis: {hash: 'user:{user}', field: plan}, timeout: 1s, default: none}
rules:
  - {name: tiers, key: [tier, plan, user], limits: [fixed_window 1/36500d], on_deny: {action: mark}}
`
	r, file, hup := serveFile(t, text, ServeConfig{
		Store: StoreConfig{URL: url, Secret: secret + "-shard"}, MarkKey: []byte(secret + "-mark-key-of-16-bytes"),
	})
	var said strings.Builder
	said.WriteString(r.first)
	var listens sync.WaitGroup
	listens.Go(func() {
		for line := range r.log.lines {
			said.WriteString(line + "\n")
		}
	})
	var shown strings.Builder
	look := func() {
		for _, path := range []string{"/status", "/metrics", "/levels", "/healthz", "/nothing"} {
			_, body := get(t, r.admin+path, "Authorization", "Bearer s3cret")
			shown.WriteString(body)
		}
		_, body := get(t, r.url+"/?token="+secret, "X-User-Id", secret+"-user", "Authorization", "Bearer "+secret, "Cookie", "session="+secret)
		shown.WriteString(strings.ReplaceAll(body, `user="hunter2-user"`, "")) // what the service itself says
	}
	look()
	look()
	last := ""
	for _, wrong := range []string{"gopher://gate:%s@127.0.0.1:1", "http://gate:%s@127.0.0.1:1", "http://gate:%s@127.0.0.1:1/{user", "http://gate:%s@127.0.0.1:1/{user}{ip}", "http://%s{nobody}"} {
		overwrite(t, file, strings.Replace(text, "http://127.0.0.1:1", fmt.Sprintf(wrong, secret), 1))
		hup <- syscall.SIGHUP
		eventually(t, "a policy is refused", func() (bool, any) {
			s := r.status(t).Policy.LastRefused
			return s != nil && s.Version != last, s
		})
		last = r.status(t).Policy.LastRefused.Version
		look()
	}
	redis.Kill()
	eventually(t, "level 1", func() (bool, any) { look(); s := r.status(t).Level; return s.Level == 1, s })
	look()
	r.end(t)
	listens.Wait()
	for what, text := range map[string]string{"the log": said.String(), "the admin listener or an answer": shown.String()} {
		for line := range strings.Lines(text) {
			if strings.Contains(line, secret) || strings.Contains(line, "s3cret") {
				t.Errorf("%s says: %s", what, line)
			}
		}
	}
	if !strings.Contains(said.String(), "look-ups fail") || !strings.Contains(said.String(), "level on") || !strings.Contains(said.String(), "policy refused") {
		t.Errorf("the log has too little:\n%s", said.String())
	}
}

// TestServeHearsOfTheFleetFirst: a gate that starts while the fleet is restricted lets nobody pass, not even its first request, also
// if its way to the store is long.
func TestServeHearsOfTheFleetFirst(t *testing.T) {
	t.Parallel()
	redis := testservers.Redis(t)
	proxy := testservers.NewProxy(t, redis.Addr())
	if err := proxy.Set(testservers.Fault{Down: testservers.Delay{Min: 60 * time.Millisecond}}); err != nil {
		t.Fatal(err)
	}
	var urls [2]StoreURL
	for i, address := range []string{redis.Addr(), proxy.Addr()} {
		url, err := ParseStoreURL("redis://" + address + "?timeout=10s&connect_timeout=10s")
		if err != nil {
			t.Fatal(err)
		}
		urls[i] = url
	}
	first, _, _ := serveFile(t, "version: 1\nrules: []\n", ServeConfig{Store: StoreConfig{URL: urls[0]}})
	defer first.end(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, first.admin+"/levels/l3", strings.NewReader(`{"on": true, "why": "a test"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer s3cret")
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	for range 3 {
		late, _, _ := serveFile(t, "version: 1\nrules: []\n", ServeConfig{Store: StoreConfig{URL: urls[1]}})
		if code, body := get(t, late.url); code != http.StatusServiceUnavailable || !strings.Contains(body, "restricted") {
			t.Errorf("the first request got %d %s", code, body)
		}
		late.end(t)
	}
}

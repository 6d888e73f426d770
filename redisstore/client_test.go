package redisstore_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/headgate-io/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// goRedis lends a client of github.com/redis/go-redis to a store. Its retries must be off: MaxRetries -1.
type goRedis struct{ c redis.UniversalClient }

func (g goRedis) EvalSHA(ctx context.Context, sha string, keys []string, arg string) (string, error) {
	return g.c.EvalSha(ctx, sha, keys, arg).Text()
}

func (g goRedis) Eval(ctx context.Context, script string, keys []string, arg string) (string, error) {
	return g.c.Eval(ctx, script, keys, arg).Text()
}

func TestOwnClient(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: shared.Get(t).Addr(), MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	s := open(t, redisstore.Config{Client: goRedis{client}})
	limit := headgate.MustParseLimit("token_bucket 1/h burst=2")
	for i, want := range []bool{true, true, false} {
		if ok, err := headgate.Allow(t.Context(), s, limit, "k"); err != nil || ok != want {
			t.Errorf("take %d: %v, %v", i, ok, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Errorf("closing the store closed the user's client: %v", err)
	}
	_ = client.Close()
	s = open(t, redisstore.Config{Client: goRedis{client}})
	if _, err := headgate.Allow(t.Context(), s, limit, "k"); headgate.CodeOf(err) == "" {
		t.Error("a closed client gave a verdict")
	}
}

// TestConnect: the client of a Config does what else is to be done in the same Redis, and fails as a store does.
func TestConnect(t *testing.T) {
	t.Parallel()
	srv := testservers.Redis(t, testservers.ACL("gate", "hunter2"))
	cfg := redisstore.Config{Addrs: []string{srv.Addr()}, Username: "gate", Password: "hunter2", DB: 3, Timeout: time.Minute, ConnectTimeout: time.Minute}
	client, err := redisstore.Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if err := client.Do(t.Context(), client.B().Set().Key("k").Value("v").Build()).Error(); err != nil {
		t.Fatal(err)
	}
	if fields, err := srv.Info("keyspace"); err != nil || !strings.HasPrefix(fields["db3"], "keys=1,") {
		t.Errorf("the key is not in database 3: %v, %v", fields, err)
	}
	wrong, own, odd := cfg, cfg, cfg
	wrong.Password = "hunter3"
	own.Client = goRedis{}
	odd.Namespace = "{"
	if _, err := redisstore.Connect(t.Context(), wrong); headgate.CodeOf(err) != headgate.CodeUnavailable || !errors.Is(err, redisstore.ErrRefused) || strings.Contains(err.Error(), "hunter3") {
		t.Errorf("a wrong password: %v", err)
	}
	for _, bad := range []redisstore.Config{own, odd} {
		if _, err := redisstore.Connect(t.Context(), bad); !errors.Is(err, redisstore.ErrConfig) {
			t.Errorf("a bad Config: %v", err)
		}
	}
}

// TestRefused: what will not change by itself is told from what may.
func TestRefused(t *testing.T) {
	t.Parallel()
	plain, full := shared.Get(t), testservers.Redis(t, testservers.Directives("maxclients 2"))
	secret := testservers.Redis(t, testservers.TLS())
	mutual := testservers.Redis(t, testservers.MutualTLS())
	strange := &tls.Config{MinVersion: tls.VersionTLS12}
	nameless := mutual.TLSConfig()
	nameless.Certificates, nameless.MaxVersion = nil, tls.VersionTLS12 // later versions refuse when the handshake is over
	for name, c := range map[string]struct {
		cfg     redisstore.Config
		refused bool
		says    string
	}{
		"no such database": {redisstore.Config{Addrs: []string{plain.Addr()}, DB: 99}, true, "Redis refuses the connection: "},
		"no sentinel":      {redisstore.Config{Addrs: []string{plain.Addr()}, Master: "main"}, true, "Redis refuses the connection: "},
		"no TLS":           {redisstore.Config{Addrs: []string{withoutTLS(t)}, TLS: strange}, true, "does not speak TLS at this port"},
		"unknown issuer":   {redisstore.Config{Addrs: []string{secret.Addr()}, TLS: strange}, true, "the certificate of Redis is not believed"},
		"no certificate":   {redisstore.Config{Addrs: []string{mutual.Addr()}, TLS: nameless}, true, "Redis refuses the TLS handshake"},
		"full house":       {redisstore.Config{Addrs: []string{full.Addr()}}, false, "max number of clients"},
		"nobody":           {redisstore.Config{Addrs: []string{"127.0.0.1:1"}}, false, "cannot connect"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "full house" {
				for range 2 {
					conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", full.Addr())
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = conn.Close() })
				}
			}
			c.cfg.Timeout, c.cfg.ConnectTimeout = time.Minute, time.Minute
			client, err := redisstore.Connect(t.Context(), c.cfg)
			if err == nil {
				client.Close()
				t.Fatal("it connects")
			}
			if errors.Is(err, redisstore.ErrRefused) != c.refused || headgate.CodeOf(err) != headgate.CodeUnavailable || !strings.Contains(err.Error(), c.says) {
				t.Errorf("refused is %v, want %v that says %q: %v", !c.refused, c.refused, c.says, err)
			}
		})
	}
}

// withoutTLS is the address of what answers a TLS handshake as a Redis does that finds the end of a line in it.
func withoutTLS(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 64<<10))
			_, _ = conn.Write([]byte("-ERR unknown command\r\n"))
			_ = conn.Close()
		}
	}()
	return l.Addr().String()
}

// acl is the rule of docs/redis.md.
var acl = []string{"~headgate{*", "resetchannels", "-@all", "+evalsha", "+eval", "+hello", "+ping", "+time", "+mget", "+get", "+set", "+setrange", "+del",
	"+zadd", "+zrem", "+zcount", "+zscore", "+zrangebyscore", "+zrevrangebyscore", "+zremrangebyscore", "+pexpire"}

// TestACL: a user with the rule of the documentation can do everything that the store does, and no more is needed.
func TestACL(t *testing.T) {
	t.Parallel()
	srv := testservers.Redis(t)
	do(t, srv, slices.Concat([]any{"ACL", "SETUSER", "gate", "on", ">pass"}, toAny(acl))...)
	s := open(t, redisstore.Config{Addrs: []string{srv.Addr()}, Username: "gate", Password: "pass", Namespace: "headgate"})
	everything(t, s)
	do(t, srv, "ACL", "SETUSER", "gate", "-setrange", "-set")
	_, err := headgate.Take(t.Context(), s, headgate.One("s", "new", headgate.MustParseLimit("fixed_window 1/1h")))
	if headgate.CodeOf(err) != headgate.CodeUnavailable || !strings.Contains(err.Error(), "docs/redis.md") {
		t.Errorf("without a right: %v", err)
	}
	for _, cfg := range []redisstore.Config{{Username: "gate", Password: "hunter2"}, {Username: "nobody", Password: "hunter2"}} {
		cfg.Addrs, cfg.ConnectTimeout = []string{srv.Addr()}, time.Minute
		_, err := redisstore.New(t.Context(), cfg)
		if headgate.CodeOf(err) != headgate.CodeUnavailable || !strings.Contains(err.Error(), "password is wrong") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("wrong password: %v", err)
		}
	}
}

func toAny(list []string) []any {
	r := make([]any, len(list))
	for i, s := range list {
		r[i] = s
	}
	return r
}

// everything uses every ability of a store.
func everything(t *testing.T, s *redisstore.Store) {
	t.Helper()
	var charges []headgate.Charge
	for i, text := range []string{"token_bucket 7/m burst=3", "fixed_window 9/day zone=Asia/Shanghai", "sliding_log 5/1h", "sliding_window 9/1h cells=3", "leaky_bucket 1/m capacity=5", "concurrency 3 ttl=1h"} {
		c := headgate.One("e"+strconv.Itoa(i), "k", headgate.MustParseLimit(text))
		c.Holder, c.Lockout = "h", &headgate.Lockout{After: 1, For: time.Hour}
		charges = append(charges, c)
	}
	d := must(t, s, charges...)
	if !d.Allowed {
		t.Fatalf("denied: %+v", d)
	}
	if err := s.Refund(t.Context(), charges, &d); err != nil || d.Outcomes[0].Receipt.Charged != 0 {
		t.Errorf("refund: %v, %+v", err, d)
	}
	slot := charges[5]
	if err := s.Release(t.Context(), &slot); err != nil {
		t.Error(err)
	}
	if alive, err := s.Renew(t.Context(), &slot); alive || err != nil {
		t.Error(alive, err)
	}
	if d := must(t, s, slot); d.Allowed || d.Outcomes[0].Reason != headgate.ReasonLockedOut {
		t.Errorf("after its release: %+v", d)
	}
	in, err := s.Inspect(t.Context(), slot.Slot, slot.Key)
	if err != nil || !in.Found || in.LockedUntil.IsZero() {
		t.Errorf("inspect: %+v, %v", in, err)
	}
	if err := s.Reset(t.Context(), slot.Slot, slot.Key); err != nil {
		t.Error(err)
	}
	if d := must(t, s, slot); !d.Allowed {
		t.Errorf("after a reset: %+v", d)
	}
	if err := s.Note(t.Context(), "everything", "v", time.Minute); err != nil {
		t.Error(err)
	}
	if live, notes, err := s.Beat(t.Context(), "everything", time.Minute); live != 1 || notes["everything"] != "v" || err != nil {
		t.Errorf("beat: %d live, notes %q, %v", live, notes, err)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	srv := testservers.Redis(t, testservers.TLS(), testservers.ACL("gate", "secret"))
	s := open(t, redisstore.Config{Addrs: []string{srv.Addr()}, Username: "gate", Password: "secret", TLS: srv.TLSConfig()})
	everything(t, s)
	_, err := redisstore.New(t.Context(), redisstore.Config{Addrs: []string{srv.Addr()}, Username: "gate", Password: "secret", TLS: &tls.Config{MinVersion: tls.VersionTLS12}})
	if headgate.CodeOf(err) != headgate.CodeUnavailable {
		t.Errorf("an unknown authority was believed: %v", err)
	}
}

// TestSilentAtTheGreeting: a server that takes connections and says nothing holds nobody up for long, with or without a password to greet it with.
func TestSilentAtTheGreeting(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	for name, cfg := range map[string]redisstore.Config{"alone": {}, "with a password": {Password: "hunter2"}, "cluster": {Cluster: true}} {
		cfg.Addrs, cfg.Timeout, cfg.ConnectTimeout = []string{l.Addr().String()}, hasty, 2*hasty
		start := time.Now()
		_, err := redisstore.New(t.Context(), cfg)
		if headgate.CodeOf(err) != headgate.CodeUnavailable || strings.Contains(fmt.Sprintf("%+v", err), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(start); took > tooSlow {
			t.Errorf("%s: it took %s", name, took)
		}
	}
}

func TestNobodyThere(t *testing.T) {
	t.Parallel()
	start := time.Now()
	_, err := redisstore.Open(t.Context(), "redis://:hunter2@127.0.0.1:1")
	if headgate.CodeOf(err) != headgate.CodeUnavailable || strings.Contains(fmt.Sprintf("%+v", err), "hunter2") {
		t.Errorf("%v", err)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}

// TestForeignData: what others left under our keys is as if never seen, and counted; a take that cannot be decided for it
// fails alone.
func TestForeignData(t *testing.T) {
	t.Parallel()
	srv := shared.Get(t)
	seen := &watcher{}
	s := open(t, redisstore.Config{Observer: seen})
	limit := headgate.MustParseLimit("fixed_window 3/36500d")
	for i, junk := range []string{"", "x", "\x01", "\x03short", strings.Repeat("\xff", 10_000), "\x05" + strings.Repeat("\x00", 15) + "\xff"} {
		key := "k" + strconv.Itoa(i)
		do(t, srv, "SET", redisstore.KeyOf(s, "s", key), junk)
		if d := must(t, s, headgate.One("s", key, limit)); !d.Allowed || d.Outcomes[0].Remaining != 2 {
			t.Errorf("over %.10q: %+v", junk, d)
		}
		if d := must(t, s, headgate.One("s", key, limit)); d.Outcomes[0].Remaining != 1 {
			t.Errorf("over %.10q, then: %+v", junk, d)
		}
	}
	if seen.unknown() != 6 {
		t.Errorf("%d unknown states were counted, want 6", seen.unknown())
	}
	do(t, srv, "LPUSH", redisstore.KeyOf(s, "s", "list"), "x")
	if d := must(t, s, headgate.One("s", "list", limit)); d.Outcomes[0].Remaining != 2 {
		t.Errorf("over a list: %+v", d)
	}
	slots := headgate.One("c", "k", headgate.MustParseLimit("concurrency 3 ttl=1h"))
	slots.Holder = "a"
	must(t, s, slots)
	sets := strings.Replace(redisstore.KeyOf(s, "c", "k"), "}=", "}+", 1)
	do(t, srv, "SET", sets, "x")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			c := headgate.One("s", "beside"+strconv.Itoa(i), limit)
			if i == 7 {
				c = slots
			}
			_, err := headgate.Take(context.Background(), s, c)
			if (headgate.CodeOf(err) == headgate.CodeUnavailable) != (i == 7) {
				t.Errorf("take %d: %v", i, err)
			}
		})
	}
	wg.Wait()
}

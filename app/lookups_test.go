package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/redis/rueidis"

	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/policy"
)

const tiered = `version: 1
clients: {trusted_proxies: [192.0.2.1]}
dimensions:
  user: {header: X-User-Id, trusted: true}
  %s
rules:
  - name: tiered
    key: [user]
    limits: [fixed_window 1/1h]
    overrides: {tier: {vip: [fixed_window 3/1h], gold: [fixed_window 2/1h]}}
`

// Tiers are kept for the shortest time that there is, so that a test need not wait long for the next look-up.
const inRedis = `tier: {redis: {hash: 'user:{user}', field: tier}, timeout: 5s, cache: 1s, default: gold}`

func guardOf(t *testing.T, storeURL, text string, log *slog.Logger) (*Guard, error) {
	t.Helper()
	p, err := policy.Parse("policy", []byte(text), policy.ParseConfig{})
	if err != nil {
		t.Fatal(err)
	}
	url, err := ParseStoreURL(storeURL)
	if err != nil {
		t.Fatal(err)
	}
	store, err := OpenStore(t.Context(), StoreConfig{URL: url, MayBeAway: true, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	g, err := NewGuard(p, GuardConfig{Store: store, Log: log})
	if err == nil {
		t.Cleanup(func() { _ = g.Close() })
	}
	return g, err
}

// limitOf returns the limit that a user is judged by.
func limitOf(g *Guard, user string) string {
	v := g.Decide(context.Background(), &httpverdict.Request{
		Method: "GET", Path: "/", Peer: netip.MustParseAddr("192.0.2.1"), Header: http.Header{"X-User-Id": {user}},
	})
	if len(v.Limits) != 1 {
		return fmt.Sprintf("%d limits, code %q", len(v.Limits), v.Code)
	}
	return v.Limits[0].Limit.String()
}

func TestLookupsInRedis(t *testing.T) {
	t.Parallel()
	redis := testservers.Redis(t)
	for user, tier := range map[string]string{"u-1": "vip", "u-2": "plain"} {
		if _, err := redis.Do("HSET", "user:"+user, "tier", tier); err != nil {
			t.Fatal(err)
		}
	}
	log := newLogLines(t)
	g, err := guardOf(t, redis.URL(), fmt.Sprintf(tiered, inRedis), log.logger())
	if err != nil {
		t.Fatal(err)
	}
	for user, want := range map[string]string{"u-1": "fixed_window 3/1h", "u-2": "fixed_window 1/1h", "u-3": "fixed_window 2/1h"} {
		if got := limitOf(g, user); got != want {
			t.Errorf("%s: %s, want %s", user, got, want)
		}
	}
	redis.Kill()
	if got := limitOf(g, "u-9"); got != "fixed_window 2/1h" {
		t.Errorf("without Redis: %s, want that of the default", got)
	}
	if line := log.await(t, "look-ups fail"); !strings.Contains(line, "source=redis") || strings.Contains(line, "u-9") {
		t.Errorf("the log says %s", line)
	}
	if err := redis.Restart(testservers.Empty); err != nil {
		t.Fatal(err)
	}
	awaitLookups(t, g, redis)
}

// awaitLookups waits until what is in Redis is found. Each try is of another user, of whom nothing is remembered.
func awaitLookups(t *testing.T, g *Guard, redis *testservers.RedisServer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ample)
	defer cancel()
	i := 0
	err := testservers.Poll(ctx, func() error {
		i++
		user := "new-" + strconv.Itoa(i)
		if _, err := redis.Do("HSET", "user:"+user, "tier", "vip"); err != nil {
			return err
		}
		if got := limitOf(g, user); got != "fixed_window 3/1h" {
			return fmt.Errorf("%s: %s", user, got)
		}
		return nil
	})
	if err != nil {
		t.Errorf("Redis is not found: %v", err)
	}
}

// TestLookupsBeforeRedis: the policy is in force while Redis is away, and finds it when it comes.
func TestLookupsBeforeRedis(t *testing.T) {
	t.Parallel()
	redis := testservers.Redis(t)
	redis.Kill()
	g, err := guardOf(t, redis.URL(), fmt.Sprintf(tiered, inRedis), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if got := limitOf(g, "u-1"); got != "fixed_window 2/1h" {
		t.Errorf("before: %s, want that of the default", got)
	}
	if err := redis.Restart(testservers.Empty); err != nil {
		t.Fatal(err)
	}
	awaitLookups(t, g, redis)
}

func TestLookupsByHTTP(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.RequestURI {
		case "/users/u%2F1%3F":
			fmt.Fprint(w, `{"user": {"tier": "vip"}}`)
		case "/users/u-2":
			w.WriteHeader(http.StatusInternalServerError)
		default:
			http.NotFound(w, r)
		}
	}))
	defer service.Close()
	log := newLogLines(t)
	byHTTP := `tier: {http: {url: '` + service.URL + `/users/{user}', json: user.tier}, timeout: 5s, default: gold}`
	g, err := guardOf(t, "memory", fmt.Sprintf(tiered, byHTTP), log.logger())
	if err != nil {
		t.Fatal(err)
	}
	for user, want := range map[string]string{"u/1?": "fixed_window 3/1h", "u-2": "fixed_window 2/1h", "u-3": "fixed_window 2/1h"} {
		if got := limitOf(g, user); got != want {
			t.Errorf("%s: %s, want %s", user, got, want)
		}
	}
	if line := log.await(t, "look-ups fail"); !strings.Contains(line, "source=http") || !strings.Contains(line, "answered 500") || strings.Contains(line, "u-2") {
		t.Errorf("the log says %s", line)
	}
}

// TestLookupsNeedRedis: in memory there is none, and the error says what to do.
func TestLookupsNeedRedis(t *testing.T) {
	t.Parallel()
	_, err := guardOf(t, "memory", fmt.Sprintf(tiered, inRedis), slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), `dimension "tier" is looked up in Redis, and there is none; use a Redis store`) {
		t.Errorf("got %v", err)
	}
}

// TestLookupsConnectWhenNeeded: a policy that looks nothing up costs no connection.
func TestLookupsConnectWhenNeeded(t *testing.T) {
	t.Parallel()
	redis := testservers.Redis(t)
	g, err := guardOf(t, redis.URL(), fmt.Sprintf(tiered, `tier: {header: X-Tier, trusted: true}`), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	limitOf(g, "u-1")
	if g.finds.redis.last != nil {
		t.Error("it connects for nothing")
	}
	p, err := policy.Parse("policy", []byte(fmt.Sprintf(tiered, inRedis)), policy.ParseConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Replace(p, nil); err != nil {
		t.Fatal(err)
	}
	if c := g.finds.redis.last; c == nil {
		t.Error("it does not connect before the first request")
	} else if <-c.done; c.err != nil {
		t.Error(c.err)
	}
}

// fakeRedis is a client that only closes.
type fakeRedis struct {
	rueidis.Client
	closed int
}

func (f *fakeRedis) Close() { f.closed++ }

// TestLateRedis: connecting is tried by one at a time and once a second, and when it has succeeded never again.
func TestLateRedis(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var tries int
		client := &fakeRedis{}
		r := newLateRedis(func(ctx context.Context) (rueidis.Client, error) {
			switch tries++; tries {
			case 1:
				return nil, errors.New("refused")
			case 2:
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return client, nil
		})
		ask := func(want string, wantTries int) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, _, err := r.HashField(ctx, "h", "f")
			if synctest.Wait(); !strings.Contains(fmt.Sprint(err), want) || tries != wantTries {
				t.Errorf("got %v after %d tries, want %q after %d", err, tries, want, wantTries)
			}
		}
		ask("refused", 1)
		ask("refused", 1)
		time.Sleep(connectEvery)
		start := time.Now()
		ask("refused", 2) // it hangs
		ask("refused", 2)
		if waited := time.Since(start); waited != 0 {
			t.Errorf("with an attempt that hangs after one that failed, look-ups wait for %v", waited)
		}
		time.Sleep(connectWithin + time.Millisecond) // it has ended by now
		ask("deadline exceeded", 2)
		time.Sleep(connectEvery)
		for range 2 {
			c := r.current()
			if <-c.done; c.client != client || c.redis == nil || c.err != nil || tries != 3 {
				t.Errorf("got %+v after %d tries", c, tries)
			}
			time.Sleep(time.Hour)
		}
		if r.close(); client.closed != 1 {
			t.Errorf("the client was closed %d times", client.closed)
		}
	})
}

// TestLateRedisAtFirst: there is nothing to go by before the first attempt has ended, so look-ups wait for it.
func TestLateRedisAtFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newLateRedis(func(ctx context.Context) (rueidis.Client, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		defer r.close()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, _, err := r.HashField(ctx, "h", "f"); !strings.Contains(fmt.Sprint(err), "not connected yet") {
			t.Errorf("got %v", err)
		}
		if _, _, err := r.HashField(t.Context(), "h", "f"); !strings.Contains(fmt.Sprint(err), "deadline exceeded") {
			t.Errorf("when the attempt has ended: %v", err)
		}
	})
}

// TestLateRedisCloses: closing ends an attempt that is under way, and begins none.
func TestLateRedisCloses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		r := newLateRedis(func(ctx context.Context) (rueidis.Client, error) {
			tries++
			<-ctx.Done()
			return nil, ctx.Err()
		})
		r.current()
		start := time.Now()
		r.close()
		_, _, err := r.HashField(t.Context(), "h", "f")
		if took := time.Since(start); took != 0 || !strings.Contains(fmt.Sprint(err), "canceled") || tries != 1 {
			t.Errorf("%v after %s and %d tries", err, took, tries)
		}
		unused := newLateRedis(func(context.Context) (rueidis.Client, error) { tries++; return nil, nil })
		unused.close()
		if _, _, err := unused.HashField(t.Context(), "h", "f"); !errors.Is(err, context.Canceled) || tries != 1 {
			t.Errorf("closed before it was used: %v, %d tries", err, tries)
		}
	})
}

// TestReplacedPoliciesAreForgotten: what was in force is not kept by what is, though that takes over what it knows.
func TestReplacedPoliciesAreForgotten(t *testing.T) {
	t.Parallel()
	g, err := guardOf(t, "memory", limited("fixed_window 1/1h"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var replaced []weak.Pointer[policy.Engine]
	for i := range 5 {
		limitOf(g, "u")
		replaced = append(replaced, weak.Make(g.live.Load().engine))
		text := limited("fixed_window " + strconv.Itoa(i+2) + "/1h")
		p, err := policy.Parse("policy", []byte(text), policy.ParseConfig{})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Replace(p, nil); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), ample)
	defer cancel()
	if err := testservers.Poll(ctx, func() error {
		runtime.GC()
		for i, p := range replaced {
			if p.Value() != nil {
				return fmt.Errorf("policy %d is kept", i)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if got := limitOf(g, "u"); got != "fixed_window 6/1h" {
		t.Errorf("in force is %s", got)
	}
}

package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/internal/testservers"
)

// TestServeBeforeItsStore: a gate starts while its Redis is down, limits by itself, and takes the Redis up when it comes.
func TestServeBeforeItsStore(t *testing.T) {
	redis := testservers.Redis(t)
	redis.Kill()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }))
	defer service.Close()
	url, err := ParseStoreURL("redis://" + redis.Addr() + "?timeout=10s") // a machine that is busy for a moment fails no call
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, ServeConfig{
		Policy: writePolicy(t, twoAnHour), Upstreams: []string{service.URL}, Store: StoreConfig{URL: url}, Admin: "127.0.0.1:0", AdminToken: "s3cret",
	})
	for i, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
		if status, body := get(t, r.url); status != want {
			t.Errorf("locally, request %d: got %d %s, want %d", i, status, body, want)
		}
	}
	if s := r.status(t).Store; !s.Remote || s.Reached {
		t.Errorf("the status is %+v", s)
	}
	if err := redis.Restart(testservers.Empty); err != nil {
		t.Fatal(err)
	}
	r.log.await(t, "the store is reached")
	for i, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
		if status, body := get(t, r.url); status != want {
			t.Errorf("with the store, request %d: got %d %s, want %d", i, status, body, want)
		}
	}
	if s := r.status(t).Store; !s.Reached || ruleKeys(t, redis) != 1 {
		t.Errorf("the status is %+v, and the store has %d keys", s, ruleKeys(t, redis))
	}
	r.end(t)
}

// TestServeRefusedByItsStore: what will not change by itself is known before the first request.
func TestServeRefusedByItsStore(t *testing.T) {
	redis := testservers.Redis(t, testservers.ACL("gate", "hunter2"))
	url, err := ParseStoreURL("redis://gate:hunter3@" + redis.Addr())
	if err != nil {
		t.Fatal(err)
	}
	err = Serve(t.Context(), ServeConfig{
		Policy: writePolicy(t, twoAnHour), Upstreams: []string{"http://127.0.0.1:9"}, Listen: "127.0.0.1:0", Store: StoreConfig{URL: url},
	})
	if err == nil || !strings.Contains(err.Error(), "the user name or the password is wrong") || strings.Contains(err.Error(), "hunter3") {
		t.Errorf("got %v", err)
	}
}

// TestStoreThatNeverComes is closed all the same, and answers everything at once.
func TestStoreThatNeverComes(t *testing.T) {
	t.Parallel()
	url, err := ParseStoreURL("redis://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenStore(t.Context(), StoreConfig{URL: url, MayBeAway: true})
	if err != nil {
		t.Fatal(err)
	}
	charge := headgate.One("s", "k", headgate.MustParseLimit("concurrency 1 ttl=1s"))
	charge.Holder = "h"
	d := headgate.Decision{Allowed: true}
	late := s.Limiter.(*lateStore)
	_, renewErr := late.Renew(t.Context(), &charge)
	_, inspectErr := late.Inspect(t.Context(), "s", "k")
	for what, err := range map[string]error{
		"take": s.Take(t.Context(), []headgate.Charge{charge}, &d), "refund": late.Refund(t.Context(), nil, &d), "renew": renewErr,
		"release": late.Release(t.Context(), &charge), "reset": late.Reset(t.Context(), "s", "k"), "inspect": inspectErr,
	} {
		if headgate.CodeOf(err) != headgate.CodeUnavailable {
			t.Errorf("%s: %v", what, err)
		}
	}
	if d.Allowed || s.Reached() {
		t.Errorf("the decision is %+v, reached %v", d, s.Reached())
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

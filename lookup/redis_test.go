package lookup_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/headgate-io/headgate/lookup"
	"github.com/redis/rueidis"
)

func dial(t *testing.T, srv *testservers.RedisServer, user, password string) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{srv.Addr()}, Username: user, Password: password,
		ForceSingleClient: true, DisableCache: true, DisableRetry: true, ConnWriteTimeout: 2 * time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func do(t *testing.T, srv *testservers.RedisServer, args ...any) {
	t.Helper()
	if _, err := srv.Do(args...); err != nil {
		t.Fatal(err)
	}
}

func TestHashField(t *testing.T) {
	t.Parallel()
	srv := shared.Get(t)
	r := lookup.NewRedis(dial(t, srv, "", ""))
	do(t, srv, "HSET", "user:u-1", "tier", "vip", "empty", "", "bytes", "a\x00\xff", "a b", "spaced")
	do(t, srv, "SET", "text", "vip")
	for _, tc := range []struct {
		hash, field, value string
		found              bool
		err                string
	}{
		{hash: "user:u-1", field: "tier", value: "vip", found: true},
		{hash: "user:u-1", field: "empty", value: "", found: true},
		{hash: "user:u-1", field: "bytes", value: "a\x00\xff", found: true},
		{hash: "user:u-1", field: "a b", value: "spaced", found: true},
		{hash: "user:u-1", field: "TIER"},
		{hash: "user:u-1", field: ""},
		{hash: "user:u-2", field: "tier"},
		{hash: "", field: ""},
		{hash: "user:u-1\r\nFLUSHALL\r\n", field: "tier\r\n"},
		{hash: "text", field: "tier", err: "lookup: HGET in Redis: WRONGTYPE Operation against a key holding the wrong kind of value; the key has a value that is no hash"},
	} {
		value, found, err := r.HashField(t.Context(), tc.hash, tc.field)
		if value != tc.value || found != tc.found || !matches(err, tc.err) {
			t.Errorf("%q of %q: got %q, %v, %v", tc.field, tc.hash, value, found, err)
		}
	}
}

// matches tells whether an error begins with a text; "" stands for no error.
func matches(err error, text string) bool {
	return err == nil && text == "" || err != nil && text != "" && strings.HasPrefix(err.Error(), text)
}

func TestHashFieldRights(t *testing.T) {
	t.Parallel()
	srv := testservers.Redis(t, testservers.ACL("gate", "hunter2", "%R~user:* -@all +hget +hello +ping"))
	r := lookup.NewRedis(dial(t, srv, "gate", "hunter2"))
	do(t, srv, "HSET", "user:u-1", "tier", "vip")
	if value, found, err := r.HashField(t.Context(), "user:u-1", "tier"); value != "vip" || !found || err != nil {
		t.Errorf("got %q, %v, %v", value, found, err)
	}
	_, _, err := r.HashField(t.Context(), "secret:u-1", "tier")
	if !matches(err, "lookup: HGET in Redis: NOPERM") || !strings.Contains(err.Error(), "needs the right to HGET on these keys") {
		t.Errorf("got %v", err)
	}
	if strings.Contains(err.Error(), "u-1") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error says too much: %v", err)
	}
}

// TestHashFieldStopped: behind a Redis that hangs, a caller leaves in time, and the connection stays for the others.
func TestHashFieldStopped(t *testing.T) {
	t.Parallel()
	srv := testservers.Redis(t)
	client := dial(t, srv, "", "")
	r := lookup.NewRedis(client)
	do(t, srv, "HSET", "user:u-1", "tier", "vip")
	before := connection(t, client)
	if err := srv.Pause(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		start := time.Now()
		_, found, err := r.HashField(ctx, "user:u-1", "tier")
		cancel()
		if took := time.Since(start); found || !errors.Is(err, context.DeadlineExceeded) || took > time.Minute {
			t.Fatalf("got %v, %v after %s", found, err, took)
		}
	}
	if err := srv.Resume(); err != nil {
		t.Fatal(err)
	}
	if value, found, err := r.HashField(context.WithoutCancel(t.Context()), "user:u-1", "tier"); value != "vip" || !found || err != nil {
		t.Errorf("afterwards: %q, %v, %v", value, found, err)
	}
	if after := connection(t, client); after != before {
		t.Errorf("the connection was cut: %d, then %d", before, after)
	}
}

// connection returns the number that Redis gives the client's connection. A context that cannot end leaves the client in the
// state in which a call with a deadline would cut the connection.
func connection(t *testing.T, client rueidis.Client) int64 {
	t.Helper()
	id, err := client.Do(context.WithoutCancel(t.Context()), client.B().ClientId().Build()).AsInt64()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestHashFieldGone(t *testing.T) {
	t.Parallel()
	srv := testservers.Redis(t)
	r := lookup.NewRedis(dial(t, srv, "", ""))
	srv.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if _, found, err := r.HashField(ctx, "user:u-1", "tier"); found || !matches(err, "lookup: HGET in Redis: ") {
		t.Errorf("got %v, %v", found, err)
	}
	if err := srv.Restart(testservers.Empty); err != nil {
		t.Fatal(err)
	}
	err := testservers.Poll(ctx, func() error {
		_, _, err := r.HashField(ctx, "user:u-1", "tier")
		return err
	})
	if err != nil {
		t.Errorf("it does not find Redis back: %v", err)
	}
}

// stuck is a client whose calls come back when they are let go.
type stuck struct {
	rueidis.Client
	calls   atomic.Int64
	started chan struct{}
	hold    chan struct{}
}

func (s *stuck) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	s.calls.Add(1)
	s.started <- struct{}{}
	<-s.hold
	return s.Client.Do(ctx, cmd)
}

// TestHashFieldBounded: callers leave, and yet no more calls are under way than there are places.
func TestHashFieldBounded(t *testing.T) {
	t.Parallel()
	const places = 256
	client := &stuck{Client: dial(t, shared.Get(t), "", ""), started: make(chan struct{}, 2*places), hold: make(chan struct{})}
	r := lookup.NewRedis(client)
	ctx, leave := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range places {
		wg.Go(func() {
			if _, _, err := r.HashField(ctx, "h", "f"); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
	}
	for range places {
		<-client.started
	}
	leave()
	wg.Wait()
	if _, _, err := r.HashField(t.Context(), "h", "f"); !errors.Is(err, lookup.ErrBusy) {
		t.Errorf("got %v, want it busy", err)
	}
	if _, _, err := r.HashField(ctx, "h", "f"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(client.hold)
	within, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := testservers.Poll(within, func() error {
		_, _, err := r.HashField(within, "h", "f")
		return err
	})
	if err != nil || client.calls.Load() < places+1 {
		t.Errorf("afterwards: %v, %d calls", err, client.calls.Load())
	}
}

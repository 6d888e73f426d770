package redisstore_test

import (
	"context"
	"maps"
	"strconv"
	"sync"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/headgate-io/headgate/redisstore"
)

// TestPausedAlone: a caller who is alone with a stopped Redis leaves in time too, whether the connection stands or must be
// made; and so does the store that is closed meanwhile.
func TestPausedAlone(t *testing.T) {
	srv := testservers.Redis(t)
	for _, cut := range []bool{false, true} {
		late := leaveAlone(t, srv, cut)
		for tries := 5; tries > 0 && len(late) > 0; tries-- {
			t.Logf("cut %v: %q", cut, late) // one may be late where others want the processor, but not the same one each time
			again := leaveAlone(t, srv, cut)
			maps.DeleteFunc(late, func(what string, _ time.Duration) bool { return again[what] == 0 })
		}
		for what, took := range late {
			t.Errorf("cut %v: %s took %s, and too long each time", cut, what, took)
		}
	}
}

// leaveAlone asks a Redis that is stopped and closes the store, and returns what took too long.
func leaveAlone(t *testing.T, srv *testservers.RedisServer, cut bool) (late map[string]time.Duration) {
	t.Helper()
	limit := headgate.MustParseLimit("token_bucket 1000/s")
	s := open(t, redisstore.Config{Addrs: []string{srv.Addr()}, MaxInFlight: 1, Timeout: hasty})
	awaitWorks(t, s)
	busy := startLoad(s, limit, 20, 5) // the client reads in the background from now on, and sees the connection end
	busy.awaitMore(t, 500)
	busy.end()
	if cut {
		do(t, srv, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		do(t, srv, "PING") // after which it is done
	}
	if err := srv.Pause(); err != nil {
		t.Fatal(err)
	}
	late = map[string]time.Duration{}
	lasted := func(what string, took, most time.Duration) {
		if took > most {
			late[what] = took
		}
		if took > tooSlow {
			t.Errorf("cut %v: %s took %s", cut, what, took)
		}
	}
	for i := range 5 {
		start := time.Now()
		_, err := headgate.Take(t.Context(), s, headgate.One("s", "k", limit))
		if err == nil {
			t.Errorf("cut %v, call %d: a Redis that is stopped answers", cut, i)
		}
		lasted("call "+strconv.Itoa(i), time.Since(start), 500*time.Millisecond)
	}
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() { _, _ = headgate.Take(context.Background(), s, headgate.One("s", strconv.Itoa(i), limit)) })
	}
	start := time.Now()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	lasted("closing", time.Since(start), 5*time.Second)
	wg.Wait()
	if err := srv.Resume(); err != nil {
		t.Fatal(err)
	}
	return late
}

// TestForeignHolders: sets of another type, where there is no state, are as if never seen and fail nobody else's take.
func TestForeignHolders(t *testing.T) {
	t.Parallel()
	s := open(t, redisstore.Config{})
	slots, window := headgate.MustParseLimit("concurrency 2 ttl=1h"), headgate.MustParseLimit("fixed_window 9/1h")
	key := redisstore.KeyOf(s, "c", "k")
	for _, what := range []string{"+", "-"} {
		other := key[:len(key)-len("=1:c:k")] + what + "1:c:k"
		do(t, shared.Get(t), "SET", other, "not a set")
		charge := headgate.Charge{Slot: "c", Key: "k", Limit: slots, Cost: 1, Holder: "h" + what}
		first := headgate.Charge{Slot: "c2", Key: "k", Limit: slots, Cost: 1, Holder: "h" + what}
		d := must(t, s, first, charge, headgate.One("w", "k", window))
		if !d.Allowed || d.Outcomes[1].Remaining != 1 {
			t.Errorf("%s: %+v", what, d)
		}
		if err := s.Refund(t.Context(), []headgate.Charge{first, charge, headgate.One("w", "k", window)}, &d); err != nil {
			t.Error(err)
		}
		if d := must(t, s, charge); d.Outcomes[0].Remaining != 1 {
			t.Errorf("%s, a slot leaked: %+v", what, d)
		}
		if err := s.Reset(t.Context(), "c", "k"); err != nil {
			t.Error(err)
		}
	}
}

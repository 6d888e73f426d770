package redisstore

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/redis/rueidis"
)

// movingClient answers as a cluster does while a slot moves: TRYAGAIN to what names a key that is on the move.
type movingClient struct {
	fakeClient
	mu     sync.Mutex
	moving bool // guarded by mu
}

func (m *movingClient) EvalSHA(ctx context.Context, sha string, keys []string, arg string) (string, error) {
	m.mu.Lock()
	refuse := m.moving && strings.Contains(strings.Join(keys, " "), "moving")
	m.mu.Unlock()
	if refuse {
		return "", says("TRYAGAIN Multiple keys request during rehashing of slot")
	}
	return m.fakeClient.EvalSHA(ctx, sha, keys, arg)
}

func (m *movingClient) arrive() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.moving = false
}

func takeKey(s *Store, key string) error {
	_, err := headgate.Take(context.Background(), s, headgate.One("s", key, headgate.MustParseLimit("token_bucket 100/s")))
	return err
}

// TestMovingKeys: takes whose keys are on the move wait for them and hold nobody else up, alone or out of a batch; and they
// never touch the requests of callers that have long had their answer.
func TestMovingKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &movingClient{moving: true}
		s, err := New(t.Context(), Config{Client: m, MaxInFlight: 1, Timeout: 20 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		results := make(chan error, 10)
		start := func(key string) { go func() { results <- takeKey(s, key) }() }
		start("moving alone")
		await(t, func() bool { return s.stuck.Load() == 1 })
		m.block, m.entered = make(chan struct{}), make(chan struct{}, 10000)
		start("first")
		<-m.entered
		for _, key := range []string{"moving in a batch", "b", "c"} {
			start(key)
		}
		await(t, func() bool { return s.queued.Load() == 3 })
		close(m.block)
		for range 3 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		await(t, func() bool { return s.stuck.Load() == 2 })
		began := time.Now()
		for range 500 { // these use the ops of b and c again
			if err := takeKey(s, "d"); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("500 takes beside two that wait took %s", took)
		}
		m.arrive()
		for range 2 {
			if err := <-results; err != nil {
				t.Error("once its key has moved:", err)
			}
		}
		await(t, func() bool { return s.stuck.Load() == 0 })
	})
}

// TestApartLeavesAnswered: an op that has its answer is another's, and is no longer part of the batch.
func TestApartLeavesAnswered(t *testing.T) {
	t.Parallel()
	m := &movingClient{moving: true}
	s, err := New(t.Context(), Config{Client: m, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	b := newBatch()
	for _, key := range []string{"a", "moving", "b"} {
		o := newOp()
		o.script = s.scripts.take
		o.load(s.names, []headgate.Charge{headgate.One("s", key, headgate.MustParseLimit("token_bucket 100/s"))})
		b.ops = append(b.ops, o)
	}
	all := append([]*op(nil), b.ops...)
	if !s.attemptApart(t.Context(), b, &watcher{l: &s.lanes[0]}) || len(b.ops) != 1 || b.ops[0] != all[1] {
		t.Fatalf("%d ops wait", len(b.ops))
	}
	<-all[0].done
	all[0].state.Store(opQueued) // its caller has taken its answer and asks something else
	s.giveUp(b)
	if got := all[0].state.Load(); got != opQueued || len(all[0].done) != 0 {
		t.Errorf("another's request was answered: state %d", got)
	}
	if all[1].state.Load() != opDone {
		t.Error("the op that waited got no answer")
	}
}

// shortClient answers a text.
type shortClient string

func (c shortClient) EvalSHA(context.Context, string, []string, string) (string, error) {
	return string(c), nil
}

func (c shortClient) Eval(context.Context, string, []string, string) (string, error) {
	return string(c), nil
}

// TestShortReplies: whatever is cut off or added, each call ends with an error and no verdict.
func TestShortReplies(t *testing.T) {
	t.Parallel()
	full := pad(10) + "\x05"
	limit := headgate.MustParseLimit("token_bucket 100/s")
	slots := headgate.One("s", "k", headgate.MustParseLimit("concurrency 3 ttl=1s"))
	slots.Holder = "h"
	for n := range len(full) {
		s, err := New(t.Context(), Config{Client: shortClient(full[:n]), Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		charges := []headgate.Charge{headgate.One("s", "k", limit)}
		d, err := headgate.Take(t.Context(), s, charges...)
		if headgate.CodeOf(err) != headgate.CodeInternal || d.Allowed {
			t.Errorf("%d bytes: %+v, %v", n, d, err)
		}
		d.Reset(1)
		d.Outcomes[0].Receipt.Charged = 1
		if err := s.Refund(t.Context(), charges, &d); headgate.CodeOf(err) != headgate.CodeInternal || d.Outcomes[0].Receipt.Charged != 0 {
			t.Errorf("refund with %d bytes: %v, %+v", n, err, d.Outcomes[0].Receipt)
		}
		if _, err := s.Renew(t.Context(), &slots); headgate.CodeOf(err) != headgate.CodeInternal {
			t.Errorf("renew with %d bytes: %v", n, err)
		}
		if _, err := s.Inspect(t.Context(), "s", "k"); headgate.CodeOf(err) != headgate.CodeInternal {
			t.Errorf("inspect with %d bytes: %v", n, err)
		}
		_ = s.Close()
	}
}

// TestUnsureRefund: what may have been given back is not given back again; what was not, is.
func TestUnsureRefund(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		left int64
	}{
		{&net.OpError{Op: "read", Err: errors.New("connection reset by peer")}, 2},
		{says("NOPERM this user has no permissions"), 5},
	} {
		f := &fakeClient{answers: []error{c.err}}
		s := openFake(t, f, Config{})
		charge := headgate.One("s", "k", headgate.MustParseLimit("fixed_window 9/1h"))
		charge.Cost = 3
		var d headgate.Decision
		d.Reset(1)
		d.Outcomes[0].Receipt.Charged = 5
		err := s.Refund(t.Context(), []headgate.Charge{charge}, &d)
		if err == nil || d.Outcomes[0].Receipt.Charged != c.left {
			t.Errorf("after %v: %v, %d left to give back, want %d", c.err, err, d.Outcomes[0].Receipt.Charged, c.left)
		}
	}
}

// TestSlowDial: a connection that cannot be made in time is a failure of Redis, not a deadline of the caller's.
func TestSlowDial(t *testing.T) {
	t.Parallel()
	f := &fakeClient{answers: []error{&net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}, &net.OpError{Op: "dial", Net: "tcp", Err: context.DeadlineExceeded}}}
	s := openFake(t, f, Config{})
	for range 2 {
		_, err := takeOne(s)
		if headgate.CodeOf(err) != headgate.CodeUnavailable || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v is told as the caller's own", err)
		}
	}
}

// TestPatience: only where the client is known to come back in time does a caller wait for it.
func TestPatience(t *testing.T) {
	t.Parallel()
	s := openFake(t, &fakeClient{}, Config{})
	o := &op{deadline: time.Now().Add(time.Minute)}
	if s.patient(t.Context(), o) {
		t.Error("a client of the user's is trusted with the deadline")
	}
	s.owned = struct{ rueidis.Client }{}
	t.Cleanup(func() { s.owned = nil }) // before the store is closed
	if !s.patient(t.Context(), o) {
		t.Error("our own client, connected, is not trusted")
	}
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	s.sending.Add(1) // its call may be making the connection that this one needs, and has longer for it
	beside := s.patient(t.Context(), o)
	s.sending.Add(-1)
	s.broken.Store(true)
	if beside || s.patient(t.Context(), o) {
		t.Error("beside a call with more time, or after a failure, the client is trusted")
	}
	if s.broken.Store(false); s.patient(short, o) {
		t.Error("a caller with an earlier deadline waits for the client")
	}
}

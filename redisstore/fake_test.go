package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// says is an error that is known by its text alone.
type says string

func (s says) Error() string { return string(s) }

// fakeClient answers calls from a list, and then with allowances.
type fakeClient struct {
	mu      sync.Mutex
	answers []error // guarded by mu; nil: an allowance
	calls   []string
	takes   []int
	block   chan struct{} // if set, calls wait for it
	entered chan struct{} // if set, gets a value for each call
}

func (f *fakeClient) EvalSHA(ctx context.Context, _ string, _ []string, arg string) (string, error) {
	return f.call("evalsha", arg)
}

func (f *fakeClient) Eval(ctx context.Context, _ string, _ []string, arg string) (string, error) {
	return f.call("eval", arg)
}

func (f *fakeClient) call(how, arg string) (string, error) {
	if f.entered != nil {
		f.entered <- struct{}{}
	}
	if f.block != nil {
		<-f.block
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, how)
	takes := int(arg[3])
	f.takes = append(f.takes, takes)
	if len(f.answers) > 0 {
		err := f.answers[0]
		f.answers = f.answers[1:]
		if err != nil {
			return "", err
		}
	}
	reply := putUint(nil, uint64(time.Now().UnixMicro()), 8)
	reply = append(reply, 0, 0)
	for range takes {
		reply = append(reply, replyPasses|replyCharged)
	}
	return string(reply), nil
}

func openFake(t *testing.T, f *fakeClient, cfg Config) *Store {
	t.Helper()
	cfg.Client = f
	if cfg.Timeout == 0 {
		cfg.Timeout = time.Minute
	}
	s, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func takeOne(s *Store) (bool, error) {
	d, err := headgate.Take(context.Background(), s, headgate.One("s", "k", headgate.MustParseLimit("token_bucket 100/s burst=200")))
	return d.Allowed, err
}

// TestErrors: what each answer of Redis, and each failure to answer, makes of a take.
func TestErrors(t *testing.T) {
	t.Parallel()
	dial := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	read := &net.OpError{Op: "read", Err: errors.New("connection reset by peer")}
	for _, c := range []struct {
		name  string
		err   error
		code  headgate.Code // of a take that gets no other answer
		again bool          // whether it is asked again, and then allowed
	}{
		{"NOSCRIPT", says("NOSCRIPT No matching script. Please use EVAL."), headgate.CodeUnavailable, true},
		{"MOVED", says("MOVED 3999 127.0.0.1:6381"), headgate.CodeUnavailable, true},
		{"ASK", says("ASK 3999 127.0.0.1:6381"), headgate.CodeUnavailable, true},
		{"TRYAGAIN", says("TRYAGAIN Multiple keys request during rehashing of slot"), headgate.CodeUnavailable, true},
		{"LOADING", says("LOADING Redis is loading the dataset in memory"), headgate.CodeUnavailable, true},
		{"READONLY", says("READONLY You can't write against a read only replica. script: 1, on @user_script:1."), headgate.CodeUnavailable, true},
		{"CLUSTERDOWN", says("CLUSTERDOWN The cluster is down"), headgate.CodeUnavailable, true},
		{"MASTERDOWN", says("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."), headgate.CodeUnavailable, true},
		{"BUSY", says("BUSY Redis is busy running a script."), headgate.CodeUnavailable, true},
		{"READONLY before 7", says("ERR Error running script (call to f_1): @user_script:1: @user_script: 1: -READONLY You can't write"), headgate.CodeUnavailable, true},
		{"OOM", says("OOM command not allowed when used memory > 'maxmemory'."), headgate.CodeUnavailable, false},
		{"NOAUTH", says("NOAUTH Authentication required."), headgate.CodeUnavailable, false},
		{"WRONGPASS", says("WRONGPASS invalid username-password pair"), headgate.CodeUnavailable, false},
		{"NOPERM", says("NOPERM this user has no permissions to run the 'evalsha' command"), headgate.CodeUnavailable, false},
		{"MISCONF", says("MISCONF Redis is configured to save RDB snapshots"), headgate.CodeUnavailable, false},
		{"CROSSSLOT", says("CROSSSLOT Keys in request don't hash to the same slot"), headgate.CodeUnavailable, false},
		{"ERR", says("ERR something else"), headgate.CodeUnavailable, false},
		{"dial", fmt.Errorf("wrapped: %w", dial), headgate.CodeUnavailable, false},
		{"lookup", &net.DNSError{Err: "no such host"}, headgate.CodeUnavailable, false},
		{"broken", read, headgate.CodeIndeterminate, false},
		{"time", context.DeadlineExceeded, headgate.CodeIndeterminate, false},
		{"closed", errors.New("use of closed network connection"), headgate.CodeIndeterminate, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fakeClient{answers: []error{c.err}}
				allowed, err := takeOne(openFake(t, f, Config{}))
				if allowed != c.again || (err == nil) != c.again {
					t.Errorf("one such answer: allowed %v, %v", allowed, err)
				}
				if n := len(f.calls); c.again != (n > 1) {
					t.Errorf("%d calls", n)
				}
				forever := make([]error, 1000)
				for i := range forever {
					forever[i] = c.err
				}
				f = &fakeClient{answers: forever}
				start := time.Now()
				_, err = takeOne(openFake(t, f, Config{Timeout: 60 * time.Millisecond}))
				if got := headgate.CodeOf(err); got != c.code {
					t.Errorf("always: %v is %q, want %q", err, got, c.code)
				}
				if !c.again && len(f.calls) > 1 {
					t.Errorf("always: %d calls, want one", len(f.calls))
				}
				if took := time.Since(start); took > 60*time.Millisecond {
					t.Errorf("always: it took %s", took)
				}
			})
		})
	}
}

// TestLoadsScript: an unknown script is sent whole, once.
func TestLoadsScript(t *testing.T) {
	t.Parallel()
	f := &fakeClient{answers: []error{says("NOSCRIPT No matching script.")}}
	if allowed, err := takeOne(openFake(t, f, Config{})); !allowed || err != nil {
		t.Fatal(allowed, err)
	}
	if len(f.calls) != 2 || f.calls[0] != "evalsha" || f.calls[1] != "eval" {
		t.Errorf("calls %v", f.calls)
	}
}

// TestBatching: what waits for the wire goes together, apart after TRYAGAIN, and a caller that left is not sent.
func TestBatching(t *testing.T) {
	t.Parallel()
	f := &fakeClient{block: make(chan struct{}), entered: make(chan struct{}, 100)}
	s := openFake(t, f, Config{MaxInFlight: 1, MaxBatch: 16})
	results := make(chan error, 100)
	start := func(ctx context.Context) {
		go func() {
			_, err := headgate.Take(ctx, s, headgate.One("s", "k", headgate.MustParseLimit("token_bucket 100/s")))
			results <- err
		}()
	}
	start(t.Context())
	<-f.entered // the first is on the wire, alone
	ctx, leave := context.WithCancel(t.Context())
	start(ctx)
	await(t, func() bool { return s.queued.Load() == 1 })
	leave()
	if err := <-results; headgate.CodeOf(err) != headgate.CodeTimeout || !errors.Is(err, context.Canceled) {
		t.Errorf("left before it was sent: %v", err)
	}
	for range 20 {
		start(t.Context())
	}
	await(t, func() bool { return s.queued.Load() == 21 })
	f.mu.Lock()
	f.answers = []error{nil, says("TRYAGAIN Multiple keys request during rehashing of slot")}
	f.mu.Unlock()
	close(f.block)
	for range 21 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	want := []int{1, 16, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4}
	if fmt.Sprint(f.takes) != fmt.Sprint(want) {
		t.Errorf("takes per call %v, want %v", f.takes, want)
	}
}

// TestOverload: beyond the queue's bound the answer comes at once; closing ends what waits.
func TestOverload(t *testing.T) {
	t.Parallel()
	f := &fakeClient{block: make(chan struct{}), entered: make(chan struct{}, 10)}
	s := openFake(t, f, Config{MaxInFlight: 1, MaxQueue: 2})
	results := make(chan error, 10)
	for range 3 {
		go func() {
			_, err := takeOne(s)
			results <- err
		}()
		await(t, func() bool { return len(f.entered) == 1 }) // the first is on the wire
	}
	await(t, func() bool { return s.queued.Load() == 2 })
	if _, err := takeOne(s); headgate.CodeOf(err) != headgate.CodeOverloaded {
		t.Errorf("beyond the queue: %v", err)
	}
	go func() { _ = s.Close() }()
	for range 2 {
		if err := <-results; headgate.CodeOf(err) != headgate.CodeClosed {
			t.Errorf("waited at the close: %v", err)
		}
	}
	close(f.block)
	if err := <-results; err != nil {
		t.Errorf("on the wire at the close: %v", err)
	}
	_ = s.Close()
	if _, err := takeOne(s); headgate.CodeOf(err) != headgate.CodeClosed {
		t.Errorf("after the close: %v", err)
	}
}

// TestStuckClient: a client that does not come back holds nobody up: callers leave at their deadline, those on the wire not
// knowing, and its place goes to the next call.
func TestStuckClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeClient{block: make(chan struct{}), entered: make(chan struct{}, 100)}
		s := openFake(t, f, Config{MaxInFlight: 1, Timeout: 200 * time.Millisecond})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := headgate.Take(ctx, s, headgate.One("s", "k", headgate.MustParseLimit("token_bucket 100/s")))
		if headgate.CodeOf(err) != headgate.CodeIndeterminate || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("on the wire: %v", err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err = headgate.Take(ctx, s, headgate.One("s", "k", headgate.MustParseLimit("token_bucket 100/s")))
		if headgate.CodeOf(err) != headgate.CodeTimeout || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting: %v", err)
		}
		<-f.entered
		for entered := false; !entered; { // the first call is still stuck
			_, err := takeOne(s)
			entered = headgate.CodeOf(err) == headgate.CodeIndeterminate
			if !entered && headgate.CodeOf(err) != headgate.CodeTimeout {
				t.Fatalf("while stuck: %v", err)
			}
		}
		close(f.block)
		await(t, func() bool { allowed, err := takeOne(s); return allowed && err == nil })
		await(t, func() bool { return s.stuck.Load() == 0 })
	})
}

// await polls a condition that other goroutines bring about.
func await(t *testing.T, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("it did not happen in time")
		}
	}
}

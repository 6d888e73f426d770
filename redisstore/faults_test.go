package redisstore_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/headgate-io/headgate/redisstore"
)

// recovery bounds how long a store may take to work again by itself.
const recovery = 2 * time.Minute

// tooSlow is what no call of a hasty store takes, however busy the machine: a client that is waited for takes longer.
const tooSlow = 9 * time.Second

// awaitWorks takes a peek until it is answered.
func awaitWorks(t *testing.T, s headgate.Limiter) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), recovery)
	defer cancel()
	peek := headgate.Charge{Slot: "peek", Key: "k", Limit: headgate.MustParseLimit("token_bucket 1/s")}
	err := testservers.Poll(ctx, func() error {
		_, err := headgate.Take(ctx, s, peek)
		return err
	})
	if err != nil {
		t.Fatalf("the store does not work again: %v", err)
	}
}

// load takes a fixed window's units from many goroutines until it is stopped.
type load struct {
	limiter             headgate.Limiter
	limit               headgate.Limit
	keys                int
	allowed, denied     atomic.Int64
	unsure, failed, all atomic.Int64
	slowest             atomic.Int64 // ns
	stop                chan struct{}
	wg                  sync.WaitGroup
}

func startLoad(limiter headgate.Limiter, limit headgate.Limit, callers, keys int) *load {
	l := &load{limiter: limiter, limit: limit, keys: keys, stop: make(chan struct{})}
	for i := range callers {
		l.wg.Go(func() { l.run(i) })
	}
	return l
}

func (l *load) run(caller int) {
	var d headgate.Decision
	for n := caller; ; n++ {
		select {
		case <-l.stop:
			return
		default:
		}
		start := time.Now()
		charges := []headgate.Charge{headgate.One("load", "k"+strconv.Itoa(n%l.keys), l.limit)}
		err := l.limiter.Take(context.Background(), charges, &d)
		took := int64(time.Since(start))
		for old := l.slowest.Load(); took > old && !l.slowest.CompareAndSwap(old, took); old = l.slowest.Load() {
		}
		l.all.Add(1)
		switch {
		case err == nil && d.Allowed:
			l.allowed.Add(1)
		case err == nil:
			l.denied.Add(1)
		case headgate.CodeOf(err) == headgate.CodeIndeterminate:
			l.unsure.Add(1)
		default:
			l.failed.Add(1)
			runtime.Gosched() // where nothing is waited for, callers must not keep the client from its work
		}
	}
}

func (l *load) end() {
	close(l.stop)
	l.wg.Wait()
}

// awaitMore waits until so many more takes are decided.
func (l *load) awaitMore(t *testing.T, n int64) {
	t.Helper()
	from := l.allowed.Load() + l.denied.Load()
	ctx, cancel := context.WithTimeout(context.Background(), recovery)
	defer cancel()
	err := testservers.Poll(ctx, func() error {
		if l.allowed.Load()+l.denied.Load() < from+n {
			return errors.New("too few takes are decided")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestExactlyN: many goroutines, exactly as many allowed as the limit says, whatever the batches.
func TestExactlyN(t *testing.T) {
	t.Parallel()
	namespace := newNamespace()
	a, b := open(t, redisstore.Config{Namespace: namespace}), open(t, redisstore.Config{Namespace: namespace, MaxBatch: 5, MaxInFlight: 3})
	for _, text := range []string{"fixed_window 1000/36500d", "sliding_log 1000/1h", "sliding_window 1000/36500d cells=5", "token_bucket 1/36500d burst=1", "leaky_bucket 1/365d capacity=7", "concurrency 20 ttl=1h"} {
		limit := headgate.MustParseLimit(text)
		var allowed atomic.Int64
		var wg sync.WaitGroup
		for g := range 40 {
			wg.Go(func() {
				s := a
				if g%2 == 1 {
					s = b
				}
				for i := range 40 {
					c := headgate.One(text, "k", limit)
					c.Holder = strconv.Itoa(g) + "/" + strconv.Itoa(i)
					d, err := headgate.Take(context.Background(), s, c)
					if err != nil {
						t.Error(text, err)
						return
					}
					if d.Allowed {
						allowed.Add(1)
					}
				}
			})
		}
		wg.Wait()
		want := map[string]int64{"token_bucket": 1, "leaky_bucket": 7, "concurrency": 20}[limit.Algorithm().String()]
		if want == 0 {
			want = 1000
		}
		if got := allowed.Load(); got != want {
			t.Errorf("%s: %d allowed, want %d", text, got, want)
		}
	}
}

// TestPaused: with Redis stopped, each of 3,000 callers leaves at its deadline, and when it goes on so does the store. Where the machine has
// other things to do than to wake so many, they have more time, and less of it tells how late one was.
func TestPaused(t *testing.T) {
	srv := testservers.Redis(t)
	for timeout := hasty; ; timeout *= 2 {
		late, others, own := leaveInTime(t, srv, timeout)
		if others > 0 {
			t.Errorf("%d left with another error than timeout or indeterminate", others)
		}
		if late == 0 && own == 1000 {
			return
		}
		t.Logf("with a time-out of %s, %d left late, and %d were told of deadlines of their own, which 1000 had", timeout, late, own)
		if timeout > 16*hasty {
			t.Fatal("however much time there is")
		}
	}
}

// leaveInTime has callers ask a Redis that is stopped, a third of them with a deadline of their own, half of the store's.
func leaveInTime(t *testing.T, srv *testservers.RedisServer, timeout time.Duration) (late, others, own int64) {
	t.Helper()
	s := open(t, redisstore.Config{Addrs: []string{srv.Addr()}, Timeout: timeout})
	awaitWorks(t, s)
	if err := srv.Pause(); err != nil {
		t.Fatal(err)
	}
	limit := headgate.MustParseLimit("token_bucket 1000/s")
	var wg sync.WaitGroup
	var tooLate, wrong, told atomic.Int64
	for i := range 3000 {
		wg.Go(func() {
			ctx, cancel := context.Background(), context.CancelFunc(func() {})
			deadline := timeout
			if i%3 == 0 {
				deadline = timeout / 2
				ctx, cancel = context.WithTimeout(ctx, deadline)
			}
			defer cancel()
			start := time.Now()
			_, err := headgate.Take(ctx, s, headgate.One("s", strconv.Itoa(i), limit))
			took := time.Since(start)
			if took > deadline+5*timeout { // a loaded machine may be slow to wake 3,000
				tooLate.Add(1)
			}
			if took > deadline+tooSlow {
				t.Errorf("a caller with a deadline of %s was kept for %s", deadline, took)
			}
			if code := headgate.CodeOf(err); code != headgate.CodeTimeout && code != headgate.CodeIndeterminate {
				wrong.Add(1)
			}
			if errors.Is(err, context.DeadlineExceeded) {
				told.Add(1)
			}
		})
	}
	wg.Wait()
	if err := srv.Resume(); err != nil {
		t.Fatal(err)
	}
	awaitWorks(t, s)
	return tooLate.Load(), wrong.Load(), told.Load()
}

// TestKilled: killed under load and started again, with its data and without. While the data is there nothing is admitted
// beyond the limit.
func TestKilled(t *testing.T) {
	srv := testservers.Redis(t, testservers.AppendOnly(), testservers.Directives("appendfsync always"))
	namespace := newNamespace()
	s := open(t, redisstore.Config{Addrs: []string{srv.Addr()}, Namespace: namespace, Timeout: hasty})
	limit := headgate.MustParseLimit("fixed_window 300/36500d")
	l := startLoad(s, limit, 16, 20) // 6,000 in all
	l.awaitMore(t, 1000)
	srv.Kill()
	if err := srv.Restart(testservers.KeepData); err != nil {
		t.Fatal(err)
	}
	awaitWorks(t, s)
	for l.denied.Load() < 1000 {
		l.awaitMore(t, 100)
	}
	l.end()
	if n := l.allowed.Load(); n > 6000 || n+l.unsure.Load() < 6000 {
		t.Errorf("%d allowed and %d unknown of 6000", n, l.unsure.Load())
	}
	if slowest := time.Duration(l.slowest.Load()); slowest > tooSlow {
		t.Errorf("a call took %s", slowest)
	}
	srv.Kill()
	_, err := headgate.Take(t.Context(), s, headgate.One("load", "k0", limit))
	if code := headgate.CodeOf(err); code != headgate.CodeUnavailable && code != headgate.CodeIndeterminate {
		t.Errorf("while Redis is away: %v", err)
	}
	if err := srv.Restart(!testservers.KeepData); err != nil {
		t.Fatal(err)
	}
	awaitWorks(t, s)
	patient := open(t, redisstore.Config{Addrs: []string{srv.Addr()}, Namespace: namespace})
	if d, err := headgate.Take(t.Context(), patient, headgate.One("load", "k0", limit)); err != nil || !d.Allowed || d.Outcomes[0].Remaining != 299 {
		t.Errorf("on an empty Redis: %+v, %v", d, err)
	}
}

// TestScriptFlush: Redis forgets the scripts again and again, and nobody notices.
func TestScriptFlush(t *testing.T) {
	srv := testservers.Redis(t)
	s := open(t, redisstore.Config{Addrs: []string{srv.Addr()}})
	l := startLoad(s, headgate.MustParseLimit("fixed_window 100/36500d"), 16, 20)
	for range 30 {
		if _, err := srv.Do("SCRIPT", "FLUSH"); err != nil {
			t.Fatal(err)
		}
		l.awaitMore(t, 50)
	}
	for l.denied.Load() < 100 {
		l.awaitMore(t, 100)
	}
	l.end()
	if l.failed.Load()+l.unsure.Load() > 0 || l.allowed.Load() != 2000 {
		t.Errorf("%d failed, %d unknown, %d allowed of 2000", l.failed.Load(), l.unsure.Load(), l.allowed.Load())
	}
}

// TestOutOfMemory: an OOM error has changed nothing, and says what to do.
func TestOutOfMemory(t *testing.T) {
	srv := testservers.Redis(t)
	s := open(t, redisstore.Config{Addrs: []string{srv.Addr()}})
	window, slots := headgate.One("w", "k", headgate.MustParseLimit("fixed_window 10/36500d")), headgate.One("c", "k", headgate.MustParseLimit("concurrency 2 ttl=1h"))
	slots.Holder = "a"
	must(t, s, slots)
	do(t, srv, "CONFIG", "SET", "maxmemory", "1")
	again := slots
	again.Holder = "b"
	for _, c := range []headgate.Charge{window, again} {
		_, err := headgate.Take(t.Context(), s, c)
		if headgate.CodeOf(err) != headgate.CodeUnavailable || !strings.Contains(err.Error(), "maxmemory") {
			t.Errorf("out of memory: %v", err)
		}
	}
	if err := s.Release(t.Context(), &slots); headgate.CodeOf(err) != headgate.CodeUnavailable {
		t.Errorf("release out of memory: %v", err)
	}
	do(t, srv, "CONFIG", "SET", "maxmemory", "0")
	if d := must(t, s, window); d.Outcomes[0].Remaining != 9 {
		t.Errorf("after it: %+v", d)
	}
	if d := must(t, s, again); !d.Allowed || d.Outcomes[0].Remaining != 0 {
		t.Errorf("after it: %+v", d)
	}
}

// TestReplica: a replica refuses to write, which may be over in a moment; nothing ran.
func TestReplica(t *testing.T) {
	primary, replica := testservers.Redis(t), testservers.Redis(t)
	host, port, _ := strings.Cut(primary.Addr(), ":")
	s := open(t, redisstore.Config{Addrs: []string{replica.Addr()}, Timeout: hasty})
	c := headgate.One("w", "k", headgate.MustParseLimit("fixed_window 10/36500d"))
	awaitWorks(t, s)
	do(t, replica, "REPLICAOF", host, port)
	if err := replica.AwaitInfo("replication", "master_link_status", "up", recovery); err != nil {
		t.Fatal(err)
	}
	awaitError(t, s, c, "failover")
	done := make(chan error, 1)
	go func() { // this one waits for the replica to be a primary
		slow := open(t, redisstore.Config{Addrs: []string{replica.Addr()}, Timeout: recovery, Namespace: "replica"})
		_, err := headgate.Take(context.Background(), slow, c)
		done <- err
	}()
	do(t, replica, "REPLICAOF", "NO", "ONE")
	if err := <-done; err != nil {
		t.Error(err)
	}
	awaitWorks(t, s)
}

// awaitError takes until it fails with CodeUnavailable and a text.
func awaitError(t *testing.T, s headgate.Limiter, c headgate.Charge, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), recovery)
	defer cancel()
	err := testservers.Poll(ctx, func() error {
		_, err := headgate.Take(ctx, s, c)
		if headgate.CodeOf(err) != headgate.CodeUnavailable || !strings.Contains(err.Error(), text) {
			return errors.New("another answer")
		}
		return nil
	})
	if err != nil {
		t.Fatalf("never unavailable with %q: %v", text, err)
	}
}

func must(t *testing.T, s headgate.Limiter, charges ...headgate.Charge) headgate.Decision {
	t.Helper()
	d, err := headgate.Take(context.Background(), s, charges...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func do(t *testing.T, srv *testservers.RedisServer, args ...any) any {
	t.Helper()
	v, err := srv.Do(args...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

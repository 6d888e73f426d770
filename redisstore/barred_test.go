package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// told is an Observer that keeps what it is told of calls.
type told struct {
	nobody
	mu    sync.Mutex
	calls []string        // guarded by mu
	took  []time.Duration // guarded by mu
}

func (o *told) Call(node, script string, takes int, took time.Duration, code headgate.Code) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls, o.took = append(o.calls, fmt.Sprintf("%q %s %d %q", node, script, takes, code)), append(o.took, took)
}

func (o *told) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.calls)
}

// TestStoppedProcess: of a call that was on the wire while this process was stopped for ten seconds, the node is blamed for no
// more than the time-out; one that was answered took as long as it took.
func TestStoppedProcess(t *testing.T) {
	t.Parallel()
	o := &told{}
	s := openFake(t, &fakeClient{}, Config{Observer: o, Timeout: 200 * time.Millisecond})
	for _, end := range []func(*watcher){
		func(w *watcher) { w.late() },
		func(w *watcher) { w.ends(headgate.CodeIndeterminate) },
		func(w *watcher) { w.ends("") },
	} {
		w := &watcher{l: &s.lanes[0], placeless: true}
		w.sends("take", 1, time.Now().Add(-10*time.Second))
		end(w)
	}
	if o.took[0] != 200*time.Millisecond || o.took[1] != 200*time.Millisecond || o.took[2] < 10*time.Second {
		t.Errorf("took %v", o.took)
	}
}

// switchable is a Breaker for all nodes.
type switchable struct{ open atomic.Bool }

func (s *switchable) Open(string) bool { return s.open.Load() }

// TestToldOnce: the observer is told of a call once, however often it is repeated and however late the client comes back.
func TestToldOnce(t *testing.T) {
	t.Parallel()
	loading := says("LOADING Redis is loading the dataset in memory")
	forever := make([]error, 1000)
	for i := range forever {
		forever[i] = loading
	}
	for _, c := range []struct {
		name    string
		answers []error
		want    string
	}{
		{"answered", nil, `"" take 1 ""`},
		{"refused for a moment", []error{loading, loading, loading}, `"" take 1 ""`},
		{"an unknown script", []error{says("NOSCRIPT No matching script.")}, `"" take 1 ""`},
		{"moved", []error{says("MOVED 1 192.0.2.1:6379")}, `"" take 1 ""`},
		{"apart", []error{says("TRYAGAIN Multiple keys request during rehashing of slot")}, `"" take 1 ""`},
		{"refused for good", []error{says("OOM command not allowed when used memory > 'maxmemory'.")}, `"" take 1 "unavailable"`},
		{"broken", []error{errors.New("EOF")}, `"" take 1 "indeterminate"`},
		{"refused until the deadline", forever, `"" take 1 "unavailable"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := &told{}
				s := openFake(t, &fakeClient{answers: c.answers}, Config{Observer: o, Timeout: 100 * time.Millisecond, ConnectTimeout: 100 * time.Millisecond})
				_, _ = takeOne(s)
				await(t, func() bool { return o.count() > 0 })
				_ = s.Close() // after which nothing is under way
				if fmt.Sprint(o.calls) != "["+c.want+"]" {
					t.Errorf("told %q, want %q", o.calls, c.want)
				}
			})
		})
	}
}

// TestToldInTime: a call without an answer is told of at the time-out, while the client still hangs, and its place goes to the next;
// its answer, when it comes, is no news.
func TestToldInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const timeout = 100 * time.Millisecond
		o := &told{}
		f := &fakeClient{block: make(chan struct{}), entered: make(chan struct{}, 100)}
		s := openFake(t, f, Config{Observer: o, MaxInFlight: 1, Timeout: timeout})
		for i := range 3 {
			start := time.Now()
			if _, err := takeOne(s); headgate.CodeOf(err) == "" {
				t.Fatalf("take %d has an answer", i)
			}
			await(t, func() bool { return o.count() > i })
			if took := time.Since(start); took > timeout+time.Millisecond { // await looks each millisecond
				t.Errorf("told of call %d after %s", i, took)
			}
		}
		close(f.block)
		await(t, func() bool { return s.stuck.Load() == 0 })
		_ = s.Close()
		want := `["" take 1 "indeterminate" "" take 1 "indeterminate" "" take 1 "indeterminate"]`
		if got := fmt.Sprint(o.calls); got != want {
			t.Errorf("told %s, want %s", got, want)
		}
		for _, took := range o.took {
			if took < timeout {
				t.Errorf("told of a call that took %s, before the time-out", took)
			}
		}
	})
}

// TestToldApart: of takes that go one by one the last tells, of the failure if one failed.
func TestToldApart(t *testing.T) {
	t.Parallel()
	o := &told{}
	f := &fakeClient{block: make(chan struct{}), entered: make(chan struct{}, 100)}
	s := openFake(t, f, Config{Observer: o, MaxInFlight: 1})
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = takeOne(s) })
	<-f.entered
	for range 3 {
		wg.Go(func() { _, _ = takeOne(s) })
	}
	await(t, func() bool { return s.queued.Load() == 3 })
	f.mu.Lock()
	f.answers = []error{nil, says("TRYAGAIN Multiple keys request during rehashing of slot"), nil, says("OOM no memory"), nil}
	f.mu.Unlock()
	close(f.block)
	wg.Wait()
	await(t, func() bool { return o.count() == 2 }) // callers have their answers before it is told
	_ = s.Close()
	if got, want := fmt.Sprint(o.calls), `["" take 1 "" "" take 3 "unavailable"]`; got != want {
		t.Errorf("told %s, want %s", got, want)
	}
}

// TestClosingIsNoFailure: what the store's own end cuts short is not told of.
func TestClosingIsNoFailure(t *testing.T) {
	t.Parallel()
	o := &told{}
	f := &fakeClient{block: make(chan struct{}), entered: make(chan struct{}, 100)}
	s := openFake(t, f, Config{Observer: o})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = takeOne(s)
	}()
	<-f.entered
	f.mu.Lock()
	f.answers = []error{errors.New("use of closed network connection")}
	f.mu.Unlock()
	s.stop() // the first that Close does to calls on the wire
	close(f.block)
	<-done
	if o.count() != 0 {
		t.Errorf("told %q", o.calls)
	}
}

// TestBarred: while the breaker is open everything fails at once, with one error that says why, and nothing is sent.
func TestBarred(t *testing.T) { // not parallel: it counts allocations
	f, b := &fakeClient{}, &switchable{}
	s := openFake(t, f, Config{Breaker: b, Cluster: true})
	limit, slots := headgate.MustParseLimit("token_bucket 100/s"), headgate.MustParseLimit("concurrency 5 ttl=1m")
	var spread []headgate.Charge
	for i := range 20 {
		spread = append(spread, headgate.One("s", fmt.Sprint("k", i), limit))
	}
	holder := headgate.Charge{Slot: "c", Key: "k", Limit: slots, Cost: 1, Holder: "h"}
	d, err := headgate.Take(t.Context(), s, spread[0])
	if err != nil {
		t.Fatal(err)
	}
	calls := len(f.calls)
	b.open.Store(true)
	again := headgate.Decision{}
	for name, do := range map[string]func() error{
		"take":            func() error { return s.Take(t.Context(), spread[:1], &again) },
		"spread take":     func() error { return s.Take(t.Context(), spread, &again) },
		"take at a time":  func() error { return s.At(time.Unix(0, 0)).Take(t.Context(), spread[:1], &again) },
		"refund":          func() error { return s.Refund(t.Context(), spread[:1], &d) },
		"renew":           func() error { _, err := s.Renew(t.Context(), &holder); return err },
		"release":         func() error { return s.Release(t.Context(), &holder) },
		"reset":           func() error { return s.Reset(t.Context(), "s", "k") },
		"inspect":         func() error { _, err := s.Inspect(t.Context(), "s", "k"); return err },
		"beat":            func() error { _, _, err := s.Beat(t.Context(), "i", time.Second); return err },
		"note":            func() error { return s.Note(t.Context(), "n", "v", 0) },
		"a fault is told": func() error { return s.Take(t.Context(), []headgate.Charge{{}}, &again) },
	} {
		err := do()
		if name == "a fault is told" {
			if headgate.CodeOf(err) != headgate.CodeInvalidLimit {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if !errors.Is(err, ErrBreakerOpen) || headgate.CodeOf(err) != headgate.CodeUnavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
	if d.Outcomes[0].Receipt.Charged != 1 {
		t.Errorf("a refund that was not made is off the receipt: %+v", d)
	}
	if len(f.calls) != calls {
		t.Errorf("%d calls were made", len(f.calls)-calls)
	}
	for name, charges := range map[string][]headgate.Charge{"lone": spread[:1], "spread": spread} {
		if n := testing.AllocsPerRun(100, func() { _ = s.Take(context.Background(), charges, &again) }); n != 0 {
			t.Errorf("a %s take that is barred allocates %v times", name, n)
		}
	}
	b.open.Store(false)
	if err := s.Refund(t.Context(), spread[:1], &d); err != nil || len(f.calls) != calls+1 {
		t.Errorf("once it is closed: %v, %d calls", err, len(f.calls)-calls)
	}
}

// TestBarredInQueue: what waits when the breaker opens is answered, and not sent, when its turn comes.
func TestBarredInQueue(t *testing.T) {
	t.Parallel()
	f, b := &fakeClient{block: make(chan struct{}), entered: make(chan struct{}, 100)}, &switchable{}
	s := openFake(t, f, Config{Breaker: b, MaxInFlight: 1})
	results := make(chan error, 10)
	ask := func() { _, err := takeOne(s); results <- err }
	go ask()
	<-f.entered
	for range 3 {
		go ask()
	}
	await(t, func() bool { return s.queued.Load() == 3 })
	b.open.Store(true)
	close(f.block)
	barred := 0
	for range 4 {
		if err := <-results; errors.Is(err, ErrBreakerOpen) {
			barred++
		} else if err != nil {
			t.Error(err)
		}
	}
	if barred != 3 || len(f.calls) != 1 {
		t.Errorf("%d were barred, %d calls made", barred, len(f.calls))
	}
	b.open.Store(false)
	if allowed, err := takeOne(s); !allowed || err != nil {
		t.Errorf("once it is closed: %v, %v", allowed, err)
	}
}

// BenchmarkBarred is a take while the breaker is open.
func BenchmarkBarred(b *testing.B) {
	open := &switchable{}
	open.open.Store(true)
	s, err := New(b.Context(), Config{Client: &fakeClient{}, Breaker: open})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	charges, d := []headgate.Charge{headgate.One("s", "k", headgate.MustParseLimit("token_bucket 100/s"))}, headgate.Decision{}
	b.ReportAllocs()
	for b.Loop() {
		_ = s.Take(context.Background(), charges, &d)
	}
}

// TestBarredAsksForNodes: what the breaker holds back asks where the keys are served by now, or a failover would be seen late.
func TestBarredAsksForNodes(t *testing.T) {
	t.Parallel()
	b := &switchable{}
	b.open.Store(true)
	s := openFake(t, &fakeClient{}, Config{Breaker: b})
	s.doubted = make(chan struct{}, 1)
	for range 2 { // it does not wait for who looks after it
		if _, err := takeOne(s); !errors.Is(err, ErrBreakerOpen) {
			t.Fatal(err)
		}
	}
	if len(s.doubted) != 1 {
		t.Error("nobody asks")
	}
}

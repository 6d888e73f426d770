package lookup_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/policy/internal/lookup"
)

// deaf returns a look-up that does not honour its context: it ends when it is let go.
func deaf(value string) (ask lookup.Func, let func()) {
	hold := make(chan struct{})
	return func(context.Context) (string, bool, error) { <-hold; return value, true, nil }, sync.OnceFunc(func() { close(hold) })
}

func TestOneLookUpForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := lookup.New(lookup.Config{Keep: time.Minute, Timeout: time.Second})
		var calls atomic.Int64
		slow := func(context.Context) (string, bool, error) {
			time.Sleep(500 * time.Millisecond)
			return "vip", true, errOnSecond(calls.Add(1))
		}
		start := time.Now()
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if got := answer(c.Get(t.Context(), "u1", slow)); got != found("vip") {
					t.Errorf("got %+v", got)
				}
			})
		}
		wg.Wait()
		if took := time.Since(start); calls.Load() != 1 || took != 500*time.Millisecond {
			t.Errorf("%d calls in %s", calls.Load(), took)
		}
	})
}

func errOnSecond(n int64) error {
	if n > 1 {
		return errors.New("called again")
	}
	return nil
}

// TestCallerLeaves: at the end of its context; the look-up goes on and is kept.
func TestCallerLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := lookup.New(lookup.Config{Keep: time.Minute, Timeout: time.Second})
		type key struct{}
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "trace"), 100*time.Millisecond)
		defer cancel()
		start := time.Now()
		var seen error
		got := answer(c.Get(ctx, "u1", func(ctx context.Context) (string, bool, error) {
			time.Sleep(900 * time.Millisecond)
			seen = ctx.Err()
			value, _ := ctx.Value(key{}).(string)
			return value, true, nil
		}))
		if took := time.Since(start); got != failed || took != 100*time.Millisecond {
			t.Errorf("got %+v after %s", got, took)
		}
		time.Sleep(800 * time.Millisecond)
		synctest.Wait()
		if a, hit := c.Cached("u1"); !hit || a != found("trace") || seen != nil {
			t.Errorf("the look-up was not kept: %+v, %v, its context said %v", a, hit, seen)
		}
	})
}

// TestDeafLookUp: the time is up whatever the look-up does; it holds its place until it ends, and counts for what it brings.
func TestDeafLookUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := lookup.New(lookup.Config{Keep: time.Minute, Timeout: time.Second, InFlight: 1})
		ask, let := deaf("vip")
		start := time.Now()
		for _, want := range []time.Duration{time.Second, time.Second} { // the second caller need not wait: the time is up already
			if got := answer(c.Get(t.Context(), "u1", ask)); got != failed || time.Since(start) != want {
				t.Errorf("got %+v after %s, want a failure after %s", got, time.Since(start), want)
			}
		}
		if got := answer(c.Get(t.Context(), "u2", serving("x").ask)); got != failed || time.Since(start) != time.Second {
			t.Errorf("a second look-up: got %+v after %s", got, time.Since(start))
		}
		let()
		synctest.Wait()
		if a, hit := c.Cached("u1"); !hit || a != found("vip") {
			t.Errorf("got %+v, %v", a, hit)
		}
		if got := answer(c.Get(t.Context(), "u2", serving("x").ask)); got != found("x") {
			t.Errorf("the place was not given back: %+v", got)
		}
		if got := c.Stats(); got.Shed != 1 || got.Lookups != 2 || got.Failures != 0 {
			t.Errorf("%+v", got)
		}
	})
}

// TestTimeout: a look-up that honours its context is told when its time is up.
func TestTimeout(t *testing.T) {
	t.Parallel()
	for timeout, want := range map[time.Duration]time.Duration{0: 100 * time.Millisecond, time.Second: time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var told error
			c := lookup.New(lookup.Config{Keep: time.Minute, Timeout: timeout, OnFailure: func(err error) { told = err }})
			start := time.Now()
			got := answer(c.Get(t.Context(), "u1", func(ctx context.Context) (string, bool, error) {
				<-ctx.Done()
				return "", false, ctx.Err()
			}))
			synctest.Wait()
			if took := time.Since(start); got != failed || took != want || !errors.Is(told, context.DeadlineExceeded) {
				t.Errorf("timeout %s: got %+v after %s, told %v", timeout, got, took, told)
			}
		})
	}
}

// TestTimeIsGivenBack: the context of a look-up ends with it, and not only when its time is up.
func TestTimeIsGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := lookup.New(lookup.Config{Keep: time.Minute, Timeout: time.Hour})
		start, ended := time.Now(), make(chan struct{})
		c.Get(t.Context(), "u1", func(ctx context.Context) (string, bool, error) {
			context.AfterFunc(ctx, func() { close(ended) })
			return "vip", true, nil
		})
		<-ended
		if took := time.Since(start); took != 0 {
			t.Errorf("its context ended after %s", took)
		}
	})
}

// TestShed: what is over the bound fails at once, or is given what is past its time, and is not remembered.
func TestShed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := lookup.New(lookup.Config{Keep: time.Second, Timeout: time.Minute}), serving("vip")
		c.Get(t.Context(), "old", s.ask)
		time.Sleep(2 * time.Second)
		ask, let := deaf("vip")
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() { c.Get(t.Context(), strconv.Itoa(i), ask) })
		}
		synctest.Wait()
		start := time.Now()
		if got := answer(c.Get(t.Context(), "new", s.ask)); got != failed {
			t.Errorf("a new key: %+v", got)
		}
		if got := answer(c.Get(t.Context(), "old", s.ask)); got != found("vip") {
			t.Errorf("a key that was known: %+v", got)
		}
		if took := time.Since(start); took != 0 || c.Stats().InFlight != 64 || c.Stats().Shed != 2 {
			t.Errorf("after %s: %+v", took, c.Stats())
		}
		let()
		wg.Wait()
		if got := answer(c.Get(t.Context(), "new", s.ask)); got != found("vip") {
			t.Errorf("afterwards: %+v", got)
		}
	})
}

// TestStaleDoesNotWait: while a service hangs, a known key waits for it once and not again.
func TestStaleDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := lookup.New(lookup.Config{Keep: 10 * time.Second, Timeout: time.Second}), serving("vip")
		hang := func(ctx context.Context) (string, bool, error) { <-ctx.Done(); return "", false, ctx.Err() }
		c.Get(t.Context(), "u1", s.ask)
		time.Sleep(10 * time.Second)
		for i := range 80 {
			start := time.Now()
			got := answer(c.Get(t.Context(), "u1", hang))
			synctest.Wait()
			if took := time.Since(start); got != found("vip") || took > 0 && i > 0 {
				t.Errorf("call %d: %+v after %s", i, got, took)
			}
			time.Sleep(time.Second)
		}
	})
}

// TestNoReturn: a look-up that panics, or ends its goroutine, has failed and gives its place back.
func TestNoReturn(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ask  lookup.Func
		want string
	}{
		"panic":  {func(context.Context) (string, bool, error) { return "vip"[:len(t.Name())*100], true, nil }, "panicked: runtime error: slice bounds"},
		"goexit": {func(context.Context) (string, bool, error) { runtime.Goexit(); return "", true, nil }, "did not return"},
		"unfit":  {serving("a\x00").ask, "control characters"},
		"error":  {func(context.Context) (string, bool, error) { return "vip", true, errDown }, "is down"},
	} {
		synctest.Test(t, func(t *testing.T) {
			told := make(chan error, 1)
			c := lookup.New(lookup.Config{Keep: time.Minute, InFlight: 1, OnFailure: func(err error) { told <- err }})
			if got := answer(c.Get(t.Context(), "u1", tc.ask)); got != failed {
				t.Errorf("%s: got %+v", name, got)
			}
			if err := <-told; !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: told %q, want %q", name, err, tc.want)
			}
			if got := answer(c.Get(t.Context(), "u2", serving("vip").ask)); got != found("vip") {
				t.Errorf("%s: the next look-up: %+v", name, got)
			}
		})
	}
}

// TestBoundsHold under many callers, keys that come and go, and a service that fails now and then.
func TestBoundsHold(t *testing.T) {
	t.Parallel()
	const keys, inFlight, entries = 40, 5, 10
	c := lookup.New(lookup.Config{Keep: time.Millisecond, Timeout: time.Second, InFlight: inFlight, Entries: entries})
	var total atomic.Int64
	var each [keys]atomic.Int64
	ask := func(key int) lookup.Func {
		return func(context.Context) (string, bool, error) {
			defer total.Add(-1)
			defer each[key].Add(-1)
			if all, mine := total.Add(1), each[key].Add(1); all > inFlight || mine > 1 {
				t.Errorf("%d look-ups under way, %d of one key", all, mine)
			}
			runtime.Gosched()
			switch key % 4 {
			case 0:
				return "", false, nil
			case 1:
				return "", false, errDown
			}
			return strconv.Itoa(key), true, nil
		}
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 3000 {
				key := (i*7 + g*13) % keys
				value, ok, bad := c.Get(t.Context(), strconv.Itoa(key), ask(key))
				if ok && (bad || value != strconv.Itoa(key) || key%4 < 2) || !ok && value != "" || key%4 == 1 && !bad {
					t.Errorf("key %d: %q, %v, %v", key, value, ok, bad)
				}
			}
		})
	}
	wg.Wait()
	s := c.Stats()
	if s.Hits+s.Misses+s.Shed != 8*3000 || s.Entries > 2*entries || s.Lookups < s.Failures || s.Hits == 0 || s.Failures == 0 {
		t.Errorf("%+v", s)
	}
}

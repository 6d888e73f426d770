package sqlorders

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// handClock is a clock that a test moves.
type handClock struct{ us atomic.Int64 }

func newHandClock() *handClock {
	c := &handClock{}
	c.us.Store(time.Date(2030, 1, 2, 11, 0, 0, 0, time.UTC).UnixMicro())
	return c
}

func (c *handClock) now() time.Time          { return time.UnixMicro(c.us.Load()) }
func (c *handClock) advance(d time.Duration) { c.us.Add(d.Microseconds()) }

// eachDBAt runs a test on every database, each with a clock of its own.
func eachDBAt(t *testing.T, f func(t *testing.T, o *Orders, clock *handClock)) {
	t.Helper()
	for name, url := range urls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := newHandClock()
			f(t, mustOpen(t, Config{URL: url(t), MaxConns: 8, Timeout: patience, Now: clock.now}), clock)
		})
	}
}

func TestLease(t *testing.T) {
	t.Parallel()
	type step struct {
		after  time.Duration
		holder string // "-a": a gives it back
		fence  int64
		held   bool
	}
	steps := []step{
		{0, "a", 1, true},
		{4 * time.Second, "b", 1, false},
		{0, "a", 1, true}, // renewed for 5 s
		{4 * time.Second, "b", 1, false},
		{time.Second, "b", 2, true}, // to the microsecond
		{0, "a", 2, false},
		{0, "-a", 2, false}, // not a's to give back
		{0, "a", 2, false},
		{0, "-b", 2, false},
		{0, "-b", 2, false}, // again
		{0, "b", 3, true},   // what was given back is taken anew
		{time.Hour, "b", 3, true},
		{time.Hour, "a", 4, true},
		{0, "A", 4, false},
		{0, "-A", 4, false},
		{0, "a ", 4, false},
		{0, "a", 4, true},
	}
	eachDBAt(t, func(t *testing.T, o *Orders, clock *handClock) {
		for i, s := range steps {
			clock.advance(s.after)
			if holder, back := strings.CutPrefix(s.holder, "-"); back {
				noError(t, "Release", o.Release(t.Context(), "job", holder))
				continue
			}
			fence, held, err := o.Lease(t.Context(), "job", s.holder, 5*time.Second)
			noError(t, "Lease", err)
			if fence != s.fence || held != s.held {
				t.Fatalf("step %d, %q: got fence %d, held %v; want %d, %v", i, s.holder, fence, held, s.fence, s.held)
			}
		}
		fence, held, err := o.Lease(t.Context(), "other job", "b", time.Second)
		if err != nil || fence != 1 || !held {
			t.Fatalf("another lease: %d, %v, %v", fence, held, err)
		}
	})
}

// TestLeaseWhenTheClockIsSetBack: a lease that nobody renews ends for those who have watched it for as long as it lasts, whatever the
// clock of the database says; one that is renewed does not, and neither does one of which nobody knows how long it lasts.
func TestLeaseWhenTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	const ttl = 5 * time.Second
	type step struct {
		after  time.Duration // by the clock of those who ask; that of the database stands still
		holder string
		fence  int64
		held   bool
	}
	cases := map[string][]step{
		"its holder is dead": {{time.Second, "b", 1, false}, {ttl - time.Microsecond, "b", 1, false}, {time.Microsecond, "b", 2, true}, {time.Hour, "b", 2, true}},
		"it is renewed": {
			{time.Second, "b", 1, false}, {ttl - time.Second, "a", 1, true}, {time.Second, "b", 1, false}, {ttl - time.Microsecond, "b", 1, false}, {time.Microsecond, "b", 2, true},
		},
		"its holder comes back": {{time.Second, "b", 1, false}, {2 * ttl, "a", 1, true}, {0, "b", 1, false}},
		"another was quicker":   {{time.Second, "b", 1, false}, {ttl, "b", 2, true}, {0, "c", 2, false}, {ttl - time.Microsecond, "c", 2, false}, {time.Microsecond, "c", 3, true}},
	}
	eachDBAt(t, func(t *testing.T, o *Orders, clock *handClock) {
		watch := newHandClock()
		o.leases = newSightings(watch.now)
		lease := func(name string, s step) {
			t.Helper()
			watch.advance(s.after)
			clock.advance(time.Microsecond)
			fence, held, err := o.Lease(t.Context(), name, s.holder, ttl)
			noError(t, "Lease", err)
			if fence != s.fence || held != s.held {
				t.Fatalf("%s, %q: got fence %d, held %v; want %d, %v", name, s.holder, fence, held, s.fence, s.held)
			}
		}
		for name, steps := range cases {
			lease(name, step{0, "a", 1, true})
			clock.advance(-time.Hour)
			for _, s := range steps {
				lease(name, s)
			}
		}
		lease("of an older program", step{0, "a", 1, true})
		mustExec(t, o, "UPDATE lease SET life = 0 WHERE name = 'of an older program'")
		clock.advance(-time.Hour)
		lease("of an older program", step{0, "b", 1, false})
		lease("of an older program", step{time.Hour, "b", 1, false})
	})
}

func TestLeaseUnderContention(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		const holders = 16
		var held atomic.Int64
		var wg sync.WaitGroup
		for i := range holders {
			wg.Go(func() {
				fence, ok, err := o.Lease(t.Context(), "job", string(rune('a'+i)), time.Minute)
				if err != nil || fence != 1 {
					t.Errorf("fence %d, %v", fence, err)
				}
				if ok {
					held.Add(1)
				}
			})
		}
		wg.Wait()
		if held.Load() != 1 {
			t.Fatalf("%d hold it", held.Load())
		}
	})
}

// Each holder that gives a lease back makes way for exactly one other, and no two have the same fence.
func TestLeaseFencesAreNeverShared(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		const holders, rounds = 8, 10
		var mu sync.Mutex
		seen := map[int64]string{}
		var wg sync.WaitGroup
		for i := range holders {
			holder := string(rune('a' + i))
			wg.Go(func() {
				for range rounds {
					fence, ok, err := o.Lease(t.Context(), "job", holder, time.Minute)
					if err != nil {
						t.Error(err)
						return
					}
					if !ok {
						continue
					}
					mu.Lock()
					if by := seen[fence]; by != "" {
						t.Errorf("fence %d was that of %s, and is that of %s", fence, by, holder)
					}
					seen[fence] = holder
					mu.Unlock()
					if err := o.Release(t.Context(), "job", holder); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if len(seen) == 0 {
			t.Fatal("nobody ever held it")
		}
	})
}

func TestLeaseByTheClockOfTheDatabase(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		before, err := o.Now(t.Context())
		noError(t, "Now", err)
		if skew := time.Since(before); skew < -time.Minute || skew > time.Minute {
			t.Fatalf("the clock of a database of this machine is off by %s", skew)
		}
		if _, held, err := o.Lease(t.Context(), "job", "a", 50*time.Millisecond); err != nil || !held {
			t.Fatalf("held %v, %v", held, err)
		}
		if err := pollUntil(t, func() (bool, error) {
			_, held, err := o.Lease(t.Context(), "job", "b", time.Minute)
			return held, err
		}); err != nil {
			t.Fatal(err)
		}
		after, err := o.Now(t.Context())
		noError(t, "Now", err)
		if passed := after.Sub(before); passed < 50*time.Millisecond {
			t.Fatalf("b has it after %s", passed)
		}
	})
}

func TestBadLeases(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, o *Orders) {
		for _, bad := range []string{"", "a\x00", "é", strings.Repeat("x", 191), "\n"} {
			_, _, err := o.Lease(t.Context(), bad, "a", time.Second)
			wantCode(t, bad, err, flashsale.CodeInvalidArgument)
			_, _, err = o.Lease(t.Context(), "job", bad, time.Second)
			wantCode(t, bad, err, flashsale.CodeInvalidArgument)
			wantCode(t, bad, o.Release(t.Context(), "job", bad), flashsale.CodeInvalidArgument)
		}
		for _, ttl := range []time.Duration{0, -1, 25 * time.Hour} {
			_, _, err := o.Lease(t.Context(), "job", "a", ttl)
			wantCode(t, ttl.String(), err, flashsale.CodeInvalidArgument)
		}
	})
}

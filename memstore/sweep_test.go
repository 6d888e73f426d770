package memstore

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	headgate "github.com/headgate-io/headgate"
)

func TestTheSweeperForgetsWhatIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, Config{})
		short, long := headgate.MustParseLimit("token_bucket 1/s burst=1"), headgate.MustParseLimit("fixed_window 1/day")
		for i := range 5000 {
			take(t, s, headgate.One("short", fmt.Sprint(i), short))
		}
		take(t, s, headgate.One("long", "k", long))
		time.Sleep(5 * time.Second)
		if got := s.Stats(); got.Keys != 5001 {
			t.Errorf("%d keys after 5 s, want all 5001: an idle key lingers", got.Keys)
		}
		time.Sleep(10 * time.Second)
		if got := s.Stats(); got.Keys != 1 || got.Slots != 1 || got.Forgotten != 5000 {
			t.Errorf("the figures are %+v", got)
		}
		size := 0
		for i := range s.table.shards {
			if b := s.table.shards[i].buckets.Load(); b != nil {
				size += len(*b)
			}
		}
		if size > minBuckets {
			t.Errorf("%d buckets for one key", size)
		}
		if d := take(t, s, headgate.One("long", "k", long)); d.Allowed {
			t.Error("a denied key was forgotten")
		}
		if d := take(t, s, headgate.One("short", "1", short)); !d.Allowed {
			t.Error("a forgotten key is denied")
		}
	})
}

func TestKeysUsedAtATimePassedInStayForAnHour(t *testing.T) {
	for _, when := range []time.Time{time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2090, 1, 1, 0, 0, 0, 0, time.UTC)} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore(t, Config{SweepInterval: time.Second})
			l := headgate.MustParseLimit("token_bucket 1/s burst=1")
			take(t, s.At(when), headgate.One("s", "k", l))
			time.Sleep(time.Hour)
			if d := take(t, s.At(when), headgate.One("s", "k", l)); d.Allowed {
				t.Errorf("%d: forgotten within the hour", when.Year())
			}
			time.Sleep(time.Hour + time.Minute)
			if got := s.Stats(); got.Keys != 0 {
				t.Errorf("%d: still there after two hours", when.Year())
			}
		})
	}
}

func TestAKeyUsedByBothClocksIsKeptByTheStores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, Config{SweepInterval: time.Second})
		l := headgate.MustParseLimit("fixed_window 1/1000d")
		take(t, s.At(time.Now().Add(-time.Minute)), headgate.Charge{Slot: "s", Key: "k", Limit: l, Cost: 1})
		take(t, s, headgate.One("s", "k", l))
		time.Sleep(3 * time.Hour)
		if d := take(t, s, headgate.One("s", "k", l)); d.Allowed {
			t.Error("a key that is denied by the store's clock was forgotten")
		}
	})
}

func TestAFullStoreHurriesToMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, Config{MaxKeys: 1000, MaxKeysPerSlot: 1000})
		l := headgate.MustParseLimit("token_bucket 1/100ms burst=1")
		for i := range 1001 {
			take(t, s, headgate.One("s", fmt.Sprint(i), l))
		}
		time.Sleep(300 * time.Millisecond)
		take(t, s, headgate.One("s", "more", l))
		time.Sleep(300 * time.Millisecond)
		if got := s.Stats(); got.Keys > 1 {
			t.Errorf("%d keys: the idle ones did not give way", got.Keys)
		}
	})
}

// A clock that is set forward and back again must not cost a denied key its state meanwhile.
func TestAJumpOfTheClockForgetsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var jump time.Duration
		set := func(d time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			jump = d
		}
		s := newStore(t, Config{SweepInterval: time.Second, Now: func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(jump)
		}})
		l := headgate.MustParseLimit("fixed_window 1/1h")
		take(t, s, headgate.One("s", "k", l))
		time.Sleep(time.Second)
		set(48 * time.Hour)
		time.Sleep(20 * time.Minute)
		set(0)
		if d := take(t, s, headgate.One("s", "k", l)); d.Allowed {
			t.Error("the state was forgotten while the clock was wrong")
		}
		set(48 * time.Hour)
		time.Sleep(62 * time.Minute)
		if got := s.Stats(); got.Keys != 0 {
			t.Error("a clock that stays ahead is never believed")
		}
	})
}

// A clock that is set back while the sweeper is at work must not cost a key its state that is used before the sweeper comes to it.
func TestAClockThatIsSetBackDuringASweepForgetsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var back atomic.Int64
		s := newStore(t, Config{SweepInterval: time.Hour, Now: func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }})
		for _, text := range []string{"token_bucket 5/1s burst=5", "fixed_window 5/1s", "sliding_log 5/1s", "sliding_window 5/1s", "leaky_bucket 5/1s capacity=5"} {
			l := headgate.MustParseLimit(text)
			w := sweeper{s: s}
			back.Store(0)
			if w.tell(); !w.known {
				t.Fatal("the clock tells nothing")
			}
			w.idle = w.now
			back.Store(int64(time.Hour))
			spend := func() (n int) {
				for take(t, s, headgate.One("s", text, l)).Allowed {
					n++
				}
				return n
			}
			if n := spend(); n != 5 {
				t.Fatalf("%s: %d passed, want 5", text, n)
			}
			for w.shard = range shards {
				for w.sweepBatch(); w.bucket != 0; {
					w.sweepBatch()
				}
			}
			if n := spend(); n != 0 {
				t.Errorf("%s: the state was forgotten, and %d more passed", text, n)
			}
		}
	})
}

type observed struct {
	keys, slots           int
	overflowed, forgotten uint64
	calls                 int
}

func (o *observed) ObserveKeys(keys, slots int, overflowed, forgotten uint64) {
	*o = observed{keys, slots, overflowed, forgotten, o.calls + 1}
}

func TestTheObserverIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o observed
		s := newStore(t, Config{SweepInterval: time.Second, Observer: &o})
		take(t, s, headgate.One("s", "k", headgate.MustParseLimit("fixed_window 1/day")))
		time.Sleep(3500 * time.Millisecond)
		synctest.Wait()
		if want := (observed{1, 1, 0, 0, 3}); o != want {
			t.Errorf("observed %+v, want %+v", o, want)
		}
	})
}

func TestTheClockFollowsTheWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var step time.Duration
		c := clock{wall: func() time.Time { return time.Now().Add(step) }}
		check := func(what string, off, tolerated time.Duration) {
			t.Helper()
			now, err := c.now()
			if err != nil {
				t.Fatal(err)
			}
			if d := time.UnixMicro(now).Sub(time.Now().Add(off)); d < -tolerated || d > tolerated {
				t.Errorf("%s: off by %s", what, d)
			}
		}
		check("at first", 0, 0)
		time.Sleep(99 * time.Millisecond)
		check("by the monotonic clock", 0, time.Microsecond)
		step = -time.Hour
		check("set back, not looked at yet", 0, time.Microsecond)
		time.Sleep(time.Millisecond)
		check("set back", -time.Hour, time.Microsecond)
		step += 500 * time.Microsecond
		time.Sleep(100 * time.Millisecond)
		check("a little off", -time.Hour, time.Microsecond)
		step += time.Millisecond
		time.Sleep(100 * time.Millisecond)
		check("more than a little off", step, time.Microsecond)
		step = 100 * 365 * 24 * time.Hour
		time.Sleep(100 * time.Millisecond)
		if _, err := c.now(); headgate.CodeOf(err) != headgate.CodeInvalidTime {
			t.Errorf("a year out of bounds: %v", err)
		}
	})
}

func TestCloseEndsTheSweeperAndLetsTakesFinish(t *testing.T) {
	s := New(Config{SweepInterval: time.Millisecond})
	l := headgate.MustParseLimit("token_bucket 1000/s")
	ctx := context.Background()
	var wg sync.WaitGroup
	started := make(chan struct{}, 4)
	for g := range 4 {
		wg.Go(func() {
			var d headgate.Decision
			for i := 0; ; i++ {
				err := s.Take(ctx, []headgate.Charge{headgate.One("s", fmt.Sprint(g, i%100), l)}, &d)
				if i == 100 {
					started <- struct{}{}
				}
				if err != nil {
					if headgate.CodeOf(err) != headgate.CodeClosed {
						t.Errorf("after Close: %v", err)
					}
					return
				}
			}
		})
	}
	for range 4 {
		<-started
	}
	var closers sync.WaitGroup
	for range 3 {
		closers.Go(func() {
			if err := s.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
	closers.Wait()
	wg.Wait()
}

// Takes of many charges in any order, refunds, resets, holders, new keys and the sweeper, all at once: nobody waits for
// ever, and what may not be exceeded is not.
func TestEverythingAtOnce(t *testing.T) {
	s := newStore(t, Config{MaxKeys: 200, MaxKeysPerSlot: 60, SweepInterval: 100 * time.Microsecond})
	never, quick := headgate.MustParseLimit("fixed_window 500/1000d"), headgate.MustParseLimit("token_bucket 1/1ms burst=1")
	held := headgate.MustParseLimit("concurrency 3 ttl=1h")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var mu sync.Mutex
	charged, inside := 0, 0
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			var d headgate.Decision
			slot := headgate.Charge{Slot: "held", Key: "k", Limit: held, Cost: 1, Holder: fmt.Sprint("h", g)}
			for i := range 400 {
				charges := []headgate.Charge{headgate.One("total", "all", never), headgate.One("q", fmt.Sprint("k", (i*7+g)%90), quick), headgate.One("q", fmt.Sprint("k", (i*5+g)%90+90), quick), slot}
				for j := range charges {
					k := (i + g + j) % len(charges)
					charges[j], charges[k] = charges[k], charges[j]
				}
				if err := s.Take(ctx, charges, &d); err != nil {
					t.Error(err)
					return
				}
				if d.Allowed {
					mu.Lock()
					charged, inside = charged+1, inside+1
					if inside > 3 {
						t.Errorf("%d hold 3 slots", inside)
					}
					mu.Unlock()
					runtime.Gosched()
					mu.Lock()
					inside--
					mu.Unlock()
					if err := s.Release(ctx, &slot); err != nil {
						t.Error(err)
					}
				}
				switch {
				case i%20 == 0:
					if err := s.Reset(ctx, "q", fmt.Sprint("k", i%180)); err != nil {
						t.Error(err)
					}
				case i%3 == 0 && d.Allowed:
					if err := s.Refund(ctx, charges, &d); err != nil {
						t.Error(err)
					}
					mu.Lock()
					charged--
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	d := take(t, s, headgate.Charge{Slot: "total", Key: "all", Limit: never})
	if left := int(d.Outcomes[0].Remaining); left != 500-charged {
		t.Errorf("%d left of 500 after %d", left, charged)
	}
	if s.Stats().Keys > 200 {
		t.Errorf("%d keys", s.Stats().Keys)
	}
}

func TestLongAndHostileKeys(t *testing.T) {
	s := newStore(t, Config{})
	l := headgate.MustParseLimit("token_bucket 1/1h")
	long := make([]byte, 1<<20)
	for i, c := range []struct{ slot, key string }{
		{"s", ""}, {"", ""}, {"", "s"}, {"s", "\x00"}, {"s", "{a}"}, {"s", "\xff\xfe"}, {"s\x00k", ""}, {"s", "\x00k"},
		{"s", string(long)}, {"s", string(long[1:])}, {"s", digest(string(long))}, {string(long), "k"}, {string(long[1:]), "k"}, {longSlot(string(long[1:]))[:maxText], "k"}, {"s", string(long[:maxText])}, {"s", string(long[:maxText+1])},
	} {
		if d := take(t, s, headgate.One(c.slot, c.key, l)); !d.Allowed {
			t.Errorf("%d: shares a state with another", i)
		}
		if d := take(t, s, headgate.One(c.slot, c.key, l)); d.Allowed {
			t.Errorf("%d: is not found again", i)
		}
	}
	for n := range maxText + 2 { // the sizes around those of entries
		if d := take(t, s, headgate.One("n", string(long[:n]), l)); !d.Allowed {
			t.Errorf("a key of %d bytes shares a state", n)
		}
	}
}

func TestAKeyIsCopied(t *testing.T) {
	s := newStore(t, Config{})
	l := headgate.MustParseLimit("token_bucket 1/1h")
	key := strings.Repeat("request header ", 2)[:20]
	take(t, s, headgate.One("s", key, l))
	id := s.identify("s", key)
	e := s.lookup(&id)
	if e == nil || e.key != key {
		t.Fatalf("the entry is %v", e)
	}
	if unsafe.StringData(e.key) == unsafe.StringData(key) {
		t.Error("the entry keeps the caller's memory alive")
	}
}

func TestInspect(t *testing.T) {
	s := newStore(t, Config{})
	at := s.At(noon).(*view)
	ctx := context.Background()
	l := headgate.MustParseLimit("token_bucket 1/s burst=5")
	if in, err := at.Inspect(ctx, "s", "k"); err != nil || in.Found {
		t.Errorf("a key never used: %+v, %v", in, err)
	}
	take(t, at, headgate.Charge{Slot: "s", Key: "k", Limit: l, Cost: 3})
	in, err := at.Inspect(ctx, "s", "k")
	if want := (headgate.Inspection{Found: true, Algorithm: headgate.AlgTokenBucket, Used: 3, IdleAt: noon.Add(3 * time.Second)}); err != nil || in != want {
		t.Errorf("inspected %+v, %v, want %+v", in, err, want)
	}
	take(t, at, headgate.Charge{Slot: "s", Key: "k", Limit: l, Cost: 3, Lockout: &headgate.Lockout{After: 1, For: time.Minute}})
	if in, _ := at.Inspect(ctx, "s", "k"); in.LockedUntil != noon.Add(time.Minute) {
		t.Errorf("locked until %s", in.LockedUntil)
	}
	if in, _ := s.At(noon.Add(time.Hour)).(*view).Inspect(ctx, "s", "k"); in.Found {
		t.Errorf("found when idle: %+v", in)
	}
}

// TestForgetGoesByTheTimePassedIn: a replay of a year frees what is idle in its own time, and nothing else.
func TestForgetGoesByTheTimePassedIn(t *testing.T) {
	s := newStore(t, Config{SweepInterval: -1})
	start := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	short, long := headgate.MustParseLimit("token_bucket 1/s burst=1"), headgate.MustParseLimit("fixed_window 1/day")
	for i := range 5000 {
		take(t, s.At(start), headgate.One("short", fmt.Sprint(i), short))
	}
	take(t, s.At(start), headgate.One("long", "k", long))
	for _, c := range []struct {
		after                  time.Duration
		forgotten, keys, slots int
	}{{0, 0, 5001, 2}, {time.Second, 5000, 1, 1}, {23 * time.Hour, 0, 1, 1}} {
		got, err := s.Forget(start.Add(c.after))
		if stats := s.Stats(); err != nil || got != c.forgotten || stats.Keys != c.keys || stats.Slots != c.slots {
			t.Errorf("after %s: forgot %d (%v), left %+v; want %d forgotten, %d keys, %d slots", c.after, got, err, stats, c.forgotten, c.keys, c.slots)
		}
	}
	if d := take(t, s.At(start.Add(23*time.Hour)), headgate.One("long", "k", long)); d.Allowed {
		t.Error("a denied key was forgotten")
	}
	if got, err := s.Forget(start.Add(24 * time.Hour)); got != 1 || err != nil || s.Stats().Slots != 0 {
		t.Errorf("at the end of the day: forgot %d, %v, %+v", got, err, s.Stats())
	}
	if _, err := s.Forget(time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)); headgate.CodeOf(err) != headgate.CodeInvalidTime {
		t.Errorf("the year 3000: %v", err)
	}
}

package lookup_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/headgate-io/headgate/policy/internal/lookup"
)

var errDown = errors.New("the service is down")

// TestTime walks one key through the times of its life: what the service says, when, and what comes of it.
func TestTime(t *testing.T) {
	t.Parallel()
	type step struct {
		at    time.Duration
		does  func(*service)
		want  lookup.Answer
		calls int64 // so far
	}
	set := func(value string) func(*service) { return func(s *service) { s.set(value) } }
	down := func(s *service) { s.setErr(errDown) }
	gone := func(s *service) { s.setNone() }
	for name, tc := range map[string]struct {
		keep  time.Duration
		steps []step
	}{
		"kept": {10 * time.Second, []step{
			{0, set("vip"), found("vip"), 1},
			{8*time.Second - 1, set("normal"), found("vip"), 1},
		}},
		"refreshed ahead by the first to ask in the last fifth": {10 * time.Second, []step{
			{0, set("vip"), found("vip"), 1},
			{8 * time.Second, set("normal"), found("vip"), 2},
			{8*time.Second + 1, set("other"), found("normal"), 2},
			{16*time.Second - 1, nil, found("normal"), 2},
		}},
		"asked anew after its time": {10 * time.Second, []step{
			{0, set("vip"), found("vip"), 1},
			{10 * time.Second, set("normal"), found("normal"), 2},
		}},
		"none is kept as long": {10 * time.Second, []step{
			{0, gone, none, 1},
			{8*time.Second - 1, set("vip"), none, 1},
			{10 * time.Second, nil, found("vip"), 2},
			{20 * time.Second, gone, none, 3},
			{21 * time.Second, set("vip"), none, 3}, // that it had a value is forgotten
			{30 * time.Second, nil, found("vip"), 4},
			{31 * time.Second, gone, found("vip"), 4},
		}},
		"a failure is remembered for a second": {10 * time.Second, []step{
			{0, down, failed, 1},
			{time.Second - 1, set("vip"), failed, 1},
			{time.Second, nil, found("vip"), 2},
		}},
		"a failure is not remembered for longer than a value": {100 * time.Millisecond, []step{
			{0, down, failed, 1},
			{100*time.Millisecond - 1, set("vip"), failed, 1},
			{100 * time.Millisecond, nil, found("vip"), 2},
		}},
		"a value outlives its time while the service is down": {10 * time.Second, []step{
			{0, set("vip"), found("vip"), 1},
			{10 * time.Second, down, found("vip"), 2},
			{11*time.Second - 1, nil, found("vip"), 2},
			{11 * time.Second, nil, found("vip"), 3},
			{99 * time.Second, nil, found("vip"), 4},
			{100*time.Second - 1, nil, found("vip"), 4},
			{100 * time.Second, nil, failed, 5},
		}},
		"a failed refresh leaves what is fresh, and is repeated a second later": {10 * time.Second, []step{
			{0, set("vip"), found("vip"), 1},
			{8 * time.Second, down, found("vip"), 2},
			{9*time.Second - 1, nil, found("vip"), 2},
			{9 * time.Second, set("normal"), found("vip"), 3},
			{9*time.Second + 1, nil, found("normal"), 3},
		}},
		"the service comes back behind a stale value": {10 * time.Second, []step{
			{0, set("vip"), found("vip"), 1},
			{10 * time.Second, down, found("vip"), 2},
			{20 * time.Second, set("normal"), found("vip"), 3},
			{20*time.Second + 1, nil, found("normal"), 3},
		}},
		"none outlives its time as well": {10 * time.Second, []step{
			{0, gone, none, 1},
			{10 * time.Second, down, none, 2},
			{99 * time.Second, nil, none, 3},
			{100 * time.Second, nil, failed, 4},
		}},
		"nothing is kept": {0, []step{
			{0, set("vip"), found("vip"), 1},
			{0, down, failed, 2},
			{0, gone, none, 3},
		}},
		"a century is a year": {36500 * 24 * time.Hour, []step{
			{0, set("vip"), found("vip"), 1},
			{365*24*time.Hour - 1, set("normal"), found("vip"), 2},
			{2 * 365 * 24 * time.Hour, set("other"), found("other"), 3},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, s, start := lookup.New(lookup.Config{Keep: tc.keep}), serving(""), time.Now()
				for i, step := range tc.steps {
					time.Sleep(time.Until(start.Add(step.at)))
					if step.does != nil {
						step.does(s)
					}
					if got := answer(c.Get(t.Context(), "u1", s.ask)); got != step.want {
						t.Errorf("step %d: got %+v, want %+v", i, got, step.want)
					}
					synctest.Wait() // for what goes on behind the scenes
					if calls := s.calls.Load(); calls != step.calls {
						t.Errorf("step %d: %d calls, want %d", i, calls, step.calls)
					}
				}
			})
		})
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		value string
		want  lookup.Answer
	}{
		"plain":           {"vip", found("vip")},
		"text":            {"大客户 №1", found("大客户 №1")},
		"empty":           {"", none},
		"longest":         {strings.Repeat("x", 256), found(strings.Repeat("x", 256))},
		"too long":        {strings.Repeat("x", 257), failed},
		"line feed":       {"vip\n", failed},
		"zero":            {"v\x00p", failed},
		"delete":          {"vip\x7f", failed},
		"C1":              {"vip\u0085", failed},
		"no UTF-8":        {"vip\xff", failed},
		"half a rune":     {"\xe5\xa4", failed},
		"space is a part": {" vip ", found(" vip ")},
	} {
		c := lookup.New(lookup.Config{Keep: time.Minute})
		for range 2 { // looked up, and kept
			if got := answer(c.Get(t.Context(), "u1", serving(tc.value).ask)); got != tc.want {
				t.Errorf("%s: got %+v, want %+v", name, got, tc.want)
			}
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	c, s := lookup.New(lookup.Config{Keep: time.Minute}), serving("vip")
	long := strings.Repeat("k", lookup.MaxKey)
	if got := answer(c.Get(t.Context(), long+"k", s.ask)); got != failed || s.calls.Load() != 0 {
		t.Errorf("a key that is too long: %+v after %d calls", got, s.calls.Load())
	}
	if got := c.Stats(); got != (lookup.Stats{Shed: 1}) {
		t.Errorf("%+v", got)
	}
	for i, key := range []string{long, "", "\x00", "\xff", "u1", "u1 "} {
		if got := answer(c.Get(t.Context(), key, s.ask)); got != found("vip") || s.calls.Load() != int64(i+1) {
			t.Errorf("%q: %+v after %d calls", key, got, s.calls.Load())
		}
	}
}

// TestMemoryOfOthers: neither the key nor the value holds on to the memory it came in, which may be used again.
func TestMemoryOfOthers(t *testing.T) {
	t.Parallel()
	c := lookup.New(lookup.Config{Keep: time.Minute})
	key, body := []byte("u1"), []byte("vip")
	got := answer(c.Get(t.Context(), unsafe.String(&key[0], len(key)), func(context.Context) (string, bool, error) {
		return unsafe.String(&body[0], len(body)), true, nil
	}))
	copy(key, "xx")
	copy(body, "xxx")
	if got != found("vip") {
		t.Errorf("what was returned has become %+v", got)
	}
	if got, hit := c.Cached("u1"); !hit || got != found("vip") {
		t.Errorf("what was kept has become %+v, %v", got, hit)
	}
}

// TestFlood: keys without a value push out none that has one, whatever their number.
func TestFlood(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]lookup.Func{
		"unknown keys":  func(context.Context) (string, bool, error) { return "", false, nil },
		"failing keys":  func(context.Context) (string, bool, error) { return "", false, errDown },
		"unfit answers": func(context.Context) (string, bool, error) { return "\x00", true, nil },
	} {
		c, s := lookup.New(lookup.Config{Keep: time.Minute, Entries: 50}), serving("vip")
		for i := range 50 {
			c.Get(t.Context(), "known"+strconv.Itoa(i), s.ask)
		}
		for i := range 500 {
			c.Get(t.Context(), "made up"+strconv.Itoa(i), ask)
		}
		for i := range 50 {
			if a, hit := c.Cached("known" + strconv.Itoa(i)); !hit || a != found("vip") {
				t.Errorf("%s: known%d is lost", name, i)
			}
		}
		if n := c.Stats().Entries; n != 100 {
			t.Errorf("%s: %d entries, want 50 of each kind", name, n)
		}
	}
}

// TestBound: of known keys the one that was not asked for the longest goes first.
func TestBound(t *testing.T) {
	t.Parallel()
	c, s := lookup.New(lookup.Config{Keep: time.Minute, Entries: 3}), serving("vip")
	for _, key := range []string{"a", "b", "c", "a", "d", "e"} { // b, then c go
		c.Get(t.Context(), key, s.ask)
	}
	for key, want := range map[string]bool{"a": true, "b": false, "c": false, "d": true, "e": true} {
		if _, hit := c.Cached(key); hit != want {
			t.Errorf("%s is kept: %v", key, hit)
		}
	}
}

func TestCached(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := lookup.New(lookup.Config{Keep: 10 * time.Second}), serving("vip")
		expect := func(want lookup.Answer, wantHit bool) {
			t.Helper()
			if got, hit := c.Cached("u1"); got != want || hit != wantHit {
				t.Errorf("at %s: got %+v, %v, want %+v, %v", time.Now().Format("05.000"), got, hit, want, wantHit)
			}
		}
		expect(none, false)
		c.Get(t.Context(), "u1", s.ask)
		expect(found("vip"), true)
		time.Sleep(8 * time.Second)
		expect(none, false) // so that Get begins a new look-up
		hold := make(chan struct{})
		c.Get(t.Context(), "u1", func(ctx context.Context) (string, bool, error) { <-hold; return s.ask(ctx) })
		expect(found("vip"), true) // it is under way
		s.setErr(errDown)
		close(hold)
		synctest.Wait()
		expect(found("vip"), true) // and has failed, and will not be repeated for now
		time.Sleep(92 * time.Second)
		expect(none, false)
		c.Get(t.Context(), "u1", s.ask)
		expect(failed, true)
	})
}

func TestStats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := lookup.New(lookup.Config{Keep: 10 * time.Second, InFlight: 1}), serving("vip")
		ask := func(key string) { c.Get(t.Context(), key, s.ask) }
		ask("u1") // miss
		ask("u1") // hit
		s.setNone()
		ask("u2") // miss
		ask("u2") // hit
		s.setErr(errDown)
		ask("u3") // miss, failure
		ask("u3") // hit
		time.Sleep(10 * time.Second)
		ask("u1") // miss, failure
		ask("u1") // stale hit
		hold := make(chan struct{})
		ctx, leave := context.WithCancel(t.Context())
		leave()
		c.Get(ctx, "u4", func(context.Context) (string, bool, error) { <-hold; return "", false, nil }) // miss
		ask("u5")                                                                                       // shed
		want := lookup.Stats{Hits: 4, Stale: 1, Misses: 5, Shed: 1, Lookups: 5, Failures: 2, Entries: 3, InFlight: 1}
		if got := c.Stats(); got != want {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		close(hold)
		synctest.Wait()
		want.InFlight, want.Entries = 0, 4
		if got := c.Stats(); got != want {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	})
}

// TestClock: a wall clock that steps back makes nothing live for ever, and one that is passed in is used.
func TestClock(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c, s := lookup.New(lookup.Config{Keep: 10 * time.Second, Now: func() time.Time { return now }}), serving("vip")
	c.Get(t.Context(), "u1", s.ask)
	now = now.Add(-time.Hour)
	if a, hit := c.Cached("u1"); !hit || a != found("vip") {
		t.Errorf("after a step back: %+v, %v", a, hit)
	}
	now = now.Add(time.Hour + 10*time.Second)
	if _, hit := c.Cached("u1"); hit {
		t.Error("it outlived its time")
	}
}

func TestHitAllocatesNothing(t *testing.T) {
	c, s := lookup.New(lookup.Config{Keep: time.Hour}), serving("vip")
	ctx, ask := t.Context(), lookup.Func(s.ask)
	unknown := lookup.Func(func(context.Context) (string, bool, error) { return "", false, nil })
	c.Get(ctx, "u1", ask)
	c.Get(ctx, "u2", unknown)
	for name, f := range map[string]func(){
		"Get":         func() { c.Get(ctx, "u1", ask) },
		"Get of none": func() { c.Get(ctx, "u2", unknown) },
		"Cached":      func() { c.Cached("u1") },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

package redisstore_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/internal/testservers"
	"github.com/headgate-io/headgate/redisstore"
)

// beat says that an instance lives and returns how many do, and the notes.
func beat(t *testing.T, s *redisstore.Store, id string, ttl time.Duration) (int, map[string]string) {
	t.Helper()
	live, notes, err := s.Beat(t.Context(), id, ttl)
	if err != nil {
		t.Fatal(err)
	}
	return live, notes
}

// TestBeat: three instances live, one is not heard of any more, and two are left.
func TestBeat(t *testing.T) {
	t.Parallel()
	testBeat(t, open(t, redisstore.Config{}))
}

func testBeat(t *testing.T, s *redisstore.Store) {
	t.Helper()
	const brief = 300 * time.Millisecond
	for i, id := range []string{"a", "b", "c", "a"} {
		if live, notes := beat(t, s, id, redisstore.MaxInstanceTTL); live != min(i+1, 3) || len(notes) != 0 {
			t.Errorf("beat %d: %d live, notes %q", i, live, notes)
		}
	}
	least := recovery
	for tries := 5; tries > 0 && least > brief+time.Second; tries-- { // a busy machine may see it late
		beat(t, s, "c", brief)
		start := time.Now()
		awaitBeat(t, s, func(live int, _ map[string]string) bool { return live == 2 })
		least = min(least, time.Since(start))
	}
	if least > brief+time.Second {
		t.Errorf("one was taken for alive for %s", least)
	}
	if live, _ := beat(t, s, "c", time.Minute); live != 3 {
		t.Errorf("when it is back: %d live", live)
	}
}

// awaitBeat beats until what comes back is as it should be.
func awaitBeat(t *testing.T, s *redisstore.Store, good func(live int, notes map[string]string) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), recovery)
	defer cancel()
	err := testservers.Poll(ctx, func() error {
		if live, notes, err := s.Beat(ctx, "a", time.Minute); err != nil || !good(live, notes) {
			return errors.Join(errors.New(strconv.Itoa(live)+" live"), err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNotes: notes come, are replaced, run out and are removed, whatever bytes they are of.
func TestNotes(t *testing.T) {
	t.Parallel()
	s, other := open(t, redisstore.Config{}), open(t, redisstore.Config{})
	put := func(name, value string, ttl time.Duration) {
		t.Helper()
		if err := s.Note(t.Context(), name, value, ttl); err != nil {
			t.Fatal(err)
		}
	}
	see := func(want map[string]string) {
		t.Helper()
		if _, notes := beat(t, s, "i", time.Minute); !maps.Equal(notes, want) {
			t.Errorf("notes %q, want %q", notes, want)
		}
	}
	put("l3", "on", 0)
	put("l3", "on, by whom", 0)
	put("l3x", "another", time.Minute)
	put("l", "the name of another begins so", 0)
	put("never there", "", 0)
	see(map[string]string{"l3": "on, by whom", "l3x": "another", "l": "the name of another begins so"})
	put("l", "", 0)
	put("l3x", "", time.Minute)
	put("brief", "x", 100*time.Millisecond)
	awaitBeat(t, s, func(_ int, notes map[string]string) bool {
		return maps.Equal(notes, map[string]string{"l3": "on, by whom"})
	})
	put("brief", "longer", time.Minute)
	put("brief", "without end", 0)
	hostile := map[string]string{"l3": "on, by whom", "brief": "without end"}
	for _, name := range []string{"\x00", "\xff\xfe", "a\r\n$3\r\nb", "{x}", " ", strings.Repeat("n", redisstore.MaxNoteName), "\x02l3"} {
		value := name + "\x00\r\n" + strings.Repeat("v", redisstore.MaxNoteValue-len(name)-3)
		put(name, value, 0)
		hostile[name] = value
	}
	see(hostile)
	if _, notes := beat(t, other, "i", time.Minute); len(notes) != 0 {
		t.Errorf("another namespace has notes %q", notes)
	}
}

// TestHostileIDs: an instance may be called anything that is short enough.
func TestHostileIDs(t *testing.T) {
	t.Parallel()
	s := open(t, redisstore.Config{})
	ids := []string{"\x00", "+inf", "(1", "\xff\xfe", "a b", "a\r\nDEL x\r\n", "{0}", strings.Repeat("i", redisstore.MaxNoteName)}
	for i, id := range ids {
		for range 2 {
			if live, _ := beat(t, s, id, time.Minute); live != i+1 {
				t.Errorf("%q: %d live, want %d", id, live, i+1)
			}
		}
	}
	for i, id := range ids { // and goes, whatever it is called
		for range 2 {
			if live, _ := beat(t, s, id, time.Duration(-i)); live != len(ids)-i-1 {
				t.Errorf("%q has gone: %d live, want %d", id, live, len(ids)-i-1)
			}
		}
	}
	long := strings.Repeat("x", redisstore.MaxNoteName+1)
	for name, do := range map[string]func() error{
		"no id":             func() error { _, _, err := s.Beat(t.Context(), "", time.Minute); return err },
		"a long id":         func() error { _, _, err := s.Beat(t.Context(), long, time.Minute); return err },
		"a long ttl":        func() error { _, _, err := s.Beat(t.Context(), "i", redisstore.MaxInstanceTTL+1); return err },
		"no name":           func() error { return s.Note(t.Context(), "", "v", 0) },
		"a long name":       func() error { return s.Note(t.Context(), long, "v", 0) },
		"a long value":      func() error { return s.Note(t.Context(), "n", strings.Repeat("v", redisstore.MaxNoteValue+1), 0) },
		"a negative ttl":    func() error { return s.Note(t.Context(), "n", "v", -1) },
		"a ttl without end": func() error { return s.Note(t.Context(), "n", "v", redisstore.MaxNoteTTL+1) },
	} {
		if err := do(); headgate.CodeOf(err) != headgate.CodeInvalidCharge {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFleetBounds: there are so many notes and no more; those that are there can be replaced and removed, which makes room.
func TestFleetBounds(t *testing.T) {
	t.Parallel()
	s := open(t, redisstore.Config{})
	var wg sync.WaitGroup
	for part := range 4 {
		wg.Go(func() {
			for i := part; i < redisstore.MaxNotes; i += 4 {
				if err := s.Note(t.Context(), strconv.Itoa(i), "v", 0); err != nil {
					t.Error(i, err)
				}
			}
		})
	}
	wg.Wait()
	full := func(want bool) {
		t.Helper()
		if err := s.Note(t.Context(), "one more", "v", 0); (headgate.CodeOf(err) == headgate.CodeOverloaded) != want {
			t.Errorf("one more note: %v", err)
		}
	}
	full(true)
	for _, value := range []string{"replaced", ""} {
		if err := s.Note(t.Context(), "7", value, 0); err != nil {
			t.Error(err)
		}
	}
	full(false)
	if _, notes := beat(t, s, "i", time.Minute); len(notes) != redisstore.MaxNotes {
		t.Errorf("%d notes", len(notes))
	}
}

// TestFleetExpiry: the keys of the fleet are two, and both go away by themselves.
func TestFleetExpiry(t *testing.T) {
	t.Parallel()
	srv := shared.Get(t)
	namespace := newNamespace()
	s := open(t, redisstore.Config{Namespace: namespace})
	if err := s.Note(t.Context(), "n", "v", 0); err != nil {
		t.Fatal(err)
	}
	beat(t, s, "i", time.Second)
	keys := do(t, srv, "KEYS", namespace+"{*").([]any)
	most := map[string]int64{"live": redisstore.MaxInstanceTTL.Milliseconds(), "notes": redisstore.MaxNoteTTL.Milliseconds()}
	if len(keys) != len(most) {
		t.Errorf("keys %q", keys)
	}
	for _, key := range keys {
		_, what, _ := strings.Cut(key.(string), "}@")
		if ttl := do(t, srv, "PTTL", key).(int64); ttl <= most[what]-60_000 || ttl > most[what] {
			t.Errorf("%s is gone in %d ms", key, ttl)
		}
	}
}

// TestFleetClock: an instance that was heard of before the clock of Redis was set back does not live on for the time between.
func TestFleetClock(t *testing.T) {
	t.Parallel()
	srv := shared.Get(t)
	namespace := newNamespace()
	s := open(t, redisstore.Config{Namespace: namespace})
	beat(t, s, "a", time.Minute)
	keys := do(t, srv, "KEYS", namespace+"{*}@live").([]any)
	do(t, srv, "ZADD", keys[0], time.Now().Add(time.Hour).UnixMilli(), "of an hour later")
	if live, _ := beat(t, s, "a", time.Minute); live != 1 {
		t.Errorf("%d live", live)
	}
}

// TestFleetForeignNotes: whatever another program adds to the notes, those of the fleet are read, and no reply is long.
func TestFleetForeignNotes(t *testing.T) {
	t.Parallel()
	srv := shared.Get(t)
	namespace := newNamespace()
	s := open(t, redisstore.Config{Namespace: namespace})
	value := strings.Repeat("v", redisstore.MaxNoteValue)
	long := strings.Repeat("n", redisstore.MaxNoteName)
	for name, value := range map[string]string{"ours": "v", long: value} {
		if err := s.Note(t.Context(), name, value, 0); err != nil {
			t.Fatal(err)
		}
	}
	key := do(t, srv, "KEYS", namespace+"{*}@notes").([]any)[0]
	add := func(members ...string) {
		t.Helper()
		args := []any{"ZADD", key}
		for _, m := range members {
			args = append(args, time.Now().Add(time.Hour).UnixMilli(), m)
		}
		do(t, srv, args...)
	}
	ours := map[string]string{"ours": "v", long: value}
	add("", "\x00", "\x00x", "x", "\xff", "\x01a", "\x81"+strings.Repeat("n", 129)+"v", "\x01b"+value+"v", "\x01c"+strings.Repeat("v", 100_000))
	if _, notes := beat(t, s, "a", time.Minute); !maps.Equal(notes, ours) {
		t.Errorf("%d notes: %.200q", len(notes), notes)
	}
	for i := range 3 * redisstore.MaxNotes {
		add("\x05" + strconv.Itoa(10000+i) + "v")
	}
	if _, notes := beat(t, s, "a", time.Minute); len(notes) != redisstore.MaxNotes || notes["ours"] != "v" || notes[long] != value {
		t.Errorf("%d notes", len(notes))
	}
	if err := s.Note(t.Context(), "ours", "w", 0); err != nil { // which is there and may be replaced
		t.Error(err)
	}
}

// TestFleetFails: out of memory, on foreign data and on a stopped Redis.
func TestFleetFails(t *testing.T) {
	t.Parallel()
	srv, namespace := testservers.Redis(t), newNamespace()
	seen := &spy{}
	s := open(t, redisstore.Config{Addrs: []string{srv.Addr()}, Namespace: namespace})
	hurried := open(t, redisstore.Config{Addrs: []string{srv.Addr()}, Namespace: namespace, Observer: seen, Timeout: time.Second})
	awaitWorks(t, hurried)
	both := func(s *redisstore.Store, what string, code headgate.Code) {
		t.Helper()
		_, _, err := s.Beat(t.Context(), "i", time.Minute)
		if headgate.CodeOf(err) != code {
			t.Errorf("%s: beat: %v", what, err)
		}
		if err := s.Note(t.Context(), "n", "v", 0); headgate.CodeOf(err) != code {
			t.Errorf("%s: note: %v", what, err)
		}
	}
	both(s, "well", "")
	do(t, srv, "CONFIG", "SET", "maxmemory", "1")
	both(s, "out of memory", headgate.CodeUnavailable)
	do(t, srv, "CONFIG", "SET", "maxmemory", "0")
	keys := do(t, srv, "KEYS", namespace+"{*").([]any)
	for _, key := range keys {
		do(t, srv, "SET", key, "another program's")
		both(s, "foreign", headgate.CodeUnavailable)
		do(t, srv, "DEL", key)
	}
	both(s, "well again", "")
	seen.take()
	if err := srv.Pause(); err != nil {
		t.Fatal(err)
	}
	both(hurried, "stopped", headgate.CodeIndeterminate)
	if got := seen.take(); !slices.Equal(got, []string{srv.Addr()}) {
		t.Errorf("failed calls of %q are told, want %s", got, srv.Addr())
	}
	if err := srv.Resume(); err != nil {
		t.Fatal(err)
	}
	awaitBeat(t, s, func(live int, _ map[string]string) bool { return live == 2 })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	both(s, "closed", headgate.CodeClosed)
}

package resilience

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// witness is an observer that writes down what it is told.
type witness struct {
	mu    sync.Mutex
	lines []string
}

func (w *witness) LevelChanged(level int, on bool, by, _ string) {
	w.add(fmt.Sprintf("%d %t %s", level, on, by))
}
func (w *witness) LevelAlert(level int, _ string) { w.add(fmt.Sprintf("%d alert", level)) }

func (w *witness) add(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, line)
}

// is compares what was told since it was last asked.
func (w *witness) is(t *testing.T, want ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if got := strings.Join(w.lines, ", "); got != strings.Join(want, ", ") {
		t.Errorf("told %q, want %q", got, want)
	}
	w.lines = nil
}

// instance is one of a fleet, with its levels.
type instance struct {
	*Levels
	fleet *Fleet
	told  *witness
}

func start(t *testing.T, b Board, id string, change func(*LevelsConfig)) instance {
	t.Helper()
	w := &witness{}
	cfg := LevelsConfig{Observer: w}
	var f *Fleet
	if b != nil {
		f = join(t, b, id)
		cfg.Fleet = f
	}
	if change != nil {
		change(&cfg)
	}
	l := NewLevels(cfg)
	t.Cleanup(func() { _ = l.Close() })
	return instance{Levels: l, fleet: f, told: w}
}

func automatic(c *LevelsConfig) { c.Policy.Automatic = true }

// crowd sends the requests of devices for a time, a share of which are denied.
func (i instance) crowd(lasts time.Duration, percent uint64) {
	const n = 400
	for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(4 * time.Second) {
		for d := range uint64(n) {
			i.Device(d, d*100 < n*percent)
		}
	}
}

func (i instance) turn(t *testing.T, level int, on bool, why string) {
	t.Helper()
	if err := i.Set(t.Context(), SwitchRequest{Level: level, On: on, Why: why}); err != nil {
		t.Fatal(err)
	}
}

func TestLevelsOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := start(t, nil, "", nil)
		time.Sleep(time.Minute)
		if l.Level() != 0 || l.StoreLost() || l.DeviceLifted() || l.Restricted() {
			t.Error("something is on from the start")
		}
		for i, s := range l.Switches() {
			if s.Level != i+1 || s.On || s.Name == "" || s.TurnsOff == "" || !s.Since.IsZero() {
				t.Errorf("%+v", s)
			}
		}
		l.told.is(t)
	})
}

func TestLevelStoreLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lost sync.Map
		l := start(t, nil, "", func(c *LevelsConfig) {
			c.Lost = func() bool { _, is := lost.Load("x"); return is }
			c.LostWhy = func() string { return "192.0.2.7:6379 is open" }
		})
		lost.Store("x", 1)
		time.Sleep(300 * time.Millisecond)
		if !l.StoreLost() || l.Level() != LevelStoreLost {
			t.Error("not lost")
		}
		if s := l.Switches()[0]; !s.On || s.By != Automatic || s.Why != "192.0.2.7:6379 is open" {
			t.Errorf("%+v", s)
		}
		for range 10 { // back for a second, and lost again
			lost.Delete("x")
			time.Sleep(time.Second)
			lost.Store("x", 1)
			time.Sleep(time.Second)
		}
		l.told.is(t, "1 true automatic")
		lost.Delete("x")
		time.Sleep(2500 * time.Millisecond)
		if l.StoreLost() || l.Level() != 0 {
			t.Error("still lost")
		}
		l.told.is(t, "1 false automatic")
	})
}

func TestLevelByHand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		a, c := start(t, b, "a", nil), start(t, b, "c", nil)
		synctest.Wait() // the first beat of either is through
		a.turn(t, LevelRestricted, true, "the sale\nhas \x07begun")
		a.turn(t, LevelDeviceLifted, true, "")
		if !a.Restricted() || !a.DeviceLifted() || a.Level() != 3 {
			t.Error("not in force where it was set")
		}
		time.Sleep(1200 * time.Millisecond)
		if !c.Restricted() || !c.DeviceLifted() {
			t.Error("not in force elsewhere within a beat")
		}
		if s := c.Switches()[2]; s.Why != "the sale has begun" || s.By != ByHand || !s.On || s.Pending || !s.Until.IsZero() || s.Since.IsZero() {
			t.Errorf("%+v", s)
		}
		d := start(t, b, "d", nil) // joins later
		synctest.Wait()
		if !d.Restricted() {
			t.Error("not in force where somebody has joined")
		}
		time.Sleep(time.Minute)
		c.turn(t, LevelRestricted, false, "over")
		time.Sleep(1200 * time.Millisecond)
		for _, i := range []instance{a, c, d} {
			if i.Restricted() || i.Level() != 2 {
				t.Errorf("%s: still restricted", i.fleet.ID())
			}
		}
		a.told.is(t, "3 true hand", "2 true hand", "3 false hand")
		c.told.is(t, "2 true hand", "3 true hand", "3 false hand")
	})
}

func TestLevelRequests(t *testing.T) {
	t.Parallel()
	l := start(t, nil, "", nil)
	for _, level := range []int{-1, 0, 1, 4} {
		if err := l.Set(t.Context(), SwitchRequest{Level: level, On: true}); headgate.CodeOf(err) != headgate.CodeUnsupported {
			t.Errorf("level %d: %v", level, err)
		}
	}
	l.turn(t, LevelRestricted, true, strings.Repeat("渠", 300)+"\xff")
	if why := l.Switches()[2].Why; len(why) != 498 || strings.Trim(why, "渠") != "" {
		t.Errorf("why has %d bytes: %q", len(why), why)
	}
}

// TestLevelWithoutItsStore: what is set while the board is away is in force here at once, and on the fleet when it is back; what the
// board has lost is told it again, and the later setting counts whatever the clocks and the order say.
func TestLevelWithoutItsStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		a, c := start(t, b, "a", nil), start(t, b, "c", nil)
		a.turn(t, LevelRestricted, true, "first")
		time.Sleep(2 * time.Second)
		b.set(func() { b.down = true })
		a.turn(t, LevelRestricted, false, "second")
		a.turn(t, LevelRestricted, true, "third")
		c.turn(t, LevelRestricted, false, "meanwhile")
		if s := a.Switches()[2]; !s.On || !s.Pending || s.Why != "third" {
			t.Errorf("%+v", s)
		}
		time.Sleep(time.Minute)
		if c.Restricted() || !a.Restricted() {
			t.Error("one was told by the other without a board")
		}
		b.set(func() { b.down = false })
		time.Sleep(3 * time.Second)
		if s := c.Switches()[2]; !s.On || s.Pending || s.Why != "third" || a.Switches()[2].Pending {
			t.Errorf("%+v", s)
		}
		b.lose()
		time.Sleep(3 * time.Second)
		if b.note("level/3/hand") == "" || !a.Restricted() || !c.Restricted() {
			t.Error("the board has lost a switch for good")
		}
		b.set(func() { b.notes["level/3/hand"] = posted{value: `{"level":3,"on":false,"by":"hand","revision":1}`} })
		time.Sleep(3 * time.Second)
		if !a.Restricted() || !strings.Contains(b.note("level/3/hand"), "third") {
			t.Error("an old setting has won")
		}
		a.told.is(t, "3 true hand", "3 false hand", "3 true hand")
	})
}

func TestLevelSetTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for range 20 {
			b := newBoard()
			a, c := start(t, b, "a", nil), start(t, b, "c", nil)
			a.turn(t, LevelRestricted, true, "a")
			c.turn(t, LevelRestricted, false, "c")
			time.Sleep(3 * time.Second)
			if a.Restricted() != c.Restricted() {
				t.Fatal("they disagree")
			}
		}
	})
}

func TestLevelNotesThatAreBroken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		a := start(t, b, "a", automatic)
		a.turn(t, LevelRestricted, true, "good")
		for i, value := range []string{"{", `{"level":2,"on":false,"revision":9}`, `{"level":3,"on":false,"revision":-1}`,
			`{"level":3,"on":false,"revision":90071992547409930}`, `{"level":3,"on":false,"revision":9,"why":"` + strings.Repeat("x", 5000) + `"}`} {
			b.set(func() {
				for _, name := range []string{"level/3/hand", "level/2/automatic", "level/2/held", "level/9/hand", "other"} {
					if name != "level/2/automatic" || i != 1 {
						b.notes[name] = posted{value: value}
					}
				}
			})
			time.Sleep(2 * time.Second)
			if !a.Restricted() || a.DeviceLifted() {
				t.Errorf("%.60s was believed", value)
			}
		}
	})
}

// FuzzSwitchNote: whatever lies on the board, what is believed can be said again and means the same.
func FuzzSwitchNote(f *testing.F) {
	f.Add(`{"level":3,"on":true,"why":"a\u0000b","by":"hand","since":"2026-01-01T00:00:00Z","revision":7}`, `{"level":3,"on":false,"revision":8}`)
	f.Add("", "{")
	f.Fuzz(func(t *testing.T, first, second string) {
		var h hand
		for _, text := range []string{first, second} {
			before := h.state
			err := h.take(text, LevelRestricted)
			if h.state.Revision < before.Revision || err != nil && h.state != before {
				t.Fatalf("%q and %q: an older or broken note was taken: %+v", first, second, h.state)
			}
			if h.state.Revision > maxRevise || len(h.state.Why) > maxWhy {
				t.Fatalf("out of bounds: %+v", h.state)
			}
			if h.state != (handState{}) {
				again, err := decodeState(h.state.encode(), LevelRestricted)
				if err != nil || again.Why != h.state.Why || again.On != h.state.On || again.Revision != h.state.Revision {
					t.Fatalf("%+v comes back as %+v: %v", h.state, again, err)
				}
			}
		}
		var n timedNote
		if err := n.take(first, time.Now(), time.Minute); err != nil && n.active {
			t.Fatalf("a broken note is in force: %+v", n)
		}
	})
}

func TestLevelsAllocate(t *testing.T) {
	l := start(t, nil, "", nil)
	if n := testing.AllocsPerRun(1000, func() {
		l.Device(7, true)
		if l.DeviceLifted() || l.Restricted() || l.StoreLost() || l.Level() != 0 {
			t.Fatal("on")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

package resilience

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestLevelBeforeTheStoreIsHeard: a switch that is turned on an instance that has not heard the board since its start is later than
// what lies there, whatever its number, and nothing is written over what nobody has read.
func TestLevelBeforeTheStoreIsHeard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		before := `{"level":3,"on":false,"why":"over","by":"hand","revision":7}`
		b.notes["level/3/hand"], b.down = posted{value: before}, true
		a := start(t, b, "a", nil)
		a.turn(t, LevelRestricted, true, "")
		a.turn(t, LevelRestricted, true, "we drown")
		time.Sleep(10 * time.Second)
		if s := a.Switches()[2]; !s.On || !s.Pending {
			t.Errorf("while the board is away: %+v", s)
		}
		b.set(func() { b.down = false })
		if err := a.publish(t.Context()); err == nil || b.note("level/3/hand") != before {
			t.Errorf("written over what nobody has read: %v, %s", err, b.note("level/3/hand"))
		}
		c := start(t, b, "c", nil) // knows the board
		time.Sleep(4 * time.Second)
		for _, i := range []instance{a, c} {
			if s := i.Switches()[2]; !s.On || s.Pending || s.Why != "we drown" {
				t.Errorf("%s: %+v", i.fleet.ID(), s)
			}
		}
		a.mu.Lock()
		if a.hands[1].blind {
			t.Error("it still counts as later than all that is heard")
		}
		a.mu.Unlock()
		if note := b.note("level/3/hand"); !strings.Contains(note, `"revision":8`) {
			t.Errorf("the board has %s", note)
		}
		b.set(func() { b.notes["level/3/hand"] = posted{value: before} }) // a store that has come back with older data
		time.Sleep(3 * time.Second)
		if !a.Restricted() || !c.Restricted() {
			t.Error("an older setting has won")
		}
	})
}

// TestLevelWhileTheFirstBeatIsLate: a switch waits for the first beat, so that it is not taken for an older one.
func TestLevelWhileTheFirstBeatIsLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		b.notes["level/3/hand"] = posted{value: `{"level":3,"on":false,"by":"hand","revision":7}`}
		b.late = make(chan struct{})
		a := start(t, b, "a", nil)
		synctest.Wait()
		time.AfterFunc(300*time.Millisecond, func() { b.set(func() { close(b.late); b.late = nil }) })
		a.turn(t, LevelRestricted, true, "first of all")
		synctest.Wait()
		if s := a.Switches()[2]; !s.On || s.Pending || !strings.Contains(b.note("level/3/hand"), `"revision":8`) {
			t.Errorf("%+v, the board has %s", s, b.note("level/3/hand"))
		}
	})
}

// TestLevelAtTheLastRevision: a note with the highest number that there is stands in nobody's way.
func TestLevelAtTheLastRevision(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		b.notes["level/3/hand"] = posted{value: fmt.Sprintf(`{"level":3,"on":true,"by":"hand","revision":%d}`, int64(maxRevise))}
		a, c := start(t, b, "a", nil), start(t, b, "c", nil)
		time.Sleep(1200 * time.Millisecond)
		for i, on := range []bool{false, true, false} {
			[]instance{a, c}[i%2].turn(t, LevelRestricted, on, "")
			time.Sleep(1200 * time.Millisecond)
			if a.Restricted() != on || c.Restricted() != on || a.Switches()[2].Pending || c.Switches()[2].Pending {
				t.Errorf("turned %t: %t and %t", on, a.Restricted(), c.Restricted())
			}
		}
	})
}

// TestHoldOutlivesTheStoresData: that a hand holds level 2 off is told again to a board that has lost its data, and ends in time.
func TestHoldOutlivesTheStoresData(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		a, c := start(t, b, "a", automatic), start(t, b, "c", automatic)
		a.crowd(64*time.Second, 30)
		c.turn(t, LevelDeviceLifted, false, "no")
		time.Sleep(time.Minute)
		b.lose()
		time.Sleep(3 * time.Second)
		if b.note(noteOfHeld) == "" {
			t.Error("the hold was not told again")
		}
		late := start(t, b, "late", automatic)
		late.crowd(8*time.Minute, 30)
		for _, i := range []instance{a, c, late} {
			if i.DeviceLifted() {
				t.Errorf("%s: lifted although a hand holds it off", i.fleet.ID())
			}
		}
		late.crowd(3*time.Minute, 30)
		if !late.DeviceLifted() || !a.DeviceLifted() {
			t.Error("held off for longer than ten minutes")
		}
	})
}

// busy is a board on which something happens while the first note is left.
type busy struct {
	*board
	once   sync.Once
	during func()
}

func (b *busy) Note(ctx context.Context, name, value string, ttl time.Duration) error {
	b.once.Do(b.during)
	return b.board.Note(ctx, name, value, ttl)
}

// TestLevelTurnedWhileItIsTold: a switch that is turned again while the board is told is told again.
func TestLevelTurnedWhileItIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var a instance
		b := &busy{board: newBoard()}
		b.during = func() {
			go func() { _ = a.Set(t.Context(), SwitchRequest{Level: LevelDeviceLifted, Why: "the second"}) }()
			synctest.Wait() // until it waits for its turn to tell
		}
		a = start(t, b, "a", automatic)
		a.turn(t, LevelDeviceLifted, false, "the first")
		time.Sleep(3 * time.Second)
		for _, name := range []string{"level/2/hand", noteOfHeld} {
			if note := b.note(name); !strings.Contains(note, "the second") {
				t.Errorf("%s: %s", name, note)
			}
		}
		if s := a.Switches()[1]; s.Pending {
			t.Errorf("%+v", s)
		}
	})
}

// TestTimedNoteIsNotExtended: to be told the same again makes nothing last longer.
func TestTimedNoteIsNotExtended(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var own, n timedNote
	own.start(&handState{Level: LevelDeviceLifted, On: true, By: Automatic, Why: "<many>"}, now, time.Minute, true)
	for after := range 3 {
		for _, note := range []*timedNote{&own, &n} {
			if err := note.take(own.state.encode(), now.Add(time.Duration(after)*20*time.Second), time.Minute); err != nil || !note.until.Equal(now.Add(time.Minute)) {
				t.Errorf("told %d times: until %s, %v", after+1, note.until, err)
			}
		}
	}
}

// TestLevelsPolicyDefaults: what is no number is none.
func TestLevelsPolicyDefaults(t *testing.T) {
	t.Parallel()
	for _, p := range []LevelsPolicy{{}, {DeniedDevices: math.NaN(), For: -1, RetryAfter: -1}} {
		if got := p.withDefaults(); got != (LevelsPolicy{DeniedDevices: 0.2, For: time.Minute, RetryAfter: 10 * time.Minute}) {
			t.Errorf("%+v becomes %+v", p, got)
		}
	}
}

// TestFleetClosedBeforeItsFirstBeat: nobody waits for ever for a beat that does not come any more.
func TestFleetClosedBeforeItsFirstBeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		b.late = make(chan struct{})
		f := NewFleet(b, FleetConfig{})
		f.stop()
		if err := f.Await(t.Context()); err != nil {
			t.Error(err)
		}
		b.set(func() { b.late = nil })
		_ = f.Close()
	})
}

// TestDevicesCountAnew: after the layer was lifted it takes another For of denials to lift it again, and so it does when For changes.
func TestDevicesCountAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := start(t, nil, "", func(c *LevelsConfig) { c.Policy = LevelsPolicy{Automatic: true, RetryAfter: 5 * time.Second} })
		l.crowd(68*time.Second, 30)
		l.told.is(t, "2 true automatic", "2 false automatic")
		l.crowd(40*time.Second, 30)
		l.told.is(t)
		l.SetPolicy(LevelsPolicy{Automatic: true, For: 2 * time.Minute})
		l.crowd(112*time.Second, 30)
		l.told.is(t)
		l.crowd(12*time.Second, 30)
		l.told.is(t, "2 true automatic")
	})
}

// TestDevicesSeed: two processes do not count the same device alike.
func TestDevicesSeed(t *testing.T) {
	t.Parallel()
	a, b := newDevices(time.Minute, time.Now()), newDevices(time.Minute, time.Now())
	for d := range uint64(100) {
		a.add(d, false)
		b.add(d, false)
	}
	same := 0
	for i := range a.pieces[0].seen.words {
		if x := a.pieces[0].seen.words[i].Load(); x != 0 && x == b.pieces[0].seen.words[i].Load() {
			same++
		}
	}
	if same > 50 {
		t.Errorf("%d of about 100 registers are the same", same)
	}
}

package resilience

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func join(t *testing.T, b Board, id string) *Fleet {
	t.Helper()
	f := NewFleet(b, FleetConfig{ID: id})
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func lives(t *testing.T, want int, fleet ...*Fleet) {
	t.Helper()
	for _, f := range fleet {
		if got := f.Live(); got != want {
			t.Errorf("%s counts %d, want %d", f.ID(), got, want)
		}
	}
}

func TestFleetCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		a := join(t, b, "a")
		synctest.Wait()
		lives(t, 1, a)
		c, d := join(t, b, "c"), join(t, b, "d")
		time.Sleep(1200 * time.Millisecond)
		lives(t, 3, a, c, d)
		if age := a.Age(); age > 1200*time.Millisecond {
			t.Errorf("heard of the board %s ago", age)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if b.has("d") {
			t.Error("who has left is still on the board")
		}
		time.Sleep(4 * time.Second)
		lives(t, 3, a, c, d) // fewer are believed after a ttl only
		time.Sleep(3 * time.Second)
		lives(t, 2, a, c)
	})
}

func TestFleetDies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		a, c := join(t, b, "a"), join(t, b, "c")
		time.Sleep(2 * time.Second)
		lives(t, 2, a, c)
		c.stop() // without a word
		time.Sleep(13 * time.Second)
		lives(t, 1, a)
	})
}

// TestFleetAfterTheLoss: while the board is away its last word counts, and a board that comes back empty is not believed until
// all have had the time to beat again.
func TestFleetAfterTheLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		var log bytes.Buffer
		a := NewFleet(b, FleetConfig{ID: "a", Logger: slog.New(slog.NewTextHandler(&log, nil))})
		defer a.Close()
		c := join(t, b, "c")
		time.Sleep(2 * time.Second)
		b.set(func() { b.down = true })
		time.Sleep(time.Minute)
		lives(t, 2, a, c)
		if age := a.Age(); age < time.Minute || age > 62*time.Second {
			t.Errorf("heard of the board %s ago, it is away for a minute", age)
		}
		b.lose()
		b.set(func() { b.down = false })
		for range 200 { // the first to be back counts one, and does not take it for the fleet
			time.Sleep(20 * time.Millisecond)
			lives(t, 2, a, c)
		}
		b.lose() // between two beats, without a failure
		for range 200 {
			time.Sleep(20 * time.Millisecond)
			lives(t, 2, a, c)
		}
		a.Close()
		for _, want := range []string{"the fleet has changed", "the fleet is out of sight", "the fleet is in sight again"} {
			if n := strings.Count(log.String(), want); n != 1 {
				t.Errorf("%q was logged %d times:\n%s", want, n, log.String())
			}
		}
	})
}

// TestFleetFewerInPieces: fewer are believed after a ttl without a failure: one begins it anew, and what counts is the most that was
// said in it.
func TestFleetFewerInPieces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		a := join(t, b, "a")
		others := func(n int) {
			b.set(func() {
				b.lives = map[string]time.Time{}
				for i := range n {
					b.lives[fmt.Sprint(i)] = time.Now().Add(time.Hour)
				}
			})
		}
		others(9)
		time.Sleep(1200 * time.Millisecond)
		lives(t, 10, a)
		others(3)
		for range 5 {
			time.Sleep(3500 * time.Millisecond)
			b.set(func() { b.down = true })
			time.Sleep(1200 * time.Millisecond)
			lives(t, 10, a)
			b.set(func() { b.down = false })
		}
		time.Sleep(3500 * time.Millisecond)
		others(1)
		time.Sleep(4 * time.Second)
		lives(t, 4, a)
		time.Sleep(9 * time.Second)
		lives(t, 2, a)
	})
}

// nobody is a board that counts nobody.
type nobody struct{ *board }

func (n nobody) Beat(ctx context.Context, id string, ttl time.Duration) (int, map[string]string, error) {
	_, notes, err := n.board.Beat(ctx, id, ttl)
	return 0, notes, err
}

// TestFleetOfNobody: whatever the board says, there is one.
func TestFleetOfNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := join(t, nobody{newBoard()}, "a")
		time.Sleep(10 * time.Second)
		lives(t, 1, a)
	})
}

// TestFleetCloseIsNoLoss: a beat that the end of the fleet cuts short is no loss of the board.
func TestFleetCloseIsNoLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, log := newBoard(), bytes.Buffer{}
		b.late = make(chan struct{})
		f := NewFleet(b, FleetConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		synctest.Wait()
		f.stop()
		f.over.Wait()
		b.set(func() { b.late = nil })
		if err := f.Close(); err != nil || log.Len() != 0 {
			t.Errorf("%v, logged %s", err, log.String())
		}
	})
}

func TestFleetFirstBeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		b.late = make(chan struct{})
		f := NewFleet(b, FleetConfig{ID: "a", Assume: 4, Every: time.Hour})
		defer f.Close()
		lives(t, 4, f)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.Await(ctx); err == nil {
			t.Error("did not wait for the first beat")
		}
		close(b.late)
		if err := f.Await(t.Context()); err != nil {
			t.Error(err)
		}
		lives(t, 1, f)
		if age := f.Age(); age != 0 {
			t.Errorf("heard of the board %s ago", age)
		}
	})
}

func TestFleetAlone(t *testing.T) {
	t.Parallel()
	f := NewFleet(nil, FleetConfig{})
	lives(t, 1, f)
	if f.ID() == "" || f.Age() != 0 || f.Await(t.Context()) != nil || f.Note(t.Context(), "n", "v", 0) != nil || f.Close() != nil || f.Close() != nil {
		t.Error("an instance alone fails")
	}
}

func TestFleetPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		f := join(t, b, "a")
		time.Sleep(100 * time.Second)
		if n := b.beaten(); n < 90 || n > 112 {
			t.Errorf("%d beats in 100 s", n)
		}
		b.set(func() { b.late = make(chan struct{}) }) // a board that stands still is asked no more often
		before := b.beaten()
		time.Sleep(100 * time.Second)
		if n := b.beaten() - before; n < 44 || n > 56 {
			t.Errorf("%d beats in 100 s at a board that stands still", n)
		}
		_ = f.Close()
	})
}

// heard collects what a hook is told.
type heard struct {
	mu  sync.Mutex
	all []string
}

func (h *heard) note(name, value string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, name+"="+value)
}

func (h *heard) is(t *testing.T, want ...string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(h.all, want) {
		t.Errorf("heard %q, want %q", h.all, want)
	}
	h.all = nil
}

func TestFleetNotes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		a, c := join(t, b, "a"), join(t, b, "c")
		var atA, atC, later heard
		a.OnNote(atA.note)
		c.OnNote(atC.note)
		for _, n := range []struct {
			name, value string
			ttl         time.Duration
		}{{"y", "1", 0}, {"x", "1", 5 * time.Second}, {"x", "2", 5 * time.Second}} {
			if err := a.Note(t.Context(), n.name, n.value, n.ttl); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(1200 * time.Millisecond)
		atA.is(t)
		atC.is(t, "x=2", "y=1")
		c.OnNote(later.note)
		later.is(t, "x=2", "y=1")
		time.Sleep(6 * time.Second)
		atA.is(t, "x=")
		atC.is(t, "x=")
		if err := c.Note(t.Context(), "y", "", 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		atA.is(t, "y=")
		atC.is(t)
		b.set(func() { b.down = true })
		if err := a.Note(t.Context(), "y", "2", 0); err == nil {
			t.Error("a note that nobody took")
		}
		b.set(func() { b.down = false })
		time.Sleep(2 * time.Second)
		atC.is(t)
	})
}

// TestFleetNoteDuringABeat: a beat that has read the board before a note was left there does not say that the note is gone.
func TestFleetNoteDuringABeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		b.late = make(chan struct{})
		a := join(t, b, "a")
		var h heard
		a.OnNote(h.note)
		synctest.Wait() // the beat has read
		if err := a.Note(t.Context(), "x", "1", 0); err != nil {
			t.Fatal(err)
		}
		b.set(func() { close(b.late); b.late = nil })
		time.Sleep(3 * time.Second)
		h.is(t)
		late := make(chan struct{})
		b.set(func() { b.late = late })
		time.Sleep(1200 * time.Millisecond) // a beat has read once more
		if err := a.Note(t.Context(), "x", "2", 0); err != nil {
			t.Fatal(err)
		}
		b.set(func() { close(late); b.late = nil })
		time.Sleep(3 * time.Second)
		h.is(t)
		if err := b.Note(t.Context(), "x", "", 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		h.is(t, "x=")
	})
}

func TestFleetTooManyNotes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		for i := range 3000 {
			b.notes[fmt.Sprintf("n%04d", i)] = posted{value: "v"}
		}
		a := join(t, b, "a")
		var h heard
		a.OnNote(h.note)
		time.Sleep(5 * time.Second)
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.all) != maxNotes || h.all[maxNotes-1] != "n1023=v" {
			t.Errorf("heard %d notes, the last %s", len(h.all), h.all[len(h.all)-1])
		}
	})
}

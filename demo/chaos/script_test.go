package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeStore writes down what is done to it and when.
type fakeStore struct {
	began time.Time
	log   []string
	dead  chan struct{}
	fails map[string]error
	// paused tells what must not stay.
	paused bool
}

func newFakeStore() *fakeStore {
	return &fakeStore{began: time.Now(), dead: make(chan struct{}), fails: map[string]error{}}
}

func (s *fakeStore) did(what string) error {
	s.log = append(s.log, fmt.Sprintf("%s %s", time.Since(s.began), what))
	return s.fails[what]
}

func (s *fakeStore) Kill()       { _ = s.did("kill") }
func (s *fakeStore) Wipe() error { return s.did("wipe") }

func (s *fakeStore) Pause() error {
	err := s.did("pause")
	s.paused = err == nil
	return err
}

func (s *fakeStore) Resume() error {
	s.paused = false
	return s.did("resume")
}

func (s *fakeStore) Restart(context.Context) error { return s.did("restart") }
func (s *fakeStore) Dead() <-chan struct{}         { return s.dead }

// prompter writes down what it is told beside it.
type prompter struct{ s *fakeStore }

func (p prompter) begins(s step) { _ = p.s.did("begins: " + s.name) }
func (p prompter) down(step)     { _ = p.s.did("down") }
func (p prompter) ends(s step)   { _ = p.s.did("ends: " + s.name) }

func TestPlay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := play(ctx, script(20*time.Second), s, prompter{s}); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"3s begins: killed, its data kept", "3s kill", "3s down", "6s restart", "6s ends: killed, its data kept",
			"9.2s begins: stopped for 1 s", "9.2s pause", "10.2s resume", "10.2s ends: stopped for 1 s",
			"12s begins: stalled for 250 ms", "12s pause", "12.25s resume", "12.25s ends: stalled for 250 ms",
			"14s begins: killed, its data lost", "14s kill", "14s down", "14s wipe", "16.4s restart", "16.4s ends: killed, its data lost",
		}
		if !slices.Equal(s.log, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(s.log, "\n"), strings.Join(want, "\n"))
		}
		if got := time.Since(s.began); got != 20*time.Second {
			t.Errorf("it ended after %s", got)
		}
	})
}

// TestScript: whatever the duration, there is time to recover between two faults, and calm at both ends.
func TestScript(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{MinDuration, 30 * time.Second, time.Minute, MaxDuration} {
		free := time.Duration(0)
		steps := script(d)
		for _, s := range steps {
			if s.at-free < time.Second {
				t.Errorf("%s: %s comes %s after the one before", d, s.name, s.at-free)
			}
			free = s.at + s.lasts
		}
		if d-free < 2*time.Second || steps[0].at < 2*time.Second {
			t.Errorf("%s: it begins after %s and ends %s before the end", d, steps[0].at, d-free)
		}
	}
}

// TestPlayEnds: a script that is cut short leaves no store paused, and a store that fails or dies by itself ends it.
func TestPlayEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after time.Duration
		do    func(s *fakeStore, cancel func())
		says  string // "": no error
	}{
		"cancelled before":      {time.Second, func(_ *fakeStore, cancel func()) { cancel() }, ""},
		"cancelled while down":  {4 * time.Second, func(_ *fakeStore, cancel func()) { cancel() }, ""},
		"cancelled while it is": {9500 * time.Millisecond, func(_ *fakeStore, cancel func()) { cancel() }, ""},
		"died":                  {time.Second, func(s *fakeStore, _ func()) { close(s.dead) }, "not the script that ended it"},
		"died while paused":     {9500 * time.Millisecond, func(s *fakeStore, _ func()) { close(s.dead) }, "not the script that ended it"},
		"died at the end":       {19 * time.Second, func(s *fakeStore, _ func()) { close(s.dead) }, "not the script that ended it"},
		"does not start":        {0, func(s *fakeStore, _ func()) { s.fails["restart"] = errors.New("no memory") }, "killed, its data kept: no memory"},
		"cannot be paused":      {0, func(s *fakeStore, _ func()) { s.fails["pause"] = errors.New("no signal") }, "stopped for 1 s: no signal"},
		"cannot be resumed":     {0, func(s *fakeStore, _ func()) { s.fails["resume"] = errors.New("no signal") }, "stopped for 1 s: no signal"},
		"cannot be emptied":     {0, func(s *fakeStore, _ func()) { s.fails["wipe"] = errors.New("no disk") }, "killed, its data lost: no disk"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				if c.after == 0 {
					c.do(s, cancel)
				} else {
					time.AfterFunc(c.after, func() { c.do(s, cancel) })
				}
				err := play(ctx, script(20*time.Second), s, prompter{s})
				if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %v, want %q", err, c.says)
				}
				if s.paused {
					t.Error("the store is left paused")
				}
			})
		})
	}
}

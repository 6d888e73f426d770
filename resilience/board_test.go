package resilience

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"
)

// board is where instances of a test meet. It goes by the clock of the test.
type board struct {
	mu    sync.Mutex
	lives map[string]time.Time
	notes map[string]posted
	down  bool
	beats int
	// late, if set, is waited for by a beat that has read the board and not answered yet.
	late chan struct{}
}

type posted struct {
	value string
	until time.Time // zero for ever
}

var errDown = errors.New("the board is down")

func newBoard() *board { return &board{lives: map[string]time.Time{}, notes: map[string]posted{}} }

func (b *board) Beat(ctx context.Context, id string, ttl time.Duration) (int, map[string]string, error) {
	live, notes, late, err := b.beat(id, ttl)
	if late != nil {
		select {
		case <-late:
		case <-ctx.Done():
			return 0, nil, ctx.Err()
		}
	}
	return live, notes, err
}

func (b *board) beat(id string, ttl time.Duration) (live int, notes map[string]string, late chan struct{}, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.beats++
	if b.down {
		return 0, nil, nil, errDown
	}
	now := time.Now()
	if b.lives[id] = now.Add(ttl); ttl <= 0 {
		delete(b.lives, id)
	}
	maps.DeleteFunc(b.lives, func(_ string, until time.Time) bool { return !now.Before(until) })
	maps.DeleteFunc(b.notes, func(_ string, p posted) bool { return !p.until.IsZero() && !now.Before(p.until) })
	notes = map[string]string{}
	for name, p := range b.notes {
		notes[name] = p.value
	}
	return len(b.lives), notes, b.late, nil
}

func (b *board) Note(_ context.Context, name, value string, ttl time.Duration) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return errDown
	}
	p := posted{value: value}
	if ttl > 0 {
		p.until = time.Now().Add(ttl)
	}
	if b.notes[name] = p; value == "" {
		delete(b.notes, name)
	}
	return nil
}

func (b *board) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// lose takes all that the board has, as a Redis that is started empty.
func (b *board) lose() {
	b.set(func() { b.lives, b.notes = map[string]time.Time{}, map[string]posted{} })
}

func (b *board) note(name string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.notes[name].value
}

func (b *board) has(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.lives[id]
	return ok
}

func (b *board) beaten() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.beats
}

package resilience

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxNotes bounds the notes that an instance looks at; the first by name count.
const maxNotes = 1024

// notes is what an instance knows of the board's notes.
type notes struct {
	mu    sync.Mutex
	known map[string]string
	// own has the number of the last note of this instance by name, as long as a beat under way may not have seen it.
	own     map[string]uint64
	written uint64
	hooks   []func(name, value string)

	telling sync.Mutex // held while hooks run, so that they hear of changes in order
}

type change struct{ name, value string }

// Note leaves a note for all instances for the ttl, 0 for ever; a value of "" removes it. Others see it within a beat of theirs.
// An instance alone tells nobody.
func (f *Fleet) Note(ctx context.Context, name, value string, ttl time.Duration) error {
	if f.board == nil {
		return nil
	}
	if err := f.board.Note(ctx, name, value, ttl); err != nil {
		return err
	}
	f.notes.wrote(name, value)
	return nil
}

// OnNote has hook called for every note that another instance has left or changed, and with a value of "" for one that is gone:
// removed, at its end, or lost by the board. Notes that are known already are told at once. The calls come one after the other,
// from the goroutine that beats: a hook must not wait, nor call OnNote. What [Fleet.Note] has written itself is not told.
func (f *Fleet) OnNote(hook func(name, value string)) { f.notes.hook(hook) }

// begin numbers a beat: it has seen what was written before.
func (n *notes) begin() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.written
}

// wrote takes over a note that the board has taken.
func (n *notes) wrote(name, value string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.init()
	n.written++
	n.own[name] = n.written
	n.take(name, value)
}

func (n *notes) take(name, value string) {
	if value == "" {
		delete(n.known, name)
		return
	}
	n.known[name] = value
}

// seen takes over what a beat has brought. Of a note that this instance has written while the beat was under way it says nothing.
func (n *notes) seen(begun uint64, all map[string]string) {
	n.telling.Lock()
	defer n.telling.Unlock()
	changes, hooks := n.merge(begun, all)
	for _, c := range changes {
		for _, hook := range hooks {
			hook(c.name, c.value)
		}
	}
}

func (n *notes) merge(begun uint64, all map[string]string) ([]change, []func(name, value string)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.init()
	all = first(all)
	var changes []change
	for name, value := range all {
		if n.known[name] != value && n.own[name] <= begun {
			changes = append(changes, change{name, value})
		}
	}
	for name := range n.known {
		if _, there := all[name]; !there && n.own[name] <= begun {
			changes = append(changes, change{name, ""})
		}
	}
	slices.SortFunc(changes, byName)
	for _, c := range changes {
		n.take(c.name, c.value)
	}
	for name, at := range n.own {
		if at <= begun {
			delete(n.own, name)
		}
	}
	return changes, n.hooks
}

// first is all, or the first of too many.
func first(all map[string]string) map[string]string {
	if len(all) <= maxNotes {
		return all
	}
	some := make(map[string]string, maxNotes)
	for _, name := range slices.Sorted(maps.Keys(all))[:maxNotes] {
		some[name] = all[name]
	}
	return some
}

func byName(a, b change) int { return strings.Compare(a.name, b.name) }

func (n *notes) hook(hook func(name, value string)) {
	n.telling.Lock()
	defer n.telling.Unlock()
	n.mu.Lock()
	known := make([]change, 0, len(n.known))
	for name, value := range n.known {
		known = append(known, change{name, value})
	}
	n.hooks = append(slices.Clip(n.hooks), hook)
	n.mu.Unlock()
	slices.SortFunc(known, byName)
	for _, c := range known {
		hook(c.name, c.value)
	}
}

func (n *notes) init() {
	if n.known == nil {
		n.known, n.own = map[string]string{}, map[string]uint64{}
	}
}

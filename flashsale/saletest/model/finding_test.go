package model

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// finding takes what a run has found broken. It is to a run what testing.T is to a test: mutants are run with it too, of which something
// must be found.
type finding struct {
	mu     sync.Mutex
	broken []string
}

// Errorf notes something that is broken; the run goes on.
func (f *finding) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	const enough = 20
	if len(f.broken) < enough {
		f.broken = append(f.broken, fmt.Sprintf(format, args...))
	}
}

// Fatalf notes it and ends the goroutine that calls it, which must be the run's own.
func (f *finding) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

// Failed reports whether anything was found.
func (f *finding) Failed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.broken) > 0
}

// String says what, a line for each.
func (f *finding) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.broken, "\n")
}

// tally counts what has happened, of one run or of many.
type tally struct {
	mu     sync.Mutex
	counts map[string]int64
}

func newTally() *tally { return &tally{counts: map[string]int64{}} }

func (t *tally) add(what string) { t.next(what) }

// next counts, and returns the count.
func (t *tally) next(what string) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[what]++
	return t.counts[what]
}

func (t *tally) get(what string) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[what]
}

// sum adds all of another one.
func (t *tally) sum(other *tally) {
	other.mu.Lock()
	defer other.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	for what, n := range other.counts {
		t.counts[what] += n
	}
}

// String is a line for each count.
func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(t.counts)) {
		fmt.Fprintf(&b, "%8d %s\n", t.counts[what], what)
	}
	return b.String()
}

// like sums what begins with a prefix.
func (t *tally) like(prefix string) (sum int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for what, n := range t.counts {
		if strings.HasPrefix(what, prefix) {
			sum += n
		}
	}
	return sum
}

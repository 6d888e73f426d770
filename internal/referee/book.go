package referee

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	headgate "github.com/headgate-io/headgate"
)

// DefaultMost is how many admissions a [Book] keeps by default.
const DefaultMost = 4_000_000

// Book keeps admissions by limit and key until they are judged. The zero Book is ready, and keeps [DefaultMost]. It is safe
// for concurrent use.
type Book struct {
	// Most bounds the admissions that are kept; 0 stands for DefaultMost. It is set before the first Add.
	Most int

	mu    sync.Mutex
	pages map[page]*Entry
	kept  int
	full  bool
}

type page struct{ slot, key string }

// Entry is what was admitted under one limit on one key.
type Entry struct {
	Slot, Key  string
	Limit      headgate.Limit
	Admissions []Admission
}

// Add notes an admission. The limit of a slot is that of the first admission.
func (b *Book) Add(slot, key string, limit headgate.Limit, a Admission) {
	b.mu.Lock()
	defer b.mu.Unlock()
	most := b.Most
	if most == 0 {
		most = DefaultMost
	}
	if b.kept >= most {
		b.full = true
		return
	}
	if b.pages == nil {
		b.pages = make(map[page]*Entry)
	}
	e := b.pages[page{slot, key}]
	if e == nil {
		e = &Entry{Slot: slot, Key: key, Limit: limit}
		b.pages[page{slot, key}] = e
	}
	e.Admissions = append(e.Admissions, a)
	b.kept++
}

// Entries returns copies of what was noted, the admissions in the order of time, sorted by slot and key. It fails if there was
// more than the book keeps: nothing can be said of what nobody knows in full.
func (b *Book) Entries() ([]Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.full {
		return nil, fmt.Errorf("referee: more than %d admissions, which is all that the book keeps; run for a shorter time", b.kept)
	}
	all := make([]Entry, 0, len(b.pages))
	for _, e := range b.pages {
		copied := *e
		copied.Admissions = slices.SortedStableFunc(slices.Values(e.Admissions), func(x, y Admission) int { return cmp.Compare(x.At, y.At) })
		all = append(all, copied)
	}
	slices.SortFunc(all, func(x, y Entry) int { return cmp.Or(cmp.Compare(x.Slot, y.Slot), cmp.Compare(x.Key, y.Key)) })
	return all, nil
}

// Judge judges the admissions of an entry that keep, if it is not nil, wants judged.
func (e *Entry) Judge(terms Terms, keep func(Admission) bool) (*Judge, error) {
	j, err := New(e.Limit, terms)
	if err != nil {
		return nil, err
	}
	for _, a := range e.Admissions {
		if keep == nil || keep(a) {
			j.Admit(a)
		}
	}
	return j, nil
}

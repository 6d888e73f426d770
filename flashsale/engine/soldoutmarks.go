package engine

import "sync/atomic"

// marks is a set of marks that one goroutine adds to while any number look: an open table with linear probing (Knuth, The Art of Computer
// Programming 3, 6.4), at most three quarters full, 8 bytes a place. 0 is no mark.
type marks struct {
	places []atomic.Uint64 // a power of two of them
	n      int             // the writer's own
}

func newMarks(places int) *marks { return &marks{places: make([]atomic.Uint64, places)} }

func (m *marks) has(mark uint64) bool {
	for i := mark; ; i++ {
		switch m.places[i&uint64(len(m.places)-1)].Load() {
		case mark:
			return true
		case 0:
			return false
		}
	}
}

// add returns the set with one more mark, which is another one if it had to grow. The old one stays as it was.
func (m *marks) add(mark uint64) *marks {
	if m.has(mark) {
		return m
	}
	if 4*(m.n+1) > 3*len(m.places) {
		wider := newMarks(2 * len(m.places))
		for i := range m.places {
			if old := m.places[i].Load(); old != 0 {
				wider.put(old)
			}
		}
		m = wider
	}
	m.put(mark)
	return m
}

func (m *marks) put(mark uint64) {
	i := mark
	for m.places[i&uint64(len(m.places)-1)].Load() != 0 {
		i++
	}
	m.places[i&uint64(len(m.places)-1)].Store(mark)
	m.n++
}

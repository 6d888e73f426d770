package engine

import (
	"math/rand/v2"
	"sync"
	"testing"
)

// TestMarkSet: what was added is there and nothing else, in every set that the growing one has been.
func TestMarkSet(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	m, all := newMarks(8), []uint64{}
	for range 5000 {
		mark := random.Uint64() | 1
		if random.IntN(2) == 0 {
			mark = mark&^63 | 1 // many with one place
		}
		before, n := m, m.n
		m = m.add(mark)
		all = append(all, mark)
		if before != m && (before.has(mark) || before.n != n) {
			t.Fatal("the set that was has changed")
		}
		if again := m.add(mark); again != m || 4*m.n > 3*len(m.places) {
			t.Fatalf("%d marks in %d places", m.n, len(m.places))
		}
	}
	distinct := map[uint64]bool{}
	for _, mark := range all {
		distinct[mark] = true
		if !m.has(mark) {
			t.Fatalf("%x is missing", mark)
		}
	}
	if m.n != len(distinct) {
		t.Errorf("%d marks of %d", m.n, len(distinct))
	}
	for range 5000 {
		if mark := random.Uint64() &^ 1; mark != 0 && m.has(mark) {
			t.Fatalf("%x was never added", mark)
		}
	}
}

// TestMarkSetIsReadMeanwhile: readers find what was there when they got the set, while it is added to.
func TestMarkSetIsReadMeanwhile(t *testing.T) {
	t.Parallel()
	const n = 2000
	sets := make(chan *marks, n)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for m := range sets {
				for mark := uint64(1); mark <= 10; mark++ {
					if !m.has(mark) {
						t.Errorf("%d is missing", mark)
					}
				}
			}
		})
	}
	m := newMarks(8)
	for mark := uint64(1); mark <= 10+n; mark++ {
		if m = m.add(mark); mark > 10 {
			sets <- m
		}
	}
	close(sets)
	all.Wait()
}

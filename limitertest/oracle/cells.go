package oracle

import (
	"maps"
	"math/big"

	headgate "github.com/headgate-io/headgate"
)

// cellState is the counts of cells by their start. A cell without a count is not stored.
type cellState struct {
	length int64
	cells  int64
	counts map[int64]int64
}

func (cellState) algorithm() headgate.Algorithm { return headgate.AlgSlidingWindow }

func (s cellState) newest() (start int64, ok bool) {
	for at := range s.counts {
		if !ok || at > start {
			start, ok = at, true
		}
	}
	return start, ok
}

func (s cellState) inspect(now int64) (used, idleAt int64) {
	newest, _ := s.newest()
	at := max(floorTo(now, s.length), newest)
	for start, n := range s.counts {
		if start >= at-s.cells*s.length {
			used += n
		}
	}
	return used, newest + (s.cells+1)*s.length
}

// cellModel has the cells that matter at eff.
type cellModel struct {
	cellState
	limit    int64
	now, eff int64
}

func newCells(old state, l headgate.SlidingWindow, now int64) (model, change) {
	if l.Count() == 0 {
		return nothing{}, fresh
	}
	length := inMicros(l.Period()) / l.Cells()
	m := &cellModel{cellState{length, l.Cells(), map[int64]int64{}}, l.Count(), now, now}
	s, ok := old.(cellState)
	if !ok || s.length != length || s.cells != l.Cells() {
		return m, fresh
	}
	counts, did := maps.Clone(s.counts), kept
	newest, _ := s.newest()
	switch own := m.cell(0); {
	case newest > own && newest-now <= length:
		m.eff = newest
	case newest > own:
		did = changed
		for at, n := range s.counts {
			if at > now {
				delete(counts, at)
				counts[own] = min(counts[own]+n, 1<<48-1)
			}
		}
	}
	for at, n := range counts {
		if at >= m.cell(m.cells) {
			m.counts[at] = n
		}
	}
	return m, did
}

// cell returns the start of the cell that lies back cells before that of eff.
func (m *cellModel) cell(back int64) int64 { return floorTo(m.eff, m.length) - back*m.length }

// usedAt is the weighted count at a time at or after eff.
func (m *cellModel) usedAt(t int64) *big.Rat {
	own := floorTo(t, m.length)
	inside := big.NewRat(m.length-(t-own), m.length)
	used := mul(inside, whole(m.counts[own-m.cells*m.length]))
	for back := range m.cells {
		used = add(used, whole(m.counts[own-back*m.length]))
	}
	return used
}

func (m *cellModel) fits(cost, t int64) bool {
	return add(m.usedAt(t), whole(cost)).Cmp(whole(m.limit)) <= 0
}

func (m *cellModel) judge(cost int64, _ string) answer {
	if cost > m.limit {
		return never()
	}
	if m.fits(cost, m.eff) {
		return pass
	}
	return after(headgate.ReasonLimited, m.firstFit(cost)-m.now)
}

// firstFit returns the first time after eff at which a cost fits. Within a cell the count only falls, so the search looks
// for the first cell at whose last microsecond it fits, and halves that cell.
func (m *cellModel) firstFit(cost int64) int64 {
	from := m.eff
	last := m.cell(0) + m.length - 1
	for !m.fits(cost, last) {
		from, last = last, last+m.length
		if m.fits(cost, from+1) { // at the start of a cell
			return from + 1
		}
	}
	low, high := from, last // does not fit at low, fits at high
	for high-low > 1 {
		if mid := low + (high-low)/2; m.fits(cost, mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

func (m *cellModel) room(cost int64, _ string) int64 {
	units, _ := m.left()
	return min(cost, units)
}

func (m *cellModel) charge(cost int64, _ string) int64 {
	m.counts[m.cell(0)] += cost
	return m.cell(0)
}

func (m *cellModel) refund(amount, mark int64, _ string) bool {
	if len(m.counts) == 0 || mark < m.cell(m.cells) || mark > m.cell(0) || mark != floorTo(mark, m.length) {
		return false
	}
	if m.counts[mark] -= amount; m.counts[mark] <= 0 {
		delete(m.counts, mark)
	}
	return true
}

func (m *cellModel) left() (int64, bool) {
	return max(0, floor(sub(whole(m.limit), m.usedAt(m.eff)))), true
}

func (m *cellModel) wait() int64 { return 0 }

func (m *cellModel) reset() int64 {
	newest, ok := m.newest()
	if !ok {
		return 0
	}
	return newest + (m.cells+1)*m.length - m.now
}

func (m *cellModel) stored() state {
	if len(m.counts) == 0 {
		return nil
	}
	return m.cellState
}

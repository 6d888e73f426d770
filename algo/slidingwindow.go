package algo

import (
	"math/bits"

	headgate "github.com/headgate-io/headgate"
)

// slidingWindow keeps the start of the newest cell that has a count, and the counts of it and of the cells before it,
// newest first: one for each cell of the period and one more, of which a part is still inside.
type slidingWindow struct{}

// maxCell is the most that one cell counts. Only a clock that goes back far again and again moves so much into one, and it is
// more than is left in any period after.
const maxCell = 1<<48 - 1

// cells is a state seen from the cell that decides: now's, or one a little ahead of it.
type cells struct {
	*env
	v      []int64
	start  int64 // of the deciding cell
	inside int64 // how far the deciding time is inside that cell, µs
	shift  int   // how many cells the newest count lies back
}

func cellsOf(s *state, e *env) cells {
	c := cells{env: e, v: s.series}
	switch since := e.now - s.at; {
	case len(c.v) > 0 && since < e.length && since >= 0:
		c.start, c.inside = s.at, since
		return c
	default:
		c.start = floorTo(e.now, e.length)
		c.inside = e.now - c.start
	}
	switch {
	case len(c.v) == 0:
	case s.at > c.start:
		c.start, c.inside = s.at, 0
	default:
		c.shift = int(min((c.start-s.at)/e.length, int64(e.cells)+1))
	}
	return c
}

// at returns the count of the cell that lies i cells back from the deciding one.
func (c *cells) at(i int) int64 {
	if i -= c.shift; i >= 0 && i < len(c.v) {
		return c.v[i]
	}
	return 0
}

// sum adds up the deciding cell and those before it that are wholly inside the period, seen from j cells ahead.
func (c *cells) sum(j int) (n int64) {
	for _, count := range c.v[:min(max(c.cells-j-c.shift, 0), len(c.v))] {
		n += count
	}
	return n
}

func (slidingWindow) normalise(s *state, by headgate.Limit, e *env) (did change) {
	if !e.same {
		old, ok := by.(headgate.SlidingWindow)
		if !ok || int(old.Cells()) != e.cells || old.Period().Microseconds()/old.Cells() != e.length {
			*s = state{}
			return fresh
		}
	}
	if len(s.series) == 0 || s.at-e.now <= e.length {
		return kept
	}
	// The clock went back far: what lies ahead counts as of now.
	start := floorTo(e.now, e.length)
	v := make([]int64, e.cells+1)
	for i, n := range s.series {
		if back := (start - (s.at - int64(i)*e.length)) / e.length; back < int64(len(v)) {
			v[max(back, 0)] = min(v[max(back, 0)]+n, maxCell)
		}
	}
	s.at, s.series = start, v
	return altered
}

func (slidingWindow) judge(s *state, e *env, cost int64) judgement {
	if cost > e.size {
		return never
	}
	c := cellsOf(s, e)
	if room := e.size - c.sum(0) - cost; room >= 0 && c.inside >= c.roomAt(c.at(e.cells), room) {
		return passes
	}
	return after(c.firstFit(cost) - e.now)
}

// firstFit is the first time at which a cost that does not fit now will fit, if nothing else comes.
func (c *cells) firstFit(cost int64) int64 {
	for j := 0; ; j++ { // when the deciding cell is no longer inside, everything fits
		room := c.size - c.sum(j) - cost
		if room < 0 {
			continue
		}
		if inside := c.roomAt(c.at(c.cells-j), room); inside < c.length {
			return c.start + int64(j)*c.length + inside
		}
	}
}

// roomAt returns how far inside a cell the oldest cell's weight, old·(length−inside)/length, has come down to room.
func (c *cells) roomAt(old, room int64) int64 {
	if old <= room {
		return 0
	}
	hi, lo := bits.Mul64(uint64(room), uint64(c.length))
	q, _ := bits.Div64(hi, lo, uint64(old)) // room < old, so the quotient is below length
	return c.length - int64(q)
}

// left is how much the period has room for: count − sum − the weight of the oldest cell, rounded down.
func (slidingWindow) left(s *state, e *env) int64 {
	c := cellsOf(s, e)
	left := e.size - c.sum(0)
	if old := c.at(e.cells); old > 0 {
		hi, lo := bits.Mul64(uint64(old), uint64(c.length-c.inside))
		q, r := bits.Div64(hi, lo, uint64(c.length)) // (length−inside) ≤ length, so the quotient is at most the count
		left -= int64(q) + int64(min(r, 1))
	}
	return max(0, left)
}

func (slidingWindow) used(s *state, e *env) int64 {
	c := cellsOf(s, e)
	return c.sum(0) + c.at(e.cells)
}

func (slidingWindow) pay(s *state, e *env, cost int64) (mark int64) {
	c := cellsOf(s, e)
	s.compact(&c)
	s.series[0] += cost
	return c.start
}

// compact moves the counts so that the deciding cell is the newest.
func (s *state) compact(c *cells) {
	switch {
	case s.series == nil:
		s.series = make([]int64, c.cells+1)
	case c.shift > 0:
		kept := len(s.series) - min(c.shift, len(s.series))
		copy(s.series[len(s.series)-kept:], s.series[:kept])
		clear(s.series[:len(s.series)-kept])
	}
	s.at = c.start
}

func (slidingWindow) resetAfter(s *state, e *env) int64 {
	c := cellsOf(s, e)
	for i := 0; i <= e.cells; i++ {
		if c.at(i) > 0 {
			return c.start + int64(e.cells+1-i)*c.length - e.now
		}
	}
	return 0
}

func (w slidingWindow) refund(s *state, e *env, n, mark int64) bool {
	c := cellsOf(s, e)
	since := c.start - mark
	back := since / c.length
	if since < 0 || since%c.length != 0 || back > int64(e.cells) || w.used(s, e) == 0 {
		return false
	}
	s.compact(&c)
	v := s.series
	v[back] -= min(n, v[back])
	for i := range v { // the newest cell is one that has a count
		if v[i] > 0 {
			copy(v, v[i:])
			clear(v[len(v)-i:])
			s.at -= int64(i) * c.length
			return true
		}
	}
	s.series = nil
	return true
}

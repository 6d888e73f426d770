package algo

import (
	"math/bits"

	headgate "github.com/headgate-io/headgate"
)

// slidingWindow keeps the start of the newest cell that has a count, and the counts of it and of the cells before it,
// newest first: one for each cell of the period and one more, of which a part is still inside.
type slidingWindow struct{}

// cells is a state seen from the cell that decides.
type cells struct {
	count, length int64 // the limit's count; the length of a cell, µs
	k             int   // cells in a period
	now           int64
	start         int64 // of the cell that decides: now's, or one a little ahead
	inside        int64 // how far the deciding time is inside that cell, µs
	v             []int64
	shift         int // how many cells the newest count lies back
}

func cellsOf(s *state, e *env) cells {
	l := e.limit.(headgate.SlidingWindow)
	c := cells{count: l.Count(), length: l.Period().Microseconds() / l.Cells(), k: int(l.Cells()), now: e.now}
	c.start = floorTo(e.now, c.length)
	c.inside = e.now - c.start
	if s.series == nil {
		return c
	}
	c.v = s.series.v
	if s.at > c.start {
		c.start, c.inside = s.at, 0
	} else {
		c.shift = int(min((c.start-s.at)/c.length, int64(c.k)+1))
	}
	return c
}

// at returns the count of the cell that lies i cells back from the deciding one.
func (c *cells) at(i int) int64 {
	if i -= c.shift; i < 0 || i >= len(c.v) {
		return 0
	}
	return c.v[i]
}

// sum adds up the deciding cell and those before it, from j cells ahead of it.
func (c *cells) sum(j int) (n int64) {
	for i := 0; i < c.k-j; i++ {
		n += c.at(i)
	}
	return n
}

func (slidingWindow) normalise(s *state, e *env) (dirty bool) {
	l := e.limit.(headgate.SlidingWindow)
	if s.by != e.limit {
		old, ok := s.by.(headgate.SlidingWindow)
		if !ok || old.Period() != l.Period() || old.Cells() != l.Cells() {
			dirty = s.by != nil
			*s = state{}
		}
		s.by = e.limit
	}
	length := l.Period().Microseconds() / l.Cells()
	if s.series == nil || s.at-e.now <= length {
		return dirty
	}
	// The clock went back far: what lies ahead counts as of now.
	start := floorTo(e.now, length)
	v := make([]int64, l.Cells()+1)
	for i, n := range s.series.v {
		if back := (start - (s.at - int64(i)*length)) / length; back < int64(len(v)) {
			v[max(back, 0)] += n
		}
	}
	s.at, s.series = start, &series{v}
	return true
}

func (slidingWindow) judge(s *state, e *env, cost int64) judgement {
	c := cellsOf(s, e)
	if cost == 0 {
		return passes
	}
	if cost > c.count {
		return never
	}
	first := int64(-1)
	for j := 0; j <= c.k+1; j++ {
		room := c.count - c.sum(j) - cost
		if room < 0 {
			continue
		}
		inside := c.roomAt(c.at(c.k-j), room)
		if j == 0 {
			inside = max(inside, c.inside)
		}
		if inside < c.length {
			first = c.start + int64(j)*c.length + inside
			break
		}
	}
	if first <= c.start+c.inside {
		return passes
	}
	return after(first - c.now)
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
func (c *cells) left() int64 {
	hi, lo := bits.Mul64(uint64(c.at(c.k)), uint64(c.length-c.inside))
	q, r := bits.Div64(hi, lo, uint64(c.length)) // (length−inside) ≤ length, so the quotient is at most the count
	if r > 0 {
		q++
	}
	return max(0, c.count-c.sum(0)-int64(q))
}

func (slidingWindow) left(s *state, e *env, cost int64) int64 {
	c := cellsOf(s, e)
	return min(cost, c.left())
}

func (slidingWindow) pay(s *state, e *env, cost int64) int64 {
	c := cellsOf(s, e)
	s.compact(&c)
	s.series.v[0] += cost
	return c.start
}

// compact moves the counts so that the deciding cell is the newest.
func (s *state) compact(c *cells) {
	if s.series == nil {
		s.series = &series{make([]int64, c.k+1)}
	}
	v := s.series.v
	for i := c.k; i >= 0; i-- {
		v[i] = c.at(i)
	}
	s.at = c.start
}

func (slidingWindow) report(s *state, e *env, o *headgate.Outcome) {
	c := cellsOf(s, e)
	o.HasRemaining, o.Remaining = true, c.left()
	for i := 0; i <= c.k; i++ {
		if c.at(i) > 0 {
			o.ResetAfter = micros(c.start - int64(i)*c.length + int64(c.k+1)*c.length - c.now)
			return
		}
	}
}

func (slidingWindow) refund(s *state, e *env, n, mark int64) int64 {
	c := cellsOf(s, e)
	if s.series == nil {
		return 0
	}
	s.compact(&c)
	back := (c.start - mark) / c.length
	if back < 0 || back > int64(c.k) {
		return 0
	}
	v := s.series.v
	n = min(n, v[back])
	v[back] -= n
	for i := range v { // the newest cell is one that has a count
		if v[i] > 0 {
			copy(v, v[i:])
			clear(v[len(v)-i:])
			s.at -= int64(i) * c.length
			return n
		}
	}
	s.series = nil
	return n
}

func (slidingWindow) idleAt(s *state) int64 {
	if s.series == nil {
		return headgate.MinTime
	}
	l := s.by.(headgate.SlidingWindow)
	return s.at + (l.Cells()+1)*(l.Period().Microseconds()/l.Cells())
}

func (slidingWindow) used(s *state, now int64) int64 {
	c := cellsOf(s, &env{limit: s.by, now: now})
	return c.count - c.left()
}

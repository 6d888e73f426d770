package replay

// perSecond finds the busiest second. Times never go back.
type perSecond struct {
	second, now, peak int64
	at                int64 // the second of the peak
}

func (p *perSecond) add(us int64) {
	second := floorDiv(us, 1e6)
	if second != p.second {
		p.second, p.now = second, 0
	}
	if p.now++; p.now > p.peak {
		p.peak, p.at = p.now, second
	}
}

// mostPoints bounds a series.
const mostPoints = 600

// series counts in slices of time that begin with a second and get longer as the log does, so that there are never more
// than mostPoints.
type series struct {
	width  int // index in widths
	base   int64
	points []point
}

// point is what came in one slice of time.
type point struct{ requests, allowed, before int64 }

func (p *point) add(allowed, before bool) {
	p.requests++
	if allowed {
		p.allowed++
	}
	if before {
		p.before++
	}
}

// widthOf returns the length of a slice in seconds. Each divides the next, so that slices can be put together.
func widthOf(index int) int64 {
	steps := [...]int64{1, 5, 10, 30, 60, 300, 600, 1800, 3600, 10800, 21600, 43200, 86400}
	if index < len(steps) {
		return steps[index]
	}
	return steps[len(steps)-1] << min(index-len(steps)+1, 40)
}

// at returns the point of a time. Times never go back.
func (s *series) at(us int64) *point {
	second := floorDiv(us, 1e6)
	if s.points == nil {
		s.points = make([]point, 0, mostPoints)
		s.base = second
	}
	for {
		i := int((second - s.base) / widthOf(s.width))
		if i < mostPoints {
			for len(s.points) <= i {
				s.points = append(s.points, point{})
			}
			return &s.points[i]
		}
		s.widen()
	}
}

// widen goes over to the next width.
func (s *series) widen() {
	from, to := widthOf(s.width), widthOf(s.width+1)
	base := s.base - floorMod(s.base, to)
	var wide []point
	for i, p := range s.points {
		n := int((s.base + int64(i)*from - base) / to)
		for len(wide) <= n {
			wide = append(wide, point{})
		}
		wide[n].requests += p.requests
		wide[n].allowed += p.allowed
		wide[n].before += p.before
	}
	s.base, s.points = base, append(s.points[:0], wide...)
	s.width++
}

// closeUp keeps the ten minutes around the busiest second, second by second.
type closeUp struct {
	ring [closeUpSeconds]point
	now  int64 // the second that is being counted
	any  bool

	peak   int64 // requests of the busiest second
	peakAt int64
	kept   []point // of the seconds from keptAt on
	keptAt int64
}

const closeUpSeconds = 600

// at returns the point of a time. Times never go back.
func (c *closeUp) at(us int64) *point {
	second := floorDiv(us, 1e6)
	if !c.any {
		c.any, c.now = true, second
	}
	for c.now < second {
		c.pass(second)
	}
	return &c.ring[floorMod(c.now, closeUpSeconds)]
}

// pass goes on to the next second; over a gap that is longer than the ring to its end.
func (c *closeUp) pass(to int64) {
	if n := c.ring[floorMod(c.now, closeUpSeconds)].requests; n > c.peak {
		c.peak, c.peakAt, c.kept = n, c.now, nil
	}
	gap := to-c.now > closeUpSeconds
	if c.kept == nil && (gap || c.now-c.peakAt >= closeUpSeconds/2-1) {
		c.keep()
	}
	if gap {
		clear(c.ring[:])
		c.now = to
		return
	}
	c.now++
	c.ring[floorMod(c.now, closeUpSeconds)] = point{}
}

// keep copies the ring.
func (c *closeUp) keep() {
	c.keptAt = c.now - closeUpSeconds + 1
	c.kept = make([]point, 0, closeUpSeconds)
	for s := c.keptAt; s <= c.now; s++ {
		c.kept = append(c.kept, c.ring[floorMod(s, closeUpSeconds)])
	}
}

// end returns the seconds around the busiest one, and when they begin.
func (c *closeUp) end() (from int64, points []point) {
	if !c.any {
		return 0, nil
	}
	if n := c.ring[floorMod(c.now, closeUpSeconds)].requests; n > c.peak {
		c.peak, c.peakAt, c.kept = n, c.now, nil
	}
	if c.kept == nil {
		c.keep()
	}
	from, points = c.keptAt, c.kept
	for len(points) > 1 && points[0].requests == 0 {
		from, points = from+1, points[1:]
	}
	return from, points
}

package referee

import (
	"fmt"
	"math/big"
	"slices"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// window is a fixed window: in each, its count.
type window struct {
	count   int64
	period  int64 // 0 for a calendar's
	unit    headgate.CalendarUnit
	zone    *time.Location
	now     span
	n       int64
	windows int64
}

// span names a window: by its number, or by its first date and hour on the clocks of its zone. Where a clock is set back, two
// hours have one name and differ in their offset from UTC.
type span struct {
	number           int64
	year, day        int
	month            time.Month
	hour, fromUTC    int
	calendar, exists bool
}

func newWindow(l headgate.FixedWindow, t Terms) (*window, error) {
	w := &window{count: l.Count() + t.Extra, period: l.Period().Microseconds()}
	unit, zone := l.Calendar()
	if unit == headgate.NotCalendar {
		return w, nil
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return nil, fmt.Errorf("referee: the zone of %v: %w", l, err)
	}
	w.unit, w.zone = unit, loc
	return w, nil
}

func (w *window) at(us int64) span {
	if w.unit == headgate.NotCalendar {
		return span{number: floor(us, max(w.period, 1)), exists: true}
	}
	t := time.UnixMicro(us).In(w.zone)
	if w.unit == headgate.Week {
		t = t.AddDate(0, 0, -(int(t.Weekday())+6)%7)
	}
	s := span{calendar: true, exists: true}
	s.year, s.month, s.day = t.Date()
	switch w.unit {
	case headgate.Month:
		s.day = 1
	case headgate.Hour:
		s.hour = t.Hour()
		_, s.fromUTC = t.Zone()
	}
	return s
}

func (w *window) fits(at, units int64) bool { return w.used(at)+units <= w.count }

func (w *window) charge(a Admission) {
	if s := w.at(a.At); s != w.now {
		w.now, w.n = s, 0
		w.windows++
	}
	w.n += a.Units
}

func (w *window) used(at int64) int64 {
	if w.at(at) != w.now {
		return 0
	}
	return w.n
}

func (w *window) most() int64 { return w.windows * w.count }

// rollingLog is a sliding log: in every period, its count.
type rollingLog struct {
	count, period int64
	live          []Admission
	first, last   int64
	began         bool
}

func (l *rollingLog) used(at int64) (n int64) {
	for _, a := range l.live {
		if a.At > at-l.period {
			n += a.Units
		}
	}
	return n
}

func (l *rollingLog) fits(at, units int64) bool { return l.used(at)+units <= l.count }

func (l *rollingLog) charge(a Admission) {
	l.live = slices.DeleteFunc(l.live, func(old Admission) bool { return old.At <= a.At-l.period })
	l.live = append(l.live, a)
	if !l.began {
		l.first = a.At
	}
	l.began, l.last = true, a.At
}

func (l *rollingLog) most() int64 { return l.count * (1 + (l.last-l.first)/max(l.period, 1)) }

// cells is a sliding window: the cell of the time, the k-1 before it, and of the one before those the part that is still in.
type cells struct {
	count, length, k int64
	filled           []cell // the newest last
	first, last      int64
	began            bool
	touched          int64
}

type cell struct{ number, n int64 }

func newCells(l headgate.SlidingWindow, t Terms) *cells {
	k := max(l.Cells(), 1)
	return &cells{count: l.Count() + t.Extra, length: max(l.Period().Microseconds()/k, 1), k: k}
}

// weigh returns what counts at a time: whole units, and the units of the oldest cell, which count by left/length.
func (c *cells) weigh(at int64) (whole, oldest, left int64) {
	now := floor(at, c.length)
	for _, f := range c.filled {
		switch age := now - f.number; {
		case age < c.k:
			whole += f.n
		case age == c.k:
			oldest = f.n
		}
	}
	return whole, oldest, c.length - (at - now*c.length)
}

func (c *cells) fits(at, units int64) bool {
	whole, oldest, left := c.weigh(at)
	part := new(big.Int).Mul(big.NewInt(oldest), big.NewInt(left))
	room := new(big.Int).Mul(big.NewInt(c.count-whole-units), big.NewInt(c.length))
	return part.Cmp(room) <= 0
}

func (c *cells) charge(a Admission) {
	now := floor(a.At, c.length)
	c.filled = slices.DeleteFunc(c.filled, func(f cell) bool { return now-f.number > c.k })
	if n := len(c.filled); n == 0 || c.filled[n-1].number != now {
		c.filled = append(c.filled, cell{number: now})
		c.touched++
	}
	c.filled[len(c.filled)-1].n += a.Units
	if !c.began {
		c.first = a.At
	}
	c.began, c.last = true, a.At
}

func (c *cells) used(at int64) int64 {
	whole, oldest, left := c.weigh(at)
	part := new(big.Int).Mul(big.NewInt(oldest), big.NewInt(left))
	part.Add(part, big.NewInt(c.length-1))
	return whole + part.Quo(part, big.NewInt(c.length)).Int64()
}

// most: what comes within k-1 lengths counts in full when the last of it comes, and of one cell anyway.
func (c *cells) most() int64 {
	if c.k == 1 {
		return c.count * c.touched
	}
	reach := (c.k - 1) * c.length
	return c.count * max(1, min(c.touched, (c.last-c.first+reach-1)/reach))
}

// inFlight is a concurrency limit: what was acquired, and neither released nor dead, within its count.
type inFlight struct {
	count, ttl int64
	ends       []int64
}

func (f *inFlight) used(at int64) (n int64) {
	for _, end := range f.ends {
		if end > at {
			n++
		}
	}
	return n
}

func (f *inFlight) fits(at, units int64) bool { return f.used(at)+units <= f.count }

func (f *inFlight) charge(a Admission) {
	f.ends = slices.DeleteFunc(f.ends, func(end int64) bool { return end <= a.At })
	end := a.Until
	if end == 0 {
		end = a.At + f.ttl
	}
	for range a.Units {
		f.ends = append(f.ends, end)
	}
}

func (f *inFlight) most() int64 { return f.count }

// floor divides, also below zero, downwards.
func floor(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

package memstore

import (
	"sync/atomic"
	"time"

	headgate "github.com/headgate-io/headgate"
)

const (
	// recheck is how long the wall clock is derived from the monotonic clock before it is looked at again.
	recheck = 100 * time.Millisecond
	// tolerance is how far the two may drift apart before the wall clock is taken over anew.
	tolerance = time.Millisecond
)

// clock tells the wall clock's time. Reading it costs about 40 ns, half of it for the monotonic clock that comes along; so
// it reads the monotonic clock alone and adds the distance of the two, which changes only when someone sets the wall clock.
type clock struct {
	custom func() time.Time // nil: the wall clock
	wall   func() time.Time // time.Now, but in tests
	base   atomic.Pointer[base]
}

// base is a moment on both clocks. It is never changed.
type base struct {
	at   time.Time // has the monotonic reading
	wall int64     // the same moment, µs since the epoch
	due  time.Duration
}

func (c *clock) now() (int64, error) {
	if b := c.base.Load(); b != nil {
		if d := time.Since(b.at); d < b.due {
			return b.wall + int64(d)/int64(time.Microsecond), nil
		}
	}
	return c.look()
}

// look reads the wall clock, or the one that was passed in.
func (c *clock) look() (int64, error) {
	if c.custom != nil {
		return headgate.Micros(c.custom())
	}
	t := c.wall()
	wall, err := headgate.Micros(t)
	if err != nil {
		return 0, err
	}
	old := c.base.Load()
	if old != nil {
		since := time.Since(old.at)
		derived := old.wall + since.Microseconds()
		if drift := wall - derived; -tolerance.Microseconds() < drift && drift < tolerance.Microseconds() {
			c.base.CompareAndSwap(old, &base{at: old.at, wall: old.wall, due: since + recheck})
			return derived, nil
		}
	}
	// Back to the last whole microsecond, so that wall and at are the same moment.
	c.base.CompareAndSwap(old, &base{at: time.Now().Add(-time.Duration(t.Nanosecond() % 1000)), wall: wall, due: recheck})
	return wall, nil
}

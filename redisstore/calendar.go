package redisstore

import (
	"sync"
	"sync/atomic"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/algo"
)

// calendars keeps, for each unit and zone, the last windows that were sent.
type calendars struct {
	zones *algo.Zones
	last  sync.Map // calendar → *atomic.Pointer[[4]int64]
}

type calendar struct {
	unit headgate.CalendarUnit
	zone string
}

// bounds returns the starts of the window before the one around a time, of that one, of the next, and its end.
func (c *calendars) bounds(limit headgate.Limit, around int64) [4]int64 {
	l, ok := limit.(headgate.FixedWindow)
	if !ok {
		return [4]int64{}
	}
	unit, zone := l.Calendar()
	kept, ok := c.last.Load(calendar{unit, zone})
	if !ok {
		kept, _ = c.last.LoadOrStore(calendar{unit, zone}, new(atomic.Pointer[[4]int64]))
	}
	last := kept.(*atomic.Pointer[[4]int64])
	if b := last.Load(); b != nil && b[1] <= around && around < b[2] {
		return *b
	}
	start, end := c.zones.Window(l, around)
	before, _ := c.zones.Window(l, start-1)
	_, after := c.zones.Window(l, end)
	b := [4]int64{before, start, end, after}
	last.Store(&b)
	return b
}

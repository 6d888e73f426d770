package engine

import (
	"sync"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// Consumers says how jobs are decided.
type Consumers struct {
	// Min and Max bound how many workers decide jobs at a time. Defaults 1 and 8.
	Min, Max int
	// Batch is how many jobs one transaction decides at most, 1 to 1000. Default 256.
	Batch int
	// Reclaim is for how long a consumer may have a job before another takes it over. Default 5 s.
	Reclaim time.Duration
	// Idle is how long a worker waits that has found nothing and is not woken. Default 20 ms.
	Idle time.Duration
}

func (c Consumers) withDefaults() Consumers {
	if c.Min <= 0 {
		c.Min = 1
	}
	if c.Max <= 0 {
		c.Max = 8
	}
	c.Max = max(c.Max, c.Min)
	if c.Batch <= 0 {
		c.Batch = 256
	}
	c.Batch = min(c.Batch, 1000)
	if c.Reclaim <= 0 {
		c.Reclaim = 5 * time.Second
	}
	if c.Idle <= 0 {
		c.Idle = 20 * time.Millisecond
	}
	return c
}

// wakers let whoever has appended a job wake a worker of its key in this process.
type wakers struct {
	mu sync.Mutex
	of map[flashsale.Key]chan struct{}
}

func newWakers() *wakers { return &wakers{of: map[flashsale.Key]chan struct{}{}} }

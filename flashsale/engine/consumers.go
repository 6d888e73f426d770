package engine

import "time"

// Consumers says how jobs are decided.
type Consumers struct {
	// Min and Max bound how many workers decide jobs at a time. Defaults 1 and 8.
	Min, Max int
	// Batch is how many jobs one transaction decides at most, 1 to 1000. Default 256.
	Batch int
	// Reclaim is for how long a consumer may have a job before another takes it over. Default 5 s.
	Reclaim time.Duration
	// Idle is how long workers wait before they look again at a sku that had nothing, unless they are woken: who reserves in this
	// process wakes them. A sku that stays quiet is looked at ever less often, down to 25 times Idle. Default 20 ms.
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

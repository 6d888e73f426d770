package demo

import "time"

// WithTimes has the sale open and close so long after the beginning, with so much time to pay.
func WithTimes(c Config, opens, closes, hold time.Duration) Config {
	c.replan = func(p *plan) {
		now := time.Now()
		p.opens, p.closes, p.hold, p.payTime = now.Add(opens), now.Add(closes), hold, hold
	}
	return c
}

package metrics

import (
	"strconv"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// collect shows what the functions tell.
func (c *Config) collect(o *sink, rules *rules) {
	if c.Instances != nil {
		o.value(famInstances, float64(c.Instances()))
	}
	if c.FleetAge != nil {
		o.value(famFleetAge, c.FleetAge().Seconds())
	}
	if c.Waiting != nil {
		o.value(famWaiting, float64(c.Waiting()))
	}
	c.collectLevels(o)
	c.collectTraffic(o)
	c.collectStores(o)
	c.collectOverload(o)
	c.collectPolicy(o, rules)
}

func (c *Config) collectLevels(o *sink) {
	if c.Breakers != nil {
		for node, open := range c.Breakers() {
			o.value(famBreakerOpen, bit(open), orNone(node))
		}
	}
	if c.Switches == nil {
		return
	}
	level := 0
	for i, on := range c.Switches() {
		o.value(famSwitch, bit(on), strconv.Itoa(i+1))
		if on {
			level = i + 1
		}
	}
	o.value(famLevel, float64(level))
}

func (c *Config) collectTraffic(o *sink) {
	if c.Gateway != nil {
		g := c.Gateway()
		o.value(famInFlight, float64(g.InFlight))
		o.value(famTunnels, float64(g.Tunnels))
		o.value(famHeld, float64(g.Held))
	}
	if c.Upstreams == nil {
		return
	}
	seen := make(map[string]bool)
	for _, u := range c.Upstreams() {
		if seen[u.Upstream] {
			continue // a series twice would spoil the scrape
		}
		seen[u.Upstream] = true
		o.value(famUpstreamEjected, bit(u.Ejected), u.Upstream)
		o.value(famUpstreamInFlight, float64(u.InFlight), u.Upstream)
		if u.Limit > 0 {
			o.value(famUpstreamLimit, float64(u.Limit), u.Upstream)
		}
		o.value(famUpstreamRequests, float64(u.Requests), u.Upstream)
		o.value(famUpstreamFailures, float64(u.Failures), u.Upstream)
	}
}

func (c *Config) collectStores(o *sink) {
	if c.Leases != nil {
		l := c.Leases()
		o.value(famLeaseKeys, float64(l.Keys))
		o.value(famLeaseHeld, float64(l.Held))
	}
	if c.DenyCache != nil {
		d := c.DenyCache()
		o.value(famDenyKeys, float64(d.Keys))
		o.value(famDenyHits, float64(d.Hits))
		o.value(famDenyMisses, float64(d.Misses))
		o.value(famDenyEvicted, float64(d.Evictions))
	}
}

func (c *Config) collectOverload(o *sink) {
	if c.Overload == nil {
		return
	}
	l := c.Overload()
	o.value(famOverloaded, bit(l.Active))
	o.value(famLoad, l.CPU, "cpu")
	o.value(famLoad, l.Memory, "memory")
	o.value(famThreshold, l.CPUThreshold, "cpu")
	o.value(famThreshold, l.MemoryThreshold, "memory")
	for i, part := range l.Shedding {
		o.value(famShedding, part, priorityNames[i])
	}
}

func (c *Config) collectPolicy(o *sink, rules *rules) {
	if c.Policy != nil {
		p := c.Policy()
		o.value(famPolicyInfo, 1, orNone(p.Version))
		if !p.Since.IsZero() {
			o.value(famPolicySince, float64(p.Since.UnixMicro())/1e6)
		}
		o.value(famPolicyRules, float64(p.Rules))
		o.value(famPolicyCurrent, bit(p.Current))
	}
	if c.Limits == nil {
		return
	}
	type place struct {
		rule  string
		index int
	}
	seen := make(map[place]bool)
	for _, l := range c.Limits() {
		at := place{l.Rule, l.Index}
		if seen[at] || l.Limit == nil || !rules.has(l.Rule) {
			continue
		}
		if seen[at] = true; len(seen) > maxLimits {
			return
		}
		showLimit(o, &l)
	}
}

// maxLimits bounds the limits that are shown.
const maxLimits = 10_000

func showLimit(o *sink, l *LimitFigures) {
	at := func() []string { return []string{l.Rule, strconv.Itoa(l.Index), l.Limit.Algorithm().String()} }
	units, period, burst := numbers(l.Limit)
	o.value(famLimit, units, at()...)
	if period > 0 {
		o.value(famLimitPeriod, period.Seconds(), at()...)
	}
	if burst > 0 {
		o.value(famLimitBurst, float64(burst), at()...)
	}
}

// numbers returns the count, the period and the burst or capacity of a limit, 0 for what it does not have.
func numbers(limit headgate.Limit) (units float64, period time.Duration, burst int64) {
	switch l := limit.(type) {
	case headgate.TokenBucket:
		units, period = rate(l.Rate())
		return units, period, l.Burst()
	case headgate.LeakyBucket:
		units, period = rate(l.Rate())
		burst, _ = l.Capacity()
		return units, period, burst
	case headgate.FixedWindow:
		return float64(l.Count()), windowOf(l), 0
	case headgate.SlidingLog:
		return float64(l.Count()), l.Period(), 0
	case headgate.SlidingWindow:
		return float64(l.Count()), l.Period(), 0
	case headgate.Concurrency:
		return float64(l.Count()), 0, 0
	}
	return 0, 0, 0
}

func rate(r headgate.Rate) (units float64, period time.Duration) {
	num, den := r.Count()
	if den == 0 {
		return 0, r.Period()
	}
	return float64(num) / float64(den), r.Period()
}

// windowOf is the length of a window: of a calendar one, the longest that it can be but for changes of clocks.
func windowOf(w headgate.FixedWindow) time.Duration {
	const day = 24 * time.Hour
	switch unit, _ := w.Calendar(); unit {
	case headgate.Hour:
		return time.Hour
	case headgate.Day:
		return day
	case headgate.Week:
		return 7 * day
	case headgate.Month:
		return 31 * day
	}
	return w.Period()
}

package resilience

import (
	"math"
	"time"
)

// How much to shed is decided by feedback, in the manner of DAGOR (Zhou et al., "Overload Control for Scaling WeChat
// Microservices", SoCC 2018): arrivals are counted by priority; each interval moves the share of all arrivals that is let
// in, down quickly and up slowly; and the share is turned into what each priority loses, the lowest first, by the counts.
// DAGOR takes the time that requests wait in a queue for its signal. A Go server has no such queue, so processor time stands
// in for it, which is what is to be kept below a threshold anyway.
//
// Processor time answers a change of the load at once, so the share let in has to be found: it is the controller's state.
// Down: times threshold/measured, at most a fifth per interval, and that while the processors are saturated, since then
// nobody can tell how much too much there is; a flood of ten times the capacity is cut to size in about two seconds. Up: by
// half of the room there is, at most a tenth per interval. In between, from the threshold down to bandCPU below it, nothing
// moves. It goes down only where both the smoothed and the last measure are above the threshold, and up only where both are
// below the band: a smoothed value alone still tells of what the last step has cured already, and a single measure tells of
// one collection of garbage.
//
// Memory is what requests leave behind them: it adds up by itself, so the measure is the state, and what is shed follows it
// in proportion: the room from the threshold to the bound is cut in three, in which first sheddable, then normal, then
// critical requests go from "all let in" to "none". Memory stops to grow where what is let in is what leaves.
const (
	// smoothing is the time constant of the smoothed share: one interval of 200 ms at 100 % raises it from 50 % to 72 %, and a
	// flood takes it from idle over 90 % in 0.8 s.
	smoothing = 350 * time.Millisecond
	// bandCPU and bandMemory are how far below their thresholds the measures must fall before anything ends; a quarter of a
	// threshold that is small itself.
	bandCPU    = 0.05
	bandMemory = 0.03
	// calmFor is how long they must stay there.
	calmFor = 2 * time.Second
	// countFrom is the part of the CPU threshold from which arrivals are counted.
	countFrom = 0.75
	// minAdmit is the least share let in: the way back is by multiplication.
	minAdmit = 0.01

	maxCut, maxRaise, leastRaise = 0.2, 0.1, 0.005
)

// measure is what one interval tells the controller.
type measure struct {
	at          time.Time
	elapsed     time.Duration // since the measure before
	cpu, memory float64       // shares
	arrived     [priorities]float64
	limits      thresholds
	pass        bool // nothing is shed, so nothing is learned
}

// ruling is what the controller wants done.
type ruling struct {
	shed          [priorities]float64
	count         bool
	byCPU, byHeap bool // what is in danger
	active        bool
}

// controller turns measures into rulings. It has no clock and no goroutine.
type controller struct {
	interval   time.Duration
	cpu        float64 // smoothed
	admit      float64 // share of the normal and sheddable arrivals that is let in
	arrived    [priorities]float64
	mixed      bool // arrived has been counted
	cpuAlarm   alarm
	heapAlarm  alarm
	controlled bool // the share let in is being looked for
}

func newController(interval time.Duration) *controller {
	return &controller{interval: interval, admit: 1}
}

// step takes one measure.
func (c *controller) step(m *measure) ruling {
	c.cpu += (m.cpu - c.cpu) * (1 - math.Exp(-float64(m.elapsed)/float64(smoothing)))
	c.mix(m)
	r := ruling{
		byCPU:  c.cpuAlarm.update(m.at, c.cpu > m.limits.cpu, c.cpu < below(m.limits.cpu, bandCPU)),
		byHeap: c.heapAlarm.update(m.at, m.limits.memory < 1 && m.memory > m.limits.memory, m.memory < below(m.limits.memory, bandMemory)),
		count:  max(c.cpu, m.cpu) > countFrom*m.limits.cpu || m.memory > countFrom*m.limits.memory,
	}
	if m.pass {
		c.admit, c.controlled = 1, false
		r.active = r.byCPU || r.byHeap
		return r
	}
	c.move(m, r.byCPU)
	r.shed = c.byPriority()
	for p, f := range byMemory(m.memory, m.limits.memory) {
		r.shed[p] = max(r.shed[p], f)
	}
	r.active = r.byCPU || r.byHeap || c.controlled
	return r
}

func below(threshold, band float64) float64 { return max(threshold-band, threshold*3/4) }

// mix follows what arrives of each priority, over some intervals.
func (c *controller) mix(m *measure) {
	if m.arrived == ([priorities]float64{}) {
		return
	}
	if !c.mixed {
		c.arrived, c.mixed = m.arrived, true
		return
	}
	part := 1 - math.Exp(-float64(m.elapsed)/float64(smoothing))
	for p, n := range m.arrived {
		c.arrived[p] += (n - c.arrived[p]) * part
	}
}

// move looks for the share to let in.
func (c *controller) move(m *measure, danger bool) {
	switch {
	case danger:
		c.controlled = true
	case !c.controlled:
		return
	case c.admit == 1: // nothing is shed, and calm for long enough
		c.controlled, c.mixed = false, false
		return
	}
	factor, target := 1.0, m.limits.cpu
	switch low := below(target, bandCPU); {
	case c.cpu > target && m.cpu > target:
		if factor = max(target/c.cpu, 1-maxCut); m.cpu >= (1+target)/2 {
			factor = 1 - maxCut
		}
	case c.cpu < low && m.cpu < low:
		factor = 1 + min((low/max(c.cpu, low/10)-1)/2, maxRaise)
	}
	if factor == 1 {
		return
	}
	n := min(max(float64(m.elapsed)/float64(c.interval), 0.25), 5)
	c.admit *= math.Pow(factor, n)
	if factor > 1 {
		c.admit += leastRaise * n
	}
	c.admit = min(max(c.admit, minAdmit), 1)
}

// byPriority spreads what is not let in over the priorities that the processors' load may cost: sheddable first.
func (c *controller) byPriority() (shed [priorities]float64) {
	if c.admit >= 1 {
		return shed
	}
	normal, sheddable := c.arrived[Normal], c.arrived[Sheddable]
	if normal+sheddable == 0 { // nobody knows: as if they were as many
		normal, sheddable = 1, 1
	}
	excess := (1 - c.admit) * (normal + sheddable)
	shed[Sheddable] = share(excess, sheddable)
	shed[Normal] = share(excess-sheddable, normal)
	return shed
}

// share is the part of n that excess is. Of what does not arrive, all is to be shed as soon as anything is.
func share(excess, n float64) float64 {
	switch {
	case excess <= 0:
		return 0
	case n <= excess:
		return 1
	}
	return excess / n
}

// byMemory is what memory costs each priority.
func byMemory(memory, threshold float64) (shed [priorities]float64) {
	if threshold >= 1 || memory <= threshold {
		return shed
	}
	third := (1 - threshold) / 3
	for i, p := range [...]uint8{Sheddable, Normal, Critical} {
		shed[p] = min(max((memory-threshold)/third-float64(i), 0), 1)
	}
	return shed
}

// alarm goes on at once and off when it has been calm for a while.
type alarm struct {
	on   bool
	calm time.Time // since when; zero: it is not
}

func (a *alarm) update(now time.Time, over, under bool) bool {
	switch {
	case over:
		a.on, a.calm = true, time.Time{}
	case !a.on:
	case !under:
		a.calm = time.Time{}
	case a.calm.IsZero():
		a.calm = now
	case now.Sub(a.calm) >= calmFor:
		a.on, a.calm = false, time.Time{}
	}
	return a.on
}

package replay

import (
	"math/bits"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// usage is what one key has used of one limit.
type usage struct {
	peak, sum int64
	mark      int64 // the end of the window, or when the level was last looked at
	level     float64
	burst     float64
	grains    []grain
}

// grain is what was charged at one time, in a short span that ends with it, or in the cell of that number.
type grain struct {
	last int64
	cost int64
}

// add charges cost at a time that is never before the last one.
func (g *gauge) add(u *usage, now, cost int64) {
	if cost <= 0 {
		return
	}
	g.pass(u, now)
	switch g.kind {
	case gaugeAligned:
		u.sum += cost
		u.peak = max(u.peak, u.sum)
	case gaugeCells:
		u.append(now-floorMod(now, g.cell), cost)
		u.peak = max(u.peak, g.counted(u, now))
	case gaugeBucket:
		u.level += float64(cost)
		u.burst = max(u.burst, u.level)
		g.addSliding(u, now, cost)
	case gaugeSliding:
		g.addSliding(u, now, cost)
	}
}

// ask notes that a cost was asked for that is charged later, if at all. It adds to the need only where something stands in
// its way: a key that is never charged needs nothing.
func (g *gauge) ask(u *usage, now, cost int64) {
	g.pass(u, now)
	if have := g.counted(u, now); have > 0 {
		u.peak = max(u.peak, have+cost)
	}
	if u.level > 0 {
		u.burst = max(u.burst, u.level+float64(cost))
	}
}

// pass lets go what counts no more at a time.
func (g *gauge) pass(u *usage, now int64) {
	switch g.kind {
	case gaugeAligned:
		if now >= u.mark || u.sum == 0 {
			_, u.mark = g.zones.Window(g.limit.(headgate.FixedWindow), now)
			u.sum = 0
		}
	case gaugeCells:
		u.drop(now - floorMod(now, g.cell) - g.period - 1)
	case gaugeBucket:
		u.level = max(0, u.level-float64(now-u.mark)/g.perUnit)
		u.mark = now
		u.drop(now - g.period)
	case gaugeSliding:
		u.drop(now - g.period)
	}
}

// counted is what a window holds at a time: of the oldest cell the part that is still inside, rounded up.
func (g *gauge) counted(u *usage, now int64) int64 {
	if g.kind != gaugeCells || len(u.grains) == 0 {
		return u.sum
	}
	within := floorMod(now, g.cell)
	if oldest := &u.grains[0]; oldest.last == now-within-g.period {
		high, low := bits.Mul64(uint64(oldest.cost), uint64(within))
		gone, _ := bits.Div64(high, low, uint64(g.cell)) // less than the cost, as within is less than the cell
		return u.sum - int64(gone)
	}
	return u.sum
}

func (g *gauge) addSliding(u *usage, now, cost int64) {
	if n := len(u.grains); n == mostGrains && u.grains[n-1].last != now {
		u.grains = g.coarser(u.grains)
	}
	u.append(now, cost)
	u.peak = max(u.peak, u.sum)
}

// append adds a cost at a time.
func (u *usage) append(at, cost int64) {
	u.sum += cost
	if n := len(u.grains); n > 0 && u.grains[n-1].last == at {
		u.grains[n-1].cost += cost
		return
	}
	u.grains = append(u.grains, grain{at, cost})
}

// drop forgets what was charged up to a time.
func (u *usage) drop(until int64) {
	gone := 0
	for gone < len(u.grains) && u.grains[gone].last <= until {
		u.sum -= u.grains[gone].cost
		gone++
	}
	if gone > 0 {
		u.grains = u.grains[:copy(u.grains, u.grains[gone:])]
	}
}

// coarser puts together what lies in one part of the period.
func (g *gauge) coarser(all []grain) []grain {
	kept := all[:1]
	for _, next := range all[1:] {
		if at := &kept[len(kept)-1]; floorDiv(at.last, g.quantum) == floorDiv(next.last, g.quantum) {
			at.last, at.cost = next.last, at.cost+next.cost
		} else {
			kept = append(kept, next)
		}
	}
	return kept
}

const hourMicros = int64(time.Hour / time.Microsecond)

func floorDiv(a, b int64) int64 { return (a - floorMod(a, b)) / b }

func floorMod(a, b int64) int64 {
	m := a % b
	if m < 0 {
		m += b
	}
	return m
}

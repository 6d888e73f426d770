package replay

import (
	"math"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/algo"
)

// gauge measures how much of one limit a key would have needed, whatever the limit's count: the number with which no
// request of that key had been denied.
type gauge struct {
	limit headgate.Limit
	kind  gaugeKind
	// period is in µs, quantum the grain in which times within it are told apart.
	period, quantum int64
	perUnit         float64 // µs in which a bucket gets one unit back; +Inf for never
	cell, cells     int64   // of a window in cells: the length of one in µs, and how many there are
	zones           *algo.Zones
}

type gaugeKind uint8

const (
	gaugeNone    gaugeKind = iota // concurrency: a log says too little
	gaugeAligned                  // the most in any window from the epoch, or of the calendar
	gaugeSliding                  // the most in any time of the period
	gaugeCells                    // the most that its cells have counted at any time
	gaugeBucket                   // the burst that is needed at the limit's rate, and the most in any time of its period
)

// Bounds of what is remembered of one key within a period: at first every time; beyond mostGrains what is closer together
// than a part of the period counts as of its latest time, so that a sum is never too low, and too high by one part at most.
const (
	mostGrains  = 64
	partsOfTime = 32
)

func newGauge(l headgate.Limit) *gauge {
	g := &gauge{limit: l, zones: &algo.Zones{}}
	switch l := l.(type) {
	case headgate.FixedWindow:
		g.kind, g.period = gaugeAligned, l.Period().Microseconds()
	case headgate.SlidingLog:
		g.kind, g.period = gaugeSliding, l.Period().Microseconds()
	case headgate.SlidingWindow:
		g.kind, g.period, g.cells = gaugeCells, l.Period().Microseconds(), l.Cells()
		g.cell = g.period / g.cells
	case headgate.TokenBucket:
		g.bucket(l.Rate())
	case headgate.LeakyBucket:
		g.bucket(l.Rate())
	}
	g.quantum = max(1, g.period/partsOfTime)
	return g
}

func (g *gauge) bucket(r headgate.Rate) {
	g.kind, g.period = gaugeBucket, r.Period().Microseconds()
	num, den := r.Count()
	if g.perUnit = math.Inf(1); num > 0 {
		g.perUnit = float64(g.period) / (float64(num) / float64(max(den, 1)))
	}
}

// need is what a key would have needed of the limit's count, burst or capacity.
func (g *gauge) need(u *usage) int64 {
	if g.kind == gaugeBucket {
		if math.IsInf(g.perUnit, 1) {
			return u.peak
		}
		return int64(math.Ceil(u.burst - hair(u.burst)))
	}
	return u.peak
}

// hair is by how much a sum of floats may be off.
func hair(x float64) float64 { return 1e-9 * max(1, x) }

// over tells whether a key would have needed more than the limit has.
func (g *gauge) over(u *usage) bool {
	switch l := g.limit.(type) {
	case headgate.FixedWindow:
		return u.peak > l.Count()
	case headgate.SlidingLog:
		return u.peak > l.Count()
	case headgate.SlidingWindow:
		return u.peak > l.Count()
	case headgate.TokenBucket:
		num, _ := l.Rate().Count()
		return num == 0 || u.burst > float64(l.Burst())+hair(u.burst)
	case headgate.LeakyBucket:
		return u.burst > g.room(l)+hair(u.burst)
	}
	return false
}

// room is how many requests fit into a queue: as its capacity says, or those that wait for max_wait and the one behind them.
func (g *gauge) room(l headgate.LeakyBucket) float64 {
	room := math.Inf(1)
	if capacity, ok := l.Capacity(); ok {
		room = float64(capacity)
	}
	if wait, ok := l.MaxWait(); ok {
		room = min(room, float64(wait.Microseconds())/g.perUnit+1)
	}
	return room
}

// suggest returns the limit of the same kind that has room for a need; most is the most in any time of the period, for
// buckets. It returns nil where there is none, and says in a word why another kind is suggested.
func (g *gauge) suggest(need, most int64) (headgate.Limit, string) {
	need, most = max(need, 1), max(most, 1)
	var l headgate.Limit
	var err error
	note := ""
	switch have := g.limit.(type) {
	case headgate.FixedWindow:
		if unit, zone := have.Calendar(); unit != headgate.NotCalendar {
			l, err = headgate.NewCalendarWindow(need, unit, zone)
		} else {
			l, err = headgate.NewFixedWindow(need, have.Period())
		}
	case headgate.SlidingLog:
		if need > headgate.MaxLogCount {
			note = "too many for a sliding_log; a window in cells counts a little otherwise"
			l, err = headgate.NewSlidingWindow(need, have.Period(), 1)
		} else {
			l, err = headgate.NewSlidingLog(need, have.Period())
		}
	case headgate.SlidingWindow:
		l, err = headgate.NewSlidingWindow(need, have.Period(), have.Cells())
	case headgate.TokenBucket:
		rate := have.Rate()
		if g.tooSlow(need, most) {
			note = "its rate is too low for them"
			rate, need = headgate.Per(most, rate.Period()), most
		}
		l, err = headgate.NewTokenBucket(rate, need)
	case headgate.LeakyBucket:
		l, note, err = g.suggestLeaky(have, need, most)
	}
	if err != nil {
		return nil, ""
	}
	return l, note
}

// tooSlow tells that a burst would have to make up for a rate: it is more than ten times what comes in any one period,
// or there is no rate at all.
func (g *gauge) tooSlow(need, most int64) bool {
	return math.IsInf(g.perUnit, 1) || need > 10*most
}

func (g *gauge) suggestLeaky(have headgate.LeakyBucket, need, most int64) (headgate.Limit, string, error) {
	rate, note := have.Rate(), ""
	if g.tooSlow(need, most) {
		rate, need, note = headgate.Per(most, rate.Period()), most, "its rate is too low for them"
	}
	var bounds []headgate.LeakyOption
	if _, ok := have.Capacity(); ok {
		bounds = append(bounds, headgate.Capacity(need))
	}
	if wait, ok := have.MaxWait(); ok {
		num, den := rate.Count()
		seconds := rate.Period().Seconds() * float64(den) / float64(max(num, 1)) * float64(need-1) // nobody waits for oneself
		needed := time.Duration(math.Ceil(min(seconds, 1e9)*1e3)) * time.Millisecond
		bounds = append(bounds, headgate.MaxWait(max(wait, needed)))
	}
	l, err := headgate.NewLeakyBucket(rate, bounds...)
	return l, note, err
}

package replay

import (
	"math"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// gauge measures how much of one limit a key would have needed, whatever the limit's count: the number with which no
// request of that key had been denied.
type gauge struct {
	limit headgate.Limit
	kind  gaugeKind
	// period is in µs, quantum the grain in which times within it are told apart.
	period, quantum int64
	perUnit         float64 // µs in which a bucket gets one unit back; +Inf for never
	zone            *time.Location
	unit            headgate.CalendarUnit
}

type gaugeKind uint8

const (
	gaugeNone    gaugeKind = iota // concurrency: a log says too little
	gaugeAligned                  // the most in any window from the epoch, or of the calendar
	gaugeSliding                  // the most in any time of the period
	gaugeBucket                   // the burst that is needed at the limit's rate, and the most in any time of its period
)

// Bounds of what is remembered of one key within a period: at first every time; beyond mostGrains what is closer together
// than a part of the period counts as of its latest time, so that a sum is never too low, and too high by one part at most.
const (
	mostGrains  = 64
	partsOfTime = 32
)

func newGauge(l headgate.Limit) *gauge {
	g := &gauge{limit: l}
	switch l := l.(type) {
	case headgate.FixedWindow:
		g.kind, g.period = gaugeAligned, l.Period().Microseconds()
		var zone string
		if g.unit, zone = l.Calendar(); g.unit != headgate.NotCalendar {
			if g.zone, _ = time.LoadLocation(zone); g.zone == nil {
				g.zone = time.UTC // the limit was parsed with this zone, so it is there
			}
		}
	case headgate.SlidingLog:
		g.kind, g.period = gaugeSliding, l.Period().Microseconds()
	case headgate.SlidingWindow:
		g.kind, g.period = gaugeSliding, l.Period().Microseconds()
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

// usage is what one key has used of one limit.
type usage struct {
	peak, sum int64
	mark      int64 // the end of the window, or when the level was last looked at
	level     float64
	burst     float64
	grains    []grain
}

// grain is what was charged at one time, or in a short span that ends with it.
type grain struct {
	last int64
	cost int64
}

// add charges cost at a time that is never before the last one.
func (g *gauge) add(u *usage, now, cost int64) {
	if cost <= 0 {
		return
	}
	switch g.kind {
	case gaugeAligned:
		g.addAligned(u, now, cost)
	case gaugeBucket:
		u.level = max(0, u.level-float64(now-u.mark)/g.perUnit) + float64(cost)
		u.mark, u.burst = now, max(u.burst, u.level)
		g.addSliding(u, now, cost)
	case gaugeSliding:
		g.addSliding(u, now, cost)
	}
}

func (g *gauge) addAligned(u *usage, now, cost int64) {
	if now >= u.mark || u.sum == 0 {
		u.mark, u.sum = g.windowEnd(now), 0
	}
	u.sum += cost
	u.peak = max(u.peak, u.sum)
}

func (g *gauge) windowEnd(now int64) int64 {
	if g.zone == nil {
		return now - floorMod(now, g.period) + g.period
	}
	t := time.UnixMicro(now).In(g.zone)
	y, m, d := t.Date()
	switch g.unit {
	case headgate.Hour:
		_, offset := t.Zone() // a zone may be half an hour off
		local := now + int64(offset)*1e6
		return now - floorMod(local, hourMicros) + hourMicros
	case headgate.Week:
		return time.Date(y, m, d+7-(int(t.Weekday())+6)%7, 0, 0, 0, 0, g.zone).UnixMicro()
	case headgate.Month:
		return time.Date(y, m+1, 1, 0, 0, 0, 0, g.zone).UnixMicro()
	}
	return time.Date(y, m, d+1, 0, 0, 0, 0, g.zone).UnixMicro()
}

const hourMicros = int64(time.Hour / time.Microsecond)

func (g *gauge) addSliding(u *usage, now, cost int64) {
	gone := 0
	for gone < len(u.grains) && u.grains[gone].last <= now-g.period {
		u.sum -= u.grains[gone].cost
		gone++
	}
	if gone > 0 {
		u.grains = u.grains[:copy(u.grains, u.grains[gone:])]
	}
	if n := len(u.grains); n > 0 && u.grains[n-1].last == now {
		u.grains[n-1].cost += cost
	} else {
		if n == mostGrains {
			u.grains = g.coarser(u.grains)
		}
		u.grains = append(u.grains, grain{now, cost})
	}
	u.sum += cost
	u.peak = max(u.peak, u.sum)
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

func floorDiv(a, b int64) int64 { return (a - floorMod(a, b)) / b }

func floorMod(a, b int64) int64 {
	m := a % b
	if m < 0 {
		m += b
	}
	return m
}

// need is what a key would have needed of the limit's count, burst or capacity.
func (g *gauge) need(u *usage) int64 {
	if g.kind == gaugeBucket {
		if math.IsInf(g.perUnit, 1) {
			return u.peak
		}
		return int64(math.Ceil(u.burst - 1e-6)) // what is added up in floats may be a hair too high
	}
	return u.peak
}

// inForce is the number of the limit that need is to be compared with; false if it has none.
func (g *gauge) inForce() (int64, bool) {
	switch l := g.limit.(type) {
	case headgate.FixedWindow:
		return l.Count(), true
	case headgate.SlidingLog:
		return l.Count(), true
	case headgate.SlidingWindow:
		return l.Count(), true
	case headgate.TokenBucket:
		if num, _ := l.Rate().Count(); num == 0 {
			return 0, true
		}
		return l.Burst(), true
	case headgate.LeakyBucket:
		return g.room(l), true
	}
	return 0, false
}

// room is how many requests fit into a queue: as its capacity says, or those that wait for max_wait and the one in front.
func (g *gauge) room(l headgate.LeakyBucket) int64 {
	room, bounded := l.Capacity()
	if wait, ok := l.MaxWait(); ok {
		waiting := int64(float64(wait.Microseconds())/g.perUnit+1e-9) + 1
		if !bounded || waiting < room {
			room = waiting
		}
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
			note = "too many for a sliding_log"
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

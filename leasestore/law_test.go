package leasestore_test

import (
	"fmt"
	"math/big"
	"slices"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// law is what must hold of an account. life is how long a lease lives, steady whether the store's clock was never set and the
// limit never changed.
type law struct {
	life   time.Duration
	steady bool
}

// broken says how an account breaks the law, "" if it does not.
func (w law) broken(a *account) string {
	if wrong := w.covered(a); wrong != "" || !w.steady {
		return wrong
	}
	switch l := a.limit.(type) {
	case headgate.FixedWindow:
		return inWindows(a, l)
	case headgate.SlidingWindow:
		return inCells(a, l)
	case headgate.TokenBucket:
		return inBucket(a, l, w.life)
	}
	return ""
}

func sum(events []event) (n int64) {
	for _, e := range events {
		n += e.units
	}
	return n
}

// covered: all that was admitted and not undone had been charged and not been offered back; and whatever was admitted in a stretch
// of time was charged in it or at most a lease's life and a call's time before.
func (w law) covered(a *account) string {
	if used, paid := sum(a.admitted)-sum(a.undone), sum(a.charged)-sum(a.returned); used > paid {
		return fmt.Sprintf("%d were admitted of %d that were charged and not given back", used, paid)
	}
	for i, first := range a.admitted {
		if i > 0 && a.admitted[i-1].at == first.at {
			continue
		}
		used := sum(a.admitted[i:]) - since(a.undone, first.at)
		if paid := since(a.charged, first.at-w.life-slowest); used > paid {
			return fmt.Sprintf("since %s %d were admitted; since a lease's life before only %d were charged", first.at, used, paid)
		}
	}
	return ""
}

// since adds up what there is from a moment on.
func since(events []event, at time.Duration) int64 {
	i, _ := slices.BinarySearchFunc(events, at, func(e event, at time.Duration) int { return int(e.at - at) })
	return sum(events[i:])
}

// by adds units up by the stretch of the store's time that they fall into. What began in one and ended in another may have been
// decided in either, and is left out.
func by(events []event, length time.Duration) map[int64]int64 {
	n := map[int64]int64{}
	for _, e := range events {
		if at := e.store.UnixNano() / int64(length); at == e.begun.UnixNano()/int64(length) {
			n[at] += e.units
		}
	}
	return n
}

// inWindows: what was admitted in a window was charged in it, and is no more than the count.
func inWindows(a *account, l headgate.FixedWindow) string {
	length := l.Period()
	if length == 0 {
		length = time.Hour // the zone is UTC
	}
	back, paid := by(a.undone, length), by(a.charged, length)
	for w, used := range by(a.admitted, length) {
		if used -= back[w]; used > paid[w] || used > l.Count() {
			return fmt.Sprintf("%s: in window %d %d were admitted, %d charged", l, w, used, paid[w])
		}
	}
	return ""
}

// inCells: the same for cells, and no period has more than the count, with the oldest cell weighted.
func inCells(a *account, l headgate.SlidingWindow) string {
	length, k := l.Period()/time.Duration(l.Cells()), l.Cells()
	back, paid, used := by(a.undone, length), by(a.charged, length), by(a.admitted, length)
	for c := range used {
		if used[c]-back[c] > paid[c] {
			return fmt.Sprintf("%s: in cell %d %d were admitted, %d charged", l, c, used[c]-back[c], paid[c])
		}
	}
	if len(a.admitted) == 0 || sum(a.undone) > 0 || sum(a.returned) > 0 {
		return "" // what was in a cell once may have made room for others since
	}
	last := a.admitted[len(a.admitted)-1].store
	now := last.UnixNano() / int64(length)
	inside := big.NewRat(int64(length)-last.UnixNano()%int64(length), int64(length))
	total := new(big.Rat).Mul(inside, big.NewRat(used[now-k], 1))
	for c := now - k + 1; c <= now; c++ {
		total.Add(total, big.NewRat(used[c], 1))
	}
	if total.Cmp(big.NewRat(l.Count(), 1)) > 0 {
		return fmt.Sprintf("%s: a period has %s", l, total.FloatString(3))
	}
	return ""
}

// inBucket: no stretch of time has more than the burst and what comes in it and in a lease's life.
func inBucket(a *account, l headgate.TokenBucket, life time.Duration) string {
	num, den := l.Rate().Count()
	perSecond := float64(num) / float64(den) / l.Rate().Period().Seconds()
	last := a.admitted
	for i := range last {
		used := float64(sum(last[i:]) - since(a.undone, last[i].at))
		span := (last[len(last)-1].at - last[i].at + life + slowest).Seconds()
		if most := float64(l.Burst()) + perSecond*span + 1; used > most {
			return fmt.Sprintf("%s: %.0f in %.3f s, %.0f are the most", l, used, span, most)
		}
	}
	return ""
}

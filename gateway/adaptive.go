package gateway

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// Defaults of Adaptive.
const (
	DefaultAdaptiveInitial = 20
	DefaultAdaptiveLeast   = 4
	DefaultAdaptiveMost    = 4096
	DefaultAdaptiveWindow  = 250 * time.Millisecond
)

// Adaptive bounds the requests that wait for an upstream at a time, for each upstream by itself, at about the number that it
// can work on without queueing: more would only wait there. What is over the bound is answered 503 with the code upstream_busy,
// unless another upstream has room or the verdict has something better. The zero value is ready to use.
//
// The bound follows the time to the header of an answer, taken as the median of a window, and compared with the time that the upstream needs when
// it is not pressed; that is measured while requests are few, and under pressure by letting in half as many for a moment from time
// to time. A request counts until its header comes, so streams and websockets do not; times that are those of a client's slow upload are
// left out. Long polls and the like are slow without a queue: give them a gateway without it.
//
// When requests find no place, those of a lower [httpverdict.Verdict.Priority] get a quarter less for a second, so that there is
// one for the next of the higher.
type Adaptive struct {
	// Initial is where the bound begins: what an upstream can certainly take. A lack of requests does not bring the bound below
	// it. Least and Most bound the bound. 0 stands for DefaultAdaptiveInitial, DefaultAdaptiveLeast and DefaultAdaptiveMost, moved
	// where they would cross another.
	Initial, Least, Most int
	// Window is how long times are gathered for one step, at least; 0 stands for DefaultAdaptiveWindow. A step needs 50 of them
	// as well.
	Window time.Duration
}

func (a Adaptive) withDefaults() Adaptive {
	setDefault(&a.Least, DefaultAdaptiveLeast)
	setDefault(&a.Initial, max(DefaultAdaptiveInitial, a.Least))
	setDefault(&a.Most, max(DefaultAdaptiveMost, a.Initial))
	setDefault(&a.Window, DefaultAdaptiveWindow)
	return a
}

func (a *Adaptive) validate() error {
	switch {
	case a.Least < 0 || a.Initial < 0 || a.Most < 0 || a.Window < 0:
		return errors.New("gateway: Adaptive has a negative bound; use 0 for the default")
	case a.Least > a.Initial || a.Initial > a.Most:
		return fmt.Errorf("gateway: Adaptive wants Least ≤ Initial ≤ Most, not %d, %d, %d", a.Least, a.Initial, a.Most)
	}
	return nil
}

// What follows is the gradient algorithm of Netflix' concurrency-limits (2018), in which the time without a queue is measured by
// letting in fewer now and then, as BBR does for round trips (Cardwell and others, 2016). docs/decisions/0012-upstreams.md has what
// a library's limiter does in the same simulation.
const (
	tolerance   = 1.2 // times the unpressed time that is no sign of a queue
	leastTimes  = 50  // for one step
	keptTimes   = 256 // the latest of a window
	drainTimes  = 4   // windows, or unpressed times if these are longer, in which a queue is gone
	stepShare   = 0.4 // of the way to where the gradient points that one step goes
	firstProbe  = 8   // windows under pressure before the unpressed time is measured
	laterProbes = 24
	squeeze     = time.Second // how long those of lower priority get less

	unknownPatience = 50 * time.Millisecond // with a body that is on its way, while the unpressed time is unknown
	leastPatience   = 5 * time.Millisecond
)

// limiter is the adaptive bound of one upstream. It is safe for concurrent use.
type limiter struct {
	cfg Adaptive

	mu       sync.Mutex
	limit    float64
	inflight int
	unforced time.Duration // the time without a queue, 0 while unknown

	begun time.Time // of the window; what was sent before it does not count in it
	times [keptTimes]time.Duration
	n     int
	peak  int
	full  bool // whether somebody found no place

	probing, drained bool
	probed           time.Time // when that began
	before           int       // requests at the upstream that are older
	pressed          int       // windows under pressure since the last probe
	nextProbe        int
	proved           float64                                  // the limit at that
	refused          [httpverdict.PrioritySheddable]time.Time // when one of that priority last found no place
}

func newLimiter(cfg Adaptive, now time.Time) *limiter {
	return &limiter{cfg: cfg, limit: float64(cfg.Initial), proved: float64(cfg.Initial), begun: now, nextProbe: firstProbe}
}

// enter takes a place, if there is one for that priority.
func (l *limiter) enter(now time.Time, priority uint8) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	share := 1.0
	priority = min(priority, httpverdict.PrioritySheddable)
	for higher := range priority {
		if at := l.refused[higher]; !at.IsZero() && now.Sub(at) < squeeze {
			share -= 0.25
		}
	}
	if float64(l.inflight+1) > max(l.bound(now)*share, 1) {
		l.full = true
		if priority < httpverdict.PrioritySheddable {
			l.refused[priority] = now
		}
		return false
	}
	l.inflight++
	l.peak = max(l.peak, l.inflight)
	return true
}

// bound is the limit in force. While half as many are let in, those that were there before and have not ended after a while have no
// part in it: they are slow without a queue, and would keep everybody out until they are over. The caller holds mu.
func (l *limiter) bound(now time.Time) float64 {
	if !l.probing {
		return l.limit
	}
	half := max(l.limit/2, float64(l.cfg.Least))
	if now.Sub(l.probed) > drainTimes*max(l.cfg.Window, l.unforced) {
		half = min(half+float64(l.before), l.limit)
	}
	return half
}

// timing says what the time of a request tells.
type timing uint8

const (
	untimed timing = iota // nothing
	timed                 // how long the upstream took
	atLeast               // that it would have taken longer
)

// rest gives a place back for a while.
func (l *limiter) rest(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.less(now)
}

// resume takes a place again, whether there is one or not.
func (l *limiter) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inflight++
	l.peak = max(l.peak, l.inflight)
}

// patience is how long a request may take its place before its body has come: about as long as others do. A nil limiter has some.
func (l *limiter) patience() time.Duration {
	if l == nil {
		return unknownPatience
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unforced == 0 {
		return unknownPatience
	}
	return max(l.unforced, leastPatience)
}

// less notes that a place is free. The caller holds mu.
func (l *limiter) less(now time.Time) {
	l.inflight--
	if l.probing && !l.drained && float64(l.inflight) <= l.bound(now) {
		l.drained = true // only now is it as it is with fewer
		l.begin(now)
	}
}

// leave gives a place back that was taken at a time.
func (l *limiter) leave(now, entered time.Time, what timing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if entered.Before(l.probed) {
		l.before = max(l.before-1, 0)
	}
	l.less(now)
	took := now.Sub(entered)
	if what == untimed || entered.Before(l.begun) || what == atLeast && (l.unforced == 0 || float64(took) < tolerance*float64(l.unforced)) {
		return
	}
	l.times[l.n%keptTimes] = took
	l.n++
	if l.n >= leastTimes && now.Sub(l.begun) >= l.cfg.Window && (!l.probing || l.drained) {
		l.step(now)
		l.begin(now)
	}
}

// begin starts a window. The caller holds mu.
func (l *limiter) begin(now time.Time) {
	l.begun, l.n, l.peak, l.full = now, 0, l.inflight, false
}

// step moves the limit at the end of a window. The caller holds mu.
func (l *limiter) step(now time.Time) {
	median := l.median()
	switch {
	case l.probing:
		l.learn(median)
		return
	case !l.full && float64(l.peak) < l.limit/2:
		l.relax(median)
		return
	case l.unforced == 0 || median < l.unforced:
		l.unforced = median
	}
	l.follow(float64(l.unforced) / float64(median))
	if l.pressed++; l.pressed >= l.nextProbe || l.limit < l.proved/2 { // a fall may mean that its work takes longer now
		l.probing, l.drained, l.probed, l.before = true, false, now, l.inflight
	}
}

// learn notes the time that an upstream needs with half as many requests. While that still falls there was a queue among these
// too, so the next probe comes soon. The caller holds mu.
func (l *limiter) learn(median time.Duration) {
	l.nextProbe = laterProbes
	if float64(median) < 0.9*float64(l.unforced) {
		l.nextProbe = firstProbe
	}
	l.probing, l.pressed, l.proved, l.unforced = false, 0, l.limit, median
}

// relax learns from an upstream that is not pressed: what it takes is what it takes. The caller holds mu.
func (l *limiter) relax(median time.Duration) {
	if l.unforced == 0 {
		l.unforced = median
	}
	l.unforced += (median - l.unforced) / 5
	if low := float64(l.cfg.Initial); l.limit < low {
		l.limit = min(l.limit+math.Sqrt(l.limit), low)
	}
}

// follow goes where the gradient points, plus a queue of the size of the limit's root, without which there would be no growth.
// The caller holds mu.
func (l *limiter) follow(gradient float64) {
	next := l.limit*max(tolerance*gradient, 0.5) + math.Sqrt(l.limit)
	if next > l.limit && !l.full {
		return // nobody asks for more
	}
	l.limit += (next - l.limit) * stepShare
	l.limit = min(max(l.limit, float64(l.cfg.Least)), float64(l.cfg.Most))
}

// median returns that of the window's latest times, at least 1 ns. The caller holds mu.
func (l *limiter) median() time.Duration {
	sorted := l.times // a copy
	part := sorted[:min(l.n, keptTimes)]
	slices.Sort(part)
	return max(part[len(part)/2], 1)
}

// now returns the limit in whole requests.
func (l *limiter) now() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.limit)
}

package gateway

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// The breaker is our own. A breaker library counts failures in a row or their share, not both; it takes the end of a request
// that began before it opened for one of those that are to show whether it may close; it closes by trial alone, without a
// probe; and it does not know that some failures count only while somebody else can take over.

// phase is what an upstream may be sent.
type phase uint8

const (
	inService phase = iota
	ejected         // nothing
	onTrial         // one request at a time
)

// outcome is what became of a request, as far as it tells of the upstream.
type outcome uint8

const (
	unknown outcome = iota // nothing: the client has left
	good
	busy   // answered 502, 503 or 504
	failed // not answered, or not to the end
)

// fullStart is how many good answers end the slow start of an upstream that is back: the connections that it can be
// expected to take at once, since each has made a place for one more request. startTime ends it in any case.
const (
	fullStart = 64
	startTime = 10 * time.Second
)

// health judges an upstream by what becomes of its requests.
type health struct {
	rules   *Ejection
	random  func() float64
	started time.Time     // the origin of the window's cells
	free    atomic.Bool   // whether everything is admitted
	epoch   atomic.Uint32 // counts ejections: what was sent before one says nothing after it; changed under mu

	mu        sync.Mutex
	phase     phase
	since     time.Time
	until     time.Time // an ejection's end
	why       string
	lasted    time.Duration // the last ejection, without jitter
	inRow     int           // failures since the last good answer
	hardInRow int           // without those of an upstream that says it is busy
	window    window

	places  int // requests at a time, on trial and in a slow start
	pending int // those that have no outcome yet
	last    time.Time
}

func newHealth(rules *Ejection, random func() float64, now time.Time) *health {
	h := &health{rules: rules, random: random, started: now, since: now}
	h.free.Store(true)
	return h
}

// admission is a request that an upstream may be sent. Its outcome must be told.
type admission struct {
	epoch   uint32
	counted bool // whether it takes one of the places
}

// admit lets a request go to the upstream, if there is a place for it.
func (h *health) admit(now time.Time) (admission, bool) {
	if epoch := h.epoch.Load(); h.free.Load() {
		return admission{epoch: epoch}, true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.phase == ejected:
		return admission{}, false
	case h.phase == inService && now.Sub(h.since) > startTime:
		h.endStart()
		return admission{epoch: h.epoch.Load()}, true
	case h.pending >= h.places && now.Sub(h.last) < h.lasted: // a request that takes long does not hold up the others for ever
		return admission{}, false
	}
	h.pending++
	h.last = now
	return admission{epoch: h.epoch.Load(), counted: true}, true
}

// endStart opens all places. The caller holds mu.
func (h *health) endStart() {
	h.places = 0
	h.free.Store(true)
}

// rest gives the place of a request back for a while.
func (h *health) rest(a admission) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.holds(a) {
		h.pending--
	}
}

// resume takes it again, whether there is one or not.
func (h *health) resume(a admission) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.holds(a) {
		h.pending++
	}
}

// holds tells whether a request counts among the pending ones. The caller holds mu.
func (h *health) holds(a admission) bool {
	return a.counted && a.epoch == h.epoch.Load() && h.phase != ejected
}

// judgement is what should happen to an upstream.
type judgement struct {
	eject string // why to eject it, "" if not to
	mild  bool   // whether that is for being busy, and others must be in service
	back  bool   // whether it has passed its trial
}

// report notes the outcome of a request that was admitted. spare is the number of upstreams in service, without those that must stay.
func (h *health) report(now time.Time, a admission, o outcome, spare int) judgement {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a.epoch != h.epoch.Load() || h.phase == ejected {
		return judgement{}
	}
	if a.counted {
		h.pending--
	}
	if o == busy && h.rules.StatusIsFine {
		o = good
	}
	if o == unknown || h.rules.Off {
		return judgement{}
	}
	h.count(now, o)
	if h.phase == onTrial {
		if o == failed || o == busy && spare > 0 {
			return judgement{eject: "its trial failed", mild: o == busy}
		}
		return judgement{back: true}
	}
	h.pace(o)
	return h.judge(now, spare > 1)
}

// broke notes that an answer that had begun well has broken off.
func (h *health) broke(now time.Time, a admission, spare int) judgement {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a.epoch != h.epoch.Load() || h.phase != inService || h.rules.Off {
		return judgement{}
	}
	h.inRow++
	h.hardInRow++
	h.cell(now).failed++ // the request itself is counted since its header came
	return h.judge(now, spare > 1)
}

// count notes an outcome. The caller holds mu.
func (h *health) count(now time.Time, o outcome) {
	cell := h.cell(now)
	cell.requests++
	switch o {
	case good:
		h.inRow, h.hardInRow = 0, 0
	case busy:
		h.inRow++
		h.hardInRow = 0
		cell.busy++
	case failed:
		h.inRow++
		h.hardInRow++
		cell.failed++
	}
}

// pace opens places in a slow start, or closes some. The caller holds mu.
func (h *health) pace(o outcome) {
	switch {
	case h.places == 0:
	case o != good:
		h.places = max(h.places/2, 1)
	default:
		if h.places++; h.places > fullStart {
			h.endStart()
		}
	}
}

// judge tells whether the upstream is to be ejected; others, whether enough others are in service. The caller holds mu.
func (h *health) judge(now time.Time, others bool) judgement {
	if h.inRow == 0 {
		return judgement{}
	}
	sum := h.window.sum(h.cellNumber(now))
	if why := h.reason(h.hardInRow, sum.failed, sum.requests); why != "" {
		return judgement{eject: why}
	}
	if others {
		if why := h.reason(h.inRow, sum.failed+sum.busy, sum.requests); why != "" {
			return judgement{eject: why, mild: true}
		}
	}
	return judgement{}
}

// reason returns why so many failures are too many, "" if they are not.
func (h *health) reason(inRow, failures, requests int) string {
	switch {
	case h.rules.Consecutive > 0 && inRow >= h.rules.Consecutive:
		return fmt.Sprintf("%d failures in a row", inRow)
	case h.rules.FailedShare > 0 && failures > 0 && requests >= h.rules.LeastRequests &&
		float64(failures) >= h.rules.FailedShare*float64(requests):
		return fmt.Sprintf("%d of %d requests failed within %s", min(failures, requests), requests, h.rules.Window)
	}
	return ""
}

// eject takes the upstream out of service, and returns for how long. It has no effect, and returns 0, if that has been done
// since the request of the admission was sent.
func (h *health) eject(now time.Time, a admission, why string) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a.epoch != h.epoch.Load() || h.phase == ejected {
		return 0
	}
	switch {
	case h.lasted == 0 || h.phase == inService && now.Sub(h.since) > max(2*h.lasted, h.rules.Window):
		h.lasted = h.rules.For
	default:
		h.lasted = min(2*h.lasted, h.rules.Most)
	}
	wait := jittered(h.lasted, h.random)
	h.free.Store(false)
	h.epoch.Add(1)
	h.phase, h.since, h.until, h.why = ejected, now, now.Add(wait), why
	h.inRow, h.hardInRow, h.window = 0, 0, window{}
	h.places, h.pending = 0, 0
	return wait
}

// jittered lengthens a time by up to a quarter.
func jittered(d time.Duration, random func() float64) time.Duration {
	return d + time.Duration(random()*float64(d)/4)
}

// reached lets an ejected upstream have its trial.
func (h *health) reached() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.phase, h.places, h.pending = onTrial, 1, 0
}

// restore puts an upstream into service whose trial was a success. It has no effect, and returns false, if it is not on trial.
func (h *health) restore(now time.Time, a admission) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a.epoch != h.epoch.Load() || h.phase != onTrial {
		return false
	}
	h.phase, h.since, h.places, h.why = inService, now, 2, ""
	return true
}

// condition is a health as it is seen from outside.
type condition struct {
	phase phase
	since time.Time
	until time.Time
	why   string
}

func (h *health) condition() condition {
	h.mu.Lock()
	defer h.mu.Unlock()
	return condition{phase: h.phase, since: h.since, until: h.until, why: h.why}
}

// windowCells is how many parts a window has, of which the oldest goes when a new one begins.
const windowCells = 10

// window counts what became of the requests of the last while.
type window [windowCells]cell

type cell struct {
	number                 int64
	requests, busy, failed int
}

func (h *health) cellNumber(now time.Time) int64 {
	return int64(now.Sub(h.started) / (h.rules.Window / windowCells))
}

// cell returns that of a time. The caller holds mu.
func (h *health) cell(now time.Time) *cell {
	number := h.cellNumber(now)
	c := &h.window[number%windowCells]
	if c.number != number {
		*c = cell{number: number}
	}
	return c
}

// sum adds up the cells that are not too old.
func (w *window) sum(now int64) (all cell) {
	for i := range w {
		if c := &w[i]; now-c.number < windowCells {
			all.requests += c.requests
			all.busy += c.busy
			all.failed += c.failed
		}
	}
	return all
}

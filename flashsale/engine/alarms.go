package engine

import (
	"fmt"
	"sync"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// alarmLimits says when an alarm goes on (above on) and when it goes off again (not above off, for so many seconds).
type alarmLimits struct {
	on, off float64
	calm    int
}

// The alarms of queues. Latency is in seconds, retries a share.
func limitsOf(kind string) alarmLimits {
	switch kind {
	case AlarmBacklog:
		return alarmLimits{10_000, 8_000, 5}
	case AlarmLatency:
		return alarmLimits{0.5, 0.4, 5}
	case AlarmRetries:
		return alarmLimits{0.05, 0.025, 5}
	case AlarmSQL, AlarmStock:
		return alarmLimits{1, 0, 1} // looks in a row without an answer
	}
	return alarmLimits{0, 0, 1}
}

// alarm is whether one is on.
type alarm struct {
	on   bool
	calm int // looks in a row not above off
}

// step takes a value into account, about once a second, and reports whether the alarm has changed.
func (a *alarm) step(value float64, l alarmLimits) bool {
	switch {
	case !a.on:
		a.on, a.calm = value > l.on, 0
		return a.on
	case value > l.off:
		a.calm = 0
		return false
	}
	a.calm++
	a.on = a.calm < l.calm
	return !a.on
}

// alarms are those of this process.
type alarms struct {
	observer Observer
	mu       sync.Mutex
	of       map[alarmID]*alarm
}

type alarmID struct{ kind, sku string }

func newAlarms(o Observer) *alarms { return &alarms{observer: o, of: map[alarmID]*alarm{}} }

// step tells the observer if an alarm goes on or off.
func (a *alarms) step(kind, sku string, value float64, why string) {
	id := alarmID{kind, sku}
	a.mu.Lock()
	one := a.of[id]
	if one == nil {
		one = &alarm{}
	}
	changed, on := one.step(value, limitsOf(kind)), one.on
	if on {
		a.of[id] = one
	} else {
		delete(a.of, id)
	}
	a.mu.Unlock()
	if changed {
		a.observer.Alarm(kind, sku, on, value, why)
	}
}

// only ends the alarms of skus that are not looked at any more.
func (a *alarms) only(skus map[string]bool) {
	var ended []alarmID
	a.mu.Lock()
	for id := range a.of {
		if id.sku != "" && !skus[id.sku] {
			ended = append(ended, id)
			delete(a.of, id)
		}
	}
	a.mu.Unlock()
	for _, id := range ended {
		a.observer.Alarm(id.kind, id.sku, false, 0, "the sku is not looked at any more")
	}
}

// look steps the alarms of a sku.
func (a *alarms) look(key flashsale.Key, q *flashsale.QueueView, w *window) {
	sku := key.String()
	a.step(AlarmBacklog, sku, float64(q.Depth), counted(q.Depth, "job is to be decided", "jobs are to be decided"))
	a.step(AlarmDead, sku, float64(q.Dead), counted(q.Dead, "job could not be decided", "jobs could not be decided"))
	p99 := w.quantile(0.99)
	a.step(AlarmLatency, sku, p99.Seconds(), fmt.Sprintf("1 of 100 reservations takes %s or longer to be decided", p99.Round(time.Millisecond)))
}

// retries steps the alarm about them.
func (a *alarms) retries(w *window) {
	share := w.repeated()
	a.step(AlarmRetries, "", share, fmt.Sprintf("%.1f %% of the batches are repeated", 100*share))
}

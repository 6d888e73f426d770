package engine

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// AlarmOn is an alarm that is on.
type AlarmOn struct {
	// Kind is one of the Alarm constants, SKU is "sale/sku", "" if it is about all.
	Kind, SKU string
	// Value and Why are those of when it was last told, Since is when it went on.
	Value float64
	Why   string
	Since time.Time
}

// Alarms lists the alarms that are on in this instance, by sku and kind. One that another instance watches is on there.
func (e *Engine) Alarms() []AlarmOn { return e.alarms.list() }

// alarmBook is an Observer that passes everything on, and remembers which alarms are on. They are bounded as skus are. The log has a line when one goes
// on, and one when it is over.
type alarmBook struct {
	Observer
	now func() time.Time
	log *slog.Logger
	mu  sync.Mutex
	on  map[alarmID]AlarmOn
}

func newAlarmBook(next Observer, now func() time.Time, log *slog.Logger) *alarmBook {
	return &alarmBook{Observer: next, now: now, log: log, on: map[alarmID]AlarmOn{}}
}

// Alarm implements Observer.
func (b *alarmBook) Alarm(kind, sku string, on bool, value float64, why string) {
	if b.note(alarmID{kind, sku}, on, value, why) {
		b.tell(kind, sku, on, why)
	}
	b.Observer.Alarm(kind, sku, on, value, why)
}

// note reports whether the alarm has changed.
func (b *alarmBook) note(id alarmID, on bool, value float64, why string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, was := b.on[id]
	if !on {
		delete(b.on, id)
		return was
	}
	since := b.now()
	if was {
		since = before.Since
	}
	b.on[id] = AlarmOn{Kind: id.kind, SKU: id.sku, Value: value, Why: why, Since: since}
	return !was
}

func (b *alarmBook) tell(kind, sku string, on bool, why string) {
	about := []any{slog.String("alarm", kind)}
	if sku != "" {
		about = append(about, slog.String("sku", sku))
	}
	if on {
		b.log.Warn("an alarm is on", append(about, slog.String("why", why))...)
	} else {
		b.log.Info("an alarm is over", about...)
	}
}

func (b *alarmBook) list() []AlarmOn {
	b.mu.Lock()
	all := make([]AlarmOn, 0, len(b.on))
	for _, alarm := range b.on {
		all = append(all, alarm)
	}
	b.mu.Unlock()
	slices.SortFunc(all, func(x, y AlarmOn) int { return cmp.Or(cmp.Compare(x.SKU, y.SKU), cmp.Compare(x.Kind, y.Kind)) })
	return all
}

package engine

import (
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// Jobs says how often the jobs run that one of all instances does at a time.
type Jobs struct {
	// Lease is how long a job's lease lasts: the time after which another instance takes over from one that has died. Default 5 s.
	Lease time.Duration
	// Deliver is the time between looks for effects that the Stock has not followed; Relay for events. Defaults 200 ms.
	Deliver, Relay time.Duration
	// Sweep is that of the sweeper, default 1 s; Watch that of looking for losses of the Stock and settings it does not have,
	// default 1 s; Poll that of asking the provider, default 2 s; Reconcile that of comparing, default 30 s.
	Sweep, Watch, Poll, Reconcile time.Duration
}

func (j Jobs) withDefaults() Jobs {
	for field, fallback := range map[*time.Duration]time.Duration{
		&j.Lease: 5 * time.Second, &j.Deliver: 200 * time.Millisecond, &j.Relay: 200 * time.Millisecond,
		&j.Sweep: time.Second, &j.Watch: time.Second, &j.Poll: 2 * time.Second, &j.Reconcile: 30 * time.Second,
	} {
		if *field <= 0 {
			*field = fallback
		}
	}
	return j
}

// lost notes that the Stock of a key has lost data in an epoch; the watcher begins a rebuild.
func (e *Engine) lost(key flashsale.Key, epoch int64, why string) {
	e.observer.Alarm(AlarmLost, key.String(), true, float64(epoch), why)
}

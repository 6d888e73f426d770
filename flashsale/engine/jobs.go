package engine

import (
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
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
	// default 1 s; Poll that of asking the provider, default 2 s; Reconcile that of comparing Stock and SQL, default 30 s; Match that of comparing
	// provider, orders and ledger, default 1 min.
	Sweep, Watch, Poll, Reconcile, Match time.Duration
	// Refusals is how often every instance writes what it has refused to the log of refusals; sooner where much waits. Default 1 s.
	Refusals time.Duration
}

func (j Jobs) withDefaults() Jobs {
	for field, fallback := range map[*time.Duration]time.Duration{
		&j.Lease: 5 * time.Second, &j.Deliver: 200 * time.Millisecond, &j.Relay: 200 * time.Millisecond,
		&j.Sweep: time.Second, &j.Watch: time.Second, &j.Poll: 2 * time.Second, &j.Reconcile: 30 * time.Second,
		&j.Match: time.Minute, &j.Refusals: time.Second,
	} {
		if *field <= 0 {
			*field = fallback
		}
	}
	return j
}

// care is what the jobs of one engine remember. All of it can be lost: what matters is in SQL.
type care struct {
	started atomic.Bool
	// holders counts the leases asked for, so that two users of one lease in this process are two holders.
	holders atomic.Int64
	// watchNow wakes the watcher before its time.
	watchNow chan struct{}
	// delivered is a row of the outbox, opened a page of open operations, retired and dropped are skus.
	delivered place[int64]
	opened    place[string]
	retired   place[flashsale.Key]
	dropped   place[flashsale.DroppedSKU]

	mu sync.Mutex
	// losses are the epochs in which the Stock was seen to have lost data; at most one for each key.
	losses map[flashsale.Key]int64
	// walks say where walks through reservations of the Stock go on that are too long for one pass.
	walks map[walkOf]walk
	// drifts are the differences that the last reconciliation found.
	drifts map[flashsale.Key]knownDrift
	passes int64
	report *ReconcileReport
}

// walkOf names a walk by who makes it.
type walkOf struct {
	by  string
	key flashsale.Key
}

// knownDrift is a drift, and whether it was reported.
type knownDrift struct {
	Drift
	told bool
}

type walk struct {
	epoch  int64
	cursor string
}

func newCare() *care {
	return &care{
		watchNow: make(chan struct{}, 1),
		losses:   map[flashsale.Key]int64{}, walks: map[walkOf]walk{}, drifts: map[flashsale.Key]knownDrift{},
	}
}

// lost notes that the Stock of a key has lost data in an epoch, and wakes the watcher, who begins a rebuild unless the epoch is over.
func (e *Engine) lost(key flashsale.Key, epoch int64, why string) {
	if e.noteLoss(key, epoch, why) {
		e.log.Error("the stock has lost data and is rebuilt from SQL", slog.String("sku", key.String()), slog.Int64("epoch", epoch), slog.String("why", why))
		e.wakeWatcher()
	}
}

// noteLoss reports whether a loss is news.
func (e *Engine) noteLoss(key flashsale.Key, epoch int64, why string) bool {
	e.care.mu.Lock()
	known := e.care.losses[key] >= epoch
	if !known {
		e.care.losses[key] = epoch
	}
	e.care.mu.Unlock()
	if !known {
		e.observer.Alarm(AlarmLost, key.String(), true, float64(epoch), why)
	}
	return !known
}

// wakeWatcher lets the watcher look before its time, if it runs in this process.
func (e *Engine) wakeWatcher() {
	select {
	case e.care.watchNow <- struct{}{}:
	default:
	}
}

// lossy are the losses that were noticed.
func (c *care) lossy() map[flashsale.Key]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.losses)
}

// lostIn reports whether a loss was noticed in this epoch of a key.
func (e *Engine) lostIn(key flashsale.Key, epoch int64) bool {
	e.care.mu.Lock()
	defer e.care.mu.Unlock()
	return e.care.losses[key] == epoch && epoch != 0
}

// rebuilt forgets losses of epochs before this one.
func (e *Engine) rebuilt(key flashsale.Key, epoch int64) {
	e.care.mu.Lock()
	was, noted := e.care.losses[key]
	over := noted && was < epoch
	if over {
		delete(e.care.losses, key)
	}
	e.care.mu.Unlock()
	if over {
		e.observer.Alarm(AlarmLost, key.String(), false, float64(epoch), "rebuilt")
	}
}

// walked returns where a walk in an epoch goes on.
func (c *care) walked(by string, key flashsale.Key, epoch int64) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.walks[walkOf{by, key}]; w.epoch == epoch {
		return w.cursor
	}
	return ""
}

// walkOn keeps where a walk goes on; "" is at its beginning.
func (c *care) walkOn(by string, key flashsale.Key, epoch int64, cursor string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cursor == "" || len(c.walks) >= maxSKUs {
		delete(c.walks, walkOf{by, key})
		return
	}
	c.walks[walkOf{by, key}] = walk{epoch: epoch, cursor: cursor}
}

// place is where the next pass of a job goes on that looks at so much of a list at a time, so that what cannot be done hides nothing.
type place[P any] struct {
	mu sync.Mutex
	at P
}

func (p *place[P]) get() P {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

func (p *place[P]) set(at P) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = at
}

package memstore

import (
	"time"

	headgate "github.com/headgate-io/headgate"
)

const (
	// step is how many buckets one step of the sweeper looks at; a bucket has one entry at most on average.
	step = 4096
	// batch is how many of them it looks at under one hold of a shard's lock.
	batch = 256
	// lag is how long after the wall clock jumped ahead the sweeper goes on by the old time: if it was set wrong and is set
	// back, nothing has been forgotten that is not idle.
	lag = time.Hour
	// linger is how long an idle entry stays if there is room: a key in use is often idle between two takes.
	linger = 10 * time.Second
)

// sweeper forgets idle entries, a bounded number at a time.
type sweeper struct {
	s             *Store
	shard, bucket int

	now    int64         // µs, of the store's clock
	idle   int64         // µs: what is idle by then is forgotten
	age    int64         // of the store, s
	looked time.Duration // the same when now was set
	known  bool          // now was set
	behind time.Duration // age when now fell behind the wall clock; 0 if it is not

	passed bool // now was passed in: it is the clock of entries whose times were, too
}

func (s *Store) sweepLoop() {
	w := sweeper{s: s}
	w.tell()
	timer := time.NewTimer(s.cfg.SweepInterval)
	defer timer.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-timer.C:
		}
		urgent := s.urgent.Swap(false)
		w.step(urgent)
		interval := s.cfg.SweepInterval
		if urgent {
			interval /= 10
		}
		timer.Reset(max(interval, time.Microsecond))
	}
}

func (s *Store) hurry() {
	if !s.urgent.Load() {
		s.urgent.Store(true)
	}
}

// Forget removes every key that is idle at a time, however recently it was used, and returns how many it removed. It is for
// programs whose time is their own, such as replays: keys used through [Store.At] stay for an hour of real time otherwise.
// It may run beside takes, and looks at the whole table.
func (s *Store) Forget(now time.Time) (int, error) {
	us, err := headgate.Micros(now)
	if err != nil {
		return 0, err
	}
	w := sweeper{s: s, idle: us, passed: true}
	before := s.forgotten.Load()
	for w.shard = 0; w.shard < shards; w.shard++ {
		for {
			if w.sweepBatch(); w.bucket == 0 {
				break
			}
		}
	}
	s.slots.sweep(w.forget)
	return int(s.forgotten.Load() - before), nil
}

// step looks at the next part of the table, and after its end at the slots.
func (w *sweeper) step(urgent bool) {
	if w.tell() {
		if w.idle = w.now; !urgent {
			w.idle -= linger.Microseconds()
		}
		for left := step; left > 0; {
			left -= w.sweepBatch()
			if w.bucket == 0 {
				if w.shard = (w.shard + 1) % shards; w.shard == 0 {
					w.s.slots.sweep(w.forget)
					break
				}
			}
		}
	}
	if o := w.s.cfg.Observer; o != nil {
		st := w.s.Stats()
		o.ObserveKeys(st.Keys, st.Slots, st.Overflowed, st.Forgotten)
	}
}

// tell sets the time by which entries are judged; false if the clock cannot be read.
func (w *sweeper) tell() bool {
	wall, err := w.s.clock.now()
	if err != nil {
		return false
	}
	age := time.Since(w.s.born)
	steady := w.now + (age - w.looked).Microseconds() + time.Second.Microseconds()
	switch {
	case !w.known || wall <= steady || (w.behind != 0 && age-w.behind > lag):
		w.now, w.behind = wall, 0
	default:
		if w.behind == 0 {
			w.behind = age
		}
		w.now = steady - time.Second.Microseconds()
	}
	w.known, w.looked, w.age = true, age, int64(age/time.Second)
	return true
}

// sweepBatch looks at some buckets of the current shard and returns how much work that was.
func (w *sweeper) sweepBatch() int {
	sh := &w.s.table.shards[w.shard]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	b := sh.buckets.Load()
	if b == nil || w.bucket >= len(*b) {
		w.bucket = 0
		return 1
	}
	end := min(w.bucket+batch, len(*b))
	for i := w.bucket; i < end; i++ {
		link := &(*b)[i]
		for e := link.Load(); e != nil; e = link.Load() {
			if !w.forget(e) {
				link = &e.next
				continue
			}
			sh.unlink(link, e)
			w.s.uncount(e)
			w.s.forgotten.Add(1)
		}
	}
	done := end - w.bucket
	if w.bucket = end; end == len(*b) {
		sh.shrink()
		w.bucket = 0
	}
	return done
}

// forget marks an entry as gone if it is idle and not in use.
func (w *sweeper) forget(e *entry) bool {
	if !e.mu.TryLock() {
		return false
	}
	defer e.mu.Unlock()
	switch idle := e.cell.IdleAt() <= w.idle; {
	case w.passed && !idle, !w.passed && e.keep.second() > w.age, !w.passed && !e.keep.timeless() && !(idle && w.idleStill(e)):
		return false
	}
	e.keep = gone
	return true
}

// idleStill looks at the clock again: if it was set back since the sweeper has read it, an entry that was used meanwhile is idle by the
// old time alone.
func (w *sweeper) idleStill(e *entry) bool {
	now, err := w.s.clock.now()
	return err == nil && e.cell.IdleAt() <= now
}

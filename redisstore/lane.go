package redisstore

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// lane is a queue of ops whose keys may be in one call: all of them, or on a cluster those of one shard. What waits while
// the wire is busy goes together; there is no timer, and where nothing is on the wire an op is sent at once.
//
// A call runs in a goroutine of its own, so that a caller leaves at its deadline whatever the client does; but that of a lone
// take in the caller's own, where the client is known to come back in time.
type lane struct {
	s    *Store
	node atomic.Pointer[string] // where its calls go; nil: unknown

	mu       sync.Mutex
	queue    []*op // guarded by mu; from head on
	head     int   // guarded by mu
	inFlight int   // calls that count against MaxInFlight; guarded by mu
	closed   bool  // guarded by mu
}

// submit queues an op and sees to it that it is sent.
func (l *lane) submit(o *op) *headgate.Error {
	o.state.Store(opQueued)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return newError(headgate.CodeClosed, nil, "the store is closed")
	case l.s.queued.Add(1) > int64(l.s.cfg.MaxQueue):
		l.s.queued.Add(-1)
		return newError(headgate.CodeOverloaded, nil, "%d takes wait for Redis already; nothing was charged", l.s.cfg.MaxQueue)
	}
	l.queue = append(l.queue, o)
	if l.inFlight < l.s.cfg.MaxInFlight {
		l.inFlight++
		l.s.senders.Add(1)
		go l.send()
	}
	return nil
}

// alone sends an op in the caller's own goroutine, if nothing else waits or is on the wire, and reports whether it did. The op
// has its answer then. It is for a caller who can wait as long as the client may, which is as long as the store's time-out.
func (l *lane) alone(o *op) bool {
	l.mu.Lock()
	if l.closed || l.inFlight > 0 || l.head < len(l.queue) {
		l.mu.Unlock()
		return false
	}
	l.inFlight++
	l.s.senders.Add(1)
	l.mu.Unlock()
	defer l.s.senders.Done()
	o.state.Store(opQueued)
	b := l.s.batches.Get().(*batch)
	b.ops = append(b.ops[:0], o)
	w := watcher{l: l}
	if l.s.call(b, o.deadline, &w) {
		l.s.batches.Put(b)
	}
	if w.returned() {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.head == len(l.queue) {
		l.inFlight--
		return true
	}
	l.s.senders.Add(1) // others have come meanwhile
	go l.send()
	return true
}

// send makes calls until nothing waits.
func (l *lane) send() {
	defer l.s.senders.Done()
	l.s.sending.Add(1)
	defer l.s.sending.Add(-1)
	b := l.s.batches.Get().(*batch)
	for l.next(b) {
		if err := l.barred(); err != nil {
			b.bar(err)
			continue
		}
		w := l.watch(false)
		clean := l.s.call(b, time.Now().Add(l.s.cfg.Timeout+l.s.cfg.ConnectTimeout), w)
		if !clean {
			b = newBatch() // the client may still hold on to what it was given
		}
		if w.returned() {
			l.s.batches.Put(b)
			return
		}
	}
	l.s.batches.Put(b)
}

// next fills the batch with the ops that go together, and gives the place on the wire back if there are none.
func (l *lane) next(b *batch) bool {
	b.ops = b.ops[:0]
	l.mu.Lock()
	defer l.mu.Unlock()
	taken, keys, charges := 0, 0, 0
	for l.head < len(l.queue) && len(b.ops) < l.s.cfg.MaxBatch {
		o := l.queue[l.head]
		if o.state.Load() != opLeft {
			if len(b.ops) > 0 && (!o.joins(b.ops[0]) || keys+o.keys > maxBatchKeys || charges+len(o.charges) > maxSpecs) {
				break
			}
			b.ops = append(b.ops, o)
			keys, charges = keys+o.keys, charges+len(o.charges)
		}
		l.queue[l.head] = nil
		l.head++
		taken++
	}
	if l.head == len(l.queue) {
		l.queue, l.head = l.queue[:0], 0
	} else if l.head > 1024 && 2*l.head > len(l.queue) {
		n := copy(l.queue, l.queue[l.head:])
		clear(l.queue[n:])
		l.queue, l.head = l.queue[:n], 0
	}
	l.s.queued.Add(int64(-taken))
	if len(b.ops) == 0 {
		l.inFlight--
	}
	return len(b.ops) > 0
}

// joins tells whether an op can be in one call with another.
func (o *op) joins(other *op) bool {
	return o.script == other.script && o.script.name == "take" && !o.timed && !other.timed
}

// close fails what waits.
func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, o := range l.queue[l.head:] {
		if o.state.CompareAndSwap(opQueued, opSent) {
			o.finish("", 0, newError(headgate.CodeClosed, nil, "the store was closed"))
		}
	}
	l.s.queued.Add(int64(l.head - len(l.queue)))
	l.queue, l.head = nil, 0
}

// call sends a batch and gives every op of it an answer. It reports whether the client is done with what it was given.
func (s *Store) call(b *batch, deadline time.Time, w *watcher) (clean bool) {
	ctx, cancel := context.WithDeadline(s.base, deadline)
	defer cancel()
	defer w.tellRest()
	wait := time.Millisecond
	apart := false
	for {
		if !apart {
			f, again := s.attempt(ctx, b, w)
			if !again {
				return f != fateUnknown
			}
			if apart = f == fateApart; apart && len(b.ops) > 1 {
				w.goesApart()
				continue // at once: most of them are not on the move
			}
		} else if !s.attemptApart(ctx, b, w) {
			return false
		}
		if apart {
			w.giveAway() // what waits behind them may lie elsewhere
		}
		if !sleep(ctx, wait) {
			s.giveUp(b)
			return true
		}
		wait = min(2*wait, 32*time.Millisecond)
	}
}

// giveUp answers the ops of a batch that is not asked again.
func (s *Store) giveUp(b *batch) {
	for _, o := range b.ops {
		if o.state.CompareAndSwap(opQueued, opSent) {
			err := o.refusal.Load()
			if err == nil {
				err = newError(headgate.CodeTimeout, nil, "the time was up before anything was sent; nothing was charged")
			}
			o.finish("", 0, err)
		}
	}
}

// sleep waits, and reports false if the context ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

package leasestore

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	headgate "github.com/headgate-io/headgate"
)

// Store is a limiter that spends leases of another one. Make it with [New]; it is safe for concurrent use, and must be closed.
//
// It implements [headgate.Limiter], [headgate.Refunder], [headgate.Slots], [headgate.Resetter], [headgate.Inspector] and
// [headgate.Timed]; what the upstream cannot do is answered with headgate.CodeUnsupported.
type Store struct {
	upstream headgate.Limiter
	cfg      Config
	base     time.Time
	closed   atomic.Bool

	front front
	table *xsync.Map[identity, *holding]
	keys  atomic.Int64

	// took is how long a call takes, in nanoseconds: a moving mean.
	took    atomic.Int64
	waiting atomic.Int64
	refills chan struct{} // has room for one more if a refill may start
	returns returns
	figures figures
	takings sync.Pool // of *taking
	asks    sync.Pool // of *ask, for takes of which a part is in hand

	// life ends the calls in the background, stop the sweeper.
	life   context.Context
	end    context.CancelFunc
	stop   chan struct{}
	calls  sync.WaitGroup // refills
	loops  sync.WaitGroup
	begin  sync.Mutex // orders the beginning of a refill and closing
	closes sync.Once
}

type identity struct{ slot, key string }

// figures are the counters of Stats.
type figures struct {
	calls, failed, asked, granted, refunded, lost atomic.Uint64
}

// New returns a store of leases over a limiter, which stays the caller's to close, later than the store. A nil upstream is one
// that fails every call.
func New(upstream headgate.Limiter, cfg Config) *Store {
	if upstream == nil {
		upstream = unable{}
	}
	s := &Store{upstream: upstream, cfg: cfg.withDefaults(), base: time.Now(), table: xsync.NewMap[identity, *holding]()}
	s.refills = make(chan struct{}, s.cfg.MaxRefills)
	s.returns.wake = make(chan struct{}, 1)
	s.takings.New = func() any { return new(taking) }
	s.asks.New = func() any { return new(ask) }
	s.stop = make(chan struct{})
	s.life, s.end = context.WithCancel(context.Background())
	s.loops.Go(s.sweepLoop)
	s.loops.Go(s.returnLoop)
	return s
}

// now is the time by which leases die, in nanoseconds since some moment.
func (s *Store) now() int64 {
	if s.cfg.Elapsed != nil {
		return int64(s.cfg.Elapsed())
	}
	return int64(time.Since(s.base))
}

// Stats are the figures of a store, since it was made if they are not of now.
type Stats struct {
	// Keys is how many keys have, or had a moment ago, leases or denials; Held how many units they have in hand.
	Keys int
	Held int64
	// Calls and Failed count the calls for units and the looks at a denial's time; takes that went to the upstream as they were are
	// not among them.
	Calls, Failed uint64
	// Asked and Granted count the units of these calls.
	Asked, Granted uint64
	// Refunded and Lost count the units that were not spent: given back, or not. What was granted and is neither, nor held,
	// was spent.
	Refunded, Lost uint64
}

// Stats returns the figures of the store. It looks at every key.
func (s *Store) Stats() Stats {
	f := &s.figures
	st := Stats{
		Keys: int(s.keys.Load()), Calls: f.calls.Load(), Failed: f.failed.Load(), Asked: f.asked.Load(), Granted: f.granted.Load(),
		Refunded: f.refunded.Load(), Lost: f.lost.Load(),
	}
	s.table.Range(func(_ identity, h *holding) bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		st.Held += h.held()
		return true
	})
	return st
}

// closing is how long Close waits for what is under way and for what is given back.
const closing = time.Second

// Close gives back what was not spent and ends what runs in the background. It takes at most a second and reports with
// headgate.CodeTimeout if that was too short, as when the upstream does not answer. Calls after it fail with
// headgate.CodeClosed. It may be called again.
func (s *Store) Close() (err error) {
	s.closes.Do(func() { err = s.close() })
	return err
}

func (s *Store) close() error {
	defer s.end()
	s.begin.Lock()
	s.closed.Store(true)
	s.begin.Unlock()
	close(s.stop)
	s.table.Range(func(_ identity, h *holding) bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		s.dispose(h, h.drop(func(*lease) bool { return true }))
		h.deny(nil)
		return true
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.calls.Wait() // what they bring is given back, too
		s.returns.finish()
		s.loops.Wait()
	}()
	timer := time.NewTimer(closing)
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C:
		return newError(headgate.CodeTimeout, nil, "closed before all that was unspent was given back")
	}
}

// hold finds what is held of a key, and makes it if there is room; nil if there is none. It may be one that was just swept.
func (s *Store) hold(slot, key string) *holding {
	h := s.find(slot, key)
	if h == nil {
		if h = s.add(slot, key); h != nil {
			s.front.keep(h)
		}
	}
	return h
}

// add makes the holding of a key, unless there are as many as may be.
func (s *Store) add(slot, key string) *holding {
	most := int64(s.cfg.MaxKeys)
	if s.keys.Load() >= most {
		return nil
	}
	// Copies: a caller may use the memory of its texts again.
	id := identity{strings.Clone(slot), strings.Clone(key)}
	h, _ := s.table.LoadOrCompute(id, func() (h *holding, cancel bool) {
		if s.keys.Add(1) > most {
			s.keys.Add(-1)
			return nil, true
		}
		now := s.now()
		return &holding{slot: id.slot, key: id.key, used: now, demand: demand{begun: now}}, false
	})
	return h
}

// lookup finds what is held of a key, nil if it is nothing.
func (s *Store) lookup(slot, key string) *holding {
	h, _ := s.table.Load(identity{slot, key})
	return h
}

package engine

import (
	"sync"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

const (
	// quietest is how many times Idle the time between two looks at a quiet sku grows to.
	quietest = 25
	// firstBackOff and lastBackOff bound how long a sku is left alone after an error; it doubles.
	firstBackOff, lastBackOff = 20 * time.Millisecond, time.Second
)

// board says which sku a worker looks at next: each in its turn, so that a sku with a long queue takes no turn from another.
type board struct {
	idle time.Duration
	// signal has a value when somebody should look again. One is enough: who finds work signals on while there is more.
	signal chan struct{}

	mu    sync.Mutex
	seats []*seat
	of    map[flashsale.Key]*seat
	turn  int
}

// seat is a sku on the board.
type seat struct {
	key flashsale.Key
	// working counts the workers that are at it. Deep tells that the last pull was a full batch, so that there is work for more
	// of them; waiting, that there were jobs at the last look, so that it is not left alone.
	working       int
	deep, waiting bool
	woken         bool
	// due is when it is looked at next if it is not woken, earliest the time before which it is left alone even so.
	due, earliest time.Time
	idle          time.Duration
	failures      int
	// carried are batches that were pulled and could not be decided yet.
	carried []*batch
}

// turn is what a worker is to do.
type turn struct {
	seat  *seat
	batch *batch // to be decided again; nil: pull one
	woken bool
}

func newBoard(idle time.Duration) *board {
	return &board{idle: idle, signal: make(chan struct{}, 1), of: map[flashsale.Key]*seat{}}
}

// wake lets a worker look at a sku as soon as one is free.
func (b *board) wake(key flashsale.Key) {
	b.mu.Lock()
	s := b.seat(key)
	first := s != nil && !s.woken
	if first {
		s.woken = true
	}
	b.mu.Unlock()
	if first {
		b.look()
	}
}

// look wakes a worker.
func (b *board) look() {
	select {
	case b.signal <- struct{}{}:
	default:
	}
}

// seat returns the seat of a sku, a new one if need be, nil if the board is full.
func (b *board) seat(key flashsale.Key) *seat {
	s := b.of[key]
	if s == nil && len(b.seats) < maxSKUs {
		s = &seat{key: key, idle: b.idle}
		b.of[key] = s
		b.seats = append(b.seats, s)
	}
	return s
}

// set makes these the skus of the board. Who is at work at another one finishes.
func (b *board) set(keys []flashsale.Key) {
	b.mu.Lock()
	wanted := make(map[flashsale.Key]bool, len(keys))
	for _, key := range keys {
		wanted[key] = true
		b.seat(key)
	}
	kept := b.seats[:0]
	for _, s := range b.seats {
		if wanted[s.key] || s.working > 0 || s.woken || len(s.carried) > 0 {
			kept = append(kept, s)
		} else {
			delete(b.of, s.key)
		}
	}
	clear(b.seats[len(kept):])
	b.seats = kept
	b.mu.Unlock()
	b.look()
}

// seen tells how many jobs of a sku nobody has pulled.
func (b *board) seen(key flashsale.Key, waiting int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.of[key]
	if s == nil {
		return
	}
	if s.waiting = waiting > 0; s.waiting && s.idle > b.idle {
		s.idle = b.idle
		s.due = time.Time{}
	}
}

// keys returns the skus of the board.
func (b *board) keys() []flashsale.Key {
	b.mu.Lock()
	defer b.mu.Unlock()
	keys := make([]flashsale.Key, len(b.seats))
	for i, s := range b.seats {
		keys[i] = s.key
	}
	return keys
}

// pulled tells, before the jobs of a turn are decided, whether there is work for another worker.
func (b *board) pulled(t turn, full bool) {
	b.mu.Lock()
	t.seat.deep = full
	b.mu.Unlock()
	if full {
		b.look()
	}
}

// next gives a worker its turn, or says how long to wait for one.
func (b *board) next(now time.Time) (t turn, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wait = quietest * b.idle
	found := false
	for i := range b.seats {
		at := (b.turn + i) % len(b.seats)
		s := b.seats[at]
		until := s.until(now)
		switch {
		case until > 0:
			wait = min(wait, until)
		case found:
			b.look()
			return t, 0
		default:
			found = true
			t = s.take()
			b.turn = at + 1
		}
	}
	return t, wait
}

// until is how long a worker has to wait before it may look at this sku.
func (s *seat) until(now time.Time) time.Duration {
	const notNow = time.Hour
	at := s.due
	if s.woken || len(s.carried) > 0 {
		at = s.earliest
	}
	if at.Before(s.earliest) {
		at = s.earliest
	}
	if s.working > 0 && !s.deep && len(s.carried) == 0 {
		return notNow // who is at it looks again
	}
	return at.Sub(now)
}

func (s *seat) take() turn {
	t := turn{seat: s, woken: s.woken}
	s.working++
	s.woken = false
	if n := len(s.carried); n > 0 {
		t.batch, s.carried = s.carried[0], s.carried[1:]
	}
	return t
}

// done ends a turn in which so many jobs were decided, or an error has left a batch undecided.
func (b *board) done(t turn, now time.Time, decided int, err error, left *batch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := t.seat
	s.working--
	if left != nil {
		s.carried = append(s.carried, left)
	}
	if err != nil {
		s.earliest = now.Add(jittered(min(firstBackOff<<min(s.failures, 10), lastBackOff)))
		s.due = s.earliest
		s.failures++
		return
	}
	s.failures, s.due, s.earliest = 0, now, time.Time{}
	if decided > 0 || t.batch != nil {
		s.idle = b.idle
		return
	}
	s.due = now.Add(s.idle)
	if t.woken {
		// There is a job and the rate does not hand it out yet: to ask at every wake would only load the Stock.
		s.earliest = now.Add(b.idle / 4)
	}
	if s.idle = min(2*s.idle, quietest*b.idle); s.waiting {
		s.idle = b.idle
	}
}

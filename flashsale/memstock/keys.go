package memstock

import (
	"sync"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// keys are what an epoch of a sku has, guarded by the sku's mu. Times are in microseconds.
type keys struct {
	stock *Stock
	key   flashsale.Key
	mu    *sync.Mutex
	// loaded tells that the last part of the snapshot is there.
	loaded bool

	total, available, held, sold int64

	seq      int64
	settings flashsale.Settings
	opens    int64 // as settings, in microseconds
	closes   int64
	nextRate int64 // a lower rate that waits for the queue to fit it, 0: none
	pace     meter

	entries  map[string]*entry // by rid
	slots    slots
	due      dueHeap // those that are pending
	buyers   map[string]buyer
	adjusted map[string]bool // by id: whether it was done
	queue    queue
	dead     []deadLetter

	marks []uint64 // of what is known, in order, up to flashsale.MaxMarks
	calm  int64    // until when a lull lasts
	above int64    // the units that it gives
}

func newKeys(s *Stock, key flashsale.Key, mu *sync.Mutex) *keys {
	return &keys{
		stock: s, key: key, mu: mu,
		entries: map[string]*entry{}, buyers: map[string]buyer{}, adjusted: map[string]bool{},
	}
}

func (k *keys) unlock() { k.mu.Unlock() }

// entry is a reservation, and its job as long as it has one.
type entry struct {
	rid, user, body, origin string
	quantity                int64
	state                   flashsale.State
	version                 int64
	at, deadline            int64
	seq                     int64
	fromSQL                 bool // its body's hash is not known
	slot, due               int  // places in slots and in the heap
	job                     job
}

func (e *entry) public() flashsale.Entry {
	out := flashsale.Entry{RID: e.rid, User: e.user, Quantity: e.quantity, State: e.state, Version: e.version, At: fromMicro(e.at)}
	if e.state == flashsale.Pending {
		out.Deadline = fromMicro(e.deadline)
	}
	return out
}

func fromMicro(t int64) time.Time { return time.UnixMicro(t).UTC() }

// insert makes an entry known.
func (k *keys) insert(e *entry) {
	k.entries[e.rid] = e
	k.slots.add(e)
	k.stock.reservations.Add(1)
	k.mark(e.rid, e.user)
}

// remove forgets an entry. A job of it stays in the queue: whoever pulls it finds its row in SQL.
func (k *keys) remove(e *entry) {
	delete(k.entries, e.rid)
	k.slots.remove(e)
	k.stock.reservations.Add(-1)
}

// move takes an entry to another state, and its units to where the state counts them.
func (k *keys) move(e *entry, to flashsale.State, version, now int64) {
	from := e.state
	if from == flashsale.Pending {
		k.due.remove(e)
	}
	e.state, e.version, e.at, e.deadline = to, version, now, 0
	if from.Class() == to.Class() {
		return
	}
	*k.counter(from.Class()) -= e.quantity
	*k.counter(to.Class()) += e.quantity
	if to.Class() == flashsale.Free {
		k.giveBack(e)
	}
}

func (k *keys) counter(c flashsale.Class) *int64 {
	switch c {
	case flashsale.Held:
		return &k.held
	case flashsale.Sold:
		return &k.sold
	}
	return &k.available
}

// slots give every entry a place that it keeps, so that a walk through them meets each that stays exactly once.
type slots struct {
	of   []*entry
	free []int
}

func (s *slots) add(e *entry) {
	if n := len(s.free); n > 0 {
		e.slot, s.free = s.free[n-1], s.free[:n-1]
		s.of[e.slot] = e
		return
	}
	e.slot = len(s.of)
	s.of = append(s.of, e)
}

func (s *slots) remove(e *entry) {
	s.of[e.slot] = nil
	s.free = append(s.free, e.slot)
}

package engine

import (
	"sync"

	"github.com/headgate-io/headgate/flashsale"
)

// maxWaitingFor bounds the calls of Await for one reservation.
const maxWaitingFor = 8

// waiters are the calls of Await in this process, which are told of what it decides.
type waiters struct {
	limit int
	mu    sync.Mutex
	count int
	of    map[reservationID][]chan struct{}
}

func newWaiters(limit int) *waiters {
	return &waiters{limit: limit, of: map[reservationID][]chan struct{}{}}
}

// join adds a call, if there is room. Its channel gets a value when the reservation has moved.
func (w *waiters) join(id reservationID) (told <-chan struct{}, leave func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.count >= w.limit || len(w.of[id]) >= maxWaitingFor {
		return nil, nil, false
	}
	c := make(chan struct{}, 1)
	w.count++
	w.of[id] = append(w.of[id], c)
	return c, func() { w.leave(id, c) }, true
}

func (w *waiters) leave(id reservationID, c chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.of[id]
	for i := range all {
		if all[i] == c {
			all[i] = all[len(all)-1]
			all = all[:len(all)-1]
			w.count--
			break
		}
	}
	if len(all) == 0 {
		delete(w.of, id)
		return
	}
	w.of[id] = all
}

// tell wakes those who wait for what SQL has decided.
func (w *waiters) tell(key flashsale.Key, decided []flashsale.Decided) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.count == 0 {
		return
	}
	for i := range decided {
		for _, c := range w.of[reservationID{key, decided[i].RID}] {
			select {
			case c <- struct{}{}:
			default: // it has been told and has not looked yet
			}
		}
	}
}

package redisstock

import (
	"context"
	"encoding/binary"
	"runtime"
	"strconv"

	"github.com/headgate-io/headgate/flashsale"
)

// laneKey says what may go together: the asks of one sku from callers who know the same epoch.
type laneKey struct {
	key   flashsale.Key
	epoch int64
}

// lane is a queue of asks. What waits while the wire is busy goes together; there is no timer, and where nothing is on the wire an
// ask is sent at once, by a goroutine of its own. Its fields are guarded by the stock's mu.
type lane struct {
	laneKey
	queue    []*ask // from head on
	head     int
	inFlight int
}

// fail gives all that wait an error.
func (l *lane) fail(err error) {
	for _, a := range l.queue[l.head:] {
		a.finish(askQueued, err)
	}
	l.queue, l.head = nil, 0
}

// submit queues an ask and sees to it that it is sent.
func (s *Stock) submit(at laneKey, a *ask) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return closedError()
	case s.queued >= s.cfg.MaxQueue:
		return failf(flashsale.CodeBusy, nil, "%d reserve calls wait for Redis already; nothing was changed", s.queued)
	}
	l := s.lanes[at]
	if l == nil {
		l = &lane{laneKey: at}
		s.lanes[at] = l
	}
	l.queue = append(l.queue, a)
	s.queued++
	if l.inFlight < s.cfg.MaxInFlight {
		l.inFlight++
		s.work.Add(1)
		go s.send(l)
	}
	return nil
}

// send makes calls until nothing waits.
func (s *Stock) send(l *lane) {
	defer s.work.Done()
	b := batch{keys: s.keysOf(l.key, l.epoch, forReserve)}
	for s.next(l, &b) {
		s.call(l, &b)
		runtime.Gosched() // those who have their answers may ask again, and go together
	}
}

// next fills the batch with the asks that go together, and gives the place on the wire back if there are none. A lane is gone when
// nothing of it is on the wire.
func (s *Stock) next(l *lane, b *batch) bool {
	b.asks = b.asks[:0]
	s.mu.Lock()
	defer s.mu.Unlock()
	was := l.head
	for l.head < len(l.queue) && len(b.asks) < s.cfg.MaxBatch {
		if a := l.queue[l.head]; a.state.CompareAndSwap(askQueued, askSent) {
			b.asks = append(b.asks, a)
		}
		l.queue[l.head] = nil
		l.head++
	}
	s.queued -= l.head - was
	if l.head == len(l.queue) {
		l.queue, l.head = l.queue[:0], 0
	} else if l.head > 1024 && 2*l.head > len(l.queue) {
		n := copy(l.queue, l.queue[l.head:])
		clear(l.queue[n:])
		l.queue, l.head = l.queue[:n], 0
	}
	if len(b.asks) > 0 {
		return true
	}
	if l.inFlight--; l.inFlight == 0 {
		delete(s.lanes, l.laneKey)
	}
	return false
}

// batch is one call of reserve.lua. It is used by one goroutine.
type batch struct {
	asks []*ask
	keys []string
	args []string
	body []byte
	rids map[string]byte // their places among the different ones, from 1
	user map[string]byte
}

// call sends a batch and gives every ask of it its answer.
func (s *Stock) call(l *lane, b *batch) {
	ctx, cancel := context.WithTimeout(s.base, s.cfg.Timeout)
	defer cancel()
	b.encode(strconv.FormatInt(l.epoch, 10), s.nowArg())
	o := op{key: l.key, epoch: l.epoch, what: "a reserve call"}
	all, err := s.answer(&o, s.scripts.reserve.Exec(ctx, s.client, b.keys, b.args))
	b.args = nil // the client may still hold on to them
	if err == nil {
		r, ok := parseReserved(all)
		if ok && len(r.letters) == len(b.asks) {
			b.answer(l.key, &r)
			return
		}
		err = badReply(o.what)
	}
	for _, a := range b.asks {
		a.finish(askSent, err)
	}
}

// answer gives each ask its part.
func (b *batch) answer(key flashsale.Key, r *reserved) {
	for i, a := range b.asks {
		answer, ok := r.read(r.letters[i], key, &a.Ask)
		if !ok { // what follows cannot be read either
			for _, a := range b.asks[i:] {
				a.finish(askSent, badReply("a reserve call"))
			}
			return
		}
		a.answer = answer
		a.finish(askSent, nil)
	}
}

// encode writes the arguments. An ask names its rid and its user by their places, so that the script sees what it has itself
// changed of them.
func (b *batch) encode(epoch, now string) {
	n := len(b.asks)
	args := make([]string, 4, 4+3*n)
	args[0], args[1] = epoch, now
	b.body = b.body[:0]
	b.rids, args = places(b.rids, args, b.asks, func(a *ask) string { return a.RID })
	rids := len(args) - 4
	b.user, args = places(b.user, args, b.asks, func(a *ask) string { return a.User })
	users := len(args) - 4 - rids
	for _, a := range b.asks {
		b.body = append(b.body, b.rids[a.RID], b.user[a.User])
		b.body = binary.LittleEndian.AppendUint32(b.body, uint32(a.Quantity))
		b.body = appendMarks(append(b.body, a.how()), a.RID, a.User)
		args = append(args, a.text)
	}
	args[2] = string([]byte{byte(rids), 0, byte(users), 0})
	args[3] = string(b.body)
	b.args = args
}

// how says what is particular about an ask.
func (a *ask) how() byte {
	switch {
	case a.OnlyKnown:
		return 1
	case a.Origin != "":
		return 2
	}
	return 0
}

// places appends the different ones of a name of the asks to args, and returns their places.
func places(at map[string]byte, args []string, asks []*ask, name func(*ask) string) (map[string]byte, []string) {
	if at == nil {
		at = make(map[string]byte, len(asks))
	}
	clear(at)
	for _, a := range asks {
		if _, ok := at[name(a)]; !ok {
			at[name(a)] = byte(len(at) + 1)
			args = append(args, name(a))
		}
	}
	return at, args
}

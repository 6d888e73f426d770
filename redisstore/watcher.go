package redisstore

import (
	"sync"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// watcher looks after one call. A call that has no answer within Config.Timeout has failed: the watcher tells the observer of it
// then, and gives the call's place on the wire to the next. The call itself goes on until the client gives up, which may be
// long after, and is not told of again.
//
// Both moments are chosen so that a breaker can tell a node that has stopped from one that has stalled for 250 ms, as it does
// for a fork. With the defaults, a Timeout of 200 ms:
//
//   - One node, 2 calls in flight. They fail 200 ms after the node has stopped, and 2 more every 200 ms: 10 in 800 ms, the
//     last of them 1 s after the stop, when what was answered before it is just over a second old. If places were held for twice
//     as long, there would be 5 calls a second, and no breaker that waits for 10 would ever see them.
//   - A stall of 250 ms fails what was sent in its first 50 ms: 2 calls, the 2 that take their places being answered in time; on
//     a cluster, where each of a node's shards has a call of its own in flight, 86 of three nodes, all within 50 ms of each other.
//   - A client that is stuck for 1.2 s (see connect) holds the goroutines of 5 rounds at most: 10, and 430 on a cluster,
//     which maxStuck lets be. Beyond it places are held, but calls are told of all the same.
//
// A caller who sends by itself has no watcher's timer: its own deadline is the store's, and the client keeps to it.
type watcher struct {
	l *lane
	// timed has the time watched, from when the call is sent.
	timed bool
	// placeless tells of a call beside the lane's, which has no place to give away.
	placeless bool

	mu     sync.Mutex
	timer  *time.Timer   // guarded by mu; nil: nothing has been sent, or nobody watches the time
	node   string        // guarded by mu: where it was sent, as the script, the takes and the time
	script string        // guarded by mu; "": nothing has been sent
	takes  int           // guarded by mu
	start  time.Time     // guarded by mu
	code   headgate.Code // guarded by mu: of what Redis has refused, for the moment or to one of takes that go apart
	apart  bool          // guarded by mu: the takes go one by one
	told   bool          // guarded by mu
	over   bool          // guarded by mu: the call came back
	away   bool          // guarded by mu: its place was given away
}

// The most calls whose place was given away; of a cluster two for each shard.
const (
	maxStuck      = 64
	maxStuckShard = 2
)

func (s *Store) maxStuck() int64 {
	if len(s.lanes) == 1 {
		return maxStuck
	}
	return maxStuckShard * int64(len(s.lanes))
}

func (l *lane) watch(placeless bool) *watcher {
	return &watcher{l: l, timed: true, placeless: placeless}
}

// late is run when the call should have had its answer.
func (w *watcher) late() {
	w.mu.Lock()
	code := w.code
	w.mu.Unlock()
	if code == "" {
		code = headgate.CodeIndeterminate
	}
	w.tell(code)
	w.giveAway()
}

// sends notes that the call is sent, at a time, for the first time or again.
func (w *watcher) sends(script string, takes int, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.script != "" {
		return
	}
	w.node, w.script, w.takes, w.start = w.l.nodeName(), script, takes, at
	if w.timed {
		w.timer = time.AfterFunc(w.l.s.cfg.Timeout, w.late)
	}
}

// refused notes that Redis has answered that it cannot for the moment.
func (w *watcher) refused(code headgate.Code) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.code = code
}

// goesApart notes that the takes of the call are sent one by one from now on.
func (w *watcher) goesApart() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.apart, w.code = true, ""
}

// ends notes that what was sent has its answer. With it the call is over, or one of takes that go apart, of which the last tells.
func (w *watcher) ends(code headgate.Code) {
	w.mu.Lock()
	apart := w.apart
	if apart && code != "" {
		w.code = code
	}
	w.mu.Unlock()
	if !apart {
		w.tell(code)
	}
}

// tellRest tells of a call that ends without a last answer: its takes went apart, or are not repeated any more, or have all left.
func (w *watcher) tellRest() {
	w.mu.Lock()
	code := w.code
	w.mu.Unlock()
	w.tell(code)
}

// tell tells the observer of the call, unless it has been told.
func (w *watcher) tell(code headgate.Code) {
	w.mu.Lock()
	if w.told || w.script == "" || w.l.s.base.Err() != nil { // what the store's own end cuts short says nothing of Redis
		w.mu.Unlock()
		return
	}
	w.told = true
	node, script, takes, took := w.node, w.script, w.takes, time.Since(w.start)
	w.mu.Unlock()
	if code != "" { // what is beyond this was not the node's: this process stood still, or had no processor
		took = min(took, w.l.s.cfg.Timeout)
	}
	w.l.s.cfg.Observer.Call(node, script, takes, took, code)
	if code != "" {
		w.l.s.doubt()
	}
}

// giveAway lets the next call have the place on the wire.
func (w *watcher) giveAway() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over || w.away || w.placeless {
		return
	}
	if w.l.s.stuck.Add(1) > w.l.s.maxStuck() {
		w.l.s.stuck.Add(-1)
		return
	}
	w.away = true
	w.l.mu.Lock()
	defer w.l.mu.Unlock()
	if w.l.closed || w.l.head == len(w.l.queue) {
		w.l.inFlight--
		return
	}
	w.l.s.senders.Add(1)
	go w.l.send()
}

// returned notes that the call came back and tells whether its place is another's by now.
func (w *watcher) returned() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
	w.over = true
	if w.away {
		w.l.s.stuck.Add(-1)
	}
	return w.away
}

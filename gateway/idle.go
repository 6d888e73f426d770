package gateway

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// watchIdle calls fire when idle has found nothing new for a time. It looks once in that time, which costs what is watched
// nothing; so it may take twice as long. stop ends it.
func watchIdle(every time.Duration, idle func() bool, fire func()) (stop func()) {
	var timer *time.Timer
	var over bool
	var mu sync.Mutex // the timer may fire before it is assigned, or while it is stopped
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(every, func() {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case over:
		case idle():
			fire()
		default:
			timer.Reset(every)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		timer.Stop()
	}
}

var errSilent = errors.New("the answer does not go on")

// answerWatches closes answers of known length within which the service is silent for too long. The time that the client takes
// does not count. One timer looks at all of them, and runs while there are any: an answer costs two turns of a lock.
type answerWatches struct {
	every time.Duration // not positive for no bound

	mu     sync.Mutex
	active []*answerWatch
	timer  *time.Timer
	armed  bool
	reuse  sync.Pool // of *answerWatch
}

// answerWatch reads the body of an answer.
type answerWatch struct {
	body    io.ReadCloser
	watched bool
	steps   atomic.Int64 // odd during a read
	fired   atomic.Bool
	index   int   // in active; the watches' mu guards what follows
	last    int64 // steps at the last look
}

// begin watches an answer until end.
func (w *answerWatches) begin(res *http.Response) *answerWatch {
	a, _ := w.reuse.Get().(*answerWatch)
	if a == nil {
		a = new(answerWatch)
	}
	a.body, a.watched, a.last = res.Body, res.ContentLength >= 0 && w.every > 0, -1
	a.fired.Store(false)
	if !a.watched {
		return a
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	a.index = len(w.active)
	w.active = append(w.active, a)
	if !w.armed {
		w.arm()
	}
	return a
}

// arm has the timer fire. The caller holds mu.
func (w *answerWatches) arm() {
	w.armed = true
	if w.timer == nil {
		w.timer = time.AfterFunc(w.every, w.look)
		return
	}
	w.timer.Reset(w.every)
}

func (w *answerWatches) end(a *answerWatch) {
	if a.watched {
		w.mu.Lock()
		last := len(w.active) - 1
		w.active[a.index] = w.active[last]
		w.active[a.index].index = a.index
		w.active[last] = nil
		w.active = w.active[:last]
		w.mu.Unlock()
	}
	a.body = nil
	w.reuse.Put(a)
}

// look closes the answers whose read that is under way is the same as at the last look. So a silence is ended after the bound, and
// before twice that. Closing can wait for a connection that takes nothing more, and nobody else may wait for that.
func (w *answerWatches) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.armed = false; len(w.active) == 0 {
		return
	}
	for _, a := range w.active {
		now := a.steps.Load()
		if now == a.last && now%2 == 1 && !a.fired.Swap(true) {
			go a.body.Close()
		}
		a.last = now
	}
	w.arm()
}

// close ends the watch of all answers.
func (w *answerWatches) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
	w.armed = true // for ever
}

// Read is called by one goroutine at a time, between begin and end.
func (a *answerWatch) Read(p []byte) (int, error) {
	a.steps.Add(1)
	n, err := a.body.Read(p)
	a.steps.Add(1)
	if err != nil && a.fired.Load() {
		err = errSilent
	}
	return n, err
}

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

// watchedAnswer reads the body of an answer whose length is known, and closes it if the service is silent for too long. The time
// that the client takes does not count. One that comes in one piece is not watched.
type watchedAnswer struct {
	body  io.ReadCloser
	every time.Duration // not positive for no bound
	steps atomic.Int64  // odd during a read
	fired atomic.Bool
	stop  func()
}

func watchAnswer(res *http.Response, every time.Duration) *watchedAnswer {
	if res.ContentLength < 0 {
		every = 0
	}
	return &watchedAnswer{body: res.Body, every: every}
}

func (a *watchedAnswer) Read(p []byte) (int, error) {
	a.steps.Add(1)
	n, err := a.body.Read(p)
	a.steps.Add(1)
	if err != nil && a.fired.Load() {
		err = errSilent
	}
	return n, err
}

// goesOn says that there will be more reads.
func (a *watchedAnswer) goesOn() {
	if a.stop != nil || a.every <= 0 {
		return
	}
	var last int64
	a.stop = watchIdle(a.every, func() bool {
		now := a.steps.Load()
		same := now == last && now%2 == 1
		last = now
		return same
	}, func() {
		a.fired.Store(true)
		a.body.Close()
	})
}

func (a *watchedAnswer) end() {
	if a.stop != nil {
		a.stop()
	}
}

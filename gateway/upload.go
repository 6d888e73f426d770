package gateway

import (
	"sync"
	"time"
)

// upload is a request whose body may still be coming. An upstream that waits for a client does no work: when that takes longer than
// the work of a request does, the place that it takes within the adaptive limit, or on trial, is given back until the body is
// there. Else a few slow clients could take all places.
type upload struct {
	limiter  *limiter // nil for none
	health   *health
	admitted admission
	timer    *time.Timer

	mu         sync.Mutex
	away, over bool
}

// upload watches the body of an attempt that takes a place.
func (a *attempt) upload(body *pacedBody) {
	if body == nil || a.u.limiter == nil && !a.admitted.counted || body.sent() {
		return
	}
	up := &upload{limiter: a.u.limiter, health: a.u.health, admitted: a.admitted}
	up.timer = time.AfterFunc(a.u.limiter.patience(), up.rest)
	body.whenSent(up.resume)
	a.coming = up
}

// rest gives the place back.
func (u *upload) rest() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.over {
		return
	}
	u.away = true
	u.health.rest(u.admitted)
	if u.limiter != nil {
		u.limiter.rest(time.Now())
	}
}

// resume takes the place again for good: now it is the upstream's turn.
func (u *upload) resume() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.timer.Stop()
	u.over = true
	if !u.away {
		return
	}
	u.away = false
	u.health.resume(u.admitted)
	if u.limiter != nil {
		u.limiter.resume()
	}
}

// end ends the watch; the place is taken, as it was at first.
func (u *upload) end() {
	if u != nil {
		u.resume()
	}
}

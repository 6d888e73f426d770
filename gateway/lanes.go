package gateway

import (
	"net/http"
	"sync"
)

// What has come for a client that takes nothing fills the window of its stream, and counts in that of the connection. So a
// connection of HTTP/2 to an upstream carries no more streams than its window has room for: else a few slow clients would hold up
// the answers of all others.
const (
	streamBuffer = 256 << 10
	laneStreams  = (4<<20 - 1) / streamBuffer
)

// lanes spread the requests to an upstream over transports, each of which has connections of its own. It is safe for concurrent use.
type lanes struct {
	most int // requests at a time on one, 0 for any number
	open func() *http.Transport

	mu  sync.Mutex
	all []*lane
}

type lane struct {
	transport *http.Transport
	requests  int // guarded by the lanes' mu
}

func newLanes(most int, open func() *http.Transport) *lanes {
	return &lanes{most: most, open: open, all: []*lane{{transport: open()}}}
}

func (l *lanes) first() *http.Transport { return l.all[0].transport } // it is never another

// enter finds a lane for a request, the first one with a place: so that the last ones' connections become idle and are closed.
func (l *lanes) enter() *lane {
	if l.most == 0 {
		return l.all[0]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.all {
		if one.requests < l.most {
			one.requests++
			return one
		}
	}
	one := &lane{transport: l.open(), requests: 1}
	l.all = append(l.all, one)
	return one
}

// leave gives the place back; nil had none.
func (l *lanes) leave(one *lane) {
	if one == nil || l.most == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	one.requests--
}

func (l *lanes) closeIdle() {
	l.mu.Lock()
	all := l.all
	l.mu.Unlock()
	for _, one := range all { // only ever appended to
		one.transport.CloseIdleConnections()
	}
}

// transport returns that of an attempt. Websockets have connections of their own in any case.
func (a *attempt) transport(websock bool) *http.Transport {
	if websock {
		return a.u.upgrades
	}
	a.lane = a.u.lanes.enter()
	return a.lane.transport
}

package testservers

import (
	"net"
	"sync"
	"time"
)

// A link's bounds: bytes of one piece, and pieces on their way in one direction. A sender of more is held up, as by TCP.
const (
	pieceBytes = 16 << 10
	pieces     = 256
)

// link is one connection of a client with the one to the server that belongs to it.
type link struct {
	p      *Proxy
	client *net.TCPConn
	done   chan struct{} // closed when the link is to end

	mu     sync.Mutex
	server *net.TCPConn // nil until it is connected
	ended  bool
}

func newLink(p *Proxy, client *net.TCPConn) *link {
	return &link{p: p, client: client, done: make(chan struct{})}
}

// run forwards in both directions until both have ended, or the link was cut.
func (l *link) run() {
	defer l.end(false)
	if !l.connect() {
		return
	}
	up, down := l.pipe(l.client, l.server), l.pipe(l.server, l.client)
	up.delay = func(f Fault) Delay { return f.Up }
	down.delay = func(f Fault) Delay { return f.Down }
	down.answers = true
	var both sync.WaitGroup
	for _, d := range []*pipe{up, down} {
		both.Go(d.read)
		both.Go(d.write)
	}
	both.Wait()
}

// connect waits until something may pass and connects to the server. A server that is not there is, for the client, a
// connection that ends.
func (l *link) connect() bool {
	for state := l.p.now(); state.fault.Drop; state = l.p.now() {
		select {
		case <-state.over:
		case <-l.done:
			return false
		}
	}
	c, err := net.DialTimeout("tcp4", l.p.target, commandTimeout)
	if err != nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.server = c.(*net.TCPConn)
	if l.ended {
		_ = l.server.Close() // nothing was sent
		return false
	}
	return true
}

// reset cuts the link so that both sides are told at once.
func (l *link) reset() { l.end(true) }

func (l *link) end(hard bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	close(l.done)
	for _, c := range []*net.TCPConn{l.client, l.server} {
		if c == nil {
			continue
		}
		if hard {
			_ = c.SetLinger(0) // an error is that of a connection that has ended, as is one of Close
		}
		_ = c.Close()
	}
}

// piece is what was read at a time, and when it is to be passed on.
type piece struct {
	data []byte
	due  time.Time
}

// pipe is one direction of a link.
type pipe struct {
	l        *link
	from, to *net.TCPConn
	delay    func(Fault) Delay
	answers  bool // whether CutAfter counts here
	queue    chan piece

	counted *proxyState // whose bytes are counted
	passed  int
}

func (l *link) pipe(from, to *net.TCPConn) *pipe {
	return &pipe{l: l, from: from, to: to, queue: make(chan piece, pieces)}
}

func (d *pipe) read() {
	defer close(d.queue)
	var due time.Time
	for {
		b := make([]byte, pieceBytes)
		n, err := d.from.Read(b)
		if n > 0 {
			next := time.Now().Add(d.delay(d.l.p.now().fault).draw())
			if next.After(due) {
				due = next
			}
			select {
			case d.queue <- piece{b[:n], due}:
			case <-d.l.done:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (d *pipe) write() {
	for next := range d.queue {
		state, ok := d.await(next.due)
		if !ok {
			return
		}
		data, cut := d.allowed(state, next.data)
		_, err := d.to.Write(data)
		if err != nil || cut {
			d.l.end(false)
			return
		}
	}
	// The sender has said all it had to say; the other side may have more. What waits for a heal was waited for above.
	_ = d.to.CloseWrite() // an error is that of a connection that has ended
}

// await waits until a piece is due and may pass, and returns the fault it meets. It is false if the link has ended.
func (d *pipe) await(due time.Time) (state *proxyState, ok bool) {
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-d.l.done:
		return nil, false
	}
	for state = d.l.p.now(); state.fault.Drop; state = d.l.p.now() {
		select {
		case <-state.over:
		case <-d.l.done:
			return nil, false
		}
	}
	return state, true
}

// allowed returns how much of a piece passes, and whether the link is to be cut after it.
func (d *pipe) allowed(state *proxyState, data []byte) (part []byte, cut bool) {
	if !d.answers || state.fault.CutAfter <= 0 {
		return data, false
	}
	if d.counted != state {
		d.counted, d.passed = state, 0
	}
	if left := state.fault.CutAfter - d.passed; len(data) >= left {
		return data[:left], true
	}
	d.passed += len(data)
	return data, false
}

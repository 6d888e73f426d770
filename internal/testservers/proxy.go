package testservers

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Fault says what a [Proxy] does to what goes through it. The zero Fault forwards everything at once. It holds for
// connections that stand already as for new ones.
type Fault struct {
	// Up delays what the client sends, Down what the server sends. Data comes out in the order in which it went in.
	Up, Down Delay
	// Drop is a network that loses everything: connections stand and are accepted, and nothing passes in either direction.
	// What was sent meanwhile arrives when the fault ends, as what TCP sends again would, if its connection still stands.
	Drop bool
	// Refuse is a server that is not there: connections are cut, and new ones refused.
	Refuse bool
	// CutAfter, if above 0, ends each connection after so many bytes of answers, counted from when the fault began or the
	// connection was made. The bytes before are delivered.
	CutAfter int
}

// Delay is how long something takes: from Min to Max, evenly distributed; always Min if Max is not above it.
type Delay struct{ Min, Max time.Duration }

func (d Delay) draw() time.Duration {
	if d.Max <= d.Min {
		return d.Min
	}
	return d.Min + rand.N(d.Max-d.Min+1)
}

// Proxy is a TCP proxy in the test's own process that can spoil what it forwards. Put one between each client and the
// server to take one client of several from it. Its methods are safe for concurrent use.
type Proxy struct {
	target string
	port   int

	mu       sync.Mutex
	listener net.Listener // nil while refusing
	state    *proxyState
	links    map[*link]struct{}
	closed   bool
	running  sync.WaitGroup
}

// proxyState is a fault while it lasts.
type proxyState struct {
	fault Fault
	over  chan struct{} // closed when another takes its place
}

// NewProxy starts a proxy to an address and ends it with the test.
func NewProxy(tb TB, target string) *Proxy {
	tb.Helper()
	p := &Proxy{target: target, port: reservePort(tb), links: map[*link]struct{}{}, state: &proxyState{over: make(chan struct{})}}
	if err := p.listen(); err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(p.Close)
	return p
}

// Addr returns HOST:PORT for the client.
func (p *Proxy) Addr() string { return loopback(p.port) }

// Set makes a fault begin in place of the one before. Its error says that the proxy, after Refuse, cannot listen again.
func (p *Proxy) Set(f Fault) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return fmt.Errorf("testservers: the proxy to %s is closed", p.target)
	}
	close(p.state.over)
	p.state = &proxyState{fault: f, over: make(chan struct{})}
	switch {
	case f.Refuse:
		p.stopListening()
		p.cut()
	case p.listener == nil:
		return p.listen()
	}
	return nil
}

// Heal ends the fault.
func (p *Proxy) Heal() error { return p.Set(Fault{}) }

// Cut resets every connection that stands.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut()
}

// Links returns how many connections of clients stand.
func (p *Proxy) Links() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Close ends the proxy with all its connections. Closing twice does no harm.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.stopListening()
	p.cut()
	p.mu.Unlock()
	p.running.Wait()
}

// The following are called with p.mu held.

func (p *Proxy) listen() error {
	l, err := net.Listen("tcp4", p.Addr())
	if err != nil {
		return fmt.Errorf("testservers: proxy to %s: %w", p.target, err)
	}
	p.listener = l
	p.running.Go(func() { p.accept(l) })
	return nil
}

func (p *Proxy) stopListening() {
	if p.listener != nil {
		_ = p.listener.Close() // it was not written to
		p.listener = nil
	}
}

func (p *Proxy) cut() {
	for l := range p.links {
		l.reset()
	}
}

// accept takes connections until its listener is closed.
func (p *Proxy) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		p.welcome(l, c.(*net.TCPConn))
	}
}

func (p *Proxy) welcome(l net.Listener, client *net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := newLink(p, client)
	if p.listener != l { // refused, or closed, between accepting and now
		k.reset()
		return
	}
	p.links[k] = struct{}{}
	p.running.Go(func() {
		k.run()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.links, k)
	})
}

func (p *Proxy) now() *proxyState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

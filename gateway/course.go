package gateway

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptrace"
	"sync"
)

// course is how far a request has come at the transport, which tells of it from goroutines of its own.
type course struct {
	mu       sync.Mutex
	conn     *guardedConn // the last one that it was given, nil for none
	unshaken bool         // whether a TLS handshake has failed
	written  bool         // whether its header has been written to a connection
}

func (c *course) got(info httptrace.GotConnInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn = guardOf(info.Conn)
}

func guardOf(conn net.Conn) *guardedConn {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	guarded, _ := conn.(*guardedConn)
	return guarded
}

func (c *course) shaken(_ tls.ConnectionState, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unshaken = c.unshaken || err != nil
}

func (c *course) wrote() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written = true
}

// unsent tells whether an error of the transport means that no connection could be made; a TLS handshake that fails is among
// these, but for one that was made after another connection had been tried. After a kept connection had turned out to be closed
// it does so only where the transport itself was to send the request once more.
func (c *course) unsent(err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	var dial dialError
	return errors.As(err, &dial) || c.unshaken && c.conn == nil
}

// unsendable tells whether a request that failed has failed by itself: there was a connection, and the transport has written
// nothing of it.
func (c *course) unsendable() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn != nil && !c.written
}

// repeats tells whether a failure is that of a connection that others have failed with, as many do at a time over HTTP/2. The first
// one to ask is told no.
func (c *course) repeats() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn != nil && c.conn.lost.Load() && c.conn.blamed.Swap(true)
}

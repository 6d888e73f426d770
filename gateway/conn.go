package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// guardedConn ends a connection whose other side does not take what is written to it: each write must get on at a pace.
// It bounds no pause between writes, so streams may be silent.
type guardedConn struct {
	net.Conn
	pace pace
	once sync.Once
	done func()                    // called at the first Close, nil for none
	last atomic.Pointer[time.Time] // no read may take longer, nil for no bound

	lost, blamed atomic.Bool // whether reading has failed, and whether that has counted as a failure of an upstream
}

func newGuardedConn(conn net.Conn, stall time.Duration, minRate int64) *guardedConn {
	return &guardedConn{Conn: conn, pace: newPace(stall, minRate)}
}

// Read notes the end of the connection before anybody can learn of it.
func (c *guardedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.lost.Store(true)
	}
	return n, err
}

func (c *guardedConn) Write(p []byte) (int, error) {
	return c.pace.write(p, c.Conn.Write, c.Conn.SetWriteDeadline)
}

// SetWriteDeadline is for net/http, which takes deadlines away when a connection changes hands.
func (c *guardedConn) SetWriteDeadline(t time.Time) error {
	c.pace.replaced()
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline sets both deadlines.
func (c *guardedConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// lastReads bounds all reads to come, whatever deadlines are set after it.
func (c *guardedConn) lastReads(until time.Time) {
	c.last.Store(&until)
	_ = c.Conn.SetReadDeadline(until) // fails on a closed connection
}

// SetReadDeadline sets the deadline of reads.
func (c *guardedConn) SetReadDeadline(t time.Time) error {
	if last := c.last.Load(); last != nil && (t.IsZero() || t.After(*last)) {
		t = *last
	}
	return c.Conn.SetReadDeadline(t)
}

// CloseWrite closes the writing side, which ends one direction of a tunnel.
func (c *guardedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return http.ErrNotSupported
}

// reset has Close drop what is unsent and tell the other side that this is no regular end.
func (c *guardedConn) reset() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // fails on a closed connection
	}
}

func (c *guardedConn) Close() error {
	err := c.Conn.Close()
	if c.done != nil {
		c.once.Do(c.done)
	}
	return err
}

// guardedListener bounds the number of connections, and gives each its guard.
type guardedListener struct {
	net.Listener
	places  chan struct{}
	closed  chan struct{}
	once    sync.Once
	stall   time.Duration
	minRate int64
}

func newGuardedListener(l net.Listener, cfg *ServerConfig) *guardedListener {
	return &guardedListener{
		Listener: l, places: make(chan struct{}, cfg.MaxConns), closed: make(chan struct{}),
		stall: cfg.Stall, minRate: cfg.MinRate,
	}
}

func (l *guardedListener) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	c := newGuardedConn(conn, l.stall, l.minRate)
	c.done = func() { <-l.places }
	return c, nil
}

func (l *guardedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// connKey is where a Server keeps the connection in the context of its requests.
type connKey struct{}

func withConn(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return context.WithValue(ctx, connKey{}, c)
}

// connOf returns the connection of a request that came through a Server, else nil.
func connOf(ctx context.Context) *guardedConn {
	c, _ := ctx.Value(connKey{}).(*guardedConn)
	return c
}

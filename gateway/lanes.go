package gateway

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	laneBuffer     = 16 << 10
	maxAnswerHead  = 1 << 20          // bytes of the header of an answer
	laneIdle       = 60 * time.Second // how long a connection is kept without a request
	unlimitedBytes = 1 << 62
)

var errAnswerHead = errors.New("the header of the answer is too long")

// lanes keeps the connections to a service that speaks HTTP/1.1. One request at a time travels on a lane, written and read
// by the goroutines of that request: net/http's transport has two more for every connection, and handing over to them
// costs a tenth of the time of a small request.
type lanes struct {
	dial func(context.Context) (net.Conn, error)
	most int

	mu      sync.Mutex
	idle    []*lane // the last used is last
	sweeper *time.Timer
	closed  bool
}

func newLanes(most int, dial func(context.Context) (net.Conn, error)) *lanes {
	return &lanes{dial: dial, most: most}
}

// get returns an idle lane that still seems to be open, or a new one.
func (s *lanes) get(ctx context.Context, fresh bool) (*lane, error) {
	for !fresh {
		l := s.pop()
		if l == nil {
			break
		}
		if time.Since(l.since) < laneIdle && l.quiet() {
			l.used = true
			return l, nil
		}
		l.close()
	}
	conn, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	return newLane(conn), nil
}

func (s *lanes) pop() *lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.idle)
	if n == 0 {
		return nil
	}
	l := s.idle[n-1]
	s.idle[n-1] = nil
	s.idle = s.idle[:n-1]
	return l
}

// put keeps a lane for later. Nothing of the last answer may be left on it.
func (s *lanes) put(l *lane) {
	l.since = time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.idle) >= s.most {
		l.close()
		return
	}
	s.idle = append(s.idle, l)
	if s.sweeper == nil {
		s.sweeper = time.AfterFunc(laneIdle/2, s.sweep)
	}
}

// sweep closes lanes that were not needed for long, or that the service has closed. It runs while there are any.
func (s *lanes) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.idle = slices.DeleteFunc(s.idle, func(l *lane) bool {
		if time.Since(l.since) < laneIdle && l.quiet() {
			return false
		}
		l.close()
		return true
	})
	if len(s.idle) > 0 {
		s.sweeper.Reset(laneIdle / 2)
	} else {
		s.sweeper = nil
	}
}

// close closes the idle lanes, and those that are put back later.
func (s *lanes) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.sweeper != nil {
		s.sweeper.Stop()
	}
	for _, l := range s.idle {
		l.close()
	}
	s.idle = nil
}

// lane is one connection to the service.
type lane struct {
	conn  net.Conn
	raw   syscall.RawConn // nil if the connection cannot be looked at
	in    *bufio.Reader
	out   *bufio.Writer
	left  int64     // bytes that may still come in the header of an answer
	read  bool      // whether a byte of the present answer has come
	used  bool      // whether it has served before
	since time.Time // idle since

	mu       sync.Mutex
	deadline time.Time // of reading
	answered bool      // whether the header of the answer is there, after which there is no deadline
}

func newLane(conn net.Conn) *lane {
	l := &lane{conn: conn, left: unlimitedBytes}
	inner := conn
	if g, ok := conn.(*guardedConn); ok {
		inner = g.Conn
	}
	if sc, ok := inner.(syscall.Conn); ok {
		l.raw, _ = sc.SyscallConn() // nil if it fails
	}
	l.in, l.out = bufio.NewReaderSize(l, laneBuffer), bufio.NewWriterSize(conn, laneBuffer)
	return l
}

func (l *lane) close() { l.conn.Close() }

// Read is what the buffer reads from; it bounds the header of an answer.
func (l *lane) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errAnswerHead
	}
	if int64(len(p)) > l.left {
		p = p[:l.left]
	}
	n, err := l.conn.Read(p)
	l.left -= int64(n)
	if n > 0 {
		l.read = true
	}
	return n, err
}

// begin readies the lane for a request.
func (l *lane) begin() {
	l.left, l.read = maxAnswerHead, false
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answered = false
}

// expect bounds the time until the header of the answer, from the end of the request. The deadline is up to a quarter
// late, so that most requests find one that is good enough.
func (l *lane) expect(timeout time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answered {
		return
	}
	if timeout <= 0 {
		l.limit(time.Time{})
		return
	}
	now := time.Now()
	if left := l.deadline.Sub(now); left < timeout || left > timeout+timeout/4 {
		l.limit(now.Add(timeout + timeout/4))
	}
}

// answering takes the deadline away: the rest of an answer may take any time. If the rest is here already, the deadline
// may stay for the next request.
func (l *lane) answering(whole bool) {
	l.left = unlimitedBytes
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answered = true
	if !whole {
		l.limit(time.Time{})
	}
}

// uploading takes the deadline away while the body of the request is sent.
func (l *lane) uploading() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit(time.Time{})
}

func (l *lane) limit(t time.Time) {
	if l.deadline.IsZero() && t.IsZero() {
		return
	}
	l.deadline = t
	_ = l.conn.SetReadDeadline(t) // fails on a closed connection, which the next read tells
}

// stream is a lane that has become a tunnel.
type stream struct{ *lane }

func (s stream) Read(p []byte) (int, error)  { return s.in.Read(p) }
func (s stream) Write(p []byte) (int, error) { return s.conn.Write(p) }
func (s stream) Close() error                { return s.conn.Close() }

func (s stream) CloseWrite() error {
	if half, ok := s.conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

var _ io.ReadWriteCloser = stream{}

package gateway

import (
	"io"
	"time"
)

// continueTimeout is how long a body is held back for a service that was asked whether it wants it.
const continueTimeout = time.Second

// brokenTimeout is how long a service that takes no more of a request may take to say why.
const brokenTimeout = time.Second

// firstByteTimeout is how long the first byte of a body of unknown length is waited for before the header goes without it.
const firstByteTimeout = 100 * time.Millisecond

// piece is what one read of a body has given.
type piece struct {
	buffer *[copyBuffer]byte // nil for nothing
	n      int
	err    error
}

func (b *pacedBody) readPiece(g *Gateway) piece {
	p := piece{buffer: g.buffers.Get().(*[copyBuffer]byte)}
	p.n, p.err = b.Read(p.buffer[:])
	return p
}

func (p *piece) bytes() []byte {
	if p.buffer == nil {
		return nil
	}
	return p.buffer[:p.n]
}

// drop gives the buffer back.
func (p *piece) drop(g *Gateway) {
	if p.buffer != nil {
		g.buffers.Put(p.buffer)
		*p = piece{}
	}
}

// readAhead reads the body once: a small one is here already, and then goes out with the header. The first byte of a body
// of known length is waited for, so that a client which sends none costs the service nothing. One of unknown length is not
// waited for long: its client may want the answer first.
func (t *trip) readAhead() error {
	body, g := t.x.body, t.x.g
	switch {
	case body == nil:
		t.all = true
		return nil
	case t.x.r.Header["Expect"] != nil:
		return nil // the service is asked first
	case t.length() >= 0:
		t.ahead = body.readPiece(g)
	default:
		late := make(chan piece, 1)
		go func() { late <- body.readPiece(g) }()
		timer := time.NewTimer(firstByteTimeout)
		defer timer.Stop()
		select {
		case t.ahead = <-late:
		case <-timer.C:
			t.late = late
			return nil
		}
	}
	if t.all = t.ahead.err == io.EOF; t.all {
		return nil
	}
	return t.ahead.err
}

// goOn lets the body go after the service has asked for it. The client is told here, by the goroutine that writes to it,
// if it is still to be told: net/http would do so at the first read, which is on another goroutine.
func (t *trip) goOn() {
	u := t.upload
	if u == nil || !u.asks || u.asked {
		return
	}
	u.asked = true
	t.x.askClient()
	close(u.ask)
}

// upload is the rest of a body on its way to the service.
type upload struct {
	ask  chan struct{} // closed when the service wants the body
	quit chan struct{} // closed when nobody wants it any more
	done chan bool     // whether all of it was sent
	asks bool          // whether ask is waited for

	asked bool // of the handler's goroutine
}

func startUpload(t *trip, chunked bool) *upload {
	u := &upload{quit: make(chan struct{}), done: make(chan bool, 1)}
	if t.x.r.Header["Expect"] != nil {
		u.ask, u.asks = make(chan struct{}), true
	}
	l, body, g, late := t.lane, t.x.body, t.x.g, t.late
	go func() {
		sent := u.wait() && g.upload(l, body, late, chunked)
		if sent {
			l.expect(g.cfg.ResponseTimeout)
		} else {
			l.expect(brokenTimeout)
		}
		u.done <- sent
	}()
	return u
}

// wait holds the body back until the service asks for it; one that says nothing gets it after a while.
func (u *upload) wait() bool {
	if !u.asks {
		return true
	}
	timer := time.NewTimer(continueTimeout)
	defer timer.Stop()
	select {
	case <-u.ask:
		return true
	case <-timer.C:
		return true
	case <-u.quit:
		return false
	}
}

// over tells whether the whole body was sent. It does not wait: a body that is still on its way makes the lane useless.
func (u *upload) over() bool {
	if u == nil {
		return true
	}
	close(u.quit)
	select {
	case sent := <-u.done:
		return sent
	default:
		return false
	}
}

// upload copies a body to a lane. If the body cannot be read the lane is closed, so that the service does not wait for
// the rest; if the lane cannot be written to, there may yet be an answer on it.
func (g *Gateway) upload(l *lane, body *pacedBody, late chan piece, chunked bool) bool {
	var p piece
	if late != nil {
		p = <-late
	} else {
		p = body.readPiece(g)
	}
	defer func() { p.drop(g) }()
	for {
		if writePiece(l.out, p.bytes(), chunked) != nil {
			return false
		}
		if p.err == io.EOF && chunked && body.writeEnd(l.out) != nil {
			return false
		}
		if p.err != nil && p.err != io.EOF {
			l.close()
			return false
		}
		if l.out.Flush() != nil {
			return false
		}
		if p.err == io.EOF {
			return true
		}
		p.n, p.err = body.Read(p.buffer[:])
	}
}

package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// continueTimeout is how long a body is held back for a service that was asked whether it wants it.
const continueTimeout = time.Second

// brokenTimeout is how long a service that takes no more of a request may take to say why.
const brokenTimeout = time.Second

// maxInformational bounds the 1xx answers before the real one.
const maxInformational = 16

var errInformational = errors.New("too many informational answers")

// trip is one request on a lane.
type trip struct {
	x      *exchange
	lane   *lane
	stop   func() bool // ends the watch for a client that leaves
	upload *upload     // the rest of the body on its way, nil if there is none
	first  []byte      // what of the body has been read ahead
	all    bool        // whether that was the whole body
	res    *http.Response
}

// run sends the request and returns the answer, with its body still to be read. After it, end must be called.
func (t *trip) run() (*http.Response, error) {
	buffer := t.x.g.buffers.Get().(*[copyBuffer]byte)
	defer t.x.g.buffers.Put(buffer)
	if err := t.readAhead(buffer[:]); err != nil {
		return nil, err
	}
	header := t.x.g.headers.Get().(http.Header)
	defer func() { clear(header); t.x.g.headers.Put(header) }()
	t.x.outgoingHeader(header)
	for fresh := false; ; fresh = true {
		if err := t.board(fresh); err != nil {
			return nil, err
		}
		err := t.send(header)
		if err == nil {
			if err = t.receive(); err == nil {
				return t.res, nil
			}
		}
		again := !fresh && t.repeatable()
		t.end(false)
		if !again {
			return nil, err
		}
	}
}

// readAhead reads the body once: a small one is here already, and then goes out with the header.
func (t *trip) readAhead(buffer []byte) error {
	body := t.x.body
	if body == nil {
		t.all = true
		return nil
	}
	if t.x.r.Header["Expect"] != nil {
		return nil // the service is asked first
	}
	n, err := body.Read(buffer)
	t.first, t.all = buffer[:n], err == io.EOF
	if err == io.EOF {
		err = nil
	}
	return err
}

func (t *trip) board(fresh bool) error {
	ctx := t.x.r.Context()
	l, err := t.x.g.lanes.get(ctx, fresh)
	if err != nil {
		return err
	}
	t.lane = l
	t.stop = context.AfterFunc(ctx, l.close)
	l.begin()
	return nil
}

// send writes the header and what is there of the body; the rest follows on a goroutine of its own, since a service may
// answer before it has read all.
func (t *trip) send(header http.Header) error {
	length := t.length()
	w := t.lane.out
	w.Reset(t.lane.conn)
	if err := t.x.writeHead(w, header, length); err != nil {
		return err
	}
	if err := writePiece(w, t.first, length < 0); err != nil {
		return err
	}
	if t.all && length < 0 {
		if err := t.x.body.writeEnd(w); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if t.all {
		t.lane.expect(t.x.g.cfg.ResponseTimeout)
		return nil
	}
	t.lane.uploading()
	t.upload = startUpload(t, length < 0)
	return nil
}

// length is what the body is announced with: trailers need chunks.
func (t *trip) length() int64 {
	switch {
	case t.x.body == nil:
		return 0
	case t.x.body.trailer != nil:
		return -1
	}
	return t.x.r.ContentLength
}

// receive reads answers up to the real one, and passes those on that come before it.
func (t *trip) receive() error {
	for range maxInformational {
		res, err := http.ReadResponse(t.lane.in, t.x.r) //nolint:bodyclose // the body is the lane: it is read to its end or the lane is closed
		if err != nil {
			return err
		}
		if res.StatusCode >= 200 || res.StatusCode == http.StatusSwitchingProtocols {
			t.res = res
			t.lane.answering(t.arrived())
			return nil
		}
		t.lane.left = maxAnswerHead
		if res.StatusCode == http.StatusContinue {
			t.upload.goOn()
			continue
		}
		t.x.inform(res.StatusCode, res.Header)
	}
	return errInformational
}

// arrived tells whether the whole answer is in the buffer.
func (t *trip) arrived() bool {
	switch {
	case t.res.StatusCode == http.StatusSwitchingProtocols:
		return false // what follows is a tunnel
	case t.res.ContentLength <= 0 || t.x.r.Method == http.MethodHead:
		return t.res.ContentLength >= 0
	}
	return int64(t.lane.in.Buffered()) >= t.res.ContentLength
}

// soon tells whether a read of the body returns without waiting for the service.
func (t *trip) soon() bool {
	n := t.lane.in.Buffered()
	if n == 0 || t.res.ContentLength >= 0 {
		return n > 0
	}
	p, err := t.lane.in.Peek(n)
	line := strings.IndexByte(string(p[:min(n, 32)]), '\n')
	return err == nil && line >= 0 && line+1 < n // a chunk's size and a byte of it
}

// repeatable tells whether the request may be sent again on another lane: the service had closed this one while it was
// idle, and the request asks for no change.
func (t *trip) repeatable() bool {
	switch t.x.r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return t.x.body == nil && t.lane.used && !t.lane.read && t.x.r.Context().Err() == nil
	}
	return false
}

// end gives the lane back after a whole answer, and closes it otherwise.
func (t *trip) end(whole bool) {
	if t.lane == nil {
		return
	}
	l := t.lane
	t.lane = nil
	sent := t.upload.over()
	t.upload = nil
	stopped := t.stop()
	if whole && sent && stopped && !t.res.Close && l.in.Buffered() == 0 {
		t.x.g.lanes.put(l)
		return
	}
	l.close()
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
	l, body, g := t.lane, t.x.body, t.x.g
	go func() {
		sent := u.wait() && g.upload(l, body, chunked)
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

func (u *upload) goOn() {
	if u != nil && u.asks && !u.asked {
		u.asked = true
		close(u.ask)
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
func (g *Gateway) upload(l *lane, body *pacedBody, chunked bool) bool {
	buffer := g.buffers.Get().(*[copyBuffer]byte)
	defer g.buffers.Put(buffer)
	for {
		n, err := body.Read(buffer[:])
		if werr := writePiece(l.out, buffer[:n], chunked); werr != nil {
			return false
		}
		if err == io.EOF && chunked {
			if body.writeEnd(l.out) != nil {
				return false
			}
		}
		if err != nil && err != io.EOF {
			l.close()
			return false
		}
		if l.out.Flush() != nil {
			return false
		}
		if err == io.EOF {
			return true
		}
	}
}

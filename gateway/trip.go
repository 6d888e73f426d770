package gateway

import (
	"context"
	"errors"
	"net/http"
)

// maxInformational bounds the 1xx answers before the real one.
const maxInformational = 16

var errInformational = errors.New("too many informational answers")

// trip is one request on a lane.
type trip struct {
	x      *exchange
	lane   *lane
	stop   func() bool // ends the watch for a client that leaves
	upload *upload     // the rest of the body on its way, nil if there is none
	ahead  piece       // what of the body goes out with the header
	late   chan piece  // what comes before the rest of the body, nil for nothing
	all    bool        // whether nothing comes after ahead
	broken bool        // whether the service has not taken all of it
	res    *http.Response
}

// run sends the request and returns the answer, with its body still to be read. After it, end must be called.
func (t *trip) run() (*http.Response, error) {
	defer t.ahead.drop(t.x.g)
	if err := t.readAhead(); err != nil {
		return nil, err
	}
	header := t.x.g.headers.Get().(http.Header)
	defer func() { clear(header); t.x.g.headers.Put(header) }()
	t.x.outgoingHeader(header)
	for fresh := false; ; fresh = true {
		if err := t.board(fresh); err != nil {
			return nil, err
		}
		err := t.converse(header)
		if err == nil {
			return t.res, nil
		}
		again := !fresh && t.repeatable(err)
		t.end(false)
		if !again {
			return nil, err
		}
	}
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
	t.broken = false
	return nil
}

// converse sends and receives. A service may answer, and close, before it has taken what is sent.
func (t *trip) converse(header http.Header) error {
	err := t.send(header)
	if err == nil {
		return t.receive()
	}
	if t.broken = true; err == errHeaderValue {
		return err
	}
	t.lane.expect(brokenTimeout)
	if t.receive() == nil {
		return nil
	}
	return err
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
	if err := writePiece(w, t.ahead.bytes(), length < 0); err != nil {
		return err
	}
	t.ahead.drop(t.x.g) // the service may take its time to answer
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
	for informational := 0; ; informational++ {
		res, err := http.ReadResponse(t.lane.in, t.x.r) //nolint:bodyclose // the body is the lane: it is read to its end or the lane is closed
		if err == nil {
			err = plausible(res)
		}
		switch {
		case err != nil:
			return err
		case res.StatusCode >= 200 || res.StatusCode == http.StatusSwitchingProtocols:
			t.res = res
			t.lane.answering(t.arrived())
			return nil
		case informational == maxInformational:
			return errInformational
		case res.StatusCode == http.StatusContinue:
			t.goOn()
		default:
			t.x.inform(res.StatusCode, res.Header)
		}
		t.lane.left = maxAnswerHead
	}
}

// repeatable tells whether the request may be sent again on another lane: the service had closed this one while it was
// idle, and the request asks for no change. A service that is slow has not closed it, and must not get more to do.
func (t *trip) repeatable(err error) bool {
	switch t.x.r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return t.x.body == nil && t.lane.used && !t.lane.read && t.x.r.Context().Err() == nil && !isTimeout(err)
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
	if whole && sent && stopped && !t.broken && !t.res.Close && !framesNothing(t.res) && l.in.Buffered() == 0 {
		t.x.g.lanes.put(l)
		return
	}
	l.close()
}

package gateway

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

var (
	errSlowBody   error = slowBody{}
	errLongBody   error = longBody{}
	errBodyClosed       = errors.New("the body of the request is closed")
)

// slowBody is, for a handler of reserved paths, what it would get without a gateway before it: the end of its time.
type slowBody struct{}

func (slowBody) Error() string        { return "the body of the request comes too slowly" }
func (slowBody) Is(target error) bool { return target == os.ErrDeadlineExceeded }

// longBody is likewise a bound of http.MaxBytesReader.
type longBody struct{}

func (longBody) Error() string { return "the body of the request is too long" }

func (longBody) As(target any) bool {
	large, ok := target.(**http.MaxBytesError)
	if ok {
		*large = &http.MaxBytesError{}
	}
	return ok
}

// pacedBody is the body of a request on its way to the service. It bounds size and slowness, and ends with the handler:
// the transport may still hold it then.
type pacedBody struct {
	body     io.ReadCloser
	setLimit func(time.Time) error // sets the read deadline of the connection or stream
	left     int64                 // bytes that may come, -1 for any number
	from     http.Header           // trailers as they come
	trailer  http.Header           // those that go on; nil if none are announced

	pace   pace
	ahead  bool // whether a goroutine reads ahead: trailers are passed on by who reads the end
	mu     sync.Mutex
	latest time.Time // when the read that is under way must end, zero if none is
	over   bool
	came   int64     // bytes that were read
	whole  bool      // whether all of it has been read
	at     time.Time // when that was
	err    error     // why the body could not be read, nil for none
	told   func()    // called when all of it has been read, nil for none
}

// openBody gives a request that has a body its pace.
func (x *exchange) openBody() {
	if x.body == nil && hasBody(x.r) {
		x.body = newPacedBody(x)
	}
}

func newPacedBody(x *exchange) *pacedBody {
	b := &pacedBody{
		body: x.r.Body, setLimit: http.NewResponseController(x.w).SetReadDeadline,
		left: -1, pace: newPace(x.g.cfg.Stall, x.g.cfg.MinRate),
	}
	if x.g.cfg.MaxRequestBody > 0 {
		b.left = x.g.cfg.MaxRequestBody
	}
	for name := range x.r.Trailer {
		if x.g.passes(name, false) && name != "Authorization" && name != "Cookie" {
			if b.trailer == nil {
				b.trailer = make(http.Header, len(x.r.Trailer))
			}
			b.trailer[name] = nil
		}
	}
	b.from = x.r.Trailer
	return b
}

// Read is called by one goroutine at a time, which may be another than the handler's.
func (b *pacedBody) Read(p []byte) (int, error) {
	start := time.Now()
	if err := b.arm(start); err != nil {
		return 0, err
	}
	if b.left >= 0 && int64(len(p)) > b.left+1 {
		p = p[:b.left+1] // one more tells a body that is too long from one that just fits
	}
	n, err := b.body.Read(p)
	b.pace.spent(time.Since(start), n)
	switch {
	case b.left >= 0 && int64(n) > b.left:
		n, err = int(b.left), errLongBody
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = errSlowBody
	}
	if b.left >= 0 {
		b.left -= int64(n)
	}
	if told := b.ended(n, err); told != nil {
		told()
	}
	return n, err
}

// arm sets the deadline of a read. One after the end does not reach the body: the transport makes sure that nothing is
// left, while net/http may have closed the body, since the answer is on its way; that must not fail the request.
func (b *pacedBody) arm(now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.whole:
		return io.EOF
	case b.over:
		return errBodyClosed
	}
	deadline, set := b.pace.arm(now)
	if set {
		_ = b.setLimit(deadline) // not every server can: then it bounds slow bodies itself
	}
	b.latest = deadline
	return nil
}

// ended notes the end of a read. At the end of the body it passes the trailers on, and takes the deadline away, which would
// hit net/http's watch for a client that leaves; after a failure it stays, for nobody waits for the rest. It returns whom to tell.
func (b *pacedBody) ended(n int, err error) (told func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.came += int64(n)
	b.latest = time.Time{}
	if b.over || err == nil {
		return nil
	}
	if err != io.EOF {
		b.err = err
		return nil
	}
	b.whole, b.at = true, time.Now()
	_ = b.setLimit(time.Time{})
	if !b.ahead {
		b.passTrailers()
	}
	return b.told
}

// whenSent has f called when all of the body has been read, at once if it has been. Only the last f counts.
func (b *pacedBody) whenSent(f func()) {
	b.mu.Lock()
	b.told = f
	whole := b.whole
	b.mu.Unlock()
	if whole {
		f()
	}
}

func (b *pacedBody) passTrailers() {
	for name := range b.trailer {
		if values, came := b.from[name]; came {
			b.trailer[name] = values
		}
	}
}

// read returns how many bytes have come; a nil body has none.
func (b *pacedBody) read() int64 {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.came
}

// Close ends reading. It does not close the body below: that would read what the client has not sent yet.
func (b *pacedBody) Close() error { return nil }

// handlerOver is called when the handler returns, after which the body must not be touched.
func (b *pacedBody) handlerOver() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
}

// failure returns why the body could not be read, nil if it could.
func (b *pacedBody) failure() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil && !b.latest.IsZero() && time.Now().After(b.latest) {
		return errSlowBody // the deadline has ended the request's context before it has ended the read
	}
	return b.err
}

// sent tells whether all of the body has been read; a nil body has been.
func (b *pacedBody) sent() bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.whole
}

// slow tells whether the body has taken more than a tenth of the time since then, or has not ended; a nil body has not.
func (b *pacedBody) slow(since time.Time) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.whole || b.at.Sub(since) > time.Since(since)/10
}

// lingering is how long net/http may wait for what is left of a body once the answer is known.
const lingering = 2 * time.Second

// bodyLeft tells whether a part of the body may still be on the connection. A stream of HTTP/2 needs no such care.
func (x *exchange) bodyLeft() bool {
	if x.r.ProtoMajor != 1 || x.r.ContentLength == 0 {
		return false
	}
	if x.body == nil {
		return true
	}
	x.body.mu.Lock()
	defer x.body.mu.Unlock()
	return !x.body.whole
}

// boundRest is called before an answer and after the handler: net/http reads the rest of a body, up to 256 kB, to keep the
// connection, and has no bound for how long that takes.
//
// A body that was not forwarded is read before the answer goes out; if the deadline ends that, net/http closes the
// connection. While a body is forwarded somebody else may be reading it, so there the answer goes first and the connection
// ends with it: what is left must never be taken for the next request.
func (x *exchange) boundRest(answered bool) {
	if !x.bodyLeft() {
		return
	}
	control := http.NewResponseController(x.w) // a server that cannot do these has bounds of its own
	until := time.Now().Add(lingering)
	if errors.Is(x.body.failure(), errSlowBody) {
		until = time.Now() // it has had its time
	}
	switch {
	case x.body == nil:
		_ = control.SetReadDeadline(until)
	case !answered:
		_ = control.EnableFullDuplex()
		x.Header().Set("Connection", "close")
	default:
		_ = control.SetReadDeadline(until)
		if conn := connOf(x.r.Context()); conn != nil {
			conn.lastReads(until) // the deadline above is lost when net/http stops a read that is under way
		}
	}
}

// leaveBody ends the use of the body when the handler returns.
func (x *exchange) leaveBody() {
	if x.body != nil {
		x.body.handlerOver()
	}
	if x.status == 0 { // net/http answers for a handler that has not
		x.Header().Set("Connection", "close")
	}
	if x.status != http.StatusSwitchingProtocols {
		x.boundRest(true)
	}
}

package httpverdict

import (
	"context"
	"errors"
	"io"
	"sync"
)

// ErrBodyPassed says that a [Peeker] is asked for the first time when the body has gone on.
var ErrBodyPassed = errors.New("the body has gone on without a look at it")

// PeekedBody is the body of a request whose beginning a policy looks at: a [Peeker], and the body that goes on in place of
// the one below. It is for fronts.
//
// What is read ahead is read by a goroutine that has the body below to itself until its read returns, so that the end of
// a Peek's context ends the Peek alone: not a byte is lost or comes twice, and no deadline is left on a connection. What is
// read from the PeekedBody meanwhile waits for it. Peek may be called from several goroutines; Read and Close are as for
// any body, after the first Peek.
type PeekedBody struct {
	src    io.ReadCloser
	length int64
	atEnd  func()

	mu      sync.Mutex
	done    chan struct{} // closed when reading ahead is over, nil before it begins
	settled bool          // whether result is what Peek answers
	result  error
	ahead   []byte // what was read ahead; like end not touched once done is closed
	end     error  // what ended it, nil if there may be more
	off     int    // how much of it has gone on
	came    int64  // bytes read from src
}

// NewPeekedBody returns a PeekedBody over a body of that length, -1 if unknown. atEnd, if not nil, is called by Read before
// it returns io.EOF: to pass trailers on.
func NewPeekedBody(src io.ReadCloser, length int64, atEnd func()) *PeekedBody {
	return &PeekedBody{src: src, length: length, atEnd: atEnd}
}

// Peek is that of [Peeker]. Only the first call reads.
func (b *PeekedBody) Peek(ctx context.Context, most int) ([]byte, error) {
	done := b.begin(most)
	select {
	case <-done:
	case <-ctx.Done():
		b.settle(ctx.Err())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.result != nil:
		return nil, b.result
	case len(b.ahead) > most:
		return nil, ErrBodyTooLarge
	}
	return b.ahead[:len(b.ahead):len(b.ahead)], nil
}

// begin starts reading ahead if nobody has.
func (b *PeekedBody) begin(most int) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done != nil {
		return b.done
	}
	b.done = make(chan struct{})
	if b.length > int64(most) {
		b.settled, b.result = true, ErrBodyTooLarge
		close(b.done)
		return b.done
	}
	go b.readAhead(most)
	return b.done
}

// settle fixes what Peek answers, unless that is fixed already.
func (b *PeekedBody) settle(result error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.settled {
		b.settled, b.result = true, result
	}
}

// firstLook is how much room a body gets that has announced its length: it may never come.
const firstLook = 4 << 10

// readAhead reads until it knows whether the body has more than most bytes, or until nobody waits for that any more.
func (b *PeekedBody) readAhead(most int) {
	size := min(most+1, 512)
	if b.length >= 0 {
		size = min(int(b.length)+1, firstLook) // one more meets the end
	}
	ahead := make([]byte, 0, size)
	var end error
	for end == nil && len(ahead) <= most && b.awaited() {
		if len(ahead) == cap(ahead) {
			ahead = append(ahead, 0)[:len(ahead)]
		}
		var n int
		n, end = b.src.Read(ahead[len(ahead):min(cap(ahead), most+1)])
		ahead = ahead[:len(ahead)+n]
	}
	result := end
	switch {
	case len(ahead) > most:
		result = ErrBodyTooLarge
	case end == io.EOF:
		result = nil
	}
	b.mu.Lock()
	b.ahead, b.end, b.came = ahead, end, int64(len(ahead))
	if !b.settled {
		b.settled, b.result = true, result
	}
	b.mu.Unlock()
	close(b.done)
}

// awaited tells whether Peek has not given up.
func (b *PeekedBody) awaited() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.settled
}

// Pending tells whether a read ahead is still under way.
func (b *PeekedBody) Pending() bool {
	b.mu.Lock()
	done := b.done
	b.mu.Unlock()
	if done == nil {
		return false
	}
	select {
	case <-done:
		return false
	default:
		return true
	}
}

// Came returns how many bytes have been read from the body below, without those of a read that is under way.
func (b *PeekedBody) Came() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.came
}

// Read returns what was read ahead, and then the rest.
func (b *PeekedBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	done := b.done
	b.mu.Unlock()
	if done != nil {
		<-done
	}
	if b.off < len(b.ahead) {
		n := copy(p, b.ahead[b.off:])
		b.off += n
		return n, nil
	}
	n, err := 0, b.end
	if err == nil {
		n, err = b.src.Read(p)
		b.mu.Lock()
		b.came += int64(n)
		b.mu.Unlock()
	}
	if err == io.EOF && b.atEnd != nil {
		b.atEnd()
	}
	return n, err
}

// Close closes the body below, but for one that is being read: that would wait for the client.
func (b *PeekedBody) Close() error {
	if b.Pending() {
		return nil
	}
	return b.src.Close()
}
